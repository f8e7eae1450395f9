//! Writes what changed between two versions of an object, as a merge patch that fails when someone else was faster.
//!
//! Lists are replaced whole by a merge patch, hence the lock on the version that was read. Answers to
//! controller-runtime's `client.MergeFromWithOptimisticLock`.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::ReconcileError;

/// Field manager of our writes.
pub(crate) const FIELD_MANAGER: &str = "karpenter";

/// Which part of an object a patch goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Metadata and spec.
    Main,
    /// The status subresource.
    Status,
}

/// Writes the difference between `before` and `after` in one part; nothing when there is none.
pub(crate) async fn patch<K>(
    api: &Api<K>,
    before: &K,
    after: &K,
    part: Part,
) -> Result<Option<K>, ReconcileError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let (before_value, after_value) = (part_of(before, part)?, part_of(after, part)?);
    let Some(Value::Object(mut difference)) = merge_difference(&before_value, &after_value) else {
        return Ok(None);
    };
    if let Some(version) = before.resource_version() {
        let metadata = difference
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(metadata) = metadata {
            metadata.insert("resourceVersion".to_owned(), Value::String(version));
        }
    }
    let name = before.name_any();
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let change = Patch::Merge(Value::Object(difference));
    let written = match part {
        Part::Main => api.patch(&name, &params, &change).await?,
        Part::Status => api.patch_status(&name, &params, &change).await?,
    };
    Ok(Some(written))
}

fn part_of<K: Serialize>(object: &K, part: Part) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(object)?;
    if let Value::Object(fields) = &mut value {
        match part {
            Part::Main => {
                fields.remove("status");
            }
            Part::Status => fields.retain(|name, _| name == "status"),
        }
    }
    Ok(value)
}

/// The merge patch (RFC 7386) that turns `before` into `after`; none when they are equal.
pub(crate) fn merge_difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return Some(after.clone());
    };
    let mut difference = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        difference.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        let change = match old.get(name) {
            Some(known) => merge_difference(known, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            difference.insert(name.clone(), change);
        }
    }
    Some(Value::Object(difference))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_removes_adds_and_replaces_lists_whole() {
        let cases = [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({}), Some(json!({"a": null}))),
            (
                json!({}),
                json!({"a": {"b": 1}}),
                Some(json!({"a": {"b": 1}})),
            ),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": 1, "c": 3}}),
                Some(json!({"a": {"c": 3}})),
            ),
            (
                json!({"l": [1, 2]}),
                json!({"l": [1, 2, 3]}),
                Some(json!({"l": [1, 2, 3]})),
            ),
        ];
        for (before, after, expected) in cases {
            assert_eq!(
                merge_difference(&before, &after),
                expected,
                "{before} -> {after}"
            );
        }
    }
}
