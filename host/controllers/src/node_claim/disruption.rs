//! Marks claims that could be disrupted: `Drifted`, and `Consolidatable` once they have been quiet for long enough.
//!
//! Only marks; the disruption loop decides. Answers to `pkg/controllers/nodeclaim/disruption/controller.go`.

mod drift;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, ConditionUpdate, Conditioned, Status};
use apis::{Ec2NodeClass, NodeClaim, NodePool, labels};
use cloudprovider::CloudProvider;
use jiff::Timestamp;
use kube::ResourceExt;
use locks::lock;
use state::facts::ClaimFacts;

use crate::node_claim::disruption::drift::{drift, is_instance_type_gone};
use crate::node_claim::entries::running::ClaimDrifted;
use crate::node_claim::remaining;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

const DRIFT_PERIOD: Duration = Duration::from_mins(5);
/// A young claim's type cannot have gone yet; the cloud's lists may only be behind.
const TYPE_CHECK_AGE: Duration = Duration::from_hours(1);
const TYPE_CHECK_PERIOD: Duration = Duration::from_mins(30);

/// Controller of the marks of claims: one claim a reconcile.
pub(crate) struct NodeClaimDisruption {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    known: Arc<KnownClaims>,
}

/// Knowledge about each claim, by its name. It ends with the claim, of which the watch tells: nobody may ask about the
/// claim again.
#[derive(Debug, Default)]
pub(crate) struct KnownClaims(Mutex<BTreeMap<String, KnownClaim>>);

impl KnownClaims {
    /// Drops what is known of a claim that is gone.
    pub(crate) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }
}

/// Knowledge about a claim from earlier reconciles.
#[derive(Debug, Clone, Default)]
struct KnownClaim {
    /// When its type was last found on offer.
    type_found_at: Option<Timestamp>,
    /// The last answer about drift.
    drift: Option<DriftAnswer>,
}

/// Stands for all that an answer about drift depends on within the cluster: where it is another, the answer is out of
/// date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DriftQuestion(u64);

/// An answer about drift, and what it was an answer to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DriftAnswer {
    question: DriftQuestion,
    asked_at: Timestamp,
    reason: Option<String>,
}

struct Observed {
    claim: Arc<NodeClaim>,
    pool: Arc<NodePool>,
    class: Option<Arc<Ec2NodeClass>>,
    /// Reason of drift by the provider, asked only when nothing else drifted.
    provider_drift: Option<String>,
}

#[derive(Debug, PartialEq)]
struct Decided {
    after: NodeClaim,
    action: Action,
}

impl NodeClaimDisruption {
    pub(crate) fn new(
        shell: Arc<Shell>,
        provider: Arc<dyn CloudProvider>,
        known: Arc<KnownClaims>,
    ) -> Self {
        Self {
            shell,
            provider,
            known,
        }
    }

