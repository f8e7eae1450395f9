//! Remembers how the last launches and registrations of each pool went, and says so in the pool's status.
//!
//! For information; no decision looks at it. Answers to
//! `pkg/controllers/nodepool/registrationhealth/controller.go`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use apis::conditions::{self, ConditionUpdate, Conditioned, Status};
use apis::{NodeClaim, NodePool};
use kube::ResourceExt;
use locks::lock;

use crate::shell::error::{ReconcileError, api_code};
use crate::shell::model::Model;
use crate::shell::writer::Writer;

/// Results that are remembered.
const REMEMBERED: usize = 4;
/// Writes of a pool's condition in a row: each but the first follows a conflict, or results that came meanwhile.
const WRITES_MAX: usize = 5;
/// With this many failures among them, a pool is unhealthy.
const FAILURES_MIN: usize = 2;

/// How a launch or a registration went.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Registration<'a> {
    /// The node joined the cluster.
    Succeeded,
    /// The instance did not launch, or its node did not join.
    Failed {
        /// Reason for the pool's condition.
        reason: &'a str,
        /// Message for the pool's condition.
        message: &'a str,
    },
}

impl Registration<'_> {
    fn result(&self) -> RegistrationResult {
        match self {
            Self::Succeeded => RegistrationResult::Succeeded,
            Self::Failed { .. } => RegistrationResult::Failed,
        }
    }
}

/// Result of a launch or a registration, as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegistrationResult {
    Succeeded,
    Failed,
}

/// Health of a pool by its results, and as its condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolHealth {
    Healthy,
    Unhealthy,
}

impl PoolHealth {
    fn status(self) -> Status {
        match self {
            Self::Healthy => Status::True,
            Self::Unhealthy => Status::False,
        }
    }

    /// As the condition of the pool has it, where it says either.
    fn of_pool(pool: &NodePool) -> Option<Self> {
        let condition = pool.condition(conditions::NODE_REGISTRATION_HEALTHY)?;
        match Status::of(condition)? {
            Status::True => Some(Self::Healthy),
            Status::False => Some(Self::Unhealthy),
            Status::Unknown => None,
        }
    }

    fn of_results(results: &VecDeque<RegistrationResult>) -> Self {
        let is_failure = |it: &&RegistrationResult| **it == RegistrationResult::Failed;
        if results.iter().filter(is_failure).count() < FAILURES_MIN {
            Self::Healthy
        } else {
            Self::Unhealthy
        }
    }

    /// The results that a process which knows nothing takes it to stand for: one success, or as many failures as make a
    /// pool unhealthy.
    fn results(self) -> VecDeque<RegistrationResult> {
        match self {
            Self::Healthy => VecDeque::from([RegistrationResult::Succeeded]),
            Self::Unhealthy => VecDeque::from([RegistrationResult::Failed; FAILURES_MIN]),
        }
    }
}

/// Shared by all that launch and register.
#[derive(Debug, Default)]
pub(crate) struct RegistrationHealth(Mutex<PoolResults>);

/// What a condition says of a failure.
#[derive(Debug, Clone, Default)]
struct FailureWords {
    reason: String,
    message: String,
}

/// The last results of each pool, by its UID: a pool that was made anew starts afresh.
#[derive(Debug, Default)]
struct PoolResults {
    results: BTreeMap<String, VecDeque<RegistrationResult>>,
    /// What was said of the last failure.
    failures: BTreeMap<String, FailureWords>,
    /// UIDs of pools whose condition is being written.
    writing: BTreeSet<String>,
}

impl RegistrationHealth {
    /// Takes in how the launch or registration of a claim went, and writes the condition of its pool where that
    /// changes. Where many nodes register at once, one of them writes it for all.
    pub(crate) async fn note(
        &self,
        model: &Model,
        writer: &Writer,
        claim: &NodeClaim,
        outcome: &Registration<'_>,
    ) -> Result<(), ReconcileError> {
        let pool = claim.pool_name().and_then(|it| model.node_pool(it));
        let Some((pool, uid)) = pool.and_then(|it| Some((Arc::clone(&it), it.uid()?))) else {
            return Ok(());
        };
        let known = PoolHealth::of_pool(&pool);
        if !self.health().takes_in(&uid, outcome, known) {
            return Ok(());
        }
        let written = self.write_all(model, writer, &pool.name_any(), &uid).await;
        if written.is_err() {
            self.health().writing.remove(&uid);
        }
        written
    }

