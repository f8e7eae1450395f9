//! Server-side tables: the columns `kubectl get` shows.
//!
//! Answers to Kubernetes' `printers/internalversion`; custom resources bring their own columns. Reads the object and
//! the time that it is given, and nothing else.

mod cells;
pub(crate) mod custom;
mod events;
mod nodes;
mod pods;
mod printer;
mod services;
mod smaller;
mod storage;
mod workloads;

use self::cells::{age, name};
use self::printer::{Printer, definition};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::served::kinds::ServedKind;

/// Request that a table is made for.
pub(crate) struct TableView<'a> {
    pub(crate) kind: &'a ServedKind,
    pub(crate) version: &'a str,
    pub(crate) now: Timestamp,
    /// `None`, `Metadata` or `Object`; empty means `Metadata`.
    pub(crate) include_object: &'a str,
}

impl TableView<'_> {
    /// The table of these objects.
    pub(crate) fn render(&self, objects: &[&Value], metadata: &Value) -> Value {
        let custom = self.kind.custom.get(self.version);
        let printer = printer(&self.kind.group, &self.kind.kind);
        let columns: Vec<Value> = if let Some(version) = custom {
            custom::definitions(&version.columns)
        } else {
            let columns = printer.columns.iter();
            columns
                .map(|(name, kind, priority)| definition(name, kind, *priority))
                .collect()
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

/// The metadata of an object as an object of its own.
pub(crate) fn partial(object: &Value) -> Value {
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
