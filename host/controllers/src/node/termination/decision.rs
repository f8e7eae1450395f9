//! Decides the next step for a node that goes by the node, its claim and what is still on it.
//!
//! Pure; `termination.rs` does it.

use std::sync::Arc;

use apis::conditions::{self, Conditioned, Status, reason};
use apis::{NodeClaim, ProviderId, labels};
use disruption::drain::{Drain, DrainInput, DrainStep, drain_step};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use scheduling::pod::Pod;
use state::facts::NodeFacts;

use crate::node::taints::{has_taint, taints, with_taint};

/// A node of ours that goes, and what is on it.
pub(super) struct Observed {
    /// Facts of the Node. Writes are made of the Node itself, which is asked for then: a drain is looked at every
    /// second.
    pub(super) node: Arc<NodeFacts>,
    pub(super) claim: Option<Arc<NodeClaim>>,
    pub(super) pods: Vec<Arc<Pod>>,
    /// VolumeAttachments that somebody may still wait for.
    pub(super) attachments: Vec<String>,
    /// Asked only of nodes that are not ready.
    pub(super) is_instance_gone: bool,
}

/// Step to take next.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// The claim goes with the node.
    DeleteClaim(&'a NodeClaim),
    /// Keep new pods and load balancers away.
    Taint,
    /// Pods are still there, or the drain is too young to be trusted.
    Drain(DrainStep),
    /// Tell that the drain is over; volumes may still be attached.
    Drained(&'a NodeClaim),
    /// Tell that the drain is over, and note that no volume is attached.
    DrainedAndDetached(&'a NodeClaim),
    /// Volumes are still attached.
    AwaitVolumes(&'a [String]),
    /// Tell that the volumes that were waited for are detached.
    VolumesDetached,
    /// Note that no volume is attached: of volumes that were never there, nothing is to be told.
    VolumesAbsent,
    /// Tell that volumes are still attached, and are waited for no longer.
    VolumesLate(&'a [String]),
    /// Take the instance away.
    TerminateInstance(&'a ProviderId),
    /// Let the node go.
    Release,
}

pub(super) fn decide(observed: &Observed, now: Timestamp) -> Step<'_> {
    let Observed {
        node,
        claim,
        pods,
        attachments: _,
        is_instance_gone,
    } = observed;
    let claim = claim.as_deref();
    if let Some(claim) = claim.filter(|it| it.metadata.deletion_timestamp.is_none()) {
        return Step::DeleteClaim(claim);
    }
    if *is_instance_gone {
        return Step::Release;
    }
    if !is_tainted(node) {
        return Step::Taint;
    }
    let deadline = claim.and_then(NodeClaim::termination_deadline);
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
    match drain {
        Drain::Draining(step) => Step::Drain(step),
        Drain::Done => after_drain(observed, deadline, now),
    }
}

/// Step to take once no pod is waited for.
fn after_drain(observed: &Observed, deadline: Option<Timestamp>, now: Timestamp) -> Step<'_> {
    let (claim, attachments) = (observed.claim.as_deref(), &observed.attachments);
    if let Some(claim) = claim.filter(|it| !it.is_condition_true(conditions::DRAINED)) {
        return if attachments.is_empty() {
            Step::DrainedAndDetached(claim)
        } else {
            Step::Drained(claim)
        };
    }
    let is_late = deadline.is_some_and(|deadline| now > deadline);
    if !attachments.is_empty() && !is_late {
        return Step::AwaitVolumes(attachments);
    }
    if let Some(claim) = claim {
        let told = claim.condition(conditions::VOLUMES_DETACHED);
        let told = told.filter(|it| it.status != Status::Unknown.as_str());
        if told.is_none() {
            return volumes_done(claim, attachments);
        }
    }
    let provider_id = observed.node.provider_id.as_ref();
    provider_id.map_or(Step::Release, Step::TerminateInstance)
}

/// How the wait for volumes ended, of which these are still attached.
fn volumes_done<'a>(claim: &NodeClaim, attachments: &'a [String]) -> Step<'a> {
    let condition = claim.condition(conditions::VOLUMES_DETACHED);
    let has_awaited = condition.is_some_and(|it| it.reason == reason::AWAITING_VOLUME_DETACHMENT);
    if !attachments.is_empty() {
        Step::VolumesLate(attachments)
    } else if has_awaited {
        Step::VolumesDetached
    } else {
        Step::VolumesAbsent
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
