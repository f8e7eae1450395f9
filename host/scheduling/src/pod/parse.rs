//! From the API's pod to ours.
//!
//! Total over what the API server admits; the few things it cannot rule out become [`InvalidPod`].

mod terms;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;
use apis::names::DEFAULT_SCHEDULER;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::life::annotated_cost;
use super::requests::{is_sidecar, limits};
use super::{
    ClaimRef, DoNotDisrupt, HostPort, InvalidPod, Nomination, Owner, Pod, PodKey, PodPhase,
    PodShape, ShapeTable, Toleration, effective_requests,
};

use terms::{
    affinity_term, affinity_terms, node_term, preferred_node_terms, topology_spread, weighted_terms,
};

impl Pod {
    /// Parses a pod, sharing its shape through `shapes`.
    pub fn parse(pod: &core::Pod, shapes: &mut ShapeTable) -> Result<Self, InvalidPod> {
        let name = pod.metadata.name.clone().ok_or(InvalidPod::Unnamed)?;
        let namespace = pod
            .metadata
            .namespace
            .clone()
            .unwrap_or_else(|| "default".to_owned());
        let key = PodKey { namespace, name };
        let spec = pod
            .spec
            .as_ref()
            .ok_or_else(|| InvalidPod::NoSpec(key.clone()))?;
        let shape = shapes.intern(PodShape::parse(pod, spec, &key)?);
        Ok(Self {
            limits: shapes.intern_limits(limits(spec)),
            ..Self::with_shape(pod, spec, key, shape)
        })
    }

    fn with_shape(
        pod: &core::Pod,
        spec: &core::PodSpec,
        key: PodKey,
        shape: Arc<PodShape>,
    ) -> Self {
        let status = pod.status.as_ref();
        let condition = |kind: &str| {
            status
                .and_then(|s| s.conditions.as_ref())
                .and_then(|conditions| conditions.iter().find(|c| c.type_ == kind))
        };
        Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            created_at: pod.metadata.creation_timestamp.as_ref().map(|t| t.0),
            first_version: pod
                .metadata
                .resource_version
                .as_ref()
                .and_then(|it| it.parse().ok())
                .unwrap_or_default(),
            shape,
            limits: Arc::default(),
            volume_claims: volume_claims(spec, &key.name),
            resource_claims: resource_claims(spec, status),
            node_name: spec.node_name.clone().filter(|n| !n.is_empty()),
            nomination: nomination(pod),
            phase: status
                .and_then(|s| s.phase.as_deref())
                .map_or(PodPhase::Pending, parse_phase),
            deletion_timestamp: pod.metadata.deletion_timestamp.as_ref().map(|t| t.0),
            started_at: status.and_then(|s| s.start_time.as_ref()).map(|t| t.0),
            is_ready: condition("Ready").is_some_and(|c| c.status == "True"),
            awaits_node: condition("PodScheduled").is_some_and(|c| {
                c.status == "False" && c.reason.as_deref() == Some("Unschedulable")
            }),
            is_untried: condition("PodScheduled").is_none()
                && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty),
            has_own_scheduler: spec
                .scheduler_name
                .as_deref()
                .is_some_and(|name| !name.is_empty() && name != DEFAULT_SCHEDULER),
            key,
        }
    }
}

/// The field's manager tells whose word it is.
fn nomination(pod: &core::Pod) -> Option<Nomination> {
    let node = pod.status.as_ref()?.nominated_node_name.clone()?;
    let managers = pod.metadata.managed_fields.iter().flatten();
    let mut managers = managers.filter_map(|entry| entry.manager.as_deref());
    let is_of_plan = managers.any(|manager| manager == labels::NOMINATION_MANAGER);
    Some(Nomination { node, is_of_plan }).filter(|it| !it.node.is_empty())
}

impl PodShape {
    /// Parses the template of a DaemonSet or other workload as the shape of its pods.
    pub fn parse_template(
        template: &core::PodTemplateSpec,
        namespace: &str,
        name: &str,
    ) -> Result<Self, InvalidPod> {
        let key = PodKey::new(namespace, name);
        let spec = template
            .spec
            .as_ref()
            .ok_or_else(|| InvalidPod::NoSpec(key.clone()))?;
        let metadata = template.metadata.clone().unwrap_or_default();
        let pod = core::Pod {
            metadata,
            spec: None,
            status: None,
        };
        Self::parse(&pod, spec, &key)
    }

