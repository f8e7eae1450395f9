//! Nodes are renewed in time, at the right hour, and are otherwise left to their end.

use super::SoftExpiry;
use guest_sdk::testing::{Harness, NodeRow, civil, proposed};
use guest_sdk::{Decision, MoveKind};

const HOUR: u32 = 3600;

fn expiring_in(hours: u32) -> NodeRow<'static> {
    NodeRow {
        time_to_expiry: hours * HOUR,
        ..NodeRow::default()
    }
}

#[test]
fn a_node_is_renewed_when_it_expires_soon_and_the_hour_is_right() {
    let config = r#"{"days": 2, "from": 22, "to": 5, "zone": "Europe/Berlin"}"#;
    for (hours_left, hour, expected) in [
        (40, 23, Decision::Approve),
        (40, 4, Decision::Approve),
        (40, 5, Decision::Reject),
        (40, 12, Decision::Reject),
        (50, 23, Decision::Reject),
    ] {
        let mut policy = Harness::<SoftExpiry>::new(config).unwrap();
        policy.context.civil.push(civil("Europe/Berlin", hour));
        let it = proposed(MoveKind::Expire, &[0], 1.0, 1.2);
        let verdict = policy.judge(&[expiring_in(hours_left)], it);
        assert_eq!(
            verdict.decision, expected,
            "{hours_left} {hour}: {}",
            verdict.reason
        );
    }
}

#[test]
fn a_zone_that_the_binding_does_not_name_renews_nothing_and_says_why() {
    let policy = Harness::<SoftExpiry>::new(r#"{"zone": "Asia/Tokyo"}"#).unwrap();
    let it = proposed(MoveKind::Expire, &[0], 1.0, 1.2);
    let verdict = policy.judge(&[expiring_in(2)], it);
    assert_eq!(verdict.decision, Decision::Reject);
    assert!(verdict.reason.contains("time-zones"), "{}", verdict.reason);
}

#[test]
fn a_node_that_expires_soon_comes_before_one_that_saves_more() {
    let later = NodeRow {
        price: 9.0,
        ..expiring_in(200)
    };
    let keys = Harness::<SoftExpiry>::new("")
        .unwrap()
        .order(&[later, expiring_in(20)])
        .unwrap();
    assert!(keys[1] < keys[0] && keys[1] >= 0.0, "{keys:?}");
}

#[test]
fn a_node_about_to_expire_is_left_to_it() {
    let policy = Harness::<SoftExpiry>::new("").unwrap();
    for (seconds, expected) in [(600, Decision::Hold), (7200, Decision::Approve)] {
        let rows = [NodeRow {
            time_to_expiry: seconds,
            ..NodeRow::default()
        }];
        let verdict = policy.judge(&rows, proposed(MoveKind::Delete, &[0], 1.0, 0.0));
        assert_eq!(verdict.decision, expected, "{seconds}");
        let keys = policy.order(&rows).unwrap();
        assert_eq!(keys[0] < 0.0, expected == Decision::Hold);
    }
}

#[test]
fn what_is_done_for_no_saving_says_so() {
    let policy = Harness::<SoftExpiry>::new("").unwrap();
    for (kind, expected) in [
        (MoveKind::Delete, "saves cost"),
        (MoveKind::Empty, "not a matter of savings"),
        (MoveKind::Drift, "not a matter of savings"),
        (MoveKind::StaticDrift, "not a matter of savings"),
    ] {
        let verdict = policy.judge(&[NodeRow::default()], proposed(kind, &[0], 1.0, 0.0));
        assert_eq!(verdict.decision, Decision::Approve, "{kind:?}");
        assert_eq!(verdict.reason, expected, "{kind:?}");
    }
}

#[test]
fn an_hour_that_no_clock_has_is_refused() {
    let issues = Harness::<SoftExpiry>::new(r#"{"to": 25}"#).unwrap_err();
    assert_eq!(issues[0].path, "/to");
}
