//! Deletion: grace periods, finalizers, propagation to owned objects, and emptying of namespaces.
//!
//! A cluster's garbage collector is a controller that lags; here it runs to its end inside the request, so that
//! runs repeat. Answers to apiserver's `registry/generic` delete and to the garbage collector.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::kinds::Kind;
use super::resource::Resource;
use super::status::Status;
use super::store::{ObjectKey, Store, owner_uids};
use super::write::time_text;

/// What becomes of owned objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// They are deleted after their owner.
    #[default]
    Background,
    /// They are deleted before their owner goes.
    Foreground,
    /// They lose their reference and stay.
    Orphan,
}

/// How to delete.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// Seconds a pod may take; its own wish when absent. Zero removes it now.
    pub grace_period_seconds: Option<i64>,
    /// Only this incarnation.
    pub uid: Option<String>,
    /// Only this revision.
    pub resource_version: Option<String>,
    /// What becomes of owned objects.
    pub propagation: Propagation,
    /// Go through everything and delete nothing.
    pub dry_run: bool,
}

impl DeleteOptions {
    /// Removes without grace, as a kubelet does once containers are gone.
    pub fn now() -> Self {
        Self {
            grace_period_seconds: Some(0),
            ..Self::default()
        }
    }

    /// Only the object with this UID.
    pub fn of_uid(uid: impl Into<String>) -> Self {
        Self {
            uid: Some(uid.into()),
            ..Self::default()
        }
    }
}

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

impl Store {
    /// Deletes an object, or marks it where something must happen first.
    pub(super) fn delete(
        &mut self,
        kind: &Arc<Kind>,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Arc<Value>, Status> {
        let resource = &kind.resource;
        let old = self
            .get_to_write(resource, key)
            .ok_or_else(|| Status::not_found(resource, &key.name))?;
        check_preconditions(resource, key, &old, options)?;
        if options.dry_run {
            return Ok(old);
        }
        let grace = grace_seconds(resource, &old, options);
        let is_waiting = grace > 0
            || options.propagation != Propagation::Background
            || old["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|f| !f.is_empty())
            || *resource == Resource::NAMESPACES;
        if !is_waiting {
            let last = self.remove(resource, key);
            after_removal(self, &old);
            return Ok(last.unwrap_or(old));
        }
        let mut marked = (*old).clone();
        mark(&mut marked, grace, options.propagation, self.now());
        if *resource == Resource::NAMESPACES {
            marked["status"]["phase"] = "Terminating".into();
        }
        let stored = if marked == *old {
            old
        } else {
            self.put(resource, marked)
        };
        if *resource == Resource::NAMESPACES {
            empty_namespace(self, &key.name);
        }
        start_propagation(self, &stored);
        after_update(self, kind, key, &stored);
        Ok(stored)
    }
}

fn check_preconditions(
    resource: &Resource,
    key: &ObjectKey,
    old: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    for (wanted, field, words) in [
        (&options.uid, "uid", "UID"),
        (
            &options.resource_version,
            "resourceVersion",
            "ResourceVersion",
        ),
    ] {
        let actual = old["metadata"][field].as_str().unwrap_or_default();
        if let Some(wanted) = wanted
            && wanted != actual
        {
            let detail = format!(
                "Precondition failed: {words} in precondition: {wanted}, {words} in object meta: \
                 {actual}"
            );
            return Err(Status::conflict(resource, &key.name, &detail));
        }
    }
    Ok(())
}

/// Only pods know grace, and only those that a kubelet may be running.
fn grace_seconds(resource: &Resource, pod: &Value, options: &DeleteOptions) -> i64 {
    if *resource != Resource::PODS {
        return 0;
    }
    let is_assigned = pod["spec"]["nodeName"]
        .as_str()
        .is_some_and(|n| !n.is_empty());
    let is_finished = matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    if !is_assigned || is_finished {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(30);
    options.grace_period_seconds.unwrap_or(own).max(0)
}

fn mark(object: &mut Value, grace: i64, propagation: Propagation, now: Timestamp) {
    let previous = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
    let is_marked = object["metadata"]["deletionTimestamp"].is_string();
    // A later request may only shorten the grace.
    if !is_marked || previous.is_some_and(|previous| grace < previous) {
        let deadline = now
            .checked_add(SignedDuration::from_secs(grace))
            .unwrap_or(now);
        object["metadata"]["deletionTimestamp"] = time_text(deadline).into();
        object["metadata"]["deletionGracePeriodSeconds"] = grace.into();
        if !is_marked && let Some(generation) = object["metadata"]["generation"].as_i64() {
            object["metadata"]["generation"] = (generation + 1).into();
        }
    }
    let finalizer = match propagation {
        Propagation::Background => return,
        Propagation::Foreground => FOREGROUND,
        Propagation::Orphan => ORPHAN,
    };
    if !has_finalizer(object, finalizer) {
        match object["metadata"]["finalizers"].as_array_mut() {
            Some(list) => list.push(finalizer.into()),
            None => object["metadata"]["finalizers"] = json!([finalizer]),
        }
    }
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let list = object["metadata"]["finalizers"].as_array();
    list.is_some_and(|list| list.iter().any(|f| f == finalizer))
}

/// Acts on the collector's own finalizers.
fn start_propagation(store: &mut Store, owner: &Value) {
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
    let Some(object) = store.get(&resource, &key) else {
        return;
    };
    let mut changed = (*object).clone();
    if let Some(list) = changed["metadata"]["finalizers"].as_array_mut() {
        list.retain(|f| f != finalizer);
        if list.is_empty()
            && let Some(fields) = changed["metadata"].as_object_mut()
        {
            fields.remove("finalizers");
        }
    }
    let stored = store.put(&resource, changed);
    if let Ok(kind) = store.kind(&resource) {
        after_update(store, &kind, &key, &stored);
    }
}

fn drop_owner(store: &mut Store, resource: &Resource, key: &ObjectKey, uid: &str) {
    let Some(object) = store.get(resource, key) else {
        return;
    };
    let mut changed = (*object).clone();
    if let Some(list) = changed["metadata"]["ownerReferences"].as_array_mut() {
        list.retain(|o| o["uid"].as_str() != Some(uid));
        if list.is_empty()
            && let Some(fields) = changed["metadata"].as_object_mut()
        {
            fields.remove("ownerReferences");
        }
    }
    store.put(resource, changed);
}

/// After a write: an object that waited only for its finalizers goes when the last one is off.
pub(super) fn after_update(store: &mut Store, kind: &Arc<Kind>, key: &ObjectKey, stored: &Value) {
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
        after_removal(store, stored);
    }
}

/// After an object is gone: its dependents, its waiting owners and its namespace.
fn after_removal(store: &mut Store, gone: &Value) {
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
    super::admission::after_removal(store, gone);
    if let Some(namespace) = gone["metadata"]["namespace"].as_str() {
        finish_namespace(store, namespace);
    }
}

fn empty_namespace(store: &mut Store, namespace: &str) {
    for (resource, key) in store.in_namespace(namespace) {
        if let Ok(kind) = store.kind(&resource) {
            // Gone already is as good as deleted.
            let _ = store.delete(&kind, &key, &DeleteOptions::default());
        }
    }
}

fn finish_namespace(store: &mut Store, namespace: &str) {
    let key = ObjectKey::new("", namespace);
    let Some(object) = store.get(&Resource::NAMESPACES, &key) else {
        return;
    };
    if object["metadata"]["deletionTimestamp"].is_string()
        && let Ok(kind) = store.kind(&Resource::NAMESPACES)
    {
        after_update(store, &kind, &key, &object);
    }
}
