//! What the in-process controllers know of the cluster: one typed view, fed by one watch.
//!
//! Pods and nodes are kept parsed, other kinds as the server's own shared values. Nothing here writes; the
//! controllers do, each through `api`. Answers to the informer caches of kube-controller-manager.

pub(crate) mod amounts;
pub(crate) mod census;
pub(crate) mod node;
pub(crate) mod object_meta;
pub(crate) mod pod;
pub(crate) mod shape;
pub(crate) mod timers;
pub(crate) mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;

use crate::api_server::{ApiServer, Change, ObjectKey, Resource, WatchEvent};
use crate::clock::SimulatedClock;
use crate::ec2::SimulatedEc2;
use crate::scheduler::waiting::{News, Waiting};
use crate::workload::pace::Pace;

use census::Census;
use node::NodeRecord;
use object_meta::{Owner, controller_of};
use pod::PodRecord;
use shape::{PodShape, ShapeTable};
use timers::{Timer, Timers};
use work::{Wake, Work, work_of};

/// Kinds whose objects are kept, besides pods and nodes.
pub(crate) const WATCHED: [&Resource; 14] = [
    &Resource::PODS,
    &Resource::NODES,
    &Resource::DEPLOYMENTS,
    &Resource::REPLICA_SETS,
    &Resource::STATEFUL_SETS,
    &Resource::DAEMON_SETS,
    &Resource::JOBS,
    &Resource::CRON_JOBS,
    &Resource::POD_DISRUPTION_BUDGETS,
    &Resource::PERSISTENT_VOLUME_CLAIMS,
    &Resource::PERSISTENT_VOLUMES,
    &Resource::STORAGE_CLASSES,
    &Resource::NODE_CLAIMS,
    &Resource::NAMESPACES,
];

/// How soon the scheduler looks at pods that wait for what happened: nodes that open at one time are all open by then.
const REACTION: SignedDuration = SignedDuration::from_millis(100);

/// The controllers' view, their to-do list and their handles.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) api: ApiServer,
    pub(crate) clock: SimulatedClock,
    pub(crate) ec2: SimulatedEc2,
    pub(crate) seed: u64,
    /// How fast ReplicaSets come to their pods.
    pub(crate) pace: Option<Pace>,
    pub(crate) region: String,
    pub(crate) pods: BTreeMap<ObjectKey, PodRecord>,
    pub(crate) nodes: BTreeMap<String, NodeRecord>,
    pub(crate) shapes: ShapeTable,
    pub(crate) timers: Timers,
    /// When the scheduler looks at pods that wait.
    pub(crate) wake: Wake,
    /// Pods by the UID of their controller.
    owned: BTreeMap<String, BTreeSet<ObjectKey>>,
    objects: BTreeMap<Resource, BTreeMap<ObjectKey, Arc<Value>>>,
    /// Objects to reconcile, in the order in which kinds build on each other.
    pub(crate) dirty: BTreeSet<(Work, ObjectKey)>,
    /// Pods that wait for the scheduler.
    pub(crate) queue: BTreeSet<ObjectKey>,
    /// Pods that found no node; they wait for a change.
    pub(crate) unschedulable: Waiting,
    /// Pods that wait and are nominated to a node, by its name: others of no higher priority leave them their room.
    pub(crate) nominated: BTreeMap<String, BTreeMap<ObjectKey, Arc<PodShape>>>,
    /// What happened that those may have waited for.
    pub(crate) news: News,
    /// Pods by shape and node, for the rules that look at other pods.
    pub(crate) census: Census,
    /// Nodes that became ready and whose pods have not been started.
    pub(crate) ready: BTreeSet<String>,
    /// Bound pods with required anti-affinity, which keep others away.
    pub(crate) anti_affine: BTreeSet<ObjectKey>,
    /// Addresses given to pods so far.
    pub(crate) pod_ips: u32,
}

impl Cluster {
    pub(crate) fn new(api: ApiServer, ec2: SimulatedEc2, clock: SimulatedClock, seed: u64) -> Self {
        Self {
            region: ec2.region(),
            api,
            clock,
            ec2,
            seed,
            pace: None,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            shapes: ShapeTable::default(),
            timers: Timers::default(),
            wake: Wake::Unset,
            owned: BTreeMap::new(),
            objects: BTreeMap::new(),
            dirty: BTreeSet::new(),
            queue: BTreeSet::new(),
            unschedulable: Waiting::default(),
            nominated: BTreeMap::new(),
            news: News::default(),
            census: Census::default(),
            ready: BTreeSet::new(),
            anti_affine: BTreeSet::new(),
            pod_ips: 0,
        }
    }

