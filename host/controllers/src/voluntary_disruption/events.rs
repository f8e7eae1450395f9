//! The events of voluntary disruption. Answers to `pkg/controllers/disruption/events/events.go`.

use std::time::Duration;

use apis::NodeClaim;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

use crate::node::events::node_reference;
use crate::recorder::{EventType, Notice};

/// Reference to a claim of which only the name is at hand.
pub(super) fn claim_reference(name: &str) -> ObjectReference {
    karpenter_reference("NodeClaim", name)
}

fn karpenter_reference(kind: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("karpenter.sh/v1".to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

/// On the node, the claim, or both.
pub(super) fn blocked(node: Option<&str>, claim: Option<&str>, why: &str) -> Vec<Notice> {
    let regarding = node
        .map(node_reference)
        .into_iter()
        .chain(claim.map(claim_reference));
    regarding
        .map(|regarding| Notice::new(regarding, EventType::Normal, "DisruptionBlocked", why))
        .collect()
}

/// Too much of a pool is sick for anything of it to be repaired.
pub(crate) fn repair_blocked(node: &str, claim: &str, why: &str) -> [Notice; 2] {
    [node_reference(node), claim_reference(claim)].map(|regarding| {
        Notice::new(regarding, EventType::Warning, "NodeRepairBlocked", why)
            .at_most_every(Duration::from_mins(15))
    })
}

pub(super) fn pool_blocked(pool: &str, reason: &str) -> Notice {
    let message =
        format!("No allowed disruptions for disruption reason {reason} due to blocking budget");
    let regarding = karpenter_reference("NodePool", pool);
    Notice::new(regarding, EventType::Normal, "DisruptionBlocked", message)
        .distinct_by(reason)
        .at_most_every(Duration::from_mins(1))
}

pub(super) fn unconsolidatable(node: &str, claim: &str, why: &str) -> [Notice; 2] {
    [node_reference(node), claim_reference(claim)].map(|regarding| {
        Notice::new(regarding, EventType::Normal, "Unconsolidatable", why)
            .at_most_every(Duration::from_mins(15))
    })
}

pub(super) fn candidate(node: &str, claim: &str, command: &str) -> [Notice; 2] {
    [node_reference(node), claim_reference(claim)].map(|regarding| {
        Notice::new(
            regarding,
            EventType::Normal,
            "ConsolidationCandidate",
            command,
        )
        .distinct_by(command)
    })
}

pub(super) fn rejected(node: &str, claim: &str, command: &str, class: &str) -> [Notice; 2] {
    let message = format!("{command} was rejected: {class}");
    [node_reference(node), claim_reference(claim)].map(|regarding| {
        Notice::new(
            regarding,
            EventType::Normal,
            "ConsolidationRejected",
            message.clone(),
        )
        .distinct_by(&message)
    })
}

pub(super) fn terminating(node: &str, claim: &str, reason: &str) -> [Notice; 2] {
    [
        ("Node", node_reference(node)),
        ("NodeClaim", claim_reference(claim)),
    ]
    .map(|(kind, regarding)| {
        let message = format!("Disrupting {kind}: {reason}");
        Notice::new(
            regarding,
            EventType::Normal,
            "DisruptionTerminating",
            message,
        )
        .distinct_by(reason)
    })
}

pub(super) fn launching(claim: &NodeClaim, reason: &str) -> Notice {
    let message = format!("Launching NodeClaim: {reason}");
    Notice::new(
        claim.object_ref(&()),
        EventType::Normal,
        "DisruptionLaunching",
        message,
    )
    .distinct_by(reason)
}

pub(super) fn waiting_readiness(claim: &NodeClaim) -> Notice {
    let message = "Waiting on readiness to continue disruption";
    Notice::new(
        claim.object_ref(&()),
        EventType::Normal,
        "DisruptionWaitingReadiness",
        message,
    )
}
