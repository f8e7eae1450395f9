//! Values of a wrong type and fields that a built-in kind does not have, also in what several kinds share.

use api_server::Resource;
use serde_json::{Value, json};

use crate::rig::{WIDGETS, must, pod, send, server, widgets};

const DEPLOYMENTS: &str = "POST /apis/apps/v1/namespaces/default/deployments";
const DEFINITIONS: &str = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "creationTimestamp": null},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "strategy": {},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("a")["spec"]},
        },
    })
}

/// The object with a value put where the pointer leads; its last step may be a field that is not there yet.
fn with(mut object: Value, pointer: &str, value: &Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value.clone();
    object
}

const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn values_of_a_wrong_type_are_refused_wherever_they_are() {
    let port = json!([{"containerPort": "80"}]);
    let refused = [
        (
            "/spec/replicas",
            json!("1"),
            "string",
            ".spec.replicas of type integer",
        ),
        (
            "/spec/replicas",
            json!(1.5),
            "number",
            ".spec.replicas of type integer",
        ),
        (
            "/spec/paused",
            json!("true"),
            "string",
            ".spec.paused of type boolean",
        ),
        (
            "/metadata/labels",
            json!(["a"]),
            "array",
            ".metadata.labels of type object",
        ),
        (
            "/spec/template/metadata/labels/app",
            json!(5),
            "number",
            ".spec.template.metadata.labels.app of type string",
        ),
        (
            "/spec/template/spec/containers",
            json!({"name": "c"}),
            "object",
            ".spec.template.spec.containers of type array",
        ),
        (
            "/spec/template/spec/containers/0",
            json!("c"),
            "string",
            ".spec.template.spec.containers of type object",
        ),
        (
            "/spec/template/spec/containers/0/ports",
            port,
            "string",
            ".spec.template.spec.containers.ports.containerPort of type integer",
        ),
    ];
    for (pointer, value, given, words) in refused {
        let server = server();
        // `pointer_mut` gives items of lists, and `with` names fields only.
        let object = match pointer.rsplit_once("/0") {
            Some((list, "")) => with(deployment(), list, &json!([value])),
            _ => with(deployment(), pointer, &value),
        };
        let answer = send(&server, DEPLOYMENTS, "json", &object).await;
        assert_eq!(answer.code, 400, "{pointer}: {answer:?}");
        let words = format!("cannot unmarshal {given} into Go struct field Deployment{words}");
        assert!(
            answer.message().contains(&words),
            "{answer:?}\nlacks {words}"
        );
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn values_that_may_be_of_several_types_are_taken() {
    let taken = [
        (
            "/spec/strategy/rollingUpdate",
            json!({"maxSurge": 1, "maxUnavailable": "50%"}),
        ),
        ("/spec/template/spec/nodeName", Value::Null),
        (
            "/spec/template/spec/containers/0/resources",
            json!({"requests": {"cpu": 0.5, "memory": "1Gi"}}),
        ),
        (
            "/metadata/managedFields",
            json!([{"manager": "x", "fieldsV1": {"f:spec": {}}}]),
        ),
    ];
    for (pointer, value) in taken {
        let server = server();
        let line = format!("{DEPLOYMENTS}?fieldValidation=Strict");
        let object = with(deployment(), pointer, &value);
        let answer = send(&server, &line, "json", &object).await;
        assert_eq!(answer.code, 201, "{pointer}: {answer:?}");
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unknown_fields_are_found_wherever_they_are() {
    let cases = [
        ("/spec/replica", json!(1), "spec.replica"),
        ("/metadata/label", json!({}), "metadata.label"),
        (
            "/spec/template/metadata/label",
            json!({}),
            "spec.template.metadata.label",
        ),
        (
            "/spec/template/spec/tolerations",
            json!([{"key": "a", "efect": "NoSchedule"}]),
            "spec.template.spec.tolerations[0].efect",
        ),
        (
            "/spec/template/spec/containers/0/imagePullPolcy",
            json!("Always"),
            "spec.template.spec.containers[0].imagePullPolcy",
        ),
        (
            "/spec/template/spec/affinity",
            json!({"nodeAffinity": {"required": {}}}),
            "spec.template.spec.affinity.nodeAffinity.required",
        ),
    ];
    for (pointer, value, field) in cases {
        let object = with(deployment(), pointer, &value);
        for (mode, code) in [("Strict", 400), ("Warn", 201), ("Ignore", 201)] {
            let server = server();
            let line = format!("{DEPLOYMENTS}?fieldValidation={mode}");
            let answer = send(&server, &line, "json", &object).await;
            assert_eq!(answer.code, code, "{pointer}, {mode}: {answer:?}");
            let words = format!("unknown field {field:?}");
            if mode == "Strict" {
                let words = format!("strict decoding error: {words}");
                assert!(
                    answer.message().ends_with(&words),
                    "{answer:?}\nlacks {words}"
                );
            }
            assert_eq!(
                answer.warnings.len(),
                usize::from(mode == "Warn"),
                "{answer:?}"
            );
        }
    }
}

/// A definition's schema is made of schemas like itself, which all have the same fields.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn schemas_of_definitions_are_read_at_any_depth() {
    let spec = format!("{SCHEMA}/properties/spec");
    let at = "spec.versions[0].schema.openAPIV3Schema";
    let unknown = [
        (format!("{SCHEMA}/typo"), json!(1), format!("{at}.typo")),
        (
            format!("{spec}/typo"),
            json!(1),
            format!("{at}.properties.spec.typo"),
        ),
        (
            format!("{spec}/properties/size/minimun"),
            json!(1),
            format!("{at}.properties.spec.properties.size.minimun"),
        ),
        (
            format!("{spec}/properties/parts/items/typo"),
            json!(1),
            format!("{at}.properties.spec.properties.parts.items.typo"),
        ),
        (
            format!("{spec}/additionalProperties"),
            json!({"typo": 1}),
            format!("{at}.properties.spec.additionalProperties.typo"),
        ),
        (
            format!("{spec}/anyOf"),
            json!([{"required": ["size"]}, {"typo": 1}]),
            format!("{at}.properties.spec.anyOf[1].typo"),
        ),
    ];
    for (pointer, value, field) in unknown {
        let object = with(widgets(), &pointer, &value);
        let line = format!("{DEFINITIONS}?fieldValidation=Strict");
        let answer = send(&server(), &line, "json", &object).await;
        assert_eq!(answer.code, 400, "{pointer}: {answer:?}");
        let words = format!("unknown field {field:?}");
        assert!(
            answer.message().ends_with(&words),
            "{answer:?}\nlacks {words}"
        );
    }
    let mistyped = [
        (format!("{spec}/properties/size/type"), json!(5)),
        (format!("{spec}/properties/size/maximum"), json!("9")),
        (format!("{spec}/properties/size"), json!("integer")),
        (format!("{spec}/required"), json!("size")),
        (format!("{spec}/additionalProperties"), json!({"type": 5})),
    ];
    for (pointer, value) in mistyped {
        let object = with(widgets(), &pointer, &value);
        let answer = send(&server(), DEFINITIONS, "json", &object).await;
        assert_eq!(answer.code, 400, "{pointer}: {answer:?}");
        assert!(answer.message().contains("cannot unmarshal"), "{answer:?}");
    }
    let taken = [
        (format!("{spec}/properties/size/enum"), json!([1, 2])),
        (format!("{spec}/properties/size/default"), json!(1)),
        (format!("{spec}/default"), json!({"size": 1})),
        (format!("{spec}/properties/color/example"), json!(["red"])),
        (
            format!("{SCHEMA}/properties/other"),
            json!({"type": "object", "additionalProperties": true}),
        ),
    ];
    for (pointer, value) in taken {
        let object = with(widgets(), &pointer, &value);
        let line = format!("{DEFINITIONS}?fieldValidation=Strict");
        let answer = send(&server(), &line, "json", &object).await;
        assert_eq!(answer.code, 201, "{pointer}: {answer:?}");
    }
}

/// What a patch is made of is looked at like a whole object; what comes of operations, when they are through.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn patches_that_bring_in_a_wrong_type_are_refused() {
    let path = "PATCH /apis/apps/v1/namespaces/default/deployments/d";
    let replicas = json!({"spec": {"replicas": "1"}});
    let operation =
        json!([{"op": "replace", "path": "/spec/template/spec/containers", "value": "c"}]);
    let labels = json!([{"op": "add", "path": "/metadata/labels", "value": "c"}]);
    let cases = [
        ("merge-patch+json", &replicas),
        ("strategic-merge-patch+json", &replicas),
        ("json-patch+json", &operation),
        ("json-patch+json", &labels),
    ];
    for (content, patch) in cases {
        let server = server();
        let made = must(server.create(&Resource::DEPLOYMENTS, "default", deployment()));
        let answer = send(&server, path, content, patch).await;
        assert_eq!(answer.code, 422, "{content}: {answer:?}");
        assert!(answer.message().contains("cannot unmarshal"), "{answer:?}");
        let after = must(server.get(&Resource::DEPLOYMENTS, "default", "d"));
        assert_eq!(after, made, "{content}");
    }
}

/// Of custom kinds the schema tells, and it tells nothing of metadata.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn objects_whose_metadata_is_none_are_refused() {
    let operation = json!([{"op": "replace", "path": "/metadata", "value": 1}]);
    let cases = [
        ("PATCH", "merge-patch+json", json!("x"), 422),
        ("PATCH", "merge-patch+json", json!([1]), 422),
        ("PATCH", "merge-patch+json", json!({"metadata": "x"}), 422),
        ("PATCH", "json-patch+json", operation, 422),
        ("PATCH", "strategic-merge-patch+json", json!({}), 415),
        ("PATCH", "nonsense", json!({}), 415),
        ("PUT", "json", json!({"metadata": "x"}), 422),
        ("PUT", "json", json!([]), 422),
    ];
    for (method, content, body, code) in cases {
        let server = server();
        must(server.install_crd(&widgets()));
        let widget = json!({"metadata": {"name": "w"}, "spec": {"size": 1}});
        let made = must(server.create(&WIDGETS, "", widget));
        let line = format!("{method} /apis/example.com/v1/widgets/w");
        let answer = send(&server, &line, content, &body).await;
        assert_eq!(answer.code, code, "{method} {content} {body}: {answer:?}");
        assert_eq!(must(server.get(&WIDGETS, "", "w")), made, "{method} {body}");
    }
}
