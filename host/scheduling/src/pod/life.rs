//! Rules of a pod's own life: whether it moves and drains, what evicting it costs.
//!
//! Time is an argument. Whether it is protected is in `protection.rs`. Answers to Karpenter's
//! `pkg/utils/pod/scheduling.go` and `pkg/utils/disruption`.

use std::collections::BTreeMap;

use apis::labels;
use jiff::Timestamp;

use super::{Pod, PodPhase};
use crate::taints;

/// A terminating pod is given up this long after its deletion timestamp.
const STUCK_TERMINATING_SECONDS: i64 = 60;

impl Pod {
    /// Neither finished nor going.
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && !self.is_terminating()
    }

    /// Belongs to its node rather than to a workload that could move.
    pub fn is_daemon_or_mirror(&self) -> bool {
        self.is_owned_by_daemon_set() || self.is_owned_by_node()
    }

    /// Would need another node if its own went.
    pub fn is_reschedulable(&self) -> bool {
        // A StatefulSet starts the successor only once the pod is gone, so its room is needed meanwhile.
        let has_successor = self.is_terminating() && self.is_owned_by("apps/v1", "StatefulSet");
        (self.is_active() || (has_successor && !self.is_terminal())) && !self.is_daemon_or_mirror()
    }

    /// Still there more than a minute after it should have gone; nobody waits for it.
    fn is_stuck_terminating(&self, now: Timestamp) -> bool {
        self.deletion_timestamp
            .is_some_and(|at| now.duration_since(at).as_secs() > STUCK_TERMINATING_SECONDS)
    }

    /// Tolerates the taint of disrupted nodes, so a drain leaves it alone.
    fn tolerates_disrupted(&self) -> bool {
        !self.shape.tolerations.is_empty()
            && taints::untolerated(&[labels::disrupted_taint()], &self.shape.tolerations).is_none()
    }

    /// A drain is about it at all.
    pub fn is_drainable(&self, now: Timestamp) -> bool {
        !self.tolerates_disrupted() && !self.is_owned_by_node() && !self.is_stuck_terminating(now)
    }

    /// A drain waits for it to go.
    pub fn is_waited_for(&self, now: Timestamp) -> bool {
        !self.is_terminal() && self.is_drainable(now)
    }

    /// May be asked to leave.
    pub fn is_evictable(&self, now: Timestamp) -> bool {
        self.is_active()
            && !self.tolerates_disrupted()
            && !self.is_owned_by_node()
            && !self.is_protected(now)
    }

    /// Belongs to one of the system's two priority classes.
    pub fn is_critical(&self) -> bool {
        matches!(
            self.shape.priority_class_name.as_deref(),
            Some("system-cluster-critical" | "system-node-critical")
        )
    }

    /// Cost of evicting it, between -10 and 10.
    pub fn eviction_cost(&self) -> f64 {
        eviction_cost(self.shape.annotated_cost, self.shape.priority)
    }

    /// In the phase Pending: it has no node yet, or not all of its containers have started.
    pub fn is_pending(&self) -> bool {
        self.phase == PodPhase::Pending
    }
}

/// Karpenter 1.15: its own annotation wins over Kubernetes' deletion cost, and a bad value adds nothing.
pub(super) fn annotated_cost(annotations: &BTreeMap<String, String>) -> i32 {
    let own = annotations.get(labels::DISRUPTION_COST_ANNOTATION);
    let cost = own.or_else(|| annotations.get(labels::POD_DELETION_COST_ANNOTATION));
    cost.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn eviction_cost(annotated: i32, priority: i32) -> f64 {
    const COST_SCALE: f64 = 134_217_728.0; // 2^27
    const PRIORITY_SCALE: f64 = 33_554_432.0; // 2^25
    let cost = 1.0 + f64::from(annotated) / COST_SCALE + f64::from(priority) / PRIORITY_SCALE;
    cost.clamp(-10.0, 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_costs_follow_annotations_and_priority() {
        for (own, deletion, priority, expected) in [
            (None, None, 0, 1.0),
            (None, None, 2_000_000_000, 10.0),
            (None, Some("2147483647"), 0, 10.0),
            (None, Some("-2147483647"), 0, -10.0),
            (None, None, -33_554_432, 0.0),
            (None, Some("1.5"), 0, 1.0),
            (Some("134217728"), Some("-134217728"), 0, 2.0),
            (Some("many"), Some("134217728"), 0, 1.0),
        ] {
            let annotations = [
                (labels::DISRUPTION_COST_ANNOTATION, own),
                (labels::POD_DELETION_COST_ANNOTATION, deletion),
            ];
            let given = annotations.into_iter();
            let given = given.filter_map(|(key, it)| Some((key.to_owned(), it?.to_owned())));
            let cost = eviction_cost(annotated_cost(&given.collect()), priority);
            assert!(
                (cost - expected).abs() < 1e-6,
                "{own:?} {deletion:?} {priority:?}: {cost}"
            );
        }
    }
}
