//! The controllers of NodeClaims.
//!
//! What several of them ask of a claim stands here; each concept has its own file. Answers to
//! `pkg/controllers/nodeclaim`.

pub(crate) mod consistency;
pub(crate) mod counts;
pub(crate) mod creation;
pub(crate) mod disruption;
pub(crate) mod drift;
pub(crate) mod entries;
pub(crate) mod expiration;
pub(crate) mod finalize;
pub(crate) mod garbage_collection;
pub(crate) mod hashes;
pub(crate) mod hydration;
pub(crate) mod initialization;
mod joining;
pub(crate) mod launch;
pub(crate) mod launch_record;
pub(crate) mod lifecycle;
pub(crate) mod liveness;
pub(crate) mod milestones;
pub(crate) mod pod_events;
pub(crate) mod pods_of_claims;
pub(crate) mod reboot;
pub(crate) mod registration;
pub(crate) mod tagging;

use std::time::Duration;

use apis::conditions::{self, Conditioned, Status};
use apis::{NodeClaim, ProviderId, labels};
use cloudprovider::{CloudProvider, CloudProviderError, InstanceLife};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

/// Time after which it is told on the claim what keeps a node from opening or from being initialized: most causes are
/// soon over, and each word is a write.
const TOLD_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// A condition as it is to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConditionUpdate<'a> {
    pub(crate) condition_type: &'a str,
    pub(crate) status: Status,
    pub(crate) reason: &'a str,
    /// Empty where the reason says all.
    pub(crate) message: &'a str,
}

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

/// Questions that several controllers ask of a claim.
pub(crate) trait NodeClaimExt {
    /// Its NodePool; none of a claim that no pool made.
    fn pool_name(&self) -> Option<&str>;
    /// A label, where it has that.
    fn label(&self, key: &str) -> Option<&str>;
    /// Such as `m7i.large spot us-east-1a`.
    fn instance_text(&self) -> String;
    /// When the condition got its status; a condition never written counts from the object's creation.
    fn condition_since(&self, condition_type: &str) -> Timestamp;
    /// By when the node must be gone, once that is decided.
    fn termination_deadline(&self) -> Option<Timestamp>;
    /// A copy with the condition set.
    fn with_condition(&self, condition: ConditionUpdate<'_>, now: Timestamp) -> NodeClaim;
    /// A copy with the condition True.
    fn with_true(&self, condition_type: &str, now: Timestamp) -> NodeClaim;
    /// A copy without the condition.
    fn without(&self, condition_type: &str, now: Timestamp) -> NodeClaim;
}

/// The claim's UID, or the empty string.
fn uid(claim: &NodeClaim) -> String {
    claim.uid().unwrap_or_default()
}

impl NodeClaimExt for NodeClaim {
    fn pool_name(&self) -> Option<&str> {
        self.label(labels::NODEPOOL)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key).map(String::as_str)
    }

    fn instance_text(&self) -> String {
        let keys = [
            labels::INSTANCE_TYPE,
            labels::CAPACITY_TYPE,
            labels::TOPOLOGY_ZONE,
        ];
        let words = keys.map(|key| self.label(key).unwrap_or_default());
        words.join(" ").trim().to_owned()
    }

    fn condition_since(&self, condition_type: &str) -> Timestamp {
        let written = self
            .condition(condition_type)
            .map(|known| known.last_transition_time.0);
        let created = self.metadata.creation_timestamp.as_ref().map(|time| time.0);
        written.or(created).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn termination_deadline(&self) -> Option<Timestamp> {
        self.annotations()
            .get(labels::NODECLAIM_TERMINATION_TIMESTAMP_ANNOTATION)
            .and_then(|text| text.parse().ok())
    }

    fn with_condition(&self, condition: ConditionUpdate<'_>, now: Timestamp) -> NodeClaim {
        let ConditionUpdate {
            condition_type,
            status,
            reason,
            message,
        } = condition;
        let mut after = self.clone();
        after.edit_conditions(now, |conditions| {
            conditions.set(condition_type, status, reason, message);
        });
        after
    }

    fn with_true(&self, condition_type: &str, now: Timestamp) -> NodeClaim {
        let condition = ConditionUpdate {
            condition_type,
            status: Status::True,
            reason: condition_type,
            message: "",
        };
        self.with_condition(condition, now)
    }

    fn without(&self, condition_type: &str, now: Timestamp) -> NodeClaim {
        let mut after = self.clone();
        if after.condition(condition_type).is_some() {
            after.edit_conditions(now, |conditions| {
                conditions.clear(condition_type);
            });
        }
        after
    }
}

/// A copy that says by when the node must be gone.
pub(crate) fn with_deadline(claim: &NodeClaim, deadline: Timestamp) -> NodeClaim {
    let mut after = claim.clone();
    after.annotations_mut().insert(
        labels::NODECLAIM_TERMINATION_TIMESTAMP_ANNOTATION.to_owned(),
        deadline_text(deadline),
    );
    after
}

/// A deadline as the annotation says it: whole seconds of UTC.
pub(crate) fn deadline_text(deadline: Timestamp) -> String {
    deadline.strftime("%FT%TZ").to_string()
}

/// Time left of `limit` since `since`; zero once it is over.
pub(crate) fn remaining(since: Timestamp, limit: Duration, now: Timestamp) -> Duration {
    let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    limit.saturating_sub(elapsed)
}

/// How hard the end of the claim will be.
pub(crate) fn termination_mode(claim: &NodeClaim) -> &'static str {
    match claim.spec.termination_grace_period {
        None => "graceful",
        Some(period) if period > apis::GoDuration::ZERO => "eventual",
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
