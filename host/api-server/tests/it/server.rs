//! The API server as the controllers of the simulated world see it, through its direct calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use api_server::{
    ApiServer, DeleteOptions, NamespacedName, Propagation, Resource, Selection, WatchEventType,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::rig::{WIDGETS, must, pod, widgets};

/// A server whose clock the test moves.
fn server() -> (ApiServer, Arc<AtomicI64>) {
    let seconds = Arc::new(AtomicI64::new(1_700_000_000));
    let clock = seconds.clone();
    let now = Arc::new(move || {
        Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap_or(Timestamp::UNIX_EPOCH)
    });
    (ApiServer::new(7, now), seconds)
}

fn widget(spec: impl Into<Value>) -> Value {
    json!({"metadata": {"name": "w"}, "spec": spec.into()})
}

#[test]
fn pods_are_defaulted_as_kubernetes_defaults_them() {
    let (server, _) = server();
    let mut object = pod("a");
    object["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "1"}});
    object["spec"]["priorityClassName"] = "system-node-critical".into();
    let stored = must(server.create(&Resource::PODS, "default", object));
    let spec = &stored["spec"];
    assert_eq!(spec["containers"][0]["resources"]["requests"]["cpu"], "1");
    assert_eq!(spec["restartPolicy"], "Always");
    assert_eq!(spec["priority"], 2_000_001_000);
    assert_eq!(spec["tolerations"][0]["tolerationSeconds"], 300);
    assert_eq!(
        stored["status"],
        json!({"phase": "Pending", "qosClass": "Burstable"})
    );
}

#[test]
fn refusals_name_kind_name_field_and_reason() {
    let deployment = |change: fn(&mut Value)| {
        let mut object = json!({
            "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                             "spec": {"containers": [{"name": "c", "image": "nginx"}]}},
            },
        });
        change(&mut object);
        object
    };
    let cases: [(Resource, Value, &str); 6] = [
        (
            Resource::PODS,
            json!({"metadata": {"name": "a"}, "spec": {"containers": []}}),
            "Pod \"a\" is invalid: spec.containers: Required value",
        ),
        (
            Resource::PODS,
            json!({"metadata": {"name": "a"}, "spec": {"containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "lots"}}}]}}),
            "spec.containers[0].resources.requests[cpu]: Invalid value: \"lots\": quantities must match",
        ),
        (
            Resource::CONFIG_MAPS,
            json!({"metadata": {"name": "No_Good"}}),
            "ConfigMap \"No_Good\" is invalid: metadata.name: Invalid value: \"No_Good\"",
        ),
        (
            Resource::DEPLOYMENTS,
            deployment(|d| d["spec"]["selector"]["matchLabels"]["app"] = "other".into()),
            "`selector` does not match template `labels`",
        ),
        (
            Resource::DEPLOYMENTS,
            deployment(|d| d["spec"]["replicas"] = (-1).into()),
            "Deployment.apps \"d\" is invalid: spec.replicas: Invalid value: -1",
        ),
        (
            Resource::PODS,
            json!({"metadata": {"name": "a"}, "spec": {"priorityClassName": "none",
                "containers": [{"name": "c", "image": "i"}]}}),
            "pods \"a\" is forbidden: no PriorityClass with name none was found",
        ),
    ];
    let (server, _) = server();
    for (resource, object, words) in cases {
        let status = server.create(&resource, "default", object).unwrap_err();
        assert!(
            status.message.contains(words),
            "{}\nlacks {words}",
            status.message
        );
    }
}

#[test]
fn custom_resources_are_pruned_defaulted_and_validated() {
    let (server, _) = server();
    must(server.install_crd(&widgets()));
    let stored = must(server.create(&WIDGETS, "", widget(json!({"size": 2, "wieght": 1}))));
    assert_eq!(stored["spec"], json!({"size": 2, "color": "red"}));
    assert_eq!(stored["metadata"]["generation"], 1);
    let refused = [
        (json!({}), "spec.size: Required value"),
        (json!({"size": 10}), "should be less than or equal to 9"),
        (json!({"size": "2"}), "must be of type integer: \"string\""),
        (
            json!({"size": 2, "color": "green"}),
            "supported values: \"red\", \"blue\"",
        ),
        (
            json!({"size": 2, "parts": [{"name": "A"}]}),
            "spec.parts[0].name in body should match",
        ),
        (
            json!({"size": 2, "parts": [{"name": "a"}, {"name": "a"}]}),
            "Duplicate value",
        ),
        (
            json!({"size": 2, "parts": [{"name": "bad"}]}),
            "no bad part",
        ),
        (json!({"size": 1}), "size never shrinks"),
    ];
    for (spec, words) in refused {
        let status = server.update(&WIDGETS, widget(spec)).unwrap_err();
        assert_eq!(status.code, 422);
        assert!(
            status.message.contains(words),
            "{}\nlacks {words}",
            status.message
        );
    }
    let grown = must(server.update(&WIDGETS, widget(json!({"size": 3}))));
    assert_eq!(grown["metadata"]["generation"], 2);
    let scaled = must(server.scale(&WIDGETS, "", "w", 4));
    assert_eq!(scaled["spec"]["replicas"], 4);
}

/// Not the kind's name alone says what a server does for an object of its own: others have a Job, too.
#[test]
fn a_custom_kind_may_have_the_name_of_a_builtin_one() {
    let (server, _) = server();
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for (plural, kind) in [
        ("jobs", "Job"),
        ("customresourcedefinitions", "CustomResourceDefinition"),
    ] {
        let mut definition = widgets();
        definition["metadata"]["name"] = format!("{plural}.example.com").into();
        definition["spec"]["names"] = json!({"plural": plural, "kind": kind});
        definition["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": free}}]);
        let kinds = Resource::CUSTOM_RESOURCE_DEFINITIONS;
        must(server.create(&kinds, "", definition));
        let resource = Resource::new("example.com", plural);
        let spec = json!({"group": "example.com", "names": {"plural": "jobs", "kind": "Job"}});
        let object = json!({"metadata": {"name": "one"}, "spec": spec});
        let made = must(server.create(&resource, "", object));
        assert_eq!(made["spec"], spec, "{kind}");
        must(server.delete(&resource, "", "one", &DeleteOptions::default()));
    }
    let jobs = Resource::new("example.com", "jobs");
    must(server.create(&jobs, "", json!({"metadata": {"name": "two"}})));
}