    /// Takes in one change, and notes who has to look at it.
    pub(crate) fn apply(&mut self, event: WatchEvent) {
        let key = ObjectKey::of(&event.object);
        let gone = event.change == Change::Deleted;
        if event.resource == Resource::PODS {
            self.apply_pod(key, (!gone).then_some(event.object));
        } else if event.resource == Resource::NODES {
            self.apply_node(&key.name, (!gone).then_some(event.object));
        } else {
            self.apply_object(event.resource, key, &event.object, gone);
        }
    }

    fn apply_object(
        &mut self,
        resource: Resource,
        key: ObjectKey,
        object: &Arc<Value>,
        gone: bool,
    ) {
        if let Some(owner) = controller_of(object) {
            self.mark_owner(&owner, &key.namespace);
        }
        if let Some(work) = work_of(&resource) {
            self.dirty.insert((work, key.clone()));
        }
        if resource == Resource::PERSISTENT_VOLUME_CLAIMS || resource == Resource::STORAGE_CLASSES {
            self.news = News::Everything;
        }
        let table = self.objects.entry(resource).or_default();
        if gone {
            table.remove(&key);
        } else {
            table.insert(key, Arc::clone(object));
        }
    }

    fn apply_pod(&mut self, key: ObjectKey, object: Option<Arc<Value>>) {
        let old = self.pods.remove(&key);
        let new = object.map(|object| PodRecord::parse(&object, old.as_ref(), &mut self.shapes));
        for record in old.iter().chain(&new) {
            if let Some(owner) = &record.owner {
                self.mark_owner(owner, &key.namespace);
            }
        }
        self.mark_budgets(&key.namespace, old.as_ref(), new.as_ref());
        self.move_pod(&key, old.as_ref(), new.as_ref());
        self.count_pod(old.as_ref(), new.as_ref());
        self.move_nomination(&key, old.as_ref(), new.as_ref());
        if !new.as_ref().is_some_and(PodRecord::waits_for_scheduler) {
            self.queue.remove(&key);
            self.unschedulable.remove(&key);
        } else if !self.unschedulable.contains(&key) {
            self.queue.insert(key.clone());
        }
        if let Some(record) = new {
            self.kubelet_sees(&key, &record, old.as_ref());
            self.pods.insert(key, record);
        }
    }

    /// Keeps the indices by node and by owner.
    fn move_pod(&mut self, key: &ObjectKey, old: Option<&PodRecord>, new: Option<&PodRecord>) {
        let owner = |record: Option<&PodRecord>| {
            record
                .and_then(|r| r.owner.as_ref())
                .map(|owner| owner.uid.clone())
        };
        let (before, after) = (owner(old), owner(new));
        if before != after {
            if let Some(pods) = before.and_then(|uid| self.owned.get_mut(&uid)) {
                pods.remove(key);
            }
            if let Some(uid) = after {
                self.owned.entry(uid).or_default().insert(key.clone());
            }
        }
        let place = |record: Option<&PodRecord>| {
            let record = record.filter(|record| record.phase.is_active());
            record
                .and_then(|r| r.node.clone())
                .map(|node| (node, record.map(|r| Arc::clone(&r.shape))))
        };
        let (before, after) = (place(old), place(new));
        if before.as_ref().map(|(node, _)| node) == after.as_ref().map(|(node, _)| node) {
            return;
        }
        self.anti_affine.remove(key);
        if let Some((name, Some(shape))) = before {
            if let Some(node) = self.nodes.get_mut(&name) {
                node.remove(key, &shape);
            }
            if shape.anti_affinity.is_empty() {
                self.news.add_node(&name);
            } else {
                // It may have kept others off a whole domain.
                self.news = News::Everything;
            }
        }
        if let Some((name, Some(shape))) = after {
            if !shape.anti_affinity.is_empty() {
                self.anti_affine.insert(key.clone());
            }
            if let Some(node) = self.nodes.get_mut(&name) {
                node.add(key, &shape);
                if node.has_no_execute_taint() {
                    self.dirty.insert((Work::Taints, ObjectKey::new("", name)));
                }
            } else {
                // A pod on a node that does not exist (any more).
                self.dirty.insert((Work::Orphans, ObjectKey::new("", name)));
            }
        }
    }

    /// Keeps the census: where pods are or are about to be that are not on their way out.
    fn count_pod(&mut self, old: Option<&PodRecord>, new: Option<&PodRecord>) {
        let place = |record: Option<&PodRecord>| {
            let record = record.filter(|record| record.is_live())?;
            Some((Arc::clone(&record.shape), record.place()?.to_owned()))
        };
        let (before, after) = (place(old), place(new));
        let id = |it: &Option<(Arc<PodShape>, String)>| {
            it.as_ref().map(|(shape, node)| (shape.id, node.clone()))
        };
        if id(&before) == id(&after) {
            return;
        }
        if let Some((shape, node)) = before {
            self.census.remove(&shape, &node);
        }
        if let Some((shape, node)) = after {
            self.census.add(&shape, &node);
        }
    }