    /// Writes the condition until it says what the results say, those included that come meanwhile: who brings them
    /// leaves them to this one, and nobody comes back for a write that met a conflict.
    async fn write_all(
        &self,
        model: &Model,
        writer: &Writer,
        name: &str,
        uid: &str,
    ) -> Result<(), ReconcileError> {
        let mut conflict = Ok(());
        for _ in 0..WRITES_MAX {
            let pool = model.fresh_node_pool(name).await?;
            // Results are of the pool of this UID alone.
            let Some(pool) = pool.filter(|it| it.uid().as_deref() == Some(uid)) else {
                break;
            };
            let Some(due) = self.health().due(uid, PoolHealth::of_pool(&pool)) else {
                return Ok(());
            };
            let words = self.health().words(uid, due);
            match write(model, writer, &pool, due, &words).await {
                Ok(()) if self.health().due(uid, Some(due)).is_none() => return Ok(()),
                Ok(()) => conflict = Ok(()),
                Err(ReconcileError::Kube(error)) if api_code(&error) == Some(409) => {
                    conflict = Err(error.into());
                }
                Err(error) => return Err(error),
            }
        }
        self.health().writing.remove(uid);
        conflict
    }

    /// Drops what is remembered of the pool of this UID: it is gone, or it or its class is another than the results are
    /// about.
    pub(crate) fn forget(&self, uid: &str) {
        let mut health = self.health();
        health.results.remove(uid);
        health.failures.remove(uid);
    }

    fn health(&self) -> MutexGuard<'_, PoolResults> {
        lock(&self.0)
    }
}

impl PoolResults {
    /// Takes in how a launch or registration of the pool of this UID went; answers whether its condition is to be
    /// written, and by who asks: where somebody writes it already, they look at the results again when they are done.
    fn takes_in(
        &mut self,
        uid: &str,
        outcome: &Registration<'_>,
        known: Option<PoolHealth>,
    ) -> bool {
        if let Registration::Failed { reason, message } = outcome {
            let words = FailureWords {
                reason: (*reason).to_owned(),
                message: (*message).to_owned(),
            };
            self.failures.insert(uid.to_owned(), words);
        }
        let results = self.record(uid, outcome.result(), known);
        health_due(&results, known).is_some() && self.writing.insert(uid.to_owned())
    }

    /// The health that is to be written next of the pool of this UID, whose condition says what is `known`; where there
    /// is none, whoever wrote is done.
    fn due(&mut self, uid: &str, known: Option<PoolHealth>) -> Option<PoolHealth> {
        let results = self.results.get(uid);
        let due = results.and_then(|it| health_due(it, known));
        if due.is_none() {
            self.writing.remove(uid);
        }
        due
    }

    /// What the condition says beside the health.
    fn words(&self, uid: &str, health: PoolHealth) -> FailureWords {
        match health {
            PoolHealth::Healthy => FailureWords {
                reason: conditions::NODE_REGISTRATION_HEALTHY.to_owned(),
                message: String::new(),
            },
            PoolHealth::Unhealthy => self.failures.get(uid).cloned().unwrap_or_default(),
        }
    }

    /// Takes in a result of the pool of this UID, whose condition says what is `known`; answers what is remembered now.
    fn record(
        &mut self,
        uid: &str,
        result: RegistrationResult,
        known: Option<PoolHealth>,
    ) -> VecDeque<RegistrationResult> {
        let before = known.map(PoolHealth::results).unwrap_or_default();
        let results = self.results.entry(uid.to_owned()).or_insert(before);
        results.push_back(result);
        if results.len() > REMEMBERED {
            results.pop_front();
        }
        results.clone()
    }
}

