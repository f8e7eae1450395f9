//! Spec and status kept apart, where status is a subresource.

use crate::resource::Resource;
use crate::served::kinds::ServedKind;
use crate::write::options::ObjectPart;
use serde_json::Value;

/// Keeps spec and status apart where status is a subresource.
pub(super) fn split_parts(kind: &ServedKind, old: &Value, new: &mut Value, part: ObjectPart) {
    let copy = |field: &str, new: &mut Value| match old.get(field) {
        Some(value) => new[field] = value.clone(),
        None => {
            if let Some(map) = new.as_object_mut() {
                map.remove(field);
            }
        }
    };
    match part {
        ObjectPart::Main if kind.has_status => copy("status", new),
        ObjectPart::Status => keep_all_but_status(kind, old, new),
        ObjectPart::Main | ObjectPart::Whole => {}
    }
}

/// Takes back whatever a status update changed besides the status. Equal fields are left where they are: that is
/// the common case, and comparing is cheaper than copying.
fn keep_all_but_status(kind: &ServedKind, old: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (old.as_object(), new.as_object_mut()) else {
        return;
    };
    after.retain(|name, _| name == "status" || before.contains_key(name));
    for (name, value) in before {
        // Nodes may change labels and annotations with their status, as kubelets rely on; others may not.
        let is_free = name == "status" || (name == "metadata" && kind.resource == Resource::NODES);
        if is_free || after.get(name) == Some(value) {
            continue;
        }
        let managed = after
            .get_mut(name)
            .and_then(|m| m.get_mut("managedFields"))
            .map(Value::take);
        let mut kept = value.clone();
        if let Some(managed) = managed.filter(|_| name == "metadata") {
            kept["managedFields"] = managed;
        }
        after.insert(name.clone(), kept);
    }
}

pub(super) fn is_spec_changed(old: &Value, new: &Value) -> bool {
    let counts = |name: &str| !matches!(name, "metadata" | "status");
    let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
        return false;
    };
    before
        .iter()
        .any(|(name, value)| counts(name) && after.get(name) != Some(value))
        || after
            .keys()
            .any(|name| counts(name) && !before.contains_key(name))
}
