//! How conditions move, told as short stories.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A claim created at second 100, generation 1.
fn claim() -> NodeClaim {
    let mut claim = NodeClaim::default();
    claim.metadata.creation_timestamp = Some(Time(at(100)));
    claim.metadata.generation = Some(1);
    claim
}

/// `Type=Status(Reason) @second gN message` a line, in stored order.
fn told(claim: &NodeClaim) -> String {
    let line = |c: &Condition| {
        let (second, generation) = (
            c.last_transition_time.0.as_second(),
            c.observed_generation.unwrap_or(0),
        );
        format!(
            "{}={}({}) @{second} g{generation} {}",
            c.type_, c.status, c.reason, c.message
        )
    };
    claim
        .conditions()
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn first_touch_is_as_old_as_the_object() {
    let mut claim = claim();
    assert!(claim.edit_conditions(at(200), |_| {}));
    assert_eq!(
        told(&claim),
        "Launched=Unknown(AwaitingReconciliation) @100 g1 object is awaiting reconciliation\n\
         Registered=Unknown(AwaitingReconciliation) @100 g1 object is awaiting reconciliation\n\
         Initialized=Unknown(AwaitingReconciliation) @100 g1 object is awaiting reconciliation\n\
         Ready=Unknown(ReconcilingDependents) @100 g1 Launched=Unknown, Registered=Unknown, Initialized=Unknown"
    );
    assert!(
        !claim.edit_conditions(at(300), |_| {}),
        "a second touch changes nothing"
    );
}

#[test]
fn root_follows_its_dependents() {
    let mut claim = claim();
    claim.edit_conditions(at(200), |c| {
        c.set_true(LAUNCHED);
    });
    assert!(claim.is_condition_true(LAUNCHED) && !claim.is_ready());
    claim.edit_conditions(at(210), |c| {
        c.set_false(REGISTERED, reason::MULTIPLE_NODES_FOUND, "two nodes");
    });
    assert_eq!(
        told(&claim),
        "Initialized=Unknown(AwaitingReconciliation) @100 g1 object is awaiting reconciliation\n\
         Launched=True(Launched) @200 g1 \n\
         Registered=False(MultipleNodesFound) @210 g1 two nodes\n\
         Ready=False(UnhealthyDependents) @210 g1 Registered=False, Initialized=Unknown"
    );
    claim.edit_conditions(at(220), |c| {
        c.set_true(REGISTERED);
        c.set_true(INITIALIZED);
    });
    assert!(claim.is_ready());
    assert_eq!(claim.condition(READY).unwrap().reason, READY);
    assert_eq!(claim.condition(READY).unwrap().message, "");
}

#[test]
fn transition_time_moves_with_the_status_only() {
    let mut claim = claim();
    claim.edit_conditions(at(200), |c| {
        c.set_unknown_with_reason(LAUNCHED, reason::LAUNCH_FAILED, "once");
    });
    let changed = claim.edit_conditions(at(300), |c| {
        c.set_unknown_with_reason(LAUNCHED, reason::LAUNCH_FAILED, "twice");
    });
    assert!(changed);
    let launched = claim.condition(LAUNCHED).unwrap();
    assert_eq!(
        (launched.message.as_str(), launched.last_transition_time.0),
        ("twice", at(100))
    );
}

#[test]
fn a_spec_change_makes_old_truths_stale() {
    let mut claim = claim();
    claim.edit_conditions(at(200), |c| {
        c.set_true(LAUNCHED);
        c.set_true(REGISTERED);
        c.set_true(INITIALIZED);
    });
    claim.metadata.generation = Some(2);
    claim.edit_conditions(at(300), |c| {
        c.set_true(LAUNCHED);
    });
    let ready = claim.condition(READY).unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.message.as_str()),
        ("Unknown", "Registered=True, Initialized=True")
    );
    claim.edit_conditions(at(310), |c| {
        c.set_true(REGISTERED);
        c.set_true(INITIALIZED);
    });
    assert!(claim.is_ready());
}

#[test]
fn deletion_bumps_the_others_generation() {
    let mut claim = claim();
    claim.edit_conditions(at(200), |c| {
        c.set_true(LAUNCHED);
    });
    claim.metadata.generation = Some(2);
    claim.metadata.deletion_timestamp = Some(Time(at(250)));
    claim.edit_conditions(at(300), |c| {
        c.set_unknown_with_reason(DRAINED, reason::DRAINING, "");
    });
    assert!(
        claim
            .conditions()
            .iter()
            .all(|c| c.observed_generation == Some(2)),
        "{}",
        told(&claim)
    );
    assert_eq!(
        claim.condition(DRAINED).unwrap().last_transition_time.0,
        at(300)
    );
}

#[test]
fn only_independent_conditions_can_be_cleared() {
    let mut claim = claim();
    let changed = claim.edit_conditions(at(200), |c| {
        c.set_true(CONSOLIDATABLE);
        assert!(c.clear(CONSOLIDATABLE));
        assert!(!c.clear(CONSOLIDATABLE));
        assert!(!c.clear(LAUNCHED) && !c.clear(READY));
    });
    assert!(changed);
    assert!(claim.condition(CONSOLIDATABLE).is_none() && claim.condition(LAUNCHED).is_some());
}

#[test]
fn times_keep_whole_seconds() {
    let mut claim = claim();
    claim.edit_conditions("2026-01-02T03:04:05.678Z".parse().unwrap(), |c| {
        c.set_true(LAUNCHED);
    });
    let time = &claim.condition(LAUNCHED).unwrap().last_transition_time;
    assert_eq!(time.0.to_string(), "2026-01-02T03:04:05Z");
}

#[test]
fn a_copy_has_the_condition_or_has_it_no_more() {
    let claim = claim();
    let drifted = ConditionUpdate {
        condition_type: DRIFTED,
        status: Status::False,
        reason: "Same",
        message: "as its pool",
    };
    let one = claim.with_condition(drifted, at(200));
    let other = one.with_condition_true(DRIFTED, at(300));
    let none = other.without_condition(DRIFTED, at(400));
    let said = |claim: &NodeClaim| {
        let condition = claim.condition(DRIFTED)?;
        Some((condition.status.clone(), condition.reason.clone()))
    };
    let is = |status: &str, reason: &str| Some((status.to_owned(), reason.to_owned()));
    assert_eq!(said(&one), is("False", "Same"));
    assert_eq!(said(&other), is("True", DRIFTED));
    assert_eq!([said(&claim), said(&none)], [None, None]);
    // What was never said has been so since the beginning.
    let since = [&claim, &one, &other].map(|it| it.condition_since(DRIFTED));
    assert_eq!(since, [at(100), at(200), at(300)]);
    assert_eq!(claim.without_condition(DRIFTED, at(200)), claim);
}
