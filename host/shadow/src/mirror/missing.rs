//! What objects name and nobody told: namespaces and priority classes that may not be read, or that are told later.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::write::MirrorWrite;
use crate::gathered::Gathered;
use crate::kinds::ReadKind;
use crate::object::key_of;

/// Namespaces that are in the shadow.
#[derive(Debug, Default)]
pub(super) struct MirroredNamespaces {
    there: BTreeSet<String>,
}

impl MirroredNamespaces {
    /// The namespace of an object, where it is not there yet.
    pub(super) fn of(&mut self, object: &Value) -> Option<MirrorWrite> {
        let namespace = key_of(object).namespace;
        if namespace.is_empty() || !self.there.insert(namespace.clone()) {
            return None;
        }
        let kind = ReadKind::Namespaces;
        let object = json!({"metadata": {"name": namespace}});
        Some(MirrorWrite::Restore { kind, object })
    }

    /// A namespace was told.
    pub(super) fn told(&mut self, name: &str, is_gone: bool) {
        if is_gone {
            self.there.remove(name);
        } else {
            self.there.insert(name.to_owned());
        }
    }
}

/// Priority classes that pods name and nobody told, with the priority that those pods have.
pub(super) fn priority_classes(gathered: &Gathered) -> Vec<MirrorWrite> {
    let known: BTreeSet<String> = gathered
        .of(ReadKind::PriorityClasses)
        .map(|class| key_of(class).name)
        .collect();
    let mut missing: BTreeMap<&str, i64> = BTreeMap::new();
    for pod in gathered.of(ReadKind::Pods) {
        let spec = &pod["spec"];
        let named = spec["priorityClassName"].as_str();
        // Those of the system are in every cluster.
        let named = named.filter(|it| !it.starts_with("system-") && !known.contains(*it));
        if let (Some(name), Some(priority)) = (named, spec["priority"].as_i64()) {
            missing.insert(name, priority);
        }
    }
    let kind = ReadKind::PriorityClasses;
    let class = |(name, value): (&str, i64)| MirrorWrite::Restore {
        kind,
        object: json!({"metadata": {"name": name}, "value": value}),
    };
    missing.into_iter().map(class).collect()
}
