//! Where a fact goes: into the model, and as a key into the queues of the controllers it may concern.
//!
//! A key too many costs one look at the object; a key too few is a controller that sleeps. Filters here only keep
//! out heartbeats and repeats. Answers to the watch predicates of Karpenter's controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use apis::conditions::{Conditioned as _, is_node_ready};
use apis::labels;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use scheduling::pod::PodKey;
use state::cluster::Event;
use tracing::warn;

use super::{Kind, Object};
use crate::managed::Managed as _;
use crate::node_claim::initialization::taints;
use crate::runtime::ObjectKey;
use crate::shell::Shell;
use crate::work_queue::{BackOff, WorkQueue};

/// A queue of object keys.
pub(crate) type Keys = Arc<WorkQueue<ObjectKey>>;

/// The queues that watches feed.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    pub(crate) lifecycle: Keys,
    pub(crate) reboots: Keys,
    pub(crate) claim_disruption: Keys,
    pub(crate) expiration: Keys,
    pub(crate) consistency: Keys,
    pub(crate) claim_hydration: Keys,
    pub(crate) node_hydration: Keys,
    pub(crate) tagging: Keys,
    pub(crate) pod_events: Keys,
    pub(crate) node_termination: Keys,
    pub(crate) pool_hash: Keys,
    pub(crate) pool_readiness: Keys,
    pub(crate) pool_validation: Keys,
    pub(crate) pool_counter: Keys,
    pub(crate) node_class: Keys,
    pub(crate) node_overlays: Keys,
    pub(crate) capacity_buffers: Keys,
    pub(crate) pod_trigger: Keys,
    pub(crate) node_trigger: Keys,
    pub(crate) policies: Keys,
    pub(crate) static_pools: Keys,
}

impl Queues {
    pub(crate) fn new() -> Self {
        let queue = |first_millis, longest_seconds| {
            Arc::new(WorkQueue::new(BackOff {
                first: std::time::Duration::from_millis(first_millis),
                longest: std::time::Duration::from_secs(longest_seconds),
            }))
        };
        let default = || Arc::new(WorkQueue::new(BackOff::DEFAULT));
        Self {
            lifecycle: queue(1000, 60),
            reboots: default(),
            claim_disruption: default(),
            expiration: default(),
            consistency: default(),
            claim_hydration: queue(100, 60),
            node_hydration: queue(100, 60),
            tagging: queue(1000, 60),
            pod_events: default(),
            node_termination: queue(100, 10),
            pool_hash: default(),
            pool_readiness: default(),
            pool_validation: default(),
            pool_counter: default(),
            node_class: queue(1000, 60),
            node_overlays: queue(100, 60),
            capacity_buffers: queue(100, 60),
            pod_trigger: default(),
            node_trigger: default(),
            policies: queue(500, 30),
            static_pools: default(),
        }
    }
}

/// Feeds model and queues.
pub(crate) struct Router {
    shell: Arc<Shell>,
    queues: Queues,
    /// What is known of each kind, so that a list tells what is gone. Pods are asked of the model.
    known: BTreeMap<Kind, BTreeSet<ObjectKey>>,
    /// Of each node: a digest of what controllers look at, which heartbeats do not change.
    digests: BTreeMap<String, (u64, String)>,
}

impl Router {
    pub(crate) fn new(shell: Arc<Shell>, queues: Queues) -> Self {
        Self {
            shell,
            queues,
            known: BTreeMap::new(),
            digests: BTreeMap::new(),
        }
    }

    /// A list of the kind is complete: what it did not hold is gone.
    pub(crate) fn listed(&mut self, kind: Kind, seen: &BTreeSet<ObjectKey>) {
        let known: Vec<ObjectKey> = if kind == Kind::Pod {
            self.shell
                .snapshot()
                .pods()
                .map(|pod| object_key(&pod.key))
                .collect()
        } else {
            self.known
                .get(&kind)
                .into_iter()
                .flatten()
                .cloned()
                .collect()
        };
        for key in known.iter().filter(|key| !seen.contains(*key)) {
            self.deleted(kind, key);
        }
    }

