//! Counts of metrics for claims that go.
//!
//! Answers to the counters of `pkg/metrics/metrics.go`.

use apis::{GoDuration, NodeClaim, labels};

use super::termination_mode;
use crate::shell::metrics::{Metrics, snake_case};

/// Counts a claim that is deleted for a reason other than a person's wish; a consolidation names its pool's policy.
pub(crate) fn count_disrupted(
    metrics: &Metrics,
    claim: &NodeClaim,
    reason: &str,
    policy: Option<&str>,
) {
    let labels = vec![
        ("reason", reason.to_owned()),
        nodepool(claim),
        capacity_type(claim),
        (
            "consolidation_policy",
            policy.unwrap_or_default().to_owned(),
        ),
        ("termination_mode", termination_mode(claim).to_owned()),
    ];
    metrics.node_claims_disrupted.get_or_create(&labels).inc();
}

/// Counts a claim whose node is sick by this condition, which bounds the drain or leaves that to the claim.
pub(crate) fn count_unhealthy_disrupted(
    metrics: &Metrics,
    claim: &NodeClaim,
    condition: &str,
    bound: Option<GoDuration>,
) {
    let status = claim.status.as_ref();
    let image = status.and_then(|it| it.image_id.clone());
    let labels = vec![
        ("condition", snake_case(condition)),
        nodepool(claim),
        capacity_type(claim),
        ("image_id", image.unwrap_or_default()),
        ("termination_mode", mode_within(bound, claim).to_owned()),
    ];
    metrics
        .node_claims_unhealthy_disrupted
        .get_or_create(&labels)
        .inc();
}

/// Label of the claim's NodePool.
pub(super) fn nodepool(claim: &NodeClaim) -> (&'static str, String) {
    ("nodepool", claim.pool_name().unwrap_or_default().to_owned())
}

/// Label of the claim's capacity type.
pub(crate) fn capacity_type(claim: &NodeClaim) -> (&'static str, String) {
    let capacity_type = claim.label(labels::CAPACITY_TYPE);
    (
        "capacity_type",
        capacity_type.unwrap_or_default().to_owned(),
    )
}

fn mode_within(bound: Option<GoDuration>, claim: &NodeClaim) -> &'static str {
    match bound {
        None => termination_mode(claim),
        Some(bound) if bound > GoDuration::ZERO => "eventual",
        Some(_) => "forceful",
    }
}

/// Label of the claim's zone.
pub(super) fn zone(claim: &NodeClaim) -> (&'static str, String) {
    let zone = claim.label(labels::TOPOLOGY_ZONE);
    ("zone", zone.unwrap_or_default().to_owned())
}
