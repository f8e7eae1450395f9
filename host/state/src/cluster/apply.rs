//! Taking in facts, one function a kind of object.
//!
//! Every function is idempotent: watches repeat themselves. What consolidation depends on bumps the
//! consolidation state, nothing else does.

use std::sync::Arc;

use apis::labels;
use apis::{NodeClaim, NodePool};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet as ApiDaemonSet;
use k8s_openapi::api::core::v1;
use scheduling::pod::{Pod, PodKey, PodShape};

use super::{Cluster, DaemonSet, Event, StateError};
use crate::facts::{ClaimFacts, NodeClassFacts, NodeFacts};
use crate::pod_disruption_budget::Pdb;
use crate::state_node::StateNode;
use crate::workloads;

impl Cluster {
    pub(super) fn dispatch(&mut self, now: Timestamp, event: Event) -> Result<(), StateError> {
        match event {
            Event::PodApplied(object) => self.pod_applied(now, &object)?,
            Event::PodDeleted(key) => self.pod_deleted(now, &key),
            Event::PodMoved { pod, node } => self.pod_moved(now, &pod, node),
            Event::NodeApplied(object) => self.node_applied(now, &object),
            Event::NodeDeleted(name) => self.node_deleted(now, &name),
            Event::NodeClaimApplied(object) => self.claim_applied(now, &object),
            Event::NodeClaimDeleted(name) => self.claim_deleted(now, &name),
            Event::NodePoolApplied(object) => self.node_pool_applied(now, object),
            Event::NodePoolDeleted(name) => {
                Arc::make_mut(&mut self.data.node_pools).remove(&name);
                self.bump(now);
            }
            Event::DaemonSetApplied(object) => self.daemon_set_applied(&object)?,
            Event::DaemonSetDeleted(key) => {
                Arc::make_mut(&mut self.data.daemon_sets).remove(&key);
            }
            Event::Nominated { name, until } => self.nominated(&name, until),
            Event::Placed { name, pods } => self.placed(&name, pods),
            Event::MarkedForDeletion(names) => self.marked(now, &names, true),
            Event::UnmarkedForDeletion(names) => self.marked(now, &names, false),
            Event::OfferingsChanged => self.bump(now),
            Event::WorkloadApplied(workload) => {
                Arc::make_mut(&mut self.data.workloads).apply(now, &workload, &mut self.shapes);
                self.data.forget_surplus(workload.kind, &workload.key);
            }
            Event::WorkloadDeleted(kind, key) => {
                Arc::make_mut(&mut self.data.workloads)
                    .all
                    .remove(&(kind, key.clone()));
                self.data.forget_surplus(kind, &key);
            }
            Event::CapacityBufferApplied(object) => {
                let key = workloads::key_of(&object.metadata);
                let buffers = Arc::make_mut(&mut self.data.capacity_buffers);
                let before = buffers.insert(key, Arc::clone(&object));
                if before.is_none_or(|before| before.spec != object.spec) {
                    self.bump(now);
                }
            }
            Event::CapacityBufferDeleted(key) => {
                Arc::make_mut(&mut self.data.capacity_buffers).remove(&key);
                self.bump(now);
            }
            other => self.dispatch_supporting(other),
        }
        Ok(())
    }

