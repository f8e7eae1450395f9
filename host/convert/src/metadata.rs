//! Metadata of an object that goes along: name, labels and annotations that people wrote.
//!
//! What the API server and controllers wrote is theirs to write again.

use serde_json::{Map, Value};

use crate::Converter;
use crate::fields::put;
use crate::report::{Fate, ObjectOrigin};

/// Annotations that controllers and tools write for themselves.
const WRITTEN: [&str; 9] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "karpenter.sh/nodepool-hash",
    "karpenter.sh/nodepool-hash-version",
    "karpenter.sh/provisioner-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash-version",
    "karpenter.k8s.aws/nodetemplate-hash",
    "karpenter.sh/stored-version-migrated",
    "karpenter.k8s.aws/tagged",
];

/// Metadata for the object that is made.
pub(crate) fn kept(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) -> Value {
    let mut kept = Map::new();
    let mut dropped = Vec::new();
    let source = object["metadata"].as_object();
    for (field, value) in source.into_iter().flatten() {
        match field.as_str() {
            "name" | "labels" => put(&mut kept, field, value.clone()),
            "annotations" => {
                let mut annotations = value.as_object().cloned().unwrap_or_default();
                let before = annotations.len();
                annotations.retain(|key, _| !is_written(key));
                if annotations.len() != before {
                    dropped.push("annotations of controllers".to_owned());
                }
                put(&mut kept, field, annotations.into());
            }
            other => dropped.push(other.to_owned()),
        }
    }
    if object.get("status").is_some_and(|status| !status.is_null()) {
        dropped.push("status".to_owned());
    }
    if !dropped.is_empty() {
        let what = format!(
            "{}: written by the API server and controllers",
            dropped.join(", ")
        );
        work.report
            .push(origin.note(Fate::Dropped, "metadata", what));
    }
    kept.into()
}

/// Leaves of an object of v1 what people wrote.
pub(crate) fn clean(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &mut Value) {
    let metadata = kept(work, origin, object);
    if let Some(fields) = object.as_object_mut() {
        fields.insert("metadata".to_owned(), metadata);
        fields.remove("status");
    }
}

fn is_written(key: &str) -> bool {
    WRITTEN.contains(&key) || key.starts_with("compatibility.karpenter.")
}
