//! Journal entries of a NodeClaim's life: who is told, and in which words.
//!
//! Events answer to `pkg/controllers/nodeclaim/lifecycle/events.go` and its neighbours, log lines and metrics to the
//! controllers of `pkg/controllers/nodeclaim`. Reboots have their own, `reboot/entries.rs`.

use std::collections::BTreeMap;

use apis::{GoDuration, NodeClaim, ProviderId, labels};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{Resource, ResourceExt};
use scheduling::ranking::RankedLaunch;
use state::ledger::{OutcomeId, Record};
use tracing::field::{DisplayValue, display};
use tracing::{error, info};

use crate::node_claim::NodeClaimExt;
use crate::node_claim::counts::{
    capacity_type, count_disrupted, count_unhealthy_disrupted, nodepool,
};
use crate::node_claim::launch::failure::LaunchFailure;
use crate::node_claim::launch_record::{launch_record, with_policy};
use crate::node_claim::liveness::TimeLimit;
use crate::shell::journal::JournalEntry;
use crate::shell::log_values::{AsJson, FirstFew};
use crate::shell::metrics::Metrics;
use crate::shell::recorder::{EventType, KubernetesEvent, RateClass, shorten};

const ERROR_BYTES_MAX: usize = 1024;

/// Something in the life of a claim.
#[derive(Debug)]
pub(crate) enum ClaimEntry<'a> {
    /// It was created, for one of Karpenter's reasons; where no round of decisions has it, the ledger gets another.
    Created {
        reason: &'a str,
        record: Option<&'a str>,
    },
    /// It is there only because pods did not go where they were planned.
    OffPlan { price_per_hour: f64 },
    /// The cloud has its instance.
    Launched { ranked: &'a RankedLaunch },
    /// The launch failed and will be tried again.
    LaunchFailed {
        message: &'a str,
        ranked: &'a RankedLaunch,
    },
    /// The launch failed for good and the claim went; these pods still wait for a node.
    LaunchGivenUp {
        cause: LaunchFailure,
        message: &'a str,
        ranked: &'a RankedLaunch,
        pods: Vec<ObjectReference>,
    },
    /// It went while its instance was launched.
    GoneMeanwhile { provider_id: &'a ProviderId },
    /// Its node came without the taint that keeps pods away until it is registered.
    UnregisteredTaintMissing { node: &'a str },
    /// Its node joined the cluster.
    Registered { node: &'a str },
    /// Its node takes pods.
    Initialized { node: &'a str },
    /// A disruption command waits for its node to take pods.
    AwaitedByCommand,
    /// It took too long, and went.
    TimedOut(TimeLimit),
    /// Its node is smaller than it was told to be.
    Inconsistent { issue: &'a str },
    /// It is not any more what it would be if it were made now.
    Drifted { why: &'a str },
    /// It reached its expiry.
    Expired,
    /// Its instance is gone.
    InstanceLost,
    /// One more than the static pool needs.
    Surplus { pool: &'a str },
    /// Its node was sick, and it went; the bound is the repair policy's on the drain.
    Repaired {
        node: &'a str,
        condition: &'a str,
        bound: Option<GoDuration>,
    },
    /// By then its node must be gone.
    DeadlineSet { deadline: &'a str },
    /// The cloud took so long to end the instance.
    InstanceTerminated { took: SignedDuration },
    /// Our finalizer is off; it was deleted so long ago.
    Released { took: Option<SignedDuration> },
}

/// What pods can have of its node, for a log line.
fn allocatable(claim: &NodeClaim) -> Option<DisplayValue<AsJson<&BTreeMap<String, Quantity>>>> {
    let status = claim.status.as_ref()?;
    Some(display(AsJson(&status.allocatable)))
}

impl JournalEntry for ClaimEntry<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let name = claim.name_any();
        let id = claim.provider_id();
        let provider_id = id.as_ref().map(ProviderId::as_str);
        match self {
            Self::Created { reason, .. } => {
                let asked = claim.spec.requirements.iter();
                let types = asked.filter(|it| it.key == labels::INSTANCE_TYPE);
                let types = FirstFew(types.flat_map(|it| &it.values));
                info!(
                    NodePool = %claim.pool_name().unwrap_or_default(),
                    NodeClaim = %name,
                    reason,
                    requests = %AsJson(&claim.spec.resources.requests),
                    instance_types = %types,
                    "created nodeclaim"
                );
            }
            Self::Launched { .. } => {
                let [instance_type, zone, capacity_type] = [
                    labels::INSTANCE_TYPE,
                    labels::TOPOLOGY_ZONE,
                    labels::CAPACITY_TYPE,
                ]
                .map(|key| claim.label(key).unwrap_or_default());
                info!(
                    NodeClaim = %name,
                    provider_id,
                    instance_type,
                    zone,
                    capacity_type,
                    allocatable = allocatable(claim),
                    "launched nodeclaim"
                );
            }
            Self::LaunchGivenUp { message, .. } => {
                error!(NodeClaim = %name, error = %message, "failed launching nodeclaim");
            }
            Self::GoneMeanwhile { provider_id } => {
                info!(NodeClaim = %name, %provider_id, "the claim went while its instance was launched");
            }
            Self::UnregisteredTaintMissing { node } => {
                error!(NodeClaim = %name, Node = %node, "missing required startup taint, karpenter.sh/unregistered");
            }
            Self::Registered { node } => {
                info!(NodeClaim = %name, Node = %node, provider_id, "registered nodeclaim");
            }
            Self::Initialized { node } => {
                info!(
                    NodeClaim = %name,
                    Node = %node,
                    provider_id,
                    allocatable = allocatable(claim),
                    "initialized nodeclaim"
                );
            }
            Self::OffPlan { .. }
            | Self::LaunchFailed { .. }
            | Self::AwaitedByCommand
            | Self::TimedOut(_)
            | Self::Inconsistent { .. }
            | Self::Drifted { .. }
            | Self::Expired
            | Self::InstanceLost
            | Self::Surplus { .. }
            | Self::Repaired { .. }
            | Self::DeadlineSet { .. }
            | Self::InstanceTerminated { .. }
            | Self::Released { .. } => self.log_of_its_end(claim),
        }
    }

    fn events(&self, claim: &NodeClaim) -> Vec<KubernetesEvent> {
        use EventType::{Normal, Warning};
        let notice = |kind, reason, message: String| {
            vec![KubernetesEvent::new(
                claim.object_ref(&()),
                kind,
                reason,
                message,
            )]
        };
        match self {
            Self::Launched { ranked } if ranked.above_premium.is_some() => {
                let message = format!(
                    "Ranking policy not followed in full, {}",
                    dropped_above_premium(ranked)
                );
                notice(Warning, "PolicyPremiumExceeded", message)
            }
            Self::LaunchGivenUp {
                cause: LaunchFailure::InsufficientCapacity,
                message,
                pods,
                ..
            } => insufficient_capacity(claim, message, pods),
            Self::LaunchGivenUp {
                cause: LaunchFailure::NodeClassNotReady,
                message,
                ..
            } => {
                let message = shorten(message, ERROR_BYTES_MAX);
                let message = format!("NodeClaim {} event: {message}", claim.name_any());
                notice(Warning, "NodeClassNotReady", message)
            }
            Self::UnregisteredTaintMissing { .. } => {
                let message = "Missing karpenter.sh/unregistered taint which prevents registration related race \
                               conditions on Karpenter-managed nodes";
                notice(Warning, "UnregisteredTaintMissing", message.to_owned())
            }
            Self::AwaitedByCommand => {
                let message = "Waiting on readiness to continue disruption";
                let reason = "DisruptionWaitingReadiness";
                notice(Normal, reason, message.to_owned())
            }
            Self::DeadlineSet { deadline } => {
                let message = format!("All pods will be deleted by {deadline}");
                notice(Warning, "TerminationGracePeriodExpiring", message)
            }
            Self::Inconsistent { issue } => {
                let notices = notice(Warning, "FailedConsistencyCheck", (*issue).to_owned());
                let notices = notices.into_iter();
                notices.map(|it| it.distinct_by(issue)).collect()
            }
            Self::Created { .. }
            | Self::OffPlan { .. }
            | Self::Launched { .. }
            | Self::LaunchFailed { .. }
            | Self::GoneMeanwhile { .. }
            | Self::Registered { .. }
            | Self::Initialized { .. }
            | Self::TimedOut(_)
            | Self::Drifted { .. }
            | Self::Expired
            | Self::InstanceLost
            | Self::Surplus { .. }
            | Self::Repaired { .. }
            | Self::InstanceTerminated { .. }
            | Self::Released { .. } => Vec::new(),
        }
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        match self {
            Self::Created { reason, .. } => created(metrics, claim, reason),
            Self::OffPlan { price_per_hour } => {
                metrics.node_claims_off_plan.inc();
                metrics.off_plan_usd_per_hour.inc_by(*price_per_hour);
            }
            Self::LaunchGivenUp { cause, .. } => {
                count_disrupted(metrics, claim, cause.metric_reason(), None);
            }
            Self::Registered { .. } => {
                let labels = vec![nodepool(claim), zone(claim)];
                metrics.nodes_created.get_or_create(&labels).inc();
            }
            Self::TimedOut(limit) => count_disrupted(metrics, claim, limit.metric_reason(), None),
            Self::Expired => count_disrupted(metrics, claim, "expired", None),
            Self::InstanceLost => count_disrupted(metrics, claim, "garbage_collected", None),
            Self::Repaired {
                condition, bound, ..
            } => {
                count_disrupted(metrics, claim, "unhealthy", None);
                count_unhealthy_disrupted(metrics, claim, condition, *bound);
            }
            Self::InstanceTerminated { took } => {
                let seconds = &metrics.instance_termination_seconds;
                let labels = vec![nodepool(claim)];
                seconds.get_or_create(&labels).observe(took.as_secs_f64());
            }
            Self::Released { took } => released(metrics, claim, *took),
            Self::Launched { .. }
            | Self::LaunchFailed { .. }
            | Self::GoneMeanwhile { .. }
            | Self::UnregisteredTaintMissing { .. }
            | Self::Initialized { .. }
            | Self::AwaitedByCommand
            | Self::Inconsistent { .. }
            | Self::Drifted { .. }
            | Self::Surplus { .. }
            | Self::DeadlineSet { .. } => {}
        }
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        let name = claim.name_any();
        let line = match self {
            Self::Launched { .. } => format!("launched {} for {name}", claim.instance_text()),
            Self::LaunchGivenUp { message, .. } => format!("could not launch {name}: {message}"),
            Self::Initialized { node } => {
                format!("node {node} is ready ({})", claim.instance_text())
            }
            Self::TimedOut(limit) => {
                format!("gave up {name}: did not {} in time", limit.verb())
            }
            Self::Drifted { why } => format!("{name} drifted: {why}"),
            Self::Expired => format!("{name} reached its expiry"),
            Self::InstanceLost => format!("{name} has lost its instance"),
            Self::Surplus { pool } => format!("{name} is one more than {pool} needs"),
            Self::Created { .. }
            | Self::OffPlan { .. }
            | Self::LaunchFailed { .. }
            | Self::GoneMeanwhile { .. }
            | Self::UnregisteredTaintMissing { .. }
            | Self::Registered { .. }
            | Self::AwaitedByCommand
            | Self::Inconsistent { .. }
            | Self::Repaired { .. }
            | Self::DeadlineSet { .. }
            | Self::InstanceTerminated { .. }
            | Self::Released { .. } => return Vec::new(),
        };
        vec![line]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        let unranked = RankedLaunch::default();
        let (outcome, reason, ranked): (OutcomeId, String, &RankedLaunch) = match self {
            Self::Created {
                record: Some(reason),
                ..
            } => (OutcomeId::ClaimCreated, (*reason).to_owned(), &unranked),
            Self::Launched { ranked } => {
                let reason = with_policy(&dropped_above_premium(ranked), ranked);
                (OutcomeId::ClaimLaunched, reason, *ranked)
            }
            Self::LaunchFailed { message, ranked } => {
                let reason = with_policy(message, ranked);
                (OutcomeId::ClaimLaunchFailed, reason, *ranked)
            }
            Self::LaunchGivenUp {
                cause,
                message,
                ranked,
                ..
            } => (cause.outcome(), with_policy(message, ranked), *ranked),
            Self::Repaired { condition, .. } => {
                let outcome = OutcomeId::ClaimRepaired;
                (outcome, (*condition).to_owned(), &unranked)
            }
            Self::Created { record: None, .. }
            | Self::OffPlan { .. }
            | Self::GoneMeanwhile { .. }
            | Self::UnregisteredTaintMissing { .. }
            | Self::Registered { .. }
            | Self::Initialized { .. }
            | Self::AwaitedByCommand
            | Self::TimedOut(_)
            | Self::Inconsistent { .. }
            | Self::Drifted { .. }
            | Self::Expired
            | Self::InstanceLost
            | Self::Surplus { .. }
            | Self::DeadlineSet { .. }
            | Self::InstanceTerminated { .. }
            | Self::Released { .. } => (self.plain_outcome()?, String::new(), &unranked),
        };
        Some(launch_record(claim, at, outcome, &reason, ranked))
    }
}

impl ClaimEntry<'_> {
    /// Log lines of claims that go.
    fn log_of_its_end(&self, claim: &NodeClaim) {
        let name = claim.name_any();
        let id = claim.provider_id();
        let provider_id = id.as_ref().map(ProviderId::as_str);
        match self {
            Self::TimedOut(limit) => {
                let reason = limit.metric_reason();
                info!(NodeClaim = %name, reason, "terminating due to liveness");
            }
            Self::Inconsistent { issue } => {
                error!(NodeClaim = %name, error = %issue, "consistency error");
            }
            Self::Expired => info!(NodeClaim = %name, "expired nodeclaim"),
            Self::InstanceLost => {
                info!(NodeClaim = %name, provider_id, "garbage collecting nodeclaim with no cloudprovider representation");
            }
            Self::Surplus { pool } => {
                info!(NodePool = %pool, NodeClaim = %name, "deleted nodeclaim beyond replicas");
            }
            Self::Repaired {
                node, condition, ..
            } => {
                info!(NodeClaim = %name, Node = %node, condition, "deleted unhealthy node");
            }
            Self::DeadlineSet { deadline } => {
                info!(NodeClaim = %name, deadline, "annotated nodeclaim");
            }
            Self::Released { .. } => info!(NodeClaim = %name, provider_id, "deleted nodeclaim"),
            Self::Created { .. }
            | Self::OffPlan { .. }
            | Self::Launched { .. }
            | Self::LaunchFailed { .. }
            | Self::LaunchGivenUp { .. }
            | Self::GoneMeanwhile { .. }
            | Self::UnregisteredTaintMissing { .. }
            | Self::Registered { .. }
            | Self::Initialized { .. }
            | Self::AwaitedByCommand
            | Self::Drifted { .. }
            | Self::InstanceTerminated { .. } => {}
        }
    }

    /// The outcome of an entry whose record needs no reason.
    fn plain_outcome(&self) -> Option<OutcomeId> {
        Some(match self {
            Self::Registered { .. } => OutcomeId::ClaimRegistered,
            Self::Initialized { .. } => OutcomeId::ClaimInitialized,
            Self::TimedOut(limit) => limit.outcome(),
            Self::Expired => OutcomeId::ClaimExpired,
            Self::InstanceLost => OutcomeId::ClaimGarbageCollected,
            Self::Surplus { .. } => OutcomeId::ClaimSurplus,
            Self::Created { .. }
            | Self::OffPlan { .. }
            | Self::Launched { .. }
            | Self::LaunchFailed { .. }
            | Self::LaunchGivenUp { .. }
            | Self::GoneMeanwhile { .. }
            | Self::UnregisteredTaintMissing { .. }
            | Self::AwaitedByCommand
            | Self::Inconsistent { .. }
            | Self::Drifted { .. }
            | Self::Repaired { .. }
            | Self::DeadlineSet { .. }
            | Self::InstanceTerminated { .. }
            | Self::Released { .. } => return None,
        })
    }
}

fn zone(claim: &NodeClaim) -> (&'static str, String) {
    let zone = claim.label(labels::TOPOLOGY_ZONE);
    ("zone", zone.unwrap_or_default().to_owned())
}

/// What the policy's order would have cost too much for, or nothing.
fn dropped_above_premium(ranked: &RankedLaunch) -> String {
    let dropped = ranked.above_premium.map(|(offerings, bound)| {
        format!("{offerings} offerings dropped that cost more than {bound} above the cheapest")
    });
    dropped.unwrap_or_default()
}

/// For the claim, and for the pods that it was made for.
fn insufficient_capacity(
    claim: &NodeClaim,
    error: &str,
    pods: &[ObjectReference],
) -> Vec<KubernetesEvent> {
    let error = shorten(error, ERROR_BYTES_MAX);
    let message = format!("NodeClaim {} event: {error}", claim.name_any());
    let notice = |regarding| {
        let reason = "InsufficientCapacityError";
        KubernetesEvent::new(regarding, EventType::Warning, reason, message.clone())
    };
    let pods = pods.iter().cloned();
    let pods = pods.map(|it| notice(it).limited_by(RateClass::NoCapacity));
    std::iter::once(notice(claim.object_ref(&())))
        .chain(pods)
        .collect()
}

fn created(metrics: &Metrics, claim: &NodeClaim, reason: &str) {
    let relaxed = claim
        .annotations()
        .get(labels::NODECLAIM_MIN_VALUES_RELAXED_ANNOTATION);
    let relaxed = relaxed.map_or("false", String::as_str);
    let labels = vec![
        ("reason", reason.to_owned()),
        nodepool(claim),
        ("min_values_relaxed", relaxed.to_owned()),
    ];
    metrics.node_claims_created.get_or_create(&labels).inc();
}

fn released(metrics: &Metrics, claim: &NodeClaim, took: Option<SignedDuration>) {
    if let Some(took) = took {
        let seconds = &metrics.node_claim_termination_seconds;
        let labels = vec![nodepool(claim)];
        seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }
    let labels = vec![nodepool(claim), capacity_type(claim), zone(claim)];
    metrics.node_claims_terminated.get_or_create(&labels).inc();
}
