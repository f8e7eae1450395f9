//! Who is to look again after a change: owners, daemon sets, budgets, the scheduler.
//!
//! Only notes it: the work is done by the controllers, one kind at a time.

use api_server::{NamespacedName, Resource};

use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::ControllerRef;
use crate::cluster::pod::PodRecord;
use crate::cluster::timers::Timer;
use crate::cluster::work::{SchedulerWake, Work};
use jiff::SignedDuration;

/// How soon the scheduler looks at pods that wait for what happened: nodes that open at one time are all open by then.
const REACTION: SignedDuration = SignedDuration::from_millis(100);

impl SimulatedCluster {
    pub(super) fn mark_owner(&mut self, owner: &ControllerRef, namespace: &str) {
        let work = match owner.kind.as_str() {
            "Deployment" => Work::Deployment,
            "ReplicaSet" => Work::ReplicaSet,
            "StatefulSet" => Work::StatefulSet,
            "DaemonSet" => Work::DaemonSet,
            "Job" => Work::Job,
            "CronJob" => Work::CronJob,
            _ => return,
        };
        self.dirty
            .insert((work, NamespacedName::new(namespace, owner.name.clone())));
    }

    pub(super) fn mark_daemon_sets(&mut self) {
        let keys: Vec<NamespacedName> = self
            .table(&Resource::DAEMON_SETS)
            .map(|(key, _)| key.clone())
            .collect();
        self.dirty
            .extend(keys.into_iter().map(|key| (Work::DaemonSet, key)));
    }

    pub(super) fn mark_budgets(
        &mut self,
        namespace: &str,
        old: Option<&PodRecord>,
        new: Option<&PodRecord>,
    ) {
        let health =
            |record: Option<&PodRecord>| record.map(|r| (r.is_ready(), r.is_deleting(), r.phase));
        if health(old) == health(new) {
            return;
        }
        let keys: Vec<NamespacedName> = self
            .table(&Resource::POD_DISRUPTION_BUDGETS)
            .map(|(key, _)| key.clone())
            .filter(|key| key.namespace == namespace)
            .collect();
        self.dirty
            .extend(keys.into_iter().map(|key| (Work::Budget, key)));
    }

    /// Has the scheduler look at the pods that wait for what happened, in a moment.
    pub(crate) fn await_scheduler(&mut self) {
        if self.wake == SchedulerWake::Unset && self.wakes_pods() {
            self.wake = SchedulerWake::Set;
            self.timers.set(self.clock.now() + REACTION, Timer::Wake);
        }
    }

    /// Whether the scheduler has something to look at.
    pub(crate) fn is_scheduling_due(&self) -> bool {
        !self.queue.is_empty() || (self.wake == SchedulerWake::Due && self.wakes_pods())
    }

    pub(crate) fn wakes_pods(&self) -> bool {
        !self.news.is_empty() && !self.unschedulable.is_empty()
    }
}