    pub(crate) fn applied(&mut self, object: Object) {
        let (kind, key) = (super::kind_of(&object), super::key_of(&object));
        if !is_managed(&object) {
            return self.foreign(kind, &key);
        }
        if kind != Kind::Pod {
            self.known.entry(kind).or_default().insert(key.clone());
        }
        match object {
            Object::Pod(pod) => self.pod(*pod),
            Object::Node(node) => self.node(*node),
            Object::NodeClaim(claim) => {
                self.static_pool_touched(claim.labels().get(labels::NODEPOOL).map(String::as_str));
                if claim.is_condition_true(apis::conditions::REBOOTING) {
                    self.queues.reboots.add(key.clone());
                }
                let seen = self.shell.claim_seen(*claim);
                if let Err(error) = &seen {
                    warn!(%error, "object left out of cluster state");
                }
                if seen.unwrap_or(true) {
                    self.claim_touched(&key);
                }
            }
            Object::NodePool(pool) => self.node_pool(*pool, &key),
            Object::NodeClass(class) => {
                let class: Arc<apis::Ec2NodeClass> = Arc::from(class);
                // Types can be told once the class is ready, which its generation does not say.
                let told = |it: &apis::Ec2NodeClass| {
                    let ready = it.condition(apis::conditions::READY);
                    (it.metadata.generation, ready.map(|it| it.status.clone()))
                };
                let before = self.shell.node_class(&key.name);
                if before.as_deref().map(told) != Some(told(&class)) {
                    self.overlays_touched();
                }
                self.shell
                    .objects()
                    .node_classes
                    .insert(key.name.clone(), Arc::clone(&class));
                self.tell(Event::NodeClassApplied(class));
                self.class_touched(&key);
            }
            Object::NodeOverlay(it) => {
                let generation = |it: &apis::NodeOverlay| it.metadata.generation;
                let snapshot = self.shell.snapshot();
                let mut known = snapshot.node_overlays();
                let before = known.find(|it| it.name_any() == key.name);
                if before.map(|it| generation(it)) != Some(generation(&it)) {
                    self.overlays_touched();
                }
                drop(known);
                drop(snapshot);
                self.tell(Event::NodeOverlayApplied(Arc::from(it)));
            }
            Object::Policy(it) => {
                self.policy_data_touched(&key.name);
                let mut objects = self.shell.objects();
                objects.policies.applied(key.clone(), Arc::from(it));
                drop(objects);
                self.queues.policies.add(key);
            }
            Object::PolicyData(_) => self.policy_data_touched(&key.name),
            other => self.applied_supporting(other, key),
        }
    }

    fn node_pool(&mut self, pool: apis::NodePool, key: &ObjectKey) {
        let generation = |it: &apis::NodePool| it.metadata.generation;
        let before = self.shell.node_pool(&key.name);
        if before.as_deref().map(generation) != Some(generation(&pool)) {
            self.overlays_touched();
        }
        let is_relabelled = before.is_none_or(|it| it.labels() != pool.labels());
        self.tell(Event::NodePoolApplied(Arc::new(pool)));
        self.pool_touched(key);
        if is_relabelled {
            self.policies_touched();
        }
    }

