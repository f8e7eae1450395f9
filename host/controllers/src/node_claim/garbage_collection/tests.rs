//! Which claims have lost their instance and which instances belong to nobody, case by case.

use std::collections::BTreeMap;

use apis::resources::Resources;
use serde_json::{Value, json};
use state::{Cluster, Event};

use super::*;
use crate::node_claim::tests::{claim_with, condition};

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

/// An instance that nobody is said to have, launched half an hour ago.
fn instance() -> Launched {
    Launched {
        provider_id: ProviderId::of_instance("a", "i-1"),
        image_id: String::new(),
        node_claim_name: None,
        launch_token: None,
        node_pool_name: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        capacity: Resources::new(),
        allocatable: Resources::new(),
        launched_at: Some("2026-01-01T00:30:00Z".parse().unwrap()),
        life: InstanceLife::Runs,
    }
}

/// A claim of that instance, with a node since long ago, and what else is said of it.
fn claim(extra: &Value) -> NodeClaim {
    let mut said = json!({"/metadata/deletionTimestamp": null, "/status/conditions": [
        condition("Launched", "True", "00:05"),
        condition("Registered", "True", "00:10"),
    ]});
    for (path, value) in extra.as_object().unwrap() {
        said[path] = value.clone();
    }
    claim_with(&said)
}

#[test]
fn a_claim_goes_once_its_instance_must_be_listed_and_is_not() {
    let young = json!({"/status/conditions": [
        condition("Launched", "True", "00:59"),
        condition("Registered", "True", "00:59"),
    ]});
    let unregistered = json!({"/status/conditions": [condition("Launched", "True", "00:05")]});
    let going = json!({"/metadata/deletionTimestamp": "2026-01-01T00:50:00Z"});
    let ends = Launched {
        life: InstanceLife::Ends,
        ..instance()
    };
    let cases = [
        (json!({}), None, false, true),
        (json!({}), Some(instance()), false, false),
        (json!({}), Some(ends), false, true),
        // The kubelet says that the machine is there, whatever the list says.
        (json!({}), None, true, false),
        (young, None, false, false),
        (unregistered, None, false, false),
        (going, None, false, false),
    ];
    for (extra, listed, is_ready, is_lost) in cases {
        let case = format!("{extra} {listed:?} {is_ready}");
        let ready = is_ready.then(|| instance().provider_id);
        let decided = decide(
            Observed {
                claims: vec![claim(&extra)],
                instances: listed.into_iter().collect(),
                ready: ready.into_iter().collect(),
            },
            now(),
        );
        assert_eq!(decided.suspects.len(), usize::from(is_lost), "{case}");
        assert!(decided.leaked.is_empty(), "{case}");
    }
}

#[test]
fn the_api_server_is_asked_once_something_is_out_of_order() {
    let node = |ready: &str| -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n", "uid": "n"},
            "spec": {"providerID": "aws:///a/i-1"},
            "status": {"conditions": [condition("Ready", ready, "00:20")]},
        }))
        .unwrap()
    };
    let cloud = |id: &str, life: InstanceLife| Launched {
        provider_id: ProviderId::of_instance("a", id),
        life,
        ..instance()
    };
    let runs = |id: &str| cloud(id, InstanceLife::Runs);
    let ends = |id: &str| cloud(id, InstanceLife::Ends);
    let joined = || Some(json!({}));
    let unregistered = json!({"/status/conditions": [condition("Launched", "True", "00:05")]});
    // What is said of the claim, the readiness of its node, the cloud's list, and whether all is in order.
    let cases = [
        (joined(), None, vec![runs("i-1")], true),
        (joined(), None, vec![], false),
        (joined(), None, vec![ends("i-1")], false),
        (joined(), Some("True"), vec![], true),
        (joined(), Some("False"), vec![], false),
        (Some(unregistered), None, vec![], true),
        (None, None, vec![runs("i-1")], false),
        (None, None, vec![ends("i-1")], true),
        (joined(), None, vec![runs("i-1"), runs("i-2")], false),
    ];
    for (said, ready, instances, expected) in cases {
        let case = format!("{said:?} {ready:?} {instances:?}");
        let mut cluster = Cluster::new();
        let seen = [
            said.map(|it| Event::applied(Arc::new(claim(&it)))),
            ready.map(|it| Event::applied(Arc::new(node(it)))),
        ];
        for event in seen.into_iter().flatten() {
            cluster.apply(now(), event).unwrap();
        }
        let is_found = is_in_order(&cluster.snapshot(), &instances);
        assert_eq!(is_found, expected, "{case}");
    }
}

#[test]
fn a_claim_whose_instance_was_left_out_of_the_list_stays() {
    let ends = Launched {
        life: InstanceLife::Ends,
        ..instance()
    };
    let refused = CloudProviderError::Other("throttled".to_owned());
    let cases = [
        (Ok(instance()), SecondLook::Stays),
        (Ok(ends), SecondLook::Lost),
        (
            Err(CloudProviderError::NotFound("i-1".to_owned())),
            SecondLook::Lost,
        ),
        (Err(refused.clone()), SecondLook::Unknown(refused)),
    ];
    for (answer, expected) in cases {
        assert_eq!(second_look(answer.clone()), expected, "{answer:?}");
    }
}

#[test]
fn an_instance_goes_that_no_claim_has_or_waits_for() {
    let waits = json!({
        "/status/providerID": null, "/metadata/annotations": {labels::LAUNCH_ANNOTATION: "1/t"},
    });
    let other = json!({"/status/providerID": "aws:///a/i-2"});
    let named = |name: &str| Launched {
        node_claim_name: Some(name.to_owned()),
        ..instance()
    };
    let begun = |token: &str| Launched {
        launch_token: Some(token.to_owned()),
        ..instance()
    };
    let at = |launched_at: Option<&str>| Launched {
        launched_at: launched_at.map(|it| it.parse().unwrap()),
        ..instance()
    };
    let ends = Launched {
        life: InstanceLife::Ends,
        ..instance()
    };
    let untried = json!({
        "/status/providerID": null, "/metadata/labels": {labels::NODEPOOL: "pool"},
    });
    let of_pool = |pool: &str| Launched {
        node_pool_name: Some(pool.to_owned()),
        ..instance()
    };
    let cases = [
        (untried.clone(), of_pool("pool"), false),
        (untried, of_pool("other"), true),
        (waits.clone(), of_pool("pool"), true),
        (json!({}), instance(), false),
        (other.clone(), instance(), true),
        (other.clone(), at(Some("2026-01-01T00:59:45Z")), false),
        (other.clone(), at(None), false),
        (other.clone(), ends, false),
        // One that has its instance waits for no other.
        (other, named("c"), true),
        (waits.clone(), named("c"), false),
        (waits.clone(), named("d"), true),
        (waits.clone(), begun("t"), false),
        (waits, begun("u"), true),
    ];
    for (extra, instance, is_leaked) in cases {
        let case = format!("{extra} {instance:?}");
        let decided = decide(
            Observed {
                claims: vec![claim(&extra)],
                instances: vec![instance],
                ready: [ProviderId::of_instance("a", "i-2")].into(),
            },
            now(),
        );
        assert_eq!(decided.leaked.len(), usize::from(is_leaked), "{case}");
        assert!(decided.suspects.is_empty(), "{case}");
    }
}
