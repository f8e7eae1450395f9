//! Words of the scheduler about pods that found no node: the condition and the event.

use api_server::{NamespacedName, Resource};
use serde_json::json;

use super::filter::Rejections;
use crate::cluster::SimulatedCluster;
use crate::status::{SimulatedEvent, set_condition, write_event};

/// Pods of one group that get an event each time; the rest only get the condition.
const EVENTS_MAX: usize = 100;

/// kube-scheduler's sentence.
pub(super) fn message(nodes: usize, rejections: &Rejections) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: Vec<String> = rejections
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    reasons.sort();
    let count = rejections.values().sum::<usize>().min(nodes);
    format!(
        "0/{nodes} nodes are available: {}. preemption: 0/{nodes} nodes are available: {count} No preemption victims found for incoming pod.",
        reasons.join(", ")
    )
}

impl SimulatedCluster {
    /// Says so on pods that were not told before.
    pub(crate) fn report_unschedulable(&mut self, pods: &[NamespacedName], message: &str) {
        let now = self.clock.now_seconds();
        let news: Vec<&NamespacedName> = pods
            .iter()
            .filter(|key| {
                self.pods
                    .get(*key)
                    .is_some_and(|pod| !pod.reported_unschedulable)
            })
            .collect();
        for (index, key) in news.into_iter().enumerate() {
            let written = self.note_refusal(self.api.modify_status(&Resource::PODS, key, |pod| {
                let condition = json!({
                    "type": "PodScheduled", "status": "False",
                    "reason": "Unschedulable", "message": message,
                });
                set_condition(&mut pod["status"], condition, now);
            }));
            if index < EVENTS_MAX
                && let Some(pod) = written
            {
                self.note_refusal(write_event(
                    &self.api,
                    &pod,
                    SimulatedEvent::FailedScheduling,
                    message,
                    now,
                ));
            }
        }
    }
}
