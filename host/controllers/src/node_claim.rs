//! The controllers of NodeClaims.
//!
//! What several of them ask of a claim stands here; each concept has its own file. Answers to
//! `pkg/controllers/nodeclaim`.

pub(crate) mod consistency;
pub(crate) mod counts;
pub(crate) mod creation;
pub(crate) mod disruption;
pub(crate) mod entries;
pub(crate) mod expiration;
pub(crate) mod garbage_collection;
pub(crate) mod hashes;
pub(crate) mod hydration;
pub(crate) mod launch_record;
pub(crate) mod lifecycle;
pub(crate) mod pod_events;
pub(crate) mod pods_of_claims;
pub(crate) mod reboot;
pub(crate) mod tagging;

use std::time::Duration;

use apis::conditions::{self, Conditioned, Status};
use apis::{GoDuration, NodeClaim, ProviderId};
use cloudprovider::{CloudProvider, CloudProviderError, InstanceLife};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

/// Time after which the claim reports what keeps a node from opening or from being initialized: most causes are
/// soon over, and each report is a write.
const REPORTED_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// How far the life of an instance has got, where the cloud knows it.
pub(crate) async fn instance_life(
    provider: &dyn CloudProvider,
    id: &ProviderId,
) -> Result<Option<InstanceLife>, CloudProviderError> {
    match provider.get(id).await {
        Ok(found) => Ok(Some(found.life)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The claim's UID, or the empty string.
fn uid(claim: &NodeClaim) -> String {
    claim.uid().unwrap_or_default()
}

/// Time left of `limit` since `since`; zero once it is over.
pub(crate) fn remaining(since: Timestamp, limit: Duration, now: Timestamp) -> Duration {
    let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    limit.saturating_sub(elapsed)
}

/// The claim with the time by which its node must be gone if its drain may take so long from now on: never later than
/// somebody said already.
pub(crate) fn with_drain_within(claim: &NodeClaim, bound: GoDuration, now: Timestamp) -> NodeClaim {
    let at = now.checked_add(bound.to_signed_duration());
    let at = at.unwrap_or(Timestamp::MAX);
    let deadline = claim.termination_deadline().map_or(at, |it| it.min(at));
    claim.with_termination_deadline(deadline)
}

/// How hard the end of the claim will be.
pub(crate) fn termination_mode(claim: &NodeClaim) -> &'static str {
    match claim.spec.termination_grace_period {
        None => "graceful",
        Some(period) if period > GoDuration::ZERO => "eventual",
        Some(_) => "forceful",
    }
}

/// The disruption reason of a claim in a running command, or the words for everything else.
pub(crate) fn drain_reason(claim: Option<&NodeClaim>) -> String {
    claim
        .and_then(|claim| {
            let condition_type = conditions::DISRUPTION_REASON;
            conditions::with_status(claim.conditions(), condition_type, Status::True)
        })
        .map_or_else(
            || "Forceful Termination".to_owned(),
            |condition| condition.reason.clone(),
        )
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test_objects::with_values;

    /// A claim on its way out, held by our finalizer, with an instance; and what else is said of it, by JSON pointer.
    pub(crate) fn claim_with(extra: &Value) -> NodeClaim {
        let object = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["karpenter.sh/termination"]},
            "spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
            "status": {"providerID": "aws:///a/i-1"},
        });
        serde_json::from_value(with_values(object, extra)).unwrap()
    }

    /// A condition that got its status at a time of 2026-01-01, such as `00:30`.
    pub(crate) fn condition(of: &str, status: &str, at: &str) -> Value {
        json!({
            "type": of, "status": status, "reason": of, "message": "",
            "lastTransitionTime": format!("2026-01-01T{at}:00Z"),
        })
    }

    /// The name of a step, without what it holds.
    pub(crate) fn name_of(step: &impl std::fmt::Debug) -> String {
        let shown = format!("{step:?}");
        shown
            .split([' ', '('])
            .next()
            .unwrap_or_default()
            .to_owned()
    }
}