/// The health that the pool's condition is to tell, where it says something else.
fn health_due(
    results: &VecDeque<RegistrationResult>,
    known: Option<PoolHealth>,
) -> Option<PoolHealth> {
    let health = PoolHealth::of_results(results);
    if known == Some(health) {
        return None;
    }
    // A failure does not make a pool healthy, nor a success unhealthy.
    match (health, results.back()?) {
        (PoolHealth::Healthy, RegistrationResult::Succeeded)
        | (PoolHealth::Unhealthy, RegistrationResult::Failed) => Some(health),
        (PoolHealth::Healthy, RegistrationResult::Failed)
        | (PoolHealth::Unhealthy, RegistrationResult::Succeeded) => None,
    }
}

async fn write(
    model: &Model,
    writer: &Writer,
    pool: &NodePool,
    health: PoolHealth,
    words: &FailureWords,
) -> Result<(), ReconcileError> {
    let health = ConditionUpdate {
        condition_type: conditions::NODE_REGISTRATION_HEALTHY,
        status: health.status(),
        reason: &words.reason,
        message: &words.message,
    };
    let after = pool.with_condition(health, model.now());
    writer.write_pool_status(pool, &after).await
}

#[cfg(test)]
mod tests {
    use super::PoolHealth::{Healthy, Unhealthy};
    use super::RegistrationResult::{Failed, Succeeded};
    use super::*;

    #[test]
    fn two_failures_among_the_last_four_are_unhealthy() {
        let cases: [(&[RegistrationResult], PoolHealth); 4] = [
            (&[Succeeded, Succeeded, Failed, Failed], Unhealthy),
            (&[Failed], Healthy),
            (&[Failed, Failed], Unhealthy),
            (&[Failed, Failed, Succeeded, Succeeded, Succeeded], Healthy),
        ];
        for (results, expected) in cases {
            let mut health = PoolResults::default();
            let last = results
                .iter()
                .map(|result| health.record("p", *result, None))
                .last();
            let found = last.map(|it| PoolHealth::of_results(&it));
            assert_eq!(found, Some(expected), "{results:?}");
        }
    }

    #[test]
    fn a_condition_stands_for_what_was_forgotten() {
        for (known, result, expected) in [
            (Some(Unhealthy), Succeeded, Unhealthy),
            (Some(Healthy), Failed, Healthy),
            (None, Failed, Healthy),
        ] {
            let mut health = PoolResults::default();
            let results = health.record("p", result, known);
            let found = PoolHealth::of_results(&results);
            assert_eq!(found, expected, "{known:?} {result:?}");
        }
        let mut health = PoolResults::default();
        health.record("p", Succeeded, None);
        let results = health.record("p", Succeeded, Some(Unhealthy));
        let found = PoolHealth::of_results(&results);
        assert_eq!(found, Healthy, "what is remembered counts more");
    }

    #[test]
    fn what_comes_while_a_condition_is_written_is_written_next_by_the_same() {
        let failed = Registration::Failed {
            reason: "LaunchFailed",
            message: "no capacity",
        };
        let mut health = PoolResults::default();
        let known = Some(Healthy);
        assert!(!health.takes_in("p", &failed, known), "one is bad luck");
        assert!(health.takes_in("p", &failed, known));
        assert_eq!(health.due("p", known), Some(Unhealthy));
        assert_eq!(health.words("p", Unhealthy).reason, "LaunchFailed");
        for _ in 0..3 {
            // The model does not know yet what is being written.
            let is_asked = health.takes_in("p", &Registration::Succeeded, known);
            assert!(!is_asked, "somebody writes already");
        }
        assert_eq!(health.due("p", Some(Unhealthy)), Some(Healthy));
        assert_eq!(health.due("p", Some(Healthy)), None);
        assert!(health.writing.is_empty());
    }

    #[test]
    fn a_condition_changes_by_a_result_of_its_kind_alone() {
        let cases: [(&[RegistrationResult], Option<PoolHealth>, Option<&str>); 6] = [
            (&[Succeeded], None, Some("True")),
            (&[Succeeded], Some(Unhealthy), Some("True")),
            (&[Succeeded], Some(Healthy), None),
            (&[Failed], None, None),
            (&[Failed, Failed], Some(Healthy), Some("False")),
            (&[Failed, Failed, Succeeded], Some(Healthy), None),
        ];
        for (results, known, expected) in cases {
            let due = health_due(&results.iter().copied().collect(), known);
            let status = due.map(|it| it.status().as_str());
            assert_eq!(status, expected, "{results:?} {known:?}");
        }
    }
}
