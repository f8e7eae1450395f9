//! Built-in kinds: their list, their defaults, and the rules that matter here.
//!
//! Not a full copy of Kubernetes' validation: it refuses what a person gets wrong and what would break the
//! simulated world.

pub(super) mod kinds;
pub(super) mod metadata;
pub(super) mod pod;
mod pod_template;
pub(super) mod schemas;
pub(super) mod workload;

use serde_json::{Value, json};

use workload::{defaults, immutable, validation};

use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::served::kinds::ServedKind;
use crate::status::{FieldError, StatusError};
use crate::store::Store;
use crate::write::options::WriteOptions;

/// Objects every cluster has from its first moment.
pub(super) fn populate(store: &mut Store) {
    for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        must_create(
            store,
            &Resource::NAMESPACES,
            json!({"metadata": {"name": namespace}}),
        );
    }
    for (name, value) in [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ] {
        must_create(
            store,
            &Resource::PRIORITY_CLASSES,
            json!({
                "metadata": {"name": name}, "value": value,
                "preemptionPolicy": "PreemptLowerPriority",
                "description": "Used for system critical pods.",
            }),
        );
    }
}

fn must_create(store: &mut Store, resource: &Resource, object: Value) {
    let result = store
        .kind(resource)
        .and_then(|kind| store.create(&kind, "", object, &WriteOptions::default()));
    if let Err(status) = result {
        tracing::error!(%resource, %status, "a built-in object was refused");
    }
}

/// Defaults of a new object, and what its kind may not carry at birth.
pub(super) fn prepare_create(
    store: &Store,
    kind: &ServedKind,
    object: &mut Value,
) -> Result<(), StatusError> {
    // Nodes register with their status; for the rest status begins empty.
    if kind.has_status
        && kind.resource != Resource::NODES
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    match (kind.group.as_str(), kind.resource.plural.as_ref()) {
        ("", "pods") => pod::prepare_create(store, object)?,
        ("", "namespaces") => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        ("", "secrets") => {
            fold_string_data(object);
            object
                .as_object_mut()
                .map(|o| o.entry("type").or_insert_with(|| "Opaque".into()));
        }
        _ => defaults::set_defaults(kind, object),
    }
    drop_nulls(object);
    Ok(())
}

/// Built-in kinds have no nulls: a null reads as absent.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Defaults of a changed object.
pub(super) fn prepare_update(kind: &ServedKind, old: &Value, object: &mut Value) {
    match (kind.group.as_str(), kind.resource.plural.as_ref()) {
        ("", "pods") => pod::prepare_update(old, object),
        ("", "secrets") => fold_string_data(object),
        ("", "namespaces") => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        _ => defaults::set_defaults(kind, object),
    }
    drop_nulls(object);
}

/// `stringData` is a convenience of writers; what is stored is `data`.
fn fold_string_data(secret: &mut Value) {
    use base64::Engine as _;
    let taken = secret.as_object_mut().and_then(|s| s.remove("stringData"));
    if let Some(Value::Object(plain)) = taken {
        for (key, value) in plain {
            let bytes = value.as_str().unwrap_or_default().as_bytes();
            let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
            secret["data"][key] = encoded.into();
        }
    }
}

/// Rules of a new object.
pub(super) fn validate_create(kind: &ServedKind, object: &Value) -> Vec<FieldError> {
    if kind.resource == Resource::PODS {
        return pod::validate(object);
    }
    validation::validate(kind, object)
}

/// Rules of a changed status.
pub(super) fn validate_status_update(
    kind: &ServedKind,
    old: &Value,
    object: &Value,
) -> Vec<FieldError> {
    if kind.resource == Resource::PODS {
        pod::validate_status_update(old, object)
    } else {
        Vec::new()
    }
}

/// Rules of a changed object.
pub(super) fn validate_update(kind: &ServedKind, old: &Value, object: &Value) -> Vec<FieldError> {
    if kind.resource == Resource::PODS {
        return pod::validate_update(old, object);
    }
    let mut errors = validation::validate(kind, object);
    errors.extend(immutable::validate_update(kind, old, object));
    errors
}

/// Every namespace has its default service account and the cluster's root certificate.
pub(super) fn after_namespace(store: &mut Store, namespace: &Value) {
    let name = namespace["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if namespace["metadata"]["deletionTimestamp"].is_string() {
        return;
    }
    if store
        .get(
            &Resource::SERVICE_ACCOUNTS,
            &NamespacedName::new(name.clone(), "default"),
        )
        .is_none()
    {
        must_create(
            store,
            &Resource::SERVICE_ACCOUNTS,
            json!({"metadata": {"name": "default", "namespace": name}}),
        );
    }
}
