//! The definitions' CEL rules, tried on samples as the API server would try them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use cel::objects::{Key, Map};
use cel::{Context, Program, Value as Cel};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rstest::rstest;
use serde_json::{Value, json};

use crate::crd;

/// Schema of every kind; making them takes longer than all samples together.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let schema = |crd: CustomResourceDefinition| {
        let schema = crd.spec.versions[0]
            .schema
            .as_ref()
            .unwrap()
            .open_api_v3_schema
            .clone();
        (crd.spec.names.kind, serde_json::to_value(schema).unwrap())
    };
    crd::all().into_iter().map(schema).collect()
});

/// Messages of the rules that `new` (in place of `old`, when given) breaks.
fn broken_rules(kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut broken = Vec::new();
    check(&SCHEMAS[kind], new, old, &mut broken);
    broken
}

fn check(schema: &Value, new: &Value, old: Option<&Value>, broken: &mut Vec<String>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let text = rule["rule"].as_str().unwrap();
        if text.contains("oldSelf") && old.is_none() {
            continue;
        }
        let mut context = Context::default();
        context.add_variable_from_value("self", to_cel(new));
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", to_cel(old));
        }
        let program = Program::compile(text).unwrap();
        if program.execute(&context).ok() != Some(Cel::Bool(true)) {
            broken.push(rule["message"].as_str().unwrap().to_owned());
        }
    }
    match new {
        Value::Object(fields) => {
            for (name, field) in fields {
                let inner = schema["properties"]
                    .get(name)
                    .unwrap_or_else(|| &schema["additionalProperties"]);
                check(inner, field, old.and_then(|old| old.get(name)), broken);
            }
        }
        // Lists are atomic, so what is inside them has no former self.
        Value::Array(items) => items
            .iter()
            .for_each(|item| check(&schema["items"], item, None, broken)),
        _ => {}
    }
}

/// As the API server's CEL sees it: every whole number is an int.
fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => Cel::Int(number.as_i64().unwrap()),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let map = fields
                .iter()
                .map(|(name, field)| (Key::String(Arc::new(name.clone())), to_cel(field)))
                .collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

fn sample(kind: &str) -> Value {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    match kind {
        "NodePool" => json!({"spec": {"template": {"spec": {
            "nodeClassRef": class,
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
        }}}}),
        "NodeClaim" => json!({"spec": {
            "nodeClassRef": class,
            "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["default"]}],
        }}),
        "NodeOverlay" => json!({"spec": {"requirements": [], "price": "0.1"}}),
        "CapacityBuffer" => json!({"spec": {"podTemplateRef": {"name": "web"}, "replicas": 3}}),
        "EC2NodeClass" => json!({"spec": {
            "role": "node",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "c"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "c"}}],
        }}),
        other => panic!("no sample of {other}"),
    }
}

/// Lays `patch` over `base`: objects merge, null removes, all else replaces.
fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (name, field) in patch {
                if field.is_null() {
                    base.remove(name);
                } else {
                    merge(base.entry(name.clone()).or_insert_with(|| json!({})), field);
                }
            }
        }
        (base, patch) => *base = patch.clone(),
    }
}

fn patched(kind: &str, patch: &Value) -> Value {
    let mut object = sample(kind);
    merge(&mut object, patch);
    object
}

#[rstest]
fn sample_breaks_no_rule(
    #[values(
        "NodePool",
        "NodeClaim",
        "NodeOverlay",
        "CapacityBuffer",
        "EC2NodeClass"
    )]
    kind: &str,
) {
    assert_eq!(
        broken_rules(kind, &sample(kind), None),
        Vec::<String>::new()
    );
    assert_eq!(
        broken_rules(kind, &sample(kind), Some(&sample(kind))),
        Vec::<String>::new()
    );
}

fn pool_requirement(requirement: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"requirements": [requirement]}}}})
}

