//! The tables of objects, their revisions, and the log that watches resume from.
//!
//! Knows nothing of what objects mean: admission, validation and garbage collection are layers above. Every
//! order is that of names, every chance that of the seed.

mod event_ages;
pub(super) mod names;
pub(super) mod owners;
mod rest;
pub(super) mod watch;
mod watches;

use self::event_ages::EventAges;
use self::owners::owner_uids;
use self::rest::Stored;
use crate::object_key::NamespacedName;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::KUBERNETES_MINOR;
use crate::resource::Resource;
use crate::selectors::Selection;
use crate::served::kinds::Kinds;
use crate::store::names::NameGenerator;
use crate::store::watch::{Subscriber, WatchEvent, WatchEventType};

/// As kube-apiserver has it (`--event-ttl`).
const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<NamespacedName, Stored>,
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
    uids: BTreeMap<String, (Resource, NamespacedName)>,
    /// Objects that name an owner, by the owner's UID.
    dependents: BTreeMap<String, BTreeSet<(Resource, NamespacedName)>>,
    /// Objects that are ready to read, with their revisions, in the order in which they were written.
    awake: VecDeque<(Resource, NamespacedName, u64)>,
    /// When events were written, so that they can age out.
    pub(super) event_ages: EventAges,
    /// How long events are kept.
    pub(super) event_ttl: SignedDuration,
    pub(super) names: NameGenerator,
    pub(super) kinds: Kinds,
    /// Minor version of Kubernetes that the server reports.
    pub(super) kubernetes_minor: u32,
    /// Changes that each table remembers.
    pub(super) log_length_max: usize,
    /// Objects that are kept ready to read.
    pub(super) awake_max: usize,
}

impl Store {
    pub(super) fn new(seed: u64, clock: Now, kinds: Kinds) -> Self {
        Self {
            clock,
            kubernetes_minor: KUBERNETES_MINOR,
            log_length_max: watches::LOG_LENGTH_MAX,
            awake_max: rest::AWAKE_MAX,
            tables: BTreeMap::new(),
            revision: 0,
            subscribers: Vec::new(),
            uids: BTreeMap::new(),
            dependents: BTreeMap::new(),
            awake: VecDeque::new(),
            event_ages: EventAges::default(),
            event_ttl: EVENT_TTL,
            names: NameGenerator::new(seed),
            kinds,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn get(&self, resource: &Resource, key: &NamespacedName) -> Option<Arc<Value>> {
        let stored = self.tables.get(resource)?.objects.get(key)?;
        Some(stored.value())
    }

    pub(super) fn contains(&self, resource: &Resource, key: &NamespacedName) -> bool {
        let table = self.tables.get(resource);
        table.is_some_and(|table| table.objects.contains_key(key))
    }

    /// Objects of the selection's namespace after `after`, in order of namespace and name. Whether they are selected
    /// otherwise is asked of each, as it takes reading them.
    pub(super) fn iter_after<'a>(
        &'a self,
        resource: &Resource,
        selection: &'a Selection,
        after: Option<&NamespacedName>,
    ) -> impl Iterator<Item = (&'a NamespacedName, &'a Stored)> + use<'a> {
        use std::ops::Bound;
        let start = match (after, &selection.namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(NamespacedName::new(namespace.clone(), "")),
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
    }

    pub(super) fn list(&self, resource: &Resource, selection: &Selection) -> Vec<Arc<Value>> {
        self.iter_after(resource, selection, None)
            .filter_map(|(_, stored)| stored.selected(selection))
            .collect()
    }

    /// Every object in a namespace, of any kind.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<(Resource, NamespacedName)> {
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
        let key = NamespacedName::of(&object);
        let object = Arc::new(object);
        let table = self.tables.entry(resource.clone()).or_default();
        let stored = Stored::Awake(Arc::clone(&object));
        let previous = table.objects.insert(key.clone(), stored);
        let previous = previous.map(|stored| stored.value());
        let change = if previous.is_some() {
            WatchEventType::Modified
        } else {
            WatchEventType::Added
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
    pub(super) fn remove(
        &mut self,
        resource: &Resource,
        key: &NamespacedName,
    ) -> Option<Arc<Value>> {
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
            change: WatchEventType::Deleted,
            object: object.clone(),
            previous: Some(previous),
            revision,
        });
        Some(object)
    }
}
