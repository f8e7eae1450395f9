//! CustomResourceDefinitions: from the stored object to a served kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::compile::texts;
use super::{CustomVersion, PrinterColumn, Schema};
use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::served::json_path;
use crate::served::kinds::{ScalePaths, ServedKind};
use crate::status::{FieldError, StatusError};
use crate::store::Store;
use crate::timestamp::time_text;
use crate::write::options::DeleteOptions;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn table_of(definition: &Value) -> Resource {
    let spec = &definition["spec"];
    Resource::new(text(&spec["group"]), text(&spec["names"]["plural"]))
}

/// Serves the kind that a stored definition describes, and writes its conditions.
pub(crate) fn register(store: &mut Store, definition: &Value, kind: ServedKind) {
    let resource = kind.resource.clone();
    store.kinds.register(kind);
    let names = &definition["spec"]["names"];
    let is_established = definition["status"]["conditions"]
        .as_array()
        .is_some_and(|c| c.iter().any(|c| c["type"].as_str() == Some("Established")));
    if is_established && definition["status"]["acceptedNames"] == *names {
        return;
    }
    let now = time_text(store.now());
    let mut changed = definition.clone();
    changed["status"] = json!({
        "acceptedNames": names,
        "storedVersions": [stored_version(definition)],
        "conditions": [
            {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts",
             "message": "no conflicts found", "lastTransitionTime": now},
            {"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
             "message": "the initial names have been accepted", "lastTransitionTime": now},
        ],
    });
    tracing::debug!(%resource, "serving a custom resource");
    store.put(&Resource::CUSTOM_RESOURCE_DEFINITIONS, changed);
}

/// Stops to serve the kind of a definition that is gone, and deletes its objects.
pub(crate) fn unregister(store: &mut Store, definition: &Value) {
    let resource = table_of(definition);
    if let Ok(kind) = store.kind(&resource) {
        let keys: Vec<NamespacedName> = store
            .iter_after(&resource, &crate::Selection::everything(), None)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            // Gone already is as good as deleted.
            let _ = store.delete(&kind, &key, &DeleteOptions::default());
        }
    }
    store.kinds.unregister(&resource);
}

fn column(definition: &Value) -> PrinterColumn {
    let path = definition["jsonPath"].as_str().unwrap_or_default();
    PrinterColumn {
        steps: json_path::parse(path),
        definition: definition.clone(),
    }
}

fn stored_version(definition: &Value) -> String {
    let versions = definition["spec"]["versions"].as_array();
    let stored = versions
        .into_iter()
        .flatten()
        .find(|v| v["storage"].as_bool() == Some(true));
    stored.map(|v| text(&v["name"])).unwrap_or_default()
}

fn scale_paths(scale: &Value) -> ScalePaths {
    ScalePaths {
        spec_replicas: text(&scale["specReplicasPath"]),
        status_replicas: text(&scale["statusReplicasPath"]),
        selector: scale.get("labelSelectorPath").map(text),
    }
}

fn selectable(version: &Value) -> Vec<String> {
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    fields
        .map(|it| text(&it["jsonPath"]).trim_start_matches('.').to_owned())
        .collect()
}

/// Compiles a definition into a kind.
pub(crate) fn compile(definition: &Value) -> Result<ServedKind, StatusError> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let kind = text(&names["kind"]);
    let storage_version = stored_version(definition);
    let mut versions = Vec::new();
    let mut custom = BTreeMap::new();
    let mut scale = None;
    let mut selectable_fields = Vec::new();
    let mut has_status = false;
    for version in spec["versions"].as_array().into_iter().flatten() {
        let name = text(&version["name"]);
        if version["served"].as_bool() == Some(true) {
            versions.push(name.clone());
        }
        let subresources = &version["subresources"];
        if name == storage_version {
            selectable_fields = selectable(version);
            has_status = subresources["status"].is_object();
            let paths = Some(&subresources["scale"]).filter(|it| it.is_object());
            scale = paths.map(scale_paths);
        }
        let columns = version["additionalPrinterColumns"].as_array();
        let columns = columns.into_iter().flatten().map(column).collect();
        let source = &version["schema"]["openAPIV3Schema"];
        let schema = Schema::compile(source).map_err(|problem| {
            let path = format!("spec.versions[{name}].schema.openAPIV3Schema");
            let error = FieldError::invalid(path, &Value::Null, &problem);
            let crd = text(&definition["metadata"]["name"]);
            let group = "apiextensions.k8s.io";
            StatusError::invalid(group, "CustomResourceDefinition", &crd, &[error])
        })?;
        custom.insert(
            name,
            Arc::new(CustomVersion {
                schema,
                source: source.to_string().into(),
                columns,
            }),
        );
    }
    let or_lower = |given: &Value, suffix: &str| match given.as_str() {
        Some(given) if !given.is_empty() => given.to_owned(),
        _ => format!("{}{suffix}", kind.to_ascii_lowercase()),
    };
    Ok(ServedKind {
        resource: table_of(definition),
        group: text(&spec["group"]),
        versions,
        storage_version,
        list_kind: match names["listKind"].as_str() {
            Some(given) if !given.is_empty() => given.to_owned(),
            _ => format!("{kind}List"),
        },
        singular: or_lower(&names["singular"], ""),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        is_namespaced: spec["scope"].as_str() == Some("Namespaced"),
        selectable_fields,
        has_status,
        has_generation: true,
        scale,
        custom,
        kind,
    })
}
