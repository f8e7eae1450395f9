//! Classes by label and by namespace, and what they object to.

use super::WorkloadClass;
use guest_sdk::testing::{ConsolidationQuestion, Harness, MoveRow, NodeRow, WorkloadRow, proposed};
use guest_sdk::{Decision, MoveKind};

const CONFIG: &str = r#"{"label": "tier", "namespaces": {"payments": "critical"}, "classes": {
    "critical": {"consolidate": false, "drift": false},
    "web": {"minSavings": 0.5, "minAgeMinutes": 120}}}"#;

fn verdict(pods: &[WorkloadRow<'_>], row: MoveRow<'_>) -> (Decision, String) {
    let policy = Harness::<WorkloadClass>::new(CONFIG).unwrap();
    let old = NodeRow {
        age: 9000,
        ..NodeRow::default()
    };
    let verdict = policy.verdict(&ConsolidationQuestion {
        nodes: &[NodeRow::default(), old],
        workloads: pods,
        moves: &[row],
        ..ConsolidationQuestion::default()
    });
    (verdict.decision, verdict.reason)
}

#[test]
fn a_move_suits_the_classes_of_all_its_pods() {
    let of = |of, namespace, labels| WorkloadRow {
        of,
        namespace,
        labels,
        ..WorkloadRow::default()
    };
    let plain = |row| of(row, "shop", &[][..]);
    let web = |row| of(row, "shop", &[("tier", "web")][..]);
    let paying = |row| of(row, "payments", &[][..]);
    // The label says more than the namespace.
    let paying_web = |row| of(row, "payments", &[("tier", "web")][..]);
    let both = [0, 1];
    let remove = |rows, saved| proposed(MoveKind::Delete, rows, saved, 0.0);
    let drift = proposed(MoveKind::Drift, &[0], 1.0, 1.0);
    for (pods, row, expected) in [
        (&[plain(0)][..], remove(&[0], 0.1), None),
        (
            &[plain(0), paying(0)],
            remove(&[0], 1.0),
            Some("not consolidated"),
        ),
        (&[paying(1)], remove(&[0], 1.0), None),
        (&[paying(1)], remove(&both, 1.0), Some("not consolidated")),
        (&[web(1)], remove(&[1], 0.4), Some("too little")),
        (&[web(1)], remove(&[1], 0.6), None),
        (&[web(0)], remove(&[0], 0.6), Some("too young")),
        (&[web(1)], remove(&both, 0.6), None),
        (&[paying_web(1)], remove(&[1], 0.6), None),
        (&[web(0)], drift, None),
        (&[paying(0)], drift, Some("drift")),
        (
            &[paying(0)],
            proposed(MoveKind::Empty, &[0], 1.0, 0.0),
            None,
        ),
    ] {
        let (decision, reason) = verdict(pods, row);
        let is_rejected = decision == Decision::Reject;
        assert_eq!(
            is_rejected,
            expected.is_some(),
            "{pods:?} {row:?}: {reason}"
        );
        assert!(reason.contains(expected.unwrap_or_default()), "{reason}");
    }
}

#[test]
fn what_is_done_for_no_saving_says_so() {
    for (kind, expected) in [
        (MoveKind::Delete, "saves cost"),
        (MoveKind::Empty, "not a matter of savings"),
        (MoveKind::Drift, "not a matter of savings"),
    ] {
        let found = verdict(&[], proposed(kind, &[0], 1.0, 0.0));
        assert_eq!(found, (Decision::Approve, expected.to_owned()), "{kind:?}");
    }
}

#[test]
fn what_karpenter_objects_to_stays_refused() {
    let dearer = proposed(MoveKind::Replace, &[0], 1.0, 2.0);
    assert_eq!(verdict(&[], dearer).0, Decision::Reject);
}

#[test]
fn a_class_that_says_what_nobody_reads_is_refused() {
    for (config, path) in [
        (r#"{"classes": {"web": {"savings": 1}}}"#, "/classes"),
        (r#"{"classes": 1}"#, "/classes"),
        (r#"{"namespaces": {"web": 1}}"#, "/namespaces"),
    ] {
        let issues = Harness::<WorkloadClass>::new(config).unwrap_err();
        assert_eq!(issues[0].path, path);
    }
}
