//! What becomes of custom resources by their schema: pruned, defaulted, refused.

use serde_json::{Value, json};

use crate::rig::{GADGETS, gadget, must, send, with_gadgets};

fn properties() -> Value {
    let text = json!({"type": "string"});
    json!({
        "text": text,
        "nullable": {"type": "string", "nullable": true},
        "defaulted": {"type": "string", "default": "x"},
        "nested": {
            "type": "object", "default": {},
            "properties": {"level": {"type": "integer", "default": 3}},
        },
        "free": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": text}}},
        },
        "map": {"type": "object", "additionalProperties": {
            "type": "object", "properties": {"v": {"type": "integer", "default": 1}},
        }},
        "closed": {"type": "object"},
        "template": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object", "properties": {"a": text}}},
        },
        "port": {"x-kubernetes-int-or-string": true},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "plain": {"type": "array", "items": {
            "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string", "default": "y"}},
        }},
        "steps": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object", "required": ["name"],
                "properties": {"name": text, "count": {"type": "integer"}},
                "x-kubernetes-validations": [
                    {"rule": "self.count >= oldSelf.count", "message": "count never shrinks"},
                ],
            },
        },
    })
}

#[test]
fn what_is_stored_is_pruned_and_defaulted() {
    let pod = |more: Value| {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": "b"},
        });
        for (field, value) in more.as_object().unwrap() {
            pod[field] = value.clone();
        }
        pod
    };
    // What is given, and what is stored of it beside the defaults.
    let cases = [
        (json!({}), json!({})),
        (json!({"unknown": 1, "text": "a"}), json!({"text": "a"})),
        // A null is absence where it is not a value.
        (json!({"text": null}), json!({})),
        (json!({"nullable": null}), json!({"nullable": null})),
        (json!({"defaulted": null, "nested": null}), json!({})),
        (json!({"nested": {"level": null, "other": 1}}), json!({})),
        (
            json!({"nested": {"level": 5}}),
            json!({"nested": {"level": 5}}),
        ),
        (
            json!({"steps": null, "map": {"one": null}}),
            json!({"map": {}}),
        ),
        (
            json!({"free": {"known": {"a": "x", "b": 1}, "other": {"c": null}}}),
            json!({"free": {"known": {"a": "x"}, "other": {"c": null}}}),
        ),
        (
            json!({"map": {"one": {}, "two": {"v": 5, "w": 1}}}),
            json!({"map": {"one": {"v": 1}, "two": {"v": 5}}}),
        ),
        (json!({"closed": {"any": 1}}), json!({"closed": {}})),
        (
            json!({"template": pod(json!({"spec": {"a": "b", "c": 1}, "other": 1}))}),
            json!({"template": pod(json!({}))}),
        ),
        (json!({"port": 80}), json!({"port": 80})),
        (json!({"port": "80%"}), json!({"port": "80%"})),
        (
            json!({"plain": [{"a": 1, "c": 1}, {"b": "z"}]}),
            json!({"plain": [{"a": 1, "b": "y"}, {"b": "z"}]}),
        ),
    ];
    for (given, stored) in cases {
        let server = with_gadgets(&properties(), &json!([]));
        let mut wanted = json!({"defaulted": "x", "nested": {"level": 3}});
        for (field, value) in stored.as_object().unwrap() {
            wanted[field] = value.clone();
        }
        let made = must(server.create(&GADGETS, "", gadget(&given)));
        assert_eq!(made["spec"], wanted, "created from {given}");
        must(server.update(&GADGETS, gadget(&json!({"text": "before"}))));
        let updated = must(server.update(&GADGETS, gadget(&given)));
        assert_eq!(updated["spec"], wanted, "updated to {given}");
    }
}

