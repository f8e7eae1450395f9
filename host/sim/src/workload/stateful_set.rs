//! StatefulSets: pods with ordinals, their claims, in order or in parallel.
//!
//! Answers to `pkg/controller/statefulset` of Kubernetes.

use std::collections::BTreeMap;

use api_server::{NamespacedName, Resource};
use serde_json::{Value, json};

use super::{BURST_MAX, count, integer, template_hash};
use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::{is_deleting, uid};
use crate::cluster::pod::PodRecord;

const REVISION: &str = "controller-revision-hash";

impl SimulatedCluster {
    pub(super) fn reconcile_stateful_set(&mut self, key: &NamespacedName) {
        let Some(set) = self.object(&Resource::STATEFUL_SETS, key).cloned() else {
            return;
        };
        let revision = format!("{}-{}", key.name, template_hash(&set["spec"]["template"]));
        let start = integer(&set["spec"]["ordinals"]["start"], 0);
        let wanted = integer(&set["spec"]["replicas"], 1);
        let by_ordinal: BTreeMap<i64, &PodRecord> = self
            .pods_of(uid(&set))
            .filter_map(|pod| Some((pod.key.name.rsplit('-').next()?.parse().ok()?, pod)))
            .collect();
        if !is_deleting(&set) {
            self.step(&set, &by_ordinal, start..start + wanted, &revision);
        }
        let live = by_ordinal.values().filter(|pod| pod.is_live());
        let updated = |pod: &&&PodRecord| pod.label(REVISION) == Some(revision.as_str());
        let ready = count(live.clone().filter(|pod| pod.is_ready()));
        let status = json!({
            "observedGeneration": set["metadata"]["generation"],
            "replicas": count(live.clone()), "readyReplicas": ready, "availableReplicas": ready,
            "currentReplicas": count(live.clone().filter(updated)),
            "updatedReplicas": count(live.filter(updated)),
            "currentRevision": revision, "updateRevision": revision, "collisionCount": 0,
        });
        self.write_status(&Resource::STATEFUL_SETS, key, &status);
    }

    /// One step towards the wish: create, delete a failed pod, scale down, or update one.
    fn step(
        &self,
        set: &Value,
        pods: &BTreeMap<i64, &PodRecord>,
        ordinals: std::ops::Range<i64>,
        revision: &str,
    ) {
        let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
        let mut made = 0;
        for ordinal in ordinals.clone() {
            match pods.get(&ordinal) {
                None => {
                    self.create_ordinal(set, ordinal, revision);
                    made += 1;
                    if !parallel || made >= BURST_MAX {
                        return;
                    }
                }
                Some(pod) if !pod.phase.is_active() && !pod.is_deleting() => self.delete_pod(pod),
                Some(pod) if !parallel && (!pod.is_ready() || pod.is_deleting()) => return,
                Some(_) => {}
            }
        }
        if made > 0 {
            return;
        }
        // Scaling down goes from the highest ordinal, one at a time unless in parallel.
        let beyond = pods
            .iter()
            .rev()
            .filter(|(ordinal, _)| !ordinals.contains(ordinal));
        for (_, pod) in beyond {
            if !pod.is_deleting() {
                self.delete_pod(pod);
            }
            if !parallel {
                return;
            }
        }
        if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
            return;
        }
        let partition = integer(
            &set["spec"]["updateStrategy"]["rollingUpdate"]["partition"],
            0,
        );
        for (ordinal, pod) in pods
            .iter()
            .rev()
            .filter(|(ordinal, _)| **ordinal >= partition)
        {
            if !ordinals.contains(ordinal) {
                continue;
            }
            if pod.label(REVISION) != Some(revision) {
                if !pod.is_deleting() {
                    self.delete_pod(pod);
                }
                return;
            }
            if !pod.is_ready() {
                return;
            }
        }
    }

    fn create_ordinal(&self, set: &Value, ordinal: i64, revision: &str) {
        let metadata = &set["metadata"];
        let set_name = metadata["name"].as_str().unwrap_or_default();
        let name = format!("{set_name}-{ordinal}");
        let claims = self.create_claims(set, &name);
        self.create_pod(set, &set["spec"]["template"], |pod| {
            let own = &mut pod["metadata"];
            if let Some(own) = own.as_object_mut() {
                own.remove("generateName");
            }
            own["name"] = name.clone().into();
            own["labels"][REVISION] = revision.into();
            own["labels"]["statefulset.kubernetes.io/pod-name"] = name.clone().into();
            own["labels"]["apps.kubernetes.io/pod-index"] = ordinal.to_string().into();
            pod["spec"]["hostname"] = name.clone().into();
            pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
            let volumes = pod["spec"]["volumes"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let replaced = |volume: &Value| {
                claims
                    .iter()
                    .any(|(claim, _)| volume["name"] == claim.as_str())
            };
            let mut volumes: Vec<Value> = volumes.into_iter().filter(|v| !replaced(v)).collect();
            volumes.extend(claims.iter().map(|(volume, claim)| {
                json!({ "name": volume, "persistentVolumeClaim": { "claimName": claim } })
            }));
            if !volumes.is_empty() {
                pod["spec"]["volumes"] = volumes.into();
            }
        });
    }

    /// The claims of an ordinal, as (volume, claim); they outlive the pod.
    fn create_claims(&self, set: &Value, pod: &str) -> Vec<(String, String)> {
        let namespace = set["metadata"]["namespace"].as_str().unwrap_or_default();
        let mut claims = Vec::new();
        for template in set["spec"]["volumeClaimTemplates"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let volume = template["metadata"]["name"].as_str().unwrap_or_default();
            let claim = format!("{volume}-{pod}");
            let key = NamespacedName::new(namespace, claim.clone());
            if self
                .object(&Resource::PERSISTENT_VOLUME_CLAIMS, &key)
                .is_none()
            {
                let mut labels = template["metadata"]["labels"].clone();
                for (key, value) in set["spec"]["selector"]["matchLabels"]
                    .as_object()
                    .into_iter()
                    .flatten()
                {
                    labels[key] = value.clone();
                }
                let object = json!({
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                    "metadata": {
                        "name": claim, "namespace": namespace, "labels": labels,
                        "annotations": template["metadata"]["annotations"],
                    },
                    "spec": template["spec"],
                });
                self.note_refusal(self.api.create(
                    &Resource::PERSISTENT_VOLUME_CLAIMS,
                    namespace,
                    object,
                ));
            }
            claims.push((volume.to_owned(), claim));
        }
        claims
    }
}
