//! Journal entries about nodes on their way out, and about the pods that leave them.
//!
//! Events answer to `pkg/controllers/node/termination/terminator/events`, metrics and log lines to
//! `pkg/controllers/node/termination`.

use apis::conditions::reason;
use apis::{NodeClaim, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use scheduling::pod::Pod;
use state::facts::NodeFacts;
use state::ledger::{OutcomeId, Record, TerminationRecord};
use tracing::{debug, info};

use crate::node_claim::drain_reason;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};
use crate::shell::journal::references;
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{NodePoolLabel, ReasonLabel, Series, ZoneLabel};

/// VolumeAttachments that an event names.
const ATTACHMENTS_NAMED_MAX: usize = 5;

/// A deleted node and its claim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeavingNode<'a> {
    pub(crate) node: &'a NodeFacts,
    pub(crate) claim: Option<&'a NodeClaim>,
}

/// Something on a node's way out.
#[derive(Debug)]
pub(crate) enum NodeEntry<'a> {
    /// It keeps new pods away, and these are to leave.
    Tainted { pods: Vec<String> },
    /// By then its pods are deleted.
    DeadlineSet { deadline: Timestamp },
    /// Its drain cannot go on.
    DrainWaits { why: String },
    /// No pod is left that would have to leave.
    Drained,
    /// Volumes are still attached.
    AwaitsVolumes { attachments: &'a [String] },
    /// No volume that was waited for is attached any more.
    VolumesDetached,
    /// Its deadline passed with volumes attached.
    DeadlinePassed { attachments: &'a [String] },
    /// The node lost its finalizer and is gone.
    Gone { now: Timestamp },
}

impl<'a> JournalEntry for NodeEntry<'a> {
    type Subject = LeavingNode<'a>;

    fn log(&self, LeavingNode { node, .. }: &LeavingNode<'a>) {
        match self {
            Self::Tainted { .. } => {
                info!(Node = %node.name, taint = labels::DISRUPTED_TAINT_KEY, "tainted node");
            }
            Self::Gone { .. } => info!(Node = %node.name, "deleted node"),
            Self::DeadlineSet { .. }
            | Self::DrainWaits { .. }
            | Self::Drained
            | Self::AwaitsVolumes { .. }
            | Self::VolumesDetached
            | Self::DeadlinePassed { .. } => {}
        }
    }

    fn events(&self, LeavingNode { node, .. }: &LeavingNode<'a>) -> Vec<KubernetesEvent> {
        let regarding = references::node_seen(node);
        match self {
            Self::DeadlineSet { deadline } => {
                let message = format!("All pods will be deleted by {deadline}");
                let reason = "TerminationGracePeriodExpiring";
                let kind = EventType::Warning;
                vec![KubernetesEvent::new(regarding, kind, reason, message)]
            }
            Self::DrainWaits { why } => vec![failed_draining(regarding, why)],
            Self::AwaitsVolumes { attachments } => {
                let message = awaited_volumes(attachments);
                let reason = reason::AWAITING_VOLUME_DETACHMENT;
                vec![KubernetesEvent::new(
                    regarding,
                    EventType::Normal,
                    reason,
                    message,
                )]
            }
            Self::Tainted { .. }
            | Self::Drained
            | Self::VolumesDetached
            | Self::DeadlinePassed { .. }
            | Self::Gone { .. } => Vec::new(),
        }
    }

    fn measure(&self, LeavingNode { node, .. }: &LeavingNode<'a>, metrics: &Metrics) {
        let pool = NodePoolLabel(pool_of(node));
        match self {
            Self::Drained => {
                metrics.nodes_drained.get_or_create(&Series(pool)).inc();
            }
            Self::Gone { now } => {
                let since = |time: Option<Timestamp>| {
                    time.map_or(0.0, |time| now.duration_since(time).as_secs_f64())
                };
                let series = Series(pool.clone());
                metrics
                    .node_termination_seconds
                    .get_or_create(&series)
                    .observe(since(node.deleted_at));
                metrics
                    .node_lifetime_seconds
                    .get_or_create(&series)
                    .observe(since(node.created_at));
                let zone = node.labels.get(labels::TOPOLOGY_ZONE).cloned();
                let series = Series((pool, ZoneLabel(zone.unwrap_or_default())));
                metrics.nodes_terminated.get_or_create(&series).inc();
            }
            Self::Tainted { .. }
            | Self::DeadlineSet { .. }
            | Self::DrainWaits { .. }
            | Self::AwaitsVolumes { .. }
            | Self::VolumesDetached
            | Self::DeadlinePassed { .. } => {}
        }
    }

    fn lines(&self, LeavingNode { node, .. }: &LeavingNode<'a>) -> Vec<String> {
        let is_gone = matches!(self, Self::Gone { .. });
        let line = is_gone.then(|| format!("node {} is gone", node.name));
        line.into_iter().collect()
    }

    fn record(&self, subject: &LeavingNode<'a>, at: Timestamp) -> Option<Record> {
        let none = Vec::new;
        let (outcome, pods, reason) = match self {
            Self::Tainted { pods } => {
                let outcome = OutcomeId::TerminationStarted;
                (outcome, pods.clone(), String::new())
            }
            Self::Drained => (OutcomeId::TerminationDrained, none(), String::new()),
            Self::VolumesDetached => {
                let outcome = OutcomeId::TerminationVolumesDetached;
                (outcome, none(), String::new())
            }
            Self::DeadlinePassed { attachments } => {
                let outcome = OutcomeId::TerminationGracePeriodElapsed;
                (outcome, none(), awaited_volumes(attachments))
            }
            Self::Gone { .. } => (OutcomeId::TerminationFinished, none(), String::new()),
            Self::DeadlineSet { .. } | Self::DrainWaits { .. } | Self::AwaitsVolumes { .. } => {
                return None;
            }
        };
        let LeavingNode { node, claim } = subject;
        Some(Record::Termination(TerminationRecord {
            at,
            node: node.name.clone(),
            claim: claim.map(ResourceExt::name_any).unwrap_or_default(),
            pool: pool_of(node),
            outcome,
            pods,
            reason,
        }))
    }
}

/// A pod that leaves a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeavingPod<'a> {
    pub(crate) pod: &'a Pod,
    /// Name of the Node.
    pub(crate) node: &'a str,
    /// The node as events refer to it.
    pub(crate) node_reference: &'a ObjectReference,
    pub(crate) claim: Option<&'a NodeClaim>,
}

