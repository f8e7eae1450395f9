//! What an overlay makes of a price, read from the texts that the CRD admits and from no others.
//!
//! Answers to the patterns of `price` and `priceAdjustment` in Karpenter's `pkg/apis/v1alpha1/nodeoverlay.go`, and to
//! `AdjustedPrice` of its `pkg/cloudprovider/types.go`.

use std::str::FromStr;

/// What an overlay makes of a price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PriceChange {
    /// This price instead, in USD an hour.
    Price(f64),
    /// So many USD an hour more; fewer below zero.
    Amount(f64),
    /// So many hundredths of the price more; fewer below zero.
    Percent(f64),
}

/// A text that is neither a price nor a change of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a price or adjustment")]
pub struct PriceChangeError;

impl PriceChange {
    /// Reads the text of a `price`.
    pub fn of_price(text: &str) -> Result<Self, PriceChangeError> {
        Self::where_relative(text, false)
    }

    /// Reads the text of a `priceAdjustment`.
    pub fn of_adjustment(text: &str) -> Result<Self, PriceChangeError> {
        Self::where_relative(text, true)
    }

    fn where_relative(text: &str, is_relative: bool) -> Result<Self, PriceChangeError> {
        let change: Self = text.parse()?;
        match change {
            Self::Price(_) if is_relative => Err(PriceChangeError),
            Self::Amount(_) | Self::Percent(_) if !is_relative => Err(PriceChangeError),
            Self::Price(_) | Self::Amount(_) | Self::Percent(_) => Ok(change),
        }
    }

    /// The price that comes of the one told, never below zero; of a price that nobody told only a price can be made.
    pub fn applied_to(self, told: Option<f64>) -> Option<f64> {
        let changed = match self {
            Self::Price(price) => price,
            Self::Amount(amount) => told? + amount,
            Self::Percent(percent) => told? * (1.0 + percent / 100.0),
        };
        Some(changed.max(0.0))
    }
}

impl FromStr for PriceChange {
    type Err = PriceChangeError;

    fn from_str(text: &str) -> Result<Self, PriceChangeError> {
        let (sign, unsigned) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(more), _) => (Some(1.0), more),
            (None, Some(fewer)) => (Some(-1.0), fewer),
            (None, None) => (None, text),
        };
        let (digits, is_percent) = match unsigned.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (unsigned, false),
        };
        let number = decimal(digits).ok_or(PriceChangeError)?;
        let whole = digits.split_once('.').map_or(digits, |(whole, _)| whole);
        // What is less than free is no price, and Karpenter counts the digits to see that.
        let is_too_much_less = !matches!(whole.len(), 1..=2) && digits != "100";
        match (sign, is_percent) {
            (None, false) if !whole.is_empty() => Ok(Self::Price(number)),
            (None, _) => Err(PriceChangeError),
            (Some(sign), true) if sign < 0.0 && is_too_much_less => Err(PriceChangeError),
            (Some(sign), true) => Ok(Self::Percent(sign * number)),
            (Some(sign), false) => Ok(Self::Amount(sign * number)),
        }
    }
}

/// Digits with at most one point, and a digit after it.
fn decimal(text: &str) -> Option<f64> {
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, last) = text.split_once('.').unwrap_or(("", text));
    if last.is_empty() || !are_digits(whole) || !are_digits(last) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0.05", PriceChange::Price(0.05))]
    #[case("2", PriceChange::Price(2.0))]
    #[case("+0.5", PriceChange::Amount(0.5))]
    #[case("-.5", PriceChange::Amount(-0.5))]
    #[case("-120", PriceChange::Amount(-120.0))]
    #[case("+10%", PriceChange::Percent(10.0))]
    #[case("+250.5%", PriceChange::Percent(250.5))]
    #[case("+.5%", PriceChange::Percent(0.5))]
    #[case("-10%", PriceChange::Percent(-10.0))]
    #[case("-99.5%", PriceChange::Percent(-99.5))]
    #[case("-100%", PriceChange::Percent(-100.0))]
    fn changes_are_read(#[case] text: &str, #[case] expected: PriceChange) {
        assert_eq!(text.parse(), Ok(expected));
        let is_price = matches!(expected, PriceChange::Price(_));
        assert_eq!(PriceChange::of_price(text).is_ok(), is_price);
        assert_eq!(PriceChange::of_adjustment(text).is_ok(), !is_price);
    }

    #[test]
    fn what_the_definition_refuses_is_no_change() {
        let refused = [
            "", "+", "-", "%", "+%", ".", "+.", "1.", "+1.", ".5", "1.2.3", "5%", "5%%", "+5%%",
            "50%", "-+1", "--1", "+-1%", "-100.0%", "-101%", "-.5%", "1e3", "+1e3", "inf", "NaN",
            "dear", " 1", "1 ", "٣",
        ];
        for text in refused {
            assert_eq!(text.parse::<PriceChange>(), Err(PriceChangeError), "{text}");
        }
        let beyond_all_numbers = "9".repeat(400);
        assert_eq!(
            beyond_all_numbers.parse::<PriceChange>(),
            Err(PriceChangeError)
        );
    }

    #[rstest]
    #[case("0.05", Some(1.0), Some(0.05))]
    #[case("0.05", None, Some(0.05))]
    #[case("+0.5", Some(1.0), Some(1.5))]
    #[case("-0.5", Some(0.25), Some(0.0))]
    #[case("-0.5", None, None)]
    #[case("+50%", Some(2.0), Some(3.0))]
    #[case("-100%", Some(2.0), Some(0.0))]
    #[case("-10%", None, None)]
    fn a_price_is_changed(
        #[case] text: &str,
        #[case] told: Option<f64>,
        #[case] expected: Option<f64>,
    ) {
        let change: PriceChange = text.parse().unwrap();
        assert_eq!(change.applied_to(told), expected);
    }
}
