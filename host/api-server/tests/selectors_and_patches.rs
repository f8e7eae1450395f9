//! What selectors select and what patches come to, as tables. Through the server's direct calls: nothing here knows how
//! it keeps objects.

use std::sync::Arc;

use api_server::{
    ApiServer, FieldSelector, NamespacedName, ObjectPart, ParsedLabelSelector, Patch, Resource,
    StatusError, WriteOptions,
};
use jiff::Timestamp;
use serde_json::{Value, json};

fn server() -> ApiServer {
    let now = Timestamp::UNIX_EPOCH;
    ApiServer::new(7, Arc::new(move || now))
}

fn must<T>(result: Result<T, StatusError>) -> T {
    result.unwrap_or_else(|status| panic!("{status}"))
}

#[test]
fn label_selectors_select() {
    let object = json!({"metadata": {"labels": {"app": "web", "tier": "a", "size": "7"}}});
    let cases = [
        ("", true),
        ("app=web", true),
        ("app==web", true),
        ("app=db", false),
        ("app!=db", true),
        ("app!=web", false),
        ("none!=web", true),
        ("app", true),
        ("none", false),
        ("!none", true),
        ("!app", false),
        ("tier in (a, b)", true),
        ("tier in (b)", false),
        ("tier notin (b),app=web", true),
        ("none notin (b)", true),
        ("size>6", true),
        ("size>7", false),
        ("size<8", true),
        ("app>1", false),
        ("app=web,tier=b", false),
    ];
    for (text, wanted) in cases {
        let selector = must(ParsedLabelSelector::parse(text));
        assert_eq!(selector.matches(&object), wanted, "{text:?}");
    }
    for text in [
        "tier in (a",
        "tier within (a)",
        "in (a)",
        "size>many",
        "a b",
    ] {
        let refusal = ParsedLabelSelector::parse(text).unwrap_err();
        assert_eq!(refusal.code, 400, "{text:?}");
    }
}

#[test]
fn selector_objects_select_what_their_texts_do() {
    let object = json!({"metadata": {"labels": {"app": "web"}}});
    let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
    let cases = [
        (json!({}), true),
        (json!({"matchLabels": {"app": "web"}}), true),
        (json!({"matchLabels": {"app": "web", "tier": "a"}}), false),
        (expression("In", json!(["web", "db"])), true),
        (expression("NotIn", json!(["web"])), false),
        (expression("Exists", Value::Null), true),
        (expression("DoesNotExist", Value::Null), false),
    ];
    for (selector, wanted) in cases {
        let found = ParsedLabelSelector::from_object(&selector).matches(&object);
        assert_eq!(found, wanted, "{selector}");
    }
}

#[test]
fn field_selectors_read_what_is_absent_as_empty() {
    let object = json!({
        "metadata": {"name": "a"}, "spec": {"replicas": 3, "paused": true}, "status": {"succeeded": 2},
    });
    let cases = [
        ("metadata.name=a", true),
        ("metadata.name==a,spec.replicas=3", true),
        ("metadata.name!=a", false),
        ("spec.replicas=4", false),
        ("spec.paused=true", true),
        ("spec.nodeName=", true),
        ("spec.nodeName!=", false),
        ("spec.unschedulable=false", true),
        ("spec.unschedulable=true", false),
        // The one field that selectors call otherwise.
        ("status.successful=2", true),
    ];
    for (text, wanted) in cases {
        let selector = must(FieldSelector::parse(text));
        assert_eq!(selector.matches(&object), wanted, "{text:?}");
    }
    assert_eq!(FieldSelector::parse("metadata.name").unwrap_err().code, 400);
}

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