#[rstest]
// A restricted domain is known by its suffix; well-known labels in it pass.
#[case::capacity_type("karpenter.sh/capacity-type", None)]
#[case::instance_family("karpenter.k8s.aws/instance-family", None)]
#[case::node_class("karpenter.k8s.aws/ec2nodeclass", None)]
#[case::kubernetes_domain("node.kubernetes.io/anything", None)]
#[case::own_domain("example.com/team", None)]
#[case::name_alone("team", None)]
#[case::node_pool(
    "karpenter.sh/nodepool",
    Some(r#"label "karpenter.sh/nodepool" is restricted"#)
)]
#[case::registered(
    "karpenter.sh/registered",
    Some(r#"label domain "karpenter.sh" is restricted"#)
)]
#[case::sub_domain(
    "x.karpenter.sh/y",
    Some(r#"label domain "karpenter.sh" is restricted"#)
)]
#[case::suffix(
    "notkarpenter.sh/y",
    Some(r#"label domain "karpenter.sh" is restricted"#)
)]
#[case::hostname(
    "kubernetes.io/hostname",
    Some(r#"label "kubernetes.io/hostname" is restricted"#)
)]
#[case::aws_unknown(
    "karpenter.k8s.aws/other",
    Some(r#"label domain "karpenter.k8s.aws" is restricted"#)
)]
fn node_pool_keys(#[case] key: &str, #[case] message: Option<&str>) {
    let expected: Vec<String> = message.map(str::to_owned).into_iter().collect();
    let as_requirement = patched(
        "NodePool",
        &pool_requirement(&json!({"key": key, "operator": "Exists"})),
    );
    assert_eq!(
        broken_rules("NodePool", &as_requirement, None),
        expected,
        "requirement"
    );
    let as_label = patched(
        "NodePool",
        &json!({"spec": {"template": {"metadata": {"labels": {key: "x"}}}}}),
    );
    assert_eq!(broken_rules("NodePool", &as_label, None), expected, "label");
}

#[rstest]
#[case("karpenter.sh/nodepool", true, true)]
#[case("karpenter.k8s.aws/instance-tenancy", true, false)]
#[case("karpenter.k8s.aws/capacity-reservation-id", true, false)]
#[case("karpenter.k8s.aws/placement-group-id", true, false)]
#[case("karpenter.k8s.aws/instance-cpu", true, true)]
#[case("karpenter.sh/initialized", false, false)]
fn node_claim_and_overlay_keys(
    #[case] key: &str,
    #[case] in_claim: bool,
    #[case] in_overlay: bool,
) {
    let patch = json!({"spec": {"requirements": [{"key": key, "operator": "Exists"}]}});
    assert_eq!(
        broken_rules("NodeClaim", &patched("NodeClaim", &patch), None).is_empty(),
        in_claim
    );
    assert_eq!(
        broken_rules("NodeOverlay", &patched("NodeOverlay", &patch), None).is_empty(),
        in_overlay
    );
}

#[rstest]
#[case::in_without_values(json!({"operator": "In"}), false)]
#[case::in_empty(json!({"operator": "In", "values": []}), false)]
#[case::not_in_without_values(json!({"operator": "NotIn"}), true)]
#[case::gt(json!({"operator": "Gt", "values": ["3"]}), true)]
#[case::lte_zero(json!({"operator": "Lte", "values": ["0"]}), true)]
#[case::gte_negative(json!({"operator": "Gte", "values": ["-1"]}), false)]
#[case::lt_two(json!({"operator": "Lt", "values": ["1", "2"]}), false)]
#[case::gt_word(json!({"operator": "Gt", "values": ["many"]}), false)]
#[case::gt_without_values(json!({"operator": "Gt"}), false)]
#[case::enough_values(json!({"operator": "In", "values": ["a", "b"], "minValues": 2}), true)]
#[case::few_values(json!({"operator": "In", "values": ["a"], "minValues": 2}), false)]
#[case::min_values_of_exists(json!({"operator": "Exists", "minValues": 2}), true)]
fn requirement_values(#[case] mut requirement: Value, #[case] accepted: bool) {
    requirement["key"] = "example.com/x".into();
    for (kind, patch) in [
        ("NodePool", pool_requirement(&requirement)),
        (
            "NodeClaim",
            json!({"spec": {"requirements": [requirement]}}),
        ),
    ] {
        assert_eq!(
            broken_rules(kind, &patched(kind, &patch), None).is_empty(),
            accepted,
            "{kind}"
        );
    }
}

