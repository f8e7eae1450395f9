//! The queues that watches feed: a row for each controller that works on keys of objects.
//!
//! The two whose keys are of another make are elsewhere: evictions and bindings of policies. Names and numbers are
//! those of Karpenter's controllers (`pkg/controllers/controllers.go` and their `Register`).

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use apis::{ObjectKey, labels};

use crate::shell::runtime::work_queue::{BackOff, QueueState, WorkQueue};
use crate::status_conditions::StatusKind;

/// A queue of object keys.
pub(crate) type Keys = Arc<WorkQueue<ObjectKey>>;

/// Whether keys that come due show that somebody is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuePace {
    /// They come due while something is being done.
    Work,
    /// They come due by themselves, for as long as their object is there.
    Chore,
}

/// How a controller works on its queue.
#[derive(Debug, Clone)]
pub(crate) struct QueueRow {
    /// Karpenter's name of the controller, as metrics and logs show it.
    pub(crate) name: &'static str,
    /// Group and kind of the objects that its keys name, as log lines show them.
    pub(crate) kind: (&'static str, &'static str),
    /// Keys at work: the fewest on one core and the most on sixty.
    pub(crate) at_work: RangeInclusive<usize>,
    back_off: BackOff,
    pace: QueuePace,
}

const CLAIMS: (&str, &str) = StatusKind::NodeClaim.name();
const POOLS: (&str, &str) = StatusKind::NodePool.name();
const OVERLAYS: (&str, &str) = (labels::GROUP, "NodeOverlay");
const CLASSES: (&str, &str) = StatusKind::NodeClass.name();
const BUFFERS: (&str, &str) = StatusKind::CapacityBuffer.name();
const NODES: (&str, &str) = StatusKind::Node.name();
const PODS: (&str, &str) = ("", "Pod");

/// One row a controller: its queue, its name, what its keys are, those at work, the delays after failures, and its
/// pace.
macro_rules! queues {
    ($($queue:ident = $name:literal, $kind:ident, $at_work:expr, $back_off:expr, $pace:ident;)*) => {
        /// The queues that changes of the model are routed to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum QueueName {
            $($queue,)*
        }

        impl QueueName {
            const ALL: &[Self] = &[$(Self::$queue,)*];

            pub(crate) fn row(self) -> QueueRow {
                match self {
                    $(Self::$queue => QueueRow {
                        name: $name,
                        kind: $kind,
                        at_work: $at_work,
                        back_off: $back_off,
                        pace: QueuePace::$pace,
                    },)*
                }
            }
        }
    };
}

queues! {
    Lifecycle = "nodeclaim.lifecycle", CLAIMS, 1000..=5000, back_off(1000, 60), Work;
    Reboots = "nodeclaim.reboot", CLAIMS, 10..=10, BackOff::DEFAULT, Work;
    ClaimDisruption = "nodeclaim.disruption", CLAIMS, 10..=1000, BackOff::DEFAULT, Chore;
    Expiration = "nodeclaim.expiration", CLAIMS, 10..=1000, BackOff::DEFAULT, Chore;
    Consistency = "nodeclaim.consistency", CLAIMS, 10..=1000, BackOff::DEFAULT, Chore;
    ClaimHydration = "nodeclaim.hydration", CLAIMS, 1000..=5000, back_off(100, 60), Work;
    NodeHydration = "node.hydration", NODES, 1000..=5000, back_off(100, 60), Work;
    Tagging = "nodeclaim.tagging", CLAIMS, 10..=1000, back_off(1000, 60), Work;
    PodEvents = "nodeclaim.podevents", CLAIMS, 10..=1000, BackOff::DEFAULT, Work;
    NodeTermination = "node.termination", NODES, 100..=5000, back_off(100, 10), Work;
    PoolHash = "nodepool.hash", POOLS, 10..=1000, BackOff::DEFAULT, Work;
    PoolReadiness = "nodepool.readiness", POOLS, 10..=1000, BackOff::DEFAULT, Work;
    PoolValidation = "nodepool.validation", POOLS, 10..=1000, BackOff::DEFAULT, Work;
    PoolCounter = "nodepool.counter", POOLS, 10..=1000, BackOff::DEFAULT, Chore;
    NodeClass = "nodeclass", CLASSES, 10..=10, back_off(1000, 60), Work;
    NodeOverlays = "nodeoverlay.controller", OVERLAYS, 1..=1, back_off(100, 60), Work;
    CapacityBuffers = "capacitybuffer", BUFFERS, 10..=10, back_off(100, 60), Work;
    PodTrigger = "provisioner.trigger.pod", PODS, 10..=1000, BackOff::DEFAULT, Chore;
    NodeTrigger = "provisioner.trigger.node", NODES, 10..=1000, BackOff::DEFAULT, Chore;
    StaticPools = "static.provisioning", POOLS, 10..=1000, BackOff::DEFAULT, Chore;
}

const fn back_off(first_millis: u64, longest_seconds: u64) -> BackOff {
    BackOff {
        first: Duration::from_millis(first_millis),
        longest: Duration::from_secs(longest_seconds),
    }
}

/// The queues that watches feed. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Queues([Keys; QueueName::ALL.len()]);

impl Queues {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|at| {
            Arc::new(WorkQueue::new(QueueName::ALL[at].row().back_off))
        }))
    }

    pub(crate) fn of(&self, queue: QueueName) -> &Keys {
        &self.0[queue as usize]
    }

    /// States of all queues; keys of chores are not said to come due.
    pub(crate) fn states(&self, horizon: Duration) -> impl Iterator<Item = QueueState> {
        QueueName::ALL.iter().map(move |queue| {
            let state = self.of(*queue).state(horizon);
            match queue.row().pace {
                QueuePace::Work => state,
                QueuePace::Chore => QueueState {
                    due_soon: 0,
                    ..state
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(6);

    /// All that the queues have to do together.
    fn told(queues: &Queues) -> (usize, usize, usize) {
        queues.states(SOON).fold((0, 0, 0), |sum, it| {
            (
                sum.0 + it.ready + it.processing,
                sum.1 + it.failing,
                sum.2 + it.due_soon,
            )
        })
    }

    #[tokio::test(start_paused = true)]
    async fn each_queue_counts_and_a_chore_that_comes_back_does_not() {
        for queue in QueueName::ALL {
            let (queues, key) = (Queues::new(), ObjectKey::cluster("a"));
            let keys = queues.of(*queue);
            keys.add(key.clone());
            assert_eq!(told(&queues), (1, 0, 0), "{queue:?} waits");
            let at_work = keys.next().await;
            assert_eq!(told(&queues), (1, 0, 0), "{queue:?} is worked on");
            keys.failed(at_work);
            assert_eq!(told(&queues).1, 1, "{queue:?} failed");
            let again = keys.next().await;
            keys.done(again, Some(Duration::from_secs(5)));
            let due = usize::from(queue.row().pace == QueuePace::Work);
            assert_eq!(told(&queues), (0, 0, due), "{queue:?} comes back");
        }
    }
}
