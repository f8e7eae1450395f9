//! Scores of one node for one shape: LeastAllocated, preferred node affinity, PreferNoSchedule taints.
//!
//! Never writes, and looks at no other node.

use scheduling::play::scores::{FitStrategy, ResourceUse};

use super::filter::matches_term;
use crate::cluster::node::NodeRecord;
use crate::cluster::shape::SchedulingShape;

/// Higher is better; each plugin gives up to 100 times its weight, as in kube-scheduler's defaults.
pub(super) fn score(shape: &SchedulingShape, node: &NodeRecord) -> i64 {
    let (free, all, want) = (&node.free, &node.allocatable, &shape.requests);
    let with_pod = |free: i64, want: i64, allocatable: i64| ResourceUse {
        asked: allocatable - free + want,
        allocatable,
        weight: 1,
    };
    let uses = [
        with_pod(free.cpu, want.cpu, all.cpu),
        with_pod(free.memory, want.memory, all.memory),
    ];
    let least_allocated = FitStrategy::LeastAllocated.score(uses.into_iter());
    let preferred: i64 = shape
        .preferred_node_affinity
        .iter()
        .filter(|term| matches_term(&term.preference, node))
        .map(|term| i64::from(term.weight))
        .sum();
    let shunned = node
        .untolerated(&shape.tolerations, &["PreferNoSchedule"])
        .is_some();
    least_allocated + 2 * preferred.min(100) + if shunned { 0 } else { 300 }
}