#[test]
fn status_and_spec_are_kept_apart() {
    let (server, _) = server();
    must(server.install_crd(&widgets()));
    must(server.create(&WIDGETS, "", widget(json!({"size": 2}))));
    let mut both = widget(json!({"size": 5}));
    both["status"] = json!({"replicas": 1});
    let after = must(server.update_status(&WIDGETS, both.clone()));
    assert_eq!(
        (&after["spec"]["size"], &after["status"]["replicas"]),
        (&json!(2), &json!(1))
    );
    both["status"] = json!({"replicas": 9});
    let after = must(server.update(&WIDGETS, both));
    assert_eq!(
        (&after["spec"]["size"], &after["status"]["replicas"]),
        (&json!(5), &json!(1))
    );
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_off() {
    let (server, _) = server();
    must(server.install_crd(&widgets()));
    let mut object = widget(json!({"size": 2}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    must(server.create(&WIDGETS, "", object));
    let marked = must(server.delete(&WIDGETS, "", "w", &DeleteOptions::default()));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let key = NamespacedName::new("", "w");
    must(server.modify(&WIDGETS, &key, |o| o["metadata"]["finalizers"] = json!([])));
    assert!(server.get(&WIDGETS, "", "w").unwrap_err().is_not_found());
}

#[test]
fn owned_objects_go_with_their_owner() {
    for (propagation, is_left) in [
        (Propagation::Background, false),
        (Propagation::Foreground, false),
        (Propagation::Orphan, true),
    ] {
        let (server, _) = server();
        let owner = must(server.create(
            &Resource::CONFIG_MAPS,
            "default",
            json!({"metadata": {"name": "o"}}),
        ));
        let mut owned = pod("p");
        owned["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "o",
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
        }]);
        must(server.create(&Resource::PODS, "default", owned));
        let options = DeleteOptions {
            propagation,
            ..DeleteOptions::default()
        };
        must(server.delete(&Resource::CONFIG_MAPS, "default", "o", &options));
        assert!(server.get(&Resource::CONFIG_MAPS, "default", "o").is_err());
        let pod = server.get(&Resource::PODS, "default", "p");
        assert_eq!(pod.is_ok(), is_left, "{propagation:?}");
        if let Ok(pod) = pod {
            assert!(pod["metadata"]["ownerReferences"].is_null());
        }
    }
}

#[test]
fn a_bound_pod_is_given_its_grace() {
    let (server, _) = server();
    must(server.create(&Resource::PODS, "default", pod("a")));
    must(server.bind("default", "a", "n1"));
    let marked = must(server.delete(&Resource::PODS, "default", "a", &DeleteOptions::default()));
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        marked["metadata"]["deletionTimestamp"],
        "2023-11-14T22:13:50Z"
    );
    must(server.delete(&Resource::PODS, "default", "a", &DeleteOptions::now()));
    assert!(server.get(&Resource::PODS, "default", "a").is_err());
}

