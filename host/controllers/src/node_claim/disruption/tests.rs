//! What marks of disruption a claim gets.

use serde_json::{Value, json};

use super::*;

const CLASS: &str = r#"{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}"#;

fn observed(disruption: &Value, status: &Value, provider_drift: Option<&str>) -> Observed {
    let class: Value = serde_json::from_str(CLASS).unwrap();
    let claim = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "c", "creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"requirements": [], "nodeClassRef": class.clone()},
        "status": status,
    }))
    .unwrap();
    let pool = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}, "disruption": disruption},
    }))
    .unwrap();
    Observed {
        claim: Arc::new(claim),
        pool: Arc::new(pool),
        class: None,
        provider_drift: provider_drift.map(str::to_owned),
    }
}

fn status(last_pod_event: Option<&str>) -> Value {
    let condition = |name: &str| json!({"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": "1970-01-01T00:01:00Z"});
    let mut status = json!({"conditions": [condition("Launched"), condition("Registered"), condition("Initialized")]});
    if let Some(time) = last_pod_event {
        status["lastPodEventTime"] = json!(time);
    }
    status
}

#[test]
fn a_claim_is_consolidatable_once_it_was_quiet_for_long_enough() {
    let quiet = |after: &str, event: Option<&str>, second: i64| {
        let observed = observed(&json!({"consolidateAfter": after}), &status(event), None);
        let decided = decide(&observed, Timestamp::from_second(second).unwrap());
        (
            decided.after.is_condition_true(conditions::CONSOLIDATABLE),
            decided.action,
        )
    };
    let in_seconds = |seconds| Action::RequeueAfter(Duration::from_secs(seconds));
    let drift = Action::RequeueAfter(DRIFT_PERIOD);
    assert_eq!(quiet("30s", None, 70), (false, in_seconds(20)));
    assert_eq!(quiet("30s", None, 90), (true, drift));
    assert_eq!(
        quiet("30s", Some("1970-01-01T00:01:20Z"), 90),
        (false, in_seconds(20))
    );
    assert_eq!(quiet("Never", None, 9000), (false, drift));
}

#[test]
fn drift_of_the_provider_is_marked_with_its_reason_and_cleared_again() {
    let now = Timestamp::from_second(100).unwrap();
    let drifted = decide(&observed(&json!({}), &status(None), Some("AMIDrift")), now).after;
    let condition = drifted.condition(conditions::DRIFTED).unwrap();
    assert_eq!(
        (condition.reason.as_str(), condition.message.as_str()),
        ("AMIDrift", "AMIDrift")
    );
    let again = Observed {
        claim: Arc::new(drifted),
        ..observed(&json!({}), &json!({}), None)
    };
    assert!(
        decide(&again, now)
            .after
            .condition(conditions::DRIFTED)
            .is_none()
    );
}

#[test]
fn a_claim_marked_as_it_should_be_is_left_alone_until_an_answer_grows_old() {
    let pool = |after: &str| observed(&json!({"consolidateAfter": after}), &json!({}), None).pool;
    let at = |second| Timestamp::from_second(second).unwrap();
    let facts = |mut conditions: Value| {
        let mut status = status(None);
        let all = status["conditions"].as_array_mut().unwrap();
        all.append(conditions.as_array_mut().unwrap());
        ClaimFacts::parse(&observed(&json!({}), &status, None).claim)
    };
    let is = |name: &str| json!([{"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": "1970-01-01T00:01:30Z"}]);
    let look = |facts: &ClaimFacts, after: &str, reason: Option<&str>, second| {
        let answer = DriftAnswer {
            question: DriftQuestion(0),
            asked_at: at(100),
            reason: reason.map(str::to_owned),
        };
        settled(facts, &pool(after), &answer, at(second))
    };
    let in_seconds = |seconds| Some(Action::RequeueAfter(Duration::from_secs(seconds)));
    let plain = facts(json!([]));
    assert_eq!(look(&plain, "Never", None, 110), in_seconds(290));
    assert_eq!(look(&plain, "Never", None, 400), None, "the answer is old");
    assert_eq!(look(&plain, "60s", None, 110), in_seconds(10), "quiet soon");
    assert_eq!(look(&plain, "60s", None, 120), None, "quiet and not marked");
    assert_eq!(look(&plain, "Never", Some("AMIDrift"), 110), None);
    let quiet = facts(is("Consolidatable"));
    assert_eq!(look(&quiet, "60s", None, 130), in_seconds(270));
    assert_eq!(look(&quiet, "Never", None, 130), None, "no longer wanted");
    let drifted = facts(is("Drifted"));
    assert_eq!(
        look(&drifted, "Never", Some("AMIDrift"), 110),
        in_seconds(290)
    );
    assert_eq!(look(&drifted, "Never", None, 110), None);
}