    /// Objects that only support decisions about pods and nodes.
    fn dispatch_supporting(&mut self, event: Event) {
        let data = &mut self.data;
        match event {
            Event::NodeClassApplied(object) => {
                let facts = NodeClassFacts::parse(&object);
                Arc::make_mut(&mut data.node_classes).insert(facts.name.clone(), Arc::new(facts));
            }
            Event::NodeClassDeleted(name) => {
                Arc::make_mut(&mut data.node_classes).remove(&name);
            }
            Event::NodeOverlayApplied(object) => {
                let name = object.metadata.name.clone().unwrap_or_default();
                Arc::make_mut(&mut data.node_overlays).insert(name, object);
            }
            Event::NodeOverlayDeleted(name) => {
                Arc::make_mut(&mut data.node_overlays).remove(&name);
            }
            Event::PdbApplied(object) => Arc::make_mut(&mut data.pdbs).insert(Pdb::parse(&object)),
            Event::PdbDeleted(namespace, name) => {
                Arc::make_mut(&mut data.pdbs).remove(&namespace, &name);
            }
            Event::ServiceApplied(object) => {
                Arc::make_mut(&mut data.workloads).apply_service(&object);
            }
            Event::ServiceDeleted(key) => {
                Arc::make_mut(&mut data.workloads).services.remove(&key);
            }
            Event::DeviceObjectApplied(object) => {
                Arc::make_mut(&mut data.devices).apply(*object);
            }
            Event::DeviceObjectDeleted(kind, key) => {
                Arc::make_mut(&mut data.devices).remove(kind, &key);
            }
            Event::NamespaceApplied(object) => {
                let meta = &object.metadata;
                Arc::make_mut(&mut data.namespaces).insert(
                    meta.name.clone().unwrap_or_default(),
                    meta.labels.clone().unwrap_or_default(),
                );
            }
            Event::NamespaceDeleted(name) => {
                Arc::make_mut(&mut data.namespaces).remove(&name);
            }
            other => self.dispatch_volumes(other),
        }
    }

    fn dispatch_volumes(&mut self, event: Event) {
        let volumes = Arc::make_mut(&mut self.data.volumes);
        match event {
            Event::VolumeClaimApplied(object) => {
                volumes.apply_claim(&object);
            }
            Event::VolumeClaimDeleted(namespace, name) => {
                if let Some(named) = volumes.claims.get_mut(&namespace) {
                    named.remove(&name);
                }
            }
            Event::VolumeApplied(object) => volumes.apply_volume(&object),
            Event::VolumeDeleted(name) => {
                volumes.volumes.remove(&name);
            }
            Event::StorageClassApplied(object) => {
                volumes.apply_class(&object);
            }
            Event::StorageClassDeleted(name) => {
                volumes.classes.remove(&name);
            }
            Event::CsiNodeApplied(object) => {
                volumes.apply_csi_node(&object);
            }
            Event::CsiNodeDeleted(name) => {
                volumes.limits.remove(&name);
            }
            Event::PodApplied(_)
            | Event::PodDeleted(_)
            | Event::PodMoved { .. }
            | Event::NodeApplied(_)
            | Event::NodeDeleted(_)
            | Event::NodeClaimApplied(_)
            | Event::NodeClaimDeleted(_)
            | Event::NodePoolApplied(_)
            | Event::NodePoolDeleted(_)
            | Event::DaemonSetApplied(_)
            | Event::DaemonSetDeleted(_)
            | Event::Nominated { .. }
            | Event::Placed { .. }
            | Event::MarkedForDeletion(_)
            | Event::UnmarkedForDeletion(_)
            | Event::WorkloadApplied(_)
            | Event::CapacityBufferApplied(_)
            | Event::CapacityBufferDeleted(_)
            | Event::NodeClassApplied(_)
            | Event::NodeClassDeleted(_)
            | Event::NodeOverlayApplied(_)
            | Event::NodeOverlayDeleted(_)
            | Event::PdbApplied(_)
            | Event::PdbDeleted(..)
            | Event::ServiceApplied(_)
            | Event::ServiceDeleted(_)
            | Event::WorkloadDeleted(..)
            | Event::DeviceObjectApplied(_)
            | Event::DeviceObjectDeleted(..)
            | Event::NamespaceApplied(_)
            | Event::NamespaceDeleted(_)
            | Event::OfferingsChanged => {}
        }
    }

    fn bump(&mut self, now: Timestamp) {
        let state = &mut self.data.consolidation_state;
        state.sequence += 1;
        state.changed_at = now;
    }

