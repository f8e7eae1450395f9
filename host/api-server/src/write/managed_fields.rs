//! Who set which field: the sets behind server-side apply, in `metadata.managedFields`.
//!
//! Kept small: only writers that name themselves are recorded, and a change by others only takes fields away
//! from the owners it overruled. Answers to structured-merge-diff and apimachinery's `managedfields`.

pub(crate) mod entry;
pub(crate) mod fields_v1;
pub(crate) mod leaves;
pub(crate) mod shape;

use self::entry::{ManagedFieldsEntry, read, write};
use self::fields_v1::FieldPath;
use self::leaves::{leaves, leaves_unlike};
use self::shape::FieldSchema;
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::served::kinds::ServedKind;
use crate::write::options::{ObjectPart, WriteOptions};

/// Records the fields of a new object, if its writer names itself.
pub(crate) fn after_create(
    kind: &ServedKind,
    object: &mut Value,
    options: &WriteOptions,
    now: Timestamp,
) {
    if options.is_apply {
        return;
    }
    match &options.field_manager {
        Some(manager) => {
            let mut entry = ManagedFieldsEntry::new(manager, "Update", ObjectPart::Main, now);
            entry.paths = leaves(FieldSchema::of(kind), object)
                .into_iter()
                .map(|(p, _)| p)
                .collect();
            write(object, &[entry]);
        }
        None => write(object, &[]),
    }
}

/// Moves the fields that an update changed to its writer.
pub(crate) fn after_update(
    kind: &ServedKind,
    old: &Value,
    object: &mut Value,
    options: &WriteOptions,
    now: Timestamp,
) {
    let has_entries = object["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|l| !l.is_empty());
    if options.is_apply || (!has_entries && options.field_manager.is_none()) {
        return;
    }
    let shape = FieldSchema::of(kind);
    let before: Vec<_> = leaves_unlike(shape, old, Some(object));
    let after: Vec<_> = leaves_unlike(shape, object, Some(old));
    let was: std::collections::BTreeMap<&FieldPath, &Value> =
        before.iter().map(|(p, v)| (p, *v)).collect();
    let is: BTreeSet<&FieldPath> = after.iter().map(|(p, _)| p).collect();
    let changed: BTreeSet<FieldPath> = after
        .iter()
        .filter(|(path, value)| was.get(path) != Some(value))
        .map(|(path, _)| path.clone())
        .collect();
    let gone: BTreeSet<FieldPath> = before
        .iter()
        .filter(|(path, _)| !is.contains(path))
        .map(|(p, _)| p.clone())
        .collect();
    if changed.is_empty() && gone.is_empty() {
        return;
    }
    let mut entries = read(object);
    for entry in &mut entries {
        entry
            .paths
            .retain(|path| !changed.contains(path) && !gone.contains(path));
    }
    if let Some(manager) = &options.field_manager {
        let mut mine = ManagedFieldsEntry::new(manager, "Update", options.part, now);
        mine.paths = changed;
        if let Some(at) = entries.iter().position(|e| e.is_same_role(&mine)) {
            mine.paths.append(&mut entries[at].paths);
            entries[at] = mine;
        } else {
            entries.push(mine);
        }
    }
    write(object, &entries);
}
