//! Report of a provisioning pass that is over: metrics, Events of pods, decision lines and the ledger's record, from
//! one walk over what came of each pod. What is logged while it goes on stands in `entries.rs`.
//!
//! Events answer to `pkg/controllers/provisioning/scheduling/events.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use apis::CapacityType;
use jiff::Timestamp;
use kube::ResourceExt;
use planning::provisioning::IgnoredReason;
use scheduling::error::{PodError, PoolCause};
use scheduling::pod::{Pod, PodKey};
use scheduling::solution::{NewClaim, PlanPremium, PodsOnNode};
use state::ledger::{
    ClaimOutcome, OutcomeId, PodGroupOutcome, PoolOutcome, ProvisioningRound, Record,
};
use state::missing_pods::is_coming;

use super::creation::Creation;
use super::undecided_pods::UndecidedPods;
use super::{Decided, Observed};
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::{EventType, KubernetesEvent, RateClass};
use crate::shell::journal::references;
use crate::shell::metrics::labels::{ControllerLabel, Series, ZoneLabel};
use crate::shell::metrics::{Metrics, replace};
use crate::watches::pod_starts::PodStarts;

/// Instance types that a record names.
const TYPES_NAMED_MAX: usize = 10;
/// Time after which an outcome that stays as it is is told again.
const REPEAT: Duration = Duration::from_mins(5);

/// A pass that is over.
pub(super) struct Pass<'a> {
    observed: &'a Observed,
    decided: &'a Decided,
    creations: &'a [Creation<'a>],
    took: Duration,
    outcomes: Vec<PodsOutcome<'a>>,
    /// How long each pod waited that got its first decision.
    waits: Vec<f64>,
}

/// Pods of which the same came.
struct PodsOutcome<'a> {
    outcome: OutcomeId,
    /// Node or claim that they go to.
    target: Option<String>,
    reason: String,
    pods: Vec<&'a PodKey>,
    notice: PodNotice<'a>,
}

