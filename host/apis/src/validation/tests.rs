//! Faults that only the controller finds.

use rstest::rstest;
use serde_json::{Value, json};

use super::{is_label_value, is_qualified_name, message, node_overlay, node_pool};
use crate::{NodeOverlay, NodePool};

fn pool(template: &Value, spec: &Value) -> NodePool {
    let mut object = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}}},
    });
    for (part, fields) in [("spec", template), ("metadata", &template["metadata"])] {
        for (name, field) in fields
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != "metadata")
        {
            object["spec"]["template"][part][name] = field.clone();
        }
    }
    for (name, field) in spec.as_object().into_iter().flatten() {
        object["spec"][name] = field.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn check(template: &Value, expected: &str) {
    assert_eq!(message(&node_pool(&pool(template, &json!({})))), expected);
}

#[rstest]
#[case("team", "a", "")]
#[case("node.kubernetes.io/lifecycle", "x", "")]
#[case("karpenter.sh/capacity-type", "spot", "")]
#[case(
    "karpenter.sh/nodepool",
    "x",
    r#"spec.template.metadata.labels: "karpenter.sh/nodepool": label is restricted"#
)]
#[case(
    "kubernetes.io/hostname",
    "x",
    r#"spec.template.metadata.labels: "kubernetes.io/hostname": label is restricted"#
)]
#[case(
    "karpenter.sh/registered",
    "true",
    r#"spec.template.metadata.labels: "karpenter.sh/registered": label domain "karpenter.sh" is restricted; allowed are its well-known labels only"#
)]
#[case("notkarpenter.sh/x", "true", "")]
#[case(
    "team",
    "a b",
    r#"spec.template.metadata.labels[team]: "a b": not a label value: want at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends"#
)]
fn template_labels(#[case] key: &str, #[case] value: &str, #[case] expected: &str) {
    check(&json!({"metadata": {"labels": {key: value}}}), expected);
}

#[rstest]
#[case::alias(json!({"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"]}), "")]
#[case::exists(json!({"key": "example.com/a", "operator": "Exists"}), "")]
#[case::node_pool(
    json!({"key": "karpenter.sh/nodepool", "operator": "Exists"}),
    r#"spec.template.spec.requirements[0].key: "karpenter.sh/nodepool": label is restricted"#
)]
#[case::sub_domain(
    json!({"key": "x.karpenter.k8s.aws/a", "operator": "Exists"}),
    r#"spec.template.spec.requirements[0].key: "x.karpenter.k8s.aws/a": label domain "x.karpenter.k8s.aws" is restricted; allowed are its well-known labels only"#
)]
#[case::no_values(
    json!({"key": "a", "operator": "In"}),
    r#"spec.template.spec.requirements[0].values: "a In []": operator In must have a value defined"#
)]
#[case::few_values(
    json!({"key": "a", "operator": "In", "values": ["x"], "minValues": 2}),
    r#"spec.template.spec.requirements[0].values: "a In [x]": operator In with minValues 2 must have at least that many values, has 1"#
)]
#[case::bound(
    json!({"key": "a", "operator": "Gt", "values": ["many"]}),
    r#"spec.template.spec.requirements[0].values: "a Gt [many]": operator Gt must have a single positive integer value"#
)]
#[case::no_capacity_type(
    json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["cheap"]}),
    r#"spec.template.spec.requirements[0].values: "karpenter.sh/capacity-type In [cheap]": no valid value, want one of spot, on-demand, reserved"#
)]
#[case::one_capacity_type_of_two(
    json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["cheap", "spot"]}),
    ""
)]
#[case::few_capacity_types(
    json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["cheap", "spot"], "minValues": 2}),
    r#"spec.template.spec.requirements[0].values: "karpenter.sh/capacity-type In [cheap spot]": operator In with minValues 2 must have at least that many values, has 1"#
)]
#[case::not_in_any_capacity_type(
    json!({"key": "karpenter.sh/capacity-type", "operator": "NotIn", "values": ["cheap"]}),
    ""
)]
fn requirements(#[case] requirement: Value, #[case] expected: &str) {
    check(&json!({"requirements": [requirement]}), expected);
}

