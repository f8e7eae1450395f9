//! Strategic merge patch: like a merge patch, but lists with known keys merge by them.
//!
//! The typed API carries these keys as Go struct tags; here they are a table by field name. Directives served: `$patch:
//! delete|replace|merge`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`, `$retainKeys`. Never looks at the store
//! or at a schema: names of fields decide alone.

use serde_json::{Map, Value};

use crate::status::StatusError;

/// The keys by which a list merges, given the name of its field and of the field around it.
pub(crate) fn merge_key(parent: &str, field: &str) -> Option<&'static str> {
    Some(match (parent, field) {
        (
            _,
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "env"
            | "volumes"
            | "imagePullSecrets"
            | "resourceClaims"
            | "schedulingGates",
        )
        | ("", "secrets") => "name",
        ("spec", "ports") => "port",
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => "containerPort",
        (_, "volumeMounts") => "mountPath",
        (_, "volumeDevices") => "devicePath",
        (_, "hostAliases" | "podIPs") => "ip",
        (_, "taints") => "key",
        (_, "topologySpreadConstraints") => "topologyKey",
        (_, "conditions" | "addresses") => "type",
        (_, "ownerReferences") => "uid",
        _ => return None,
    })
}

/// Whether a list of plain values merges as a set.
fn is_set(field: &str) -> bool {
    field == "finalizers"
}

/// Merges `change` into `target`.
pub(crate) fn apply(target: &mut Value, change: &Value) -> Result<(), StatusError> {
    merge_map(target, change, "")
}

fn merge_map(target: &mut Value, change: &Value, name: &str) -> Result<(), StatusError> {
    let Value::Object(fields) = change else {
        *target = change.clone();
        return Ok(());
    };
    let directive = fields
        .get("$patch")
        .map(|it| it.as_str().unwrap_or_default());
    if directive == Some("replace") {
        *target = without_directives(fields);
        return Ok(());
    }
    if directive.is_some_and(|it| !matches!(it, "delete" | "merge")) {
        return Err(StatusError::bad_request(format!(
            "unknown patch type in map: {change}"
        )));
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else {
        return Ok(());
    };
    if directive == Some("delete") {
        map.clear();
        return Ok(());
    }
    if let Some(kept) = fields.get("$retainKeys").and_then(Value::as_array) {
        map.retain(|key, _| kept.iter().any(|k| k == key));
    }
    for (field, value) in fields {
        if let Some(list) = field.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(items) = map.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if field.starts_with('$') {
            continue;
        }
        match value {
            Value::Null => {
                map.remove(field);
            }
            Value::Object(_) => {
                merge_map(
                    map.entry(field.clone()).or_insert(Value::Null),
                    value,
                    field,
                )?;
            }
            Value::Array(items) => {
                let target = map.entry(field.clone()).or_insert(Value::Null);
                merge_list(target, items, name, field)?;
            }
            plain => {
                map.insert(field.clone(), plain.clone());
            }
        }
    }
    put_in_order(map, fields, name);
    Ok(())
}

/// Brings the lists into the order that the patch asks for.
fn put_in_order(map: &mut Map<String, Value>, fields: &Map<String, Value>, name: &str) {
    for (field, order) in fields {
        if let Some(list) = field.strip_prefix("$setElementOrder/")
            && let (Some(items), Some(order)) = (
                map.get_mut(list).and_then(Value::as_array_mut),
                order.as_array(),
            )
        {
            reorder(items, order, merge_key(name, list));
        }
    }
}

fn without_directives(fields: &Map<String, Value>) -> Value {
    let kept = fields.iter().filter(|(field, _)| !field.starts_with('$'));
    Value::Object(
        kept.map(|(field, value)| (field.clone(), value.clone()))
            .collect(),
    )
}

fn merge_list(
    target: &mut Value,
    items: &[Value],
    parent: &str,
    field: &str,
) -> Result<(), StatusError> {
    let replaces = items
        .iter()
        .any(|item| item["$patch"].as_str() == Some("replace"));
    let key = merge_key(parent, field).filter(|_| !replaces);
    let is_keyed = key.is_some() && items.iter().all(Value::is_object);
    if !target.is_array() || replaces || !(is_keyed || is_set(field)) {
        if !target.is_array() {
            *target = Value::Array(Vec::new());
        }
        if !is_keyed {
            let kept = items.iter().filter(|item| item["$patch"].is_null());
            *target = Value::Array(kept.cloned().collect());
            return Ok(());
        }
    }
    let Some(list) = target.as_array_mut() else {
        return Ok(());
    };
    let Some(key) = key else {
        for item in items {
            if !list.contains(item) {
                list.push(item.clone());
            }
        }
        return Ok(());
    };
    for item in items {
        let id = &item[key];
        if id.is_null() {
            return Err(StatusError::bad_request(format!(
                "map: {item} does not contain declared merge key: {key}"
            )));
        }
        let position = list.iter().position(|have| is_same_item(have, item, key));
        match (item["$patch"].as_str(), position) {
            (Some("delete"), _) => list.retain(|have| have[key] != *id),
            (_, Some(at)) => merge_map(&mut list[at], item, field)?,
            (_, None) => {
                let mut fresh = Value::Object(Map::new());
                merge_map(&mut fresh, item, field)?;
                list.push(fresh);
            }
        }
    }
    Ok(())
}

/// Ports of one number may differ by protocol; all else by the key alone.
fn is_same_item(have: &Value, item: &Value, key: &str) -> bool {
    let protocol = |port: &Value| port["protocol"].as_str().unwrap_or("TCP").to_owned();
    have[key] == item[key]
        && (!matches!(key, "port" | "containerPort")
            || item["protocol"].is_null()
            || protocol(have) == protocol(item))
        && (key != "topologyKey"
            || item["whenUnsatisfiable"].is_null()
            || have["whenUnsatisfiable"] == item["whenUnsatisfiable"])
}

/// Items named in `order` come in that order; the others keep their place after them.
fn reorder(items: &mut [Value], order: &[Value], key: Option<&str>) {
    let place = |item: &Value| -> usize {
        let found = order.iter().position(|wanted| match key {
            Some(key) => wanted[key] == item[key],
            None => wanted == item,
        });
        found.unwrap_or(usize::MAX)
    };
    items.sort_by_key(place);
}
