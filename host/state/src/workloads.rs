//! Services and workloads, as far as others ask: whom they select, how many replicas they have, what their pods look
//! like.
//!
//! Only what default topology spreads, CapacityBuffers and pods about to be created need is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use scheduling::pod::{LabelSelector, PodKey, PodShape, SelectorOperator, ShapeTable};

use crate::cluster::{Change, Changes, Cluster, Refused, Watched};

/// Of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// Condition of a set whose pods are refused, by a quota or by admission.
const REPLICA_FAILURE: &str = "ReplicaFailure";
/// Conditions of a Job that starts no more pods.
const ENDED: [&str; 4] = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];

/// Kinds that own pods or say how they look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// apps/v1 Deployment.
    Deployment,
    /// apps/v1 ReplicaSet.
    ReplicaSet,
    /// apps/v1 StatefulSet.
    StatefulSet,
    /// v1 ReplicationController.
    ReplicationController,
    /// v1 PodTemplate.
    PodTemplate,
    /// batch/v1 Job.
    Job,
}

/// A workload as the API has it.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Kind.
    pub kind: WorkloadKind,
    /// Namespace and name.
    pub key: PodKey,
    /// UID.
    pub uid: String,
    /// Generation of the object.
    pub generation: Option<i64>,
    /// Replicas asked for; one when nothing is said.
    pub replicas: i32,
    /// Whether it creates the pods that it lacks by itself, all of them, now.
    pub creates_pods: bool,
    /// Whether a Deployment keeps it as a former revision without pods.
    pub is_retired: bool,
    /// Whom it selects; the map of a ReplicationController in the form of one.
    pub selector: LabelSelector,
    /// Its pods.
    pub template: v1::PodTemplateSpec,
}

/// A workload as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) uid: String,
    pub(crate) generation: Option<i64>,
    pub(crate) replicas: i32,
    /// As [`Workload::creates_pods`].
    pub(crate) creates_pods: bool,
    /// When `replicas` or `creates_pods` changed last, as far as we saw.
    pub(crate) changed_at: Timestamp,
    pub(crate) selector: LabelSelector,
    /// The shape of its pods, or why there is none.
    pub(crate) shape: Result<Arc<PodShape>, String>,
}

/// Selectors of services, and workloads by kind and name.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    /// By namespace and name.
    pub(crate) services: BTreeMap<PodKey, BTreeMap<String, String>>,
    pub(crate) all: BTreeMap<(WorkloadKind, PodKey), Arc<Kept>>,
}

impl WorkloadKind {
    /// The kind that an owner reference names.
    pub fn of_owner(api_version: &str, kind: &str) -> Option<Self> {
        match (api_version, kind) {
            ("apps/v1", "Deployment") => Some(Self::Deployment),
            ("apps/v1", "ReplicaSet") => Some(Self::ReplicaSet),
            ("apps/v1", "StatefulSet") => Some(Self::StatefulSet),
            ("v1", "ReplicationController") => Some(Self::ReplicationController),
            ("batch/v1", "Job") => Some(Self::Job),
            _ => None,
        }
    }

    /// As owner references name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicationController => "ReplicationController",
            Self::PodTemplate => "PodTemplate",
            Self::Job => "Job",
        }
    }
}

impl Workload {
    fn new(kind: WorkloadKind, metadata: &ObjectMeta) -> Self {
        Self {
            kind,
            key: key_of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation,
            replicas: 1,
            creates_pods: false,
            is_retired: false,
            selector: LabelSelector::default(),
            template: v1::PodTemplateSpec::default(),
        }
    }

    /// The same, of a controller that makes up for pods it lacks unless something keeps it from that.
    fn creating(self, metadata: &ObjectMeta, is_held: bool) -> Self {
        let is_going = metadata.deletion_timestamp.is_some();
        let creates_pods = !is_held && !is_going && are_plain(&self.template);
        Self {
            creates_pods,
            ..self
        }
    }
}

/// Whether one of the named conditions is True, of conditions as type and status.
fn is_any_true<'a>(
    mut conditions: impl Iterator<Item = (&'a str, &'a str)>,
    names: &[&str],
) -> bool {
    conditions.any(|(kind, status)| status == "True" && names.contains(&kind))
}

