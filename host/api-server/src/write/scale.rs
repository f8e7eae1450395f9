//! The scale subresource: replicas of a workload, or of a static NodePool, as `autoscaling/v1.Scale`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::object_key::NamespacedName;
use crate::served::kinds::{ScalePaths, ServedKind};
use crate::status::{FieldError, StatusError};
use crate::store::Store;
use crate::write::options::WriteOptions;

fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    object.pointer(&path.replace('.', "/"))
}

fn paths(kind: &ServedKind) -> Result<&ScalePaths, StatusError> {
    kind.scale
        .as_ref()
        .ok_or_else(StatusError::no_such_resource)
}

/// The `Scale` of an object.
pub(crate) fn get(
    store: &Store,
    kind: &ServedKind,
    key: &NamespacedName,
) -> Result<Value, StatusError> {
    let object = store
        .get(&kind.resource, key)
        .ok_or_else(|| StatusError::not_found(&kind.resource, &key.name))?;
    of(kind, &object)
}

/// The `Scale` of an object at hand.
pub(crate) fn of(kind: &ServedKind, object: &Value) -> Result<Value, StatusError> {
    let paths = paths(kind)?;
    let number = |path: &str| at_path(object, path).and_then(Value::as_i64).unwrap_or(0);
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": number(&paths.spec_replicas)},
        "status": {"replicas": number(&paths.status_replicas)},
    });
    if kind.is_namespaced {
        scale["metadata"]["namespace"] = metadata["namespace"].clone();
    }
    if let Some(selector) = paths
        .selector
        .as_deref()
        .and_then(|path| at_path(object, path))
    {
        let text = match selector {
            Value::String(text) => text.clone(),
            object => selector_text(object),
        };
        scale["status"]["selector"] = text.into();
    }
    Ok(scale)
}

fn selector_text(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object();
    let pairs = labels.into_iter().flatten();
    let mut terms: Vec<String> = pairs
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    for expression in selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten();
        let list = values
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(",");
        terms.push(match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({list})"),
            "NotIn" => format!("{key} notin ({list})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    terms.join(",")
}

/// Sets the wanted replicas and answers the new object.
pub(crate) fn set(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    key: &NamespacedName,
    replicas: i64,
    options: &WriteOptions,
) -> Result<Arc<Value>, StatusError> {
    let paths = paths(kind)?.clone();
    if replicas < 0 {
        let problem = "must be greater than or equal to 0";
        let error = FieldError::invalid("spec.replicas", &replicas.into(), problem);
        return Err(StatusError::invalid(
            "autoscaling",
            "Scale",
            &key.name,
            &[error],
        ));
    }
    let old = store
        .get(&kind.resource, key)
        .ok_or_else(|| StatusError::not_found(&kind.resource, &key.name))?;
    let mut object = (*old).clone();
    let mut at = &mut object;
    for step in paths.spec_replicas.trim_start_matches('.').split('.') {
        at = &mut at[step];
    }
    *at = replicas.into();
    store.update(kind, key, object, options)
}

/// Sets the replicas from a `Scale` object that a client sent.
pub(crate) fn set_from(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    key: &NamespacedName,
    scale: &Value,
    options: &WriteOptions,
) -> Result<Value, StatusError> {
    let given = scale["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    if let Some(old) = store.get(&kind.resource, key)
        && !given.is_empty()
        && old["metadata"]["resourceVersion"].as_str() != Some(given)
    {
        let detail = "the object has been modified; please apply your changes to the latest \
                      version and try again";
        return Err(StatusError::conflict(&kind.resource, &key.name, detail));
    }
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    let object = set(store, kind, key, replicas, options)?;
    of(kind, &object)
}
