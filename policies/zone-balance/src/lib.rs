//! A ranking policy: spreads nodes over zones.
//!
//! An offering in a zone that has more than its share of the nodes counts as dearer: at twice the share by
//! `weight` (0.1: a tenth), at three times by twice that, so that balance is bought up to a price.

use guest_sdk::{
    Offering, Offerings, Policy, PolicyError, RankCall, RankPolicy, RankRound, Rankings, Settings,
    UsageView,
};

/// Makes crowded zones dearer.
#[derive(Debug)]
pub struct ZoneBalance {
    weight: f64,
}

impl Policy for ZoneBalance {
    const NAME: &'static str = "zone-balance";
    const SUMMARY: &'static str = "makes zones with more than their share of nodes dearer";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"weight":{"type":"number","minimum":0,"maximum":10,"default":0.1,"description":"by how much of its cost an offering is dearer in a zone with twice its share"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            weight: settings.number("weight", 0.1, 0.0..=10.0),
        }
    }
}

impl RankPolicy for ZoneBalance {
    fn cost(&self, offering: &Offering<'_>, round: &RankRound<'_>) -> f64 {
        let zone = round.offerings.zone.get(offering.row() as usize);
        offering.prior() * factor_of(&self.factors(round.offerings, &round.usage), zone)
    }

    fn rank(&self, call: &RankCall<'_>) -> Result<Rankings, PolicyError> {
        // Counted once a round, not once a row.
        let offerings = call.offerings;
        let factors = self.factors(offerings, &call.usage);
        let rows = offerings.prior.iter().zip(&offerings.zone);
        let costs: Vec<f64> = rows
            .map(|(prior, zone)| prior * factor_of(&factors, Some(zone)))
            .collect();
        Ok(call.ranked_by(&costs))
    }
}

fn factor_of(factors: &[f64], zone: Option<&u32>) -> f64 {
    let own = zone.and_then(|zone| factors.get(*zone as usize));
    own.copied().unwrap_or(1.0)
}

impl ZoneBalance {
    /// What each symbol makes of a cost, where it is a zone: one that has nodes, or could have some.
    fn factors(&self, offerings: &Offerings, usage: &UsageView<'_>) -> Vec<f64> {
        let mut zones: Vec<Option<f64>> = vec![None; offerings.symbols.len()];
        let offered = offerings.zone.iter().map(|&zone| (zone, 0));
        let used = usage.table.zone.iter().zip(&usage.table.nodes);
        for (zone, nodes) in offered.chain(used.map(|(zone, nodes)| (*zone, *nodes))) {
            if let Some(sum) = zones.get_mut(zone as usize) {
                *sum = Some(sum.unwrap_or(0.0) + f64::from(nodes));
            }
        }
        let total: f64 = zones.iter().flatten().sum();
        let count = zones.iter().flatten().count() as f64;
        let excess = |nodes: f64| (nodes * count / total - 1.0).max(0.0);
        let factor = |nodes: Option<f64>| match nodes {
            Some(nodes) if total > 0.0 => 1.0 + self.weight * excess(nodes),
            _ => 1.0,
        };
        zones.into_iter().map(factor).collect()
    }
}

guest_sdk::export_policy!(rank: ZoneBalance);

#[cfg(test)]
mod tests {
    use super::ZoneBalance;
    use guest_sdk::testing::{Harness, OfferingRow, RankQuestion, UsedRow};

    #[test]
    fn a_crowded_zone_is_left_for_an_emptier_one_up_to_a_price() {
        for (in_use, price_elsewhere, expected) in [
            ((0, 0), 0.101, 0),
            ((4, 4), 0.101, 0),
            ((8, 0), 0.109, 1),
            ((8, 0), 0.112, 0),
        ] {
            let row = |zone, price| OfferingRow {
                zone,
                price,
                ..OfferingRow::default()
            };
            // Of a type that is not on offer.
            let used = |zone, nodes| UsedRow {
                instance_type: "c7g.large",
                zone,
                nodes,
                ..UsedRow::default()
            };
            let policy = Harness::<ZoneBalance>::new("").unwrap();
            let found = policy.first_choice(&RankQuestion {
                offerings: &[row("us-east-1a", 0.1), row("us-east-1b", price_elsewhere)],
                usage: &[used("us-east-1a", in_use.0), used("us-east-1b", in_use.1)],
                ..RankQuestion::default()
            });
            assert_eq!(found, Some(expected), "{in_use:?} {price_elsewhere}");
        }
    }
}
