//! What deletions and evictions ask for, as tables. Through the server's direct calls: nothing here knows how it keeps
//! objects.

use std::sync::Arc;

use api_server::{ApiServer, DeleteOptions, Propagation, Resource, StatusError};
use jiff::Timestamp;
use serde_json::{Value, json};

fn server() -> ApiServer {
    let now = Timestamp::UNIX_EPOCH;
    ApiServer::new(7, Arc::new(move || now))
}

fn must<T>(result: Result<T, StatusError>) -> T {
    result.unwrap_or_else(|status| panic!("{status}"))
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "a", "labels": {"app": "web"}, "finalizers": ["x/one"]},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
    })
}

#[test]
fn deletions_ask_for_what_their_options_say() {
    let options = DeleteOptions::default;
    let gone = |options: DeleteOptions| (options, Ok(false));
    let stays = |options: DeleteOptions| (options, Ok(true));
    let cases = [
        gone(DeleteOptions::now()),
        stays(DeleteOptions {
            dry_run: true,
            ..options()
        }),
        stays(options()),
        stays(DeleteOptions {
            propagation: Propagation::Foreground,
            ..options()
        }),
        (DeleteOptions::of_uid("another"), Err(409)),
        (
            DeleteOptions {
                resource_version: Some("1".to_owned()),
                ..options()
            },
            Err(409),
        ),
    ];
    for (options, wanted) in cases {
        let server = server();
        let mut object = pod();
        object["metadata"]["finalizers"] = json!([]);
        must(server.create(&Resource::PODS, "default", object));
        // On a node, so that its grace counts.
        must(server.bind("default", "a", "n1"));
        let before = must(server.get(&Resource::PODS, "default", "a"));
        let answer = server.delete(&Resource::PODS, "default", "a", &options);
        let after = server.get(&Resource::PODS, "default", "a");
        let found = answer.map(|_| after.is_ok()).map_err(|it| it.code);
        assert_eq!(found, wanted, "{options:?}");
        if options.dry_run || wanted.is_err() {
            assert_eq!(must(after), before, "{options:?}");
        }
    }
}

#[test]
fn a_later_deletion_may_only_shorten_the_grace() {
    let server = server();
    let mut object = pod();
    object["spec"]["terminationGracePeriodSeconds"] = 60.into();
    must(server.create(&Resource::PODS, "default", object));
    must(server.bind("default", "a", "n1"));
    for (asked, wanted) in [(None, 60), (Some(90), 60), (Some(20), 20), (Some(40), 20)] {
        let options = DeleteOptions {
            grace_period_seconds: asked,
            ..DeleteOptions::default()
        };
        let marked = must(server.delete(&Resource::PODS, "default", "a", &options));
        let grace = &marked["metadata"]["deletionGracePeriodSeconds"];
        assert_eq!(grace, wanted, "{asked:?}");
    }
}

#[test]
fn nothing_comes_into_a_namespace_that_goes() {
    let server = server();
    let namespace = json!({"metadata": {"name": "n", "finalizers": ["x/hold"]}});
    must(server.create(&Resource::NAMESPACES, "", namespace));
    let options = DeleteOptions::default();
    must(server.delete(&Resource::NAMESPACES, "", "n", &options));
    let refusal = server.create(&Resource::PODS, "n", pod()).unwrap_err();
    assert_eq!(refusal.code, 403);
    assert!(refusal.is_of_terminating_namespace(), "{refusal}");
    let refusal = server.create(&Resource::PODS, "none", pod()).unwrap_err();
    assert!(refusal.is_of_missing_object(), "{refusal}");
    let served = Resource::fixed("example.com", "widgets");
    let refusal = server.create(&served, "", json!({})).unwrap_err();
    assert!(
        refusal.is_not_found() && !refusal.is_of_missing_object(),
        "{refusal}"
    );
}

/// A server with a ready pod under a budget that lets one go, changed as the case says: the pod's status, the budget's
/// spec and its status.
fn guarded(case: &Value) -> ApiServer {
    let server = server();
    must(server.create(&Resource::PODS, "default", pod()));
    must(server.bind("default", "a", "n1"));
    let mut status =
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    change(&mut status, &case["pod"]);
    let status = json!({ "status": status });
    must(server.patch_merge_status(&Resource::PODS, "default", "a", status));
    let mut spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    change(&mut spec, &case["spec"]);
    let budget = json!({"metadata": {"name": "b"}, "spec": spec});
    must(server.create(&Resource::POD_DISRUPTION_BUDGETS, "default", budget));
    let mut status = json!({
        "observedGeneration": 1, "disruptionsAllowed": 1,
        "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
    });
    change(&mut status, &case["budget"]);
    let status = json!({ "status": status });
    must(server.patch_merge_status(&Resource::POD_DISRUPTION_BUDGETS, "default", "b", status));
    server
}

fn change(object: &mut Value, fields: &Value) {
    for (field, value) in fields.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
}

#[test]
fn evictions_are_granted_and_paid_for_by_the_rules() {
    let sick = json!([{"type": "Ready", "status": "False"}]);
    // Whether it is granted, and what is left of the budget.
    let cases = [
        (json!({}), Ok(0)),
        (json!({"dryRun": true}), Ok(1)),
        (json!({"budget": {"disruptionsAllowed": 0}}), Err(429)),
        (json!({"budget": {"observedGeneration": 0}}), Err(429)),
        // Pods that do no work.
        (
            json!({"pod": {"phase": "Pending"}, "budget": {"disruptionsAllowed": 0}}),
            Ok(0),
        ),
        (json!({"pod": {"phase": "Succeeded"}}), Ok(1)),
        // What is not ready serves nobody: it needs the budget only while others are missing, too.
        (
            json!({"pod": {"conditions": sick}, "budget": {"disruptionsAllowed": 0}}),
            Ok(0),
        ),
        (
            json!({"pod": {"conditions": sick}, "budget": {"disruptionsAllowed": 0, "currentHealthy": 0}}),
            Err(429),
        ),
        (
            json!({
                "pod": {"conditions": sick}, "spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
                "budget": {"disruptionsAllowed": 0, "currentHealthy": 0},
            }),
            Ok(0),
        ),
        // Whom a budget covers.
        (
            json!({"spec": {"selector": {"matchLabels": {"app": "db"}}}}),
            Ok(1),
        ),
        (json!({"spec": {"selector": {}}}), Ok(0)),
        (json!({"spec": {"selector": null}}), Ok(1)),
    ];
    for (case, wanted) in cases {
        let server = guarded(&case);
        let options = DeleteOptions {
            dry_run: case["dryRun"] == true,
            ..DeleteOptions::default()
        };
        let evicted = server.evict("default", "a", &options);
        let left = must(server.get(&Resource::POD_DISRUPTION_BUDGETS, "default", "b"));
        let left = left["status"]["disruptionsAllowed"].as_i64();
        let found = evicted.map(|()| left.unwrap_or_default());
        assert_eq!(found.map_err(|it| it.code), wanted, "{case}");
        let pod = server.get(&Resource::PODS, "default", "a");
        let is_marked = pod.is_ok_and(|it| it["metadata"]["deletionTimestamp"].is_string());
        assert_eq!(is_marked, wanted.is_ok() && !options.dry_run, "{case}");
    }
}
