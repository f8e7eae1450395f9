//! Events are served by two groups from one table: the fields that differ are renamed at the edge.

use serde_json::{Map, Value};

/// Field of core/v1 and its name in events.k8s.io/v1.
const RENAMED: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Rewrites an event for the group: empty for core/v1, else events.k8s.io.
pub(crate) fn to_group(event: &mut Value, group: &str) {
    let Some(fields) = event.as_object_mut() else {
        return;
    };
    for (core, events) in RENAMED {
        if group.is_empty() {
            rename(fields, events, core);
        } else {
            rename(fields, core, events);
        }
    }
    // The reporting component is called differently, too.
    if group.is_empty() {
        rename(fields, "reportingController", "reportingComponent");
    } else {
        rename(fields, "reportingComponent", "reportingController");
    }
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.insert(to.to_owned(), value);
    }
}
