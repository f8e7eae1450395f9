//! A consolidation policy: old nodes first, nodes about to expire not at all.
//!
//! Nodes older than `days` are tried before the others, so that they are renewed where it saves money. A
//! node that expires within `minutes` is left to its expiry instead of being moved twice.

use guest_sdk::{ConsolidationPolicy, Context, Node, Policy, ProposedMove, Settings, Verdict};

const DAY_SECONDS: f64 = 86_400.0;

/// Puts the old before the young.
#[derive(Debug)]
pub struct SoftExpiry {
    old_seconds: f64,
    ending_seconds: f64,
}

impl Policy for SoftExpiry {
    const NAME: &'static str = "soft-expiry";
    const SUMMARY: &'static str = "old nodes first, nodes about to expire not at all";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"days":{"type":"number","minimum":0,"maximum":3650,"default":14},"minutes":{"type":"number","minimum":0,"maximum":100000,"default":60}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            old_seconds: DAY_SECONDS * settings.number("days", 14.0, 0.0..=3650.0),
            ending_seconds: 60.0 * settings.number("minutes", 60.0, 0.0..=100_000.0),
        }
    }
}

impl SoftExpiry {
    fn is_ending(&self, node: &Node<'_>) -> bool {
        node.seconds_to_expiry()
            .is_some_and(|seconds| f64::from(seconds) < self.ending_seconds)
    }
}

impl ConsolidationPolicy for SoftExpiry {
    fn order_key(&self, node: &Node<'_>, _context: &Context) -> f64 {
        if self.is_ending(node) {
            return -1.0;
        }
        let key = node.disruption_per_price();
        // Both halves keep Karpenter's order within them.
        let squeezed = key / (1.0 + key);
        if f64::from(node.age_seconds()) >= self.old_seconds {
            squeezed
        } else {
            1.0 + squeezed
        }
    }

    fn verdict(&self, proposed: &ProposedMove<'_>, _context: &Context) -> Verdict {
        if let Some(objection) = proposed.objection() {
            return Verdict::reject(objection);
        }
        if proposed.is_for_savings() && proposed.removed().any(|node| self.is_ending(&node)) {
            return Verdict::hold(300, "a node of the move is about to expire");
        }
        Verdict::approve(proposed.savings_per_disruption(), "saves cost")
    }
}

guest_sdk::export_policy!(consolidation: SoftExpiry);

#[cfg(test)]
mod tests {
    use super::SoftExpiry;
    use guest_sdk::testing::{Harness, NodeRow, nodes, proposed};
    use guest_sdk::{ConsolidationPolicy, Decision, MoveKind};

    #[test]
    fn an_old_node_comes_before_a_young_one_that_saves_more() {
        let row = |age, price| NodeRow {
            age,
            price,
            ..NodeRow::default()
        };
        let rows = [row(3600, 9.0), row(15 * 86_400, 1.0)];
        let keys = Harness::<SoftExpiry>::new("")
            .unwrap()
            .order(&rows)
            .unwrap();
        assert!(keys[1] < keys[0] && keys[1] >= 0.0, "{keys:?}");
    }

    #[test]
    fn a_node_about_to_expire_is_left_to_it() {
        let policy = Harness::<SoftExpiry>::new("").unwrap();
        for (seconds, expected) in [(600, Decision::Hold), (7200, Decision::Approve)] {
            let mut table = nodes(&[NodeRow::default()]);
            table.time_to_expiry = vec![seconds];
            let moves = [proposed(MoveKind::Delete, &[0], 1.0, 0.0)];
            let verdicts = policy
                .policy
                .judge(&policy.context, &table, &moves)
                .unwrap();
            assert_eq!(verdicts[0].decision, expected, "{seconds}");
            let keys = policy.policy.order(&policy.context, &table).unwrap();
            assert_eq!(keys[0] < 0.0, expected == Decision::Hold);
        }
    }
}
