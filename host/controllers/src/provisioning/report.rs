//! The traces of a provisioning pass: metrics, events, decision lines and the ledger's record.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::ResourceExt;
use scheduling::Solution;
use scheduling::error::PodError;
use scheduling::pod::PodKey;
use scheduling::solution::NewClaim;
use state::coming::is_coming;
use state::ledger::{
    ClaimOutcome, OutcomeId, PodGroupOutcome, PoolOutcome, ProvisioningRound, Record,
};
use state::provisioning::IgnoredReason;

use super::create::Creation;
use super::{Decided, Observed, events};
use crate::references;
use crate::shell::Shell;

/// Instance types that a record names.
const TYPES_NAMED_MAX: usize = 10;

pub(super) fn measure(shell: &Shell, solution: &Solution, ignored: usize, took: Duration) {
    let labels = vec![("controller", "provisioner".to_owned())];
    let metrics = &shell.metrics;
    metrics
        .scheduling_seconds
        .get_or_create(&labels)
        .observe(took.as_secs_f64());
    metrics
        .ignored_pods
        .get_or_create(&Vec::new())
        .set(count(ignored));
    let failed = solution
        .pod_errors
        .values()
        .filter(|error| !is_deferral(error))
        .count();
    metrics
        .unschedulable_pods
        .get_or_create(&labels)
        .set(count(failed));
}

fn count(number: usize) -> f64 {
    number as f64
}

fn is_deferral(error: &PodError) -> bool {
    matches!(error, PodError::ReservedCapacityPending { .. })
}

