//! A node as the scheduler and the controllers see it.

use std::collections::{BTreeMap, BTreeSet};

use api_server::NamespacedName;
use apis::labels;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::amounts::MilliAmounts;
use super::object_meta::deletion_time;
use super::shape::{SchedulingShape, strings};

/// A node with the pods that hold its resources.
#[derive(Debug)]
pub(crate) struct NodeRecord {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) unschedulable: bool,
    pub(crate) ready: bool,
    pub(crate) allocatable: MilliAmounts,
    pub(crate) free: MilliAmounts,
    pub(crate) pods: BTreeSet<NamespacedName>,
    /// How often each host port is taken (more than once by pods that did not ask the scheduler).
    pub(crate) host_ports: BTreeMap<(String, i32), u32>,
    pub(crate) instance_id: Option<String>,
    /// The first internal address.
    pub(crate) address: Option<String>,
    /// Since when it is being deleted.
    pub(crate) deleted_at: Option<Timestamp>,
}

impl NodeRecord {
    pub(crate) fn parse(object: &Value) -> Self {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let allocatable = MilliAmounts::from_value(&status["allocatable"]);
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let ready = conditions
            .clone()
            .any(|c| c["type"] == "Ready" && c["status"] == "True");
        let provider_id = spec["providerID"].as_str().unwrap_or_default();
        let mut addresses = status["addresses"].as_array().into_iter().flatten();
        let internal = addresses.find(|address| address["type"] == "InternalIP");
        Self {
            name: metadata["name"].as_str().unwrap_or_default().to_owned(),
            labels: strings(&metadata["labels"]),
            taints: serde_json::from_value(spec["taints"].clone()).unwrap_or_default(),
            unschedulable: spec["unschedulable"] == true,
            ready,
            free: allocatable.clone(),
            allocatable,
            pods: BTreeSet::new(),
            host_ports: BTreeMap::new(),
            instance_id: provider_id
                .rsplit('/')
                .next()
                .filter(|id| !id.is_empty())
                .map(ToOwned::to_owned),
            address: internal.and_then(|it| it["address"].as_str().map(ToOwned::to_owned)),
            deleted_at: deletion_time(object),
        }
    }

    /// Whether the scheduler and the DaemonSets see no difference.
    pub(crate) fn schedules_like(&self, other: &Self) -> bool {
        self.labels == other.labels
            && self.taints == other.taints
            && self.unschedulable == other.unschedulable
            && self.allocatable == other.allocatable
    }

    /// Has taints that say no time count from when they were first seen, so that tolerations of them end.
    pub(crate) fn date_taints(&mut self, old: Option<&Self>, now: Timestamp) {
        let before = |taint: &Taint| {
            let mut known = old.into_iter().flat_map(|old| &old.taints);
            let known = known.find(|it| it.key == taint.key && it.effect == taint.effect);
            known.and_then(|it| it.time_added.clone())
        };
        let drives_away = |taint: &&mut Taint| taint.effect == labels::NO_EXECUTE;
        for taint in self.taints.iter_mut().filter(drives_away) {
            if taint.time_added.is_none() {
                taint.time_added = before(taint).or(Some(Time(now)));
            }
        }
    }

    /// Carries the pods of the node's earlier version over.
    pub(crate) fn take_pods(&mut self, old: Self) {
        let mut used = old.allocatable;
        used.subtract(&old.free);
        self.free.subtract(&used);
        self.pods = old.pods;
        self.host_ports = old.host_ports;
    }

    pub(crate) fn add(&mut self, key: &NamespacedName, shape: &SchedulingShape) {
        if self.pods.insert(key.clone()) {
            self.free.subtract(&shape.requests);
            for port in &shape.host_ports {
                *self.host_ports.entry(port.clone()).or_default() += 1;
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &NamespacedName, shape: &SchedulingShape) {
        if self.pods.remove(key) {
            self.free.add(&shape.requests);
            for port in &shape.host_ports {
                if let Some(count) = self.host_ports.get_mut(port) {
                    *count = count.saturating_sub(1);
                }
            }
        }
    }

    pub(crate) fn has_no_execute_taint(&self) -> bool {
        self.taints
            .iter()
            .any(|taint| taint.effect == labels::NO_EXECUTE)
    }

    /// The first taint with one of these effects that nothing tolerates.
    pub(crate) fn untolerated(
        &self,
        tolerations: &[Toleration],
        effects: &[&str],
    ) -> Option<&Taint> {
        self.taints
            .iter()
            .filter(|taint| effects.contains(&taint.effect.as_str()))
            .find(|taint| {
                !tolerations
                    .iter()
                    .any(|toleration| tolerates(toleration, taint))
            })
    }
}

/// Whether a toleration covers a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let exists = toleration.operator.as_deref() == Some("Exists");
    (effect.is_empty() || effect == taint.effect)
        && (key == taint.key || (key.is_empty() && exists))
        && (exists
            || toleration.value.as_deref().unwrap_or_default()
                == taint.value.as_deref().unwrap_or_default())
}
