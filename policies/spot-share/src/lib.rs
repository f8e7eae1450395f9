//! A ranking policy: so many of a NodePool's nodes on spot, the others on demand.
//!
//! `{"share": 0.7, "pools": {"web": 0.5}}`: no spot is bought for a NodePool while one more would be more than that share
//! of its nodes, those on their way included. Nodes that run are left alone: they go as they would, and what comes for
//! them is bought by the share. A NodePool that cannot buy on demand at the moment, or at all, takes spot all the same.

use guest_sdk::{
    CapacityType, Offering, Policy, PolicyError, RankCall, RankPolicy, RankRound, Ranking,
    Rankings, Settings,
};

const REASON: &str = "the NodePool has its share of spot";

/// Leaves spot out where a NodePool has enough of it.
#[derive(Debug)]
pub struct SpotShare {
    share: f64,
    pools: Vec<(String, f64)>,
}

impl Policy for SpotShare {
    const NAME: &'static str = "spot-share";
    const SUMMARY: &'static str = "at most a share of a NodePool's nodes on spot";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"share":{"type":"number","minimum":0,"maximum":1,"default":0.5,"description":"of the nodes of a NodePool that may be spot"},"pools":{"type":"object","additionalProperties":{"type":"number","minimum":0,"maximum":1},"description":"the same for NodePools by name"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            share: settings.number("share", 0.5, 0.0..=1.0),
            pools: settings.numbers("pools", 0.0..=1.0),
        }
    }
}

impl RankPolicy for SpotShare {
    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        offering.prior()
    }

    fn rank(&self, call: &RankCall<'_>) -> Result<Rankings, PolicyError> {
        let rankings = call.rounds().map(|round| self.ranking(&round));
        Ok(Rankings::of(rankings.collect()))
    }
}

impl SpotShare {
    fn ranking(&self, round: &RankRound<'_>) -> Ranking {
        let mut ranking = round.claim.ranked_by(&round.offerings.prior);
        let is_spot = |it: &Offering<'_>| it.capacity_type() == CapacityType::Spot;
        let has_on_demand = round
            .candidates()
            .any(|it| it.capacity_type() == CapacityType::OnDemand);
        if self.takes_more(round) || !has_on_demand {
            return ranking;
        }
        for (position, offering) in (0_u32..).zip(round.candidates()) {
            if is_spot(&offering) {
                ranking.exclude(position, REASON);
            }
        }
        ranking
    }

    /// Whether the NodePool may have a spot node more. The node itself does not count among all nodes, so that it may
    /// as well take the place of one.
    fn takes_more(&self, round: &RankRound<'_>) -> bool {
        let own = self
            .pools
            .iter()
            .find(|(pool, _)| pool == round.node_pool());
        let share = own.map_or(self.share, |(_, share)| *share);
        let (mut nodes, mut spot) = (0.0, 0.0);
        for row in round.usage.of_pool(round.node_pool()) {
            nodes += f64::from(row.nodes());
            if row.capacity_type() == CapacityType::Spot {
                spot += f64::from(row.nodes());
            }
        }
        let after = spot + 1.0;
        after <= share * nodes.max(after)
    }
}

guest_sdk::export_policy!(rank: SpotShare);

#[cfg(test)]
mod tests;
