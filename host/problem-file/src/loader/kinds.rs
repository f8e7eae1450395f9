//! Takes in an object of each kind: checked, completed, and handed to the model.
//!
//! Nothing is refused in silence: each fault goes to the list of faults with its place.

use super::completed::complete;
use super::object::Object;
use super::{Loader, default_namespace, ready};
use crate::check;
use crate::fault::ObjectFaults;
use crate::list::List;
use apis::{NodePool, ObjectKey};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use state::cluster::Event;
use state::devices::{DeviceKind, DeviceObject};
use state::workloads::Workload;
use std::sync::Arc;

impl Loader {
    pub(super) fn supporting(&mut self, place: &dyn Fn() -> String, object: Object) {
        let event = match object {
            Object::NodeOverlay(it) if self.is_new(place, List::NodeOverlays, &it.metadata) => {
                Event::applied(Arc::new(*it))
            }
            Object::Volume(it) if self.is_new(place, List::PersistentVolumes, &it.metadata) => {
                Event::applied(Arc::new(*it))
            }
            Object::VolumeClaim(mut it) => {
                default_namespace(&mut it.metadata);
                if !self.is_new(place, List::PersistentVolumeClaims, &it.metadata) {
                    return;
                }
                Event::applied(Arc::new(*it))
            }
            Object::StorageClass(it) if self.is_new(place, List::StorageClasses, &it.metadata) => {
                Event::applied(Arc::new(*it))
            }
            Object::CsiNode(it) if self.is_new(place, List::CsiNodes, &it.metadata) => {
                Event::applied(Arc::new(*it))
            }
            Object::Namespace(it) => {
                if self.is_new(place, List::Namespaces, &it.metadata) {
                    let name = it.metadata.name.clone().unwrap_or_default();
                    self.namespaces.insert(name, *it);
                }
                return;
            }
            Object::Service(mut it) => {
                default_namespace(&mut it.metadata);
                if !self.is_new(place, List::Services, &it.metadata) {
                    return;
                }
                Event::applied(Arc::new(*it))
            }
            Object::Workload(list, mut it) => {
                if it.key.namespace.is_empty() {
                    "default".clone_into(&mut it.key.namespace);
                }
                if !self.is_new_key(place, list, &it.key) {
                    return;
                }
                Event::applied::<Workload>(Arc::from(it))
            }
            Object::Device(it) => return self.device(place, *it),
            Object::CapacityBuffer(mut it) => {
                default_namespace(&mut it.metadata);
                if !self.is_new(place, List::CapacityBuffers, &it.metadata) {
                    return;
                }
                self.namespace(&ObjectKey::of(&it.metadata).namespace);
                Event::applied(Arc::new(*it))
            }
            Object::Pdb(it) => return self.budget(place, *it),
            // Twice the same; or of a kind that is more than a fact beside others.
            Object::NodeOverlay(_)
            | Object::Volume(_)
            | Object::StorageClass(_)
            | Object::CsiNode(_)
            | Object::Pod(_)
            | Object::BoundPod(_)
            | Object::NodePool(_)
            | Object::NodeClass(_)
            | Object::NodeClaim(_)
            | Object::Node(_)
            | Object::DaemonSet(_) => return,
        };
        self.apply(place, event);
    }

    fn budget(&mut self, place: &dyn Fn() -> String, mut budget: PodDisruptionBudget) {
        default_namespace(&mut budget.metadata);
        if self.is_new(place, List::PodDisruptionBudgets, &budget.metadata) {
            self.budgets.push(budget);
        }
    }

    pub(super) fn device(&mut self, place: &dyn Fn() -> String, mut object: DeviceObject) {
        let is_namespaced = matches!(object.kind, DeviceKind::Claim | DeviceKind::Template);
        if is_namespaced && object.key.namespace.is_empty() {
            "default".clone_into(&mut object.key.namespace);
        }
        if self.is_new_key(place, List::of_devices(object.kind), &object.key) {
            self.apply(place, Event::applied(Arc::new(object)));
        }
    }

    pub(super) fn pod(&mut self, place: &dyn Fn() -> String, list: List, mut pod: v1::Pod) {
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
            self.namespace(&key.namespace);
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
        self.faults(place, &key, faults);
    }

    pub(super) fn node_pool(&mut self, place: &dyn Fn() -> String, mut pool: NodePool) {
        if !self.is_new(place, List::NodePools, &pool.metadata) {
            return;
        }
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
            self.faults(place, &ObjectKey::of(&pool.metadata), faults);
        }
        self.apply(place, Event::applied(Arc::new(pool)));
    }

    pub(super) fn node(&mut self, place: &dyn Fn() -> String, mut node: v1::Node) {
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
            self.faults(place, &ObjectKey::of(&node.metadata), faults);
        }
    }

    pub(super) fn daemon_set(&mut self, place: &dyn Fn() -> String, mut daemon_set: DaemonSet) {
        default_namespace(&mut daemon_set.metadata);
        if !self.is_new(place, List::DaemonSets, &daemon_set.metadata) {
            return;
        }
        let key = ObjectKey::of(&daemon_set.metadata);
        let mut faults = ObjectFaults::default();
        check::daemon_set(&daemon_set, &mut faults);
        if !faults.0.is_empty() {
            self.faults(place, &key, faults);
            return;
        }
        // Its pods are told apart by the uid, so each needs one.
        let uid = &mut daemon_set.metadata.uid;
        uid.get_or_insert_with(|| format!("daemonset/{key}"));
        self.namespace(&key.namespace);
        self.apply(place, Event::applied(Arc::new(daemon_set)));
    }
}
