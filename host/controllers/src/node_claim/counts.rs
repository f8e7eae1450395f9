//! Counts of metrics for claims that go.
//!
//! Answers to the counters of `pkg/metrics/metrics.go`.

use apis::{GoDuration, NodeClaim, labels};

use super::termination_mode;
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{
    CapacityTypeLabel, ConditionLabel, ConsolidationPolicyLabel, ImageIdLabel, NodePoolLabel,
    ReasonLabel, Series, TerminationModeLabel, ZoneLabel, snake_case,
};

/// Counts a claim that is deleted for a reason other than a person's wish; a consolidation names its pool's policy.
pub(crate) fn count_disrupted(
    metrics: &Metrics,
    claim: &NodeClaim,
    reason: &str,
    policy: Option<&str>,
) {
    let series = Series((
        ReasonLabel(reason.to_owned()),
        nodepool(claim),
        capacity_type(claim),
        ConsolidationPolicyLabel(policy.unwrap_or_default().to_owned()),
        TerminationModeLabel(termination_mode(claim)),
    ));
    metrics.node_claims_disrupted.get_or_create(&series).inc();
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
    let series = Series((
        ConditionLabel(snake_case(condition)),
        nodepool(claim),
        capacity_type(claim),
        ImageIdLabel(image.unwrap_or_default()),
        TerminationModeLabel(mode_within(bound, claim)),
    ));
    metrics
        .node_claims_unhealthy_disrupted
        .get_or_create(&series)
        .inc();
}

/// Label of the claim's NodePool.
pub(super) fn nodepool(claim: &NodeClaim) -> NodePoolLabel {
    NodePoolLabel(claim.pool_name().unwrap_or_default().to_owned())
}

/// Label of the claim's capacity type.
pub(crate) fn capacity_type(claim: &NodeClaim) -> CapacityTypeLabel {
    let capacity_type = claim.label(labels::CAPACITY_TYPE);
    CapacityTypeLabel(capacity_type.unwrap_or_default().to_owned())
}

fn mode_within(bound: Option<GoDuration>, claim: &NodeClaim) -> &'static str {
    match bound {
        None => termination_mode(claim),
        Some(bound) if bound > GoDuration::ZERO => "eventual",
        Some(_) => "forceful",
    }
}

/// Label of the claim's zone.
pub(super) fn zone(claim: &NodeClaim) -> ZoneLabel {
    let zone = claim.label(labels::TOPOLOGY_ZONE);
    ZoneLabel(zone.unwrap_or_default().to_owned())
}
