//! Journal entries about a notice of the cloud, on the claim that it is about and on its node.
//!
//! Answers to `pkg/controllers/interruption/events` of the AWS provider.

use apis::{NodeClaim, ProviderId};
use cloudprovider::InterruptionKind;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};
use state::ledger::{OutcomeId, Record};
use tracing::info;

use crate::node_claim::counts::count_disrupted;
use crate::node_claim::launch_record::unranked_record;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};
use crate::shell::metrics::Metrics;

/// A claim, and its node where it has one.
pub(super) struct InterruptedClaim<'a> {
    pub(super) claim: &'a NodeClaim,
    pub(super) node: Option<ObjectReference>,
}

/// Consequence of the cloud's word about an instance.
pub(super) enum InterruptionEntry<'a> {
    /// The cloud said that it takes the instance away, or may.
    Notified(&'a InterruptionKind),
    /// The cloud's own record of the instance contradicts the notice.
    Disbelieved(&'a InterruptionKind),
    /// The claim went for it.
    Deleted(&'a InterruptionKind),
}

impl<'a> JournalEntry for InterruptionEntry<'a> {
    type Subject = InterruptedClaim<'a>;

    fn log(&self, InterruptedClaim { claim, .. }: &InterruptedClaim<'a>) {
        let name = claim.name_any();
        match self {
            Self::Notified(_) => {}
            Self::Disbelieved(kind) => {
                let provider_id = claim.provider_id();
                let instance_id = provider_id.as_ref().map(ProviderId::instance_id);
                let kind = kind.as_str();
                info!(NodeClaim = %name, instance_id, kind, "what a notice says of the instance is not so");
            }
            Self::Deleted(kind) => {
                info!(NodeClaim = %name, reason = kind.as_str(), "deleted nodeclaim on word of the cloud");
            }
        }
    }

    fn events(
        &self,
        InterruptedClaim { claim, node }: &InterruptedClaim<'a>,
    ) -> Vec<KubernetesEvent> {
        let (kind, reason, words) = match self {
            Self::Notified(kind) => notified(**kind),
            Self::Disbelieved(_) => return Vec::new(),
            Self::Deleted(_) => (
                EventType::Warning,
                "TerminatingOnInterruption",
                "Interruption triggered termination for the",
            ),
        };
        let notice = |regarding: ObjectReference, object: &str| {
            KubernetesEvent::new(regarding, kind, reason, format!("{words} {object}"))
        };
        let node = node.iter().map(|it| notice(it.clone(), "Node"));
        std::iter::once(notice(claim.object_ref(&()), "NodeClaim"))
            .chain(node)
            .collect()
    }

    fn measure(&self, InterruptedClaim { claim, .. }: &InterruptedClaim<'a>, metrics: &Metrics) {
        if let Self::Deleted(kind) = self {
            count_disrupted(metrics, claim, kind.as_str(), None);
        }
    }

    fn lines(&self, InterruptedClaim { claim, .. }: &InterruptedClaim<'a>) -> Vec<String> {
        let Self::Deleted(kind) = self else {
            return Vec::new();
        };
        let why = kind.as_str().replace('_', " ");
        vec![format!("{} goes: {why}", claim.name_any())]
    }

    fn record(
        &self,
        InterruptedClaim { claim, .. }: &InterruptedClaim<'a>,
        at: Timestamp,
    ) -> Option<Record> {
        let Self::Deleted(kind) = self else {
            return None;
        };
        let (outcome, reason) = (OutcomeId::ClaimInterrupted, kind.as_str());
        Some(unranked_record(claim, at, outcome, reason))
    }
}

/// Type and reason of the Event, and its words but for the object.
fn notified(kind: InterruptionKind) -> (EventType, &'static str, &'static str) {
    match kind {
        InterruptionKind::SpotInterrupted => (
            EventType::Warning,
            "SpotInterrupted",
            "A spot interruption warning was received for the",
        ),
        InterruptionKind::RebalanceRecommendation => (
            EventType::Normal,
            "SpotRebalanceRecommendation",
            "A spot rebalance recommendation was received for the",
        ),
        InterruptionKind::ScheduledChange
        | InterruptionKind::InstanceStatus
        | InterruptionKind::SystemStatus
        | InterruptionKind::EventStatus => (
            EventType::Warning,
            "InstanceUnhealthy",
            "A health event was received for the instance of the",
        ),
        InterruptionKind::InstanceStopped => (
            EventType::Warning,
            "InstanceStopping",
            "The instance is stopping for the",
        ),
        InterruptionKind::InstanceTerminated | InterruptionKind::NoOp => (
            EventType::Warning,
            "InstanceTerminating",
            "The instance is terminating for the",
        ),
        InterruptionKind::CapacityReservationInterrupted => (
            EventType::Warning,
            "CapacityReservationInstanceInterrupted",
            "A capacity reservation interruption warning was received for the",
        ),
    }
}