/// Events for pods, and lines for the decision feed.
pub(super) fn publish(
    shell: &Shell,
    observed: &Observed,
    decided: &Decided,
    creations: &[Creation<'_>],
) {
    let Decided {
        solution,
        ignored,
        pods: _,
    } = decided;
    publish_premium(shell, observed, solution);
    let pod = |key: &PodKey| observed.snapshot.pod(key).cloned();
    for (node, pods) in &solution.existing {
        let claim = observed
            .snapshot
            .node(node)
            .and_then(|node| node.claim_name());
        for pod in pods.iter().filter_map(pod) {
            shell
                .events
                .publish(events::nominated(&pod, claim, Some(node)));
        }
    }
    for Creation { new, result } in creations {
        match result {
            Ok(claim) => {
                for pod in new.pods.iter().filter_map(pod) {
                    shell
                        .events
                        .publish(events::nominated(&pod, Some(&claim.name_any()), None));
                }
                shell.say(opened_line(new, &claim.name_any()));
            }
            Err(refusal) => {
                for pod in new.pods.iter().filter_map(pod) {
                    shell
                        .events
                        .publish(events::failed_scheduling(&pod, &refusal.to_string()));
                }
                shell.say(format!("could not open a node in {}: {refusal}", new.pool));
            }
        }
    }
    let failures = solution
        .pod_errors
        .iter()
        .filter(|(_, error)| !is_deferral(error));
    for (key, error) in failures {
        if let Some(pod) = pod(key) {
            shell
                .events
                .publish(events::failed_scheduling(&pod, &error.to_string()));
        }
    }
    for (key, reason) in ignored
        .iter()
        .filter(|(_, reason)| *reason != IgnoredReason::OptsOut)
    {
        if let Some(pod) = pod(key) {
            shell
                .events
                .publish(events::failed_scheduling(&pod, &reason.to_string()));
        }
    }
    for (reason, keys) in by_reason(solution) {
        let first = keys.first().map(ToString::to_string).unwrap_or_default();
        let more = keys.len().saturating_sub(1);
        let others = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        shell.say(format!("no place for {first}{others}: {reason}"));
    }
}

fn opened_line(new: &NewClaim, claim: &str) -> String {
    let best = &new.best;
    let runner_up = best
        .runner_up
        .as_ref()
        .map_or_else(String::new, |(name, cost)| {
            format!(", next best {name} at an effective {cost:.4}")
        });
    let coming = coming(new);
    let pods = new.pods.len() - coming;
    let plural = if pods == 1 { "" } else { "s" };
    let more = if coming > 0 {
        format!(" and {coming} to come")
    } else {
        String::new()
    };
    format!(
        "opened {claim} for {pods} pod{plural}{more}: {} {} {} at {:.4} USD/h, of {} types{runner_up}",
        best.instance_type,
        best.capacity_type,
        best.zone,
        best.price_per_hour,
        new.instance_types.len(),
    )
}

/// How many of its pods are about to be created.
fn coming(new: &NewClaim) -> usize {
    new.pods.iter().filter(|it| is_coming(it)).count()
}

fn by_reason(solution: &Solution) -> BTreeMap<String, Vec<&PodKey>> {
    let mut groups: BTreeMap<String, Vec<&PodKey>> = BTreeMap::new();
    for (key, error) in &solution.pod_errors {
        groups.entry(error.to_string()).or_default().push(key);
    }
    groups
}

/// The record, and the end of every decided pod's wait.
pub(super) fn record(
    shell: &Shell,
    observed: &Observed,
    decided: &Decided,
    creations: &[Creation<'_>],
) {
    let Decided {
        solution,
        ignored,
        pods: _,
    } = decided;
    let mut groups = Groups::default();
    for (node, pods) in &solution.existing {
        groups.add(OutcomeId::PodOnExistingNode, node, "", pods.iter());
    }
    for Creation { new, result } in creations {
        match result {
            Ok(claim) => {
                groups.add(
                    OutcomeId::PodOnNewClaim,
                    &claim.name_any(),
                    "",
                    new.pods.iter(),
                );
            }
            Err(refusal) => {
                let reason = refusal.to_string();
                groups.add(OutcomeId::PodUnschedulable, "", &reason, new.pods.iter());
            }
        }
    }
    for (key, error) in &solution.pod_errors {
        let outcome = match error {
            PodError::NoPools => OutcomeId::PodNoNodePools,
            PodError::ReservedCapacityPending { .. } => OutcomeId::PodDeferred,
            PodError::Interrupted => OutcomeId::PodNotReached,
            PodError::Pools(_)
            | PodError::Volumes(_)
            | PodError::ResourceClaims
            | PodError::Devices(_) => OutcomeId::PodUnschedulable,
        };
        groups.add(outcome, "", &error.to_string(), std::iter::once(key));
    }
    for (key, reason) in ignored {
        groups.add(
            OutcomeId::PodIgnored,
            "",
            &reason.to_string(),
            std::iter::once(key),
        );
    }
    end_waits(shell, observed, &groups);
    if groups.0.is_empty() {
        return;
    }
    shell.record(Record::ProvisioningRound(ProvisioningRound {
        at: observed.now,
        decision_id: observed.decision_id.clone(),
        pods: groups.into_outcomes(),
        pools: pool_outcomes(observed, solution),
        claims: creations
            .iter()
            .map(|creation| claim_outcome(solution, creation))
            .collect(),
        policies: solution.uses.clone(),
        interrupted: solution.is_interrupted,
    }));
}

/// What came of each pool.
fn pool_outcomes(observed: &Observed, solution: &Solution) -> Vec<PoolOutcome> {
    let mut pools = observed.pool_outcomes.clone();
    let refused = solution.premium.filter(|it| it.is_refused);
    let buys = |pool: &str| solution.claims.iter().any(|it| it.pool == pool);
    for pool in &mut pools {
        if let Some(reason) = solution.pool_errors.get(&pool.pool) {
            pool.outcome = OutcomeId::PoolNoInstanceTypes;
            pool.reason.clone_from(reason);
        } else if let Some(premium) = refused.filter(|_| buys(&pool.pool)) {
            pool.outcome = OutcomeId::PoolPremiumExceeded;
            pool.reason = premium.to_string();
        }
    }
    pools
}

/// Says of each pool that buys that its ranking policy was not followed.
fn publish_premium(shell: &Shell, observed: &Observed, solution: &Solution) {
    let Some(premium) = solution.premium.filter(|it| it.is_refused) else {
        return;
    };
    let pools: BTreeSet<&str> = solution.claims.iter().map(|it| it.pool.as_str()).collect();
    for pool in pools {
        let regarding = references::node_pool(&observed.snapshot, pool);
        let notice = events::premium_exceeded(regarding, &premium.to_string());
        shell.events.publish(notice);
    }
    shell.say(format!("the ranking policy was not followed: {premium}"));
}

fn claim_outcome(solution: &Solution, creation: &Creation<'_>) -> ClaimOutcome {
    let Creation { new, result } = creation;
    let (claim, outcome) = match result {
        Ok(claim) => (claim.name_any(), OutcomeId::ClaimCreated),
        Err(refusal) => (String::new(), refusal.outcome()),
    };
    ClaimOutcome {
        claim,
        pool: new.pool.clone(),
        outcome,
        instance_types: new
            .instance_types
            .iter()
            .take(TYPES_NAMED_MAX)
            .map(str::to_owned)
            .collect(),
        instance_types_total: u32::try_from(new.instance_types.len()).unwrap_or(u32::MAX),
        pods: u32::try_from(new.pods.len()).unwrap_or(u32::MAX),
        coming: u32::try_from(coming(new)).unwrap_or(u32::MAX),
        price_per_hour: new.best.price_per_hour,
        note: solution.notes.get(&new.pool).cloned().unwrap_or_default(),
    }
}

fn end_waits(shell: &Shell, observed: &Observed, groups: &Groups) {
    let mut waits = shell.pod_ledger();
    let histogram = shell
        .metrics
        .pod_decision_seconds
        .get_or_create(&Vec::new());
    for key in groups.0.values().flatten() {
        if let Some(since) = waits.decided(key) {
            histogram.observe(observed.now.duration_since(since).as_secs_f64().max(0.0));
        }
    }
}

/// Pods by what came of them, where they go, and why.
#[derive(Default)]
struct Groups(BTreeMap<(OutcomeId, String, String), Vec<PodKey>>);

impl Groups {
    fn add<'a>(
        &mut self,
        outcome: OutcomeId,
        target: &str,
        reason: &str,
        pods: impl Iterator<Item = &'a PodKey>,
    ) {
        let group = self
            .0
            .entry((outcome, target.to_owned(), reason.to_owned()))
            .or_default();
        group.extend(pods.filter(|it| !is_coming(it)).cloned());
    }

    fn into_outcomes(self) -> Vec<PodGroupOutcome> {
        self.0
            .into_iter()
            .filter(|(_, pods)| !pods.is_empty())
            .map(|((outcome, target, reason), pods)| PodGroupOutcome {
                outcome,
                target,
                reason,
                pods: pods.iter().map(ToString::to_string).collect(),
            })
            .collect()
    }
}
