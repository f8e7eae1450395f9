//! What follows a deletion: propagation to owned objects, finalizers, and the emptying of namespaces.
//!
//! A cluster's garbage collector is a controller that lags; here it runs to its end inside the request, so that runs
//! repeat. Never decides whether an object that somebody deletes goes at once: that is for `deletion.rs`. Answers to
//! kube-controller-manager's garbage collector and namespace controller.

use crate::write::options::{DeleteOptions, Propagation};
use std::sync::Arc;

use serde_json::Value;

use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::served::kinds::ServedKind;
use crate::store::Store;
use crate::store::owners::owner_uids;

/// Holds an owner until what it owns is gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Holds an owner until what it owns is its own no more.
pub(crate) const ORPHAN: &str = "orphan";

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let list = object["metadata"]["finalizers"].as_array();
    list.is_some_and(|list| list.iter().any(|f| f == finalizer))
}

/// Acts on the collector's own finalizers.
pub(crate) fn start_propagation(store: &mut Store, owner: &Value) {
    let uid = owner["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if has_finalizer(owner, ORPHAN) {
        for (resource, key) in store.dependents_of(&uid) {
            drop_owner(store, &resource, &key, &uid);
        }
        drop_finalizer(store, &uid, ORPHAN);
    }
    if has_finalizer(owner, FOREGROUND) {
        for (resource, key) in store.dependents_of(&uid) {
            let Ok(kind) = store.kind(&resource) else {
                continue;
            };
            let is_deleting = store
                .get(&resource, &key)
                .is_some_and(|d| d["metadata"]["deletionTimestamp"].is_string());
            if !is_deleting {
                let options = DeleteOptions {
                    propagation: Propagation::Foreground,
                    ..DeleteOptions::default()
                };
                // Gone already is as good as deleted.
                let _ = store.delete(&kind, &key, &options);
            }
        }
        finish_foreground(store, &uid);
    }
}

/// Lets a foreground-deleted owner go once nothing it blocks on is left.
fn finish_foreground(store: &mut Store, uid: &str) {
    let Some((resource, key)) = store.by_uid(uid).cloned() else {
        return;
    };
    let is_waiting = store.get(&resource, &key).is_some_and(|o| {
        has_finalizer(&o, FOREGROUND) && o["metadata"]["deletionTimestamp"].is_string()
    });
    if !is_waiting {
        return;
    }
    let is_blocked = store.dependents_of(uid).iter().any(|(resource, key)| {
        store.get(resource, key).is_some_and(|dependent| {
            let owners = dependent["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|o| {
                o["uid"].as_str() == Some(uid) && o["blockOwnerDeletion"].as_bool() == Some(true)
            })
        })
    });
    if !is_blocked {
        drop_finalizer(store, uid, FOREGROUND);
    }
}

fn drop_finalizer(store: &mut Store, uid: &str, finalizer: &str) {
    let Some((resource, key)) = store.by_uid(uid).cloned() else {
        return;
    };
    let Some(object) = store.get_to_write(&resource, &key) else {
        return;
    };
    let mut changed = (*object).clone();
    keep_in(&mut changed, "finalizers", |it| it != finalizer);
    let stored = store.put(&resource, changed);
    if let Ok(kind) = store.kind(&resource) {
        after_update(store, &kind, &key, &stored);
    }
}

fn drop_owner(store: &mut Store, resource: &Resource, key: &NamespacedName, uid: &str) {
    let Some(object) = store.get_to_write(resource, key) else {
        return;
    };
    let mut changed = (*object).clone();
    keep_in(&mut changed, "ownerReferences", |it| {
        it["uid"].as_str() != Some(uid)
    });
    store.put(resource, changed);
}

/// Takes what is not to be kept out of a list of an object's metadata, which is not left empty.
fn keep_in(object: &mut Value, list: &str, keep: impl Fn(&Value) -> bool) {
    let Some(items) = object["metadata"][list].as_array_mut() else {
        return;
    };
    items.retain(keep);
    if items.is_empty()
        && let Some(fields) = object["metadata"].as_object_mut()
    {
        fields.remove(list);
    }
}

/// After a write: an object that waited only for its finalizers goes when the last one is off.
pub(crate) fn after_update(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    key: &NamespacedName,
    stored: &Value,
) {
    let metadata = &stored["metadata"];
    let is_free = metadata["deletionTimestamp"].is_string()
        && metadata["finalizers"].as_array().is_none_or(Vec::is_empty)
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
    if !is_free {
        return;
    }
    if kind.resource == Resource::NAMESPACES && !store.in_namespace(&key.name).is_empty() {
        return;
    }
    if store.remove(&kind.resource, key).is_some() {
        after_removal(store, &kind.resource, stored);
    }
}

/// After an object is gone: its dependents, its waiting owners and its namespace.
pub(crate) fn after_removal(store: &mut Store, resource: &Resource, gone: &Value) {
    let uid = gone["metadata"]["uid"].as_str().unwrap_or_default();
    for (resource, key) in store.dependents_of(uid) {
        let Some(dependent) = store.get(&resource, &key) else {
            continue;
        };
        let has_other_owner = owner_uids(&dependent)
            .iter()
            .any(|o| o != uid && store.by_uid(o).is_some());
        if has_other_owner {
            drop_owner(store, &resource, &key, uid);
        } else if let Ok(kind) = store.kind(&resource) {
            // Gone already is as good as deleted.
            let _ = store.delete(&kind, &key, &DeleteOptions::default());
        }
    }
    for owner in owner_uids(gone) {
        finish_foreground(store, &owner);
    }
    crate::write::admission::after_removal(store, resource, gone);
    if let Some(namespace) = gone["metadata"]["namespace"].as_str() {
        finish_namespace(store, namespace);
    }
}

pub(crate) fn empty_namespace(store: &mut Store, namespace: &str) {
    for (resource, key) in store.in_namespace(namespace) {
        if let Ok(kind) = store.kind(&resource) {
            // Gone already is as good as deleted.
            let _ = store.delete(&kind, &key, &DeleteOptions::default());
        }
    }
}

fn finish_namespace(store: &mut Store, namespace: &str) {
    let key = NamespacedName::new("", namespace);
    let Some(object) = store.get(&Resource::NAMESPACES, &key) else {
        return;
    };
    if object["metadata"]["deletionTimestamp"].is_string()
        && let Ok(kind) = store.kind(&Resource::NAMESPACES)
    {
        after_update(store, &kind, &key, &object);
    }
}