/// Events of the pods.
enum PodNotice<'a> {
    /// Where they should go.
    Nominated {
        claim: Option<String>,
        node: Option<&'a str>,
    },
    /// That there is no place, and why.
    Failed,
    /// No Event: it is their own will, or the next pass sees to it.
    Nothing,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        observed: &'a Observed,
        decided: &'a Decided,
        creations: &'a [Creation<'a>],
        took: Duration,
    ) -> Self {
        let outcomes: Vec<_> = placed(observed, decided)
            .chain(creations.iter().map(opened))
            .chain(failed(decided))
            .chain(ignored(decided))
            .collect();
        Self {
            observed,
            decided,
            creations,
            took,
            outcomes,
            waits: Vec::new(),
        }
    }

    /// The pods have their first decision, and wait for it no more; keeps how long they waited.
    pub(super) fn note_first_decisions(&mut self, undecided: &UndecidedPods) {
        let keys = self.outcomes.iter().flat_map(|it| &it.pods);
        let since = keys.filter_map(|key| undecided.decided(key));
        let now = self.observed.now;
        let waits = since.map(|it| now.duration_since(it).as_secs_f64().max(0.0));
        self.waits = waits.collect();
    }

    /// Keeps in mind since when pods have a place, or that they have none.
    pub(super) fn note_places(&self, starts: &PodStarts) {
        for group in &self.outcomes {
            for pod in &group.pods {
                match group.notice {
                    PodNotice::Nominated { .. } => starts.note_place(pod, self.observed.now),
                    PodNotice::Failed => starts.forget_place(pod),
                    PodNotice::Nothing => {}
                }
            }
        }
    }

    /// The ranking policy's plan that was not followed as it cost too much.
    fn refused_premium(&self) -> Option<PlanPremium> {
        self.decided.solution.premium.filter(|it| it.is_refused)
    }

    /// Pods by what came of them, where they go, and why.
    fn groups(&self) -> Vec<PodGroupOutcome> {
        let mut groups: BTreeMap<(OutcomeId, Option<&str>, &str), Vec<String>> = BTreeMap::new();
        for group in self.outcomes.iter().filter(|it| !it.pods.is_empty()) {
            let pods = group.pods.iter().map(ToString::to_string);
            groups
                .entry((group.outcome, group.target.as_deref(), &group.reason))
                .or_default()
                .extend(pods);
        }
        let groups = groups.into_iter();
        groups
            .map(|((outcome, target, reason), pods)| PodGroupOutcome {
                outcome,
                target: target.unwrap_or_default().to_owned(),
                reason: reason.to_owned(),
                pods,
            })
            .collect()
    }

    /// Outcome of each pool.
    fn pools(&self) -> Vec<PoolOutcome> {
        let solution = &self.decided.solution;
        let mut pools = self.decided.pools.clone();
        let refused = self.refused_premium();
        let buys = |pool: &str| solution.claims.iter().any(|it| it.pool == pool);
        for pool in &mut pools {
            if let Some(reason) = solution.pool_errors.get(&pool.pool) {
                pool.outcome = OutcomeId::PoolNoInstanceTypes;
                pool.reason.clone_from(reason);
            } else if let Some(reason) = self.limit_reached(&pool.pool) {
                pool.outcome = OutcomeId::PoolLimitReached;
                pool.reason = reason;
            } else if let Some(premium) = refused.filter(|_| buys(&pool.pool)) {
                pool.outcome = OutcomeId::PoolPremiumExceeded;
                pool.reason = premium.to_string();
            }
        }
        pools
    }

    /// The limit of a pool for which a claim was not created, or that is all that keeps pods out of the pool.
    fn limit_reached(&self, pool: &str) -> Option<String> {
        let refusals = self.creations.iter().filter(|it| it.new.pool == pool);
        let mut refusals = refusals.filter_map(|it| it.result.as_ref().err());
        let refusal = refusals.find(|it| it.outcome() == OutcomeId::ClaimLimitExceeded);
        if let Some(refusal) = refusal {
            return Some(refusal.to_string());
        }
        let mut causes = self.decided.solution.pod_errors.values().flat_map(|error| {
            let failures = error.pool_failures().iter().filter(|it| it.pool == pool);
            failures.map(|it| &it.cause)
        });
        // Types that would do but for the limits are left out by them.
        let is_limit = |it: &&PoolCause| {
            matches!(it, PoolCause::Limit { .. } | PoolCause::NodeLimit)
                || matches!(it, PoolCause::NoInstanceType(counts) if counts.by_limits > 0)
        };
        let first = causes.next().filter(is_limit)?;
        causes.all(|it| is_limit(&it)).then(|| first.to_string())
    }

    fn claim(&self, creation: &Creation<'_>) -> ClaimOutcome {
        let Creation { new, result } = creation;
        let (claim, outcome) = match result {
            Ok(claim) => (claim.name_any(), OutcomeId::ClaimCreated),
            Err(refusal) => (String::new(), refusal.outcome()),
        };
        let types = new.instance_types.iter();
        let note = self.decided.solution.notes.get(&new.pool);
        ClaimOutcome {
            claim,
            pool: new.pool.clone(),
            outcome,
            instance_types: types.take(TYPES_NAMED_MAX).map(str::to_owned).collect(),
            instance_types_total: u32::try_from(new.instance_types.len()).unwrap_or(u32::MAX),
            pods: u32::try_from(new.pods.len()).unwrap_or(u32::MAX),
            coming: u32::try_from(coming(new)).unwrap_or(u32::MAX),
            price_per_hour: new.best.price_per_hour,
            note: note.cloned().unwrap_or_default(),
        }
    }

    /// Says of each pool that asks for what nobody sells that it can buy nothing.
    fn no_types_notices(&self) -> impl Iterator<Item = KubernetesEvent> {
        let pools = self.decided.solution.pool_errors.keys();
        pools.map(|pool| {
            let regarding = references::node_pool(&self.observed.snapshot, pool);
            let message =
                "NodePool requirements filtered out all compatible available instance types";
            let reason = "NoCompatibleInstanceTypes";
            let notice = KubernetesEvent::new(regarding, EventType::Warning, reason, message);
            notice.at_most_every(Duration::from_mins(1))
        })
    }

    /// Says of each pool that buys that its ranking policy was not followed.
    fn premium_notices(&self) -> Vec<KubernetesEvent> {
        let Some(premium) = self.refused_premium() else {
            return Vec::new();
        };
        let claims = self.decided.solution.claims.iter();
        let pools: BTreeSet<&str> = claims.map(|it| it.pool.as_str()).collect();
        let notices = pools.into_iter().map(|pool| {
            let regarding = references::node_pool(&self.observed.snapshot, pool);
            let message = format!("Ranking policy not followed, {premium}");
            let reason = "PolicyPremiumExceeded";
            KubernetesEvent::new(regarding, EventType::Warning, reason, message)
                .at_most_every(REPEAT)
        });
        notices.collect()
    }
}

