//! PodDisruptionBudgets: how many of the pods they cover may be missing.
//!
//! Only counts: evictions are refused by the API server. Answers to `pkg/controller/disruption` of Kubernetes.

use std::collections::BTreeSet;

use api_server::{NamespacedName, Resource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use super::{count, int_or_percent, integer};
use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::{ControllerRef, controller_of};
use crate::cluster::pod::PodRecord;
use crate::cluster::shape::selects;
use crate::status::set_condition;

impl SimulatedCluster {
    pub(super) fn reconcile_budget(&mut self, key: &NamespacedName) {
        let Some(budget) = self.object(&Resource::POD_DISRUPTION_BUDGETS, key).cloned() else {
            return;
        };
        let spec = &budget["spec"];
        let selector: Option<LabelSelector> = serde_json::from_value(spec["selector"].clone()).ok();
        let covered: Vec<&PodRecord> = self
            .pods
            .range(NamespacedName::new(key.namespace.clone(), "")..)
            .take_while(|(other, _)| other.namespace == key.namespace)
            .map(|(_, pod)| pod)
            .filter(|pod| pod.phase.is_active() && selects(selector.as_ref(), &pod.shape.labels))
            .collect();
        let healthy = count(
            covered
                .iter()
                .filter(|pod| pod.is_ready() && !pod.is_deleting()),
        );
        let expected = self.expected(&covered, spec["minAvailable"].is_i64());
        let desired = match int_or_percent(&spec["maxUnavailable"], expected, true) {
            Some(unavailable) => (expected - unavailable).max(0),
            None => int_or_percent(&spec["minAvailable"], expected, true).unwrap_or_default(),
        };
        let allowed = if expected > 0 {
            (healthy - desired).max(0)
        } else {
            0
        };
        let now = self.clock.now_seconds();
        let mut status = json!({ "conditions": budget["status"]["conditions"] });
        let (value, reason) = if allowed > 0 {
            ("True", "SufficientPods")
        } else {
            ("False", "InsufficientPods")
        };
        let condition = json!({
            "type": "DisruptionAllowed", "status": value, "reason": reason, "message": "",
            "observedGeneration": budget["metadata"]["generation"],
        });
        set_condition(&mut status, condition, now);
        let fields = json!({
            "observedGeneration": budget["metadata"]["generation"],
            "currentHealthy": healthy, "desiredHealthy": desired,
            "expectedPods": expected, "disruptionsAllowed": allowed,
            "disruptedPods": {},
            "conditions": status["conditions"],
        });
        self.write_status(&Resource::POD_DISRUPTION_BUDGETS, key, &fields);
    }

    /// Pods there should be: what their controllers ask for, or those there are where a number needs no more.
    fn expected(&self, covered: &[&PodRecord], by_number: bool) -> i64 {
        if by_number {
            return count(covered.iter());
        }
        let mut owners = BTreeSet::new();
        let mut expected = 0;
        for pod in covered {
            match &pod.owner {
                None => expected += 1,
                Some(owner) => {
                    if owners.insert(owner.uid.clone()) {
                        expected += self.scale_of(owner, &pod.key.namespace).unwrap_or_else(|| {
                            count(covered.iter().filter(|p| p.owner.as_ref() == Some(owner)))
                        });
                    }
                }
            }
        }
        expected
    }

    /// Replicas that a controller's own controller asks for.
    fn scale_of(&self, owner: &ControllerRef, namespace: &str) -> Option<i64> {
        let resource = match owner.kind.as_str() {
            "ReplicaSet" => Resource::REPLICA_SETS,
            "StatefulSet" => Resource::STATEFUL_SETS,
            "Deployment" => Resource::DEPLOYMENTS,
            _ => return None,
        };
        let object: &Value = self.object(
            &resource,
            &NamespacedName::new(namespace, owner.name.clone()),
        )?;
        if let Some(parent) = controller_of(object).filter(|parent| parent.kind == "Deployment") {
            return self.scale_of(&parent, namespace);
        }
        Some(integer(&object["spec"]["replicas"], 1))
    }
}
