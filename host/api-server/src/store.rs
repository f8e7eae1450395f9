//! The tables of objects, their revisions, and the log that watches resume from.
//!
//! Knows nothing of what objects mean: admission, validation and garbage collection are layers above. Every
//! order is that of names, every chance that of the seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::kinds::Kinds;
use super::names::Names;
use super::resource::Resource;
use super::selectors::Selection;
use super::status::Status;
use super::watch::{Change, Subscriber, Watch, WatchEvent};
use crate::KUBERNETES_MINOR;

/// Changes each table remembers for watches that resume; older ones answer 410. A watch resumes from what it saw
/// last, and each change holds on to two states of its object.
const LOG_LENGTH_MAX: usize = 256;
/// Pods and events that are kept ready to read; those written longer ago rest as text.
const AWAKE_MAX: usize = 512;

/// Namespace (empty for cluster-wide kinds) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Empty for objects outside namespaces.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl ObjectKey {
    /// A key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key an object's metadata spells.
    pub fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        Self {
            namespace: text("namespace"),
            name: text("name"),
        }
    }
}

/// An object as its table holds it.
#[derive(Debug)]
pub(super) enum Stored {
    /// Ready to read, and shared with whoever does.
    Awake(Arc<Value>),
    /// As JSON, which takes a tenth of the room: of the kinds that come in thousands most are written, read by
    /// everybody, and left alone.
    Resting { text: Box<[u8]>, revision: u64 },
}

impl Stored {
    pub(super) fn value(&self) -> Arc<Value> {
        match self {
            Self::Awake(object) => Arc::clone(object),
            // Text that was written from a value reads back.
            Self::Resting { text, .. } => {
                Arc::new(serde_json::from_slice(text).unwrap_or_default())
            }
        }
    }
}

fn revision_of(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<ObjectKey, Stored>,
    log: VecDeque<WatchEvent>,
    /// Revision of the newest change the log has forgotten.
    forgotten: u64,
}

/// Tells the time of day; the world's clock, never the machine's.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Everything the server holds. One lock guards it.
pub(super) struct Store {
    clock: Now,
    tables: BTreeMap<Resource, Table>,
    revision: u64,
    subscribers: Vec<Subscriber>,
    /// Where the object with a UID is.
    uids: BTreeMap<String, (Resource, ObjectKey)>,
    /// Objects that name an owner, by the owner's UID.
    dependents: BTreeMap<String, BTreeSet<(Resource, ObjectKey)>>,
    /// Objects of the kinds that may rest, with their revisions, in the order in which they were written.
    awake: VecDeque<(Resource, ObjectKey, u64)>,
    /// When events were made, oldest first, so that they can age out.
    pub(super) event_ages: VecDeque<(Timestamp, ObjectKey)>,
    pub(super) names: Names,
    pub(super) kinds: Kinds,
    /// What the server says that it is.
    pub(super) kubernetes_minor: u32,
}

