//! A ranking policy: price for the performance, family by family.
//!
//! `{"performance": {"m7i": 1.15, "m7g": 1.25}}` says how fast a family is next to the others (1 where
//! nothing is said). An offering counts at its cost divided by that.

use guest_sdk::{Offering, Policy, RankPolicy, RankRound, Settings};

/// Nothing is slower: no performance would make every price infinite.
const SLOWEST: f64 = 0.001;
const FASTEST: f64 = 1000.0;

/// Divides the cost by the performance of the family.
#[derive(Debug)]
pub struct PerfPrice {
    performance: Vec<(String, f64)>,
}

impl Policy for PerfPrice {
    const NAME: &'static str = "perf-price";
    const SUMMARY: &'static str = "price for the performance of the family";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"performance":{"type":"object","additionalProperties":{"type":"number","minimum":0.001,"maximum":1000},"description":"performance of an instance family, 1 where none is given"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            performance: settings.numbers("performance", SLOWEST..=FASTEST),
        }
    }
}

impl RankPolicy for PerfPrice {
    const LOOKS_AT_CLAIMS: bool = false;

    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        let mut performance = self.performance.iter();
        let known = performance.find(|(family, _)| family == offering.family());
        offering.prior() / known.map_or(1.0, |(_, performance)| *performance)
    }
}

guest_sdk::export_policy!(rank: PerfPrice);

#[cfg(test)]
mod tests {
    use super::PerfPrice;
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn a_faster_family_may_cost_as_much_more() {
        let rows = [("m7i.large", 0.100), ("m7g.large", 0.110)].map(|(instance_type, price)| {
            OfferingRow {
                instance_type,
                price,
                ..OfferingRow::default()
            }
        });
        for (config, winner) in [
            ("", "m7i.large"),
            (r#"{"performance": {"m7g": 1.05}}"#, "m7i.large"),
            (r#"{"performance": {"m7g": 1.2}}"#, "m7g.large"),
            (r#"{"performance": {"m7g": 1.2, "m7i": 1.2}}"#, "m7i.large"),
        ] {
            let policy = Harness::<PerfPrice>::new(config).unwrap();
            assert_eq!(policy.cheapest(&rows), winner, "{config}");
        }
    }

    #[test]
    fn no_performance_is_no_performance() {
        for (config, path) in [
            (r#"{"performance": {"m7g": 0}}"#, "/performance/m7g"),
            (r#"{"performance": 2}"#, "/performance"),
        ] {
            let issues = Harness::<PerfPrice>::new(config).unwrap_err();
            assert_eq!(issues[0].path, path);
        }
    }
}
