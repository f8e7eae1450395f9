//! What selectors select, as tables.

use api_server::{FieldSelector, ParsedLabelSelector};
use serde_json::{Value, json};

use crate::rig::must;

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
        (expression("Around", Value::Null), false),
        (Value::Null, true),
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

#[test]
fn label_selectors_that_no_label_can_satisfy_are_refused() {
    for text in [
        "=x",
        "!",
        "a/b/c",
        "-a",
        "x y=z",
        "app=a b",
        "app=-x",
        "app!=x/y",
        "app in (a,-b)",
        "app notin (a b)",
    ] {
        let refusal = ParsedLabelSelector::parse(text).unwrap_err();
        assert_eq!(refusal.code, 400, "{text:?}");
    }
    for text in [
        "app=",
        "app in ()",
        "example.com/App_1.x in (A_1.x)",
        "a>-1",
    ] {
        must(ParsedLabelSelector::parse(text));
    }
}
