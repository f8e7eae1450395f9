//! Scores of one node for one shape: LeastAllocated, preferred node affinity, PreferNoSchedule taints.

use super::filter::matches_term;
use crate::cluster::node::NodeRecord;
use crate::cluster::shape::SchedulingShape;

/// Higher is better; each plugin gives up to 100 times its weight, as in kube-scheduler's defaults.
pub(super) fn score(shape: &SchedulingShape, node: &NodeRecord) -> i64 {
    let left = |free: i64, want: i64, all: i64| {
        if all <= 0 {
            0
        } else {
            (free - want).max(0).saturating_mul(100) / all
        }
    };
    let (free, all, want) = (&node.free, &node.allocatable, &shape.requests);
    let cpu = left(free.cpu, want.cpu, all.cpu);
    // Bytes in milli-units times 100 would overflow on the largest machines.
    let memory = left(free.memory / 1_000, want.memory / 1_000, all.memory / 1_000);
    let least_allocated = i64::midpoint(cpu, memory);
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
