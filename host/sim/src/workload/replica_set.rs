//! ReplicaSets: as many pods as asked for.
//!
//! Which of too many go first is Kubernetes' order. Answers to `pkg/controller/replicaset` of Kubernetes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use api_server::{NamespacedName, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{BURST_MAX, count, integer};
use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::{controller_of, is_deleting, uid};
use crate::cluster::pod::{PodRecord, SimulatedPhase};
use crate::cluster::work::Work;

impl SimulatedCluster {
    pub(super) fn reconcile_replica_set(&mut self, key: &NamespacedName) {
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
                let missing = self.may_create(missing, Work::ReplicaSet, key);
                // The watch tells of each pod that was made and so brings this set back for the rest.
                for _ in 0..missing {
                    if !self.create_pod(&set, template, |_| {}) {
                        break;
                    }
                }
                return;
            }
            if live.len() > wanted {
                let (neighbours, now) = (self.neighbours(&set, key), self.clock.now());
                for pod in surplus(live.clone(), wanted, &neighbours, now) {
                    self.delete_pod(pod);
                }
            }
        }
        let ready = count(live.iter().filter(|pod| pod.is_ready()));
        let status = json!({
            "replicas": live.len(), "fullyLabeledReplicas": live.len(),
            "readyReplicas": ready, "availableReplicas": ready,
            "observedGeneration": set["metadata"]["generation"],
        });
        self.write_status(&Resource::REPLICA_SETS, key, &status);
    }

    /// Pods on each node of all ReplicaSets with the same controller.
    fn neighbours(&self, set: &Value, key: &NamespacedName) -> BTreeMap<&str, usize> {
        let controller = controller_of(set);
        let siblings = self.table(&Resource::REPLICA_SETS).filter(|(other, it)| {
            let of_the_same = || controller.is_some() && controller_of(it) == controller;
            *other == key || (other.namespace == key.namespace && of_the_same())
        });
        let mut neighbours = BTreeMap::new();
        let pods = siblings.flat_map(|(_, it)| self.pods_of(uid(it)));
        for node in pods
            .filter(|it| it.is_live())
            .filter_map(|it| it.node.as_deref())
        {
            *neighbours.entry(node).or_default() += 1;
        }
        neighbours
    }
}

/// Which pods go first: not bound, not running, not ready, cheap to delete, next to many of their kind, and of those
/// ready for about as long as each other any. Answers to `ActivePodsWithRanks` of kube-controller-manager.
fn surplus<'a>(
    mut live: Vec<&'a PodRecord>,
    wanted: usize,
    neighbours: &BTreeMap<&str, usize>,
    now: Timestamp,
) -> Vec<&'a PodRecord> {
    live.sort_by_cached_key(|pod| {
        let place = pod.node.as_deref();
        let crowd = place.and_then(|it| neighbours.get(it));
        (
            place.is_some(),
            pod.phase == SimulatedPhase::Running,
            pod.is_ready(),
            deletion_cost(pod),
            Reverse(crowd.copied().unwrap_or_default()),
            magnitude(pod.ready_since.unwrap_or(pod.created_at), now),
            pod.uid.clone(),
        )
    });
    live.truncate(live.len().saturating_sub(wanted));
    live
}

fn deletion_cost(pod: &PodRecord) -> i32 {
    let cost = pod.annotation("controller.kubernetes.io/pod-deletion-cost");
    cost.and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// Times since then that count as the same: less than twice as long, as `LogarithmicScaleDown` has it.
fn magnitude(since: Timestamp, now: Timestamp) -> Option<u32> {
    let nanoseconds = u128::try_from(now.duration_since(since).as_nanos()).ok()?;
    nanoseconds.checked_ilog2()
}
