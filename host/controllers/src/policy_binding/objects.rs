//! Objects of policies that the watches told of: their ConfigMaps, and which of the others they name.
//!
//! Shared by the watches, which write, and the controller, which is woken and reads. Of a ConfigMap that carries no
//! policy only the name is watched; it is read when a binding that names it is looked at. So the controller never holds
//! what nobody handed to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::ObjectKey;
use k8s_openapi::api::core::v1::ConfigMap;
use locks::lock;

use crate::shell::runtime::work_queue::{BackOff, WorkQueue};

/// A fact about the ConfigMaps in the policy namespace.
#[derive(Debug)]
pub(crate) enum PolicyFact {
    /// A binding was added or changed.
    Applied(ObjectKey, Arc<ConfigMap>),
    /// A binding is gone.
    Deleted(ObjectKey),
    /// These are all bindings.
    Listed(BTreeSet<ObjectKey>),
    /// One that bindings may name was added, changed or deleted.
    DataTouched(ObjectKey),
    /// These are all that bindings may name.
    DataListed(BTreeSet<ObjectKey>),
}

/// Bindings as the watches told of them.
pub(crate) struct PolicyObjects {
    objects: Mutex<Objects>,
    /// Bindings that the controller is to look at.
    pub(crate) queue: Arc<WorkQueue<ObjectKey>>,
}

impl PolicyObjects {
    pub(crate) fn new() -> Self {
        let back_off = BackOff {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        };
        Self {
            objects: Mutex::default(),
            queue: Arc::new(WorkQueue::new(back_off)),
        }
    }

    /// Takes in what a watch told, and has looked at what that concerns.
    pub(crate) fn take(&self, fact: PolicyFact) {
        let woken = self.objects().take(fact);
        self.wake(woken);
    }

    /// NodePools came, went or changed their labels: any binding may be for them.
    pub(crate) fn node_pools_changed(&self) {
        let mut objects = self.objects();
        objects.are_pools_told = false;
        let woken = objects.bindings.keys().cloned().collect();
        drop(objects);
        self.wake(woken);
    }

    /// Wakes the controller for a binding of which there is something new elsewhere.
    pub(super) fn look_at(&self, key: &ObjectKey) {
        self.queue.add(key.clone());
    }

    /// A binding as it was told last.
    pub(super) fn binding(&self, key: &ObjectKey) -> Option<Arc<ConfigMap>> {
        self.objects().bindings.get(key).cloned()
    }

    /// A binding cannot be read without these.
    pub(super) fn set_named(&self, key: &ObjectKey, names: BTreeSet<String>) {
        self.objects().named.insert(key.clone(), names);
    }

    /// Has a binding read anew when it is looked at next.
    pub(super) fn read_anew(&self, key: &ObjectKey) {
        self.objects().stale.insert(key.clone());
    }

    /// Whether a binding is to be read anew; asked once.
    pub(super) fn take_stale(&self, key: &ObjectKey) -> bool {
        self.objects().stale.remove(key)
    }

    /// Whether the registry has yet to hear of the NodePools; asked once.
    pub(super) fn take_untold_pools(&self) -> bool {
        !std::mem::replace(&mut self.objects().are_pools_told, true)
    }

    fn wake(&self, keys: Vec<ObjectKey>) {
        for key in keys {
            self.queue.add(key);
        }
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        lock(&self.objects)
    }
}

#[derive(Debug, Default)]
struct Objects {
    bindings: BTreeMap<ObjectKey, Arc<ConfigMap>>,
    /// ConfigMaps that each binding names.
    named: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// Bindings to be read anew, though their own ConfigMap is as it was.
    stale: BTreeSet<ObjectKey>,
    /// Whether the registry has heard what NodePools there are now.
    are_pools_told: bool,
}

impl Objects {
    /// Gives the bindings that are to be looked at, in the order in which they came up.
    fn take(&mut self, fact: PolicyFact) -> Vec<ObjectKey> {
        match fact {
            PolicyFact::Applied(key, config_map) => {
                let mut woken = self.naming(|names| names.contains(&key.name));
                self.bindings.insert(key.clone(), config_map);
                woken.push(key);
                woken
            }
            PolicyFact::Deleted(key) => self.delete(key),
            PolicyFact::Listed(keys) => {
                let known = self.bindings.keys();
                let gone = known.filter(|key| !keys.contains(key)).cloned();
                let gone: Vec<ObjectKey> = gone.collect();
                gone.into_iter().flat_map(|key| self.delete(key)).collect()
            }
            PolicyFact::DataTouched(key) => self.naming(|names| names.contains(&key.name)),
            PolicyFact::DataListed(keys) => {
                let listed: BTreeSet<&str> = keys.iter().map(|key| key.name.as_str()).collect();
                self.naming(|names| names.iter().any(|it| !listed.contains(it.as_str())))
            }
        }
    }

    fn delete(&mut self, key: ObjectKey) -> Vec<ObjectKey> {
        let mut woken = self.naming(|names| names.contains(&key.name));
        self.bindings.remove(&key);
        self.named.remove(&key);
        self.stale.remove(&key);
        woken.push(key);
        woken
    }

    /// The bindings that name such ConfigMaps; they are to be read anew.
    fn naming(&mut self, is_meant: impl Fn(&BTreeSet<String>) -> bool) -> Vec<ObjectKey> {
        let naming = self.named.iter().filter(|(_, names)| is_meant(names));
        let keys: Vec<ObjectKey> = naming.map(|(key, _)| key.clone()).collect();
        self.stale.extend(keys.iter().cloned());
        keys
    }
}
