//! Which nodes of a static pool go when it has more of them than replicas.
//!
//! No budget holds here and nothing is simulated: the user said how many there are to be. Answers to Karpenter's
//! `pkg/controllers/static/deprovisioning`.

use std::cmp::Ordering;

use apis::labels;
use jiff::Timestamp;
use state::Snapshot;

use crate::candidate::lifetime_remaining;

/// How much it would hurt to lose a node, least first.
#[derive(Debug)]
struct RemovalCost {
    /// It has an instance.
    is_launched: bool,
    /// It runs more than daemons.
    is_used: bool,
    /// It or a pod on it asks not to be disrupted.
    is_protected: bool,
    disruption_cost: f64,
}

impl RemovalCost {
    fn compare(&self, other: &Self) -> Ordering {
        let yes_or_no = |it: &Self| (it.is_launched, it.is_used, it.is_protected);
        let by_cost = || self.disruption_cost.total_cmp(&other.disruption_cost);
        yes_or_no(self).cmp(&yes_or_no(other)).then_with(by_cost)
    }
}

/// So many of the claims as are to go, those first that hurt least.
pub fn pick(snapshot: &Snapshot, claims: &[String], count: usize, now: Timestamp) -> Vec<String> {
    let mut all: Vec<(RemovalCost, &String)> = claims
        .iter()
        .map(|claim| (removal_cost(snapshot, claim, now), claim))
        .collect();
    all.sort_by(|a, b| a.0.compare(&b.0).then_with(|| a.1.cmp(b.1)));
    let picked = all.into_iter().take(count);
    picked.map(|(_, claim)| claim.clone()).collect()
}

fn removal_cost(snapshot: &Snapshot, claim: &str, now: Timestamp) -> RemovalCost {
    let Some(node) = snapshot.node_of_claim(claim) else {
        return RemovalCost {
            is_launched: false,
            is_used: false,
            is_protected: false,
            disruption_cost: 0.0,
        };
    };
    let bound = snapshot.bound(node);
    let protected = bound
        .pods()
        .any(|pod| pod.is_active() && pod.is_protected(now));
    let is_kept = labels::has_do_not_disrupt(node.annotations());
    let costs: f64 = bound.pods().map(|pod| pod.eviction_cost()).sum();
    RemovalCost {
        is_launched: node.provider_id().is_some(),
        is_used: protected || bound.pods().any(|pod| !pod.is_owned_by_daemon_set()),
        is_protected: protected || is_kept,
        disruption_cost: costs * lifetime_remaining(node, now),
    }
}
