//! Server-side tables: the columns `kubectl get` shows.
//!
//! Answers to Kubernetes' `printers/internalversion`; custom resources bring their own columns.

pub(super) mod custom;
mod nodes;
mod pods;
mod smaller;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::Kind;

/// Name, type and priority of a column; priority 1 shows with `-o wide` only.
type Column = (&'static str, &'static str, u8);

/// How a built-in kind is shown.
struct Printer {
    columns: &'static [Column],
    cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// What a table is made for.
pub(super) struct View<'a> {
    pub(super) kind: &'a Kind,
    pub(super) version: &'a str,
    pub(super) now: Timestamp,
    /// `None`, `Metadata` or `Object`; empty means `Metadata`.
    pub(super) include_object: &'a str,
}

impl View<'_> {
    /// The table of these objects.
    pub(super) fn render(&self, objects: &[&Value], metadata: &Value) -> Value {
        let custom = self.kind.custom.get(self.version);
        let printer = printer(&self.kind.group, &self.kind.kind);
        let columns: Vec<Value> = match custom {
            Some(version) => custom::definitions(&version.columns),
            None => printer.columns.iter().map(definition).collect(),
        };
        let rows: Vec<Value> = objects
            .iter()
            .map(|object| {
                let cells = match custom {
                    Some(version) => custom::cells(&version.columns, object, self.now),
                    None => (printer.cells)(object, self.now),
                };
                let shown = match self.include_object {
                    "None" => Value::Null,
                    "Object" => (*object).clone(),
                    _ => partial(object),
                };
                json!({"cells": cells, "object": shown})
            })
            .collect();
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": columns, "rows": rows,
        })
    }
}

fn definition((name, kind, priority): &Column) -> Value {
    let format = if *name == "Name" { "name" } else { "" };
    json!({"name": name, "type": kind, "format": format, "description": "", "priority": priority})
}

/// The metadata of an object as an object of its own.
pub(super) fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

const PLAIN: Printer = Printer {
    columns: &[("Name", "string", 0), ("Age", "string", 0)],
    cells: |object, now| vec![name(object), age(object, now)],
};

fn printer(group: &str, kind: &str) -> Printer {
    match (group, kind) {
        ("", "Pod") => pods::PRINTER,
        ("", "Node") => nodes::PRINTER,
        ("apps" | "batch" | "", _) => workloads::printer(kind)
            .or_else(|| smaller::printer(kind))
            .unwrap_or(PLAIN),
        _ => smaller::printer(kind).unwrap_or(PLAIN),
    }
}

/// The object's name as a cell.
fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

/// The object's age as a cell.
fn age(object: &Value, now: Timestamp) -> Value {
    since(&object["metadata"]["creationTimestamp"], now)
}

/// Time since a timestamp as a cell.
fn since(time: &Value, now: Timestamp) -> Value {
    match time
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok())
    {
        Some(then) => human_duration(now.duration_since(then).as_secs()).into(),
        None => "<unknown>".into(),
    }
}

/// A text, or `<none>`.
fn or_none(value: &Value) -> Value {
    match value.as_str() {
        Some(text) if !text.is_empty() => text.into(),
        _ => "<none>".into(),
    }
}

/// An integer, zero when absent.
fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// `a=1,b=2`, or `<none>`.
fn labels_text(labels: &Value) -> Value {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        "<none>".into()
    } else {
        pairs.join(",").into()
    }
}

/// A duration as kubectl words it: two units at most, the second only where it tells something.
pub(super) fn human_duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let pair = |whole: i64, unit: &str, part: i64, part_unit: &str| {
        if part == 0 {
            format!("{whole}{unit}")
        } else {
            format!("{whole}{unit}{part}{part_unit}")
        }
    };
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}
