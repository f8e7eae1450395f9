//! Quantities as Kubernetes reads and writes them.

use proptest::prelude::*;
use rstest::rstest;

use super::{Format, ParsedQuantity, canonical, format_millis, format_millis_binary, parse_millis};

#[rstest]
#[case("0", 0, "0")]
#[case("-0", 0, "0")]
#[case("0Gi", 0, "0")]
#[case("1", 1_000, "1")]
#[case("+1", 1_000, "1")]
#[case("100m", 100, "100m")]
#[case("0.1", 100, "100m")]
#[case(".5", 500, "500m")]
#[case("5.", 5_000, "5")]
#[case("1.5", 1_500, "1500m")]
#[case("1000m", 1_000, "1")]
#[case("2000", 2_000_000, "2k")]
#[case("1500", 1_500_000, "1500")]
#[case("-1.5k", -1_500_000, "-1500")]
#[case("1Ki", 1_024_000, "1Ki")]
#[case("1024", 1_024_000, "1024")]
#[case("1024Ki", 1_048_576_000, "1Mi")]
#[case("1.5Gi", 1_610_612_736_000, "1536Mi")]
#[case("0.5Ki", 512_000, "512")]
#[case("1.25Ki", 1_280_000, "1280")]
#[case("0.3Ki", 307_200, "307200m")]
#[case("-2Mi", -2_097_152_000, "-2Mi")]
#[case("16G", 16_000_000_000_000, "16G")]
#[case("1e3", 1_000_000, "1e3")]
#[case("1E3", 1_000_000, "1e3")]
#[case("12e-1", 1_200, "1200e-3")]
#[case("1e0", 1_000, "1")]
#[case("123456789Ki", 126_419_751_936_000, "123456789Ki")]
// Below a thousandth counts as one, away from zero; below a billionth is written as one.
#[case("0.1m", 1, "100u")]
#[case("1u", 1, "1u")]
#[case("-1n", -1, "-1n")]
#[case("0.1n", 1, "1n")]
#[case("1.0000000001", 1_001, "1000000001n")]
#[case("1e-40", 1, "1e-9")]
// More than 64 bits hold is as much as they hold.
#[case("9223372036854775807", i64::MAX, "9223372036854775807")]
#[case("10E", i64::MAX, "9223372036854775807")]
#[case("1e40", i64::MAX, "9223372036854775807")]
#[case("-8Ei", i64::MIN, "-9223372036854775807")]
#[case(
    "99999999999999999999999999999999999999999999999999",
    i64::MAX,
    "9223372036854775807"
)]
fn reads_and_writes(#[case] text: &str, #[case] millis: i64, #[case] written: &str) {
    assert_eq!(parse_millis(text), Ok(millis));
    assert_eq!(canonical(text).as_deref(), Ok(written));
}

#[rstest]
fn refuses(
    #[values(
        "", " ", "-", "+", ".", "1 ", " 1", "1i", "1KI", "1K", "1e", "1e1.5", "1.2.3", "1Kim",
        "Gi", "--1", "1,5", "٣"
    )]
    text: &str,
) {
    assert_eq!(
        parse_millis(text).unwrap_err().to_string(),
        format!("invalid quantity {text:?}")
    );
}

#[rstest]
#[case(1_500, "1500m", "1500m")]
#[case(1_024_000, "1024", "1Ki")]
#[case(16_000_000_000_000, "16G", "15625000Ki")]
#[case(1_024_500, "1024500m", "1024500m")]
fn writes_millis(#[case] millis: i64, #[case] decimal: &str, #[case] binary: &str) {
    assert_eq!(format_millis(millis), decimal);
    assert_eq!(format_millis_binary(millis), binary);
}

proptest! {
    #[test]
    fn written_millis_read_back(millis: i64) {
        for format in [Format::DecimalSi, Format::BinarySi, Format::DecimalExponent] {
            let text = ParsedQuantity::from_millis(millis, format).to_string();
            prop_assert_eq!(parse_millis(&text), Ok(millis), "{}", text);
            prop_assert_eq!(canonical(&text), Ok(text));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+]?[0-9]{0,25}[.]?[0-9]{0,25}(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?[0-9]{1,12})?") {
        if let Ok(written) = canonical(&text) {
            prop_assert_eq!(canonical(&written), Ok(written));
        }
    }
}
