//! Events as `kubectl get` shows them, of either group.

use super::cells::{name, since};
use super::printer::Printer;
use jiff::Timestamp;
use serde_json::Value;

pub(super) const EVENT: Printer = Printer {
    columns: &[
        ("Last Seen", "string", 0),
        ("Type", "string", 0),
        ("Reason", "string", 0),
        ("Object", "string", 0),
        ("Subobject", "string", 1),
        ("Source", "string", 1),
        ("Message", "string", 0),
        ("First Seen", "string", 1),
        ("Count", "string", 1),
        ("Name", "string", 1),
    ],
    cells: event_cells,
};

fn event_cells(event: &Value, now: Timestamp) -> Vec<Value> {
    // Either group's names of the fields.
    let pick = |names: [&str; 2]| {
        names
            .map(|n| &event[n])
            .into_iter()
            .find(|v| !v.is_null())
            .cloned()
            .unwrap_or_default()
    };
    let object = pick(["involvedObject", "regarding"]);
    let series = &event["series"]["lastObservedTime"];
    let last = [
        series.clone(),
        pick(["lastTimestamp", "deprecatedLastTimestamp"]),
        event["eventTime"].clone(),
    ]
    .into_iter()
    .find(Value::is_string)
    .unwrap_or_else(|| event["metadata"]["creationTimestamp"].clone());
    let first = [
        pick(["firstTimestamp", "deprecatedFirstTimestamp"]),
        event["eventTime"].clone(),
    ]
    .into_iter()
    .find(Value::is_string)
    .unwrap_or_else(|| event["metadata"]["creationTimestamp"].clone());
    let source = pick(["source", "deprecatedSource"]);
    let component = source["component"]
        .as_str()
        .filter(|c| !c.is_empty())
        .map_or_else(
            || pick(["reportingComponent", "reportingController"]),
            Value::from,
        );
    let times = event["series"]["count"]
        .as_i64()
        .or_else(|| pick(["count", "deprecatedCount"]).as_i64());
    vec![
        since(&last, now),
        event["type"].clone(),
        event["reason"].clone(),
        format!(
            "{}/{}",
            object["kind"]
                .as_str()
                .unwrap_or_default()
                .to_ascii_lowercase(),
            object["name"].as_str().unwrap_or_default()
        )
        .into(),
        object["fieldPath"].as_str().unwrap_or_default().into(),
        component,
        pick(["message", "note"])
            .as_str()
            .unwrap_or_default()
            .trim()
            .into(),
        since(&first, now),
        times.unwrap_or(1).into(),
        name(event),
    ]
}
