//! Who owns whom, by UID.

use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::store::Store;
use serde_json::Value;

impl Store {
    pub(crate) fn by_uid(&self, uid: &str) -> Option<&(Resource, NamespacedName)> {
        self.uids.get(uid)
    }

    pub(crate) fn dependents_of(&self, uid: &str) -> Vec<(Resource, NamespacedName)> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    pub(super) fn index_owners(
        &mut self,
        resource: &Resource,
        key: &NamespacedName,
        before: &[String],
        after: &[String],
    ) {
        if before == after {
            return;
        }
        let entry = (resource.clone(), key.clone());
        for uid in before {
            if let Some(set) = self.dependents.get_mut(uid) {
                set.remove(&entry);
                if set.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        for uid in after {
            self.dependents
                .entry(uid.clone())
                .or_default()
                .insert(entry.clone());
        }
    }
}

/// UIDs of the owners an object names.
pub(crate) fn owner_uids(object: &Value) -> Vec<String> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let uids = owners
        .into_iter()
        .flatten()
        .filter_map(|o| o["uid"].as_str());
    uids.map(str::to_owned).collect()
}
