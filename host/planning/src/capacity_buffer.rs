//! CapacityBuffers: how many pods of which template room is kept for, and those pods.
//!
//! The pods are virtual: they take part in every solve as if they were pending, and the API server never sees them.
//! Answers to Karpenter's `pkg/controllers/capacitybuffer` and its virtual pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::capacitybuffer::{ACTIVE_CAPACITY, CapacityBufferSpec, LocalObjectRef, ScalableRef};
use apis::conditions::{Status, reason};
use apis::resources::Resources;
use apis::{CapacityBuffer, NodeRef, ObjectKey, labels};
use scheduling::Solution;
use scheduling::pod::{InvalidPod, Pod, PodKey, PodShape};
use state::Snapshot;
use state::workloads::{KeptWorkload, WorkloadKind};

/// More pods than this are not made of one buffer; its status says how many there are.
const REPLICAS_MAX: i32 = 10_000;

/// Pods that a buffer keeps room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedBuffer {
    /// The shape of the pods.
    pub shape: Arc<PodShape>,
    /// The template, when it is one by name, with its generation.
    pub template: Option<(LocalObjectRef, Option<i64>)>,
    /// Number of pods that room is kept for.
    pub replicas: i32,
}

/// Why a buffer comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// The template does not exist.
    #[error("podtemplate \"{0}\" not found")]
    PodTemplateNotFound(String),
    /// The workload does not exist.
    #[error("{kind} \"{name}\" not found")]
    ScalableRefNotFound { kind: String, name: String },
    /// The workload is of a kind without replicas.
    #[error("scalableRef of kind \"{kind}\" in group \"{group}\" is not supported")]
    Kind { kind: String, group: String },
    /// The buffer names neither.
    #[error("neither podTemplateRef nor scalableRef is set")]
    Nothing,
    /// The template's pods cannot be read.
    #[error(transparent)]
    Template(#[from] InvalidPod),
}

impl Unresolved {
    /// The reason for the buffer's condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::PodTemplateNotFound(_) => reason::POD_TEMPLATE_NOT_FOUND,
            Self::ScalableRefNotFound { .. } => reason::SCALABLE_REF_NOT_FOUND,
            Self::Kind { .. } | Self::Nothing | Self::Template(_) => reason::RESOLUTION_FAILED,
        }
    }
}

/// Whether the room for a buffer is there, after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferHeadroom {
    /// The buffer is not understood.
    NotReady,
    /// It asks for nothing.
    Empty,
    /// Some of it needs new nodes.
    NeedsCapacity,
    /// All of it is on nodes that exist.
    Fits,
}

impl BufferHeadroom {
    /// Status and reason of the buffer's condition `Provisioning`.
    pub fn status_and_reason(self) -> (Status, &'static str) {
        match self {
            Self::NotReady => (Status::False, reason::NOT_READY_FOR_PROVISIONING),
            Self::Empty => (Status::False, reason::BUFFER_EMPTY),
            Self::NeedsCapacity => (Status::False, reason::REQUIRES_NEW_CAPACITY),
            Self::Fits => (Status::True, reason::FITS_EXISTING_CAPACITY),
        }
    }
}

/// Whether the buffer follows the one strategy that is understood; others are somebody else's.
pub fn is_ours(buffer: &CapacityBuffer) -> bool {
    let strategy = &buffer.spec.provisioning_strategy;
    (strategy.is_empty() || strategy == ACTIVE_CAPACITY)
        && buffer.metadata.deletion_timestamp.is_none()
}

/// Finds out what a buffer comes to.
pub fn resolve(snapshot: &Snapshot, buffer: &CapacityBuffer) -> Result<ResolvedBuffer, Unresolved> {
    let CapacityBufferSpec {
        provisioning_strategy: _,
        pod_template_ref,
        scalable_ref,
        replicas,
        percentage,
        limits,
    } = &buffer.spec;
    let namespace = buffer.metadata.namespace.as_deref().unwrap_or_default();
    let (kept, template, share) = match (pod_template_ref, scalable_ref) {
        (Some(named), _) => {
            let key = ObjectKey::new(namespace, &named.name);
            let kept = snapshot.workloads().find(WorkloadKind::PodTemplate, &key);
            let kept = kept.ok_or_else(|| Unresolved::PodTemplateNotFound(named.name.clone()))?;
            (kept, Some((named.clone(), kept.generation)), None)
        }
        (None, Some(named)) => {
            let kept = scalable(snapshot, namespace, named)?;
            let share = percentage.map(|share| share_of(kept.replicas, share));
            (kept, None, share.filter(|_| kept.replicas > 0))
        }
        (None, None) => return Err(Unresolved::Nothing),
    };
    let shape = kept.shape.clone()?;
    let wanted = (*replicas).max(share);
    let limits = limits.as_ref().map(Resources::from_list);
    let most = limits.and_then(|limits| times_within(&limits, &shape.requests));
    let replicas = match (wanted, most) {
        (Some(wanted), Some(most)) => wanted.min(most),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => 0,
    };
    Ok(ResolvedBuffer {
        shape,
        template,
        replicas: replicas.clamp(0, REPLICAS_MAX),
    })
}

