//! Deployments: ReplicaSets by template, rolled over within surge and unavailability.
//!
//! Makes no pods itself: ReplicaSets do. Answers to `pkg/controller/deployment` of Kubernetes.

use std::sync::Arc;

use api_server::{DeleteOptions, NamespacedName, Resource};
use serde_json::{Value, json};

use super::{int_or_percent, integer, owner_reference, template_hash};
use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::{is_controlled_by, is_deleting, uid};
use crate::status::set_condition;

const HASH_LABEL: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

impl SimulatedCluster {
    pub(super) fn reconcile_deployment(&mut self, key: &NamespacedName) {
        let Some(deployment) = self.object(&Resource::DEPLOYMENTS, key).cloned() else {
            return;
        };
        if is_deleting(&deployment) {
            return;
        }
        let hash = template_hash(&deployment["spec"]["template"]);
        let sets: Vec<Arc<Value>> = self
            .table(&Resource::REPLICA_SETS)
            .filter(|(other, _)| other.namespace == key.namespace)
            .filter(|(_, set)| is_controlled_by(set, uid(&deployment)))
            .map(|(_, set)| Arc::clone(set))
            .collect();
        let is_new = |set: &&Arc<Value>| set["metadata"]["labels"][HASH_LABEL] == hash.as_str();
        let old: Vec<Arc<Value>> = sets.iter().filter(|set| !is_new(set)).cloned().collect();
        let paused = deployment["spec"]["paused"] == true;
        match sets.iter().find(is_new) {
            new if paused => self.scale_paused(&deployment, new, &old),
            None => {
                self.create_replica_set(&deployment, &hash, &old);
                return;
            }
            Some(new) => self.roll(&deployment, new, &old),
        }
        self.deployment_status(key, &deployment, &sets, &hash);
    }

