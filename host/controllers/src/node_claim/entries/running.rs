//! Journal entries of a NodeClaim that has its instance, until it is to go.

use std::collections::BTreeMap;

use apis::NodeClaim;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use state::ledger::{OutcomeId, Record};
use tracing::field::{DisplayValue, display};
use tracing::{error, info};

use crate::node_claim::counts::{nodepool, zone};
use crate::node_claim::launch_record::plain_record;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::log_values::AsJson;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::Series;

/// The claim's node came without the taint that keeps pods away until it is registered.
#[derive(Debug)]
pub(crate) struct UnregisteredTaintMissing<'a> {
    pub(crate) node: &'a str,
}

impl JournalEntry for UnregisteredTaintMissing<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let (name, node) = (claim.name_any(), self.node);
        error!(NodeClaim = %name, Node = %node, "missing required startup taint, karpenter.sh/unregistered");
    }

    fn events(&self, claim: &NodeClaim) -> Vec<KubernetesEvent> {
        let message = "Missing karpenter.sh/unregistered taint which prevents registration related race conditions on \
                       Karpenter-managed nodes";
        let (kind, reason) = (EventType::Warning, "UnregisteredTaintMissing");
        vec![KubernetesEvent::about(claim, kind, reason, message)]
    }
}

/// The claim's node joined the cluster.
#[derive(Debug)]
pub(crate) struct NodeRegistered<'a> {
    pub(crate) node: &'a str,
}

impl JournalEntry for NodeRegistered<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        info!(
            NodeClaim = %claim.name_any(),
            Node = %self.node,
            provider_id = claim.provider_id().map(display),
            "registered nodeclaim"
        );
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        let series = Series((nodepool(claim), zone(claim)));
        metrics.nodes_created.get_or_create(&series).inc();
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        Some(plain_record(claim, at, OutcomeId::ClaimRegistered))
    }
}

/// The claim's node takes pods.
#[derive(Debug)]
pub(crate) struct NodeInitialized<'a> {
    pub(crate) node: &'a str,
}

impl JournalEntry for NodeInitialized<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        info!(
            NodeClaim = %claim.name_any(),
            Node = %self.node,
            provider_id = claim.provider_id().map(display),
            allocatable = allocatable(claim),
            "initialized nodeclaim"
        );
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        let (node, instance) = (self.node, claim.instance_text());
        vec![format!("node {node} is ready ({instance})")]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        Some(plain_record(claim, at, OutcomeId::ClaimInitialized))
    }
}

/// A disruption command waits for the claim's node to take pods.
#[derive(Debug)]
pub(crate) struct AwaitedByCommand;

impl JournalEntry for AwaitedByCommand {
    type Subject = NodeClaim;

    fn events(&self, claim: &NodeClaim) -> Vec<KubernetesEvent> {
        let message = "Waiting on readiness to continue disruption";
        let (kind, reason) = (EventType::Normal, "DisruptionWaitingReadiness");
        vec![KubernetesEvent::about(claim, kind, reason, message)]
    }
}

/// The claim's node is smaller than it was told to be.
#[derive(Debug)]
pub(crate) struct NodeInconsistent<'a> {
    pub(crate) issue: &'a str,
}

impl JournalEntry for NodeInconsistent<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let (name, issue) = (claim.name_any(), self.issue);
        error!(NodeClaim = %name, error = %issue, "consistency error");
    }

    fn events(&self, claim: &NodeClaim) -> Vec<KubernetesEvent> {
        let (kind, reason) = (EventType::Warning, "FailedConsistencyCheck");
        let event = KubernetesEvent::about(claim, kind, reason, self.issue);
        vec![event.distinct_by(self.issue)]
    }
}

/// The claim is not any more what it would be if it were made now.
#[derive(Debug)]
pub(crate) struct ClaimDrifted<'a> {
    pub(crate) why: &'a str,
}

impl JournalEntry for ClaimDrifted<'_> {
    type Subject = NodeClaim;

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        let (name, why) = (claim.name_any(), self.why);
        vec![format!("{name} drifted: {why}")]
    }
}

/// What pods can have of the claim's node, for a log line.
pub(super) fn allocatable(
    claim: &NodeClaim,
) -> Option<DisplayValue<AsJson<&BTreeMap<String, Quantity>>>> {
    let status = claim.status.as_ref()?;
    Some(display(AsJson(&status.allocatable)))
}