fn guarded_pod(server: &ApiServer, budgets: &[&str]) {
    must(server.create(&Resource::PODS, "default", pod("a")));
    must(server.bind("default", "a", "n1"));
    must(server.patch_merge_status(
        &Resource::PODS,
        "default",
        "a",
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
    ));
    for name in budgets {
        let budget = json!({
            "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        });
        must(server.create(&Resource::POD_DISRUPTION_BUDGETS, "default", budget));
    }
}

#[test]
fn evictions_honour_budgets() {
    let (server, _) = server();
    guarded_pod(&server, &["b"]);
    let status = |allowed: i64| {
        json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed,
                          "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}})
    };
    let budgets = &Resource::POD_DISRUPTION_BUDGETS;
    must(server.patch_merge_status(budgets, "default", "b", status(0)));
    let refusal = server
        .evict("default", "a", &DeleteOptions::default())
        .unwrap_err();
    assert_eq!(refusal.code, 429);
    assert_eq!(
        refusal.to_value()["details"]["causes"][0]["reason"],
        "DisruptionBudget"
    );
    must(server.patch_merge_status(budgets, "default", "b", status(1)));
    must(server.evict("default", "a", &DeleteOptions::default()));
    let spent = must(server.get(budgets, "default", "b"));
    assert_eq!(spent["status"]["disruptionsAllowed"], 0);
    assert!(spent["status"]["disruptedPods"]["a"].is_string());
}

#[test]
fn two_budgets_over_one_pod_are_an_error() {
    let (server, _) = server();
    guarded_pod(&server, &["b", "c"]);
    assert_eq!(
        server
            .evict("default", "a", &DeleteOptions::default())
            .unwrap_err()
            .code,
        500
    );
}

#[test]
fn a_namespace_takes_its_content_with_it() {
    let (server, _) = server();
    must(server.create(
        &Resource::NAMESPACES,
        "",
        json!({"metadata": {"name": "x"}}),
    ));
    must(server.create(
        &Resource::CONFIG_MAPS,
        "x",
        json!({"metadata": {"name": "c"}}),
    ));
    must(server.delete(&Resource::NAMESPACES, "", "x", &DeleteOptions::default()));
    assert!(
        server
            .list(&Resource::CONFIG_MAPS, &Selection::namespace("x"))
            .is_empty()
    );
    let status = server
        .create(
            &Resource::CONFIG_MAPS,
            "x",
            json!({"metadata": {"name": "c"}}),
        )
        .unwrap_err();
    assert_eq!(status.message, "namespaces \"x\" not found");
}

#[test]
fn watches_see_changes_through_their_selection() {
    let (server, _) = server();
    let selection = Selection::everything().labelled("app=web").unwrap();
    let (listed, mut watch) = server.list_and_watch(&Resource::PODS, &selection);
    assert!(listed.is_empty());
    must(server.create(&Resource::PODS, "default", pod("a")));
    let key = NamespacedName::new("default", "a");
    must(server.modify(&Resource::PODS, &key, |o| {
        o["metadata"]["labels"]["x"] = "1".into();
    }));
    must(server.modify(&Resource::PODS, &key, |o| {
        o["metadata"]["labels"]["app"] = "db".into();
    }));
    must(server.modify(&Resource::PODS, &key, |o| {
        o["metadata"]["labels"]["y"] = "1".into();
    }));
    let seen: Vec<WatchEventType> = std::iter::from_fn(|| watch.try_next().unwrap())
        .map(|e| e.change)
        .collect();
    assert_eq!(
        seen,
        [
            WatchEventType::Added,
            WatchEventType::Modified,
            WatchEventType::Deleted
        ]
    );
}

#[test]
fn equal_seeds_give_equal_worlds() {
    let names = || {
        let (server, _) = server();
        let object = json!({"metadata": {"generateName": "p-"},
                            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let made = must(server.create(&Resource::PODS, "default", object));
        (
            made["metadata"]["name"].clone(),
            made["metadata"]["uid"].clone(),
        )
    };
    assert_eq!(names(), names());
}

/// What is done to an Event half an hour after it was made.
type AfterHalfAnHour = fn(&ApiServer);

/// An Event is kept for an hour from its last write on, be it made anew or written again.
#[test]
fn events_age_out() {
    fn event(name: &str, count: i32) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "default"}, "reason": "R", "count": count,
            "involvedObject": {"kind": "Pod", "name": "a"},
        })
    }
    fn make_anew(server: &ApiServer) {
        let options = DeleteOptions::default();
        must(server.delete(&Resource::EVENTS, "default", "old", &options));
        must(server.create(&Resource::EVENTS, "default", event("old", 1)));
    }
    fn write_again(server: &ApiServer) {
        for count in [2, 3] {
            must(server.update(&Resource::EVENTS, event("old", count)));
        }
    }
    let cases: [(&str, AfterHalfAnHour, usize); 3] = [
        ("left alone", |_| {}, 1),
        ("made anew", make_anew, 2),
        ("written again", write_again, 2),
    ];
    for (name, meanwhile, after_an_hour) in cases {
        let (server, seconds) = server();
        must(server.create(&Resource::EVENTS, "default", event("old", 1)));
        seconds.fetch_add(1800, Ordering::Relaxed);
        meanwhile(&server);
        for (next, wait, wanted) in [("new", 1800, after_an_hour), ("newer", 3600, 1)] {
            seconds.fetch_add(wait, Ordering::Relaxed);
            must(server.create(&Resource::EVENTS, "default", event(next, 1)));
            let left = server.list(&Resource::EVENTS, &Selection::everything());
            assert_eq!(left.len(), wanted, "{name}, {next}");
        }
    }
}

