//! Objects that are there when the shadow begins, as the first lists told of them.

use std::collections::BTreeMap;

use apis::ObjectKey;
use serde_json::Value;

use crate::kinds::ReadKind;
use crate::object::key_of;

/// Change of an object of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectChange {
    pub kind: ReadKind,
    /// As it is, or was last.
    pub object: Value,
    pub is_gone: bool,
}

/// What is told of an object that somebody else holds.
#[derive(Debug, Clone, Copy)]
pub struct ToldObject<'a> {
    pub kind: ReadKind,
    pub object: &'a Value,
    pub is_gone: bool,
}

impl ObjectChange {
    /// As it is told.
    pub fn told(&self) -> ToldObject<'_> {
        ToldObject {
            kind: self.kind,
            object: &self.object,
            is_gone: self.is_gone,
        }
    }
}

/// Objects by kind and name.
#[derive(Debug, Default)]
pub struct Gathered {
    objects: BTreeMap<ReadKind, BTreeMap<ObjectKey, Value>>,
}

impl Gathered {
    /// Takes in a change.
    pub fn apply(&mut self, change: ObjectChange) {
        let table = self.objects.entry(change.kind).or_default();
        let key = key_of(&change.object);
        if change.is_gone {
            table.remove(&key);
        } else {
            table.insert(key, change.object);
        }
    }

    /// The objects of a kind, in the order of their names.
    pub fn of(&self, kind: ReadKind) -> impl Iterator<Item = &Value> {
        self.objects
            .get(&kind)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// Changes every object in place.
    pub fn each(&mut self, mut change: impl FnMut(&mut Value)) {
        for table in self.objects.values_mut() {
            table.values_mut().for_each(&mut change);
        }
    }

    /// All changes that led here, owners first.
    pub(crate) fn into_changes(self) -> impl Iterator<Item = ObjectChange> {
        self.objects.into_iter().flat_map(|(kind, table)| {
            table.into_values().map(move |object| ObjectChange {
                kind,
                object,
                is_gone: false,
            })
        })
    }
}
