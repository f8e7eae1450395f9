//! What server-side apply comes to where managers share an object, as tables.

use std::sync::Arc;

use api_server::{ApiServer, NamespacedName, Patch, Resource, StatusError, WriteOptions};
use serde_json::{Value, json};

use crate::rig::{WIDGETS, must, send, server, widgets};

fn key(resource: &Resource) -> NamespacedName {
    let namespace = if *resource == WIDGETS { "" } else { "default" };
    NamespacedName::new(namespace, "c")
}

fn by(manager: &str) -> WriteOptions {
    WriteOptions {
        field_manager: Some(manager.to_owned()),
        ..WriteOptions::default()
    }
}

/// One manager states its fields of an object of the kind; a `!` after its name takes over what others own.
fn apply(
    server: &ApiServer,
    resource: &Resource,
    manager: &str,
    fields: &Value,
) -> Result<Arc<Value>, StatusError> {
    let mut intent = if *resource == WIDGETS {
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "c"}})
    } else {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    };
    for (field, value) in fields.as_object().unwrap() {
        if let Value::Object(inner) = value {
            for (name, value) in inner {
                intent[field][name] = value.clone();
            }
        }
        if intent[field].is_null() {
            intent[field] = value.clone();
        }
    }
    let patch = Patch::Apply {
        intent,
        is_forced: manager.ends_with('!'),
    };
    let options = by(manager.trim_end_matches('!'));
    server.patch(resource, &key(resource), &patch, &options)
}

/// What is done, by whom, where to look then, and what is there.
type Case = (
    &'static str,
    Vec<(&'static str, Value)>,
    &'static str,
    Value,
);

fn check(resource: &Resource, cases: Vec<Case>) {
    for (what, applies, at, wanted) in cases {
        let server = server();
        must(server.install_crd(&widgets()));
        let mut last = Arc::default();
        for (manager, fields) in applies {
            last = must(apply(&server, resource, manager, &fields));
        }
        let found = last.pointer(at).cloned().unwrap_or_default();
        assert_eq!(found, wanted, "{what}");
    }
}

#[test]
fn fields_go_with_the_last_manager_that_states_them() {
    let finalizers = |list: &[&str]| json!({"metadata": {"finalizers": list}});
    let cases = vec![
        (
            "what is stated no more goes",
            vec![
                ("one", json!({"data": {"a": "1", "b": "2"}})),
                ("one", json!({"data": {"a": "1"}})),
            ],
            "/data",
            json!({"a": "1"}),
        ),
        (
            "and the map with it when it was the last",
            vec![("one", json!({"data": {"a": "1"}})), ("one", json!({}))],
            "/data",
            Value::Null,
        ),
        (
            "what another one states, too, stays",
            vec![
                ("one", json!({"data": {"a": "1", "b": "2"}})),
                ("two", json!({"data": {"b": "2"}})),
                ("one", json!({"data": {"a": "1"}})),
            ],
            "/data",
            json!({"a": "1", "b": "2"}),
        ),
        (
            "sets have the members that somebody states",
            vec![
                ("one", finalizers(&["x/a", "x/c"])),
                ("two", finalizers(&["x/b", "x/c"])),
                ("one", json!({})),
            ],
            "/metadata/finalizers",
            json!(["x/c", "x/b"]),
        ),
        (
            "who takes over owns alone",
            vec![
                ("one", json!({"data": {"a": "1"}})),
                ("two!", json!({"data": {"a": "2"}})),
                ("one", json!({})),
            ],
            "/data",
            json!({"a": "2"}),
        ),
    ];
    check(&Resource::CONFIG_MAPS, cases);
}

#[test]
fn a_map_without_anything_in_it_is_nobody_elses() {
    let cases = vec![
        (
            "a map without anything in it takes nothing from others",
            vec![
                ("one", json!({"data": {"a": "1"}})),
                ("two", json!({"data": {}})),
            ],
            "/data",
            json!({"a": "1"}),
        ),
        (
            "and takes nothing of theirs with it",
            vec![
                ("one", json!({"data": {"a": "1"}})),
                ("two", json!({"data": {}})),
                ("two", json!({})),
            ],
            "/data",
            json!({"a": "1"}),
        ),
    ];
    check(&Resource::CONFIG_MAPS, cases);
}

#[test]
fn items_of_a_list_go_with_the_last_manager_that_states_them() {
    let parts = |parts: Value| json!({"spec": {"size": 2, "parts": parts}});
    let none = || json!({"spec": {"size": 2}});
    let cases = vec![
        (
            "each has its own items",
            vec![
                ("one", parts(json!([{"name": "a", "count": 1}]))),
                ("two", parts(json!([{"name": "b", "count": 2}]))),
            ],
            "/spec/parts",
            json!([{"name": "a", "count": 1}, {"name": "b", "count": 2}]),
        ),
        (
            "and takes its own away",
            vec![
                ("one", parts(json!([{"name": "a", "count": 1}]))),
                ("two", parts(json!([{"name": "b", "count": 2}]))),
                ("one", none()),
            ],
            "/spec/parts",
            json!([{"name": "b", "count": 2}]),
        ),
        (
            "an item of both stays with what the other one states of it",
            vec![
                ("one", parts(json!([{"name": "a", "count": 1}]))),
                ("two", parts(json!([{"name": "a"}]))),
                ("one", none()),
            ],
            "/spec/parts",
            json!([{"name": "a"}]),
        ),
        (
            "a list without items takes none from others",
            vec![
                ("one", parts(json!([{"name": "a", "count": 1}]))),
                ("two", parts(json!([]))),
            ],
            "/spec/parts",
            json!([{"name": "a", "count": 1}]),
        ),
        (
            "fields of an item are changed by who takes them over",
            vec![
                ("one", parts(json!([{"name": "a", "count": 1}]))),
                ("two!", parts(json!([{"name": "a", "count": 3}]))),
            ],
            "/spec/parts",
            json!([{"name": "a", "count": 3}]),
        ),
    ];
    check(&WIDGETS, cases);
}

/// An item that its manager lets go of stays while a field in it belongs to somebody else, and keeps its key.
#[test]
fn an_item_stays_while_a_writer_has_a_field_in_it() {
    let server = server();
    must(server.install_crd(&widgets()));
    let stated = json!({"spec": {"size": 2, "parts": [{"name": "a"}]}});
    let made = must(apply(&server, &WIDGETS, "one", &stated));
    let mut edited = (*made).clone();
    edited["spec"]["parts"][0]["count"] = 5.into();
    must(server.update_with(&WIDGETS, edited, &by("editor")));
    let after = must(apply(
        &server,
        &WIDGETS,
        "one",
        &json!({"spec": {"size": 2}}),
    ));
    assert_eq!(after["spec"]["parts"], json!([{"name": "a", "count": 5}]));
    let other = json!({"spec": {"size": 2, "parts": [{"name": "a", "count": 6}]}});
    let refusal = apply(&server, &WIDGETS, "two", &other).unwrap_err();
    assert_eq!(
        refusal.message,
        "Apply failed with 1 conflict: conflict with \"editor\" using example.com/v1: \
         .spec.parts[name=\"a\"].count"
    );
}

#[test]
fn conflicts_name_who_owns_what() {
    let server = server();
    let maps = &Resource::CONFIG_MAPS;
    must(apply(&server, maps, "one", &json!({"data": {"a": "1"}})));
    must(apply(&server, maps, "two", &json!({"data": {"b": "1"}})));
    let before = must(server.get(maps, "default", "c"));
    let cases = [
        (
            json!({"a": "2"}),
            "Apply failed with 1 conflict: conflict with \"one\": .data.a",
            json!([".data.a"]),
        ),
        (
            json!({"a": "2", "b": "2"}),
            "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\nconflicts with \"two\":\n- .data.b",
            json!([".data.a", ".data.b"]),
        ),
    ];
    for (data, message, fields) in cases {
        let refusal = apply(&server, maps, "three", &json!({ "data": data })).unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), (409, message));
        let causes = &refusal.to_value()["details"]["causes"];
        let causes = causes.as_array().unwrap().iter();
        let named: Vec<_> = causes.map(|it| it["field"].clone()).collect();
        assert_eq!(Value::from(named), fields);
        assert_eq!(must(server.get(maps, "default", "c")), before);
    }
    // Who wants what is there anyway owns it, too, and a repetition changes nothing.
    let shared = json!({"data": {"a": "1"}});
    let after = must(apply(&server, maps, "three", &shared));
    assert_ne!(after, before);
    assert_eq!(must(apply(&server, maps, "three", &shared)), after);
}

