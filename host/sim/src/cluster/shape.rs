//! What pods must share to be equal for the scheduler, parsed once for all pods that share it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, NodeSelector, PodAffinityTerm, PodSpec, PreferredSchedulingTerm, Toleration,
    TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::amounts::MilliAmounts;

/// Everything about a pod that scheduling looks at, but its name.
#[derive(Debug, Default)]
pub(crate) struct SchedulingShape {
    /// Order of first sight, so that equal shapes are found by number.
    pub(crate) id: usize,
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) requests: MilliAmounts,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) node_affinity: Option<NodeSelector>,
    pub(crate) preferred_node_affinity: Vec<PreferredSchedulingTerm>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) spread: Vec<TopologySpreadConstraint>,
    pub(crate) affinity: Vec<PodAffinityTerm>,
    pub(crate) anti_affinity: Vec<PodAffinityTerm>,
    /// (protocol, port) on the host.
    pub(crate) host_ports: Vec<(String, i32)>,
    pub(crate) claims: Vec<String>,
    pub(crate) priority: i32,
}

/// All shapes seen so far.
#[derive(Debug, Default)]
pub(crate) struct SchedulingShapes {
    shapes: BTreeMap<String, Arc<SchedulingShape>>,
    /// Shapes ever seen; the number of a forgotten one is not given again.
    seen: usize,
}

impl SchedulingShapes {
    /// The shape of a pod.
    pub(crate) fn shape(&mut self, pod: &Value) -> Arc<SchedulingShape> {
        let key = identity(pod);
        if let Some(shape) = self.shapes.get(&key) {
            return Arc::clone(shape);
        }
        self.seen += 1;
        let shape = Arc::new(SchedulingShape::parse(pod, self.seen));
        self.shapes.insert(key, Arc::clone(&shape));
        shape
    }

    /// Forgets shapes that no pod has any more.
    pub(crate) fn sweep(&mut self) {
        self.shapes.retain(|_, shape| Arc::strong_count(shape) > 1);
    }
}

impl SchedulingShape {
    fn parse(pod: &Value, id: usize) -> Self {
        let spec: PodSpec = serde_json::from_value(pod["spec"].clone()).unwrap_or_default();
        let affinity = spec.affinity.clone().unwrap_or_default();
        let node_affinity = affinity.node_affinity.unwrap_or_default();
        let volumes = spec.volumes.iter().flatten();
        let claims = volumes.filter_map(|volume| {
            let claim = volume
                .persistent_volume_claim
                .as_ref()
                .map(|claim| claim.claim_name.clone());
            // An ephemeral claim is named after its pod and volume.
            let owned = || {
                let pod = pod["metadata"]["name"].as_str()?;
                volume
                    .ephemeral
                    .as_ref()
                    .map(|_| format!("{pod}-{}", volume.name))
            };
            claim.or_else(owned)
        });
        let metadata = &pod["metadata"];
        Self {
            id,
            namespace: metadata["namespace"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            labels: strings(&metadata["labels"]),
            requests: requests(&spec),
            claims: claims.collect(),
            host_ports: host_ports(&spec),
            priority: spec.priority.unwrap_or_default(),
            node_selector: spec.node_selector.unwrap_or_default(),
            node_affinity: node_affinity.required_during_scheduling_ignored_during_execution,
            preferred_node_affinity: node_affinity
                .preferred_during_scheduling_ignored_during_execution
                .unwrap_or_default(),
            tolerations: spec.tolerations.unwrap_or_default(),
            spread: spec.topology_spread_constraints.unwrap_or_default(),
            affinity: affinity
                .pod_affinity
                .and_then(|a| a.required_during_scheduling_ignored_during_execution)
                .unwrap_or_default(),
            anti_affinity: affinity
                .pod_anti_affinity
                .and_then(|a| a.required_during_scheduling_ignored_during_execution)
                .unwrap_or_default(),
        }
    }

    /// Whether a node is right or wrong for it whatever goes on elsewhere, unless pods there keep it off.
    pub(crate) fn stands_alone(&self) -> bool {
        self.spread.is_empty()
            && self.affinity.is_empty()
            && self.anti_affinity.is_empty()
            && self.claims.is_empty()
    }

    /// The one node that the pod may run on, for DaemonSet pods.
    pub(crate) fn pinned_node(&self) -> Option<&str> {
        let terms = &self.node_affinity.as_ref()?.node_selector_terms;
        let [term] = terms.as_slice() else {
            return None;
        };
        let field = term
            .match_fields
            .as_ref()?
            .iter()
            .find(|f| f.key == "metadata.name")?;
        field.values.as_ref()?.first().map(String::as_str)
    }
}

/// The parts of a pod that decide its shape, as text.
fn identity(pod: &Value) -> String {
    let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
    let mut text = String::with_capacity(512);
    let mut put = |value: &Value| {
        if !value.is_null() {
            // Writing JSON to a string cannot fail.
            let _ = write!(text, "{value}");
        }
        text.push('\u{1f}');
    };
    for value in [&metadata["namespace"], &metadata["labels"]] {
        put(value);
    }
    for field in [
        "nodeSelector",
        "affinity",
        "tolerations",
        "topologySpreadConstraints",
        "priority",
        "overhead",
    ] {
        put(&spec[field]);
    }
    for field in ["containers", "initContainers"] {
        for container in spec[field].as_array().into_iter().flatten() {
            for part in ["resources", "ports", "restartPolicy"] {
                put(&container[part]);
            }
        }
    }
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        put(&volume["persistentVolumeClaim"]["claimName"]);
        if volume["ephemeral"].is_object() {
            put(&metadata["name"]);
            put(&volume["name"]);
        }
    }
    text
}

