//! Deletion: an object goes at once, or is marked where something must happen first.
//!
//! Asks no disruption budget: whoever evicts did that before.

use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::served::kinds::ServedKind;
use crate::status::StatusError;
use crate::store::Store;
use crate::timestamp::time_text;
use crate::write::garbage_collector::{FOREGROUND, ORPHAN, has_finalizer};
use crate::write::garbage_collector::{
    after_removal, after_update, empty_namespace, start_propagation,
};
use crate::write::options::{DeleteOptions, Propagation};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;

impl Store {
    /// Deletes an object, or marks it where something must happen first.
    pub(crate) fn delete(
        &mut self,
        kind: &Arc<ServedKind>,
        key: &NamespacedName,
        options: &DeleteOptions,
    ) -> Result<Arc<Value>, StatusError> {
        let resource = &kind.resource;
        let old = self
            .get_to_write(resource, key)
            .ok_or_else(|| StatusError::not_found(resource, &key.name))?;
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
            after_removal(self, resource, &old);
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
    key: &NamespacedName,
    old: &Value,
    options: &DeleteOptions,
) -> Result<(), StatusError> {
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
            return Err(StatusError::conflict(resource, &key.name, &detail));
        }
    }
    Ok(())
}

/// Only pods know grace, and only those that a kubelet may be running.
fn grace_seconds(resource: &Resource, pod: &Value, options: &DeleteOptions) -> i64 {
    if *resource != Resource::PODS {
        return 0;
    }
    // What goes already takes a shorter grace, and nothing else.
    if let Some(given) = pending_grace(pod) {
        let asked = options.grace_period_seconds.unwrap_or(given);
        return asked.clamp(0, given);
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

/// The grace that an earlier deletion gave, if it gave any.
fn pending_grace(object: &Value) -> Option<i64> {
    let metadata = &object["metadata"];
    metadata["deletionTimestamp"].as_str()?;
    let given = metadata["deletionGracePeriodSeconds"].as_i64();
    given.filter(|given| *given > 0)
}

/// When the deletion that gave this grace was asked for: a shorter one counts from then on, too.
fn marked_at(object: &Value, given: i64) -> Option<Timestamp> {
    let deadline = object["metadata"]["deletionTimestamp"].as_str()?;
    let deadline: Timestamp = deadline.parse().ok()?;
    let given = SignedDuration::from_secs(given);
    deadline.checked_sub(given).ok()
}

fn mark(object: &mut Value, grace: i64, propagation: Propagation, now: Timestamp) {
    let is_marked = object["metadata"]["deletionTimestamp"].is_string();
    let given = pending_grace(object).filter(|given| grace < *given);
    if !is_marked || given.is_some() {
        let since = given.and_then(|given| marked_at(object, given));
        let since = since.unwrap_or(now);
        let deadline = since
            .checked_add(SignedDuration::from_secs(grace))
            .unwrap_or(since);
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
