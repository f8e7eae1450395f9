//! Notices of the cloud that it takes instances back, or has: what a queue of them must be able to do.
//!
//! The form of messages is the adapter's business; here they are kinds and instance ids.

use apis::NodeClaim;
use jiff::Timestamp;

use crate::CloudProviderError;

/// Kind of event that a notice tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterruptionKind {
    /// A spot instance will be taken back within minutes.
    SpotInterrupted,
    /// A spot instance is more likely than before to be taken back.
    RebalanceRecommendation,
    /// The cloud plans work on the instance's host.
    ScheduledChange,
    /// The instance stops or has stopped.
    InstanceStopped,
    /// The instance ends or has ended.
    InstanceTerminated,
    /// The reservation it runs in is taken back.
    CapacityReservationInterrupted,
    /// A check of the instance itself fails: its system hangs, or its network is gone.
    InstanceStatus,
    /// A check of the instance's host fails.
    SystemStatus,
    /// The cloud has scheduled work on the instance or its host, or its end.
    EventStatus,
    /// Nothing that matters here, or nothing that can be read.
    NoOp,
}

impl InterruptionKind {
    /// The word of metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SpotInterrupted => "spot_interrupted",
            Self::RebalanceRecommendation => "rebalance_recommendation",
            Self::ScheduledChange => "scheduled_change",
            Self::InstanceStopped => "instance_stopped",
            Self::InstanceTerminated => "instance_terminated",
            Self::CapacityReservationInterrupted => "capacity_reservation_interrupted",
            Self::InstanceStatus => "instance_status",
            Self::SystemStatus => "system_status",
            Self::EventStatus => "event_status",
            Self::NoOp => "no_op",
        }
    }

    /// Whether the claims of its instances are to go.
    pub fn ends_claims(self) -> bool {
        match self {
            Self::SpotInterrupted
            | Self::ScheduledChange
            | Self::InstanceStopped
            | Self::InstanceTerminated
            | Self::CapacityReservationInterrupted
            | Self::InstanceStatus
            | Self::SystemStatus
            | Self::EventStatus => true,
            Self::RebalanceRecommendation | Self::NoOp => false,
        }
    }
}

/// Kind of trouble that the cloud finds when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImpairmentKind {
    /// A check of the instance itself fails: its system hangs, or its network is gone.
    InstanceStatus,
    /// A check of the instance's host fails.
    SystemStatus,
    /// The cloud has scheduled work on the instance or its host, or its end.
    EventStatus,
}

impl ImpairmentKind {
    /// Whether claims go without waiting for their pods: nothing answers there any more.
    pub fn is_forceful(self) -> bool {
        match self {
            Self::InstanceStatus | Self::SystemStatus => true,
            Self::EventStatus => false,
        }
    }
}

impl From<ImpairmentKind> for InterruptionKind {
    fn from(kind: ImpairmentKind) -> Self {
        match kind {
            ImpairmentKind::InstanceStatus => Self::InstanceStatus,
            ImpairmentKind::SystemStatus => Self::SystemStatus,
            ImpairmentKind::EventStatus => Self::EventStatus,
        }
    }
}

/// Trouble of an instance, present or to come, that the cloud finds when it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impairment {
    /// Id of the instance, as the last part of a provider id.
    pub instance_id: String,
    /// Kind of trouble.
    pub kind: ImpairmentKind,
    /// Start of the trouble; of scheduled work, the moment at which the cloud was asked.
    pub since: Timestamp,
}

/// A notice of the cloud, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interruption {
    /// With which it is taken off the queue.
    pub receipt: String,
    /// Kind of event that it tells of.
    pub kind: InterruptionKind,
    /// Ids of the instances it is about, as the last part of a provider id.
    pub instance_ids: Vec<String>,
    /// When the cloud says it happened.
    pub happened_at: Option<Timestamp>,
    /// Why it could not be read, if it could not.
    pub fault: Option<String>,
}

/// A queue of notices. What is received and not deleted comes again after a while.
#[async_trait::async_trait]
pub trait InterruptionQueue: Send + Sync {
    /// Waits for some notices; none after a while without any.
    async fn receive(&self) -> Result<Vec<Interruption>, CloudProviderError>;

    /// Takes a notice off the queue.
    async fn delete(&self, receipt: &str) -> Result<(), CloudProviderError>;

    /// Notes what a notice about a claim's instance says about what can be had now.
    fn note(&self, kind: InterruptionKind, node_claim: &NodeClaim);
}