    /// What the model alone can tell: when to look again at a claim that is marked as it should be. Most changes of
    /// a claim are none to its marks, so that reading it and asking the provider each time would be for nothing.
    fn answer_from_model(
        &self,
        facts: &ClaimFacts,
        pool: &NodePool,
        question: DriftQuestion,
    ) -> Option<Action> {
        let now = self.shell.now();
        let answer = self
            .lock_known()
            .get(&facts.name)
            .and_then(|it| it.drift.clone());
        let answer = if facts.conditions.launched_at.is_none() {
            DriftAnswer {
                question,
                asked_at: now,
                reason: None,
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
        let asks_provider = observed.claim.is_condition_true(conditions::LAUNCHED)
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
        let found_at = self.lock_known().get(&name).and_then(|it| it.type_found_at);
        let is_due = found_at.is_none_or(|at| remaining(at, TYPE_CHECK_PERIOD, now).is_zero());
        if is_old && is_due {
            let types = self.provider.instance_types(pool, class).await?;
            if is_instance_type_gone(claim, &types) {
                return Ok(Some(conditions::reason::INSTANCE_TYPE_NOT_FOUND.to_owned()));
            }
            self.lock_known().entry(name).or_default().type_found_at = Some(now);
        }
        match self.provider.is_drifted(claim, class).await {
            // Launched so lately that the cloud does not tell of it yet, or gone: other controllers' matter.
            Err(error) if error.is_not_found() => Ok(None),
            answer => Ok(answer?),
        }
    }

    /// Writes the marks where they are others, and tells of a drift that is new.
    async fn apply(&self, claim: &NodeClaim, after: &NodeClaim) -> Result<(), ReconcileError> {
        if after.conditions() == claim.conditions() {
            return Ok(());
        }
        self.shell.writer.write_claim_status(claim, after).await?;
        let was = claim.is_condition_true(conditions::DRIFTED);
        if let Some(drifted) = after.condition(conditions::DRIFTED).filter(|_| !was) {
            let entry = ClaimDrifted {
                why: &drifted.reason,
            };
            self.shell.journal.write(after, &entry);
        }
        Ok(())
    }

    fn lock_known(&self) -> MutexGuard<'_, BTreeMap<String, KnownClaim>> {
        lock(&self.known.0)
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
/// status often, which makes no difference; a class resolves to images and subnets in its own. The spec of a claim
/// never changes.
fn question(facts: &ClaimFacts, pool: &NodePool, class: Option<&Ec2NodeClass>) -> DriftQuestion {
    let mut hasher = DefaultHasher::new();
    let ClaimFacts {
        uid,
        provider_id,
        labels,
        annotations,
        conditions,
        // The claim is known by its name, and the class goes in as it is.
        name: _,
        node_class: _,
        // Of the spec, or as told at launch.
        taints: _,
        startup_taints: _,
        requests: _,
        capacity: _,
        allocatable: _,
        expire_after: _,
        termination_grace_period: _,
        created_at: _,
        // What comes and goes, and the answer itself.
        node_name: _,
        drift_reason: _,
        last_pod_event_at: _,
        deleted_at: _,
    } = facts;
    (uid, provider_id, labels, annotations).hash(&mut hasher);
    let meta = &pool.metadata;
    (&meta.uid, meta.generation, &meta.annotations).hash(&mut hasher);
    let class = class.map(|class| &class.metadata);
    class
        .map(|meta| (&meta.uid, &meta.resource_version))
        .hash(&mut hasher);
    conditions.launched_at.is_some().hash(&mut hasher);
    DriftQuestion(hasher.finish())
}

impl Reconciler for NodeClaimDisruption {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let facts = self.shell.model.claim_facts(&key.name);
        let Some(facts) = facts.filter(|facts| facts.deleted_at.is_none()) else {
            self.known.forget(&key.name);
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
        if let Some(action) = self.answer_from_model(&facts, &pool, question) {
            return Ok(action);
        }
        let Some(observed) = self.observe(key, pool, class).await? else {
            self.known.forget(&key.name);
            return Ok(Action::Await);
        };
        let now = self.shell.now();
        let Decided { after, action } = decide(&observed, now);
        self.apply(&observed.claim, &after).await?;
        let drifted = after.condition(conditions::DRIFTED);
        let answer = DriftAnswer {
            question,
            asked_at: now,
            reason: drifted.map(|it| it.reason.clone()),
        };
        self.lock_known().entry(key.name.clone()).or_default().drift = Some(answer);
        Ok(action)
    }
}

fn decide(observed: &Observed, now: Timestamp) -> Decided {
    let after = mark_drift(observed, now);
    let action = Action::RequeueAfter(DRIFT_PERIOD);
    if observed.pool.is_static() {
        return Decided { after, action };
    }
    let (after, consolidatable) = mark_consolidatable(&after, &observed.pool, now);
    Decided {
        after,
        action: action.sooner(consolidatable),
    }
}

fn mark_drift(observed: &Observed, now: Timestamp) -> NodeClaim {
    let Observed {
        claim,
        pool,
        class: _,
        provider_drift,
    } = observed;
    if !claim.is_condition_true(conditions::LAUNCHED) {
        return claim.without_condition(conditions::DRIFTED, now);
    }
    let reason = drift(claim, pool)
        .map(str::to_owned)
        .or_else(|| provider_drift.clone());
    match reason {
        Some(reason) => {
            let drifted = ConditionUpdate {
                condition_type: conditions::DRIFTED,
                status: Status::True,
                reason: &reason,
                message: &reason,
            };
            claim.with_condition(drifted, now)
        }
        None => claim.without_condition(conditions::DRIFTED, now),
    }
}

/// The claim with the mark that it was quiet for long enough, or without it, and when to look again.
pub(super) fn mark_consolidatable(
    claim: &NodeClaim,
    pool: &NodePool,
    now: Timestamp,
) -> (NodeClaim, Action) {
    let is_initialized = claim.is_condition_true(conditions::INITIALIZED);
    let initialized_at = is_initialized.then(|| claim.condition_since(conditions::INITIALIZED));
    let status = claim.status.as_ref();
    let last_event = status.and_then(|status| status.last_pod_event_time.as_ref());
    let last_event = last_event.map(|time| time.0);
    let (wanted, action) = consolidatable(pool, initialized_at, last_event, now);
    let after = if wanted {
        claim.with_condition_true(conditions::CONSOLIDATABLE, now)
    } else {
        claim.without_condition(conditions::CONSOLIDATABLE, now)
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
mod tests;
