//! The server as the controllers of the simulated world use it: plain calls on shared values.
//!
//! Speaks no HTTP, and waits for nothing but the lock of the store.

use std::sync::{Arc, Mutex};

use jiff::SignedDuration;
use serde::Serialize;
use serde_json::Value;

use crate::builtin;
use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::selectors::Selection;
use crate::status::StatusError;
use crate::store::watch::Watch;
use crate::store::{Now, Store};
use crate::sync::lock;
use crate::write::eviction;
use crate::write::options::DeleteOptions;
use crate::write::options::{ObjectPart, WriteOptions};
use crate::write::patch::{self, Patch};

/// A handle on the server; clones share the same objects.
#[derive(Clone)]
pub struct ApiServer {
    store: Arc<Mutex<Store>>,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl ApiServer {
    /// A server with the built-in kinds, the system namespaces and the system priority classes.
    ///
    /// `seed` decides UIDs and generated names, `now` every timestamp.
    pub fn new(seed: u64, now: Now) -> Self {
        let mut store = Store::new(seed, now, builtin::kinds::all());
        builtin::populate(&mut store);
        Self {
            store: Arc::new(Mutex::new(store)),
        }
    }

    /// Says from now on that it is of this minor version.
    pub fn claim_minor_version(&self, minor: u32) {
        self.with(|store| store.kubernetes_minor = minor);
    }

    /// Keeps little of the past and few objects ready to read from now on: for who has one client, in this process,
    /// that lists anew at no cost.
    pub fn stay_small(&self) {
        self.with(|store| {
            (store.log_length_max, store.awake_max) = (4, 32);
            store.event_ttl = SignedDuration::from_mins(5);
        });
    }

    /// Runs `f` on the locked store.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Store) -> T) -> T {
        f(&mut lock(&self.store))
    }

    /// Revision of the newest change.
    pub fn revision(&self) -> u64 {
        self.with(|store| store.revision())
    }

