//! A bound on the premium is a share, or off.

use super::PremiumMax;

#[test]
fn a_bound_is_a_share_or_off() {
    for (text, expected, most) in [
        ("100%", Some("100%"), 2.0),
        (" 12.5 % ", Some("12.5%"), 1.125),
        ("0%", Some("0%"), 1.0),
        ("off", Some("off"), f64::INFINITY),
        ("1.0", None, 0.0),
        ("-5%", None, 0.0),
        ("NaN%", None, 0.0),
        ("", None, 0.0),
    ] {
        let bound = text.parse::<PremiumMax>().ok();
        assert_eq!(
            bound.map(|it| it.to_string()).as_deref(),
            expected,
            "{text}"
        );
        if let Some(bound) = bound {
            let found = bound.most(1.0);
            assert!(
                found.total_cmp(&most).is_eq() || (found - most).abs() < 1e-6,
                "{text}: {found}"
            );
        }
    }
}