    fn pod_applied(&mut self, now: Timestamp, object: &v1::Pod) -> Result<(), StateError> {
        let mut pod = match Pod::parse(object, &mut self.shapes) {
            Ok(pod) => pod,
            Err(error) => {
                let meta = &object.metadata;
                let namespace = meta.namespace.as_deref().unwrap_or("default");
                self.pod_deleted(
                    now,
                    &PodKey::new(namespace, meta.name.as_deref().unwrap_or_default()),
                );
                return Err(error.into());
            }
        };
        if pod.is_terminal() {
            self.pod_deleted(now, &pod.key);
            return Ok(());
        }
        let before = self.data.pods.get(&pod.key).cloned();
        if let Some(before) = before.as_ref().filter(|it| it.uid == pod.uid) {
            pod.first_version = before.first_version;
        }
        if before.as_ref().is_some_and(|it| **it == pod) {
            return Ok(());
        }
        let pod = Arc::new(pod);
        if let Some(before) = &before {
            self.forget(before);
        }
        if before.as_ref().map(|it| &it.node_name) != Some(&pod.node_name)
            && pod.node_name.is_some()
        {
            self.bump(now);
            self.data.trade_places(&pod);
            self.unplace(&pod.key);
        }
        self.remember(&pod);
        if before.is_none() && !pod.is_owned_by_daemon_set() {
            self.data.born(now, &pod);
        }
        Arc::make_mut(&mut self.data.pods).insert(pod.key.clone(), pod);
        Ok(())
    }

    fn pod_moved(&mut self, now: Timestamp, key: &PodKey, node: Option<String>) {
        let Some(before) = self.data.pods.get(key).cloned() else {
            return;
        };
        let after = Arc::new(Pod {
            is_unschedulable: node.is_none(),
            node_name: node,
            ..(*before).clone()
        });
        self.forget(&before);
        self.unplace(key);
        self.remember(&after);
        Arc::make_mut(&mut self.data.pods).insert(key.clone(), after);
        self.bump(now);
    }

    fn pod_deleted(&mut self, now: Timestamp, key: &PodKey) {
        let Some(before) = self.data.pods.get(key).cloned() else {
            return;
        };
        self.forget(&before);
        self.data.forget_owner(&before);
        self.unplace(key);
        Arc::make_mut(&mut self.data.pods).remove(key);
        self.bump(now);
    }

    fn remember(&mut self, pod: &Arc<Pod>) {
        if let Some(node) = &pod.node_name {
            let bound = Arc::make_mut(&mut self.data.bound)
                .entry(node.clone())
                .or_default();
            Arc::make_mut(bound).insert(Arc::clone(pod));
        }
        let Some(owner) = &pod.shape.owner else {
            return;
        };
        if pod.is_owned_by_daemon_set() {
            self.daemon_pods
                .entry(owner.uid.clone())
                .or_default()
                .insert((pod.created_at, pod.key.clone()));
        } else {
            let all = Arc::make_mut(&mut self.data.owned);
            all.entry(owner.uid.clone()).or_default().pods += 1;
        }
        self.refresh_daemon(pod);
    }

    fn forget(&mut self, pod: &Arc<Pod>) {
        if let Some(node) = &pod.node_name {
            let all = Arc::make_mut(&mut self.data.bound);
            if let Some(bound) = all.get_mut(node) {
                Arc::make_mut(bound).remove(&pod.key);
                if bound.is_empty() {
                    all.remove(node);
                }
            }
        }
        let Some(owner) = &pod.shape.owner else {
            return;
        };
        if pod.is_owned_by_daemon_set() {
            if let Some(pods) = self.daemon_pods.get_mut(&owner.uid) {
                pods.remove(&(pod.created_at, pod.key.clone()));
                if pods.is_empty() {
                    self.daemon_pods.remove(&owner.uid);
                }
            }
        } else {
            let all = Arc::make_mut(&mut self.data.owned);
            if let Some(owned) = all.get_mut(&owner.uid) {
                owned.pods = owned.pods.saturating_sub(1);
            }
        }
        self.refresh_daemon(pod);
    }