/// Whether the pods can be foreseen from their template: the scheduler takes them as they come, and they ask for no volumes or devices
/// that are made for each of them.
fn are_plain(template: &v1::PodTemplateSpec) -> bool {
    let Some(spec) = &template.spec else {
        return false;
    };
    let scheduler = spec.scheduler_name.as_deref().unwrap_or(DEFAULT_SCHEDULER);
    let mut volumes = spec.volumes.iter().flatten();
    scheduler == DEFAULT_SCHEDULER
        && spec.node_name.is_none()
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
        && spec.resource_claims.as_ref().is_none_or(Vec::is_empty)
        && !volumes.any(|it| it.persistent_volume_claim.is_some() || it.ephemeral.is_some())
}

impl From<apps::Deployment> for Workload {
    fn from(object: apps::Deployment) -> Self {
        let workload = Self::new(WorkloadKind::Deployment, &object.metadata);
        let spec = object.spec.unwrap_or_default();
        Self {
            replicas: spec.replicas.unwrap_or(1),
            selector: LabelSelector::parse(&spec.selector),
            template: spec.template,
            ..workload
        }
    }
}

impl From<apps::ReplicaSet> for Workload {
    fn from(object: apps::ReplicaSet) -> Self {
        let workload = Self::new(WorkloadKind::ReplicaSet, &object.metadata);
        let conditions = object.status.and_then(|it| it.conditions);
        let conditions = conditions.iter().flatten();
        let fails = is_any_true(
            conditions.map(|it| (&*it.type_, &*it.status)),
            &[REPLICA_FAILURE],
        );
        let spec = object.spec.unwrap_or_default();
        let owners = object.metadata.owner_references.iter().flatten();
        let is_controlled = owners.filter_map(|it| it.controller).any(|it| it);
        Self {
            replicas: spec.replicas.unwrap_or(1),
            is_retired: is_controlled && spec.replicas == Some(0),
            selector: LabelSelector::parse(&spec.selector),
            template: spec.template.unwrap_or_default(),
            ..workload
        }
        .creating(&object.metadata, fails)
    }
}

impl From<apps::StatefulSet> for Workload {
    fn from(object: apps::StatefulSet) -> Self {
        let workload = Self::new(WorkloadKind::StatefulSet, &object.metadata);
        let spec = object.spec.unwrap_or_default();
        // In order, each pod waits for the one before to be ready.
        let is_in_order = spec.pod_management_policy.as_deref() != Some("Parallel");
        let has_volumes = spec.volume_claim_templates.is_some_and(|it| !it.is_empty());
        Self {
            replicas: spec.replicas.unwrap_or(1),
            selector: LabelSelector::parse(&spec.selector),
            template: spec.template,
            ..workload
        }
        .creating(&object.metadata, is_in_order || has_volumes)
    }
}

impl From<v1::ReplicationController> for Workload {
    fn from(object: v1::ReplicationController) -> Self {
        let workload = Self::new(WorkloadKind::ReplicationController, &object.metadata);
        let conditions = object.status.and_then(|it| it.conditions);
        let conditions = conditions.iter().flatten();
        let fails = is_any_true(
            conditions.map(|it| (&*it.type_, &*it.status)),
            &[REPLICA_FAILURE],
        );
        let spec = object.spec.unwrap_or_default();
        let mut selector = LabelSelector::default();
        for (label, value) in spec.selector.unwrap_or_default() {
            selector.require(&label, SelectorOperator::In, [value]);
        }
        Self {
            replicas: spec.replicas.unwrap_or(1),
            selector,
            template: spec.template.unwrap_or_default(),
            ..workload
        }
        .creating(&object.metadata, fails)
    }
}

impl From<batch::Job> for Workload {
    fn from(object: batch::Job) -> Self {
        let workload = Self::new(WorkloadKind::Job, &object.metadata);
        let spec = object.spec.unwrap_or_default();
        let status = object.status.unwrap_or_default();
        let conditions = status.conditions.iter().flatten();
        let has_ended = is_any_true(conditions.map(|it| (&*it.type_, &*it.status)), &ENDED);
        let has_failed = status.failed.is_some_and(|it| it > 0);
        let is_held = spec.suspend == Some(true) || spec.managed_by.is_some();
        let succeeded = status.succeeded.unwrap_or_default();
        let open = spec.completions.map_or_else(
            // A work queue: after the first success nothing new is started.
            || if succeeded > 0 { 0 } else { i32::MAX },
            |completions| completions - succeeded,
        );
        Self {
            replicas: spec.parallelism.unwrap_or(1).min(open).max(0),
            template: spec.template,
            ..workload
        }
        // What failed is tried again after a while that grows.
        .creating(&object.metadata, has_ended || has_failed || is_held)
    }
}