    /// Objects that only support decisions about pods and nodes.
    fn applied_supporting(&mut self, object: Object, key: ObjectKey) {
        match object {
            Object::DaemonSet(it) => self.tell(Event::DaemonSetApplied(Arc::from(it))),
            Object::Pdb(it) => self.tell(Event::PdbApplied(Arc::from(it))),
            Object::VolumeClaim(it) => self.tell(Event::VolumeClaimApplied(Arc::from(it))),
            Object::Volume(it) => self.tell(Event::VolumeApplied(Arc::from(it))),
            Object::StorageClass(it) => self.tell(Event::StorageClassApplied(Arc::from(it))),
            Object::CsiNode(it) => self.tell(Event::CsiNodeApplied(Arc::from(it))),
            Object::Namespace(it) => self.tell(Event::NamespaceApplied(Arc::from(it))),
            Object::Service(it) => self.tell(Event::ServiceApplied(Arc::from(it))),
            Object::Workload(_, it) => {
                self.tell(Event::WorkloadApplied(it));
                self.workload_touched(&key);
            }
            Object::Device(it) => self.tell(Event::DeviceObjectApplied(it)),
            Object::CapacityBuffer(it) => {
                let snapshot = self.shell.snapshot();
                let mut all = snapshot.capacity_buffers();
                // Its status is our own doing.
                let is_known = all.any(|known| known.uid() == it.uid() && known.spec == it.spec);
                drop(all);
                drop(snapshot);
                self.tell(Event::CapacityBufferApplied(Arc::from(it)));
                if !is_known {
                    self.queues.capacity_buffers.add(key);
                }
            }
            Object::VolumeAttachment(it) => {
                let volume = it.spec.source.persistent_volume_name.unwrap_or_default();
                let attachment = (it.spec.node_name, volume);
                self.shell
                    .objects()
                    .volume_attachments
                    .insert(key.name, attachment);
            }
            Object::Pod(_)
            | Object::Node(_)
            | Object::NodeClaim(_)
            | Object::NodePool(_)
            | Object::NodeClass(_)
            | Object::NodeOverlay(_)
            | Object::Policy(_)
            | Object::PolicyData(_) => {}
        }
    }

    /// Another provider's; one of ours may have borne the name before.
    fn foreign(&mut self, kind: Kind, key: &ObjectKey) {
        if self.known.get(&kind).is_some_and(|it| it.contains(key)) {
            self.deleted(kind, key);
        }
    }

    pub(crate) fn deleted(&mut self, kind: Kind, key: &ObjectKey) {
        if let Some(known) = self.known.get_mut(&kind) {
            known.remove(key);
        }
        let ObjectKey { namespace, name } = key.clone();
        match kind {
            Kind::Pod => self.pod_gone(&PodKey { namespace, name }),
            Kind::Node => self.node_gone(&name),
            Kind::NodeClaim => {
                let nodes: Vec<String> = self.node_names_of_claim(&name);
                let pool = self.pool_of_claim(&name);
                self.static_pool_touched(pool.as_deref());
                self.shell.claim_gone(name).ok();
                for queue in [&self.queues.lifecycle, &self.queues.claim_disruption] {
                    queue.forget(key);
                }
                for node in nodes {
                    self.queues.node_termination.add(ObjectKey::cluster(node));
                }
            }
            Kind::NodePool => {
                let uid = self.shell.node_pool(&name).and_then(|it| it.uid());
                self.shell
                    .registration_health()
                    .forget(&uid.unwrap_or_default());
                self.tell(Event::NodePoolDeleted(name));
                self.queues.pool_counter.forget(key);
                self.policies_touched();
            }
            Kind::NodeClass => {
                self.shell.objects().node_classes.remove(&name);
                self.tell(Event::NodeClassDeleted(name));
                self.class_touched(key);
            }
            Kind::NodeOverlay => {
                self.tell(Event::NodeOverlayDeleted(name));
                self.overlays_touched();
            }
            Kind::DaemonSet => self.tell(Event::DaemonSetDeleted(PodKey { namespace, name })),
            Kind::Pdb => self.tell(Event::PdbDeleted(namespace, name)),
            Kind::VolumeClaim => self.tell(Event::VolumeClaimDeleted(namespace, name)),
            Kind::Volume => self.tell(Event::VolumeDeleted(name)),
            Kind::StorageClass => self.tell(Event::StorageClassDeleted(name)),
            Kind::CsiNode => self.tell(Event::CsiNodeDeleted(name)),
            Kind::Namespace => self.tell(Event::NamespaceDeleted(name)),
            Kind::Service => self.tell(Event::ServiceDeleted(PodKey { namespace, name })),
            Kind::Workload(kind) => {
                let gone = PodKey { namespace, name };
                self.tell(Event::WorkloadDeleted(kind, gone));
                self.workload_touched(key);
            }
            Kind::Device(kind) => {
                let gone = PodKey { namespace, name };
                self.tell(Event::DeviceObjectDeleted(kind, gone));
            }
            Kind::CapacityBuffer => {
                let gone = PodKey { namespace, name };
                self.tell(Event::CapacityBufferDeleted(gone));
                self.queues.capacity_buffers.add(key.clone());
            }
            Kind::VolumeAttachment => {
                self.shell.objects().volume_attachments.remove(&name);
            }
            Kind::Policy => {
                self.policy_data_touched(&name);
                self.shell.objects().policies.deleted(key);
                self.queues.policies.add(key.clone());
            }
            Kind::PolicyData => self.policy_data_touched(&name),
        }
    }

