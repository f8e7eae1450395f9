//! Marks claims that could be disrupted: `Drifted`, and `Consolidatable` once they have been quiet for long enough.
//!
//! Only marks; the disruption loop decides. Answers to `pkg/controllers/nodeclaim/disruption/controller.go`.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned, Status};
use apis::{Ec2NodeClass, NodeClaim, NodePool, labels};
use cloudprovider::CloudProvider;
use jiff::Timestamp;
use kube::ResourceExt;
use state::facts::ClaimFacts;

use crate::error::ReconcileError;
use crate::node_claim::drift::{drift, is_instance_type_gone};
use crate::node_claim::entries::ClaimEntry;
use crate::node_claim::{NodeClaimExt, remaining};
use crate::runtime::{Action, Reconciler};
use crate::shell::Shell;

const DRIFT_PERIOD: Duration = Duration::from_mins(5);
/// A young claim's type cannot have gone yet; the cloud's lists may only be behind.
const TYPE_CHECK_AGE: Duration = Duration::from_hours(1);
const TYPE_CHECK_PERIOD: Duration = Duration::from_mins(30);

/// The controller.
pub(crate) struct Markers {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    /// What was found out about each claim, by its name.
    known: Mutex<BTreeMap<String, KnownClaim>>,
}

/// What was found out about a claim.
#[derive(Debug, Clone, Default)]
struct KnownClaim {
    /// When its type was last found on offer.
    type_found_at: Option<Timestamp>,
    /// The last answer about drift.
    drift: Option<DriftAnswer>,
}

/// An answer about drift, and what it was an answer to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DriftAnswer {
    question: u64,
    asked_at: Timestamp,
    reason: Option<String>,
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
            known: Mutex::new(BTreeMap::new()),
        }
    }

    /// What the model alone can tell: when to look again at a claim that is marked as it should be. Most changes of
    /// a claim are none to its marks, so that reading it and asking the provider each time would be for nothing.
    fn settled(&self, facts: &ClaimFacts, pool: &NodePool, question: u64) -> Option<Action> {
        let now = self.shell.now();
        let answer = self
            .known()
            .get(&facts.name)
            .and_then(|it| it.drift.clone());
        let answer = if facts.conditions.launched_at.is_none() {
            let reason = None;
            DriftAnswer {
                question,
                asked_at: now,
                reason,
            }
        } else {
            answer.filter(|answer| answer.question == question)?
        };
        settled(facts, pool, &answer, now)
    }

    async fn observe(
        &self,
        key: &ObjectKey,
        pool: Arc<NodePool>,
        class: Option<Arc<Ec2NodeClass>>,
    ) -> Result<Option<Observed>, ReconcileError> {
        let claim = self.shell.model.node_claim(&key.name).await?;
        let Some(claim) = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none()) else {
            return Ok(None);
        };
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
        let found_at = self.known().get(&name).and_then(|it| it.type_found_at);
        let is_due = found_at.is_none_or(|at| remaining(at, TYPE_CHECK_PERIOD, now).is_zero());
        if is_old && is_due {
            let types = self.provider.instance_types(pool, class).await?;
            if is_instance_type_gone(claim, &types) {
                return Ok(Some(conditions::reason::INSTANCE_TYPE_NOT_FOUND.to_owned()));
            }
            self.known().entry(name).or_default().type_found_at = Some(now);
        }
        match self.provider.is_drifted(claim, class).await {
            // Launched so lately that the cloud does not tell of it yet, or gone: other controllers' matter.
            Err(error) if error.is_not_found() => Ok(None),
            answer => Ok(answer?),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, KnownClaim>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When to look again at a claim whose marks are right and whose answer about drift still holds.
fn settled(
    facts: &ClaimFacts,
    pool: &NodePool,
    answer: &DriftAnswer,
    now: Timestamp,
) -> Option<Action> {
    let left = remaining(answer.asked_at, DRIFT_PERIOD, now);
    let is_marked = facts.conditions.drifted_at.is_some();
    if left.is_zero() || is_marked != answer.reason.is_some() {
        return None;
    }
    let action = Action::RequeueAfter(left);
    if pool.is_static() {
        return Some(action);
    }
    let (wanted, consolidatable) = consolidatable(
        pool,
        facts.conditions.initialized_at,
        facts.last_pod_event_at,
        now,
    );
    let is_right = wanted == facts.conditions.consolidatable_at.is_some();
    is_right.then(|| action.sooner(consolidatable))
}

/// All that an answer about drift depends on, but what happens outside of the cluster. Pools and claims change their
/// status often, which makes no difference; a class resolves to images and subnets in its own.
fn question(facts: &ClaimFacts, pool: &NodePool, class: Option<&Ec2NodeClass>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let ClaimFacts {
        uid,
        provider_id,
        labels,
        annotations,
        ..
    } = facts;
    (uid, provider_id, labels, annotations).hash(&mut hasher);
    let meta = &pool.metadata;
    (&meta.uid, meta.generation, &meta.annotations).hash(&mut hasher);
    let class = class.map(|class| &class.metadata);
    class
        .map(|meta| (&meta.uid, &meta.resource_version))
        .hash(&mut hasher);
    facts.conditions.launched_at.is_some().hash(&mut hasher);
    hasher.finish()
}

#[async_trait::async_trait]
impl Reconciler for Markers {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let facts = self
            .shell
            .model
            .snapshot()
            .node_of_claim(&key.name)
            .and_then(|it| it.claim.clone());
        let Some(facts) = facts.filter(|facts| facts.deleted_at.is_none()) else {
            self.known().remove(&key.name);
            return Ok(Action::Await);
        };
        let pool = facts
            .labels
            .get(labels::NODEPOOL)
            .map_or("", String::as_str);
        let Some(pool) = self.shell.model.node_pool(pool) else {
            return Ok(Action::Await);
        };
        let class = self.shell.model.node_class(&facts.node_class);
        let question = question(&facts, &pool, class.as_deref());
        if let Some(action) = self.settled(&facts, &pool, question) {
            return Ok(action);
        }
        let Some(observed) = self.observe(key, pool, class).await? else {
            self.known().remove(&key.name);
            return Ok(Action::Await);
        };
        let now = self.shell.now();
        let Decided { after, action } = decide(&observed, now);
        let drifted = after.condition(conditions::DRIFTED);
        let reason = drifted.map(|it| it.reason.clone());
        if after.conditions() != observed.claim.conditions() {
            self.shell
                .writer
                .write_claim_status(&observed.claim, &after)
                .await?;
            let was = observed.claim.is_condition_true(conditions::DRIFTED);
            if let Some(why) = reason.as_ref().filter(|_| !was) {
                let entry = ClaimEntry::Drifted { why };
                self.shell.journal.write(&after, &entry);
            }
        }
        let answer = DriftAnswer {
            question,
            asked_at: now,
            reason,
        };
        self.known().entry(key.name.clone()).or_default().drift = Some(answer);
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
            claim.with_condition(conditions::DRIFTED, Status::True, &reason, &reason, now)
        }
        None => claim.without(conditions::DRIFTED, now),
    };
    (after, DRIFT_PERIOD)
}