#[test]
fn taints_may_not_clash_across_both_lists() {
    let taint = json!({"key": "gpu", "value": "a", "effect": "NoSchedule"});
    let other_effect = json!({"key": "gpu", "value": "b", "effect": "NoExecute"});
    check(&json!({"taints": [taint, other_effect]}), "");
    check(
        &json!({"taints": [taint], "startupTaints": [taint]}),
        r#"spec.template.spec.startupTaints[0]: "gpu": duplicate taint key and effect NoSchedule"#,
    );
}

#[test]
fn all_faults_are_told_at_once() {
    let template = json!({
        "taints": [{"key": "a b", "effect": "NoSchedule"}],
        "requirements": [{"key": "/x", "operator": "Exists"}],
    });
    assert_eq!(
        node_pool(&pool(
            &template,
            &json!({"disruption": {"budgets": [{"nodes": "half"}]}})
        ))
        .len(),
        3
    );
}

#[test]
fn overlays_cannot_change_well_known_resources() {
    let overlay: NodeOverlay = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "o"},
        "spec": {"requirements": [], "capacity": {"cpu": "1", "example.com/fuse": "2"}, "price": "dear"},
    }))
    .unwrap();
    assert_eq!(
        message(&node_overlay(&overlay)),
        r#"spec.price: "dear": not a price or adjustment; spec.capacity: "cpu": resource cannot be overlaid"#
    );
}

#[rstest]
#[case(json!({"price": "0.5"}), "")]
#[case(json!({"priceAdjustment": "-10%"}), "")]
#[case(json!({"price": "50%"}), r#"spec.price: "50%": not a price or adjustment"#)]
#[case(json!({"price": "+1"}), r#"spec.price: "+1": not a price or adjustment"#)]
#[case(json!({"price": "1.2.3"}), r#"spec.price: "1.2.3": not a price or adjustment"#)]
#[case(json!({"priceAdjustment": "1"}), r#"spec.priceAdjustment: "1": not a price or adjustment"#)]
#[case(json!({"priceAdjustment": "-+1"}), r#"spec.priceAdjustment: "-+1": not a price or adjustment"#)]
#[case(json!({"priceAdjustment": "+5%%"}), r#"spec.priceAdjustment: "+5%%": not a price or adjustment"#)]
fn prices_of_overlays(#[case] prices: Value, #[case] expected: &str) {
    let mut object = json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "o"},
        "spec": {"requirements": []},
    });
    for (field, price) in prices.as_object().into_iter().flatten() {
        object["spec"][field] = price.clone();
    }
    let overlay: NodeOverlay = serde_json::from_value(object).unwrap();
    let faults = node_overlay(&overlay);
    assert_eq!(message(&faults), expected);
    assert_eq!(
        overlay.spec.price_change().is_some(),
        faults.is_empty(),
        "what is applied is what was found sound"
    );
}

#[rstest]
#[case("a", true)]
#[case("A_b.c-9", true)]
#[case("example.com/a", true)]
#[case("", false)]
#[case("-a", false)]
#[case("a-", false)]
#[case("a/b/c", false)]
#[case("Example.com/a", false)]
#[case("/a", false)]
#[case("example.com/", false)]
fn qualified_names(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(is_qualified_name(text), expected);
}

#[test]
fn lengths_are_bounded() {
    assert!(
        is_label_value("") && is_label_value(&"a".repeat(63)) && !is_label_value(&"a".repeat(64))
    );
    assert!(is_qualified_name(&format!(
        "{}/{}",
        "a".repeat(253),
        "b".repeat(63)
    )));
    assert!(!is_qualified_name(&format!("{}/b", "a".repeat(254))));
}
