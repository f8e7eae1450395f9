//! Rules in CEL: what they may speak of, what refusals say, and when a stricter definition counts.

use std::sync::Arc;

use api_server::{NamespacedName, Resource, Selection, StatusError};
use serde_json::{Value, json};

use crate::rig::{GADGETS, gadget, gadgets, must, server, with_gadgets};

/// Creates a gadget under these rules, or changes the one before into it.
fn write(rules: &Value, before: Option<Value>, spec: &Value) -> Result<Arc<Value>, StatusError> {
    let free = json!({
        "text": {"type": "string"}, "low": {"type": "integer"}, "high": {"type": "integer"},
    });
    let server = with_gadgets(&free, rules);
    let Some(before) = before else {
        return server.create(&GADGETS, "", gadget(spec));
    };
    must(server.create(&GADGETS, "", gadget(&before)));
    server.update(&GADGETS, gadget(spec))
}

#[test]
fn rules_speak_of_the_object_and_of_what_it_was() {
    let rule = |rule: &str| json!([{"rule": rule, "message": "no"}]);
    // A rule, what is there before, what is written, and whether it may be.
    let cases = [
        (
            rule("self.low <= self.high"),
            None,
            json!({"low": 1, "high": 2}),
            true,
        ),
        (
            rule("self.low <= self.high"),
            None,
            json!({"low": 3, "high": 2}),
            false,
        ),
        (rule("!has(self.low)"), None, json!({"low": null}), true),
        (
            rule("self.text.matches('^a.c$')"),
            None,
            json!({"text": "abc"}),
            true,
        ),
        (
            rule("self.text.matches('^a.c$')"),
            None,
            json!({"text": "abd"}),
            false,
        ),
        // What cannot be evaluated is not taken for true.
        (rule("self.low > 0"), None, json!({}), false),
        (
            rule("self.low == oldSelf.low"),
            None,
            json!({"low": 1}),
            true,
        ),
        (
            rule("self.low == oldSelf.low"),
            Some(json!({"low": 1})),
            json!({"low": 1, "text": "a"}),
            true,
        ),
        (
            rule("self.low == oldSelf.low"),
            Some(json!({"low": 1})),
            json!({"low": 2}),
            false,
        ),
    ];
    for (rules, before, spec, is_taken) in cases {
        let answer = write(&rules, before, &spec);
        assert_eq!(answer.is_ok(), is_taken, "{rules}: {spec}: {answer:?}");
    }
}

/// Such a rule is asked of new objects, too, and looks itself whether there was one before.
#[test]
fn a_rule_may_do_without_what_was() {
    let rules = json!([{"rule": "oldSelf.hasValue() || self.low == 1", "optionalOldSelf": true}]);
    let cases = [
        (None, 1, true),
        (None, 2, false),
        (Some(json!({"low": 1})), 2, true),
    ];
    for (before, low, is_taken) in cases {
        let answer = write(&rules, before, &json!({"low": low}));
        assert_eq!(answer.is_ok(), is_taken, "{low}: {answer:?}");
    }
}

#[test]
fn refusals_by_rules_say_what_the_rule_says() {
    let free = json!({"text": {"type": "string"}, "low": {"type": "integer"}});
    let cases = [
        (
            json!({"rule": "self.low < 1"}),
            "spec: Invalid value: \"object\": failed rule: self.low < 1",
        ),
        (
            json!({"rule": "self.low < 1", "message": "too high", "fieldPath": ".low"}),
            "spec.low: Invalid value: \"object\": too high",
        ),
        (
            json!({"rule": "self.low < 1", "reason": "FieldValueForbidden",
                "message": "not shown", "messageExpression": "'too high for ' + self.text"}),
            "spec: Forbidden: too high for a",
        ),
        (
            json!({"rule": "self.low < 1", "message": "shown", "messageExpression": "self.none"}),
            "spec: Invalid value: \"object\": shown",
        ),
    ];
    for (rule, words) in cases {
        let server = with_gadgets(&free, &json!([rule]));
        let given = gadget(&json!({"low": 1, "text": "a"}));
        let refusal = server.create(&GADGETS, "", given).unwrap_err();
        assert!(refusal.message.contains(words), "{refusal}\nlacks {words}");
    }
}

#[test]
fn definitions_whose_rules_cannot_be_compiled_are_refused() {
    let pattern = json!({"text": {"type": "string", "pattern": "(a"}});
    let none = json!({});
    for (properties, rules) in [(&none, json!([{"rule": "self.("}])), (&pattern, json!([]))] {
        let server = server();
        let refusal = server
            .install_crd(&gadgets(properties, &rules))
            .unwrap_err();
        assert_eq!(refusal.code, 422, "{refusal}");
        assert!(refusal.message.contains("openAPIV3Schema"), "{refusal}");
        let definitions = Resource::CUSTOM_RESOURCE_DEFINITIONS;
        assert!(
            server
                .list(&definitions, &Selection::everything())
                .is_empty()
        );
    }
}

/// What was let in before a rule came is not held against who changes something else.
#[test]
fn a_stricter_schema_looks_at_what_changes() {
    let free = json!({"text": {"type": "string"}, "low": {"type": "integer"}});
    let server = with_gadgets(&free, &json!([]));
    must(server.create(&GADGETS, "", gadget(&json!({"text": "abcdef", "low": 1}))));
    let mut strict = free;
    strict["text"]["maxLength"] = 3.into();
    must(server.update(
        &Resource::CUSTOM_RESOURCE_DEFINITIONS,
        gadgets(&strict, &json!([])),
    ));
    must(server.update(&GADGETS, gadget(&json!({"text": "abcdef", "low": 2}))));
    let refusal = server.update(&GADGETS, gadget(&json!({"text": "abcdefg", "low": 2})));
    assert_eq!(refusal.unwrap_err().code, 422);
    // The server keeps what it had.
    let key = NamespacedName::new("", "g");
    let kept = must(server.modify(&GADGETS, &key, |_| {}));
    assert_eq!(kept["spec"], json!({"text": "abcdef", "low": 2}));
}
