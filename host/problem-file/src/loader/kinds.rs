//! Takes in an object of each kind: checked, completed, and handed to the model.
//!
//! Nothing is refused in silence: each fault goes to the list of faults with its place.

use super::completed::complete;
use super::{Loader, default_namespace, ready};
use crate::check;
use crate::fault::ObjectFaults;
use crate::list::List;
use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodePool, ObjectKey, labels};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use scheduling::ranking::PremiumMax;
use state::cluster::Event;
use state::devices::{DeviceKind, DeviceObject};
use state::workloads::Workload;
use std::sync::Arc;

impl Loader {
    /// A fact beside others, which is handed to the model as it is.
    pub(super) fn add_fact(
        &mut self,
        place: &dyn Fn() -> String,
        list: List,
        key: &ObjectKey,
        event: Event,
    ) {
        if self.is_new_key(place, list, key) {
            self.apply(place, event);
        }
    }

    pub(super) fn add_node_class(&mut self, place: &dyn Fn() -> String, class: Ec2NodeClass) {
        if self.is_new(place, List::NodeClasses, &class.metadata) {
            let class = Arc::new(class);
            self.world.node_classes.push(Arc::clone(&class));
            self.apply(place, Event::applied(class));
        }
    }

    pub(super) fn add_node_claim(&mut self, place: &dyn Fn() -> String, claim: NodeClaim) {
        if self.is_new(place, List::NodeClaims, &claim.metadata) {
            self.claims.push(claim);
        }
    }

    pub(super) fn add_namespace(&mut self, place: &dyn Fn() -> String, namespace: v1::Namespace) {
        if self.is_new(place, List::Namespaces, &namespace.metadata) {
            let name = namespace.metadata.name.clone().unwrap_or_default();
            self.namespaces.insert(name, namespace);
        }
    }

    pub(super) fn add_workload(
        &mut self,
        place: &dyn Fn() -> String,
        list: List,
        mut workload: Workload,
    ) {
        if workload.key.namespace.is_empty() {
            "default".clone_into(&mut workload.key.namespace);
        }
        let key = workload.key.clone();
        self.add_fact(place, list, &key, Event::applied(Arc::new(workload)));
    }

    pub(super) fn add_capacity_buffer(
        &mut self,
        place: &dyn Fn() -> String,
        mut buffer: CapacityBuffer,
    ) {
        default_namespace(&mut buffer.metadata);
        if self.is_new(place, List::CapacityBuffers, &buffer.metadata) {
            self.add_missing_namespace(&ObjectKey::of(&buffer.metadata).namespace);
            self.apply(place, Event::applied(Arc::new(buffer)));
        }
    }

    pub(super) fn add_budget(
        &mut self,
        place: &dyn Fn() -> String,
        mut budget: PodDisruptionBudget,
    ) {
        default_namespace(&mut budget.metadata);
        if self.is_new(place, List::PodDisruptionBudgets, &budget.metadata) {
            self.budgets.push(budget);
        }
    }

    pub(super) fn add_device(&mut self, place: &dyn Fn() -> String, mut object: DeviceObject) {
        let is_namespaced = matches!(object.kind, DeviceKind::Claim | DeviceKind::Template);
        if is_namespaced && object.key.namespace.is_empty() {
            "default".clone_into(&mut object.key.namespace);
        }
        let (list, key) = (List::of_devices(object.kind), object.key.clone());
        self.add_fact(place, list, &key, Event::applied(Arc::new(object)));
    }

