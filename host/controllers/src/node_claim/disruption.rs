//! Marks claims that could be disrupted: `Drifted`, and `Consolidatable` once they have been quiet for long enough.
//!
//! Only marks; the disruption loop decides. Answers to `pkg/controllers/nodeclaim/disruption/controller.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use apis::conditions::{self, Conditioned, Status};
use apis::{Ec2NodeClass, NodeClaim, NodePool};
use cloudprovider::CloudProvider;
use jiff::Timestamp;
use kube::ResourceExt;

use crate::error::ReconcileError;
use crate::node_claim::drift::{drift, is_instance_type_gone};
use crate::node_claim::{NodeClaimExt, remaining};
use crate::runtime::{Action, ObjectKey, Reconciler};
use crate::shell::Shell;

const DRIFT_PERIOD: Duration = Duration::from_mins(5);
/// A young claim's type cannot have gone yet; the cloud's lists may only be behind.
const TYPE_CHECK_AGE: Duration = Duration::from_hours(1);
const TYPE_CHECK_PERIOD: Duration = Duration::from_mins(30);

/// The controller.
pub(crate) struct Markers {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    /// When the type of a claim was last found on offer.
    type_found_at: Mutex<BTreeMap<String, Timestamp>>,
}

struct Observed {
    claim: Arc<NodeClaim>,
    pool: Arc<NodePool>,
    class: Option<Arc<Ec2NodeClass>>,
    /// What the provider says, asked only when nothing else drifted.
    provider_drift: Option<String>,
}

#[derive(Debug, PartialEq)]
struct Decided {
    after: NodeClaim,
    action: Action,
}

