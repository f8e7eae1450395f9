//! The built-in ranking policy: an offering costs what it costs.
//!
//! The host breaks ties (newer generation, then name), so nothing here may try to.

use guest_sdk::{
    Offering, Policy, PolicyError, RankCall, RankPolicy, RankRound, Rankings, Settings,
};

/// The price, or what an earlier policy of the chain made of it.
#[derive(Debug)]
pub struct DefaultRank;

impl Policy for DefaultRank {
    const NAME: &'static str = "default-rank";
    const SUMMARY: &'static str = "the price";

    fn configure(_settings: &mut Settings) -> Self {
        Self
    }
}

impl RankPolicy for DefaultRank {
    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        offering.prior()
    }

    // The same for all rows at once: this runs before every solve.
    fn rank(&self, call: &RankCall<'_>) -> Result<Rankings, PolicyError> {
        Ok(call.ranked_by(&call.offerings.prior))
    }
}

guest_sdk::export_policy!(rank: DefaultRank);

#[cfg(test)]
mod tests {
    use super::DefaultRank;
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn the_score_is_the_price() {
        let rows = [0.3, 0.1, 0.2].map(|price| OfferingRow {
            price,
            ..OfferingRow::default()
        });
        let policy = Harness::<DefaultRank>::new("").unwrap();
        assert_eq!(policy.scores(&rows), [0.3, 0.1, 0.2]);
    }
}
