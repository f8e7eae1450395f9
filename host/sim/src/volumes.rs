//! Persistent volumes: default class, binding, and an EBS provisioner that waits for the first consumer.
//!
//! A volume lives in one zone and keeps its pods there. Answers to the PV controller, the scheduler's
//! VolumeBinding plugin and the EBS CSI driver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_server::{DeleteOptions, NamespacedName, ObjectPart, Resource};
use apis::names::EBS_DRIVER;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use serde_json::{Value, json};

use crate::cluster::SimulatedCluster;
use crate::cluster::node::NodeRecord;
use crate::cluster::object_meta::{is_deleting, uid};
use crate::cluster::shape::SchedulingShape;
use crate::random::hash;
use crate::scheduler::filter::matches_selector;

const ZONE: &str = "topology.kubernetes.io/zone";

/// Which nodes the volumes of a pod allow.
#[derive(Debug, Default)]
pub(crate) struct ClaimZones {
    selectors: Vec<NodeSelector>,
}

impl ClaimZones {
    pub(crate) fn admit(&self, node: &NodeRecord) -> bool {
        let mut selectors = self.selectors.iter();
        selectors.all(|selector| matches_selector(selector, node))
    }
}

impl SimulatedCluster {
    /// Where the volumes of a shape's claims are or may be, or why no node will do.
    pub(crate) fn claim_zones(&self, shape: &SchedulingShape) -> Result<ClaimZones, String> {
        let mut zones = ClaimZones::default();
        for name in &shape.claims {
            let key = NamespacedName::new(shape.namespace.clone(), name.clone());
            let claim = self
                .object(&Resource::PERSISTENT_VOLUME_CLAIMS, &key)
                .ok_or_else(|| format!("persistentvolumeclaim \"{name}\" not found"))?;
            if is_deleting(claim) {
                return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            if let Some(volume) = claim["spec"]["volumeName"].as_str() {
                zones.selectors.extend(self.volume_selector(volume));
                continue;
            }
            let Some(class) = self.class_of(claim) else {
                return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
            };
            if class["volumeBindingMode"] != "WaitForFirstConsumer" {
                return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
            }
            zones.selectors.extend(topologies(class));
        }
        Ok(zones)
    }

    fn volume_selector(&self, volume: &str) -> Option<NodeSelector> {
        let volume = self.object(
            &Resource::PERSISTENT_VOLUMES,
            &NamespacedName::new("", volume),
        )?;
        serde_json::from_value(volume["spec"]["nodeAffinity"]["required"].clone()).ok()
    }

    fn class_of(&self, claim: &Value) -> Option<&Arc<Value>> {
        let name = claim["spec"]["storageClassName"].as_str()?;
        self.object(&Resource::STORAGE_CLASSES, &NamespacedName::new("", name))
    }

    fn default_class(&self) -> Option<String> {
        let is_default = |class: &Value| {
            class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"]
                == "true"
        };
        let mut classes = self.table(&Resource::STORAGE_CLASSES);
        classes
            .find(|(_, class)| is_default(class))
            .map(|(key, _)| key.name.clone())
    }

    /// Makes the volumes of a shape's unbound claims in the zone of the node that was chosen.
    pub(crate) fn provision_claims(&self, shape: &SchedulingShape, node: &str) {
        let Some(zone) = self.nodes.get(node).and_then(|node| node.labels.get(ZONE)) else {
            return;
        };
        for name in &shape.claims {
            let key = NamespacedName::new(shape.namespace.clone(), name.clone());
            self.provision(&key, zone, Some(node));
        }
    }

    fn provision(&self, key: &NamespacedName, zone: &str, node: Option<&str>) {
        // Read the server's truth: a claim that several pods share is bound once.
        let read = self.api.get(
            &Resource::PERSISTENT_VOLUME_CLAIMS,
            &key.namespace,
            &key.name,
        );
        let Ok(claim) = read else { return };
        if claim["spec"]["volumeName"].is_string() {
            return;
        }
        let Some(class) = self.class_of(&claim) else {
            return;
        };
        let name = format!("pvc-{}", uid(&claim));
        let provisioner = class["provisioner"].clone();
        let volume = json!({
            "metadata": {
                "name": name,
                "annotations": { "pv.kubernetes.io/provisioned-by": provisioner },
            },
            "spec": {
                "accessModes": claim["spec"]["accessModes"],
                "capacity": { "storage": claim["spec"]["resources"]["requests"]["storage"] },
                "claimRef": {
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                    "namespace": key.namespace, "name": key.name, "uid": uid(&claim),
                },
                "csi": {
                    "driver": provisioner,
                    "volumeHandle": format!("vol-0{:016x}", hash(self.seed, &["volume", uid(&claim)])),
                },
                "persistentVolumeReclaimPolicy": class["reclaimPolicy"].as_str().unwrap_or("Delete"),
                "storageClassName": claim["spec"]["storageClassName"],
                "volumeMode": "Filesystem",
                "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [
                    { "key": ZONE, "operator": "In", "values": [zone] },
                ]}]}},
            },
        });
        let created = self.api.create(&Resource::PERSISTENT_VOLUMES, "", volume);
        if self.note_refusal(created).is_some() {
            self.bind_volume(key, &name, node);
        }
    }

    fn bind_volume(&self, claim: &NamespacedName, volume: &str, node: Option<&str>) {
        let bind = |claim: &mut Value| {
            claim["spec"]["volumeName"] = volume.into();
            let annotations = &mut claim["metadata"]["annotations"];
            annotations["pv.kubernetes.io/bind-completed"] = "yes".into();
            if let Some(node) = node {
                annotations["volume.kubernetes.io/selected-node"] = node.into();
            }
            claim["status"] = json!({
                "phase": "Bound",
                "accessModes": claim["spec"]["accessModes"],
                "capacity": { "storage": claim["spec"]["resources"]["requests"]["storage"] },
            });
        };
        self.note_refusal(self.api.modify_part(
            &Resource::PERSISTENT_VOLUME_CLAIMS,
            claim,
            ObjectPart::Whole,
            bind,
        ));
        let key = NamespacedName::new("", volume);
        self.note_refusal(self.api.modify_part(
            &Resource::PERSISTENT_VOLUMES,
            &key,
            ObjectPart::Whole,
            |volume| {
                volume["status"] = json!({ "phase": "Bound" });
            },
        ));
    }

    /// A claim came, changed or went.
    pub(crate) fn reconcile_claim(&mut self, key: &NamespacedName) {
        let Some(claim) = self
            .object(&Resource::PERSISTENT_VOLUME_CLAIMS, key)
            .cloned()
        else {
            self.release(key);
            return;
        };
        if claim["spec"]["volumeName"].is_string() || is_deleting(&claim) {
            return;
        }
        if claim["spec"]["storageClassName"].is_null() {
            if let Some(class) = self.default_class() {
                let set = |claim: &mut Value| claim["spec"]["storageClassName"] = class.into();
                let part = ObjectPart::Whole;
                self.note_refusal(self.api.modify_part(
                    &Resource::PERSISTENT_VOLUME_CLAIMS,
                    key,
                    part,
                    set,
                ));
            }
            return;
        }
        if let Some(volume) = self.matching_volume(&claim) {
            let part = ObjectPart::Whole;
            let reference =
                json!({ "namespace": key.namespace, "name": key.name, "uid": uid(&claim) });
            let at = NamespacedName::new("", volume.clone());
            self.note_refusal(self.api.modify_part(
                &Resource::PERSISTENT_VOLUMES,
                &at,
                part,
                |volume| {
                    volume["spec"]["claimRef"] = reference;
                },
            ));
            self.bind_volume(key, &volume, None);
            return;
        }
        let immediate = self.class_of(&claim).is_some_and(|class| {
            class["volumeBindingMode"] != "WaitForFirstConsumer"
                && class["provisioner"] != "kubernetes.io/no-provisioner"
        });
        if immediate {
            self.provision(key, &self.any_zone(uid(&claim)), None);
        }
    }

    /// A zone with nodes, by the seed and the claim's UID.
    fn any_zone(&self, claim_uid: &str) -> String {
        let nodes = self.nodes.values();
        let zones = nodes.filter_map(|node| node.labels.get(ZONE)).collect();
        let zone = draw(&zones, hash(self.seed, &["zone", claim_uid]));
        zone.map_or_else(|| format!("{}a", self.region), Clone::clone)
    }

    /// A free volume that somebody made by hand and that suits the claim.
    fn matching_volume(&self, claim: &Value) -> Option<String> {
        let size = |value: &Value| {
            value
                .as_str()
                .and_then(|text| apis::quantity::parse_millis(text).ok())
                .unwrap_or_default()
        };
        let wanted = size(&claim["spec"]["resources"]["requests"]["storage"]);
        let class = claim["spec"]["storageClassName"]
            .as_str()
            .unwrap_or_default();
        let suits = |volume: &Value| {
            let spec = &volume["spec"];
            spec["claimRef"].is_null()
                && spec["storageClassName"].as_str().unwrap_or_default() == class
                && size(&spec["capacity"]["storage"]) >= wanted
        };
        let mut volumes = self.table(&Resource::PERSISTENT_VOLUMES);
        volumes
            .find(|(_, volume)| suits(volume))
            .map(|(key, _)| key.name.clone())
    }

    fn release(&self, claim: &NamespacedName) {
        let of_claim = |volume: &Value| {
            let reference = &volume["spec"]["claimRef"];
            reference["namespace"] == claim.namespace.as_str()
                && reference["name"] == claim.name.as_str()
        };
        let volumes: Vec<(NamespacedName, bool)> = self
            .table(&Resource::PERSISTENT_VOLUMES)
            .filter(|(_, volume)| of_claim(volume))
            .map(|(key, volume)| {
                (
                    key.clone(),
                    volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete",
                )
            })
            .collect();
        for (key, deletes) in volumes {
            if deletes {
                let options = DeleteOptions::default();
                self.note_refusal(self.api.delete(
                    &Resource::PERSISTENT_VOLUMES,
                    "",
                    &key.name,
                    &options,
                ));
            } else {
                self.note_refusal(self.api.modify_status(
                    &Resource::PERSISTENT_VOLUMES,
                    &key,
                    |volume| {
                        volume["status"]["phase"] = "Released".into();
                    },
                ));
            }
        }
    }
}

