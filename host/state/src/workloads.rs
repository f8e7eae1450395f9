//! Services and workloads, as far as others ask: whom they select, how many replicas they have, what their pods look
//! like.
//!
//! Only what default topology spreads, CapacityBuffers and pods about to be created need is kept.

mod objects;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use scheduling::pod::{InvalidPod, LabelSelector, PodShape, ShapeTable};

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
    pub kind: WorkloadKind,
    /// Namespace and name of the workload.
    pub key: ObjectKey,
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
    /// Template of its pods.
    pub template: v1::PodTemplateSpec,
}

/// A workload as it is kept.
#[derive(Debug, Clone)]
pub struct KeptWorkload {
    pub(crate) uid: String,
    /// Generation of the object.
    pub generation: Option<i64>,
    /// Replicas asked for.
    pub replicas: i32,
    /// Whether its controller makes up for pods that it lacks.
    pub(crate) creates_pods: bool,
    /// When `replicas` or `creates_pods` changed last, as far as we saw.
    pub(crate) changed_at: Timestamp,
    /// Whom it selects.
    pub selector: LabelSelector,
    /// The shape of its pods, or why there is none.
    pub shape: Result<Arc<PodShape>, InvalidPod>,
}

/// Selectors of services, and workloads by kind and name.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    /// By namespace and name.
    pub(crate) services: BTreeMap<ObjectKey, BTreeMap<String, String>>,
    pub(crate) all: BTreeMap<(WorkloadKind, ObjectKey), Arc<KeptWorkload>>,
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
        let kept = KeptWorkload {
            uid: uid.clone(),
            generation: *generation,
            replicas: *replicas,
            creates_pods: *creates_pods,
            changed_at: before.map_or(now, |it| it.changed_at),
            selector: selector.clone(),
            shape: shape.map(|shape| shapes.intern(shape)),
        };
        self.all.insert((*kind, key.clone()), Arc::new(kept));
    }

    pub(crate) fn apply_service(&mut self, object: &v1::Service) {
        let selector = object.spec.as_ref().and_then(|it| it.selector.clone());
        let key = ObjectKey::of(&object.metadata);
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

    /// A workload by kind and name.
    pub fn find(&self, kind: WorkloadKind, key: &ObjectKey) -> Option<&Arc<KeptWorkload>> {
        self.all.get(&(kind, key.clone()))
    }

    /// The labels by which services find a pod, of all of them together; of two values for a label the service
    /// later by name has its way.
    pub fn service_labels(&self, shape: &PodShape) -> BTreeMap<String, String> {
        let first = ObjectKey::new(&shape.namespace, "");
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