fn mark_consolidatable(claim: &NodeClaim, pool: &NodePool, now: Timestamp) -> (NodeClaim, Action) {
    let is_initialized = claim.is_true(conditions::INITIALIZED);
    let initialized_at = is_initialized.then(|| claim.condition_since(conditions::INITIALIZED));
    let status = claim.status.as_ref();
    let last_event = status.and_then(|status| status.last_pod_event_time.as_ref());
    let last_event = last_event.map(|time| time.0);
    let (wanted, action) = consolidatable(pool, initialized_at, last_event, now);
    let after = if wanted {
        claim.with_true(conditions::CONSOLIDATABLE, now)
    } else {
        claim.without(conditions::CONSOLIDATABLE, now)
    };
    (after, action)
}

/// Whether a claim was quiet for long enough, and when to look again if not. Quiet counts from the last pod event, or
/// from initialization where there was none.
fn consolidatable(
    pool: &NodePool,
    initialized_at: Option<Timestamp>,
    last_event: Option<Timestamp>,
    now: Timestamp,
) -> (bool, Action) {
    let after = pool.spec.disruption.consolidate_after.duration();
    let (Some(after), Some(initialized_at)) = (after, initialized_at) else {
        return (false, Action::Await);
    };
    let quiet_since = last_event.unwrap_or(initialized_at);
    let left = remaining(quiet_since, after.to_std(), now);
    if left.is_zero() {
        (true, Action::Await)
    } else {
        (false, Action::RequeueAfter(left))
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

    #[test]
    fn a_claim_marked_as_it_should_be_is_left_alone_until_an_answer_grows_old() {
        let pool =
            |after: &str| observed(&json!({"consolidateAfter": after}), &json!({}), None).pool;
        let at = |second| Timestamp::from_second(second).unwrap();
        let facts = |mut conditions: Value| {
            let mut status = status(None);
            let told = status["conditions"].as_array_mut().unwrap();
            told.append(conditions.as_array_mut().unwrap());
            ClaimFacts::parse(&observed(&json!({}), &status, None).claim)
        };
        let is = |name: &str| json!([{"type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": "1970-01-01T00:01:30Z"}]);
        let look = |facts: &ClaimFacts, after: &str, reason: Option<&str>, second| {
            let answer = DriftAnswer {
                question: 0,
                asked_at: at(100),
                reason: reason.map(str::to_owned),
            };
            settled(facts, &pool(after), &answer, at(second))
        };
        let in_seconds = |seconds| Some(Action::RequeueAfter(Duration::from_secs(seconds)));
        let plain = facts(json!([]));
        assert_eq!(look(&plain, "Never", None, 110), in_seconds(290));
        assert_eq!(look(&plain, "Never", None, 400), None, "the answer is old");
        assert_eq!(look(&plain, "60s", None, 110), in_seconds(10), "quiet soon");
        assert_eq!(look(&plain, "60s", None, 120), None, "quiet and not marked");
        assert_eq!(look(&plain, "Never", Some("AMIDrift"), 110), None);
        let quiet = facts(is("Consolidatable"));
        assert_eq!(look(&quiet, "60s", None, 130), in_seconds(270));
        assert_eq!(look(&quiet, "Never", None, 130), None, "no longer wanted");
        let drifted = facts(is("Drifted"));
        assert_eq!(
            look(&drifted, "Never", Some("AMIDrift"), 110),
            in_seconds(290)
        );
        assert_eq!(look(&drifted, "Never", None, 110), None);
    }
}