/// One of the zones, each as likely as the others, however many nodes it has.
fn draw<'a>(zones: &BTreeSet<&'a String>, chance: u64) -> Option<&'a String> {
    let count = u64::try_from(zones.len()).ok()?;
    let at = usize::try_from(chance.checked_rem(count)?).ok()?;
    zones.iter().nth(at).copied()
}

/// A class's allowed topologies as a node selector.
fn topologies(class: &Value) -> Option<NodeSelector> {
    let terms = class["allowedTopologies"].as_array()?;
    let term = |term: &Value| NodeSelectorTerm {
        match_fields: None,
        match_expressions: Some(
            term["matchLabelExpressions"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|expression| NodeSelectorRequirement {
                    key: expression["key"].as_str().unwrap_or_default().to_owned(),
                    operator: "In".to_owned(),
                    values: serde_json::from_value(expression["values"].clone()).ok(),
                })
                .collect(),
        ),
    };
    Some(NodeSelector {
        node_selector_terms: terms.iter().map(term).collect(),
    })
}

/// The class that an EKS cluster with the EBS driver would have as its default.
pub(crate) fn gp3() -> Value {
    let annotations = BTreeMap::from([("storageclass.kubernetes.io/is-default-class", "true")]);
    json!({
        "metadata": { "name": "gp3", "annotations": annotations },
        "provisioner": EBS_DRIVER,
        "parameters": { "type": "gp3" },
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": true,
        "volumeBindingMode": "WaitForFirstConsumer",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_drawn_alike_whatever_the_order_of_their_nodes() {
        let zones_of_nodes = ["a", "b", "a", "c", "a", "a"].map(str::to_owned);
        let zones = zones_of_nodes.iter().collect();
        let drawn: Vec<_> = (0..6).filter_map(|it| draw(&zones, it)).collect();
        assert_eq!(drawn, ["a", "b", "c", "a", "b", "c"]);
        assert_eq!(draw(&BTreeSet::new(), 7), None);
    }
}