impl Store {
    pub(super) fn new(seed: u64, clock: Now, kinds: Kinds) -> Self {
        Self {
            clock,
            kubernetes_minor: KUBERNETES_MINOR,
            tables: BTreeMap::new(),
            revision: 0,
            subscribers: Vec::new(),
            uids: BTreeMap::new(),
            dependents: BTreeMap::new(),
            awake: VecDeque::new(),
            event_ages: VecDeque::new(),
            names: Names::new(seed),
            kinds,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<Arc<Value>> {
        let stored = self.tables.get(resource)?.objects.get(key)?;
        Some(stored.value())
    }

    /// As [`Store::get`], for an object that is about to be written.
    pub(super) fn get_to_write(
        &mut self,
        resource: &Resource,
        key: &ObjectKey,
    ) -> Option<Arc<Value>> {
        let stored = self.tables.get_mut(resource)?.objects.get_mut(key)?;
        let object = stored.value();
        if let Stored::Resting { revision, .. } = *stored {
            *stored = Stored::Awake(Arc::clone(&object));
            self.lull(resource, key, revision);
        }
        Some(object)
    }

    pub(super) fn contains(&self, resource: &Resource, key: &ObjectKey) -> bool {
        let table = self.tables.get(resource);
        table.is_some_and(|table| table.objects.contains_key(key))
    }

    /// Notes that an object is awake, and puts the one to rest that has been so for longest.
    fn lull(&mut self, resource: &Resource, key: &ObjectKey, revision: u64) {
        if *resource != Resource::PODS && *resource != Resource::EVENTS {
            return;
        }
        self.awake
            .push_back((resource.clone(), key.clone(), revision));
        if self.awake.len() <= AWAKE_MAX {
            return;
        }
        let Some((resource, key, revision)) = self.awake.pop_front() else {
            return;
        };
        let table = self.tables.get_mut(&resource);
        let stored = table.and_then(|table| table.objects.get_mut(&key));
        if let Some(stored) = stored
            && let Stored::Awake(object) = &*stored
            && revision_of(object) == revision
            && let Ok(text) = serde_json::to_vec(&**object)
        {
            let text = text.into_boxed_slice();
            *stored = Stored::Resting { text, revision };
        }
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<&(Resource, ObjectKey)> {
        self.uids.get(uid)
    }

    pub(super) fn dependents_of(&self, uid: &str) -> Vec<(Resource, ObjectKey)> {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// Objects after `after`, in order of namespace and name.
    pub(super) fn iter_after<'a>(
        &'a self,
        resource: &Resource,
        selection: &'a Selection,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Stored)> + use<'a> {
        use std::ops::Bound;
        let start = match (after, &selection.namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(ObjectKey::new(namespace.clone(), "")),
            (None, None) => Bound::Unbounded,
        };
        let objects = self.tables.get(resource).map(|table| &table.objects);
        objects
            .into_iter()
            .flat_map(move |objects| objects.range((start.clone(), Bound::Unbounded)))
            .take_while(|(key, _)| {
                selection
                    .namespace
                    .as_ref()
                    .is_none_or(|wanted| *wanted == key.namespace)
            })
            .filter(|(_, stored)| selection.is_by_namespace() || selection.matches(&stored.value()))
    }

    pub(super) fn list(&self, resource: &Resource, selection: &Selection) -> Vec<Arc<Value>> {
        self.iter_after(resource, selection, None)
            .map(|(_, stored)| stored.value())
            .collect()
    }

    /// Every object in a namespace, of any kind.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<(Resource, ObjectKey)> {
        let everything = Selection::namespace(namespace);
        let mut found = Vec::new();
        for resource in self.tables.keys() {
            for (key, _) in self.iter_after(resource, &everything, None) {
                found.push((resource.clone(), key.clone()));
            }
        }
        found
    }

    /// Puts a new state of an object and returns it with its revision.
    pub(super) fn put(&mut self, resource: &Resource, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let key = ObjectKey::of(&object);
        let object = Arc::new(object);
        if !self.tables.contains_key(resource) {
            self.tables.insert(resource.clone(), Table::default());
        }
        let Some(table) = self.tables.get_mut(resource) else {
            return object;
        };
        let stored = Stored::Awake(Arc::clone(&object));
        let previous = table.objects.insert(key.clone(), stored);
        let previous = previous.map(|stored| stored.value());
        let change = if previous.is_some() {
            Change::Modified
        } else {
            Change::Added
        };
        if let Some(uid) = object["metadata"]["uid"].as_str()
            && previous.is_none()
        {
            self.uids
                .insert(uid.to_owned(), (resource.clone(), key.clone()));
        }
        let before = previous.as_deref().map(owner_uids).unwrap_or_default();
        let after = owner_uids(&object);
        self.index_owners(resource, &key, &before, &after);
        self.lull(resource, &key, revision);
        self.publish(WatchEvent {
            resource: resource.clone(),
            change,
            object: object.clone(),
            previous,
            revision,
        });
        object
    }

    /// Takes an object away. The last state carries the revision of the deletion.
    pub(super) fn remove(&mut self, resource: &Resource, key: &ObjectKey) -> Option<Arc<Value>> {
        let previous = self.tables.get_mut(resource)?.objects.remove(key)?.value();
        self.revision += 1;
        let revision = self.revision;
        let mut last = (*previous).clone();
        last["metadata"]["resourceVersion"] = revision.to_string().into();
        if let Some(uid) = last["metadata"]["uid"].as_str() {
            self.uids.remove(uid);
        }
        self.index_owners(resource, key, &owner_uids(&last), &[]);
        let object = Arc::new(last);
        self.publish(WatchEvent {
            resource: resource.clone(),
            change: Change::Deleted,
            object: object.clone(),
            previous: Some(previous),
            revision,
        });
        Some(object)
    }

    fn index_owners(
        &mut self,
        resource: &Resource,
        key: &ObjectKey,
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

    fn publish(&mut self, event: WatchEvent) {
        self.subscribers.retain(|s| !s.is_closed());
        for subscriber in &self.subscribers {
            subscriber.push(&event);
        }
        let Some(table) = self.tables.get_mut(&event.resource) else {
            return;
        };
        table.log.push_back(event);
        if table.log.len() > LOG_LENGTH_MAX
            && let Some(oldest) = table.log.pop_front()
        {
            table.forgotten = oldest.revision;
        }
    }

    /// Whether every change after `revision` is still known.
    pub(super) fn check_remembered(
        &self,
        resource: &Resource,
        revision: u64,
    ) -> Result<(), Status> {
        let forgotten = self.tables.get(resource).map_or(0, |table| table.forgotten);
        if revision < forgotten {
            return Err(Status::expired(revision, forgotten));
        }
        Ok(())
    }

    /// Starts a watch on changes from now on.
    pub(super) fn watch_from_now(
        &mut self,
        resources: &[&Resource],
        selection: Selection,
    ) -> Watch {
        let resources = resources.iter().map(|r| (*r).clone()).collect();
        let (watch, subscriber) = Watch::new(resources, selection, Vec::new());
        self.subscribers.push(subscriber);
        watch
    }

    /// Starts a watch with the changes after `since`, at its head.
    pub(super) fn watch(
        &mut self,
        resources: &[Resource],
        selection: Selection,
        since: u64,
    ) -> Result<Watch, Status> {
        let mut past = Vec::new();
        for resource in resources {
            self.check_remembered(resource, since)?;
            let Some(table) = self.tables.get(resource) else {
                continue;
            };
            let start = table.log.partition_point(|e| e.revision <= since);
            let newer = table.log.range(start..);
            past.extend(newer.filter_map(|e| e.seen_through(&selection)));
        }
        past.sort_by_key(|event| event.revision);
        let (watch, subscriber) = Watch::new(resources.to_vec(), selection, past);
        self.subscribers.push(subscriber);
        Ok(watch)
    }
}

/// UIDs of the owners an object names.
pub(super) fn owner_uids(object: &Value) -> Vec<String> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let uids = owners
        .into_iter()
        .flatten()
        .filter_map(|o| o["uid"].as_str());
    uids.map(str::to_owned).collect()
}
