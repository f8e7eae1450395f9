//! Remembers how the last launches and registrations of each pool went, and says so in the pool's status.
//!
//! For information; no decision looks at it. Answers to
//! `pkg/controllers/nodepool/registrationhealth/controller.go`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use apis::conditions::{self, Conditioned, Status};
use apis::{NodeClaim, NodePool};
use kube::ResourceExt;

use crate::node_claim::NodeClaimExt;
use crate::shell::error::ReconcileError;
use crate::shell::model::Model;
use crate::shell::sync::lock;
use crate::shell::writer::Writer;

/// Results that are remembered.
const REMEMBERED: usize = 4;
/// With this many failures among them, a pool is unhealthy.
const FAILURES_MIN: usize = 2;

/// How a launch or a registration went.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Registration<'a> {
    /// The node joined.
    Succeeded,
    /// It did not.
    Failed {
        /// Reason for the pool's condition.
        reason: &'a str,
        /// Message for it.
        message: &'a str,
    },
}

impl Registration<'_> {
    fn is_success(&self) -> bool {
        matches!(self, Self::Succeeded)
    }
}

/// Shared by all that launch and register.
#[derive(Debug, Default)]
pub(crate) struct RegistrationHealth(Mutex<PoolResults>);

/// The last results of each pool, by its UID: a pool that was made anew starts afresh.
#[derive(Debug, Default)]
struct PoolResults {
    results: BTreeMap<String, VecDeque<bool>>,
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
        let pool = model.node_pool(claim.pool_name());
        let Some((pool, uid)) = pool.and_then(|it| Some((Arc::clone(&it), it.uid()?))) else {
            return Ok(());
        };
        let status = self.health().decide(&uid, &pool, outcome.is_success());
        let Some(status) = status else {
            return Ok(());
        };
        if !self.health().writing.insert(uid.clone()) {
            return Ok(());
        }
        let result = write(model, writer, &pool, status, outcome).await;
        self.health().writing.remove(&uid);
        result
    }

    /// The pool or its class changed, so the past says nothing.
    pub(crate) fn forget(&self, pool: &str) {
        self.health().results.remove(pool);
    }

    fn health(&self) -> MutexGuard<'_, PoolResults> {
        lock(&self.0)
    }
}

impl PoolResults {
    /// Takes in a result; answers the status that the pool's condition is to get, where it says something else.
    fn decide(&mut self, uid: &str, pool: &NodePool, is_success: bool) -> Option<Status> {
        let condition = pool.condition(conditions::NODE_REGISTRATION_HEALTHY);
        let known = condition.and_then(|it| match it.status.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        });
        self.seed(uid, known);
        let is_healthy = self.note(uid, is_success);
        // A failure does not make a pool healthy, nor a success unhealthy.
        if known == Some(is_healthy) || is_healthy != is_success {
            return None;
        }
        Some(if is_healthy {
            Status::True
        } else {
            Status::False
        })
    }

    /// Takes in a result; answers whether the pool is healthy now.
    fn note(&mut self, pool: &str, success: bool) -> bool {
        let results = self.results.entry(pool.to_owned()).or_default();
        results.push_back(success);
        if results.len() > REMEMBERED {
            results.pop_front();
        }
        results.iter().filter(|success| !**success).count() < FAILURES_MIN
    }

    /// A process that knows nothing takes the pool's condition for what it remembers: one success where it says
    /// healthy, as many failures as make a pool unhealthy where it says the contrary.
    fn seed(&mut self, pool: &str, healthy: Option<bool>) {
        if let (Some(healthy), false) = (healthy, self.results.contains_key(pool)) {
            let results = if healthy {
                VecDeque::from([true])
            } else {
                VecDeque::from([false; FAILURES_MIN])
            };
            self.results.insert(pool.to_owned(), results);
        }
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
    let mut after = pool.clone();
    after.edit_conditions(model.now(), |editor| {
        let condition = conditions::NODE_REGISTRATION_HEALTHY;
        editor.set(condition, status, reason, message);
    });
    writer.write_pool_status(&pool, &after).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_failures_among_the_last_four_are_unhealthy() {
        let cases: [(&[bool], bool); 4] = [
            (&[true, true, false, false], false),
            (&[false], true),
            (&[false, false], false),
            (&[false, false, true, true, true], true),
        ];
        for (results, healthy) in cases {
            let mut health = PoolResults::default();
            let last = results
                .iter()
                .map(|result| health.note("p", *result))
                .last();
            assert_eq!(last, Some(healthy), "{results:?}");
        }
    }

    #[test]
    fn a_condition_stands_for_what_was_forgotten() {
        for (told, result, healthy) in [
            (Some(false), true, false),
            (Some(true), false, true),
            (None, false, true),
        ] {
            let mut health = PoolResults::default();
            health.seed("p", told);
            assert_eq!(health.note("p", result), healthy, "{told:?} {result}");
        }
        let mut health = PoolResults::default();
        health.note("p", true);
        health.seed("p", Some(false));
        assert!(health.note("p", true), "what is remembered counts more");
    }
}