    fn tell(&self, event: Event) {
        if let Err(error) = self.shell.tell(event) {
            warn!(%error, "object left out of cluster state");
        }
    }

    fn pod(&mut self, mut object: Pod) {
        // What we write ourselves must not decide anything, nor make equal pods differ.
        let key = PodKey {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        };
        if self
            .shell
            .settings
            .feature_gates
            .pod_deletion_cost_management
        {
            let annotations = object.metadata.annotations.as_mut();
            let told = annotations.and_then(|it| it.remove(labels::POD_DELETION_COST_ANNOTATION));
            self.shell.told_cost(&key, told);
        }
        let before = self.shell.pod(&key);
        if let Some(node) = object.spec.as_ref().and_then(|it| it.node_name.as_deref())
            && before.as_ref().is_some_and(|it| it.node_name.is_none())
        {
            self.shell.pod_bound(&key, node);
        }
        self.tell(Event::PodApplied(Arc::new(object)));
        let after = self.shell.pod(&key);
        let was_provisionable = before.as_ref().is_some_and(|pod| pod.is_provisionable());
        if let Some(after) = &after {
            if after.is_provisionable() && !was_provisionable {
                self.queues.pod_trigger.add(object_key(&key));
            }
            let is_same_life = before.as_ref().is_some_and(|before| {
                before.uid == after.uid
                    && before.node_name == after.node_name
                    && before.is_terminating() == after.is_terminating()
            });
            if !is_same_life && !after.is_owned_by_daemon_set() {
                self.pod_event(after.node_name.as_deref());
            }
        } else if let Some(before) = before {
            // The model keeps no finished pods. The end of a long grace period counts as much as its beginning.
            if !before.is_owned_by_daemon_set() {
                self.pod_event(before.node_name.as_deref());
            }
            self.pod_ended(&before);
        }
    }

    fn pod_gone(&mut self, key: &PodKey) {
        let before = self.shell.pod(key);
        self.shell.told_cost(key, None);
        self.tell(Event::PodDeleted(key.clone()));
        if let Some(before) = before {
            if !before.is_terminating() && !before.is_owned_by_daemon_set() {
                self.pod_event(before.node_name.as_deref());
            }
            self.pod_ended(&before);
        }
    }

    fn pod_ended(&self, before: &scheduling::pod::Pod) {
        self.shell.pod_decided_or_gone(&before.key);
        self.queues.pod_trigger.forget(&object_key(&before.key));
        let Some(name) = &before.node_name else {
            return;
        };
        let snapshot = self.shell.snapshot();
        match snapshot.node(name) {
            Some(node) if node.is_marked_for_deletion() => {
                self.queues
                    .node_termination
                    .add(ObjectKey::cluster(name.clone()));
            }
            Some(_) => self.shell.room_freed.notify_one(),
            None => {}
        }
    }

    fn pod_event(&self, node_name: Option<&str>) {
        let Some(claim) = node_name.and_then(|name| self.shell.claim_name_of_node(name)) else {
            return;
        };
        self.queues.pod_events.add(ObjectKey::cluster(claim));
    }