/// Objects that nobody touches for long are stored as text; nobody may notice.
#[test]
fn objects_that_rest_are_the_same_to_everybody() {
    let (server, _) = server();
    let name = |number: usize| format!("p{number:04}");
    let key = NamespacedName::new("default", name(0));
    let written: Vec<Arc<Value>> = (0..1500)
        .map(|number| must(server.create(&Resource::PODS, "default", pod(&name(number)))))
        .collect();
    let web = must(Selection::everything().labelled("app=web"));
    for selection in [&Selection::everything(), &web] {
        assert_eq!(server.list(&Resource::PODS, selection), written);
    }
    let (_, mut watch) = server.list_and_watch(&Resource::PODS, &web);
    // One that rests leaves the selection of the watch by a write.
    let changed = must(server.modify(&Resource::PODS, &key, |pod| {
        pod["metadata"]["labels"]["app"] = "db".into();
    }));
    let event = watch.try_next().unwrap().unwrap();
    assert_eq!(event.change, WatchEventType::Deleted);
    // It is told as it was when it was still selected.
    let mut last = (*written[0]).clone();
    last["metadata"]["resourceVersion"] = changed["metadata"]["resourceVersion"].clone();
    assert_eq!(*event.object, last);
    assert_eq!(changed["metadata"]["uid"], written[0]["metadata"]["uid"]);
    assert_eq!(server.list(&Resource::PODS, &web).len(), 1499);
    // One that rests is bound, which needs what it was.
    let bound = must(server.bind("default", &name(1), "n1"));
    assert_eq!(
        bound["spec"]["containers"],
        written[1]["spec"]["containers"]
    );
    // One that rests goes, and takes nothing with it.
    must(server.delete(&Resource::PODS, "default", &name(2), &DeleteOptions::now()));
    let left = server.list(&Resource::PODS, &Selection::everything());
    assert_eq!(left.len(), 1499);
    assert_eq!(left[2..], written[3..]);
}

#[test]
fn an_object_of_another_server_is_taken_as_it_is() {
    let (server, _) = server();
    must(server.install_crd(&widgets()));
    let widgets = Resource::fixed("example.com", "widgets");
    let theirs = json!({
        "metadata": {"name": "a", "uid": "theirs", "resourceVersion": "900", "generation": 4,
            "creationTimestamp": "2020-01-01T00:00:00Z"},
        "spec": {"size": 3, "unknown": true}, "status": {"replicas": 2},
    });
    let restored = must(server.restore(&widgets, theirs.clone()));
    assert_eq!(restored["metadata"]["uid"], "theirs");
    assert_eq!(restored["metadata"]["generation"], 4);
    assert_eq!(
        restored["metadata"]["creationTimestamp"],
        "2020-01-01T00:00:00Z"
    );
    assert_ne!(
        restored["metadata"]["resourceVersion"], "900",
        "revisions are this server's"
    );
    assert_eq!(
        restored["spec"],
        json!({"size": 3, "color": "red"}),
        "pruned and defaulted as the kind is here"
    );
    // Another of the name replaces it, and whoever refers to it by its UID still finds it.
    let mut later = theirs;
    later["metadata"]["uid"] = json!("other");
    later["spec"]["size"] = json!(5);
    let restored = must(server.restore(&widgets, later));
    assert_eq!(
        (&restored["metadata"]["uid"], &restored["spec"]["size"]),
        (&json!("theirs"), &json!(5))
    );
    // What is owned goes with its owner of that UID.
    let mut owned = pod("p");
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": "theirs"}]);
    must(server.restore(&Resource::PODS, owned));
    must(server.delete(&widgets, "", "a", &DeleteOptions::default()));
    assert!(server.get(&Resource::PODS, "default", "p").is_err());
    assert!(
        server.restore(&widgets, json!({"metadata": {}})).is_err(),
        "it has no name"
    );
}
