//! A ranking policy: what an interruption costs is part of the price of spot.
//!
//! Adds the expected interruptions of an hour times `interruptionCost` (USD), and a share of the cost for
//! recent insufficient-capacity answers, which halves every `halfLifeMinutes`. Interruptions are those of the
//! cluster's own past or of the binding's `interruption-rates`; where none are known, `unknownRate` stands for them, so
//! that the policy is at home on clouds that tell nothing.

use guest_sdk::{CapacityType, Offering, Policy, RankPolicy, RankRound, Settings};

const HOURS_A_MONTH: f64 = 720.0;

/// Adds the risk to the price of spot.
#[derive(Debug)]
pub struct SpotRisk {
    interruption_cost: f64,
    unknown_rate: f64,
    shortage_weight: f64,
    half_life_seconds: f64,
}

impl Policy for SpotRisk {
    const NAME: &'static str = "spot-risk";
    const SUMMARY: &'static str = "adds the expected cost of interruptions to spot";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"interruptionCost":{"type":"number","minimum":0,"maximum":1000,"default":1,"description":"USD that an interruption costs"},"unknownRate":{"type":"number","minimum":0,"maximum":1000,"default":0.1,"description":"interruptions in 30 days where none are known"},"shortageWeight":{"type":"number","minimum":0,"maximum":10,"default":0.1},"halfLifeMinutes":{"type":"number","minimum":1,"maximum":10000,"default":30}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            interruption_cost: settings.number("interruptionCost", 1.0, 0.0..=1000.0),
            unknown_rate: settings.number("unknownRate", 0.1, 0.0..=1000.0),
            shortage_weight: settings.number("shortageWeight", 0.1, 0.0..=10.0),
            half_life_seconds: 60.0 * settings.number("halfLifeMinutes", 30.0, 1.0..=10_000.0),
        }
    }
}

impl RankPolicy for SpotRisk {
    const LOOKS_AT_CLAIMS: bool = false;

    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        if offering.capacity_type() != CapacityType::Spot {
            return offering.prior();
        }
        let rate = offering.interruption_rate().unwrap_or(self.unknown_rate);
        let shortage = offering.ice_age_seconds().map_or(0.0, |age| {
            f64::from(offering.ice_count()) * halved(f64::from(age) / self.half_life_seconds)
        });
        offering.prior() * (1.0 + self.shortage_weight * shortage)
            + rate / HOURS_A_MONTH * self.interruption_cost
    }
}

/// A half to the power of `halvings`, straight between whole ones: a library's power function would
/// differ in the last bit from one platform to the next.
fn halved(halvings: f64) -> f64 {
    let whole = halvings.floor();
    if whole >= 60.0 {
        return 0.0;
    }
    let mut left = 1.0;
    let mut step = 0.0;
    while step < whole {
        left /= 2.0;
        step += 1.0;
    }
    left * (1.0 - (halvings - whole) / 2.0)
}

guest_sdk::export_policy!(rank: SpotRisk);

#[cfg(test)]
mod tests {
    use super::{SpotRisk, halved};
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn a_pool_that_is_often_interrupted_loses_its_bargain() {
        let spot = |instance_type, interruption_rate, ice_count, ice_age| OfferingRow {
            instance_type,
            capacity_type: 1,
            price: 0.05,
            interruption_rate,
            ice_count,
            ice_age,
            ..OfferingRow::default()
        };
        let on_demand = OfferingRow {
            price: 0.06,
            ..OfferingRow::default()
        };
        for (row, winner) in [
            (spot("m7a.large", 0.0, 0, u32::MAX), "m7a.large"),
            (spot("m7a.large", 5.0, 0, u32::MAX), "m7a.large"),
            (spot("m7a.large", 10.0, 0, u32::MAX), "m7i.large"),
            (spot("m7a.large", 0.0, 3, 0), "m7i.large"),
            (spot("m7a.large", 0.0, 3, 3600), "m7a.large"),
        ] {
            let policy = Harness::<SpotRisk>::new("").unwrap();
            assert_eq!(policy.cheapest(&[on_demand, row]), winner, "{row:?}");
        }
    }

    #[test]
    fn halves() {
        for (halvings, expected) in [
            (0.0, 1.0),
            (0.5, 0.75),
            (1.0, 0.5),
            (3.0, 0.125),
            (99.0, 0.0),
        ] {
            assert!((halved(halvings) - expected).abs() < 1e-12, "{halvings}");
        }
    }
}
