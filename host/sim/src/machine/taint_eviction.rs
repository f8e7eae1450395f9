//! What NoExecute taints drive away from a node, now or once its tolerations are over.
//!
//! Answers to kube-controller-manager's taint-eviction controller.

use api_server::{DeleteOptions, Resource};
use apis::labels;
use jiff::{SignedDuration, Timestamp};

use super::later;
use crate::cluster::SimulatedCluster;
use crate::cluster::node::{NodeRecord, tolerates};
use crate::cluster::pod::PodRecord;
use crate::cluster::timers::Timer;

impl SimulatedCluster {
    /// Deletes the pods of a node that do not, or no longer, tolerate its NoExecute taints.
    pub(crate) fn reconcile_taints(&mut self, name: &str) {
        let Some(node) = self.nodes.get(name) else {
            return;
        };
        let now = self.clock.now();
        let mut again: Option<Timestamp> = None;
        let mut leaving = Vec::new();
        for pod in node.pods.iter().filter_map(|key| self.pods.get(key)) {
            if pod.is_deleting() {
                continue;
            }
            match leave_time(node, pod, now) {
                Some(at) if at <= now => leaving.push((pod.key.clone(), pod.uid.clone())),
                Some(at) => again = Some(again.map_or(at, |other| other.min(at))),
                None => {}
            }
        }
        for (key, uid) in leaving {
            self.note_refusal(self.api.delete(
                &Resource::PODS,
                &key.namespace,
                &key.name,
                &DeleteOptions::of_uid(uid),
            ));
        }
        if let Some(at) = again {
            self.timers.set(at, Timer::TaintsAgain(name.to_owned()));
        }
    }
}

/// When a pod has to leave a node: now, later, or never.
fn leave_time(node: &NodeRecord, pod: &PodRecord, now: Timestamp) -> Option<Timestamp> {
    let tolerations = pod.shape.tolerations.iter();
    let mut leave: Option<Timestamp> = None;
    for taint in node
        .taints
        .iter()
        .filter(|taint| taint.effect == labels::NO_EXECUTE)
    {
        let covering: Vec<_> = tolerations
            .clone()
            .filter(|toleration| tolerates(toleration, taint))
            .collect();
        if covering.is_empty() {
            return Some(now);
        }
        // The shortest of the tolerations decides, from the moment when the pod met the taint.
        let seconds = covering
            .iter()
            .filter_map(|toleration| toleration.toleration_seconds)
            .min();
        if let Some(seconds) = seconds {
            let since = taint.time_added.as_ref().map_or(now, |time| time.0);
            let met = since.max(pod.created_at);
            let at = later(met, SignedDuration::from_secs(seconds.max(0)));
            leave = Some(leave.map_or(at, |other| other.min(at)));
        }
    }
    leave
}
