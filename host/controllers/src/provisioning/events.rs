//! The events of provisioning. Answers to `pkg/controllers/provisioning/scheduling/events.go`.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use scheduling::pod::Pod;

use crate::recorder::{EventType, Notice, RateClass};
use crate::references;

pub(crate) fn nominated(pod: &Pod, claim: Option<&str>, node: Option<&str>) -> Notice {
    let claim = claim.map(|name| format!("nodeclaim/{name}"));
    let node = node.map(|name| format!("node/{name}"));
    let target = [claim, node]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ");
    let message = format!("Pod should schedule on: {target}");
    let regarding = references::pod(&pod.key, &pod.uid);
    Notice::new(regarding, EventType::Normal, "Nominated", message)
        .limited_by(RateClass::Nomination)
}

pub(crate) fn failed_scheduling(pod: &Pod, why: &str) -> Notice {
    let message = format!("Failed to schedule pod, {why}");
    let regarding = references::pod(&pod.key, &pod.uid);
    Notice::new(regarding, EventType::Warning, "FailedScheduling", message)
        .at_most_every(Duration::from_mins(5))
}

/// A plan of a ranking policy that was not used.
pub(crate) fn premium_exceeded(regarding: ObjectReference, why: &str) -> Notice {
    let message = format!("Ranking policy not followed, {why}");
    Notice::new(
        regarding,
        EventType::Warning,
        "PolicyPremiumExceeded",
        message,
    )
    .at_most_every(Duration::from_mins(5))
}