    fn parse(pod: &core::Pod, spec: &core::PodSpec, key: &PodKey) -> Result<Self, InvalidPod> {
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        let affinity = spec.affinity.clone().unwrap_or_default();
        let node_affinity = affinity.node_affinity.unwrap_or_default();
        let pod_affinity = affinity.pod_affinity.unwrap_or_default();
        let pod_anti_affinity = affinity.pod_anti_affinity.unwrap_or_default();
        let required_terms = node_affinity
            .required_during_scheduling_ignored_during_execution
            .map(|selector| selector.node_selector_terms)
            .unwrap_or_default();
        let term = |t: &core::PodAffinityTerm| affinity_term(t, &labels);
        let annotations = annotations(&pod.metadata);
        Ok(Self {
            namespace: key.namespace.clone(),
            requests: effective_requests(pod, spec, key)?,
            do_not_disrupt: DoNotDisrupt::of(&annotations),
            annotated_cost: annotated_cost(&annotations),
            annotations,
            node_selector: spec.node_selector.clone().unwrap_or_default(),
            has_match_fields: required_terms.iter().any(|t| t.match_fields.is_some()),
            required_node_affinity: required_terms
                .iter()
                .map(|t| node_term(t, key))
                .collect::<Result<_, _>>()?,
            preferred_node_affinity: preferred_node_terms(
                node_affinity
                    .preferred_during_scheduling_ignored_during_execution
                    .as_ref(),
                key,
            )?,
            pod_affinity: affinity_terms(
                pod_affinity
                    .required_during_scheduling_ignored_during_execution
                    .as_ref(),
                term,
            ),
            preferred_pod_affinity: weighted_terms(
                pod_affinity
                    .preferred_during_scheduling_ignored_during_execution
                    .as_ref(),
                term,
            ),
            pod_anti_affinity: affinity_terms(
                pod_anti_affinity
                    .required_during_scheduling_ignored_during_execution
                    .as_ref(),
                term,
            ),
            preferred_pod_anti_affinity: weighted_terms(
                pod_anti_affinity
                    .preferred_during_scheduling_ignored_during_execution
                    .as_ref(),
                term,
            ),
            topology_spread: spec
                .topology_spread_constraints
                .iter()
                .flatten()
                .map(|c| topology_spread(c, &labels))
                .collect(),
            tolerations: spec.tolerations.iter().flatten().map(toleration).collect(),
            host_ports: host_ports(spec),
            priority: spec.priority.unwrap_or(0),
            priority_class_name: spec.priority_class_name.clone(),
            owner: owner(&pod.metadata),
            termination_grace_period_seconds: spec.termination_grace_period_seconds,
            uses_resource_claims: uses_resource_claims(spec),
            labels,
        })
    }
}

fn parse_phase(phase: &str) -> PodPhase {
    match phase {
        "Running" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        "Unknown" => PodPhase::Unknown,
        _ => PodPhase::Pending,
    }
}

fn volume_claims(spec: &core::PodSpec, pod_name: &str) -> Vec<String> {
    spec.volumes
        .iter()
        .flatten()
        .filter_map(|volume| {
            let persistent = volume
                .persistent_volume_claim
                .as_ref()
                .map(|c| c.claim_name.clone());
            let ephemeral = volume
                .ephemeral
                .as_ref()
                .map(|_| format!("{pod_name}-{}", volume.name));
            persistent.or(ephemeral)
        })
        .collect()
}

/// An entry whose status names no claim has nothing to allocate.
fn resource_claims(spec: &core::PodSpec, status: Option<&core::PodStatus>) -> Vec<ClaimRef> {
    let made = || status.and_then(|it| it.resource_claim_statuses.as_deref());
    let claim = |entry: &core::PodResourceClaim| {
        if let Some(name) = &entry.resource_claim_name {
            return Some(ClaimRef::Named(name.clone()));
        }
        let mut made = made().into_iter().flatten();
        match made.find(|it| it.name == entry.name) {
            Some(made) => made.resource_claim_name.clone().map(ClaimRef::Named),
            None => Some(ClaimRef::Awaited(entry.name.clone())),
        }
    };
    let entries = spec.resource_claims.iter().flatten();
    entries.filter_map(claim).collect()
}

fn annotations(metadata: &meta::ObjectMeta) -> BTreeMap<String, String> {
    metadata
        .annotations
        .iter()
        .flatten()
        .filter(|(key, _)| labels::is_ours(key) || *key == labels::POD_DELETION_COST_ANNOTATION)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn toleration(toleration: &core::Toleration) -> Toleration {
    Toleration {
        key: toleration.key.clone().unwrap_or_default(),
        operator: toleration.operator.clone().unwrap_or_default(),
        value: toleration.value.clone().unwrap_or_default(),
        effect: toleration.effect.clone().unwrap_or_default(),
    }
}

/// Those of sidecars (init containers that run on) beside those of containers, as kube-scheduler counts them.
fn host_ports(spec: &core::PodSpec) -> Vec<HostPort> {
    let inits = spec.init_containers.iter().flatten();
    let sidecars = inits.filter(|it| is_sidecar(it));
    let mut ports: Vec<HostPort> = spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            Some(HostPort {
                port: port.host_port.filter(|p| *p != 0)?,
                ip: port
                    .host_ip
                    .clone()
                    .filter(|ip| !ip.is_empty())
                    .unwrap_or_else(|| "0.0.0.0".to_owned()),
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            })
        })
        .collect();
    ports.sort();
    ports
}

fn owner(metadata: &meta::ObjectMeta) -> Option<Owner> {
    let owners = metadata.owner_references.as_ref()?;
    let owner = owners
        .iter()
        .find(|o| o.controller == Some(true))
        .or_else(|| owners.first())?;
    Some(Owner {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
    })
}

fn uses_resource_claims(spec: &core::PodSpec) -> bool {
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    spec.resource_claims
        .as_ref()
        .is_some_and(|claims| !claims.is_empty())
        || containers
            .filter_map(|c| c.resources.as_ref())
            .any(|r| r.claims.as_ref().is_some_and(|claims| !claims.is_empty()))
}
