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

use crate::shell::error::ReconcileError;
use crate::shell::model::Model;
use crate::shell::writer::Writer;

/// Results that are remembered.
const REMEMBERED: usize = 4;
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

/// The last results of each pool, by its UID: a pool that was made anew starts afresh.
#[derive(Debug, Default)]
struct PoolResults {
    results: BTreeMap<String, VecDeque<RegistrationResult>>,
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
        let results = self.health().record(&uid, outcome.result(), known);
        let Some(status) = status_for(&results, known) else {
            return Ok(());
        };
        if !self.health().writing.insert(uid.clone()) {
            return Ok(());
        }
        let result = write(model, writer, &pool, status, outcome).await;
        self.health().writing.remove(&uid);
        result
    }

    /// Drops what is remembered of the pool of this UID: it is gone, or it or its class is another than the results are
    /// about.
    pub(crate) fn forget(&self, uid: &str) {
        self.health().results.remove(uid);
    }

    fn health(&self) -> MutexGuard<'_, PoolResults> {
        lock(&self.0)
    }
}

impl PoolResults {
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

/// The status that the pool's condition is to get, where it says something else.
fn status_for(results: &VecDeque<RegistrationResult>, known: Option<PoolHealth>) -> Option<Status> {
    let health = PoolHealth::of_results(results);
    if known == Some(health) {
        return None;
    }
    // A failure does not make a pool healthy, nor a success unhealthy.
    match (health, results.back()?) {
        (PoolHealth::Healthy, RegistrationResult::Succeeded) => Some(Status::True),
        (PoolHealth::Unhealthy, RegistrationResult::Failed) => Some(Status::False),
        (PoolHealth::Healthy, RegistrationResult::Failed)
        | (PoolHealth::Unhealthy, RegistrationResult::Succeeded) => None,
    }
}

async fn write(
    model: &Model,
    writer: &Writer,
    pool: &NodePool,
    status: Status,
    outcome: &Registration<'_>,
) -> Result<(), ReconcileError> {
    let Some(pool) = model.fresh_node_pool(&pool.name_any()).await? else {
        return Ok(());
    };
    let (reason, message) = match outcome {
        Registration::Succeeded => (conditions::NODE_REGISTRATION_HEALTHY, ""),
        Registration::Failed { reason, message } => (*reason, *message),
    };
    let health = ConditionUpdate {
        condition_type: conditions::NODE_REGISTRATION_HEALTHY,
        status,
        reason,
        message,
    };
    let after = pool.with_condition(health, model.now());
    writer.write_pool_status(&pool, &after).await
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
            let status = status_for(&results.iter().copied().collect(), known);
            let status = status.map(Status::as_str);
            assert_eq!(status, expected, "{results:?} {known:?}");
        }
    }
}
