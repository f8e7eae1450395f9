//! A consolidation policy: only nodes below a utilization are given back, as in Cluster Autoscaler.
//!
//! `{"threshold": 0.5}`: a node whose requested CPU or memory reaches half of what it has is not tried.

use guest_sdk::{ConsolidationPolicy, Context, Node, Policy, ProposedMove, Settings, Verdict};

/// Skips nodes that are used enough.
#[derive(Debug)]
pub struct UtilizationThreshold {
    threshold: f64,
}

impl Policy for UtilizationThreshold {
    const NAME: &'static str = "utilization-threshold";
    const SUMMARY: &'static str = "gives back only nodes below a utilization";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"threshold":{"type":"number","minimum":0,"maximum":1,"default":0.5,"description":"requested share of CPU or memory from which a node is left alone"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            threshold: settings.number("threshold", 0.5, 0.0..=1.0),
        }
    }
}

impl UtilizationThreshold {
    fn is_used_enough(&self, node: &Node<'_>) -> bool {
        let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole.max(1));
        let cpu = share(node.cpu_requested_milli(), node.cpu_milli());
        let memory = share(node.memory_requested_mib(), node.memory_mib());
        cpu.max(memory) >= self.threshold
    }
}

impl ConsolidationPolicy for UtilizationThreshold {
    fn order_key(&self, node: &Node<'_>, _context: &Context) -> f64 {
        // An empty node is not a matter of utilization; daemons may ask for much of it.
        if node.pods() > 0 && self.is_used_enough(node) {
            -1.0
        } else {
            node.disruption_per_price()
        }
    }

    fn verdict(&self, proposed: &ProposedMove<'_>, _context: &Context) -> Verdict {
        if let Some(objection) = proposed.objection() {
            return Verdict::reject(objection);
        }
        if !proposed.is_for_savings() {
            return proposed.approve_as_default();
        }
        if proposed.removed().any(|node| self.is_used_enough(&node)) {
            return Verdict::reject("a node of the move is used enough");
        }
        Verdict::approve(proposed.savings_per_disruption(), "below the threshold")
    }
}

guest_sdk::export_policy!(consolidation: UtilizationThreshold);

#[cfg(test)]
mod tests {
    use super::UtilizationThreshold;
    use guest_sdk::testing::{Harness, NodeRow, proposed};
    use guest_sdk::{Decision, MoveKind};

    #[test]
    fn a_node_that_is_used_enough_is_left_alone() {
        // The harness's nodes are used by a quarter.
        for (config, is_tried) in [
            ("", true),
            (r#"{"threshold": 0.25}"#, false),
            (r#"{"threshold": 0.26}"#, true),
        ] {
            let policy = Harness::<UtilizationThreshold>::new(config).unwrap();
            let rows = [NodeRow::default()];
            assert_eq!(policy.order(&rows).unwrap()[0] >= 0.0, is_tried, "{config}");
            let verdict = policy.judge(&rows, proposed(MoveKind::Delete, &[0], 1.0, 0.0));
            assert_eq!(verdict.decision == Decision::Approve, is_tried, "{config}");
            let drift = policy.judge(&rows, proposed(MoveKind::Drift, &[0], 1.0, 1.0));
            assert_eq!(drift.decision, Decision::Approve);
            assert_eq!(drift.reason, "not a matter of savings");
        }
    }
}
