//! A ranking policy: spreads nodes over zones.
//!
//! An offering in a zone that has more than its share of the nodes counts as dearer: at twice the share by
//! `weight` (0.1: a tenth), at three times by twice that, so that balance is bought up to a price.

use guest_sdk::{
    Claim, Context, Offering, Offerings, Policy, PolicyError, RankPolicy, RankRound, Ranking,
    Settings,
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
        offering.prior() * factor_of(&self.factors(round.offerings), zone)
    }

    fn rank(
        &self,
        _context: &Context,
        offerings: &Offerings,
        claims: &[Claim],
    ) -> Result<Vec<Ranking>, PolicyError> {
        // Counted once a round, not once a row.
        let factors = self.factors(offerings);
        let rows = offerings.prior.iter().zip(&offerings.zone);
        let costs: Vec<f64> = rows
            .map(|(prior, zone)| prior * factor_of(&factors, Some(zone)))
            .collect();
        Ok(claims.iter().map(|claim| claim.ranked_by(&costs)).collect())
    }
}

fn factor_of(factors: &[(u32, f64)], zone: Option<&u32>) -> f64 {
    let own = factors.iter().find(|(known, _)| Some(known) == zone);
    own.map_or(1.0, |(_, factor)| *factor)
}

impl ZoneBalance {
    /// What the zones of the table, by symbol, make of a cost.
    fn factors(&self, offerings: &Offerings) -> Vec<(u32, f64)> {
        let mut zones: Vec<(u32, f64)> = Vec::new();
        for (&zone, &nodes) in offerings.zone.iter().zip(&offerings.in_use) {
            match zones.iter_mut().find(|(known, _)| *known == zone) {
                Some((_, sum)) => *sum += f64::from(nodes),
                None => zones.push((zone, f64::from(nodes))),
            }
        }
        let total: f64 = zones.iter().map(|(_, nodes)| nodes).sum();
        let count = zones.len() as f64;
        for (_, nodes) in &mut zones {
            let share = if total > 0.0 {
                *nodes * count / total
            } else {
                1.0
            };
            *nodes = 1.0 + self.weight * (share - 1.0).max(0.0);
        }
        zones
    }
}

guest_sdk::export_policy!(rank: ZoneBalance);

#[cfg(test)]
mod tests {
    use super::ZoneBalance;
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn a_crowded_zone_is_left_for_an_emptier_one_up_to_a_price() {
        for (in_use, price_elsewhere, expected) in [
            ((0, 0), 0.101, "a.large"),
            ((4, 4), 0.101, "a.large"),
            ((8, 0), 0.109, "b.large"),
            ((8, 0), 0.112, "a.large"),
        ] {
            let row = |instance_type, zone, price, in_use| OfferingRow {
                instance_type,
                zone,
                price,
                in_use,
                ..OfferingRow::default()
            };
            let rows = [
                row("a.large", "us-east-1a", 0.1, in_use.0),
                row("b.large", "us-east-1b", price_elsewhere, in_use.1),
            ];
            let policy = Harness::<ZoneBalance>::new("").unwrap();
            assert_eq!(
                policy.cheapest(&rows),
                expected,
                "{in_use:?} {price_elsewhere}"
            );
        }
    }
}