    fn apply_node(&mut self, name: &str, object: Option<Arc<Value>>) {
        let old = self.nodes.remove(name);
        let key = ObjectKey::new("", name);
        let Some(object) = object else {
            // Its pods repel and attract no more.
            self.news = News::Everything;
            self.mark_daemon_sets();
            self.dirty.insert((Work::Orphans, key));
            return;
        };
        let mut record = NodeRecord::parse(object);
        if record.ready && !old.as_ref().is_some_and(|old| old.ready) {
            self.ready.insert(name.to_owned());
        }
        // Most changes of a node are reports of its kubelet, which move no pod.
        let is_news = old.as_ref().is_none_or(|old| !record.schedules_like(old));
        let moves_domains = old.as_ref().is_some_and(|old| {
            old.labels != record.labels && old.pods.iter().any(|pod| self.anti_affine.contains(pod))
        });
        if let Some(old) = old {
            record.take_pods(old);
        } else {
            let here = |pod: &&PodRecord| pod.node.as_deref() == Some(name);
            for pod in self
                .pods
                .values()
                .filter(here)
                .filter(|pod| pod.phase.is_active())
            {
                record.add(&pod.key, &pod.shape);
            }
        }
        if is_news && record.has_no_execute_taint() {
            self.dirty.insert((Work::Taints, key));
        }
        self.nodes.insert(name.to_owned(), record);
        if is_news {
            self.mark_daemon_sets();
            self.news.add_node(name);
        }
        if moves_domains {
            self.news = News::Everything;
        }
    }

    /// Whether the scheduler has something to look at.
    pub(crate) fn is_scheduling_due(&self) -> bool {
        !self.queue.is_empty() || (self.wake == Wake::Due && self.wakes_pods())
    }

    pub(crate) fn wakes_pods(&self) -> bool {
        !self.news.is_empty() && !self.unschedulable.is_empty()
    }

    /// Has the scheduler look at the pods that wait for what happened, in a moment.
    pub(crate) fn await_scheduler(&mut self) {
        if self.wake == Wake::Unset && self.wakes_pods() {
            self.wake = Wake::Set;
            self.timers.set(self.clock.now() + REACTION, Timer::Wake);
        }
    }

    fn mark_owner(&mut self, owner: &Owner, namespace: &str) {
        let work = match owner.kind.as_str() {
            "Deployment" => Work::Deployment,
            "ReplicaSet" => Work::ReplicaSet,
            "StatefulSet" => Work::StatefulSet,
            "DaemonSet" => Work::DaemonSet,
            "Job" => Work::Job,
            "CronJob" => Work::CronJob,
            _ => return,
        };
        self.dirty
            .insert((work, ObjectKey::new(namespace, owner.name.clone())));
    }

    fn mark_daemon_sets(&mut self) {
        let keys: Vec<ObjectKey> = self
            .table(&Resource::DAEMON_SETS)
            .map(|(key, _)| key.clone())
            .collect();
        self.dirty
            .extend(keys.into_iter().map(|key| (Work::DaemonSet, key)));
    }

    fn mark_budgets(&mut self, namespace: &str, old: Option<&PodRecord>, new: Option<&PodRecord>) {
        let health =
            |record: Option<&PodRecord>| record.map(|r| (r.is_ready(), r.is_deleting(), r.phase));
        if health(old) == health(new) {
            return;
        }
        let keys: Vec<ObjectKey> = self
            .table(&Resource::POD_DISRUPTION_BUDGETS)
            .map(|(key, _)| key.clone())
            .filter(|key| key.namespace == namespace)
            .collect();
        self.dirty
            .extend(keys.into_iter().map(|key| (Work::Budget, key)));
    }

    /// Objects of a kind that is kept, in the order of their names.
    pub(crate) fn table<'a>(
        &'a self,
        resource: &Resource,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)> + use<'a> {
        self.objects.get(resource).into_iter().flatten()
    }

    /// One object of a kind that is kept.
    pub(crate) fn object(&self, resource: &Resource, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.objects.get(resource)?.get(key)
    }

    /// Pods that a controller owns, in the order of their names.
    pub(crate) fn pods_of(&self, uid: &str) -> impl Iterator<Item = &PodRecord> {
        self.owned
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|key| self.pods.get(key))
    }
}
