//! Requests, parsed once: path, query and accepted representation.
//!
//! In its folder is where they come in (`service.rs`, `listener.rs`), which verb they call (`routes.rs`) and how they
//! are answered (`answer.rs`, `watch_stream.rs`). Reads what a client sent, and touches no object.

pub(super) mod answer;
pub(super) mod listener;
pub(super) mod protobuf;
pub(super) mod request_info;
mod routes;
mod service;
mod watch_stream;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::selectors::{FieldSelector, ParsedLabelSelector, Selection};
use crate::served::kinds::{Kinds, ServedKind};
use crate::status::StatusError;
use crate::write::options::parse_dry_run;

/// Query parameters, decoded.
#[derive(Debug, Clone, Default)]
pub(super) struct QueryParameters {
    values: BTreeMap<String, String>,
}

impl QueryParameters {
    pub(super) fn parse(text: &str) -> Self {
        let mut values = BTreeMap::new();
        for pair in text.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            values.insert(decode(name), decode(value));
        }
        Self { values }
    }

    /// A parameter's value; empty when absent.
    pub(super) fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1" | "True" | "TRUE" | "t")
    }

    /// Whether nothing is to be stored; `kind` is that of the request's options.
    pub(super) fn is_dry_run(&self, kind: &str) -> Result<bool, StatusError> {
        parse_dry_run(kind, &[self.get("dryRun")])
    }
}

/// Undoes percent-encoding; `+` is a space, as in forms.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (escaped, bytes[at]) {
            (Some(byte), _) => {
                decoded.push(byte);
                at += 2;
            }
            (None, b'+') => decoded.push(b' '),
            (None, byte) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// The shape in which objects are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Representation {
    /// Whole objects.
    Full,
    /// Rows and columns for people.
    Table,
    /// Metadata of the objects alone.
    Partial,
}

impl Representation {
    pub(super) fn of(accept: &str) -> Self {
        // The first range that the server can answer decides.
        for range in accept.split(',') {
            if range.contains("as=Table") {
                return Self::Table;
            }
            if range.contains("as=PartialObjectMetadata") {
                return Self::Partial;
            }
            if range.trim() == "application/json" {
                return Self::Full;
            }
        }
        Self::Full
    }
}

/// The resource a path means.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) kind: Arc<ServedKind>,
    pub(super) version: String,
    /// Empty for all namespaces and for cluster-wide kinds.
    pub(super) namespace: String,
    /// Empty for the collection.
    pub(super) name: String,
    /// Empty for the object itself.
    pub(super) subresource: String,
}

impl Target {
    /// Reads `/api/v1/…` and `/apis/G/V/…` below their version.
    pub(super) fn parse(kinds: &Kinds, path: &str) -> Result<Self, StatusError> {
        let steps: Vec<String> = path
            .split('/')
            .filter(|step| !step.is_empty())
            .map(decode)
            .collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let (group, version, rest) = match steps.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(StatusError::no_such_resource()),
        };
        let find = |plural: &str| -> Result<Arc<ServedKind>, StatusError> {
            kinds
                .served(group, plural)
                .filter(|kind| kind.versions.iter().any(|v| v == version))
                .cloned()
                .ok_or_else(StatusError::no_such_resource)
        };
        let target = |plural: &str, namespace: &str, tail: &[&str]| -> Result<Self, StatusError> {
            let kind = find(plural)?;
            if tail.len() > 2 || (!namespace.is_empty() && !kind.is_namespaced) {
                return Err(StatusError::no_such_resource());
            }
            Ok(Self {
                kind,
                version: version.to_owned(),
                namespace: namespace.to_owned(),
                name: tail.first().copied().unwrap_or_default().to_owned(),
                subresource: tail.get(1).copied().unwrap_or_default().to_owned(),
            })
        };
        match rest {
            // `namespaces/x/status` and `namespaces/x/finalize` are about the namespace itself.
            ["namespaces", namespace, plural, tail @ ..]
                if !matches!(*plural, "status" | "finalize") =>
            {
                target(plural, namespace, tail)
            }
            [plural, tail @ ..] => target(plural, "", tail),
            [] => Err(StatusError::no_such_resource()),
        }
    }
}

/// Selection of a list or watch, from the query.
pub(super) fn selection(
    target: &Target,
    query: &QueryParameters,
) -> Result<Selection, StatusError> {
    let mut fields = query.get("fieldSelector").to_owned();
    if !target.name.is_empty() {
        if !fields.is_empty() {
            fields.push(',');
        }
        fields.push_str("metadata.name=");
        fields.push_str(&target.name);
    }
    let fields = FieldSelector::parse(&fields)?;
    if let Some(field) = fields.labels().find(|it| !target.kind.is_selectable(it)) {
        let message = format!("field label not supported: {field}");
        return Err(StatusError::bad_request(message));
    }
    Ok(Selection {
        namespace: (!target.namespace.is_empty()).then(|| target.namespace.clone()),
        labels: ParsedLabelSelector::parse(query.get("labelSelector"))?,
        fields,
    })
}
