//! The events of NodeClaims. Answers to `pkg/controllers/nodeclaim/lifecycle/events.go` and its neighbours.

use apis::NodeClaim;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};

use crate::recorder::{EventType, Notice, RateClass, shorten};

const REBOOT_REPEAT: std::time::Duration = std::time::Duration::from_mins(30);

const ERROR_BYTES_MAX: usize = 1024;

fn reference(claim: &NodeClaim) -> ObjectReference {
    claim.object_ref(&())
}

pub(crate) fn insufficient_capacity(claim: &NodeClaim, error: &str) -> Notice {
    let message = format!(
        "NodeClaim {} event: {}",
        claim.name_any(),
        shorten(error, ERROR_BYTES_MAX)
    );
    Notice::new(
        reference(claim),
        EventType::Warning,
        "InsufficientCapacityError",
        message,
    )
}

/// What a ranking policy preferred cost more than its bound.
pub(crate) fn premium_exceeded(claim: &NodeClaim, why: &str) -> Notice {
    let message = format!("Ranking policy not followed in full, {why}");
    Notice::new(
        reference(claim),
        EventType::Warning,
        "PolicyPremiumExceeded",
        message,
    )
}

/// For the pods that the failed claim was made for.
pub(crate) fn insufficient_capacity_for_pod(
    pod: ObjectReference,
    claim: &str,
    error: &str,
) -> Notice {
    let message = format!(
        "NodeClaim {claim} event: {}",
        shorten(error, ERROR_BYTES_MAX)
    );
    Notice::new(
        pod,
        EventType::Warning,
        "InsufficientCapacityError",
        message,
    )
    .limited_by(RateClass::NoCapacity)
}

pub(crate) fn unregistered_taint_missing(claim: &NodeClaim) -> Notice {
    let message = "Missing karpenter.sh/unregistered taint which prevents registration related race \
                   conditions on Karpenter-managed nodes";
    Notice::new(
        reference(claim),
        EventType::Warning,
        "UnregisteredTaintMissing",
        message,
    )
}

pub(crate) fn grace_period_expiring(claim: &NodeClaim, deadline: &str) -> Notice {
    let message = format!("All pods will be deleted by {deadline}");
    Notice::new(
        reference(claim),
        EventType::Warning,
        "TerminationGracePeriodExpiring",
        message,
    )
}

pub(crate) fn failed_consistency_check(claim: &NodeClaim, message: &str) -> Notice {
    Notice::new(
        reference(claim),
        EventType::Warning,
        "FailedConsistencyCheck",
        message,
    )
    .distinct_by(message)
}

/// The node has booted anew.
pub(crate) fn reboot_observed(claim: &NodeClaim) -> Notice {
    let message = "Node rebooted";
    Notice::new(
        reference(claim),
        EventType::Normal,
        "RebootObserved",
        message,
    )
    .at_most_every(REBOOT_REPEAT)
}

pub(crate) fn reboot_failed(claim: &NodeClaim, why: &str) -> Notice {
    Notice::new(reference(claim), EventType::Warning, "RebootFailed", why)
        .distinct_by(why)
        .at_most_every(REBOOT_REPEAT)
}
