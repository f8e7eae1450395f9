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
        self.cost_among(offering, &zones(round.offerings))
    }

    fn rank(
        &self,
        _context: &Context,
        offerings: &Offerings,
        claims: &[Claim],
    ) -> Result<Vec<Ranking>, PolicyError> {
        // Counted once a round, not once a row.
        let zones = zones(offerings);
        let costs: Vec<f64> = (0..offerings.rows())
            .map(|row| self.cost_among(&offerings.offering(row), &zones))
            .collect();
        Ok(claims.iter().map(|claim| claim.ranked_by(&costs)).collect())
    }
}

impl ZoneBalance {
    fn cost_among(&self, offering: &Offering<'_>, zones: &[(&str, f64)]) -> f64 {
        let total: f64 = zones.iter().map(|(_, nodes)| nodes).sum();
        let own = zones.iter().find(|(zone, _)| *zone == offering.zone());
        let nodes = own.map_or(0.0, |(_, nodes)| *nodes);
        if total <= 0.0 {
            return offering.prior();
        }
        let excess = (nodes * zones.len() as f64 / total - 1.0).max(0.0);
        offering.prior() * (1.0 + self.weight * excess)
    }
}

/// The zones of the table and the nodes in each.
fn zones(offerings: &Offerings) -> Vec<(&str, f64)> {
    let mut zones: Vec<(&str, f64)> = Vec::new();
    for row in 0..offerings.rows() {
        let offering = offerings.offering(row);
        let nodes = f64::from(offering.in_use());
        match zones.iter_mut().find(|(zone, _)| *zone == offering.zone()) {
            Some((_, known)) => *known += nodes,
            None => zones.push((offering.zone(), nodes)),
        }
    }
    zones
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