/// One rule broken, or none.
#[rstest]
#[case::budget("NodePool", json!({"disruption": {"budgets": [{"schedule": "@daily"}]}}), "'schedule' must be set")]
#[case::whole_budget("NodePool", json!({"disruption": {"budgets": [{"schedule": "@daily", "duration": "1h"}]}}), "")]
#[case::static_limits("NodePool", json!({"replicas": 2, "limits": {"cpu": "1"}}), "only the limit 'nodes'")]
#[case::static_nodes("NodePool", json!({"replicas": 2, "limits": {"nodes": "3"}}), "")]
#[case::static_no_limits("NodePool", json!({"replicas": 2, "limits": {}}), "")]
#[case::static_weight("NodePool", json!({"replicas": 2, "weight": 5}), "weight is not supported")]
#[case::class_name("NodePool", json!({"template": {"spec": {"nodeClassRef": {"name": ""}}}}), "name may not be empty")]
#[case::both_prices("NodeOverlay", json!({"priceAdjustment": "+1%"}), "cannot set both")]
#[case::overlay_cpu("NodeOverlay", json!({"capacity": {"cpu": "1"}}), "cannot be overlaid")]
#[case::overlay_device("NodeOverlay", json!({"capacity": {"smarter-devices/fuse": "1"}}), "")]
#[case::overlay_not_in("NodeOverlay", json!({"requirements": [{"key": "a", "operator": "NotIn"}]}), "'NotIn'")]
#[case::buffer_bare("CapacityBuffer", json!({"replicas": null}), "needs replicas or limits")]
#[case::buffer_both("CapacityBuffer", json!({"scalableRef": {"kind": "Deployment", "name": "web"}}), "exclude each other")]
#[case::buffer_neither("CapacityBuffer", json!({"podTemplateRef": null, "replicas": null}), "")]
#[case::no_role("EC2NodeClass", json!({"role": null}), "exactly one of ['role', 'instanceProfile']")]
#[case::role_and_profile("EC2NodeClass", json!({"instanceProfile": "p"}), "exactly one of ['role', 'instanceProfile']")]
#[case::profile("EC2NodeClass", json!({"role": null, "instanceProfile": "p"}), "")]
#[case::custom_over_alias("EC2NodeClass", json!({"amiFamily": "Custom"}), "")]
#[case::family_of_alias("EC2NodeClass", json!({"amiFamily": "AL2023"}), "")]
#[case::other_family("EC2NodeClass", json!({"amiFamily": "AL2"}), "must be 'AL2023' or 'Custom'")]
#[case::al2("EC2NodeClass", json!({"amiFamily": "AL2", "amiSelectorTerms": [{"alias": "al2@v1"}]}), "")]
#[case::no_family("EC2NodeClass", json!({"amiSelectorTerms": [{"id": "ami-1"}]}), "must specify amiFamily")]
#[case::windows("EC2NodeClass", json!({"amiSelectorTerms": [{"alias": "windows2022@latest"}]}), "")]
#[case::windows_version("EC2NodeClass", json!({"amiSelectorTerms": [{"alias": "windows2022@1.0"}]}), "only specify version 'latest'")]
#[case::unknown_family("EC2NodeClass", json!({"amiSelectorTerms": [{"alias": "ubuntu@latest"}]}), "family is not supported")]
#[case::two_aliases("EC2NodeClass", json!({"amiSelectorTerms": [{"alias": "al2@v1"}, {"alias": "al2@v2"}]}), "mutually exclusive with other terms")]
#[case::alias_and_id("EC2NodeClass", json!({"amiFamily": "AL2", "amiSelectorTerms": [{"id": "ami-1"}, {"id": "ami-2", "owner": "self"}]}), "'id' is mutually exclusive")]
#[case::id_and_parameter("EC2NodeClass", json!({"amiFamily": "AL2", "amiSelectorTerms": [{"id": "ami-1", "ssmParameter": "/x"}]}), "")]
#[case::no_subnets("EC2NodeClass", json!({"subnetSelectorTerms": []}), "subnetSelectorTerms")]
#[case::empty_subnet_term("EC2NodeClass", json!({"subnetSelectorTerms": [{}]}), "subnetSelectorTerms: expected at least one")]
#[case::subnet_id_and_tags("EC2NodeClass", json!({"subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}]}), "subnetSelectorTerms: 'id'")]
#[case::one_bad_subnet_term_of_two("EC2NodeClass", json!({"subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}, {"id": "subnet-2"}]}), "")]
#[case::empty_tag("EC2NodeClass", json!({"subnetSelectorTerms": [{"tags": {"a": ""}}]}), "keys and values may not be empty")]
#[case::group_name_and_id("EC2NodeClass", json!({"securityGroupSelectorTerms": [{"name": "a", "tags": {"a": "b"}}]}), "'name' is mutually exclusive")]
#[case::reservation_id("EC2NodeClass", json!({"capacityReservationSelectorTerms": [{"id": "cr-1", "ownerID": "123456789012"}]}), "capacityReservationSelectorTerms: 'id'")]
#[case::reservation_match("EC2NodeClass", json!({"capacityReservationSelectorTerms": [{"instanceMatchCriteria": "open"}]}), "")]
#[case::placement_none("EC2NodeClass", json!({"placementGroupSelector": {}}), "placementGroupSelector: expected")]
#[case::placement_both("EC2NodeClass", json!({"placementGroupSelector": {"id": "pg-1", "name": "a"}}), "mutually exclusive")]
#[case::two_roots("EC2NodeClass", json!({"blockDeviceMappings": [{"rootVolume": true}, {"rootVolume": true}]}), "only one with rootVolume")]
#[case::one_root("EC2NodeClass", json!({"blockDeviceMappings": [{"rootVolume": true}, {"rootVolume": false}, {}]}), "")]
#[case::volume_without_size("EC2NodeClass", json!({"blockDeviceMappings": [{"ebs": {"encrypted": true}}]}), "snapshotID or volumeSize")]
#[case::rate_without_snapshot("EC2NodeClass", json!({"blockDeviceMappings": [{"ebs": {"volumeSize": "4Gi", "volumeInitializationRate": 100}}]}), "snapshotID must be set")]
#[case::no_primary("EC2NodeClass", json!({"networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "interface"}]}), "primary interface")]
#[case::two_efa("EC2NodeClass", json!({"networkInterfaces": [
    {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
    {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
    {"networkCardIndex": 0, "deviceIndex": 2, "interfaceType": "efa-only"},
]}), "at most one efa-only")]
#[case::one_efa_a_card("EC2NodeClass", json!({"networkInterfaces": [
    {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
    {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
    {"networkCardIndex": 1, "deviceIndex": 0, "interfaceType": "efa-only"},
]}), "")]
#[case::tracking("EC2NodeClass", json!({"connectionTracking": {}}), "at least one timeout")]
#[case::cluster_tag("EC2NodeClass", json!({"tags": {"kubernetes.io/cluster/c": "owned"}}), "kubernetes.io/cluster is restricted")]
#[case::claim_tag("EC2NodeClass", json!({"tags": {"karpenter.sh/nodeclaim": "x"}}), "karpenter.sh/nodeclaim is restricted")]
#[case::own_tag("EC2NodeClass", json!({"tags": {"team": ""}}), "")]
fn spec_rules(#[case] kind: &str, #[case] spec: Value, #[case] message: &str) {
    let broken = broken_rules(kind, &patched(kind, &json!({"spec": spec})), None);
    if message.is_empty() {
        assert_eq!(broken, Vec::<String>::new());
    } else {
        assert!(
            broken.iter().any(|text| text.contains(message)),
            "{broken:?} lacks {message:?}"
        );
    }
}