    /// Serves the kind of a CustomResourceDefinition, given as JSON or as a typed object.
    pub fn install_crd(&self, definition: &impl Serialize) -> Result<(), StatusError> {
        let value = serde_json::to_value(definition)
            .map_err(|e| StatusError::bad_request(e.to_string()))?;
        match self.create(&Resource::CUSTOM_RESOURCE_DEFINITIONS, "", value) {
            Err(status) if status.is_already_exists() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// One object. `namespace` is empty for cluster-wide kinds.
    pub fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Value>, StatusError> {
        let key = NamespacedName::new(namespace, name);
        self.with(|store| {
            store
                .get(resource, &key)
                .ok_or_else(|| StatusError::not_found(resource, name))
        })
    }

    /// The selected objects, in order of namespace and name. A kind that is not served has none.
    pub fn list(&self, resource: &Resource, selection: &Selection) -> Vec<Arc<Value>> {
        self.with(|store| store.list(resource, selection))
    }

    /// The selected objects, and a watch that continues from exactly there.
    pub fn list_and_watch(
        &self,
        resource: &Resource,
        selection: &Selection,
    ) -> (Vec<Arc<Value>>, Watch) {
        self.with(|store| {
            (
                store.list(resource, selection),
                store.watch_from_now(&[resource], selection.clone()),
            )
        })
    }

    /// A watch on several resources from now on; its events come in the order they happened.
    pub fn watch(&self, resources: &[&Resource]) -> Watch {
        self.with(|store| store.watch_from_now(resources, Selection::everything()))
    }

    /// Creates an object. `namespace` may be empty when the object names its own.
    pub fn create(
        &self,
        resource: &Resource,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Value>, StatusError> {
        self.create_with(resource, namespace, object, &WriteOptions::default())
    }

    /// Creates an object with options.
    pub fn create_with(
        &self,
        resource: &Resource,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Value>, StatusError> {
        self.with(|store| {
            let kind = store.kind(resource)?;
            store.create(&kind, namespace, object, options)
        })
    }

    /// Puts an object as another server has it, status, UID and times included: for mirrors, which are told what has
    /// been admitted elsewhere. Custom resources are pruned and defaulted as the kind is here. One that is there is
    /// replaced and keeps its UID.
    pub fn restore(&self, resource: &Resource, object: Value) -> Result<Arc<Value>, StatusError> {
        self.with(|store| {
            let kind = store.kind(resource)?;
            store.restore(&kind, object)
        })
    }

    /// Replaces an object, except its status. A resource version in it must be the present one.
    pub fn update(&self, resource: &Resource, object: Value) -> Result<Arc<Value>, StatusError> {
        self.update_with(resource, object, &WriteOptions::default())
    }

    /// Replaces the status of an object. A resource version in it must be the present one.
    pub fn update_status(
        &self,
        resource: &Resource,
        object: Value,
    ) -> Result<Arc<Value>, StatusError> {
        self.update_with(resource, object, &WriteOptions::of(ObjectPart::Status))
    }

    /// Replaces a part of an object, with options.
    pub fn update_with(
        &self,
        resource: &Resource,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Arc<Value>, StatusError> {
        let key = NamespacedName::of(&object);
        self.with(|store| {
            let kind = store.kind(resource)?;
            store.update(&kind, &key, object, options)
        })
    }

    /// Reads, changes and stores an object in one step, except its status. `change` runs under the server's lock:
    /// it must not call the server.
    pub fn modify(
        &self,
        resource: &Resource,
        key: &NamespacedName,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Value>, StatusError> {
        self.modify_part(resource, key, ObjectPart::Main, change)
    }

    /// Reads, changes and stores an object's status in one step.
    pub fn modify_status(
        &self,
        resource: &Resource,
        key: &NamespacedName,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Value>, StatusError> {
        self.modify_part(resource, key, ObjectPart::Status, change)
    }

    /// Reads, changes and stores a part of an object in one step. [`ObjectPart::Whole`] skips validation: it is for
    /// the world's own components, which may set spec and status at once.
    pub fn modify_part(
        &self,
        resource: &Resource,
        key: &NamespacedName,
        part: ObjectPart,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Value>, StatusError> {
        self.with(|store| {
            let kind = store.kind(resource)?;
            let old = store
                .get_to_write(resource, key)
                .ok_or_else(|| StatusError::not_found(resource, &key.name))?;
            let mut object = (*old).clone();
            change(&mut object);
            store.update(&kind, key, object, &WriteOptions::of(part))
        })
    }

    /// Patches a part of an object.
    pub fn patch(
        &self,
        resource: &Resource,
        key: &NamespacedName,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Arc<Value>, StatusError> {
        self.with(|store| {
            let kind = store.kind(resource)?;
            patch::run(store, &kind, key, patch, options)
        })
    }

    /// Merges `patch` into an object, except its status (RFC 7386).
    pub fn patch_merge(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Arc<Value>, StatusError> {
        let key = NamespacedName::new(namespace, name);
        self.patch(
            resource,
            &key,
            &Patch::Merge(patch),
            &WriteOptions::default(),
        )
    }

    /// Merges `patch` into an object's status (RFC 7386).
    pub fn patch_merge_status(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Arc<Value>, StatusError> {
        let key = NamespacedName::new(namespace, name);
        let options = WriteOptions::of(ObjectPart::Status);
        self.patch(resource, &key, &Patch::Merge(patch), &options)
    }

    /// Deletes an object: at once, or by marking it where grace or finalizers ask for it.
    pub fn delete(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Arc<Value>, StatusError> {
        let key = NamespacedName::new(namespace, name);
        self.with(|store| {
            let kind = store.kind(resource)?;
            store.delete(&kind, &key, options)
        })
    }

    /// Binds a pod to a node, as the scheduler does: sets `spec.nodeName` and the PodScheduled condition.
    pub fn bind(&self, namespace: &str, pod: &str, node: &str) -> Result<Arc<Value>, StatusError> {
        let key = NamespacedName::new(namespace, pod);
        self.with(|store| builtin::pod::bind(store, &key, node, &WriteOptions::default()))
    }

    /// Evicts a pod, if every disruption budget that covers it agrees.
    pub fn evict(
        &self,
        namespace: &str,
        pod: &str,
        options: &DeleteOptions,
    ) -> Result<(), StatusError> {
        let key = NamespacedName::new(namespace, pod);
        self.with(|store| eviction::evict(store, &key, options))
    }

    /// Sets the replicas of a kind with a scale subresource.
    pub fn scale(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        replicas: i64,
    ) -> Result<Arc<Value>, StatusError> {
        let key = NamespacedName::new(namespace, name);
        self.with(|store| {
            let kind = store.kind(resource)?;
            crate::write::scale::set(store, &kind, &key, replicas, &WriteOptions::default())
        })
    }
}