    fn daemon_set_applied(&mut self, object: &ApiDaemonSet) -> Result<(), StateError> {
        let meta = &object.metadata;
        let namespace = meta.namespace.as_deref().unwrap_or("default");
        let name = meta.name.as_deref().unwrap_or_default();
        let key = PodKey::new(namespace, name);
        let template = object
            .spec
            .as_ref()
            .map(|it| it.template.clone())
            .unwrap_or_default();
        let shape = PodShape::parse_template(&template, namespace, name).map_err(|source| {
            StateError::DaemonSet {
                key: key.clone(),
                source: Box::new(source),
            }
        })?;
        let daemon_set = DaemonSet {
            uid: meta.uid.clone().unwrap_or_default(),
            template: self.shapes.intern(shape),
            newest_pod: None,
        };
        let uid = daemon_set.uid.clone();
        Arc::make_mut(&mut self.data.daemon_sets).insert(key, daemon_set);
        self.refresh_newest(&uid);
        Ok(())
    }

    fn refresh_daemon(&mut self, pod: &Pod) {
        if let Some(owner) = pod
            .shape
            .owner
            .as_ref()
            .filter(|_| pod.is_owned_by_daemon_set())
        {
            self.refresh_newest(&owner.uid);
        }
    }

    fn refresh_newest(&mut self, uid: &str) {
        let newest = self
            .daemon_pods
            .get(uid)
            .and_then(|pods| pods.last())
            .map(|(_, key)| key.clone());
        let stale = self
            .data
            .daemon_sets
            .iter()
            .find(|(_, it)| it.uid == uid && it.newest_pod != newest)
            .map(|(key, _)| key.clone());
        if let Some(daemon_set) =
            stale.and_then(|key| Arc::make_mut(&mut self.data.daemon_sets).get_mut(&key))
        {
            daemon_set.newest_pod = newest;
        }
    }

    fn node_applied(&mut self, now: Timestamp, object: &v1::Node) {
        let facts = NodeFacts::parse(object);
        let name = facts.name.clone();
        let is_young = facts
            .labels
            .get(labels::INITIALIZED)
            .is_none_or(String::is_empty);
        let key = match (facts.provider_id.as_str(), facts.claims_a_pool()) {
            // Nothing tells yet which claim it belongs to.
            ("", true) => return,
            ("", false) => name.clone(),
            (_, true) if is_young && !facts.labels.contains_key(labels::INSTANCE_TYPE) => return,
            (id, _) => id.to_owned(),
        };
        if self
            .data
            .node_keys
            .get(&name)
            .is_some_and(|old| *old != key)
        {
            self.node_deleted(now, &name);
        }
        let before = self.data.nodes.get(&key).cloned().unwrap_or_default();
        if before.node.as_deref() == Some(&facts) {
            return;
        }
        let after = StateNode {
            node: Some(Arc::new(facts)),
            ..(*before).clone()
        };
        Arc::make_mut(&mut self.data.node_keys).insert(name, key.clone());
        self.replace(now, key, &before, after);
    }

    fn node_deleted(&mut self, now: Timestamp, name: &str) {
        let Some(key) = Arc::make_mut(&mut self.data.node_keys).remove(name) else {
            return;
        };
        if let Some(before) = self.data.nodes.get(&key).cloned() {
            let after = StateNode {
                node: None,
                ..(*before).clone()
            };
            self.replace(now, key, &before, after);
        }
    }

