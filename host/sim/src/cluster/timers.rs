//! Timers, in the order of time and of asking.
//!
//! Reads no clock: the moment is an argument.

use std::collections::BTreeMap;

use api_server::NamespacedName;
use jiff::Timestamp;

use super::work::Work;

/// Timers fire on this grid, so that a thousand kubelets wake the world a few times a second, not a thousand.
const GRID_MILLIS: i64 = 200;

/// Something due at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Timer {
    /// An instance's kubelet registers its Node.
    Register(String),
    /// An instance's kubelet reports Ready.
    Ready(String),
    /// An instance is back from a reboot.
    Rebooted(String),
    /// A node whose kubelet died is called unreachable.
    NodeLost(String),
    /// The Node of a terminated instance goes.
    NodeGone(String),
    /// Containers of a pod run; the pod by name and UID.
    PodStarts(NamespacedName, String),
    /// Containers of a pod have done their work.
    PodCompletes(NamespacedName, String),
    /// Containers of a pod have stopped.
    PodStops(NamespacedName, String),
    /// A toleration of a NoExecute taint ends.
    TaintsAgain(String),
    /// Pods of a node that is gone are collected.
    CollectPods(String),
    /// A schedule of a CronJob may be due.
    CronJob(NamespacedName),
    /// A finished Job's time to live is over.
    JobExpires(NamespacedName),
    /// A controller goes on creating pods.
    Again(Work, NamespacedName),
    /// The scheduler looks at pods that wait for what happened.
    Wake,
    /// Kubelets renew their leases.
    Heartbeat,
    /// EC2 has something to do.
    Ec2,
}

impl Timer {
    /// Whether the world is not settled while this waits and has something to do.
    fn is_work(&self) -> bool {
        match self {
            Self::Register(_)
            | Self::Ready(_)
            | Self::Rebooted(_)
            | Self::NodeLost(_)
            | Self::NodeGone(_)
            | Self::PodStarts(..)
            | Self::PodStops(..)
            | Self::CollectPods(_)
            | Self::Wake
            | Self::Again(..) => true,
            // A running job is a steady state, like a running server.
            Self::PodCompletes(..)
            | Self::TaintsAgain(_)
            | Self::CronJob(_)
            | Self::JobExpires(_)
            | Self::Heartbeat
            | Self::Ec2 => false,
        }
    }
}

/// The timers that wait.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    waiting: BTreeMap<(Timestamp, u64), Timer>,
    sequence: u64,
}

impl Timers {
    /// Sets a timer, rounded up to the grid.
    pub(crate) fn set(&mut self, at: Timestamp, timer: Timer) {
        self.sequence += 1;
        self.waiting.insert((on_grid(at), self.sequence), timer);
    }

    /// The same for who sets the same timer again and again, such as at each look at an object.
    pub(crate) fn set_once(&mut self, at: Timestamp, timer: Timer) {
        let mut at_that_time = self
            .waiting
            .range((on_grid(at), 0)..=(on_grid(at), u64::MAX));
        if !at_that_time.any(|(_, it)| *it == timer) {
            self.set(at, timer);
        }
    }

    /// Takes the next timer that is due.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<Timer> {
        let entry = self.waiting.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        Some(entry.remove())
    }

    /// When the next timer is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// The timers that are work, soonest first.
    pub(crate) fn work(&self) -> impl Iterator<Item = &Timer> {
        self.waiting.values().filter(|timer| timer.is_work())
    }
}

fn on_grid(at: Timestamp) -> Timestamp {
    let is_between = at.subsec_nanosecond() % 1_000_000 != 0;
    let millis = at.as_millisecond() + i64::from(is_between);
    let rounded = millis + (GRID_MILLIS - millis.rem_euclid(GRID_MILLIS)) % GRID_MILLIS;
    Timestamp::from_millisecond(rounded).unwrap_or(at)
}