    fn node(&mut self, node: Node) {
        let name = node.name_any();
        let provider_id = node
            .spec
            .as_ref()
            .and_then(|spec| spec.provider_id.clone())
            .unwrap_or_default();
        let digest = digest(&node);
        let known = self
            .digests
            .insert(name.clone(), (digest, provider_id.clone()));
        if let Some((_, old_id)) = &known
            && *old_id != provider_id
        {
            self.unindex(&name, old_id);
        }
        if !provider_id.is_empty() {
            let mut objects = self.shell.objects();
            objects
                .nodes_by_provider_id
                .entry(provider_id.clone())
                .or_default()
                .insert(name.clone());
        }
        let key = ObjectKey::cluster(name);
        let is_deleting = node.metadata.deletion_timestamp.is_some();
        let is_disrupted = taints(&node)
            .iter()
            .any(|taint| taint.key == labels::DISRUPTED_TAINT_KEY);
        self.tell(Event::NodeApplied(Arc::new(node)));
        if known.is_some_and(|(old, _)| old == digest) {
            return;
        }
        if is_deleting {
            self.queues.node_termination.add(key.clone());
        }
        if is_disrupted {
            self.queues.node_trigger.add(key.clone());
        }
        self.queues.node_hydration.add(key);
        self.claim_of_provider_id_touched(&provider_id);
    }

    fn node_gone(&mut self, name: &str) {
        if let Some((_, provider_id)) = self.digests.remove(name) {
            self.unindex(name, &provider_id);
            self.tell(Event::NodeDeleted(name.to_owned()));
            self.claim_of_provider_id_touched(&provider_id);
        } else {
            self.tell(Event::NodeDeleted(name.to_owned()));
        }
    }

    fn unindex(&self, name: &str, provider_id: &str) {
        let mut objects = self.shell.objects();
        if let Some(names) = objects.nodes_by_provider_id.get_mut(provider_id) {
            names.remove(name);
            if names.is_empty() {
                objects.nodes_by_provider_id.remove(provider_id);
            }
        }
    }

    fn claim_of_provider_id_touched(&self, provider_id: &str) {
        let snapshot = self.shell.snapshot();
        let claim = snapshot
            .node_by_provider_id(provider_id)
            .and_then(|node| node.claim_name());
        if let Some(claim) = claim {
            self.queues.lifecycle.add(ObjectKey::cluster(claim));
        }
    }

    fn claim_touched(&self, key: &ObjectKey) {
        let Queues {
            lifecycle,
            claim_disruption,
            expiration,
            consistency,
            claim_hydration,
            tagging,
            ..
        } = &self.queues;
        for queue in [
            lifecycle,
            claim_disruption,
            expiration,
            consistency,
            claim_hydration,
            tagging,
        ] {
            queue.add(key.clone());
        }
        for node in self.node_names_of_claim(&key.name) {
            self.queues.node_hydration.add(ObjectKey::cluster(node));
        }
    }

    fn node_names_of_claim(&self, claim: &str) -> Vec<String> {
        let snapshot = self.shell.snapshot();
        let node = snapshot
            .node_of_claim(claim)
            .and_then(|node| node.node_name());
        node.map(str::to_owned).into_iter().collect()
    }

    fn pool_of_claim(&self, claim: &str) -> Option<String> {
        let snapshot = self.shell.snapshot();
        let claim = snapshot.node_of_claim(claim)?.claim.as_ref()?;
        claim.node_pool().map(str::to_owned)
    }

    fn static_pool_touched(&self, pool: Option<&str>) {
        let pool = pool.and_then(|name| self.shell.node_pool(name));
        if let Some(pool) = pool.filter(|it| it.is_static()) {
            let key = ObjectKey::cluster(pool.name_any());
            self.queues.static_pools.add(key);
        }
    }

    fn pool_touched(&self, key: &ObjectKey) {
        let Queues {
            pool_hash,
            pool_readiness,
            pool_validation,
            pool_counter,
            ..
        } = &self.queues;
        for queue in [pool_hash, pool_readiness, pool_validation] {
            queue.add(key.clone());
        }
        pool_counter.add_new(key.clone());
        self.static_pool_touched(Some(&key.name));
        let snapshot = self.shell.snapshot();
        let claims = snapshot
            .nodes()
            .filter(|node| node.node_pool() == Some(key.name.as_str()))
            .filter_map(|node| node.claim_name());
        for claim in claims {
            self.queues.claim_disruption.add(ObjectKey::cluster(claim));
        }
    }