    pub(super) fn add_pod(&mut self, place: &dyn Fn() -> String, list: List, mut pod: v1::Pod) {
        default_namespace(&mut pod.metadata);
        if !self.is_new(place, list, &pod.metadata) {
            return;
        }
        let key = ObjectKey::of(&pod.metadata);
        let mut faults = ObjectFaults::default();
        check::pod(&pod, &mut faults);
        let is_bound = complete(&mut pod, list);
        if list == List::BoundPods && !is_bound {
            faults.push("spec.nodeName", "is not set, so the pod is not bound");
        }
        if faults.0.is_empty() {
            self.add_missing_namespace(&key.namespace);
            let claims = pod.spec.as_ref().and_then(|it| it.resource_claims.as_ref());
            if claims.is_some_and(|it| !it.is_empty()) {
                self.claimants.push((place(), pod));
            } else {
                self.apply_pod(place, pod);
            }
            return;
        }
        if !is_bound && list == List::Pods {
            let messages = faults
                .0
                .iter()
                .map(|(field, text)| format!("{field}: {text}"));
            let message = messages.collect::<Vec<_>>().join("; ");
            self.world.invalid_pods.insert(key.clone(), message);
        }
        self.note_faults(place, &key, faults);
    }

    pub(super) fn add_node_pool(&mut self, place: &dyn Fn() -> String, mut pool: NodePool) {
        if !self.is_new(place, List::NodePools, &pool.metadata) {
            return;
        }
        self.warn_of_premium(place, &pool);
        let mut faults = ObjectFaults::default();
        check::node_pool(&pool, &mut faults);
        let conditions = &mut pool.status.get_or_insert_default().conditions;
        if faults.0.is_empty() {
            // Nobody has looked at a pool from a file yet; a pool of a cluster was judged there.
            if !conditions.iter().any(|it| it.type_ == "Ready") {
                conditions.push(ready("True", ""));
            }
        } else {
            let messages = faults
                .0
                .iter()
                .map(|(field, text)| format!("{field}: {text}"));
            conditions.retain(|it| it.type_ != "Ready");
            conditions.push(ready("False", &messages.collect::<Vec<_>>().join("; ")));
            self.note_faults(place, &ObjectKey::of(&pool.metadata), faults);
        }
        self.apply(place, Event::applied(Arc::new(pool)));
    }

    /// A bound that cannot be read closes no pool, but that of the controller stands in its place.
    fn warn_of_premium(&mut self, place: &dyn Fn() -> String, pool: &NodePool) {
        let key = labels::MAX_PREMIUM_ANNOTATION;
        let annotations = pool.metadata.annotations.as_ref();
        let text = annotations.and_then(|it| it.get(key));
        if let Some(Err(error)) = text.map(|it| it.parse::<PremiumMax>()) {
            self.warn(&format!("{}.metadata.annotations[{key}]: {error}", place()));
        }
    }

    pub(super) fn add_node(&mut self, place: &dyn Fn() -> String, mut node: v1::Node) {
        if !self.is_new(place, List::Nodes, &node.metadata) {
            return;
        }
        let mut faults = ObjectFaults::default();
        check::node(&node, &mut faults);
        let status = node.status.get_or_insert_default();
        if status.allocatable.is_none() {
            status.allocatable.clone_from(&status.capacity);
        }
        if faults.0.is_empty() {
            self.nodes.push(node);
        } else {
            self.note_faults(place, &ObjectKey::of(&node.metadata), faults);
        }
    }

    pub(super) fn add_daemon_set(&mut self, place: &dyn Fn() -> String, mut daemon_set: DaemonSet) {
        default_namespace(&mut daemon_set.metadata);
        if !self.is_new(place, List::DaemonSets, &daemon_set.metadata) {
            return;
        }
        let key = ObjectKey::of(&daemon_set.metadata);
        let mut faults = ObjectFaults::default();
        check::daemon_set(&daemon_set, &mut faults);
        if !faults.0.is_empty() {
            self.note_faults(place, &key, faults);
            return;
        }
        // Its pods are told apart by the uid, so each needs one.
        let uid = &mut daemon_set.metadata.uid;
        uid.get_or_insert_with(|| format!("daemonset/{key}"));
        self.add_missing_namespace(&key.namespace);
        self.apply(place, Event::applied(Arc::new(daemon_set)));
    }
}