    fn claim_applied(&mut self, now: Timestamp, object: &NodeClaim) {
        let facts = ClaimFacts::parse(object);
        let key = facts.provider_id.clone();
        let name = facts.name.clone();
        let old = self.data.claim_keys.get(&name).cloned();
        if old
            .as_ref()
            .is_some_and(|old| !old.is_empty() && *old != key)
        {
            // A launched claim does not lose its instance; an older copy of it came late.
            if key.is_empty() {
                return;
            }
            self.claim_deleted(now, &name);
        }
        if old.as_ref() != Some(&key) {
            Arc::make_mut(&mut self.data.claim_keys).insert(name, key.clone());
        }
        if key.is_empty() {
            return;
        }
        let before = self.data.nodes.get(&key).cloned().unwrap_or_default();
        if before.claim.as_deref() == Some(&facts) {
            return;
        }
        let after = StateNode {
            claim: Some(Arc::new(facts)),
            ..(*before).clone()
        };
        self.replace(now, key, &before, after);
    }

    fn claim_deleted(&mut self, now: Timestamp, name: &str) {
        let Some(key) = Arc::make_mut(&mut self.data.claim_keys).remove(name) else {
            return;
        };
        if let Some(before) = self.data.nodes.get(&key).cloned() {
            let after = StateNode {
                claim: None,
                ..(*before).clone()
            };
            self.replace(now, key, &before, after);
        }
    }

    /// Puts the new state of a node in place and notices what consolidation depends on.
    fn replace(&mut self, now: Timestamp, key: String, before: &StateNode, after: StateNode) {
        let appeared = before.node.is_some() != after.node.is_some()
            || before.claim.is_some() != after.claim.is_some();
        let flipped = before.is_initialized() != after.is_initialized()
            || before.is_marked_for_deletion() != after.is_marked_for_deletion()
            || (!before.is_consolidatable() && after.is_consolidatable());
        let nodes = Arc::make_mut(&mut self.data.nodes);
        if after.node.is_none() && after.claim.is_none() {
            nodes.remove(&key);
        } else {
            nodes.insert(key, Arc::new(after));
        }
        if appeared || flipped {
            self.bump(now);
        }
    }

    fn node_pool_applied(&mut self, now: Timestamp, object: Arc<NodePool>) {
        let name = object.metadata.name.clone().unwrap_or_default();
        let before = self
            .data
            .node_pools
            .get(&name)
            .map(|it| it.metadata.generation);
        if before != Some(object.metadata.generation) {
            self.bump(now);
        }
        Arc::make_mut(&mut self.data.node_pools).insert(name, object);
    }

    /// Key in `nodes` of a Node's or NodeClaim's name.
    fn key_of(&self, name: &str) -> Option<String> {
        let data = &self.data;
        let key = data
            .node_keys
            .get(name)
            .or_else(|| data.claim_keys.get(name))?;
        Some(key.clone()).filter(|key| !key.is_empty())
    }

    fn nominated(&mut self, name: &str, until: Timestamp) {
        let Some(key) = self.key_of(name) else { return };
        if let Some(node) = Arc::make_mut(&mut self.data.nodes).get_mut(&key) {
            let node = Arc::make_mut(node);
            node.nominated_until = node.nominated_until.max(Some(until));
        }
    }

    fn placed(&mut self, name: &str, pods: Vec<PodKey>) {
        let name: Arc<str> = name.into();
        let places = pods.into_iter().map(|pod| (pod, Arc::clone(&name)));
        Arc::make_mut(&mut self.data.places).extend(places);
    }

    fn unplace(&mut self, pod: &PodKey) {
        if self.data.places.contains_key(pod) {
            Arc::make_mut(&mut self.data.places).remove(pod);
        }
    }

    fn marked(&mut self, now: Timestamp, names: &[String], is_marked: bool) {
        for name in names {
            let Some(key) = self.key_of(name) else {
                continue;
            };
            let Some(before) = self.data.nodes.get(&key).cloned() else {
                continue;
            };
            if before.is_marked != is_marked {
                let after = StateNode {
                    is_marked,
                    ..(*before).clone()
                };
                self.replace(now, key, &before, after);
            }
        }
    }
}