#[rstest]
#[case::claim("NodeClaim", json!({"expireAfter": "1h"}), "spec is immutable")]
#[case::to_static("NodePool", json!({"replicas": 1}), "replicas cannot be added or removed")]
#[case::class_kind("NodePool", json!({"template": {"spec": {"nodeClassRef": {"kind": "Other"}}}}), "kind is immutable")]
#[case::class_group("NodePool", json!({"template": {"spec": {"nodeClassRef": {"group": "other"}}}}), "group is immutable")]
#[case::class_name("NodePool", json!({"template": {"spec": {"nodeClassRef": {"name": "other"}}}}), "")]
#[case::role("EC2NodeClass", json!({"role": "other"}), "")]
fn change_of_spec(#[case] kind: &str, #[case] spec: Value, #[case] message: &str) {
    let broken = broken_rules(
        kind,
        &patched(kind, &json!({"spec": spec})),
        Some(&sample(kind)),
    );
    if message.is_empty() {
        assert_eq!(broken, Vec::<String>::new());
    } else {
        assert!(
            broken.iter().any(|text| text.contains(message)),
            "{broken:?} lacks {message:?}"
        );
    }
}

/// What a structural schema may not hold, and every object must be told apart from anything.
#[test]
fn schemas_are_structural() {
    fn walk(path: &str, schema: &Value) {
        let object = schema.as_object().unwrap();
        for keyword in ["$ref", "nullable", "oneOf", "allOf", "title", "definitions"] {
            assert!(!object.contains_key(keyword), "{path}: {keyword}");
        }
        let is_free = object.contains_key("x-kubernetes-int-or-string")
            || object.contains_key("x-kubernetes-preserve-unknown-fields");
        assert!(is_free || object.contains_key("type"), "{path}: no type");
        if !path.ends_with("[]")
            && !path.ends_with("{}")
            && !path.is_empty()
            && !path.ends_with(".metadata")
        {
            assert!(object.contains_key("description"), "{path}: no description");
        }
        for (name, inner) in object
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            walk(&format!("{path}.{name}"), inner);
        }
        if let Some(inner) = object.get("items") {
            walk(&format!("{path}[]"), inner);
        }
        if let Some(inner) = object.get("additionalProperties") {
            walk(&format!("{path}{{}}"), inner);
        }
    }
    SCHEMAS.values().for_each(|schema| walk("", schema));
}
