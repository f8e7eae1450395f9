//! Kubernetes' resource quantities: exact parsing, canonical text, and the milli-units all arithmetic is done in.
//!
//! Never goes through floating point. Answers to `k8s.io/apimachinery/pkg/api/resource`.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "objects")]
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid quantity {0:?}")]
pub struct QuantityError(String);

/// Which suffixes a quantity is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An exponent of ten, as in `1e3`.
    DecimalExponent,
    /// Suffixes for powers of 1024, as in `1Ki`.
    BinarySi,
    /// Suffixes for powers of 1000, as in `1k`.
    DecimalSi,
}

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
/// Kubernetes caps what it parses at this many units.
const NANOS_MAX: i128 = i64::MAX as i128 * NANOS_PER_UNIT;

/// A parsed quantity: a fixed-point number of billionths, and the form it was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedQuantity {
    nanos: i128,
    format: Format,
}

impl ParsedQuantity {
    /// A quantity of so many thousandths.
    pub fn from_millis(millis: i64, format: Format) -> Self {
        Self {
            nanos: i128::from(millis) * NANOS_PER_MILLI,
            format,
        }
    }

    /// In thousandths, rounded away from zero, capped at what 64 bits hold.
    pub fn millis(self) -> i64 {
        saturate(div_away_from_zero(self.nanos, NANOS_PER_MILLI))
    }

    /// Whether it is less than nothing.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn div_away_from_zero(value: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (value / divisor, value % divisor);
    quotient + if rest == 0 { 0 } else { rest.signum() }
}

/// Thousandths of a quantity's text.
pub fn parse_millis(text: &str) -> Result<i64, QuantityError> {
    Ok(text.parse::<ParsedQuantity>()?.millis())
}

/// Thousandths of an API quantity.
#[cfg(feature = "objects")]
pub fn millis(quantity: &Quantity) -> Result<i64, QuantityError> {
    parse_millis(&quantity.0)
}

/// So many thousandths as canonical decimal text, such as `1500m` or `2k`.
pub fn format_millis(millis: i64) -> String {
    ParsedQuantity::from_millis(millis, Format::DecimalSi).to_string()
}

/// So many thousandths as canonical binary text, such as `1536Mi`.
pub(crate) fn format_millis_binary(millis: i64) -> String {
    ParsedQuantity::from_millis(millis, Format::BinarySi).to_string()
}

impl FromStr for ParsedQuantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| QuantityError(text.to_owned()))
    }
}

/// Effect of a suffix on the number before it.
enum Scale {
    Decimal(i32),
    Binary(u32),
}

fn parse(text: &str) -> Option<ParsedQuantity> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let whole_end = unsigned
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(unsigned.len());
    let (whole, rest) = unsigned.split_at(whole_end);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(
            rest.find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len()),
        ),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (scale, format) = scale(suffix)?;
    let nanos = nanos(whole, fraction, &scale).min(NANOS_MAX);
    Some(ParsedQuantity {
        nanos: if negative { -nanos } else { nanos },
        format,
    })
}

fn scale(suffix: &str) -> Option<(Scale, Format)> {
    let decimal = |exponent| Some((Scale::Decimal(exponent), Format::DecimalSi));
    let binary = |power| Some((Scale::Binary(power), Format::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            // An exponent past these bounds is zero or the cap, whatever its number.
            let exponent: i32 = exponent
                .parse()
                .unwrap_or_else(|_| if exponent.starts_with('-') { -100 } else { 100 });
            Some((
                Scale::Decimal(exponent.clamp(-100, 100)),
                Format::DecimalExponent,
            ))
        }
    }
}

/// Billionths, rounded up, capped at [`NANOS_MAX`].
fn nanos(whole: &str, fraction: &str, scale: &Scale) -> i128 {
    let (exponent, multiplier) = match *scale {
        Scale::Decimal(exponent) => (exponent, NANOS_PER_UNIT),
        Scale::Binary(power) => (0, NANOS_PER_UNIT << (10 * power)),
    };
    // The exponent only moves the point among the digits; outside of them there are zeros.
    let digits: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|digit| digit - b'0')
        .collect();
    let digit = |index: i64| {
        usize::try_from(index)
            .ok()
            .and_then(|i| digits.get(i))
            .map_or(0, |d| i128::from(*d))
    };
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let point = i64::try_from(whole.len())
        .unwrap_or(i64::MAX)
        .saturating_add(exponent.into());

    let mut units: i128 = 0;
    for index in 0..point {
        units = units * 10 + digit(index);
        if units > NANOS_MAX {
            return NANOS_MAX;
        }
    }
    // From the last digit up: cutting off after each step gives what cutting off once at the end would.
    let mut below: i128 = 0;
    let mut is_inexact = false;
    for index in (point..length).rev() {
        let sum = below + digit(index) * multiplier;
        is_inexact |= sum % 10 != 0;
        below = sum / 10;
    }
    units
        .saturating_mul(multiplier)
        .saturating_add(below + i128::from(is_inexact))
        .min(NANOS_MAX)
}

impl fmt::Display for ParsedQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        // Small and broken numbers are shown in decimal, so that nothing is lost.
        let is_whole = self.nanos % NANOS_PER_UNIT == 0;
        let is_small = self.nanos.abs() < 1024 * NANOS_PER_UNIT;
        match self.format {
            Format::BinarySi if is_whole && !is_small => {
                let mut units = self.nanos / NANOS_PER_UNIT;
                let mut suffix = 0;
                while units % 1024 == 0 && suffix < 6 {
                    units /= 1024;
                    suffix += 1;
                }
                write!(
                    f,
                    "{units}{}",
                    ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][suffix]
                )
            }
            Format::BinarySi | Format::DecimalSi => {
                let (digits, thousands) = strip_thousands(self.nanos);
                write!(
                    f,
                    "{digits}{}",
                    ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][thousands]
                )
            }
            Format::DecimalExponent => {
                let (digits, thousands) = strip_thousands(self.nanos);
                match i32::try_from(thousands).map_or(0, |t| t * 3 - 9) {
                    0 => write!(f, "{digits}"),
                    exponent => write!(f, "{digits}e{exponent}"),
                }
            }
        }
    }
}

/// The number without factors of a thousand, and how many there were, at most nine.
fn strip_thousands(nanos: i128) -> (i128, usize) {
    let (mut digits, mut thousands) = (nanos, 0);
    while digits % 1000 == 0 && thousands < 9 {
        digits /= 1000;
        thousands += 1;
    }
    (digits, thousands)
}

/// The same quantity in the text that Kubernetes itself would write.
pub fn canonical(text: &str) -> Result<String, QuantityError> {
    Ok(text.parse::<ParsedQuantity>()?.to_string())
}

#[cfg(test)]
mod tests;
