//! Journal entries of a NodeClaim that goes.
//!
//! Why it goes is decided before. What is counted answers to the reasons of `karpenter_nodeclaims_disrupted_total`.

use apis::{GoDuration, NodeClaim};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use state::ledger::{OutcomeId, Record};
use tracing::info;

use crate::node_claim::counts::{
    capacity_type, count_disrupted, count_unhealthy_disrupted, nodepool, zone,
};
use crate::node_claim::launch_record::{plain_record, unranked_record};
use crate::node_claim::lifecycle::liveness::TimeLimit;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::Series;

/// The claim took too long, and went.
#[derive(Debug)]
pub(crate) struct ClaimTimedOut {
    pub(crate) limit: TimeLimit,
}

impl JournalEntry for ClaimTimedOut {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let (name, reason) = (claim.name_any(), self.limit.metric_reason());
        info!(NodeClaim = %name, reason, "terminating due to liveness");
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        count_disrupted(metrics, claim, self.limit.metric_reason(), None);
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        let (name, verb) = (claim.name_any(), self.limit.verb());
        vec![format!("gave up {name}: did not {verb} in time")]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        Some(plain_record(claim, at, self.limit.outcome()))
    }
}

/// The claim reached its expiry.
#[derive(Debug)]
pub(crate) struct ClaimExpired;

impl JournalEntry for ClaimExpired {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        info!(NodeClaim = %claim.name_any(), "expired nodeclaim");
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        count_disrupted(metrics, claim, "expired", None);
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        vec![format!("{} reached its expiry", claim.name_any())]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        Some(plain_record(claim, at, OutcomeId::ClaimExpired))
    }
}

/// The claim's instance is gone.
#[derive(Debug)]
pub(crate) struct InstanceLost;

impl JournalEntry for InstanceLost {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        info!(
            NodeClaim = %claim.name_any(),
            provider_id = claim.provider_id().map(display),
            "garbage collecting nodeclaim with no cloudprovider representation"
        );
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        count_disrupted(metrics, claim, "garbage_collected", None);
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        vec![format!("{} has lost its instance", claim.name_any())]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        Some(plain_record(claim, at, OutcomeId::ClaimGarbageCollected))
    }
}

/// The claim's node was sick, and it went; the bound is the repair policy's on the drain.
#[derive(Debug)]
pub(crate) struct ClaimRepaired<'a> {
    pub(crate) node: &'a str,
    pub(crate) condition: &'a str,
    pub(crate) bound: Option<GoDuration>,
}

impl JournalEntry for ClaimRepaired<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let (name, node, condition) = (claim.name_any(), self.node, self.condition);
        info!(NodeClaim = %name, Node = %node, condition, "deleted unhealthy node");
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        count_disrupted(metrics, claim, "unhealthy", None);
        count_unhealthy_disrupted(metrics, claim, self.condition, self.bound);
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        let outcome = OutcomeId::ClaimRepaired;
        Some(unranked_record(claim, at, outcome, self.condition))
    }
}

/// By then the claim's node must be gone.
#[derive(Debug)]
pub(crate) struct DeadlineSet<'a> {
    pub(crate) deadline: &'a str,
}

impl JournalEntry for DeadlineSet<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let (name, deadline) = (claim.name_any(), self.deadline);
        info!(NodeClaim = %name, deadline, "annotated nodeclaim");
    }

    fn events(&self, claim: &NodeClaim) -> Vec<KubernetesEvent> {
        let message = format!("All pods will be deleted by {}", self.deadline);
        let (kind, reason) = (EventType::Warning, "TerminationGracePeriodExpiring");
        vec![KubernetesEvent::about(claim, kind, reason, message)]
    }
}

/// The cloud took so long to end the claim's instance.
#[derive(Debug)]
pub(crate) struct InstanceTerminated {
    pub(crate) took: SignedDuration,
}

impl JournalEntry for InstanceTerminated {
    type Subject = NodeClaim;

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        let seconds = &metrics.instance_termination_seconds;
        let seconds = seconds.get_or_create(&Series(nodepool(claim)));
        seconds.observe(self.took.as_secs_f64());
    }
}

/// Our finalizer is off the claim, which was deleted so long ago.
#[derive(Debug)]
pub(crate) struct ClaimReleased {
    pub(crate) took: Option<SignedDuration>,
}

impl JournalEntry for ClaimReleased {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        info!(
            NodeClaim = %claim.name_any(),
            provider_id = claim.provider_id().map(display),
            "deleted nodeclaim"
        );
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        if let Some(took) = self.took {
            let seconds = &metrics.node_claim_termination_seconds;
            let seconds = seconds.get_or_create(&Series(nodepool(claim)));
            seconds.observe(took.as_secs_f64());
        }
        let series = Series((nodepool(claim), capacity_type(claim), zone(claim)));
        metrics.node_claims_terminated.get_or_create(&series).inc();
    }
}
