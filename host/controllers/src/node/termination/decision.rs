//! What is to be done next about a node that goes: decided by the node, its claim and what is still on it.
//!
//! Pure; `termination.rs` does it.

use std::sync::Arc;

use apis::conditions::{self, Conditioned, Status};
use apis::{NodeClaim, labels};
use disruption::drain::{DrainInput, DrainStep, drain_step};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use scheduling::pod::Pod;
use state::facts::NodeFacts;

use crate::node::taints::{has_taint, taints, with_taint};
use crate::node_claim::NodeClaimExt;

/// A node of ours that goes, and what is on it.
pub(super) struct Observed {
    /// What is written is made of the Node itself, which is asked for then: a drain is looked at every second.
    pub(super) node: Arc<NodeFacts>,
    pub(super) claim: Option<Arc<NodeClaim>>,
    pub(super) pods: Vec<Arc<Pod>>,
    /// VolumeAttachments that somebody may still wait for.
    pub(super) attachments: Vec<String>,
    /// Asked only of nodes that are not ready.
    pub(super) is_instance_gone: bool,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Step {
    /// The claim goes with the node.
    DeleteClaim,
    /// Keep new pods and load balancers away.
    Taint,
    /// Pods are still there, or the drain is too young to be trusted.
    Drain(DrainStep),
    /// Tell that the drain is over, and that no volume is waited for where that is so, too.
    Drained { are_volumes_done: bool },
    /// Volumes are still attached.
    AwaitVolumes,
    /// Tell how the wait for volumes ended.
    VolumesDone { in_time: bool },
    /// Take the instance away.
    TerminateInstance,
    /// Let the node go.
    Release,
}

pub(super) fn decide(observed: &Observed, now: Timestamp) -> Step {
    let Observed {
        node,
        claim,
        pods,
        attachments,
        is_instance_gone,
    } = observed;
    if claim
        .as_ref()
        .is_some_and(|claim| claim.metadata.deletion_timestamp.is_none())
    {
        return Step::DeleteClaim;
    }
    if *is_instance_gone {
        return Step::Release;
    }
    if !is_tainted(node) {
        return Step::Taint;
    }
    let deadline = claim
        .as_ref()
        .and_then(|claim| claim.termination_deadline());
    // A claim that does not say since when it drains has only begun; a node without claim has no such record.
    let draining_since = match claim {
        Some(claim) if claim.condition(conditions::DRAINED).is_none() => now,
        Some(claim) if claim.is_condition_true(conditions::DRAINED) => Timestamp::UNIX_EPOCH,
        Some(claim) => claim.condition_since(conditions::DRAINED),
        None => node.deleted_at.unwrap_or(now),
    };
    let drain = drain_step(&DrainInput {
        pods,
        deadline,
        draining_since,
        now,
    });
    if !drain.is_drained {
        return Step::Drain(drain);
    }
    let is_told = |condition: &str| {
        claim
            .as_ref()
            .is_none_or(|claim| claim.is_condition_true(condition))
    };
    if !is_told(conditions::DRAINED) {
        return Step::Drained {
            are_volumes_done: attachments.is_empty(),
        };
    }
    let is_late = deadline.is_some_and(|deadline| now > deadline);
    if !attachments.is_empty() && !is_late {
        return Step::AwaitVolumes;
    }
    let is_volume_result_told = claim.as_ref().is_none_or(|claim| {
        claim
            .condition(conditions::VOLUMES_DETACHED)
            .is_some_and(|told| told.status != Status::Unknown.as_str())
    });
    if is_volume_result_told {
        Step::TerminateInstance
    } else {
        Step::VolumesDone {
            in_time: attachments.is_empty(),
        }
    }
}

/// Deleted, held by our finalizer, and made from a class we know.
pub(super) fn is_ours(node: &NodeFacts) -> bool {
    node.deleted_at.is_some()
        && node.has_finalizer
        && node.labels.contains_key(labels::EC2_NODE_CLASS)
}

/// Whether the node has the taint and the label of those that go.
fn is_tainted(node: &NodeFacts) -> bool {
    let excludes = node.labels.get(labels::NODE_EXCLUDE_BALANCERS);
    has_taint(&node.taints, &labels::disrupted_taint())
        && excludes.is_some_and(|it| it == labels::EXCLUDE_BALANCERS_VALUE)
}

/// The node with the taint and the label of those that go.
pub(super) fn tainted(node: &Node) -> Node {
    let disrupted = labels::disrupted_taint();
    let mut after = if has_taint(taints(node), &disrupted) {
        node.clone()
    } else {
        with_taint(node, disrupted)
    };
    after.labels_mut().insert(
        labels::NODE_EXCLUDE_BALANCERS.to_owned(),
        labels::EXCLUDE_BALANCERS_VALUE.to_owned(),
    );
    after
}
