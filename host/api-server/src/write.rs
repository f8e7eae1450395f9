//! Creates and updates: the metadata that the server owns, the split of spec and status, and admission.
//!
//! Works on a locked store and leaves it consistent; garbage collection that follows is `garbage_collector`'s.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::admission;
use super::garbage_collector;
use super::kinds::Kind;
use super::managed_fields;
use super::resource::Resource;
use super::status::{FieldError, Status};
use super::store::{ObjectKey, Store};

/// What a write may ask for besides its object.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Which part of the object an update means.
    pub part: Part,
    /// Go through everything and store nothing.
    pub dry_run: bool,
    /// Who writes; named writers get their fields recorded.
    pub field_manager: Option<String>,
    /// The write is an apply, which does its own bookkeeping of fields.
    pub is_apply: bool,
}

/// The part of an object an update means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// Everything but status, where status is a subresource.
    #[default]
    Main,
    /// Status alone.
    Status,
    /// Everything, without the split: the server's own bookkeeping.
    Whole,
}

/// Seconds since the epoch as Kubernetes prints times.
pub(super) fn time_text(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The metadata map of an object, made if absent.
pub(super) fn metadata(object: &mut Value) -> Result<&mut Map<String, Value>, Status> {
    let fields = object
        .as_object_mut()
        .ok_or_else(|| Status::bad_request("the object provided is not a JSON object"))?;
    let entry = fields.entry("metadata").or_insert_with(|| json!({}));
    if entry.is_null() {
        *entry = json!({});
    }
    entry
        .as_object_mut()
        .ok_or_else(|| Status::bad_request("metadata of the object provided is not a JSON object"))
}

/// Checks that body and path speak of the same kind and fills in what the body leaves out.
fn check_identity(
    kind: &Kind,
    namespace: &str,
    name: Option<&str>,
    object: &mut Value,
) -> Result<(), Status> {
    let body_kind = object["kind"].as_str().unwrap_or_default();
    if !body_kind.is_empty() && body_kind != kind.kind {
        return Err(Status::bad_request(format!(
            "{body_kind} in the data does not match the expected kind {}",
            kind.kind
        )));
    }
    kind.to_storage(object);
    let fields = metadata(object)?;
    if kind.is_namespaced {
        let given = fields
            .get("namespace")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !given.is_empty() && !namespace.is_empty() && given != namespace {
            return Err(Status::bad_request(format!(
                "the namespace of the provided object does not match the namespace sent on the \
                 request ({given} is not {namespace})"
            )));
        }
        if given.is_empty() {
            let namespace = if namespace.is_empty() {
                "default"
            } else {
                namespace
            };
            fields.insert("namespace".to_owned(), namespace.into());
        }
    } else {
        fields.remove("namespace");
    }
    if let Some(name) = name {
        let given = fields
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if given.is_empty() {
            fields.insert("name".to_owned(), name.into());
        } else if given != name {
            return Err(Status::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
    }
    Ok(())
}

impl Store {
    /// The kind of a table, or 404.
    pub(super) fn kind(&self, resource: &Resource) -> Result<Arc<Kind>, Status> {
        self.kinds
            .of(resource)
            .cloned()
            .ok_or_else(Status::no_such_resource)
    }

    /// Creates an object.
    pub(super) fn create(
        &mut self,
        kind: &Arc<Kind>,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Value>, Status> {
        let now = self.now();
        check_identity(kind, namespace, None, &mut object)?;
        let resource = kind.resource.clone();
        self.name_new_object(kind, &mut object)?;
        let key = ObjectKey::of(&object);
        if self.contains(&resource, &key) {
            return Err(Status::already_exists(&resource, &key.name));
        }
        self.check_namespace(kind, &key)?;
        admission::on_create(self, kind, &mut object)?;
        let uid = self.names.uid();
        let fields = metadata(&mut object)?;
        for owned in [
            "resourceVersion",
            "selfLink",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            fields.remove(owned);
        }
        fields.insert("uid".to_owned(), uid.into());
        fields.insert("creationTimestamp".to_owned(), time_text(now).into());
        if kind.has_generation {
            fields.insert("generation".to_owned(), 1.into());
        } else {
            fields.remove("generation");
        }
        if kind.kind == "Job" {
            super::builtin::set_job_selector(&mut object);
        }
        managed_fields::after_create(kind, &mut object, options, now);
        if options.dry_run {
            return Ok(Arc::new(object));
        }
        let stored = self.put(&resource, object);
        admission::after_write(self, kind, &stored)?;
        if resource == Resource::EVENTS {
            self.age_events_out(now, key);
        }
        Ok(stored)
    }

    /// Events live an hour, as in a cluster.
    fn age_events_out(&mut self, now: Timestamp, key: ObjectKey) {
        self.event_ages.push_back((now, key));
        while let Some((made, _)) = self.event_ages.front() {
            if now.duration_since(*made).as_secs() < 3600 {
                break;
            }
            if let Some((_, old)) = self.event_ages.pop_front() {
                self.remove(&Resource::EVENTS, &old);
            }
        }
    }

    fn name_new_object(&mut self, kind: &Kind, object: &mut Value) -> Result<(), Status> {
        let fields = metadata(object)?;
        let name = fields
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if !name.is_empty() {
            return Ok(());
        }
        let stem = fields
            .get("generateName")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if stem.is_empty() {
            let error = FieldError::required("metadata.name", "name or generateName is required");
            return Err(Status::invalid(&kind.group, &kind.kind, "", &[error]));
        }
        let stem: String = stem.chars().take(58).collect();
        let mut key = ObjectKey::of(object);
        loop {
            key.name = format!("{stem}{}", self.names.suffix());
            if !self.contains(&kind.resource, &key) {
                break;
            }
        }
        metadata(object)?.insert("name".to_owned(), key.name.into());
        Ok(())
    }

    fn check_namespace(&self, kind: &Kind, key: &ObjectKey) -> Result<(), Status> {
        if !kind.is_namespaced {
            return Ok(());
        }
        let namespace = self
            .get(
                &Resource::NAMESPACES,
                &ObjectKey::new("", key.namespace.as_str()),
            )
            .ok_or_else(|| Status::not_found(&Resource::NAMESPACES, &key.namespace))?;
        if namespace["metadata"]["deletionTimestamp"].is_string() {
            return Err(Status::forbidden(
                &kind.resource,
                &key.name,
                &format!(
                    "unable to create new content in namespace {} because it is being terminated",
                    key.namespace
                ),
            ));
        }
        Ok(())
    }

    /// Replaces a part of an object.
    pub(super) fn update(
        &mut self,
        kind: &Arc<Kind>,
        key: &ObjectKey,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Value>, Status> {
        let (part, now) = (options.part, self.now());
        let old = self
            .get_to_write(&kind.resource, key)
            .ok_or_else(|| Status::not_found(&kind.resource, &key.name))?;
        check_identity(kind, &key.namespace, Some(&key.name), &mut object)?;
        check_preconditions(kind, key, &old, &object)?;
        keep_server_metadata(&old, &mut object)?;
        split_parts(kind, &old, &mut object, part);
        admission::on_update(self, kind, &old, &mut object, part)?;
        if kind.has_generation && part != Part::Status && is_spec_changed(&old, &object) {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(1) + 1;
            metadata(&mut object)?.insert("generation".to_owned(), generation.into());
        }
        managed_fields::after_update(kind, &old, &mut object, options, now);
        if object == *old {
            return Ok(old);
        }
        if options.dry_run {
            return Ok(Arc::new(object));
        }
        let stored = self.put(&kind.resource, object);
        admission::after_write(self, kind, &stored)?;
        garbage_collector::after_update(self, kind, key, &stored);
        Ok(stored)
    }
}

fn check_preconditions(
    kind: &Kind,
    key: &ObjectKey,
    old: &Value,
    new: &Value,
) -> Result<(), Status> {
    let given = new["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    if !given.is_empty()
        && given != "0"
        && Some(given) != old["metadata"]["resourceVersion"].as_str()
    {
        return Err(Status::conflict(
            &kind.resource,
            &key.name,
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        ));
    }
    let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
    let actual = old["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != actual {
        return Err(Status::conflict(
            &kind.resource,
            &key.name,
            &format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
            ),
        ));
    }
    Ok(())
}

/// Copies what clients may not change from the old metadata.
fn keep_server_metadata(old: &Value, new: &mut Value) -> Result<(), Status> {
    let had_managed_fields = old["metadata"].get("managedFields").cloned();
    let fields = metadata(new)?;
    for owned in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ] {
        match old["metadata"].get(owned) {
            Some(value) => fields.insert(owned.to_owned(), value.clone()),
            None => fields.remove(owned),
        };
    }
    fields.remove("selfLink");
    // A client that leaves managedFields out keeps them; one that sends the empty list clears them.
    if !fields.contains_key("managedFields")
        && let Some(kept) = had_managed_fields
    {
        fields.insert("managedFields".to_owned(), kept);
    }
    for empty in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let is_blank = match fields.get(empty) {
            Some(Value::Null) => true,
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            _ => false,
        };
        if is_blank {
            fields.remove(empty);
        }
    }
    Ok(())
}

/// Keeps spec and status apart where status is a subresource.
fn split_parts(kind: &Kind, old: &Value, new: &mut Value, part: Part) {
    let copy = |field: &str, new: &mut Value| match old.get(field) {
        Some(value) => new[field] = value.clone(),
        None => {
            if let Some(map) = new.as_object_mut() {
                map.remove(field);
            }
        }
    };
    match part {
        Part::Main if kind.has_status => copy("status", new),
        Part::Status => keep_all_but_status(kind, old, new),
        Part::Main | Part::Whole => {}
    }
}

/// Takes back whatever a status update changed besides the status. Equal fields are left where they are: that is
/// the common case, and comparing is cheaper than copying.
fn keep_all_but_status(kind: &Kind, old: &Value, new: &mut Value) {
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

fn is_spec_changed(old: &Value, new: &Value) -> bool {
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
