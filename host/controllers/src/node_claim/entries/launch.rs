//! Journal entries of a NodeClaim on its way to an instance.
//!
//! Events answer to `InsufficientCapacityErrorEvent` and its neighbours in Karpenter's `lifecycle/events.go`.

use apis::{NodeClaim, ProviderId, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};
use scheduling::ranking::{AbovePremium, RankedLaunch};
use state::ledger::{OutcomeId, Record};
use tracing::{error, info};

use super::running::allocatable;
use crate::node_claim::counts::{count_disrupted, nodepool};
use crate::node_claim::launch_record::{launch_record, plain_record, unranked_record, with_policy};
use crate::node_claim::lifecycle::launch::failure::LaunchFailure;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::log_values::{AsJson, FirstFew};
use crate::shell::journal::recorder::{EventType, KubernetesEvent, RateClass, shorten};
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{MinValuesRelaxedLabel, ReasonLabel, Series};

const ERROR_BYTES_MAX: usize = 1024;

/// The claim was created; where no round of decisions has it, the ledger gets a reason of its own.
#[derive(Debug)]
pub(crate) struct ClaimCreated<'a> {
    pub(crate) reason: &'a str,
    pub(crate) record: Option<&'a str>,
}

impl JournalEntry for ClaimCreated<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let asked = claim.spec.requirements.iter();
        let types = asked.filter(|it| it.key == labels::INSTANCE_TYPE);
        let types = FirstFew(types.flat_map(|it| &it.values));
        info!(
            NodePool = %claim.pool_name().unwrap_or_default(),
            NodeClaim = %claim.name_any(),
            reason = self.reason,
            requests = %AsJson(&claim.spec.resources.requests),
            instance_types = %types,
            "created nodeclaim"
        );
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        let relaxed = claim
            .annotations()
            .get(labels::NODECLAIM_MIN_VALUES_RELAXED_ANNOTATION);
        let relaxed = relaxed.map_or("false", String::as_str);
        let series = Series((
            ReasonLabel(self.reason.to_owned()),
            nodepool(claim),
            MinValuesRelaxedLabel(relaxed.to_owned()),
        ));
        metrics.node_claims_created.get_or_create(&series).inc();
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        let (outcome, reason) = (OutcomeId::ClaimCreated, self.record?);
        Some(unranked_record(claim, at, outcome, reason))
    }
}

/// The claim is there only because pods did not go where they were planned.
#[derive(Debug)]
pub(crate) struct ClaimOffPlan {
    pub(crate) price_per_hour: f64,
}

impl JournalEntry for ClaimOffPlan {
    type Subject = NodeClaim;

    fn measure(&self, _claim: &NodeClaim, metrics: &Metrics) {
        metrics.node_claims_off_plan.inc();
        metrics.off_plan_usd_per_hour.inc_by(self.price_per_hour);
    }
}

/// The cloud has the claim's instance.
#[derive(Debug)]
pub(crate) struct ClaimLaunched<'a> {
    pub(crate) ranked: &'a RankedLaunch,
}

impl JournalEntry for ClaimLaunched<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let [instance_type, zone, capacity_type] = [
            labels::INSTANCE_TYPE,
            labels::TOPOLOGY_ZONE,
            labels::CAPACITY_TYPE,
        ]
        .map(|key| claim.label(key).unwrap_or_default());
        info!(
            NodeClaim = %claim.name_any(),
            provider_id = claim.provider_id().map(display),
            instance_type,
            zone,
            capacity_type,
            allocatable = allocatable(claim),
            "launched nodeclaim"
        );
    }

    fn events(&self, claim: &NodeClaim) -> Vec<KubernetesEvent> {
        if self.ranked.above_premium.is_none() {
            return Vec::new();
        }
        let message = format!(
            "Ranking policy not followed in full, {}",
            dropped_above_premium(self.ranked)
        );
        let (kind, reason) = (EventType::Warning, "PolicyPremiumExceeded");
        vec![KubernetesEvent::about(claim, kind, reason, message)]
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        let (instance, name) = (claim.instance_text(), claim.name_any());
        vec![format!("launched {instance} for {name}")]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        let reason = with_policy(&dropped_above_premium(self.ranked), self.ranked);
        let outcome = OutcomeId::ClaimLaunched;
        Some(launch_record(claim, at, outcome, &reason, self.ranked))
    }
}

