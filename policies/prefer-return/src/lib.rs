//! A ranking policy: back to the preferred offering once it has rested.
//!
//! After an insufficient-capacity answer an offering counts as dearer by `penalty` of its cost, less with
//! every minute and nothing after `restMinutes`: the cheapest is tried again soon, not at once.

use guest_sdk::{Offering, Policy, RankPolicy, RankRound, Settings};

/// Makes what just failed dearer for a while.
#[derive(Debug)]
pub struct PreferReturn {
    penalty: f64,
    rest_seconds: f64,
}

impl Policy for PreferReturn {
    const NAME: &'static str = "prefer-return";
    const SUMMARY: &'static str = "makes what had no capacity dearer, less with every minute";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"penalty":{"type":"number","minimum":0,"maximum":100,"default":1,"description":"share of its cost by which an offering is dearer right after a shortage"},"restMinutes":{"type":"number","minimum":1,"maximum":10000,"default":15}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            penalty: settings.number("penalty", 1.0, 0.0..=100.0),
            rest_seconds: 60.0 * settings.number("restMinutes", 15.0, 1.0..=10_000.0),
        }
    }
}

impl RankPolicy for PreferReturn {
    const LOOKS_AT_CLAIMS: bool = false;

    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        let tired = offering.ice_age_seconds().map_or(0.0, |age| {
            (1.0 - f64::from(age) / self.rest_seconds).max(0.0)
        });
        offering.prior() * (1.0 + self.penalty * tired)
    }
}

guest_sdk::export_policy!(rank: PreferReturn);

#[cfg(test)]
mod tests {
    use super::PreferReturn;
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn the_cheapest_is_tried_again_once_it_has_rested() {
        for (ice_age, winner) in [
            (u32::MAX, "m7i.large"),
            (0, "m7g.large"),
            (600, "m7g.large"),
            (840, "m7i.large"),
            (2000, "m7i.large"),
        ] {
            let rows = [
                OfferingRow {
                    ice_count: 1,
                    ice_age,
                    ..OfferingRow::default()
                },
                OfferingRow {
                    instance_type: "m7g.large",
                    price: 0.12,
                    ..OfferingRow::default()
                },
            ];
            let policy = Harness::<PreferReturn>::new("").unwrap();
            assert_eq!(policy.cheapest(&rows), winner, "{ice_age}");
        }
    }
}