impl JournalEntry for Pass<'_> {
    type Subject = ();

    fn events(&self, (): &()) -> Vec<KubernetesEvent> {
        let mut notices = self.premium_notices();
        notices.extend(self.no_types_notices());
        for group in &self.outcomes {
            let pods = group.pods.iter();
            let pods = pods.filter_map(|key| self.observed.snapshot.pod(key));
            match &group.notice {
                PodNotice::Nominated { claim, node } => {
                    notices.extend(pods.map(|pod| nominated(pod, claim.as_deref(), *node)));
                }
                PodNotice::Failed => {
                    notices.extend(pods.map(|pod| failed_scheduling(pod, &group.reason)));
                }
                PodNotice::Nothing => {}
            }
        }
        notices
    }

    fn measure(&self, (): &(), metrics: &Metrics) {
        let controller = ControllerLabel(super::Provisioner::NAME);
        let zones = self.decided.zones.iter().map(|(zone, pods)| {
            let labels = (controller.clone(), ZoneLabel(zone.clone()));
            (labels, count(*pods))
        });
        replace(&metrics.pending_pods_by_zone, zones);
        let series = Series(controller.clone());
        let seconds = &metrics.scheduling_seconds;
        seconds
            .get_or_create(&series)
            .observe(self.took.as_secs_f64());
        let ignored = self.decided.ignored.len();
        metrics
            .ignored_pods
            .get_or_create(&Series(()))
            .set(count(ignored));
        let failed = self.decided.solution.pod_errors.values();
        let failed = failed.filter(|error| !is_deferral(error)).count();
        metrics
            .unschedulable_pods
            .get_or_create(&series)
            .set(count(failed));
        let histogram = metrics.pod_decision_seconds.get_or_create(&Series(()));
        for wait in &self.waits {
            histogram.observe(*wait);
        }
    }

    fn lines(&self, (): &()) -> Vec<String> {
        let premium = self.refused_premium();
        let premium = premium.map(|it| format!("the ranking policy was not followed: {it}"));
        let opened = self.creations.iter().map(creation_line);
        premium
            .into_iter()
            .chain(opened)
            .chain(no_place_lines(self.decided))
            .collect()
    }

    fn record(&self, (): &(), _at: Timestamp) -> Option<Record> {
        if self.outcomes.is_empty() {
            return None;
        }
        let (observed, solution) = (self.observed, &self.decided.solution);
        Some(Record::ProvisioningRound(ProvisioningRound {
            at: observed.now,
            decision_id: observed.decision_id.clone(),
            pods: self.groups(),
            pools: self.pools(),
            claims: self.creations.iter().map(|it| self.claim(it)).collect(),
            policies: solution.uses.clone(),
            interrupted: solution.is_interrupted,
        }))
    }
}

/// Pods that go to nodes that are there or on their way.
fn placed<'a>(
    observed: &'a Observed,
    decided: &'a Decided,
) -> impl Iterator<Item = PodsOutcome<'a>> {
    decided.solution.existing.iter().map(|it| {
        let PodsOnNode { node, pods } = it;
        let known = observed.snapshot.find(node);
        let claim = known.and_then(|it| it.claim_name());
        PodsOutcome {
            outcome: OutcomeId::PodOnExistingNode,
            target: Some(node.to_string()),
            reason: String::new(),
            pods: present(pods),
            notice: PodNotice::Nominated {
                claim: claim.map(str::to_owned),
                node: Some(node.name()),
            },
        }
    })
}

/// Pods for which a claim was to be made.
fn opened<'a>(Creation { new, result }: &'a Creation<'_>) -> PodsOutcome<'a> {
    let pods = present(&new.pods);
    match result {
        Ok(claim) => PodsOutcome {
            outcome: OutcomeId::PodOnNewClaim,
            target: Some(claim.name_any()),
            reason: String::new(),
            pods,
            notice: PodNotice::Nominated {
                claim: Some(claim.name_any()),
                node: None,
            },
        },
        Err(refusal) => PodsOutcome {
            outcome: OutcomeId::PodUnschedulable,
            target: None,
            reason: refusal.to_string(),
            pods,
            notice: PodNotice::Failed,
        },
    }
}

