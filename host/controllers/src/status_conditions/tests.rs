//! What is told of conditions, one change after the other.

use std::sync::Arc;

use apis::{NodePool, ObjectKey};
use jiff::Timestamp;
use serde_json::json;
use state::{Cluster, Event};

use super::*;

fn pool(uid: &str, status: &str, since: i64) -> NodePool {
    let since = Timestamp::from_second(since).unwrap().to_string();
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "default", "uid": uid, "finalizers": ["example.com/f"]},
        "spec": {"template": {"spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        }}},
        "status": {"conditions": [{
            "type": "Ready", "status": status, "reason": "Because", "message": "of this",
            "lastTransitionTime": since,
        }]},
    });
    serde_json::from_value(pool).unwrap()
}

#[derive(Default)]
struct Teller {
    cluster: Cluster,
    conditions: StatusConditions,
}

impl Teller {
    /// What is told after the event, in words.
    fn after(&mut self, event: Event, now: i64) -> Vec<String> {
        let now = Timestamp::from_second(now).unwrap();
        let changes = self.cluster.apply(now, event).unwrap();
        let snapshot = self.cluster.snapshot();
        let tidings = changes
            .iter()
            .flat_map(|it| self.conditions.observe(it, &snapshot, now));
        let words = tidings.map(|(seen, entry)| {
            assert_eq!(seen.kind, StatusKind::NodePool);
            match entry {
                StatusEntry::Transition { kind, was, is } => {
                    let was = was.map_or_else(String::new, |it| it.status);
                    format!("{kind}: {was} -> {} ({})", is.status, is.message)
                }
                StatusEntry::Finalized { finalizer } => format!("without {finalizer}"),
                StatusEntry::Gone { millis } => format!("gone after {millis}"),
            }
        });
        words.collect()
    }
}

#[test]
fn a_transition_is_told_once_and_another_object_of_the_name_is_new() {
    let mut told = Teller::default();
    let first = told.after(Event::applied(Arc::new(pool("a", "Unknown", 1))), 1);
    assert_eq!(first, ["Ready:  -> Unknown (of this)"]);
    let same = told.after(Event::applied(Arc::new(pool("a", "Unknown", 1))), 2);
    assert!(same.is_empty(), "{same:?}");
    let ready = told.after(Event::applied(Arc::new(pool("a", "True", 3))), 3);
    assert_eq!(ready, ["Ready: Unknown -> True (of this)"]);
    let other = told.after(Event::applied(Arc::new(pool("b", "True", 4))), 4);
    assert_eq!(
        other,
        ["without example.com/f", "Ready:  -> True (of this)"]
    );
}

#[test]
fn an_object_that_is_gone_took_its_time_and_is_forgotten() {
    let mut told = Teller::default();
    told.after(Event::applied(Arc::new(pool("a", "True", 1))), 1);
    let mut going = pool("a", "True", 1);
    let deleted_at = Timestamp::from_second(10).unwrap();
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        deleted_at,
    ));
    going.metadata.finalizers = None;
    let finalized = told.after(Event::applied(Arc::new(going)), 11);
    assert_eq!(finalized, ["without example.com/f"]);
    let gone = told.after(
        Event::deleted::<NodePool>(ObjectKey::cluster("default")),
        15,
    );
    assert_eq!(gone, ["gone after 5000"]);
    let mut left = 0;
    told.conditions.each(StatusKind::NodePool, |_| left += 1);
    assert_eq!(left, 0);
}