/// How a pod left, or did not.
#[derive(Debug)]
pub(crate) enum PodEntry<'a> {
    /// The Eviction API took the pod away.
    Evicted,
    /// A disruption budget refuses, for the first time.
    EvictionBlocked { why: &'a str },
    /// A disruption budget refuses again.
    EvictionRefused { why: &'a str },
    /// It would have outlived its node's deadline.
    ForceDeleted { grace_seconds: u32 },
}

impl<'a> JournalEntry for PodEntry<'a> {
    type Subject = LeavingPod<'a>;

    fn log(&self, LeavingPod { pod, node, .. }: &LeavingPod<'a>) {
        match self {
            Self::EvictionBlocked { .. } | Self::EvictionRefused { .. } => {
                debug!(Node = %node, pod = %pod.key, "eviction refused by a budget");
            }
            Self::Evicted | Self::ForceDeleted { .. } => {}
        }
    }

    fn events(&self, subject: &LeavingPod<'a>) -> Vec<KubernetesEvent> {
        let pod = subject.pod;
        let about_pod = |reason, message| {
            let regarding = references::pod(&pod.key, &pod.uid);
            KubernetesEvent::new(regarding, EventType::Normal, reason, message)
        };
        vec![match self {
            Self::Evicted => {
                let message = format!("Evicted pod: {}", drain_reason(subject.claim));
                about_pod("Evicted", message)
            }
            Self::EvictionBlocked { why } | Self::EvictionRefused { why } => {
                failed_draining(subject.node_reference.clone(), why)
            }
            Self::ForceDeleted { grace_seconds } => {
                about_pod("Disrupted", force_deleted(subject, *grace_seconds))
            }
        }]
    }

    fn measure(&self, subject: &LeavingPod<'a>, metrics: &Metrics) {
        match self {
            Self::Evicted | Self::ForceDeleted { .. } => {
                let series = Series(ReasonLabel(drain_reason(subject.claim)));
                metrics.pods_drained.get_or_create(&series).inc();
            }
            Self::EvictionBlocked { .. } | Self::EvictionRefused { .. } => {}
        }
    }

    fn record(&self, subject: &LeavingPod<'a>, at: Timestamp) -> Option<Record> {
        let LeavingPod {
            pod, node, claim, ..
        } = subject;
        let (outcome, reason) = match self {
            Self::Evicted => (OutcomeId::PodEvicted, drain_reason(*claim)),
            Self::ForceDeleted { .. } => (OutcomeId::PodForceDeleted, deadline_of(*claim)),
            Self::EvictionBlocked { why } => (OutcomeId::PodEvictionBlocked, (*why).to_owned()),
            Self::EvictionRefused { .. } => return None,
        };
        let name = claim.and_then(|it| it.metadata.name.clone());
        let pool = claim.and_then(|it| it.pool_name()).map(str::to_owned);
        Some(Record::Termination(TerminationRecord {
            at,
            node: (*node).to_owned(),
            claim: name.unwrap_or_default(),
            pool: pool.unwrap_or_default(),
            outcome,
            pods: vec![pod.key.to_string()],
            reason,
        }))
    }
}

/// By when the claim's node must be gone; empty where nothing bounds that.
fn deadline_of(claim: Option<&NodeClaim>) -> String {
    let deadline = claim.and_then(NodeClaim::termination_deadline);
    deadline.map(|at| at.to_string()).unwrap_or_default()
}

fn force_deleted(subject: &LeavingPod<'_>, grace_seconds: u32) -> String {
    let own = subject.pod.shape.termination_grace_period_seconds;
    let (own, deadline) = (own.unwrap_or_default(), deadline_of(subject.claim));
    format!(
        "Deleting the pod to accommodate the terminationTime {deadline} of the node. The pod was granted \
         {grace_seconds} seconds of grace-period of its {own} terminationGracePeriodSeconds. This bypasses the \
         PDB of the pod and the do-not-disrupt annotation."
    )
}

fn failed_draining(node: ObjectReference, why: &str) -> KubernetesEvent {
    let message = format!("Failed to drain node, {why}");
    KubernetesEvent::new(node, EventType::Warning, "FailedDraining", message)
}

fn awaited_volumes(attachments: &[String]) -> String {
    let named: Vec<&str> = attachments
        .iter()
        .take(ATTACHMENTS_NAMED_MAX)
        .map(String::as_str)
        .collect();
    let more = match attachments.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = named.join(", ");
    format!("Awaiting deletion of bound volumeattachments ({named}{more})")
}

/// The node's pool, or the empty string.
fn pool_of(node: &NodeFacts) -> String {
    let pool = node.labels.get(labels::NODEPOOL);
    pool.cloned().unwrap_or_default()
}
