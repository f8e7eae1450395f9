//! Pods that need a place: pending ones that may be considered, and those of nodes that are going.
//!
//! Says of a pending pod that may not be considered why not; where any pod goes is not decided here.

use std::sync::Arc;

use apis::labels;
use jiff::Timestamp;
use scheduling::pod::{Pod, PodKey};
use scheduling::requirements::Operator;
use state::volumes::VolumeError;
use state::{Snapshot, StateNode};

/// Why a pending pod is not considered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredReason {
    /// It asks for nodes outside every pool; no event.
    #[error("pod requires nodes without a nodepool")]
    OptsOut,
    /// Its node affinity matches fields.
    #[error("node selector term with matchFields is not supported")]
    MatchFields,
    /// A label of its selector or affinity is one that nobody may ask for.
    #[error("label {0} is restricted")]
    RestrictedLabel(String),
    /// One of its volumes cannot be used.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

/// Pods that wait for capacity.
pub(super) struct PendingPods {
    /// Those that pass validation.
    pub(super) pods: Vec<Arc<Pod>>,
    /// Those that cannot be considered.
    pub(super) ignored: Vec<(PodKey, IgnoredReason)>,
}

/// Pending pods that pass validation, and those that do not.
pub(super) fn pending_pods(snapshot: &Snapshot) -> PendingPods {
    let mut pods = Vec::new();
    let mut ignored = Vec::new();
    for pod in snapshot.pods().filter(|pod| pod.is_provisionable()) {
        match validate(snapshot, pod) {
            Ok(()) => pods.push(Arc::clone(pod)),
            Err(reason) => ignored.push((pod.key.clone(), reason)),
        }
    }
    PendingPods { pods, ignored }
}

/// Whether a pod runs on a node that a command has marked and not deleted yet. What comes in the place of such a node
/// is the command's to bring: were it lost, the command would give up and the node would stay.
pub fn awaits_command(snapshot: &Snapshot, pod: &PodKey) -> bool {
    let node_name = snapshot.pod(pod).and_then(|it| it.node_name.as_deref());
    let node = node_name.and_then(|name| snapshot.node(name));
    node.is_some_and(|it| it.is_marked_for_deletion() && !it.is_deleted())
}

/// Pods of a node that would move if it went now: protected ones and those whose PodDisruptionBudget
/// can never allow it stay until they end by themselves.
pub fn currently_reschedulable(
    snapshot: &Snapshot,
    node: &StateNode,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    snapshot
        .bound(node)
        .pods()
        .filter(|pod| pod.is_reschedulable() && !pod.is_protected(now))
        .filter(|pod| !(pod.is_evictable(now) && snapshot.pdbs().can_never_evict(pod)))
        .cloned()
        .collect()
}

/// Pods of nodes that are going which could really move now.
pub(super) fn moving_pods(snapshot: &Snapshot, now: Timestamp) -> Vec<Arc<Pod>> {
    snapshot
        .nodes()
        .filter(|node| node.is_marked_for_deletion())
        .flat_map(|node| currently_reschedulable(snapshot, node, now))
        .collect()
}

pub(super) fn validate(snapshot: &Snapshot, pod: &Pod) -> Result<(), IgnoredReason> {
    let required = || pod.shape.required_node_affinity.iter().flatten();
    let opts_out = required()
        .any(|it| it.key() == labels::NODEPOOL && it.operator() == Operator::DoesNotExist);
    if opts_out {
        return Err(IgnoredReason::OptsOut);
    }
    if pod.shape.has_match_fields {
        return Err(IgnoredReason::MatchFields);
    }
    let selected = pod.shape.node_selector.keys().map(String::as_str);
    for key in selected.chain(required().map(scheduling::requirements::Requirement::key)) {
        // The host name is a pod's right to ask for, a pool's not to define.
        if key != labels::HOSTNAME && is_beyond_request(key) {
            return Err(IgnoredReason::RestrictedLabel(key.to_owned()));
        }
    }
    snapshot.volumes().validate(pod)?;
    Ok(())
}

/// Labels that stand on nodes though no requirement may name them are still fine for a pod.
fn is_beyond_request(key: &str) -> bool {
    labels::is_restricted(key) && !matches!(key, labels::REGISTERED | labels::INITIALIZED)
}
