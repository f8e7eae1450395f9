//! Old labels and annotations in what is none of Karpenter's own: workloads, pods, nodes.
//!
//! Such objects are not converted: they belong to somebody who keeps them elsewhere.

use serde_json::Value;

use crate::Converter;
use crate::report::{Fate, ObjectOrigin};

/// Old name, new name.
pub(crate) const RENAMED: [(&str, &str); 4] = [
    ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool"),
    ("karpenter.sh/do-not-evict", "karpenter.sh/do-not-disrupt"),
    (
        "karpenter.sh/do-not-consolidate",
        "karpenter.sh/do-not-disrupt",
    ),
    ("node.k8s.aws/capacity-type", "karpenter.sh/capacity-type"),
];

/// Says where an object uses names of old.
pub(crate) fn look(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    for (path, old, new) in old_names(object) {
        let way_out = format!("write {new} in its place");
        let what = format!("{old} means nothing any more");
        work.report
            .push(origin.note(Fate::ToDo, &path, what).or(way_out));
    }
}

/// Path, old name and new name of each use.
pub(crate) fn old_names(object: &Value) -> Vec<(String, &'static str, &'static str)> {
    let mut found = Vec::new();
    walk(object, "", &mut found);
    found
}

fn walk(value: &Value, path: &str, found: &mut Vec<(String, &'static str, &'static str)>) {
    let renamed = |name: &str| RENAMED.iter().find(|(old, _)| *old == name);
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                // Written by the API server, and says nothing of its own.
                if ["managedFields", "status", "data"].contains(&field.as_str()) {
                    continue;
                }
                if let Some((old, new)) = renamed(field) {
                    found.push((path.to_owned(), old, new));
                }
                let path = if path.is_empty() {
                    field.clone()
                } else {
                    format!("{path}.{field}")
                };
                walk(value, &path, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), found);
            }
        }
        Value::String(text) => {
            if let Some((old, new)) = renamed(text) {
                found.push((path.to_owned(), old, new));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