/// Pods for which there is no place.
fn failed(decided: &Decided) -> impl Iterator<Item = PodsOutcome<'_>> {
    let errors = decided.solution.pod_errors.iter();
    errors.map(|(key, error)| PodsOutcome {
        outcome: match error {
            PodError::NoPools => OutcomeId::PodNoNodePools,
            PodError::ReservedCapacityPending { .. } => OutcomeId::PodDeferred,
            PodError::Interrupted => OutcomeId::PodNotReached,
            PodError::Pools(_)
            | PodError::Volumes(_)
            | PodError::ResourceClaims
            | PodError::Devices(_) => OutcomeId::PodUnschedulable,
        },
        target: None,
        reason: error.to_string(),
        pods: present(std::slice::from_ref(key)),
        notice: if is_deferral(error) {
            PodNotice::Nothing
        } else {
            PodNotice::Failed
        },
    })
}

/// Pods that were not looked at.
fn ignored(decided: &Decided) -> impl Iterator<Item = PodsOutcome<'_>> {
    decided.ignored.iter().map(|(key, reason)| PodsOutcome {
        outcome: OutcomeId::PodIgnored,
        target: None,
        reason: reason.to_string(),
        pods: present(std::slice::from_ref(key)),
        notice: if *reason == IgnoredReason::OptsOut {
            PodNotice::Nothing
        } else {
            PodNotice::Failed
        },
    })
}

/// The pods that are there: nothing is told of those about to be created.
fn present(pods: &[PodKey]) -> Vec<&PodKey> {
    pods.iter().filter(|it| !is_coming(it)).collect()
}

fn nominated(pod: &Pod, claim: Option<&str>, node: Option<&str>) -> KubernetesEvent {
    let claim = claim.map(|name| format!("nodeclaim/{name}"));
    let node = node.map(|name| format!("node/{name}"));
    let target: Vec<String> = [claim, node].into_iter().flatten().collect();
    let message = format!("Pod should schedule on: {}", target.join(", "));
    let regarding = references::pod(&pod.key, &pod.uid);
    KubernetesEvent::new(regarding, EventType::Normal, "Nominated", message)
        .limited_by(RateClass::Nomination)
}

fn failed_scheduling(pod: &Pod, why: &str) -> KubernetesEvent {
    let message = format!("Failed to schedule pod, {why}");
    let regarding = references::pod(&pod.key, &pod.uid);
    KubernetesEvent::new(regarding, EventType::Warning, "FailedScheduling", message)
        .at_most_every(REPEAT)
}

fn count(number: usize) -> f64 {
    number as f64
}

fn is_deferral(error: &PodError) -> bool {
    matches!(error, PodError::ReservedCapacityPending { .. })
}

fn creation_line(Creation { new, result }: &Creation<'_>) -> String {
    match result {
        Ok(claim) => opened_line(new, &claim.name_any()),
        Err(refusal) => format!("could not open a node in {}: {refusal}", new.pool),
    }
}

fn opened_line(new: &NewClaim, claim: &str) -> String {
    let best = &new.best;
    let runner_up = best.runner_up.as_ref().map_or_else(String::new, |it| {
        let (name, cost) = (&it.instance_type, it.effective_cost_per_hour);
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
        CapacityType::word(best.capacity_type),
        best.zone.as_deref().unwrap_or_default(),
        best.price_per_hour,
        new.instance_types.len(),
    )
}

/// How many of its pods are about to be created.
fn coming(new: &NewClaim) -> usize {
    new.pods.iter().filter(|it| is_coming(it)).count()
}

/// One line for each reason for which there is no place.
fn no_place_lines(decided: &Decided) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<&PodKey>> = BTreeMap::new();
    for (key, error) in &decided.solution.pod_errors {
        reasons.entry(error.to_string()).or_default().push(key);
    }
    let line = |(reason, pods): (String, Vec<&PodKey>)| {
        let first = pods.first().map(ToString::to_string).unwrap_or_default();
        let others = match pods.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("no place for {first}{others}: {reason}")
    };
    reasons.into_iter().map(line).collect()
}
