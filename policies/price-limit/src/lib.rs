//! A ranking policy: what a node, a CPU, a NodePool and the cluster may cost.
//!
//! `{"perNode": 4, "perCpu": 0.06, "spotOfOnDemand": 0.7, "perPool": {"batch": 50}, "perCluster": 400}`, in USD an hour
//! by list price: what is dearer is never bought. Limits of NodePools and of the cluster count all their nodes, those on
//! their way included; one that is reached lets nothing more be bought, and nodes that run are left alone.

use guest_sdk::{
    CapacityType, Offering, Policy, PolicyError, RankCall, RankPolicy, RankRound, Ranking,
    Rankings, Settings, UsageRow, decimal,
};

/// No limit.
const OFF: f64 = 1e9;

/// Leaves out what is too dear.
#[derive(Debug)]
pub struct PriceLimit {
    per_node: f64,
    per_cpu: f64,
    spot_of_on_demand: f64,
    per_pool: Vec<(String, f64)>,
    per_cluster: f64,
}

impl Policy for PriceLimit {
    const NAME: &'static str = "price-limit";
    const SUMMARY: &'static str =
        "leaves out what costs more than a node, a pool or the cluster may";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"perNode":{"type":"number","minimum":0,"maximum":1000000000,"description":"USD an hour of one node"},"perCpu":{"type":"number","minimum":0,"maximum":1000000000,"description":"USD an hour of one CPU"},"spotOfOnDemand":{"type":"number","minimum":0,"maximum":1000000000,"description":"price of spot as a share of the price on demand, where that is known"},"perPool":{"type":"object","additionalProperties":{"type":"number","minimum":0,"maximum":1000000000},"description":"USD an hour of all nodes of NodePools, by name"},"perCluster":{"type":"number","minimum":0,"maximum":1000000000,"description":"USD an hour of all nodes"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        let mut limit = |key| settings.number(key, OFF, 0.0..=OFF);
        Self {
            per_node: limit("perNode"),
            per_cpu: limit("perCpu"),
            spot_of_on_demand: limit("spotOfOnDemand"),
            per_cluster: limit("perCluster"),
            per_pool: settings.numbers("perPool", 0.0..=OFF),
        }
    }
}

impl RankPolicy for PriceLimit {
    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        offering.prior()
    }

    fn rank(&self, call: &RankCall<'_>) -> Result<Rankings, PolicyError> {
        let running = running(call.usage.iter());
        let rankings = call.rounds().map(|round| self.ranking(&round, running));
        Ok(Rankings::of(rankings.collect()))
    }
}

/// USD an hour of all nodes.
fn running<'a>(rows: impl Iterator<Item = UsageRow<'a>>) -> f64 {
    rows.map(|row| f64::from(row.nodes()) * row.price()).sum()
}

impl PriceLimit {
    fn ranking(&self, round: &RankRound<'_>, running_in_cluster: f64) -> Ranking {
        let own = self.per_pool.iter();
        let mut own = own.filter(|(pool, _)| pool == round.node_pool());
        let left_in_pool = own.next().map_or(OFF, |(_, limit)| {
            limit - running(round.usage.of_pool(round.node_pool()))
        });
        let left = [
            (left_in_pool, "the NodePool may cost an hour"),
            (
                self.per_cluster - running_in_cluster,
                "the cluster may cost an hour",
            ),
        ];
        let mut ranking = round.claim.ranked_by(&round.offerings.prior);
        for (position, offering) in (0_u32..).zip(round.candidates()) {
            let reached = left.iter().find(|(left, _)| offering.price() > *left);
            if let Some((_, what)) = reached {
                ranking.exclude(
                    position,
                    ["it is more than is left of what ", what].concat(),
                );
            } else if let Some(reason) = self.too_dear(&offering) {
                ranking.exclude(position, reason);
            }
        }
        ranking
    }

    fn too_dear(&self, offering: &Offering<'_>) -> Option<String> {
        let over = |value: f64, limit: f64, what: &str| {
            let reason = || ["it costs more than ", &decimal(limit, 6), what].concat();
            (value > limit).then(reason)
        };
        let cpus = f64::from(offering.cpu_milli()) / 1000.0;
        let price = offering.price();
        let is_spot = offering.capacity_type() == CapacityType::Spot;
        over(price, self.per_node, " USD an hour")
            .or_else(|| over(price, self.per_cpu * cpus, " USD an hour for its CPUs"))
            .or_else(|| {
                // Where it is not known there is nothing to compare with.
                let on_demand = Some(offering.on_demand_price()).filter(|it| is_spot && *it > 0.0);
                let limit = self.spot_of_on_demand;
                over(price / on_demand?, limit, " of the price on demand")
            })
    }
}

guest_sdk::export_policy!(rank: PriceLimit);

#[cfg(test)]
mod tests;
