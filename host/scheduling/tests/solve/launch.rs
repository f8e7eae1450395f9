//! The ranking of a launch: what a policy's preference may cost, and what it does.

use std::collections::BTreeMap;

use apis::{NodeClaim, labels};
use jiff::Timestamp;
use scheduling::ranking::{
    FactsByOwner, LaunchRanking, PremiumMax, PriceRank, RankAnswer, RankHook, RankRound,
    RankedLaunch, rank_for_launch,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// Gives a type away.
struct Prefers(&'static str);

impl RankHook for Prefers {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let mut answer = PriceRank.rank(round);
        for (claim, ranking) in round.claims.iter().zip(&mut answer.rankings) {
            for (row, score) in claim.candidates.iter().zip(&mut ranking.scores) {
                let symbol = round.table.instance_type[*row as usize];
                if round.table.symbols[symbol as usize] == self.0 {
                    *score = 0.001;
                }
            }
        }
        answer
    }
}

/// The launch of a claim that may be a small type or a large one, which the policy prefers.
fn ranked(min_values: Value) -> RankedLaunch {
    let cluster = Cluster::new();
    let node_claim: NodeClaim = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "a"},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [
                {"key": labels::INSTANCE_TYPE, "operator": "In", "values": ["c5.large", "c5.8xlarge"],
                    "minValues": min_values},
                {"key": labels::CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}]},
    }))
    .unwrap();
    let launch = LaunchRanking {
        node_claim: &node_claim,
        node_pool: &cluster.problem.pools[0].node_pool,
        instance_types: &cluster.types,
        pods: &[],
        owners: &FactsByOwner::new(),
        usage: &BTreeMap::new(),
        free_addresses: &BTreeMap::new(),
        now: Timestamp::UNIX_EPOCH,
        cluster: "test",
        seed: 0,
        premium_max: PremiumMax::default(),
    };
    rank_for_launch(&launch, &Prefers("c5.8xlarge"))
}

#[test]
fn the_premium_of_a_launch_is_told_also_where_min_values_keep_what_is_dear() {
    // 0.08 and 1.28 USD an hour, in three zones each.
    for (min_values, offerings, dropped, premium) in
        [(json!(null), 3, Some(3), 0.0), (json!(2), 6, None, 1.2)]
    {
        let ranked = ranked(min_values.clone());
        assert_eq!(ranked.offerings.len(), offerings, "{min_values}");
        let above = ranked.above_premium.map(|it| it.offerings);
        assert_eq!(above, dropped, "{min_values}");
        let told = ranked.premium_per_hour;
        assert!((told - premium).abs() < 1e-9, "{min_values}: {told}");
        let differs = dropped.is_none();
        assert_eq!(ranked.best_differs_from_list_price, differs, "{min_values}");
        assert_eq!(ranked.order_differs_from_price, differs, "{min_values}");
    }
}