/// A JSON object of strings as a map.
pub(crate) fn strings(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// What kube-scheduler counts: containers and sidecars together, or the greatest init container.
fn requests(spec: &PodSpec) -> MilliAmounts {
    let of = |container: &Container| {
        let resources = container.resources.clone().unwrap_or_default();
        let mut amounts = MilliAmounts::from_quantities(&resources.limits.unwrap_or_default());
        let asked = MilliAmounts::from_quantities(&resources.requests.clone().unwrap_or_default());
        // A limit stands in for a request that is missing.
        for name in resources.requests.unwrap_or_default().keys() {
            match name.as_str() {
                "cpu" => amounts.cpu = asked.cpu,
                "memory" => amounts.memory = asked.memory,
                "ephemeral-storage" => amounts.ephemeral_storage = asked.ephemeral_storage,
                _ => amounts.set(name, asked.extended.get(name).copied().unwrap_or_default()),
            }
        }
        amounts
    };
    let mut sidecars = MilliAmounts::default();
    let mut peak = MilliAmounts::default();
    for container in spec.init_containers.iter().flatten() {
        let mut here = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&here);
            here = MilliAmounts::default();
        }
        here.add(&sidecars);
        peak.raise_to(&here);
    }
    let mut total = sidecars;
    for container in &spec.containers {
        total.add(&of(container));
    }
    total.raise_to(&peak);
    total.add(&MilliAmounts::from_quantities(
        spec.overhead.as_ref().unwrap_or(&BTreeMap::new()),
    ));
    total.pods = 1_000;
    total
}

fn host_ports(spec: &PodSpec) -> Vec<(String, i32)> {
    let ports = spec
        .containers
        .iter()
        .flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            Some((
                port.protocol.clone().unwrap_or_else(|| "TCP".into()),
                port.host_port?,
            ))
        })
        .filter(|(_, port)| *port > 0)
        .collect()
}

/// Whether labels satisfy a selector; none selects nothing.
pub(crate) fn selects(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    let Some(selector) = selector else {
        return false;
    };
    let equal = selector
        .match_labels
        .iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    equal
        && selector.match_expressions.iter().flatten().all(|e| {
            let value = labels.get(&e.key);
            let listed =
                || value.is_some_and(|v| e.values.iter().flatten().any(|other| other == v));
            match e.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}
