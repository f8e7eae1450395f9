//! What Karpenter approves is approved, and what it rejects is rejected.

use super::DefaultConsolidation;
use guest_sdk::testing::{Harness, NodeRow, proposed};
use guest_sdk::{Decision, MoveKind};

fn check(policy: &str, kind: MoveKind, cost_after: f64) -> Decision {
    let rows = [NodeRow {
        consolidation_policy: policy,
        ..NodeRow::default()
    }];
    Harness::<DefaultConsolidation>::new("")
        .unwrap()
        .judge(&rows, proposed(kind, &[0], 1.0, cost_after))
        .decision
}

#[test]
fn each_consolidation_policy_approves_what_karpenter_approves() {
    use Decision::{Approve, Reject};
    use MoveKind::{Delete, Drift, Empty, Replace};
    for (policy, kind, cost_after, expected) in [
        ("WhenEmptyOrUnderutilized", Delete, 0.0, Approve),
        ("WhenEmptyOrUnderutilized", Replace, 0.99, Approve),
        ("WhenEmptyOrUnderutilized", Replace, 1.0, Reject),
        ("WhenEmpty", Empty, 0.0, Approve),
        ("WhenEmpty", Delete, 0.0, Reject),
        ("WhenEmpty", Drift, 1.2, Approve),
        // Ten equal nodes of price 1 and disruption 5: a tenth of each.
        ("Balanced", Delete, 0.0, Approve),
        ("Balanced", Replace, 0.5, Approve),
        ("Balanced", Replace, 0.6, Reject),
    ] {
        assert_eq!(
            check(policy, kind, cost_after),
            expected,
            "{policy} {kind:?} {cost_after}"
        );
    }
}

#[test]
fn most_money_per_disruption_is_tried_first() {
    let rows = [(1.0, 10.0), (0.3, 2.0), (0.0, 1.0)].map(|(price, disruption_cost)| NodeRow {
        price,
        disruption_cost,
        ..NodeRow::default()
    });
    let keys = Harness::<DefaultConsolidation>::new("")
        .unwrap()
        .order(&rows)
        .unwrap();
    assert!(keys[1] < keys[0] && keys[0] < keys[2]);
}
