//! In which order nodes would best lose their pods, told to ReplicaSets as `pod-deletion-cost`: a scale-down then
//! empties the node that is wanted back first.
//!
//! Ranks only; the shell writes. Answers to Karpenter's `pkg/controllers/pod/deletioncost`.

use std::collections::BTreeMap;

use apis::labels;
use hooks::disruption::BudgetReason;
use scheduling::pod::{Pod, PodKey};
use state::{Snapshot, StateNode};

use crate::budgets::Budgets;
use crate::candidate::{Candidate, Candidates};

/// Pods in this namespace pin no node.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// Which pods a scale-down takes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeletionCost {
    /// The node goes anyway, so that its pods are the first to lose and cannot wait for the next pass.
    Going,
    /// Negative: the lower, the sooner.
    Rank(i32),
    Unset,
}

/// Deletion cost that the pods of a node are to carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCost {
    /// Name of the Node.
    pub node: String,
    /// Its NodePool; empty without one.
    pub pool: String,
    pub cost: DeletionCost,
    /// The pods that a ReplicaSet controls.
    pub pods: Vec<PodKey>,
}

impl DeletionCost {
    /// The annotation's value; `None` for no annotation.
    pub fn annotation(self) -> Option<String> {
        match self {
            Self::Going => Some(i32::MIN.to_string()),
            Self::Rank(rank) => Some(rank.to_string()),
            Self::Unset => None,
        }
    }
}

/// Every managed node, those that go first in front, those that are kept last.
pub fn rank(snapshot: &Snapshot, found: &Candidates, budgets: &Budgets) -> Vec<NodeCost> {
    let mut left = budgets.remaining.clone();
    let mut all: Vec<&Candidate> = found.candidates.iter().collect();
    all.sort_by(|a, b| {
        // Before those whose price nobody knows.
        let ratio = |it: &Candidate| Some(it.price_per_hour? / it.reschedule_cost);
        let by_ratio = match (ratio(a), ratio(b)) {
            (Some(of_a), Some(of_b)) => of_b.total_cmp(&of_a),
            (of_a, of_b) => of_b.is_some().cmp(&of_a.is_some()),
        };
        by_ratio.then_with(|| a.name().cmp(b.name()))
    });
    let is_wanted = |it: &&Candidate| is_rankable(snapshot, it);
    let is_drifted = |it: &Candidate| it.drifted_at().is_some() && !it.node_pool.is_static();
    let mut within = |it: &Candidate, reason| left.take(it.pool(), reason);
    let drifted: Vec<&Candidate> = all
        .iter()
        .copied()
        .filter(is_wanted)
        .filter(|it| is_drifted(it) && within(it, BudgetReason::Drifted))
        .collect();
    let normal: Vec<&Candidate> = all
        .iter()
        .copied()
        .filter(is_wanted)
        .filter(|it| {
            let after = &it.node_pool.spec.disruption.consolidate_after;
            !is_drifted(it) && !after.is_never() && within(it, BudgetReason::Underutilized)
        })
        .collect();
    let ranked: Vec<&Candidate> = drifted.into_iter().chain(normal).collect();
    let count = i32::try_from(ranked.len()).unwrap_or(i32::MAX);
    let ranks: BTreeMap<&str, i32> = ranked.iter().map(|it| it.name()).zip(-count..).collect();
    let cost_of = |node: &StateNode| {
        if is_going(node) {
            return DeletionCost::Going;
        }
        let rank = node.node_name().and_then(|it| ranks.get(it));
        rank.map_or(DeletionCost::Unset, |it| DeletionCost::Rank(*it))
    };
    let mut costs: Vec<NodeCost> = snapshot
        .nodes()
        .filter(|node| node.is_managed())
        .filter_map(|node| {
            Some(NodeCost {
                node: node.node_name()?.to_owned(),
                pool: node.node_pool().unwrap_or_default().to_owned(),
                cost: cost_of(node),
                pods: written_pods(snapshot, node),
            })
        })
        .collect();
    costs.sort_by(|a, b| (a.cost, &a.node).cmp(&(b.cost, &b.node)));
    costs
}

fn is_going(node: &StateNode) -> bool {
    let taints = node.node().into_iter().flat_map(|it| &it.taints);
    node.is_marked_for_deletion()
        || taints
            .into_iter()
            .any(|it| it.key == labels::DISRUPTED_TAINT_KEY)
}

fn is_rankable(snapshot: &Snapshot, candidate: &Candidate) -> bool {
    let pins = |pod: &Pod| {
        let owner = pod.shape.owner.as_ref().map(|it| it.kind.as_str());
        pod.key.namespace != SYSTEM_NAMESPACE
            && !matches!(owner, Some("ReplicaSet" | "Job" | "DaemonSet"))
    };
    let bound = snapshot.bound(&candidate.node);
    !is_going(&candidate.node)
        && candidate.pod_block.is_none()
        && candidate.instance_type.is_some()
        && !bound.pods().any(|pod| pod.is_active() && pins(pod))
}

fn written_pods(snapshot: &Snapshot, node: &StateNode) -> Vec<PodKey> {
    let is_replicas = |pod: &Pod| {
        let owner = pod.shape.owner.as_ref();
        owner.is_some_and(|it| it.kind == "ReplicaSet" && it.api_version == "apps/v1")
    };
    let bound = snapshot.bound(node);
    let pods = bound.pods().filter(|pod| is_replicas(pod));
    pods.map(|pod| pod.key.clone()).collect()
}