impl From<v1::PodTemplate> for Workload {
    fn from(object: v1::PodTemplate) -> Self {
        let workload = Self::new(WorkloadKind::PodTemplate, &object.metadata);
        Self {
            template: object.template.unwrap_or_default(),
            ..workload
        }
    }
}

impl Watched for Workload {
    type Kind = WorkloadKind;

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let workloads = Arc::make_mut(&mut cluster.data.workloads);
        workloads.apply(now, &object, &mut cluster.shapes);
        cluster.data.forget_surplus(object.kind, &object.key);
        Ok(vec![Change::Workload(object.key.clone())])
    }

    fn deleted(
        cluster: &mut Cluster,
        _now: Timestamp,
        kind: WorkloadKind,
        key: &ObjectKey,
    ) -> Changes {
        let workloads = Arc::make_mut(&mut cluster.data.workloads);
        workloads.all.remove(&(kind, key.clone()));
        cluster.data.forget_surplus(kind, key);
        vec![Change::Workload(key.clone())]
    }

    fn known(cluster: &Cluster, kind: WorkloadKind) -> Vec<ObjectKey> {
        let all = cluster.data.workloads.all.keys();
        let own = all.filter(|(it, _)| *it == kind);
        own.map(|(_, key)| key.clone()).collect()
    }
}

impl Watched for v1::Service {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.workloads).apply_service(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.workloads)
            .services
            .remove(key);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        cluster.data.workloads.services.keys().cloned().collect()
    }
}

impl Workloads {
    pub(crate) fn apply(&mut self, now: Timestamp, workload: &Workload, shapes: &mut ShapeTable) {
        let Workload {
            kind,
            key,
            uid,
            generation,
            replicas,
            creates_pods,
            is_retired,
            selector,
            template,
        } = workload;
        // There may be ten of them to a Deployment.
        if *is_retired {
            self.all.remove(&(*kind, key.clone()));
            return;
        }
        let shape = PodShape::parse_template(template, &key.namespace, &key.name);
        let before = self.find(*kind, key).filter(|it| {
            it.uid == *uid && it.replicas == *replicas && it.creates_pods == *creates_pods
        });
        let kept = Kept {
            uid: uid.clone(),
            generation: *generation,
            replicas: *replicas,
            creates_pods: *creates_pods,
            changed_at: before.map_or(now, |it| it.changed_at),
            selector: selector.clone(),
            shape: shape
                .map(|shape| shapes.intern(shape))
                .map_err(|error| error.to_string()),
        };
        self.all.insert((*kind, key.clone()), Arc::new(kept));
    }

    pub(crate) fn apply_service(&mut self, object: &v1::Service) {
        let selector = object.spec.as_ref().and_then(|it| it.selector.clone());
        let key = key_of(&object.metadata);
        match selector {
            Some(selector) if !selector.is_empty() => {
                self.services.insert(key, selector);
            }
            // Without a selector a service has no pods.
            Some(_) | None => {
                self.services.remove(&key);
            }
        }
    }

    pub(crate) fn find(&self, kind: WorkloadKind, key: &PodKey) -> Option<&Arc<Kept>> {
        self.all.get(&(kind, key.clone()))
    }

    /// The labels by which services find a pod, of all of them together; of two values for a label the service
    /// later by name has its way.
    pub(crate) fn service_labels(&self, shape: &PodShape) -> BTreeMap<String, String> {
        let first = PodKey::new(&shape.namespace, "");
        let of_namespace = self.services.range(first..);
        let of_namespace = of_namespace.take_while(|(key, _)| key.namespace == shape.namespace);
        let mut merged = BTreeMap::new();
        for (_, selector) in of_namespace {
            let finds = |(label, value): (&String, &String)| shape.labels.get(label) == Some(value);
            if selector.iter().all(finds) {
                merged.extend(selector.clone());
            }
        }
        merged
    }
}

/// Namespace and name of an object, as the model keys pods and claims.
pub fn key_of(metadata: &ObjectMeta) -> PodKey {
    PodKey {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}
