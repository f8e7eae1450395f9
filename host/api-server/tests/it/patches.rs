//! What patches come to, as tables. Through the server's direct calls: nothing here knows how it keeps objects.

use api_server::{ApiServer, NamespacedName, ObjectPart, Patch, Resource, WriteOptions};
use serde_json::{Value, json};

use crate::rig::{WIDGETS, must, server, widgets};

fn pod() -> Value {
    json!({
        "metadata": {"name": "a", "labels": {"app": "web", "tier": "a"}, "finalizers": ["x/one"]},
        "spec": {"containers": [
            {"name": "c", "image": "nginx:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        ]},
    })
}

/// A server with that pod, and its key.
fn with_pod() -> (ApiServer, NamespacedName) {
    let server = server();
    must(server.create(&Resource::PODS, "default", pod()));
    (server, NamespacedName::new("default", "a"))
}

#[test]
fn patches_come_to_what_kubernetes_makes_of_them() {
    let labels = "/metadata/labels";
    let finalizers = "/metadata/finalizers";
    let cases = [
        (
            Patch::Merge(json!({"metadata": {"labels": {"tier": null, "new": "x"}}})),
            labels,
            json!({"app": "web", "new": "x"}),
        ),
        (
            Patch::Merge(json!({"metadata": {"finalizers": ["x/two"]}})),
            finalizers,
            json!(["x/two"]),
        ),
        (
            Patch::Strategic(json!({"metadata": {"finalizers": ["x/two"]}})),
            finalizers,
            json!(["x/one", "x/two"]),
        ),
        (
            Patch::Strategic(
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/one"]}}),
            ),
            finalizers,
            json!([]),
        ),
        (
            Patch::Strategic(json!({"metadata": {"labels": {"$patch": "replace", "only": "x"}}})),
            labels,
            json!({"only": "x"}),
        ),
        (
            Patch::Strategic(
                json!({"metadata": {"labels": {"$retainKeys": ["app"], "app": "web"}}}),
            ),
            labels,
            json!({"app": "web"}),
        ),
        (
            Patch::Json(json!([
                {"op": "test", "path": "/metadata/labels/app", "value": "web"},
                {"op": "remove", "path": "/metadata/labels/tier"},
            ])),
            labels,
            json!({"app": "web"}),
        ),
    ];
    for (patch, at, wanted) in cases {
        let (server, key) = with_pod();
        let options = WriteOptions::default();
        let after = must(server.patch(&Resource::PODS, &key, &patch, &options));
        // What is empty is left out.
        let found = after.pointer(at).cloned().unwrap_or_else(|| json!([]));
        assert_eq!(found, wanted, "{patch:?}");
    }
}

#[test]
fn lists_with_a_key_are_merged_by_it() {
    let env = |change: Value| json!({"spec": {"containers": [{"name": "c", "env": change}]}});
    let template = |env: Value| {
        json!({"spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "c", "image": "nginx:1", "env": env},
            ]}},
        }})
    };
    let cases = [
        (
            json!([{"name": "B", "value": "3"}]),
            json!([["A", "1"], ["B", "3"]]),
        ),
        (
            json!([{"name": "A", "$patch": "delete"}]),
            json!([["B", "2"]]),
        ),
        (
            json!([{"name": "C", "value": "3"}]),
            json!([["A", "1"], ["B", "2"], ["C", "3"]]),
        ),
        (
            json!([{"$patch": "replace"}, {"name": "D", "value": "4"}]),
            json!([["D", "4"]]),
        ),
    ];
    for (change, wanted) in cases {
        let server = server();
        let mut deployment = template(pod()["spec"]["containers"][0]["env"].clone());
        deployment["metadata"] = json!({"name": "a"});
        must(server.create(&Resource::DEPLOYMENTS, "default", deployment));
        let key = NamespacedName::new("default", "a");
        let patch = Patch::Strategic(json!({"spec": {"template": env(change)}}));
        let options = WriteOptions::default();
        let after = must(server.patch(&Resource::DEPLOYMENTS, &key, &patch, &options));
        let found = &after["spec"]["template"]["spec"]["containers"][0]["env"];
        let found = found.as_array().into_iter().flatten();
        let found: Vec<_> = found.map(|it| json!([it["name"], it["value"]])).collect();
        assert_eq!(Value::from(found), wanted, "{patch:?}");
    }
}

