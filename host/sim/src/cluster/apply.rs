//! Applies a change of an object to the view.
//!
//! Writes nothing: what follows from a change is noted as work.

use api_server::{NamespacedName, Resource, WatchEvent, WatchEventType};

use crate::cluster::SimulatedCluster;
use crate::cluster::node::NodeRecord;
use crate::cluster::node_claim::NodeClaimRecord;
use crate::cluster::object_meta::controller_of;
use crate::cluster::pod::PodRecord;
use crate::cluster::shape::SchedulingShape;
use crate::cluster::work::{Work, work_of};
use crate::scheduler::waiting::News;
use serde_json::Value;
use std::sync::Arc;

impl SimulatedCluster {
    /// Takes in one change, and notes who has to look at it.
    pub(crate) fn apply(&mut self, event: WatchEvent) {
        let key = NamespacedName::of(&event.object);
        let gone = event.change == WatchEventType::Deleted;
        if event.resource == Resource::PODS {
            self.apply_pod(key, (!gone).then_some(event.object));
        } else if event.resource == Resource::NODES {
            self.apply_node(&key.name, (!gone).then_some(event.object));
        } else if event.resource == Resource::NODE_CLAIMS {
            if gone {
                self.node_claims.remove(&key.name);
            } else {
                let record = NodeClaimRecord::parse(&event.object);
                self.node_claims.insert(key.name, record);
            }
        } else {
            self.apply_object(event.resource, key, &event.object, gone);
        }
    }

    fn apply_object(
        &mut self,
        resource: Resource,
        key: NamespacedName,
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

    fn apply_pod(&mut self, key: NamespacedName, object: Option<Arc<Value>>) {
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
    fn move_pod(&mut self, key: &NamespacedName, old: Option<&PodRecord>, new: Option<&PodRecord>) {
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
                    self.dirty
                        .insert((Work::Taints, NamespacedName::new("", name)));
                }
            } else {
                // A pod on a node that does not exist (any more).
                self.dirty
                    .insert((Work::Orphans, NamespacedName::new("", name)));
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
        let id = |it: &Option<(Arc<SchedulingShape>, String)>| {
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
        let key = NamespacedName::new("", name);
        let Some(object) = object else {
            // Its pods repel and attract no more.
            self.news = News::Everything;
            self.mark_daemon_sets();
            self.dirty.insert((Work::Orphans, key));
            return;
        };
        let mut record = NodeRecord::parse(&object);
        record.date_taints(old.as_ref(), self.clock.now());
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
}
