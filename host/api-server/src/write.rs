//! Creates and updates: the metadata that the server owns, the split of spec and status, and admission.
//!
//! Works on a locked store and leaves it consistent; garbage collection that follows is `garbage_collector`'s.

mod admission;
mod apply;
mod deletion;
pub(super) mod eviction;
mod garbage_collector;
mod generate_name;
mod identity;
pub(super) mod list_kind;
mod managed_fields;
mod metadata;
pub(super) mod options;
mod parts;
pub(super) mod patch;
pub(super) mod scale;

use self::identity::{check_identity, check_preconditions};
use self::metadata::{keep_server_metadata, metadata};
use self::parts::{is_spec_changed, split_parts};
use crate::timestamp::time_text;
use crate::write::options::{ObjectPart, WriteOptions};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::served::kinds::ServedKind;
use crate::served::schema;
use crate::status::StatusError;
use crate::store::Store;

impl Store {
    /// The kind of a table, or 404.
    pub(super) fn kind(&self, resource: &Resource) -> Result<Arc<ServedKind>, StatusError> {
        self.kinds
            .of(resource)
            .cloned()
            .ok_or_else(StatusError::no_such_resource)
    }

    /// Creates an object.
    pub(super) fn create(
        &mut self,
        kind: &Arc<ServedKind>,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Value>, StatusError> {
        let now = self.now();
        check_identity(kind, namespace, None, &mut object)?;
        let resource = kind.resource.clone();
        self.name_new_object(kind, &mut object)?;
        let key = NamespacedName::of(&object);
        if self.contains(&resource, &key) {
            return Err(StatusError::already_exists(&resource, &key.name));
        }
        self.check_namespace(kind, &key)?;
        let defined = admission::on_create(self, kind, &mut object)?;
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
        if resource == Resource::JOBS {
            crate::builtin::workload::defaults::set_job_selector(&mut object);
        }
        managed_fields::after_create(kind, &mut object, options, now);
        if options.dry_run {
            return Ok(Arc::new(object));
        }
        let stored = self.put(&resource, object);
        admission::after_write(self, kind, &stored, defined)?;
        self.age_events_out(&resource, &key, now);
        Ok(stored)
    }

    /// Puts an object that was admitted elsewhere.
    pub(super) fn restore(
        &mut self,
        kind: &Arc<ServedKind>,
        mut object: Value,
    ) -> Result<Arc<Value>, StatusError> {
        let now = self.now();
        check_identity(kind, "", None, &mut object)?;
        let key = NamespacedName::of(&object);
        if key.name.is_empty() {
            return Err(StatusError::bad_request("the object has no name"));
        }
        if let Some(version) = kind.stored_custom() {
            schema::prepare(&version.schema, &mut object);
        }
        let old = self.get_to_write(&kind.resource, &key);
        let old_uid = old.map(|it| it["metadata"]["uid"].clone());
        let fresh = self.names.uid();
        let fields = metadata(&mut object)?;
        fields.remove("resourceVersion");
        if let Some(uid) = old_uid {
            fields.insert("uid".to_owned(), uid);
        }
        let defaults = [
            ("uid", Value::from(fresh)),
            ("creationTimestamp", time_text(now).into()),
        ];
        for (field, value) in defaults {
            if fields.get(field).is_none_or(Value::is_null) {
                fields.insert(field.to_owned(), value);
            }
        }
        if kind.has_generation && !fields.contains_key("generation") {
            fields.insert("generation".to_owned(), 1.into());
        }
        let stored = self.put(&kind.resource, object);
        admission::after_write(self, kind, &stored, None)?;
        Ok(stored)
    }

    /// Takes Events away that nobody wrote for long, now that one is written.
    fn age_events_out(&mut self, resource: &Resource, key: &NamespacedName, now: Timestamp) {
        if *resource != Resource::EVENTS {
            return;
        }
        self.event_ages.note_write(now, key);
        for old in self.event_ages.take_aged(now, self.event_ttl) {
            self.remove(&Resource::EVENTS, &old);
        }
    }

    fn check_namespace(&self, kind: &ServedKind, key: &NamespacedName) -> Result<(), StatusError> {
        if !kind.is_namespaced {
            return Ok(());
        }
        let namespace = self
            .get(
                &Resource::NAMESPACES,
                &NamespacedName::new("", key.namespace.as_str()),
            )
            .ok_or_else(|| StatusError::not_found(&Resource::NAMESPACES, &key.namespace))?;
        if namespace["metadata"]["deletionTimestamp"].is_string() {
            return Err(StatusError::terminating_namespace(
                &kind.resource,
                &key.name,
                &key.namespace,
            ));
        }
        Ok(())
    }

    /// Replaces a part of an object.
    pub(super) fn update(
        &mut self,
        kind: &Arc<ServedKind>,
        key: &NamespacedName,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Value>, StatusError> {
        let (part, now) = (options.part, self.now());
        let old = self
            .get_to_write(&kind.resource, key)
            .ok_or_else(|| StatusError::not_found(&kind.resource, &key.name))?;
        check_identity(kind, &key.namespace, Some(&key.name), &mut object)?;
        check_preconditions(kind, key, &old, &object)?;
        keep_server_metadata(&old, &mut object)?;
        split_parts(kind, &old, &mut object, part);
        let defined = admission::on_update(kind, &old, &mut object, part)?;
        if kind.has_generation && part != ObjectPart::Status && is_spec_changed(&old, &object) {
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
        admission::after_write(self, kind, &stored, defined)?;
        garbage_collector::after_update(self, kind, key, &stored);
        self.age_events_out(&kind.resource, key, now);
        Ok(stored)
    }
}
