//! Strategic merge patch: like a merge patch, but lists with known keys merge by them.
//!
//! The keys are those of `list_kind`. Directives served: `$patch: delete|replace|merge`, `$deleteFromPrimitiveList/…`,
//! `$setElementOrder/…`, `$retainKeys`. Never looks at the store or at a schema: names of fields decide alone.

use serde_json::{Map, Value};

use crate::status::StatusError;
use crate::write::list_kind::{ListKind, default_of, list_kind};

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
            reorder(items, order, merge_keys(name, list).map(|(merge, _)| merge));
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
    let keys = merge_keys(parent, field).filter(|_| !replaces);
    let is_keyed = keys.is_some() && items.iter().all(Value::is_object);
    let is_set = list_kind(parent, field) == ListKind::Set { is_merged: true };
    if !target.is_array() || replaces || !(is_keyed || is_set) {
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
    let Some((key, keys)) = keys else {
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
        let position = list
            .iter()
            .position(|have| is_same_item(have, item, key, keys));
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

/// The key by which a list merges, with all by which its items are told apart.
fn merge_keys(parent: &str, field: &str) -> Option<(&'static str, &'static [&'static str])> {
    match list_kind(parent, field) {
        ListKind::Map { merge, keys } => merge.map(|merge| (merge, keys)),
        ListKind::Set { .. } | ListKind::Atomic => None,
    }
}

/// Ports of one number may differ by protocol: a further key counts where the patch names it.
fn is_same_item(have: &Value, item: &Value, key: &str, keys: &[&str]) -> bool {
    let differs = |further: &str| {
        let wanted = item[further].as_str();
        let found = have[further].as_str().or_else(|| default_of(further));
        wanted.is_some() && wanted != found
    };
    have[key] == item[key]
        && !keys
            .iter()
            .any(|further| *further != key && differs(further))
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