impl Markers {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self {
            shell,
            provider,
            type_found_at: Mutex::new(BTreeMap::new()),
        }
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, ReconcileError> {
        let Some(claim) = self.shell.node_claim(&key.name).await? else {
            return Ok(None);
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let Some(pool) = self.shell.node_pool(claim.pool_name()) else {
            return Ok(None);
        };
        let class = self.shell.node_class(&claim.spec.node_class_ref.name);
        let mut observed = Observed {
            claim,
            pool,
            class,
            provider_drift: None,
        };
        let asks_provider = observed.claim.is_true(conditions::LAUNCHED)
            && drift(&observed.claim, &observed.pool).is_none();
        if asks_provider {
            observed.provider_drift = self.provider_drift(&observed).await?;
        }
        Ok(Some(observed))
    }

    async fn provider_drift(&self, observed: &Observed) -> Result<Option<String>, ReconcileError> {
        let Observed {
            claim,
            pool,
            class,
            provider_drift: _,
        } = observed;
        let Some(class) = class else { return Ok(None) };
        let (now, name) = (self.shell.now(), claim.name_any());
        let is_old = claim
            .metadata
            .creation_timestamp
            .as_ref()
            .is_some_and(|created| remaining(created.0, TYPE_CHECK_AGE, now).is_zero());
        let found_at = self.found_at().get(&name).copied();
        let is_due = found_at.is_none_or(|at| remaining(at, TYPE_CHECK_PERIOD, now).is_zero());
        if is_old && is_due {
            let types = self.provider.instance_types(pool, class).await?;
            if is_instance_type_gone(claim, &types) {
                return Ok(Some(conditions::reason::INSTANCE_TYPE_NOT_FOUND.to_owned()));
            }
            self.found_at().insert(name, now);
        }
        Ok(self.provider.is_drifted(claim, class).await?)
    }

    fn found_at(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Timestamp>> {
        self.type_found_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Reconciler for Markers {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(observed) = self.observe(key).await? else {
            self.found_at().remove(&key.name);
            return Ok(Action::Await);
        };
        let Decided { after, action } = decide(&observed, self.shell.now());
        if after.conditions() != observed.claim.conditions() {
            self.shell
                .write_claim_status(&observed.claim, &after)
                .await?;
            let was = observed.claim.is_condition_true(conditions::DRIFTED);
            if !was && after.is_condition_true(conditions::DRIFTED) {
                let why = after
                    .condition(conditions::DRIFTED)
                    .map(|it| it.reason.clone());
                self.shell
                    .say(format!("{} drifted: {}", key.name, why.unwrap_or_default()));
            }
        }
        Ok(action)
    }
}

fn decide(observed: &Observed, now: Timestamp) -> Decided {
    let (after, again) = mark_drift(observed, now);
    let action = Action::RequeueAfter(again);
    if observed.pool.is_static() {
        return Decided { after, action };
    }
    let (after, consolidatable) = mark_consolidatable(&after, &observed.pool, now);
    Decided {
        after,
        action: action.sooner(consolidatable),
    }
}

fn mark_drift(observed: &Observed, now: Timestamp) -> (NodeClaim, Duration) {
    let Observed {
        claim,
        pool,
        class: _,
        provider_drift,
    } = observed;
    if !claim.is_true(conditions::LAUNCHED) {
        return (claim.without(conditions::DRIFTED, now), DRIFT_PERIOD);
    }
    let reason = drift(claim, pool)
        .map(str::to_owned)
        .or_else(|| provider_drift.clone());
    let after = match reason {
        Some(reason) => {
            let told = (Status::True, reason.as_str(), reason.as_str());
            claim.with_condition(conditions::DRIFTED, told, now)
        }
        None => claim.without(conditions::DRIFTED, now),
    };
    (after, DRIFT_PERIOD)
}

/// Quiet counts from the last pod event, or from initialization where there was none.
fn mark_consolidatable(claim: &NodeClaim, pool: &NodePool, now: Timestamp) -> (NodeClaim, Action) {
    let without = || claim.without(conditions::CONSOLIDATABLE, now);
    let Some(after) = pool.spec.disruption.consolidate_after.duration() else {
        return (without(), Action::Await);
    };
    if !claim.is_true(conditions::INITIALIZED) {
        return (without(), Action::Await);
    }
    let last_event = claim
        .status
        .as_ref()
        .and_then(|status| status.last_pod_event_time.as_ref());
    let initialized_at = claim.condition_since(conditions::INITIALIZED);
    let quiet_since = last_event.map_or(initialized_at, |time| time.0);
    let left = remaining(quiet_since, after.to_std(), now);
    if left.is_zero() {
        (
            claim.with_true(conditions::CONSOLIDATABLE, now),
            Action::Await,
        )
    } else {
        (without(), Action::RequeueAfter(left))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CLASS: &str =
        r#"{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}"#;

    fn observed(disruption: &Value, status: &Value, provider_drift: Option<&str>) -> Observed {
        let class: Value = serde_json::from_str(CLASS).unwrap();
        let claim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"requirements": [], "nodeClassRef": class.clone()},
            "status": status,
        }))
        .unwrap();
        let pool = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}, "disruption": disruption},
        }))
        .unwrap();
        Observed {
            claim: Arc::new(claim),
            pool: Arc::new(pool),
            class: None,
            provider_drift: provider_drift.map(str::to_owned),
        }
    }

    fn status(last_pod_event: Option<&str>) -> Value {
        let condition = |name: &str| json!({"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": "1970-01-01T00:01:00Z"});
        let mut status = json!({"conditions": [condition("Launched"), condition("Registered"), condition("Initialized")]});
        if let Some(time) = last_pod_event {
            status["lastPodEventTime"] = json!(time);
        }
        status
    }

    #[test]
    fn a_claim_is_consolidatable_once_it_was_quiet_for_long_enough() {
        let quiet = |after: &str, event: Option<&str>, second: i64| {
            let observed = observed(&json!({"consolidateAfter": after}), &status(event), None);
            let decided = decide(&observed, Timestamp::from_second(second).unwrap());
            (
                decided.after.is_condition_true(conditions::CONSOLIDATABLE),
                decided.action,
            )
        };
        let in_seconds = |seconds| Action::RequeueAfter(Duration::from_secs(seconds));
        let drift = Action::RequeueAfter(DRIFT_PERIOD);
        assert_eq!(quiet("30s", None, 70), (false, in_seconds(20)));
        assert_eq!(quiet("30s", None, 90), (true, drift));
        assert_eq!(
            quiet("30s", Some("1970-01-01T00:01:20Z"), 90),
            (false, in_seconds(20))
        );
        assert_eq!(quiet("Never", None, 9000), (false, drift));
    }

    #[test]
    fn drift_of_the_provider_is_marked_with_its_reason_and_cleared_again() {
        let now = Timestamp::from_second(100).unwrap();
        let drifted = decide(&observed(&json!({}), &status(None), Some("AMIDrift")), now).after;
        let condition = drifted.condition(conditions::DRIFTED).unwrap();
        assert_eq!(
            (condition.reason.as_str(), condition.message.as_str()),
            ("AMIDrift", "AMIDrift")
        );
        let again = Observed {
            claim: Arc::new(drifted),
            ..observed(&json!({}), &json!({}), None)
        };
        assert!(
            decide(&again, now)
                .after
                .condition(conditions::DRIFTED)
                .is_none()
        );
    }
}
