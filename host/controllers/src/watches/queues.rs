//! The queues that watches feed, one for each controller that looks at objects.

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;

use crate::shell::work_queue::{BackOff, WorkQueue};

/// A queue of object keys.
pub(crate) type Keys = Arc<WorkQueue<ObjectKey>>;

/// The queues that changes of the model are routed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueName {
    Lifecycle,
    Reboots,
    ClaimDisruption,
    Expiration,
    Consistency,
    ClaimHydration,
    NodeHydration,
    Tagging,
    PodEvents,
    NodeTermination,
    PoolHash,
    PoolReadiness,
    PoolValidation,
    PoolCounter,
    NodeClass,
    CapacityBuffers,
    PodTrigger,
    NodeTrigger,
    StaticPools,
}

/// The queues that watches feed.
#[derive(Debug, Clone)]
pub(crate) struct Queues {
    pub(crate) lifecycle: Keys,
    pub(crate) reboots: Keys,
    pub(crate) claim_disruption: Keys,
    pub(crate) expiration: Keys,
    pub(crate) consistency: Keys,
    pub(crate) claim_hydration: Keys,
    pub(crate) node_hydration: Keys,
    pub(crate) tagging: Keys,
    pub(crate) pod_events: Keys,
    pub(crate) node_termination: Keys,
    pub(crate) pool_hash: Keys,
    pub(crate) pool_readiness: Keys,
    pub(crate) pool_validation: Keys,
    pub(crate) pool_counter: Keys,
    pub(crate) node_class: Keys,
    pub(crate) node_overlays: Keys,
    pub(crate) capacity_buffers: Keys,
    pub(crate) pod_trigger: Keys,
    pub(crate) node_trigger: Keys,
    pub(crate) static_pools: Keys,
}

impl Queues {
    pub(crate) fn new() -> Self {
        let queue = |first_millis, longest_seconds| {
            Arc::new(WorkQueue::new(BackOff {
                first: Duration::from_millis(first_millis),
                longest: Duration::from_secs(longest_seconds),
            }))
        };
        let default = || Arc::new(WorkQueue::new(BackOff::DEFAULT));
        Self {
            lifecycle: queue(1000, 60),
            reboots: default(),
            claim_disruption: default(),
            expiration: default(),
            consistency: default(),
            claim_hydration: queue(100, 60),
            node_hydration: queue(100, 60),
            tagging: queue(1000, 60),
            pod_events: default(),
            node_termination: queue(100, 10),
            pool_hash: default(),
            pool_readiness: default(),
            pool_validation: default(),
            pool_counter: default(),
            node_class: queue(1000, 60),
            node_overlays: queue(100, 60),
            capacity_buffers: queue(100, 60),
            pod_trigger: default(),
            node_trigger: default(),
            static_pools: default(),
        }
    }

    pub(super) fn of(&self, queue: QueueName) -> &Keys {
        match queue {
            QueueName::Lifecycle => &self.lifecycle,
            QueueName::Reboots => &self.reboots,
            QueueName::ClaimDisruption => &self.claim_disruption,
            QueueName::Expiration => &self.expiration,
            QueueName::Consistency => &self.consistency,
            QueueName::ClaimHydration => &self.claim_hydration,
            QueueName::NodeHydration => &self.node_hydration,
            QueueName::Tagging => &self.tagging,
            QueueName::PodEvents => &self.pod_events,
            QueueName::NodeTermination => &self.node_termination,
            QueueName::PoolHash => &self.pool_hash,
            QueueName::PoolReadiness => &self.pool_readiness,
            QueueName::PoolValidation => &self.pool_validation,
            QueueName::PoolCounter => &self.pool_counter,
            QueueName::NodeClass => &self.node_class,
            QueueName::CapacityBuffers => &self.capacity_buffers,
            QueueName::PodTrigger => &self.pod_trigger,
            QueueName::NodeTrigger => &self.node_trigger,
            QueueName::StaticPools => &self.static_pools,
        }
    }
}
