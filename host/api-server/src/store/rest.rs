//! Objects at rest: those that nobody wrote for a while are kept as text.

use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::selectors::Selection;
use crate::store::Store;
use serde_json::Value;
use std::sync::Arc;

/// Objects that are kept ready to read; those written longer ago rest as text.
pub(super) const AWAKE_MAX: usize = 512;

/// An object as its table holds it.
#[derive(Debug)]
pub(crate) enum Stored {
    /// Ready to read, and shared with whoever does.
    Awake(Arc<Value>),
    /// As JSON, which takes a tenth of the room: most objects are written, told to everybody who watches, and left
    /// alone.
    Resting(Box<[u8]>),
}

impl Stored {
    pub(crate) fn value(&self) -> Arc<Value> {
        match self {
            Self::Awake(object) => Arc::clone(object),
            // Text that was written from a value reads back.
            Self::Resting(text) => Arc::new(serde_json::from_slice(text).unwrap_or_default()),
        }
    }

    /// The object if it is of a selection, of whose namespace it is known to be.
    pub(crate) fn selected(&self, selection: &Selection) -> Option<Arc<Value>> {
        let object = self.value();
        (selection.is_by_namespace() || selection.matches(&object)).then_some(object)
    }
}

fn revision_of(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

impl Store {
    /// The object, if there is one, and keeps it whole for a while, as it is about to be written.
    pub(crate) fn get_to_write(
        &mut self,
        resource: &Resource,
        key: &NamespacedName,
    ) -> Option<Arc<Value>> {
        let stored = self.tables.get_mut(resource)?.objects.get_mut(key)?;
        let object = stored.value();
        if let Stored::Resting(_) = *stored {
            *stored = Stored::Awake(Arc::clone(&object));
            self.lull(resource, key, revision_of(&object));
        }
        Some(object)
    }

    /// Notes that an object is awake, and puts those to rest that have been so for longest.
    pub(super) fn lull(&mut self, resource: &Resource, key: &NamespacedName, revision: u64) {
        self.awake
            .push_back((resource.clone(), key.clone(), revision));
        while self.awake.len() > self.awake_max
            && let Some((resource, key, revision)) = self.awake.pop_front()
        {
            self.put_to_rest(&resource, &key, revision);
        }
    }

    /// An object that was written since is left awake: it was noted again.
    fn put_to_rest(&mut self, resource: &Resource, key: &NamespacedName, revision: u64) {
        let table = self.tables.get_mut(resource);
        let stored = table.and_then(|table| table.objects.get_mut(key));
        if let Some(stored) = stored
            && let Stored::Awake(object) = &*stored
            && revision_of(object) == revision
            && let Ok(text) = serde_json::to_vec(&**object)
        {
            let text = text.into_boxed_slice();
            *stored = Stored::Resting(text);
        }
    }
}