#[test]
fn patches_that_make_no_sense_are_refused_and_change_nothing() {
    let whole = WriteOptions {
        part: ObjectPart::Whole,
        ..WriteOptions::default()
    };
    let main = WriteOptions::default();
    let cases = [
        (
            Patch::Json(json!([{"op": "remove", "path": "/metadata/labels/none"}])),
            &main,
            422,
        ),
        (
            Patch::Json(json!([{"op": "test", "path": "/metadata/labels/app", "value": "x"}])),
            &main,
            422,
        ),
        (Patch::Json(json!({"op": "remove"})), &main, 400),
        (Patch::Merge(json!({"metadata": {"name": "b"}})), &main, 422),
        (
            Patch::Merge(json!({"metadata": {"resourceVersion": "1"}})),
            &main,
            409,
        ),
        (
            Patch::Strategic(json!({"spec": {"containers": [{"image": "i"}]}})),
            &main,
            400,
        ),
        (
            Patch::Merge(json!({"metadata": {"labels": {"new": "x"}}})),
            &whole,
            400,
        ),
    ];
    for (patch, options, code) in cases {
        let (server, key) = with_pod();
        let before = must(server.get(&Resource::PODS, "default", "a"));
        let refusal = server.patch(&Resource::PODS, &key, &patch, options);
        assert_eq!(refusal.unwrap_err().code, code, "{patch:?}");
        assert_eq!(must(server.get(&Resource::PODS, "default", "a")), before);
    }
}

#[test]
fn a_dry_run_says_what_would_be_and_does_nothing() {
    let server = server();
    let dry = WriteOptions {
        dry_run: true,
        ..WriteOptions::default()
    };
    let made = must(server.create_with(&Resource::PODS, "default", pod(), &dry));
    assert_eq!(made["spec"]["restartPolicy"], "Always", "defaulted");
    let broken = json!({"metadata": {"name": "a"}, "spec": {"containers": []}});
    let refusal = server.create_with(&Resource::PODS, "default", broken, &dry);
    assert_eq!(refusal.unwrap_err().code, 422);
    assert!(server.get(&Resource::PODS, "default", "a").is_err());
}

/// What a strategic merge patch makes of a service's ports, which are told apart by number and protocol, and of lists
/// that have no key.
#[test]
fn lists_are_merged_by_their_kind() {
    let spec = json!({
        "ports": [
            {"name": "udp", "port": 53, "protocol": "UDP"},
            {"name": "tcp", "port": 53, "protocol": "TCP"},
            {"name": "web", "port": 80},
        ],
        "externalIPs": ["10.0.0.1", "10.0.0.2"],
    });
    let cases = [
        (
            json!({"ports": [{"port": 53, "protocol": "TCP", "name": "renamed"}]}),
            json!(["udp", "renamed", "web"]),
        ),
        (
            json!({"ports": [{"port": 80, "$patch": "delete"}]}),
            json!(["udp", "tcp"]),
        ),
        (
            json!({"ports": [{"port": 81, "$patch": "delete"}]}),
            json!(["udp", "tcp", "web"]),
        ),
        (
            json!({"ports": [{"port": 81, "name": "new"}], "$setElementOrder/ports": [{"port": 81}, {"port": 80}]}),
            json!(["new", "web", "udp", "tcp"]),
        ),
        (
            json!({"ports": [{"port": 1, "name": "only"}, {"$patch": "replace"}]}),
            json!(["only"]),
        ),
        (json!({"ports": null}), json!([])),
    ];
    for (change, wanted) in cases {
        let server = server();
        let service = json!({"metadata": {"name": "s"}, "spec": spec});
        must(server.create(&Resource::SERVICES, "default", service));
        let key = NamespacedName::new("default", "s");
        let mut change = change;
        change["externalIPs"] = json!(["10.0.0.3"]);
        let patch = Patch::Strategic(json!({ "spec": change }));
        let options = WriteOptions::default();
        let after = must(server.patch(&Resource::SERVICES, &key, &patch, &options));
        let ports = after["spec"]["ports"].as_array().into_iter().flatten();
        let names: Value = ports.map(|it| it["name"].clone()).collect();
        assert_eq!(names, wanted, "{patch:?}");
        assert_eq!(after["spec"]["externalIPs"], json!(["10.0.0.3"]));
    }
}