#[test]
fn intents_that_make_no_sense_are_refused() {
    let cases = [
        json!({"kind": "ConfigMap", "metadata": {"name": "c"}}),
        json!({"apiVersion": "v1", "metadata": {"name": "c"}}),
        json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "c"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": "c"}),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "managedFields": [{"manager": "x"}]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}),
        json!("ConfigMap"),
    ];
    let maps = &Resource::CONFIG_MAPS;
    for is_there in [false, true] {
        for intent in &cases {
            let server = server();
            if is_there {
                must(apply(&server, maps, "one", &json!({"data": {"a": "1"}})));
            }
            let patch = Patch::Apply {
                intent: intent.clone(),
                is_forced: false,
            };
            let refusal = server.patch(maps, &key(maps), &patch, &by("one"));
            assert_eq!(refusal.unwrap_err().code, 400, "{intent}");
        }
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn an_apply_creates_and_says_so() {
    let server = server();
    let intent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}});
    let path = "PATCH /api/v1/namespaces/default/configmaps/c?fieldManager=one";
    for (query, code, is_there) in [
        ("&dryRun=All", 201, false),
        ("", 201, true),
        ("", 200, true),
    ] {
        let answer = send(
            &server,
            &format!("{path}{query}"),
            "apply-patch+yaml",
            &intent,
        )
        .await;
        assert_eq!(answer.code, code, "{answer:?}");
        assert_eq!(answer.body()["data"], json!({"a": "1"}));
        let found = server.get(&Resource::CONFIG_MAPS, "default", "c");
        assert_eq!(found.is_ok(), is_there, "{query:?}");
    }
    let nobody = path.split('?').next().unwrap();
    let refused = send(&server, nobody, "apply-patch+yaml", &intent).await;
    assert_eq!(refused.code, 400, "a manager has a name: {refused:?}");
}
