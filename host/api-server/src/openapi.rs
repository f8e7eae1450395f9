//! OpenAPI: schemas for `kubectl explain` and for clients that ask whether the server validates fields.
//!
//! Built-in schemas come from the typed API, custom ones from their definitions; documents are made on request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use crate::answer::{ApiResponse, answer_bytes, answer_json};
use crate::builtin;
use crate::direct::ApiServer;
use crate::discovery;
use crate::kinds::{Kinds, ServedKind};
use crate::schema::{References, Schema};
use crate::status::StatusError;
use crate::sync::lock;

/// Answers a path under `/openapi/`.
pub(super) fn answer(
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
    let mut generator = generator();
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
    let mut generator = generator();
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

fn generator() -> schemars::SchemaGenerator {
    schemars::generate::SchemaSettings::openapi3().into_generator()
}

/// kubectl reads version 2 in protobuf only, and asks for it only about kinds that are not served: an empty document
/// says that nothing is known of them.
const V2_EMPTY: &[u8] = b"\x0a\x032.0";
const V2_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Compiled schemas of the built-in kinds, made when first asked for.
struct CompiledSchemas {
    /// By group and kind.
    kinds: BTreeMap<(String, String), Option<Arc<Schema>>>,
    /// What they refer to, by the names of the typed API: a pod's specification is part of seven kinds.
    definitions: BTreeMap<String, Arc<Schema>>,
}

static COMPILED: Mutex<CompiledSchemas> = Mutex::new(CompiledSchemas {
    kinds: BTreeMap::new(),
    definitions: BTreeMap::new(),
});

/// The compiled schema of a built-in kind.
pub(super) fn builtin_schema(group: &str, kind: &str) -> Option<Arc<Schema>> {
    let mut compiled = lock(&COMPILED);
    let CompiledSchemas { kinds, definitions } = &mut *compiled;
    let compile = || {
        let mut generator = generator();
        let root = builtin::kinds::add_schema(group, kind, &mut generator)?;
        let mut references = BuiltinReferences {
            sources: &generator.take_definitions(true),
            compiled: definitions,
            within: Vec::new(),
        };
        Schema::compile_shared(&root.to_value(), &mut references).ok()
    };
    kinds
        .entry((group.to_owned(), kind.to_owned()))
        .or_insert_with(compile)
        .clone()
}

/// What the schemas of the typed API refer to.
struct BuiltinReferences<'a> {
    sources: &'a Map<String, Value>,
    compiled: &'a mut BTreeMap<String, Arc<Schema>>,
    /// Names of the definitions that are being compiled, from the outside in.
    within: Vec<String>,
}

impl References for BuiltinReferences<'_> {
    fn resolve(&mut self, source: &Value) -> Option<Result<Arc<Schema>, String>> {
        // A reference with a description beside it comes wrapped.
        let source = match source["allOf"].as_array().map(Vec::as_slice) {
            Some([only]) => only,
            _ => source,
        };
        let name = source["$ref"].as_str()?.rsplit('/').next()?;
        Some(self.definition(name))
    }
}

impl BuiltinReferences<'_> {
    fn definition(&mut self, name: &str) -> Result<Arc<Schema>, String> {
        if let Some(known) = self.compiled.get(name) {
            return Ok(Arc::clone(known));
        }
        // Both are read from text and from numbers.
        let is_either = name.ends_with(".Quantity") || name.ends_with(".IntOrString");
        let Some(source) = self.sources.get(name).filter(|_| !is_either) else {
            return Ok(Arc::default());
        };
        // A schema within itself (JSONSchemaProps) stays open.
        if self.within.iter().any(|outer| outer == name) {
            return Ok(Arc::new(Schema::open()));
        }
        self.within.push(name.to_owned());
        let compiled = Schema::compile_shared(source, self);
        self.within.pop();
        let compiled = compiled?;
        self.compiled.insert(name.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }
}