    fn create_replica_set(&self, deployment: &Value, hash: &str, old: &[Arc<Value>]) {
        let (metadata, spec) = (&deployment["metadata"], &deployment["spec"]);
        let name = format!("{}-{hash}", metadata["name"].as_str().unwrap_or_default());
        let mut template = spec["template"].clone();
        template["metadata"]["labels"][HASH_LABEL] = hash.into();
        let mut selector = spec["selector"].clone();
        selector["matchLabels"][HASH_LABEL] = hash.into();
        let revision = old
            .iter()
            .filter_map(|set| revision(set))
            .max()
            .unwrap_or_default()
            + 1;
        let wanted = integer(&spec["replicas"], 1);
        let running: i64 = old
            .iter()
            .map(|set| integer(&set["status"]["replicas"], 0))
            .sum();
        let replicas = match strategy(spec) {
            Strategy::Recreate if running > 0 => 0,
            Strategy::Recreate => wanted,
            Strategy::Rolling { surge, .. } => wanted.min((wanted + surge - running).max(0)),
        };
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": name, "namespace": metadata["namespace"],
                "labels": template["metadata"]["labels"],
                "annotations": {
                    REVISION: revision.to_string(),
                    "deployment.kubernetes.io/desired-replicas": wanted.to_string(),
                },
                "ownerReferences": [owner_reference(deployment)],
            },
            "spec": { "replicas": replicas, "selector": selector, "template": template },
        });
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let created = self.api.create(&Resource::REPLICA_SETS, namespace, set);
        if self.note_refusal(created).is_none() {
            return;
        }
        let key = NamespacedName::of(deployment);
        self.note_refusal(self.api.modify(&Resource::DEPLOYMENTS, &key, |deployment| {
            deployment["metadata"]["annotations"][REVISION] = revision.to_string().into();
        }));
    }

    fn roll(&self, deployment: &Value, new: &Value, old: &[Arc<Value>]) {
        let spec = &deployment["spec"];
        let wanted = integer(&spec["replicas"], 1);
        let has = |set: &Value| integer(&set["spec"]["replicas"], 0);
        let old_total: i64 = old.iter().map(|set| has(set)).sum();
        match strategy(spec) {
            Strategy::Recreate => {
                for set in old.iter().filter(|set| has(set) > 0) {
                    self.scale_set(set, 0);
                }
                let running: i64 = old
                    .iter()
                    .map(|set| integer(&set["status"]["replicas"], 0))
                    .sum();
                if running == 0 {
                    self.scale_set(new, wanted);
                }
            }
            Strategy::Rolling { surge, unavailable } => {
                // Scaling down to fewer replicas, or up into the room that surge leaves.
                let room = (wanted + surge - old_total).max(0);
                let target = if has(new) > wanted {
                    wanted
                } else {
                    wanted.min(room).max(has(new))
                };
                self.scale_set(new, target);
                let available = |set: &Value| integer(&set["status"]["availableReplicas"], 0);
                let total: i64 =
                    available(new).min(target) + old.iter().map(|set| available(set)).sum::<i64>();
                let mut spare = total - (wanted - unavailable);
                for set in old.iter().filter(|set| has(set) > 0) {
                    // Replicas that are not available serve nobody: they go first and free of charge.
                    let broken = (has(set) - available(set)).max(0);
                    let healthy = spare.clamp(0, has(set) - broken);
                    spare -= healthy;
                    self.scale_set(set, has(set) - broken - healthy);
                }
            }
        }
        self.prune(deployment, old);
    }

    /// Scales what does not roll: the one set that has replicas, or the newest where none has. Upstream scales several
    /// in proportion; here they stay as they are.
    fn scale_paused(&self, deployment: &Value, new: Option<&Arc<Value>>, old: &[Arc<Value>]) {
        let has_replicas = |set: &&Arc<Value>| integer(&set["spec"]["replicas"], 0) > 0;
        let mut active = old.iter().chain(new).filter(has_replicas);
        let set = match (active.next(), active.next()) {
            (None, _) => new.or_else(|| old.iter().max_by_key(|set| revision(set))),
            (only, None) => only,
            (Some(_), Some(_)) => None,
        };
        if let Some(set) = set {
            self.scale_set(set, integer(&deployment["spec"]["replicas"], 1));
        }
    }

    fn scale_set(&self, set: &Value, replicas: i64) {
        if integer(&set["spec"]["replicas"], 0) != replicas {
            let key = NamespacedName::of(set);
            self.note_refusal(self.api.modify(&Resource::REPLICA_SETS, &key, |set| {
                set["spec"]["replicas"] = replicas.into();
            }));
        }
    }

    /// Deletes old ReplicaSets beyond the history that is kept.
    fn prune(&self, deployment: &Value, old: &[Arc<Value>]) {
        let kept = integer(&deployment["spec"]["revisionHistoryLimit"], 10);
        let mut empty: Vec<&Arc<Value>> = old
            .iter()
            .filter(|set| integer(&set["spec"]["replicas"], 0) == 0)
            .filter(|set| integer(&set["status"]["replicas"], 0) == 0)
            .collect();
        empty.sort_by_key(|set| revision(set));
        let excess = empty
            .len()
            .saturating_sub(usize::try_from(kept).unwrap_or_default());
        for set in empty.into_iter().take(excess) {
            let key = NamespacedName::of(set);
            let options = DeleteOptions::default();
            self.note_refusal(self.api.delete(
                &Resource::REPLICA_SETS,
                &key.namespace,
                &key.name,
                &options,
            ));
        }
    }

    fn deployment_status(
        &self,
        key: &NamespacedName,
        deployment: &Value,
        sets: &[Arc<Value>],
        hash: &str,
    ) {
        let wanted = integer(&deployment["spec"]["replicas"], 1);
        let sum = |field: &str, only_new: bool| -> i64 {
            sets.iter()
                .filter(|set| !only_new || set["metadata"]["labels"][HASH_LABEL] == hash)
                .map(|set| integer(&set["status"][field], 0))
                .sum()
        };
        let (total, updated) = (sum("replicas", false), sum("replicas", true));
        let available = sum("availableReplicas", false);
        let unavailable_max = match strategy(&deployment["spec"]) {
            Strategy::Recreate => 0,
            Strategy::Rolling { unavailable, .. } => unavailable,
        };
        let minimum = available >= wanted - unavailable_max;
        let complete = updated == wanted && total == wanted && available == wanted;
        let now = self.clock.now_seconds();
        let mut status = json!({ "conditions": deployment["status"]["conditions"] });
        let condition = if minimum {
            json!({ "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability." })
        } else {
            json!({ "type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
                "message": "Deployment does not have minimum availability." })
        };
        set_condition(&mut status, condition, now);
        let name = format!("{}-{hash}", key.name);
        let (reason, verb) = if complete {
            ("NewReplicaSetAvailable", "has successfully progressed")
        } else {
            ("ReplicaSetUpdated", "is progressing")
        };
        let message = format!("ReplicaSet \"{name}\" {verb}.");
        let progress = json!({ "type": "Progressing", "status": "True", "reason": reason, "message": message });
        set_condition(&mut status, progress, now);
        let fields = json!({
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": total, "updatedReplicas": updated,
            "readyReplicas": sum("readyReplicas", false),
            "availableReplicas": available,
            "unavailableReplicas": (wanted.max(total) - available).max(0),
            "conditions": status["conditions"],
        });
        self.write_status(&Resource::DEPLOYMENTS, key, &fields);
    }
}

enum Strategy {
    Recreate,
    Rolling { surge: i64, unavailable: i64 },
}

fn strategy(spec: &Value) -> Strategy {
    if spec["strategy"]["type"] == "Recreate" {
        return Strategy::Recreate;
    }
    let wanted = integer(&spec["replicas"], 1);
    let rolling = &spec["strategy"]["rollingUpdate"];
    let surge = int_or_percent(&rolling["maxSurge"], wanted, true);
    let surge = surge.unwrap_or_else(|| (wanted + 3) / 4);
    let unavailable = int_or_percent(&rolling["maxUnavailable"], wanted, false);
    let unavailable = unavailable.unwrap_or(wanted / 4);
    // Both zero would never move.
    Strategy::Rolling {
        surge,
        unavailable: if surge == 0 {
            unavailable.max(1)
        } else {
            unavailable
        },
    }
}

fn revision(set: &Value) -> Option<i64> {
    set["metadata"]["annotations"][REVISION]
        .as_str()?
        .parse()
        .ok()
}