/// The launch failed and will be tried again.
#[derive(Debug)]
pub(crate) struct LaunchFailed<'a> {
    pub(crate) message: &'a str,
    pub(crate) ranked: &'a RankedLaunch,
}

impl JournalEntry for LaunchFailed<'_> {
    type Subject = NodeClaim;

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        let reason = with_policy(self.message, self.ranked);
        let outcome = OutcomeId::ClaimLaunchFailed;
        Some(launch_record(claim, at, outcome, &reason, self.ranked))
    }
}

/// The launch failed for good and the claim went; these pods still wait for a node.
#[derive(Debug)]
pub(crate) struct LaunchGivenUp<'a> {
    pub(crate) cause: LaunchFailure,
    pub(crate) message: &'a str,
    pub(crate) ranked: &'a RankedLaunch,
    pub(crate) pods: Vec<ObjectReference>,
}

impl JournalEntry for LaunchGivenUp<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let (name, error) = (claim.name_any(), self.message);
        error!(NodeClaim = %name, %error, "failed launching nodeclaim");
    }

    fn events(&self, claim: &NodeClaim) -> Vec<KubernetesEvent> {
        let error = shorten(self.message, ERROR_BYTES_MAX);
        let message = format!("NodeClaim {} event: {error}", claim.name_any());
        let reason = match self.cause {
            LaunchFailure::InsufficientCapacity => "InsufficientCapacityError",
            LaunchFailure::NodeClassNotReady => "NodeClassNotReady",
        };
        let event = |regarding| {
            KubernetesEvent::new(regarding, EventType::Warning, reason, message.clone())
        };
        let pods = self.pods.iter().cloned();
        let pods = pods.map(|it| event(it).limited_by(RateClass::NoCapacity));
        std::iter::once(event(claim.object_ref(&())))
            .chain(pods)
            .collect()
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        count_disrupted(metrics, claim, self.cause.metric_reason(), None);
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        let (name, message) = (claim.name_any(), self.message);
        vec![format!("could not launch {name}: {message}")]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        let (outcome, reason) = (self.cause.outcome(), with_policy(self.message, self.ranked));
        Some(launch_record(claim, at, outcome, &reason, self.ranked))
    }
}

/// The claim went while its instance was launched.
#[derive(Debug)]
pub(crate) struct ClaimGoneMeanwhile<'a> {
    pub(crate) provider_id: &'a ProviderId,
}

impl JournalEntry for ClaimGoneMeanwhile<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let (name, provider_id) = (claim.name_any(), self.provider_id);
        info!(NodeClaim = %name, %provider_id, "the claim went while its instance was launched");
    }
}

/// One more claim than the static pool needs.
#[derive(Debug)]
pub(crate) struct ClaimSurplus<'a> {
    pub(crate) pool: &'a str,
}

impl JournalEntry for ClaimSurplus<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let (name, pool) = (claim.name_any(), self.pool);
        info!(NodePool = %pool, NodeClaim = %name, "deleted nodeclaim beyond replicas");
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        let (name, pool) = (claim.name_any(), self.pool);
        vec![format!("{name} is one more than {pool} needs")]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        Some(plain_record(claim, at, OutcomeId::ClaimSurplus))
    }
}

/// What the policy's order would have cost too much for, or nothing.
fn dropped_above_premium(ranked: &RankedLaunch) -> String {
    let dropped = ranked
        .above_premium
        .map(|AbovePremium { offerings, bound }| {
            format!("{offerings} offerings dropped that cost more than {bound} above the cheapest")
        });
    dropped.unwrap_or_default()
}
