//! Services and workloads, as far as others ask: whom they select, how many replicas they have, what their pods look
//! like.
//!
//! Only what default topology spreads and CapacityBuffers need is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use scheduling::pod::{LabelSelector, PodKey, PodShape, SelectorOperator, ShapeTable};

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
}

/// A workload as the API has it.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Kind.
    pub kind: WorkloadKind,
    /// Namespace and name.
    pub key: PodKey,
    /// Generation of the object.
    pub generation: Option<i64>,
    /// Replicas asked for; one when nothing is said.
    pub replicas: i32,
    /// Whom it selects; the map of a ReplicationController in the form of one.
    pub selector: LabelSelector,
    /// Its pods.
    pub template: v1::PodTemplateSpec,
}

/// A workload as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) generation: Option<i64>,
    pub(crate) replicas: i32,
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
            _ => None,
        }
    }
}

impl Workload {
    fn new(kind: WorkloadKind, metadata: &ObjectMeta) -> Self {
        Self {
            kind,
            key: key_of(metadata),
            generation: metadata.generation,
            replicas: 1,
            selector: LabelSelector::default(),
            template: v1::PodTemplateSpec::default(),
        }
    }
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
        let spec = object.spec.unwrap_or_default();
        Self {
            replicas: spec.replicas.unwrap_or(1),
            selector: LabelSelector::parse(&spec.selector),
            template: spec.template.unwrap_or_default(),
            ..workload
        }
    }
}

impl From<apps::StatefulSet> for Workload {
    fn from(object: apps::StatefulSet) -> Self {
        let workload = Self::new(WorkloadKind::StatefulSet, &object.metadata);
        let spec = object.spec.unwrap_or_default();
        Self {
            replicas: spec.replicas.unwrap_or(1),
            selector: LabelSelector::parse(&spec.selector),
            template: spec.template,
            ..workload
        }
    }
}

impl From<v1::ReplicationController> for Workload {
    fn from(object: v1::ReplicationController) -> Self {
        let workload = Self::new(WorkloadKind::ReplicationController, &object.metadata);
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

impl Workloads {
    pub(crate) fn apply(&mut self, workload: &Workload, shapes: &mut ShapeTable) {
        let Workload {
            kind,
            key,
            generation,
            replicas,
            selector,
            template,
        } = workload;
        let shape = PodShape::parse_template(template, &key.namespace, &key.name);
        let kept = Kept {
            generation: *generation,
            replicas: *replicas,
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
