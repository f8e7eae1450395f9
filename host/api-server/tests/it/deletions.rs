//! What deletions and evictions ask for, as tables. Through the server's direct calls: nothing here knows how it keeps
//! objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use api_server::{ApiServer, DeleteOptions, NamespacedName, Propagation, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::rig::{must, send, server};

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
    let seconds = Arc::new(AtomicI64::new(0));
    let clock = Arc::clone(&seconds);
    let now = move || Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap();
    let server = ApiServer::new(7, Arc::new(now));
    let mut object = pod();
    object["spec"]["terminationGracePeriodSeconds"] = 30.into();
    must(server.create(&Resource::PODS, "default", object));
    must(server.bind("default", "a", "n1"));
    // When it is asked, for what grace, and what is left: the deadline counts from the first time.
    let cases = [
        (0, Some(50), 50),
        (5, None, 50),
        (10, Some(90), 50),
        (15, Some(20), 20),
        (18, Some(40), 20),
        (19, None, 20),
        (40, Some(10), 10),
    ];
    for (at, asked, wanted) in cases {
        seconds.store(at, Ordering::Relaxed);
        let options = DeleteOptions {
            grace_period_seconds: asked,
            ..DeleteOptions::default()
        };
        let marked = must(server.delete(&Resource::PODS, "default", "a", &options));
        let metadata = &marked["metadata"];
        assert_eq!(metadata["deletionGracePeriodSeconds"], wanted, "{at}");
        let deadline = format!("1970-01-01T00:00:{wanted:02}Z");
        assert_eq!(metadata["deletionTimestamp"], deadline, "{at}");
    }
}

#[test]
fn a_pod_that_ended_in_its_grace_stays_for_its_kubelet_until_told_to_go_now() {
    let server = server();
    let mut object = pod();
    object["metadata"]["finalizers"] = json!([]);
    must(server.create(&Resource::PODS, "default", object));
    must(server.bind("default", "a", "n1"));
    let ended = json!({"status": {"phase": "Succeeded"}});
    let delete = |options: &DeleteOptions| {
        must(server.delete(&Resource::PODS, "default", "a", options));
        server.get(&Resource::PODS, "default", "a").is_ok()
    };
    assert!(delete(&DeleteOptions::default()));
    must(server.patch_merge_status(&Resource::PODS, "default", "a", ended));
    assert!(delete(&DeleteOptions::default()));
    assert!(!delete(&DeleteOptions::now()));
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

/// A config map, and a pod that it owns and that somebody else holds.
fn owner_and_held(blocks: bool) -> ApiServer {
    let server = server();
    let owner = json!({"metadata": {"name": "o"}});
    let owner = must(server.create(&Resource::CONFIG_MAPS, "default", owner));
    let mut owned = pod();
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "o",
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
    }]);
    must(server.create(&Resource::PODS, "default", owned));
    server
}

#[test]
fn owners_and_owned_go_as_the_propagation_says() {
    // Whether the owner is still there after its deletion, and after what it owns is held no more; whether what it owns
    // is marked, and still there in the end.
    let cases = [
        (Propagation::Background, true, [false, false, true, false]),
        (Propagation::Foreground, true, [true, false, true, false]),
        // Who does not block its owner is not waited for.
        (Propagation::Foreground, false, [false, false, true, false]),
        (Propagation::Orphan, true, [false, false, false, true]),
    ];
    for (propagation, blocks, wanted) in cases {
        let server = owner_and_held(blocks);
        let options = DeleteOptions {
            propagation,
            ..DeleteOptions::default()
        };
        must(server.delete(&Resource::CONFIG_MAPS, "default", "o", &options));
        let owner = server.get(&Resource::CONFIG_MAPS, "default", "o");
        let waits = owner.is_ok();
        if let Ok(owner) = owner {
            assert_eq!(
                owner["metadata"]["finalizers"],
                json!(["foregroundDeletion"])
            );
        }
        let owned = must(server.get(&Resource::PODS, "default", "a"));
        let is_marked = owned["metadata"]["deletionTimestamp"].is_string();
        let key = NamespacedName::new("default", "a");
        must(server.modify(&Resource::PODS, &key, |pod| {
            pod["metadata"]["finalizers"] = json!([]);
        }));
        let is_left = [
            server.get(&Resource::CONFIG_MAPS, "default", "o").is_ok(),
            server.get(&Resource::PODS, "default", "a").is_ok(),
        ];
        let found = [waits, is_left[0], is_marked, is_left[1]];
        assert_eq!(found, wanted, "{propagation:?}, blocks: {blocks}");
    }
}

