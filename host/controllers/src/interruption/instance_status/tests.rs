//! Whose instances are sick, which of them that is news of, and what becomes of their claims.

use serde_json::json;

use super::*;
use crate::node_claim::tests::claim_with;

fn impairment(instance_id: &str, kind: ImpairmentKind) -> Impairment {
    Impairment {
        instance_id: instance_id.to_owned(),
        kind,
        since: Timestamp::UNIX_EPOCH,
    }
}

#[test]
fn of_what_the_cloud_finds_ours_is_told_once() {
    use ImpairmentKind::{InstanceStatus, SystemStatus};
    let found = [
        impairment("i-1", InstanceStatus),
        impairment("i-1", SystemStatus),
        impairment("i-2", InstanceStatus),
    ];
    let claims = BTreeMap::from([("i-1".to_owned(), "c".to_owned())]);
    let counted = BTreeSet::from([("i-1".to_owned(), InstanceStatus)]);
    let ours = ours(&found, &claims, &counted);
    let found: Vec<_> = ours
        .iter()
        .map(|it| (it.claim, it.impairment.kind, it.is_new))
        .collect();
    let expected = [("c", InstanceStatus, false), ("c", SystemStatus, true)];
    assert_eq!(found, expected);
}

#[test]
fn a_sick_instance_does_not_wait_for_its_pods() {
    use ImpairmentKind::{EventStatus, InstanceStatus, SystemStatus};
    let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
    let (living, going) = (json!(null), json!("2026-01-01T00:30:00Z"));
    let (earlier, later) = (Some("2026-01-01T00:59:00Z"), Some("2026-01-01T02:00:00Z"));
    let both = ["hurry", "delete"].as_slice();
    let cases = [
        (InstanceStatus, &living, None, both),
        (SystemStatus, &living, later, both),
        (SystemStatus, &living, earlier, &["delete"]),
        (EventStatus, &living, None, &["delete"]),
        (InstanceStatus, &going, later, &["hurry"]),
        (InstanceStatus, &going, earlier, &[]),
        (EventStatus, &going, later, &[]),
    ];
    for (kind, deleted_at, deadline, expected) in cases {
        let mut annotations = json!({});
        if let Some(deadline) = deadline {
            annotations["karpenter.sh/nodeclaim-termination-timestamp"] = deadline.into();
        }
        let claim = claim_with(&json!({
            "/metadata/deletionTimestamp": deleted_at, "/metadata/annotations": annotations,
        }));
        let steps = decide(kind, &claim, now).into_iter();
        let steps = steps.map(|step| match step {
            Step::Hurry(hurried) => {
                assert_eq!(hurried.termination_deadline(), Some(now));
                "hurry"
            }
            Step::NotifyAndDelete => "delete",
        });
        let steps: Vec<_> = steps.collect();
        assert_eq!(steps, expected, "{kind:?} {deleted_at} {deadline:?}");
    }
}
