//! What watches told of policies: their ConfigMaps, and which of the others they name.
//!
//! Of a ConfigMap that carries no policy only the name is watched; it is read when a binding that names it is looked
//! at. So the controller never holds what nobody handed to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::ObjectKey;
use k8s_openapi::api::core::v1::ConfigMap;

#[derive(Debug, Default)]
pub(crate) struct PolicyObjects {
    bindings: BTreeMap<ObjectKey, Arc<ConfigMap>>,
    /// ConfigMaps that each binding names.
    named: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// Bindings to be read anew, though their own ConfigMap is as it was.
    stale: BTreeSet<ObjectKey>,
    /// Whether the registry has heard what NodePools there are now.
    are_pools_told: bool,
}

impl PolicyObjects {
    /// A binding was added or changed.
    pub(crate) fn applied(&mut self, key: ObjectKey, config_map: Arc<ConfigMap>) {
        self.bindings.insert(key, config_map);
    }

    /// A binding is gone.
    pub(crate) fn deleted(&mut self, key: &ObjectKey) {
        self.bindings.remove(key);
        self.named.remove(key);
        self.stale.remove(key);
    }

    /// A binding as it was told last.
    pub(crate) fn binding(&self, key: &ObjectKey) -> Option<Arc<ConfigMap>> {
        self.bindings.get(key).cloned()
    }

    /// A binding cannot be read without these.
    pub(crate) fn names(&mut self, key: &ObjectKey, names: BTreeSet<String>) {
        self.named.insert(key.clone(), names);
    }

    /// A ConfigMap was added, changed or deleted; gives the bindings that name it.
    pub(crate) fn touched(&mut self, name: &str) -> Vec<ObjectKey> {
        let naming = self.named.iter().filter(|(_, names)| names.contains(name));
        let keys: Vec<ObjectKey> = naming.map(|(key, _)| key.clone()).collect();
        self.stale.extend(keys.iter().cloned());
        keys
    }

    /// The bindings that are known beside these.
    pub(crate) fn beside(&self, keys: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let known = self.bindings.keys();
        known.filter(|key| !keys.contains(key)).cloned().collect()
    }

    /// These are all other ConfigMaps that there are; gives the bindings that name one that is not among them.
    pub(crate) fn listed(&mut self, keys: &BTreeSet<ObjectKey>) -> Vec<ObjectKey> {
        let listed: BTreeSet<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        let misses =
            |names: &BTreeSet<String>| names.iter().any(|it| !listed.contains(it.as_str()));
        let naming = self.named.iter().filter(|(_, names)| misses(names));
        let keys: Vec<ObjectKey> = naming.map(|(key, _)| key.clone()).collect();
        self.stale.extend(keys.iter().cloned());
        keys
    }

    /// Has a binding read anew when it is looked at next.
    pub(crate) fn read_anew(&mut self, key: &ObjectKey) {
        self.stale.insert(key.clone());
    }

    /// Whether a binding is to be read anew; asked once.
    pub(crate) fn take_stale(&mut self, key: &ObjectKey) -> bool {
        self.stale.remove(key)
    }

    /// NodePools came, went or changed their labels; gives the bindings that may be for them.
    pub(crate) fn pools_touched(&mut self) -> Vec<ObjectKey> {
        self.are_pools_told = false;
        self.bindings.keys().cloned().collect()
    }

    /// Whether the registry has yet to hear of the NodePools; asked once.
    pub(crate) fn take_untold_pools(&mut self) -> bool {
        !std::mem::replace(&mut self.are_pools_told, true)
    }
}
