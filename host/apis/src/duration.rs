//! Durations as Go writes them, and the nillable duration that also says `Never`.
//!
//! Must keep the user's own text of a nillable duration, since the API server stores what we send back.
//! Answers to Karpenter's `pkg/apis/v1/duration.go`.

mod nillable;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
pub use nillable::{NEVER, NillableDuration};
#[cfg(feature = "objects")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {text:?}: {reason}")]
pub struct DurationError {
    text: String,
    reason: &'static str,
}

/// A duration with Go's text form: parsed by `time.ParseDuration`'s rules, printed by `Duration.String`'s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration {
    nanos: i64,
}

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = Self { nanos: 0 };

    /// A duration of so many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// A duration of so many seconds, saturating.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self {
            nanos: seconds.saturating_mul(NANOS_PER_SECOND),
        }
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// The length in whole seconds, the rest cut off.
    pub const fn as_seconds(self) -> i64 {
        self.nanos / NANOS_PER_SECOND
    }

    /// As jiff's duration, for arithmetic with timestamps.
    pub const fn to_signed_duration(self) -> SignedDuration {
        SignedDuration::from_nanos(self.nanos)
    }

    /// As the standard library's duration; a negative one is zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.nanos).unwrap_or(0))
    }
}

impl From<SignedDuration> for GoDuration {
    fn from(duration: SignedDuration) -> Self {
        let nanos = duration.as_nanos();
        let bound = if nanos < 0 { i64::MIN } else { i64::MAX };
        Self {
            nanos: i64::try_from(nanos).unwrap_or(bound),
        }
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |reason| DurationError {
            text: text.to_owned(),
            reason,
        };
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        if rest.is_empty() {
            return Err(error("it is empty"));
        }
        let mut nanos: i128 = 0;
        while !rest.is_empty() {
            let number = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(rest.len());
            let (digits, after) = rest.split_at(number);
            let unit_end = after
                .find(|c: char| c.is_ascii_digit() || c == '.')
                .unwrap_or(after.len());
            let (unit, next) = after.split_at(unit_end);
            let unit_nanos = unit_nanos(unit).ok_or_else(|| {
                error(if unit.is_empty() {
                    "a number lacks its unit"
                } else {
                    "it has an unknown unit"
                })
            })?;
            nanos +=
                term_nanos(digits, unit_nanos).ok_or_else(|| error("it has a malformed number"))?;
            if nanos > i128::from(i64::MAX) {
                return Err(error("it is too long"));
            }
            rest = next;
        }
        let nanos = i64::try_from(if negative { -nanos } else { nanos })
            .map_err(|_| error("it is too long"))?;
        Ok(Self { nanos })
    }
}

fn unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3600 * 1_000_000_000,
        _ => return None,
    })
}

/// One `number × unit`, the fraction cut below a nanosecond as Go does.
fn term_nanos(digits: &str, unit_nanos: i128) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanos = whole * unit_nanos;
    let mut scale = unit_nanos;
    let mut rest = 0;
    // Ten-fold steps of the largest unit run out after 13 digits; what follows is below a nanosecond.
    let mut divisor = 1;
    for digit in fraction.bytes().take(18) {
        divisor *= 10;
        rest = rest * 10 + i128::from(digit - b'0');
    }
    scale = scale * rest / divisor;
    nanos += scale;
    Some(nanos)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0s");
        }
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        let nanos = self.nanos.unsigned_abs();
        for (unit, name) in [(1_u64, "ns"), (1_000, "µs"), (1_000_000, "ms")] {
            if nanos < unit * 1_000 {
                return write!(f, "{}{name}", decimal(nanos, unit));
            }
        }
        let second = NANOS_PER_SECOND.unsigned_abs();
        let (hours, minutes) = (nanos / (3600 * second), nanos / (60 * second) % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", decimal(nanos % (60 * second), second))
    }
}

/// `value / unit` as a decimal without trailing zeros.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(feature = "objects")]
impl JsonSchema for GoDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::{GoDuration, NillableDuration};

    #[rstest]
    #[case("0", 0, "0s")]
    #[case("0s", 0, "0s")]
    #[case("1h", 3_600_000_000_000, "1h0m0s")]
    #[case("90m", 5_400_000_000_000, "1h30m0s")]
    #[case("1h0m0s", 3_600_000_000_000, "1h0m0s")]
    #[case("720h", 2_592_000_000_000_000, "720h0m0s")]
    #[case("61s", 61_000_000_000, "1m1s")]
    #[case("1.5s", 1_500_000_000, "1.5s")]
    #[case(".5m", 30_000_000_000, "30s")]
    #[case("-5m", -300_000_000_000, "-5m0s")]
    #[case("+5m", 300_000_000_000, "5m0s")]
    #[case("10ms", 10_000_000, "10ms")]
    #[case("1500us", 1_500_000, "1.5ms")]
    #[case("2µs", 2_000, "2µs")]
    #[case("7ns", 7, "7ns")]
    #[case("1m0.000000001s", 60_000_000_001, "1m0.000000001s")]
    fn reads_and_writes(#[case] text: &str, #[case] nanos: i64, #[case] written: &str) {
        let duration: GoDuration = text.parse().unwrap();
        assert_eq!(duration.as_nanos(), nanos);
        assert_eq!(duration.to_string(), written);
    }

    #[rstest]
    #[case("", r#"invalid duration "": it is empty"#)]
    #[case("10", r#"invalid duration "10": a number lacks its unit"#)]
    #[case("1d", r#"invalid duration "1d": it has an unknown unit"#)]
    #[case("h", r#"invalid duration "h": it has a malformed number"#)]
    #[case("1..5s", r#"invalid duration "1..5s": it has a malformed number"#)]
    #[case("9999999h", r#"invalid duration "9999999h": it is too long"#)]
    fn refuses(#[case] text: &str, #[case] message: &str) {
        assert_eq!(text.parse::<GoDuration>().unwrap_err().to_string(), message);
    }

    #[rstest]
    #[case("\"Never\"", "\"Never\"", None)]
    #[case("null", "\"Never\"", None)]
    #[case("\"90m\"", "\"90m\"", Some(5400))]
    #[case("\"1h30m\"", "\"1h30m\"", Some(5400))]
    fn nillable_keeps_the_users_text(
        #[case] json: &str,
        #[case] written: &str,
        #[case] seconds: Option<i64>,
    ) {
        let duration: NillableDuration = serde_json::from_str(json).unwrap();
        assert_eq!(duration.as_seconds(), seconds);
        assert_eq!(serde_json::to_string(&duration).unwrap(), written);
    }

    #[test]
    fn nillables_compare_by_meaning() {
        let parse = |text: &str| text.parse::<NillableDuration>().unwrap();
        assert_eq!(parse("90m"), parse("1h30m"));
        assert_ne!(parse("Never"), parse("0s"));
    }

    proptest! {
        #[test]
        fn written_durations_read_back(nanos in -i64::MAX..i64::MAX) {
            let duration = GoDuration::from_nanos(nanos);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
