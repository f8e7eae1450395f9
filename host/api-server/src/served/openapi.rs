//! OpenAPI: schemas for `kubectl explain` and for clients that ask whether the server validates fields.
//!
//! Built-in schemas come from the typed API, custom ones from their definitions; documents are made on request.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::api_server::ApiServer;
use crate::builtin;
use crate::request::answer::{ApiResponse, answer_bytes, answer_json};
use crate::served::discovery;
use crate::served::kinds::{Kinds, ServedKind};
use crate::status::StatusError;

/// Answers a path under `/openapi/`.
pub(crate) fn answer(
    server: &ApiServer,
    path: &str,
    prefix: &str,
) -> Result<ApiResponse, StatusError> {
    let (kinds, minor) = server.with(|store| (store.kinds.clone(), store.kubernetes_minor));
    match path {
        "/openapi/v2" => Ok(answer_bytes(200, V2_TYPE, V2_EMPTY.to_vec())),
        "/openapi/v3" => Ok(answer_json(200, &index(&kinds, prefix))),
        _ => {
            let steps: Vec<&str> = path.split('/').skip(3).collect();
            let (group, version) = match steps.as_slice() {
                ["api", version] => ("", *version),
                ["apis", group, version] => (*group, *version),
                _ => return Err(StatusError::no_such_resource()),
            };
            let mut document = document(&kinds, group, version);
            document["info"]["version"] = format!("v1.{minor}.0").into();
            Ok(answer_json(200, &document))
        }
    }
}

fn root_of(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

fn index(kinds: &Kinds, prefix: &str) -> Value {
    let mut paths = Map::new();
    for (group, versions) in discovery::groups(kinds) {
        for version in versions {
            let root = root_of(&group, &version);
            let link = json!({"serverRelativeURL": format!("{prefix}/openapi/v3/{root}")});
            paths.insert(root, link);
        }
    }
    json!({ "paths": paths })
}

/// Name of a kind's schema: the group reversed, as controller-gen and Kubernetes name them.
fn schema_name(kind: &ServedKind, version: &str) -> String {
    let mut parts: Vec<&str> = kind.group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{}", parts.join("."), kind.kind)
}

fn document(kinds: &Kinds, group: &str, version: &str) -> Value {
    let mut generator = builtin::kinds::schema_generator();
    let mut schemas = BTreeMap::new();
    let mut paths = Map::new();
    for kind in kinds.iter() {
        if kind.group != group || !kind.versions.iter().any(|v| v == version) {
            continue;
        }
        let marker = json!({"group": group, "version": version, "kind": kind.kind});
        let name = schema_name(kind, version);
        if let Some(custom) = kind.custom.get(version) {
            // Text that was written from a value reads back.
            let mut schema: Value = serde_json::from_str(&custom.source).unwrap_or_default();
            schema["x-kubernetes-group-version-kind"] = json!([marker]);
            complete_custom(&mut schema);
            schemas.insert(name.clone(), schema);
        } else if builtin::kinds::add_schema(group, &kind.kind, &mut generator).is_none() {
            continue;
        }
        let root = root_of(group, version);
        let plural = &kind.resource.plural;
        let place = if kind.is_namespaced {
            "namespaces/{namespace}/"
        } else {
            ""
        };
        paths.insert(
            format!("/{root}/{place}{plural}/{{name}}"),
            operations(&marker, &reference(kind, &name)),
        );
    }
    for (name, schema) in generator.take_definitions(true) {
        schemas.insert(name, schema);
    }
    mark_builtin(kinds, group, version, &mut schemas);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Mortise's simulated Kubernetes"},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Where the schema of a kind is: built-in ones are under the names the typed API gives them.
fn reference(kind: &ServedKind, custom_name: &str) -> String {
    if kind.is_custom() {
        return format!("#/components/schemas/{custom_name}");
    }
    let mut generator = builtin::kinds::schema_generator();
    builtin::kinds::add_schema(&kind.group, &kind.kind, &mut generator)
        .and_then(|schema| {
            schema
                .get("$ref")
                .and_then(Value::as_str)
                .map(str::to_owned)
        })
        .unwrap_or_default()
}

fn operations(marker: &Value, reference: &str) -> Value {
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let parameters = ["dryRun", "fieldManager", "fieldValidation"].map(parameter);
    let content = json!({"application/json": {"schema": {"$ref": reference}}});
    let operation = |action: &str| {
        json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": marker,
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content}},
        })
    };
    let mut patch = operation("patch");
    patch["parameters"] = json!([
        parameter("dryRun"),
        parameter("fieldManager"),
        parameter("fieldValidation"),
        parameter("force"),
    ]);
    // Strategic merge patch is left out on purpose: kubectl then takes the merge keys it has built in.
    patch["requestBody"] = json!({"content": {
        "application/apply-patch+yaml": {"schema": {"type": "object"}},
        "application/json-patch+json": {"schema": {"type": "object"}},
        "application/merge-patch+json": {"schema": {"type": "object"}},
    }});
    json!({
        "get": operation("get"), "put": operation("put"), "patch": patch,
        "delete": operation("delete"),
    })
}

/// Custom schemas say little of the fields that every object has.
fn complete_custom(schema: &mut Value) {
    let text = |description: &str| json!({"type": "string", "description": description});
    let fields = &mut schema["properties"];
    for (name, description) in [
        ("apiVersion", "Group and version of the object's schema."),
        ("kind", "Kind of the object."),
    ] {
        if fields[name].is_null() {
            fields[name] = text(description);
        }
    }
    if fields["metadata"]["properties"].is_null() {
        fields["metadata"] =
            json!({"type": "object", "description": "Standard object's metadata."});
    }
}

/// Marks the built-in schemas with their group, version and kind, by which clients look them up.
fn mark_builtin(kinds: &Kinds, group: &str, version: &str, schemas: &mut BTreeMap<String, Value>) {
    for kind in kinds.iter().filter(|k| k.group == group && !k.is_custom()) {
        let reference = reference(kind, "");
        let Some(name) = reference.rsplit('/').next() else {
            continue;
        };
        if let Some(schema) = schemas.get_mut(name) {
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": group, "version": version, "kind": kind.kind}]);
        }
    }
}

/// kubectl reads version 2 in protobuf only, and asks for it only about kinds that are not served: an empty document
/// says that nothing is known of them.
const V2_EMPTY: &[u8] = b"\x0a\x032.0";
const V2_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