/// Lists that are one value in the API: a patch replaces them, whatever keys their items have.
#[test]
fn lists_that_are_one_value_are_replaced() {
    let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
    let cases = [
        (
            Resource::NODES,
            "/spec/taints",
            json!({"spec": {"taints": [taint("a"), taint("b")]}}),
            json!({"spec": {"taints": [taint("b")]}}),
        ),
        (
            Resource::SERVICE_ACCOUNTS,
            "/imagePullSecrets",
            json!({"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}),
            json!({"imagePullSecrets": [{"name": "b"}]}),
        ),
    ];
    for (resource, at, mut object, change) in cases {
        let server = server();
        object["metadata"] = json!({"name": "x"});
        let namespace = if resource == Resource::NODES {
            ""
        } else {
            "default"
        };
        must(server.create(&resource, namespace, object));
        let key = NamespacedName::new(namespace, "x");
        let patch = Patch::Strategic(change.clone());
        let after = must(server.patch(&resource, &key, &patch, &WriteOptions::default()));
        assert_eq!(after.pointer(at), change.pointer(at), "{at}");
    }
}

#[test]
fn patches_of_which_no_object_comes_are_refused() {
    let strategic = |change: Value| Patch::Strategic(change);
    let cases = [
        (Patch::Merge(json!("x")), 422),
        (Patch::Merge(json!({"metadata": "x"})), 422),
        (Patch::Merge(json!({"metadata": null})), 422),
        (strategic(json!("x")), 422),
        (
            strategic(json!({"metadata": {"labels": {"$patch": "bogus"}}})),
            400,
        ),
        (
            Patch::Json(json!([{"op": "replace", "path": "", "value": 1}])),
            422,
        ),
        (
            Patch::Json(json!([{"op": "remove", "path": "/metadata"}])),
            422,
        ),
    ];
    for (patch, code) in cases {
        let (server, key) = with_pod();
        let before = must(server.get(&Resource::PODS, "default", "a"));
        let refusal = server.patch(&Resource::PODS, &key, &patch, &WriteOptions::default());
        assert_eq!(refusal.unwrap_err().code, code, "{patch:?}");
        assert_eq!(must(server.get(&Resource::PODS, "default", "a")), before);
    }
    let server = server();
    must(server.install_crd(&widgets()));
    let widget = json!({"metadata": {"name": "w"}, "spec": {"size": 1}});
    must(server.create(&WIDGETS, "", widget));
    let key = NamespacedName::new("", "w");
    let patch = strategic(json!({"spec": {"size": 2}}));
    let refusal = server.patch(&WIDGETS, &key, &patch, &WriteOptions::default());
    assert_eq!(refusal.unwrap_err().code, 415, "its lists have no keys");
}

/// A merge patch knows nothing of lists: the new one replaces the old one.
#[test]
fn merge_patches_replace_lists() {
    let server = server();
    must(server.install_crd(&widgets()));
    let widget = json!({"metadata": {"name": "w"}, "spec": {"size": 1, "parts": [{"name": "a"}]}});
    must(server.create(&WIDGETS, "", widget));
    let cases = [
        (json!({"parts": [{"name": "b"}]}), json!([{"name": "b"}])),
        (json!({"parts": []}), json!([])),
        (json!({"parts": null}), Value::Null),
    ];
    for (change, wanted) in cases {
        let after = must(server.patch_merge(&WIDGETS, "", "w", json!({ "spec": change })));
        assert_eq!(after["spec"]["parts"], wanted, "{change}");
        assert_eq!(after["spec"]["size"], 1);
    }
}