    /// Buffers that take their pods from the workload or template of that name.
    fn workload_touched(&self, key: &ObjectKey) {
        let snapshot = self.shell.snapshot();
        for buffer in snapshot.capacity_buffers() {
            let spec = &buffer.spec;
            let template = spec.pod_template_ref.as_ref().map(|it| &it.name);
            let scalable = spec.scalable_ref.as_ref().map(|it| &it.name);
            if template.or(scalable) == Some(&key.name)
                && buffer.namespace().as_deref() == Some(&key.namespace)
            {
                let buffer = ObjectKey::namespaced(&key.namespace, buffer.name_any());
                self.queues.capacity_buffers.add(buffer);
            }
        }
    }

    /// Bindings that name a ConfigMap are read anew when it changes.
    fn policy_data_touched(&self, name: &str) {
        let naming = self.shell.objects().policies.touched(name);
        for key in naming {
            self.queues.policies.add(key);
        }
    }

    /// Which NodePools a binding is for hangs on what NodePools there are.
    fn policies_touched(&self) {
        let bindings = self.shell.objects().policies.pools_touched();
        for key in bindings {
            self.queues.policies.add(key);
        }
    }

    /// Overlays are judged together, whichever of them or of what they depend on changed.
    fn overlays_touched(&self) {
        if self.shell.settings.feature_gates.node_overlay {
            self.queues.node_overlays.add(crate::node_overlay::key());
        }
    }

    fn class_touched(&self, key: &ObjectKey) {
        self.queues.node_class.add(key.clone());
        let snapshot = self.shell.snapshot();
        let pools = snapshot
            .node_pools()
            .filter(|pool| pool.spec.template.spec.node_class_ref.name == key.name);
        for pool in pools {
            self.queues
                .pool_readiness
                .add(ObjectKey::cluster(pool.name_any()));
        }
        let claims = snapshot.nodes().filter_map(|node| node.claim.as_ref());
        for claim in claims.filter(|claim| claim.node_class == key.name) {
            self.queues
                .claim_disruption
                .add(ObjectKey::cluster(claim.name.clone()));
        }
    }
}

fn is_managed(object: &Object) -> bool {
    match object {
        Object::NodeClaim(it) => it.is_managed(),
        Object::NodePool(it) => it.is_managed(),
        Object::Pod(_)
        | Object::Node(_)
        | Object::NodeClass(_)
        | Object::NodeOverlay(_)
        | Object::DaemonSet(_)
        | Object::Pdb(_)
        | Object::VolumeClaim(_)
        | Object::Volume(_)
        | Object::StorageClass(_)
        | Object::CsiNode(_)
        | Object::VolumeAttachment(_)
        | Object::Service(_)
        | Object::Workload(..)
        | Object::CapacityBuffer(_)
        | Object::Device(_)
        | Object::Namespace(_)
        | Object::Policy(_)
        | Object::PolicyData(_) => true,
    }
}

fn object_key(key: &PodKey) -> ObjectKey {
    ObjectKey::namespaced(key.namespace.clone(), key.name.clone())
}

/// Whatever a controller may look at; not the heartbeats.
fn digest(node: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    let meta = &node.metadata;
    meta.uid.hash(&mut hasher);
    meta.labels.hash(&mut hasher);
    meta.annotations.hash(&mut hasher);
    meta.finalizers.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    for taint in taints(node) {
        (&taint.key, &taint.value, &taint.effect).hash(&mut hasher);
    }
    is_node_ready(node).hash(&mut hasher);
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.provider_id.as_ref())
        .hash(&mut hasher);
    let status = node.status.as_ref();
    for amounts in [
        status.and_then(|status| status.capacity.as_ref()),
        status.and_then(|status| status.allocatable.as_ref()),
    ] {
        for (name, quantity) in amounts.into_iter().flatten() {
            (name, &quantity.0).hash(&mut hasher);
        }
    }
    hasher.finish()
}
