//! ReplicaSets: as many pods as asked for.

use serde_json::json;

use super::{BURST_MAX, count, integer};
use crate::api_server::{ObjectKey, Resource};
use crate::cluster::{Cluster, PodRecord, is_deleting, uid};

impl Cluster {
    pub(super) fn reconcile_replica_set(&mut self, key: &ObjectKey) {
        let Some(set) = self.object(&Resource::REPLICA_SETS, key).cloned() else {
            return;
        };
        let live: Vec<&PodRecord> = self
            .pods_of(uid(&set))
            .filter(|pod| pod.is_live())
            .collect();
        let wanted = usize::try_from(integer(&set["spec"]["replicas"], 1)).unwrap_or_default();
        if !is_deleting(&set) {
            if live.len() < wanted {
                let template = &set["spec"]["template"];
                let missing = (wanted - live.len()).min(BURST_MAX);
                // The watch tells of each pod that was made and so brings this set back for the rest.
                let _ = (0..missing)
                    .take_while(|_| self.create_pod(&set, template, |_| {}))
                    .count();
                return;
            }
            for pod in surplus(live.clone(), wanted) {
                self.delete_pod(pod);
            }
        }
        let ready = count(live.iter().filter(|pod| pod.ready));
        let status = json!({
            "replicas": live.len(), "fullyLabeledReplicas": live.len(),
            "readyReplicas": ready, "availableReplicas": ready,
            "observedGeneration": set["metadata"]["generation"],
        });
        self.write_status(&Resource::REPLICA_SETS, key, &status);
    }
}

/// Which pods go first: not bound, not running, not ready, youngest.
fn surplus(mut live: Vec<&PodRecord>, wanted: usize) -> Vec<&PodRecord> {
    if live.len() <= wanted {
        return Vec::new();
    }
    let excess = live.len() - wanted;
    live.sort_by(|a, b| {
        let rank = |pod: &PodRecord| {
            (
                pod.node.is_some(),
                pod.phase == crate::cluster::Phase::Running,
                pod.ready,
            )
        };
        let cost = |pod: &PodRecord| {
            let cost = pod.annotation("controller.kubernetes.io/pod-deletion-cost");
            cost.and_then(|cost| cost.parse::<i64>().ok())
                .unwrap_or_default()
        };
        rank(a)
            .cmp(&rank(b))
            .then(cost(a).cmp(&cost(b)))
            .then(b.created_at.cmp(&a.created_at))
            .then(b.key.cmp(&a.key))
    });
    live.truncate(excess);
    live
}
