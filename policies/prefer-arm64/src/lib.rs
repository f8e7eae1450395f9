//! A ranking policy: arm64 unless it is dearer by more than a discount.
//!
//! `{"discount": 0.2}` counts an arm64 offering at four fifths of its cost, so that it wins until it
//! costs a quarter more than the best amd64 offering.

use guest_sdk::{Offering, Policy, RankPolicy, RankRound, Settings};

/// Lowers the effective cost of arm64.
#[derive(Debug)]
pub struct PreferArm64 {
    factor: f64,
}

impl Policy for PreferArm64 {
    const NAME: &'static str = "prefer-arm64";
    const SUMMARY: &'static str = "arm64 unless it is dearer by more than the discount";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"discount":{"type":"number","minimum":0,"maximum":1,"default":0.2,"description":"share of its cost by which an arm64 offering is favoured"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            factor: 1.0 - settings.number("discount", 0.2, 0.0..=1.0),
        }
    }
}

impl RankPolicy for PreferArm64 {
    const LOOKS_AT_CLAIMS: bool = false;

    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        match offering.arch() {
            "arm64" => offering.prior() * self.factor,
            _ => offering.prior(),
        }
    }
}

guest_sdk::export_policy!(rank: PreferArm64);

#[cfg(test)]
mod tests {
    use super::PreferArm64;
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn arm64_wins_until_it_is_dearer_by_more_than_the_discount() {
        for (config, arm_price, winner) in [
            ("", 0.12, "m7g.large"),
            ("", 0.13, "m7i.large"),
            (r#"{"discount": 0}"#, 0.101, "m7i.large"),
            (r#"{"discount": 0.5}"#, 0.19, "m7g.large"),
        ] {
            let rows = [
                OfferingRow::default(),
                OfferingRow {
                    instance_type: "m7g.large",
                    arch: "arm64",
                    price: arm_price,
                    ..OfferingRow::default()
                },
            ];
            let policy = Harness::<PreferArm64>::new(config).unwrap();
            assert_eq!(policy.cheapest(&rows), winner, "{config} {arm_price}");
        }
    }

    #[test]
    fn a_discount_beyond_the_whole_price_is_refused() {
        let issues = Harness::<PreferArm64>::new(r#"{"discount": 1.5}"#).unwrap_err();
        assert_eq!(issues[0].path, "/discount");
    }
}
