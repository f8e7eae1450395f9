//! What Karpenter approves is approved, and what it rejects is rejected.

use super::DefaultConsolidation;
use guest_sdk::testing::{ConsolidationQuestion, Harness, MoveRow, NodeRow, PoolRow, proposed};
use guest_sdk::{Decision, MoveKind};

fn check(policy: &str, kind: MoveKind, cost_after: f64) -> Decision {
    let rows = [NodeRow {
        consolidation_policy: policy,
        ..NodeRow::default()
    }];
    // One of ten nodes like it.
    Harness::<DefaultConsolidation>::new("")
        .unwrap()
        .verdict(&ConsolidationQuestion {
            nodes: &rows,
            pools: &[PoolRow::default()],
            moves: &[proposed(kind, &[0], 1.0, cost_after)],
            ..ConsolidationQuestion::default()
        })
        .decision
}

#[test]
fn each_consolidation_policy_approves_what_karpenter_approves() {
    use Decision::{Approve, Reject};
    use MoveKind::{Delete, Drift, Empty, Expire, Other, Replace, StaticDrift};
    for (policy, kind, cost_after, expected) in [
        ("WhenEmptyOrUnderutilized", Delete, 0.0, Approve),
        ("WhenEmptyOrUnderutilized", Replace, 0.99, Approve),
        ("WhenEmptyOrUnderutilized", Replace, 1.0, Reject),
        ("WhenEmpty", Empty, 0.0, Approve),
        ("WhenEmpty", Delete, 0.0, Reject),
        ("WhenEmpty", Drift, 1.2, Approve),
        ("WhenEmpty", StaticDrift, 1.2, Approve),
        ("WhenEmptyOrUnderutilized", Other, 1.2, Approve),
        ("WhenEmptyOrUnderutilized", Expire, 0.5, Reject),
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
fn what_the_ranking_policy_says_counts_and_not_the_bill() {
    let policy = Harness::<DefaultConsolidation>::new("").unwrap();
    for (effective_after, expected) in [(0.9, Decision::Approve), (1.1, Decision::Reject)] {
        let dearer = MoveRow {
            effective_after: Some(effective_after),
            ..proposed(MoveKind::Replace, &[0], 1.0, 1.2)
        };
        let verdict = policy.judge(&[NodeRow::default()], dearer);
        assert_eq!(verdict.decision, expected, "{effective_after}");
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