fn scalable<'a>(
    snapshot: &'a Snapshot,
    namespace: &str,
    named: &ScalableRef,
) -> Result<&'a Arc<KeptWorkload>, Unresolved> {
    let ScalableRef {
        api_group,
        kind,
        name,
    } = named;
    let group = api_group.as_deref().unwrap_or_default();
    let known = match (group, kind.as_str()) {
        ("" | "apps", "Deployment") => WorkloadKind::Deployment,
        ("" | "apps", "StatefulSet") => WorkloadKind::StatefulSet,
        ("" | "apps", "ReplicaSet") => WorkloadKind::ReplicaSet,
        _ => {
            return Err(Unresolved::Kind {
                kind: kind.clone(),
                group: group.to_owned(),
            });
        }
    };
    let found = snapshot
        .workloads()
        .find(known, &ObjectKey::new(namespace, name));
    found.ok_or_else(|| Unresolved::ScalableRefNotFound {
        kind: kind.to_lowercase(),
        name: name.clone(),
    })
}

/// A share of replicas, rounded up; a positive share of something is never nothing.
fn share_of(replicas: i32, percentage: i32) -> i32 {
    let hundredths = i64::from(replicas.max(0)) * i64::from(percentage.max(0));
    i32::try_from((hundredths + 99) / 100).unwrap_or(i32::MAX)
}

/// How many times the requests go into limits on the same resources; `None` when they share none.
fn times_within(limits: &Resources, requests: &Resources) -> Option<i32> {
    let times = limits.iter().filter_map(|(name, limit)| {
        let request = requests.get(name);
        (request > 0).then(|| limit.max(0) / request)
    });
    times.min().map(|it| i32::try_from(it).unwrap_or(i32::MAX))
}

/// The pods of all buffers, in order of buffer and number.
pub fn virtual_pods(snapshot: &Snapshot) -> Vec<Arc<Pod>> {
    let mut pods = Vec::new();
    for buffer in snapshot.capacity_buffers().filter(|it| is_ours(it)) {
        if let Ok(resolved) = resolve(snapshot, buffer) {
            let shape = virtual_shape(buffer, &resolved.shape);
            let numbers = 1..=resolved.replicas;
            pods.extend(numbers.map(|number| Arc::new(virtual_pod(buffer, number, &shape))));
        }
    }
    pods
}

/// Room that a pass found for each buffer.
pub fn headrooms(snapshot: &Snapshot, solution: &Solution) -> BTreeMap<ObjectKey, BufferHeadroom> {
    let node_of = nodes_of_pods(solution);
    let ours = snapshot.capacity_buffers().filter(|it| is_ours(it));
    let headrooms = ours.map(|buffer| {
        let headroom = match resolve(snapshot, buffer) {
            Err(_) => BufferHeadroom::NotReady,
            Ok(resolved) if resolved.replicas == 0 => BufferHeadroom::Empty,
            Ok(resolved) => {
                let mut pods = virtual_keys(buffer, resolved.replicas);
                if pods.all(|pod| node_of.contains_key(&pod)) {
                    BufferHeadroom::Fits
                } else {
                    BufferHeadroom::NeedsCapacity
                }
            }
        };
        (ObjectKey::of(&buffer.metadata), headroom)
    });
    headrooms.collect()
}

/// The existing nodes on which a pass placed pods of buffers.
pub fn nodes(snapshot: &Snapshot, solution: &Solution) -> BTreeSet<NodeRef> {
    let node_of = nodes_of_pods(solution);
    let ours = snapshot.capacity_buffers().filter(|it| is_ours(it));
    let pods = ours.flat_map(|buffer| {
        let replicas = resolve(snapshot, buffer).map_or(0, |it| it.replicas);
        virtual_keys(buffer, replicas)
    });
    let nodes = pods.filter_map(|pod| node_of.get(&pod).copied().cloned());
    nodes.collect()
}

fn nodes_of_pods(solution: &Solution) -> BTreeMap<&PodKey, &NodeRef> {
    let nodes = solution.existing.iter();
    let pods = nodes.flat_map(|it| it.pods.iter().map(|pod| (pod, &it.node)));
    pods.collect()
}

fn virtual_keys(buffer: &CapacityBuffer, replicas: i32) -> impl Iterator<Item = PodKey> {
    (1..=replicas).map(|number| virtual_key(buffer, number))
}

fn virtual_shape(buffer: &CapacityBuffer, shape: &PodShape) -> Arc<PodShape> {
    let key = ObjectKey::of(&buffer.metadata);
    let mut shape = shape.clone();
    for (annotation, value) in [
        (labels::CAPACITY_BUFFER_FAKE_POD_ANNOTATION, "true"),
        (labels::CAPACITY_BUFFER_NAME_ANNOTATION, &key.name),
        (labels::CAPACITY_BUFFER_NAMESPACE_ANNOTATION, &key.namespace),
    ] {
        shape
            .annotations
            .insert(annotation.to_owned(), value.to_owned());
    }
    shape.priority = i32::MIN;
    shape.owner = None;
    Arc::new(shape)
}

/// No name of a real pod holds a space, so that a StatefulSet of the buffer's name makes none of these. Nor do they
/// hold the mark of pods about to be created: nobody waits for the room of a buffer.
fn virtual_key(buffer: &CapacityBuffer, number: i32) -> PodKey {
    let key = ObjectKey::of(&buffer.metadata);
    PodKey {
        name: format!("capacity-buffer-{} ({number})", key.name),
        namespace: key.namespace,
    }
}

fn virtual_pod(buffer: &CapacityBuffer, number: i32, shape: &Arc<PodShape>) -> Pod {
    let uid = buffer.metadata.uid.as_deref().unwrap_or_default();
    let key = virtual_key(buffer, number);
    Pod::unknown(key, format!("{uid}-{number}"), Arc::clone(shape))
}