#[test]
fn what_breaks_the_schema_is_refused_with_its_place() {
    let cases = [
        (
            json!({"text": 1}),
            "spec.text in body must be of type string: \"integer\"",
        ),
        (
            json!({"port": 1.5}),
            "spec.port in body must be of type integer,string: \"number\"",
        ),
        (
            json!({"set": ["a", "b", "a"]}),
            "spec.set[2]: Duplicate value: \"a\"",
        ),
        (
            json!({"plain": [null]}),
            "spec.plain[0] in body must be of type object: \"null\"",
        ),
        (
            json!({"map": {"one": {"v": "1"}}}),
            "spec.map.one.v in body must be of type integer",
        ),
        (
            json!({"map": {"one": 1}}),
            "spec.map.one in body must be of type object",
        ),
        (
            json!({"steps": [{"count": 1}]}),
            "spec.steps[0].name: Required value",
        ),
        (
            json!({"steps": [{"name": null}]}),
            "spec.steps[0].name: Required value",
        ),
        (
            json!({"steps": [{"name": "a"}, {"name": "a", "count": 1}]}),
            "spec.steps[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (
            json!({"template": {"kind": "Pod"}}),
            "spec.template.apiVersion: Required value: must not be empty",
        ),
        (
            json!({"template": {"apiVersion": "v1"}}),
            "spec.template.kind: Required value: must not be empty",
        ),
    ];
    for (spec, words) in cases {
        let server = with_gadgets(&properties(), &json!([]));
        let refusal = server.create(&GADGETS, "", gadget(&spec)).unwrap_err();
        assert_eq!(refusal.code, 422);
        assert!(refusal.message.contains(words), "{refusal}\nlacks {words}");
    }
}

/// Items of such lists are compared with what they were, wherever they stand.
#[test]
fn rules_about_changes_follow_the_items_of_a_list() {
    let server = with_gadgets(&properties(), &json!([]));
    let steps = |steps: Value| gadget(&json!({"steps": steps}));
    let first = steps(json!([{"name": "a", "count": 2}, {"name": "b", "count": 1}]));
    must(server.create(&GADGETS, "", first));
    let shrunk = steps(json!([{"name": "b", "count": 1}, {"name": "a", "count": 1}]));
    let refusal = server.update(&GADGETS, shrunk).unwrap_err();
    let words = "spec.steps[1]: Invalid value: \"object\": count never shrinks";
    assert!(refusal.message.contains(words), "{refusal}");
    let grown =
        json!([{"name": "b", "count": 1}, {"name": "c", "count": 0}, {"name": "a", "count": 3}]);
    must(server.update(&GADGETS, steps(grown)));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unknown_fields_of_custom_kinds_are_those_that_would_be_pruned() {
    let cases = [
        (json!({"unknown": 1}), Some("spec.unknown")),
        (json!({"nested": {"other": 1}}), Some("spec.nested.other")),
        (json!({"map": {"one": {"w": 1}}}), Some("spec.map.one.w")),
        (json!({"closed": {"any": 1}}), Some("spec.closed.any")),
        (json!({"plain": [{"c": 1}]}), Some("spec.plain[0].c")),
        (
            json!({"free": {"known": {"b": 1}}}),
            Some("spec.free.known.b"),
        ),
        (json!({"free": {"other": 1}}), None),
        (
            json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}}),
            None,
        ),
        (
            json!({"template": {"apiVersion": "v1", "kind": "Pod", "other": 1}}),
            Some("spec.template.other"),
        ),
    ];
    for (spec, field) in cases {
        let server = with_gadgets(&properties(), &json!([]));
        let line = "POST /apis/example.com/v1/gadgets?fieldValidation=Strict";
        let answer = send(&server, line, "json", &gadget(&spec)).await;
        assert_eq!(
            answer.code,
            if field.is_some() { 400 } else { 201 },
            "{spec}: {answer:?}"
        );
        if let Some(field) = field {
            let words = format!("strict decoding error: unknown field {field:?}");
            assert!(answer.message().ends_with(&words), "{answer:?}");
        }
    }
}
