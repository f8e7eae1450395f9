//! The events of voluntary disruption. Answers to `pkg/controllers/disruption/events/events.go`.

use std::time::Duration;

use apis::NodeClaim;
use disruption::candidate::Blocked;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use state::Snapshot;
use state::ledger::NodeOutcome;

use crate::recorder::{EventType, Notice};
use crate::references;

/// On the node, the claim, or both. Another cause is news however lately the last one was told.
pub(super) fn blocked(snapshot: &Snapshot, blocked: &Blocked, why: &str) -> Vec<Notice> {
    let node = blocked.node.as_deref();
    let node = node.map(|it| references::node(snapshot, it));
    let claim = blocked.claim.as_deref();
    let claim = claim.map(|it| references::node_claim(snapshot, it));
    let regarding = node.into_iter().chain(claim);
    regarding
        .map(|regarding| {
            Notice::new(regarding, EventType::Normal, "DisruptionBlocked", why)
                .distinct_by(blocked.outcome.name())
                .distinct_by(&blocked.about)
        })
        .collect()
}

/// Too much of a pool is sick for anything of it to be repaired.
pub(crate) fn repair_blocked(
    snapshot: &Snapshot,
    (node, claim): (&str, &str),
    why: &str,
) -> [Notice; 2] {
    references::node_and_claim(snapshot, node, claim).map(|regarding| {
        Notice::new(regarding, EventType::Warning, "NodeRepairBlocked", why)
            .at_most_every(Duration::from_mins(15))
    })
}

pub(super) fn pool_blocked(snapshot: &Snapshot, pool: &str, reason: &str) -> Notice {
    let message =
        format!("No allowed disruptions for disruption reason {reason} due to blocking budget");
    let regarding = references::node_pool(snapshot, pool);
    Notice::new(regarding, EventType::Normal, "DisruptionBlocked", message)
        .distinct_by(reason)
        .at_most_every(Duration::from_mins(1))
}

/// Prices in the text change all the time, so that only the outcome makes it another event.
pub(super) fn unconsolidatable(
    regarding: [ObjectReference; 2],
    outcome: &NodeOutcome,
) -> [Notice; 2] {
    let why = match outcome.reason.as_str() {
        "" => outcome.outcome.meaning().to_owned(),
        reason => format!("{} ({reason})", outcome.outcome.meaning()),
    };
    regarding.map(|regarding| {
        let why = why.clone();
        Notice::new(regarding, EventType::Normal, "Unconsolidatable", why)
            .distinct_by(outcome.outcome.name())
            .at_most_every(Duration::from_mins(15))
    })
}

pub(super) fn candidate(regarding: [ObjectReference; 2], command: &str) -> [Notice; 2] {
    regarding.map(|regarding| {
        Notice::new(
            regarding,
            EventType::Normal,
            "ConsolidationCandidate",
            command,
        )
        .distinct_by(command)
    })
}

pub(super) fn rejected(regarding: [ObjectReference; 2], command: &str, class: &str) -> [Notice; 2] {
    let message = format!("{command} was rejected: {class}");
    regarding.map(|regarding| {
        Notice::new(
            regarding,
            EventType::Normal,
            "ConsolidationRejected",
            message.clone(),
        )
        .distinct_by(&message)
    })
}

pub(super) fn terminating(regarding: [ObjectReference; 2], reason: &str) -> [Notice; 2] {
    regarding.map(|regarding| {
        let kind = regarding.kind.as_deref().unwrap_or_default();
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
