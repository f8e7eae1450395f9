//! Each kind of workload as its API object has it: how many pods it asks for, and whether it makes up for those that it
//! lacks by itself.

use apis::ObjectKey;
use apis::names::DEFAULT_SCHEDULER;
use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use scheduling::pod::{LabelSelector, SelectorOperator};

use super::{Workload, WorkloadKind};

/// Condition of a set whose pods are refused, by a quota or by admission.
const REPLICA_FAILURE: &str = "ReplicaFailure";
/// Conditions of a Job that starts no more pods.
const ENDED: [&str; 4] = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];

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
        let fails = has_replica_failure(conditions.map(|it| (&*it.type_, &*it.status)));
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
        let fails = has_replica_failure(conditions.map(|it| (&*it.type_, &*it.status)));
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

impl Workload {
    fn new(kind: WorkloadKind, metadata: &ObjectMeta) -> Self {
        Self {
            kind,
            key: ObjectKey::of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation,
            replicas: 1,
            creates_pods: false,
            is_retired: false,
            selector: LabelSelector::default(),
            template: v1::PodTemplateSpec::default(),
        }
    }

    /// The workload as one whose controller makes up for pods it lacks, unless something keeps it from that.
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

/// Whether pods of a set are refused, of conditions as type and status.
fn has_replica_failure<'a>(conditions: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
    is_any_true(conditions, &[REPLICA_FAILURE])
}

/// Whether the pods can be foreseen from their template: the scheduler takes them as they come, and they ask for no
/// volumes or devices that are made for each of them.
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