#[test]
fn what_has_another_owner_stays_with_it() {
    let server = server();
    let mut owners = Vec::new();
    for name in ["o", "p"] {
        let owner = json!({"metadata": {"name": name}});
        let owner = must(server.create(&Resource::CONFIG_MAPS, "default", owner));
        owners.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"],
        }));
    }
    let mut owned = pod();
    owned["metadata"]["ownerReferences"] = owners.clone().into();
    must(server.create(&Resource::PODS, "default", owned));
    let options = DeleteOptions::default();
    must(server.delete(&Resource::CONFIG_MAPS, "default", "o", &options));
    let owned = must(server.get(&Resource::PODS, "default", "a"));
    assert!(owned["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(owned["metadata"]["ownerReferences"], json!([owners[1]]));
}

#[test]
fn nothing_new_holds_what_goes() {
    let server = server();
    must(server.create(&Resource::PODS, "default", pod()));
    must(server.delete(&Resource::PODS, "default", "a", &DeleteOptions::default()));
    let key = NamespacedName::new("default", "a");
    let refusal = server.modify(&Resource::PODS, &key, |pod| {
        pod["metadata"]["finalizers"] = json!(["x/one", "x/two"]);
    });
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.code, 422);
    assert!(
        refusal.message.contains("no new finalizers can be added"),
        "{refusal}"
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn deletions_over_http_are_told_apart_by_their_options() {
    let path = "/api/v1/namespaces/default/pods";
    let one = format!("DELETE {path}/a");
    let cases = [
        // It is held, so that it stays and is shown.
        (one.clone(), Value::Null, 200, true),
        (format!("{one}?dryRun=All"), Value::Null, 200, false),
        (format!("{one}?dryRun=true"), Value::Null, 422, false),
        (one.clone(), json!({"dryRun": ["All"]}), 200, false),
        (one.clone(), json!({"dryRun": ["Some"]}), 422, false),
        (
            format!("{one}?propagationPolicy=Never"),
            Value::Null,
            422,
            false,
        ),
        (
            one.clone(),
            json!({"propagationPolicy": "Never"}),
            422,
            false,
        ),
        (
            one.clone(),
            json!({"preconditions": {"uid": "other"}}),
            409,
            false,
        ),
        (format!("DELETE {path}/b"), Value::Null, 404, false),
        (
            format!("DELETE {path}?labelSelector=app%3Dweb"),
            Value::Null,
            200,
            true,
        ),
        (
            format!("DELETE {path}?labelSelector=app%3Ddb"),
            Value::Null,
            200,
            false,
        ),
        (
            format!("DELETE {path}?fieldSelector=spec.nodeName%3Dn1"),
            Value::Null,
            200,
            false,
        ),
        (
            format!("DELETE {path}?fieldSelector=spec.color%3Dred"),
            Value::Null,
            400,
            false,
        ),
        (format!("DELETE {path}/a/status"), Value::Null, 405, false),
    ];
    for (line, body, code, is_marked) in cases {
        let server = server();
        must(server.create(&Resource::PODS, "default", pod()));
        let answer = send(&server, &line, "json", &body).await;
        assert_eq!(answer.code, code, "{line} {body}: {answer:?}");
        let after = must(server.get(&Resource::PODS, "default", "a"));
        let found = after["metadata"]["deletionTimestamp"].is_string();
        assert_eq!(found, is_marked, "{line} {body}");
    }
}
