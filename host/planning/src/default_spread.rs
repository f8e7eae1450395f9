//! Default topology spread: the scheduler's own constraints for pods that declare none.
//!
//! Whom such a constraint counts follows from the services that find the pod and from its controller. Answers to the
//! deduction in Kubernetes' `PodTopologySpread` plugin and Karpenter's reading of its configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::validation::is_qualified_name;
use apis::{ObjectKey, labels};
use scheduling::pod::{LabelSelector, Pod, PodShape, SelectorOperator, TopologySpread};
use serde::Deserialize;
use serde_json::Value;
use state::Snapshot;
use state::workloads::WorkloadKind;

/// The pods, those without spread constraints with the defaults where it can be said whom they count.
pub(crate) fn with_defaults(
    snapshot: &Snapshot,
    defaults: &[TopologySpread],
    pods: Vec<Arc<Pod>>,
) -> Vec<Arc<Pod>> {
    if defaults.is_empty() {
        return pods;
    }
    // Equal pods stay equal: one new shape for each old one.
    let mut known: BTreeMap<usize, Option<Arc<PodShape>>> = BTreeMap::new();
    let spread = |pod: Arc<Pod>| {
        let at = Arc::as_ptr(&pod.shape).addr();
        let shape = known
            .entry(at)
            .or_insert_with(|| spread_shape(snapshot, defaults, &pod.shape));
        match shape {
            Some(shape) => Arc::new(Pod {
                shape: Arc::clone(shape),
                ..(*pod).clone()
            }),
            None => pod,
        }
    };
    pods.into_iter().map(spread).collect()
}

fn spread_shape(
    snapshot: &Snapshot,
    defaults: &[TopologySpread],
    shape: &PodShape,
) -> Option<Arc<PodShape>> {
    if !shape.topology_spread.is_empty() {
        return None;
    }
    let selector = deduced(snapshot, shape);
    if selector.requirements.is_empty() {
        return None;
    }
    let with_selector = |it: &TopologySpread| TopologySpread {
        selector: Some(selector.clone()),
        ..it.clone()
    };
    Some(Arc::new(PodShape {
        topology_spread: defaults.iter().map(with_selector).collect(),
        ..shape.clone()
    }))
}

/// Whom the pod is one of: the labels of its services, and the selector of its controller.
fn deduced(snapshot: &Snapshot, shape: &PodShape) -> LabelSelector {
    let workloads = snapshot.workloads();
    let mut labels = workloads.service_labels(shape);
    let owner = shape.owner.as_ref();
    let kind = owner.and_then(|it| WorkloadKind::of_owner(&it.api_version, &it.kind));
    let controller = owner.zip(kind).and_then(|(owner, kind)| {
        let key = ObjectKey::new(&shape.namespace, &owner.name);
        Some((kind, workloads.find(kind, &key)?))
    });
    let mut selector = LabelSelector::default();
    match controller {
        // Its selector is a map like a service's, and has the last word on each label.
        Some((WorkloadKind::ReplicationController, it)) => {
            for requirement in &it.selector.requirements {
                let value = requirement.values.first().cloned().unwrap_or_default();
                labels.insert(requirement.key.clone(), value);
            }
        }
        Some((WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet, it)) => {
            selector.clone_from(&it.selector);
        }
        Some((WorkloadKind::Deployment | WorkloadKind::PodTemplate | WorkloadKind::Job, _))
        | None => {}
    }
    for (label, value) in labels {
        selector.require(&label, SelectorOperator::In, [value]);
    }
    selector
}

/// The scheduler's configuration, as far as it is understood; anything else in it is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ConfigDocument {
    #[serde(default)]
    pod_topology_spread: PodTopologySpread,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PodTopologySpread {
    #[serde(default)]
    default_constraints: Vec<ConfiguredConstraint>,
}

/// A spread constraint whose every field is known, so that a slip is an error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ConfiguredConstraint {
    #[serde(default)]
    max_skew: i32,
    #[serde(default)]
    topology_key: String,
    #[serde(default)]
    when_unsatisfiable: String,
    #[serde(default)]
    min_domains: Option<i32>,
    #[serde(default)]
    node_affinity_policy: Option<String>,
    #[serde(default)]
    node_taints_policy: Option<String>,
    #[serde(default)]
    label_selector: Option<Value>,
    #[serde(default)]
    match_label_keys: Option<Vec<String>>,
}

/// Why a scheduler's configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidConfig {
    /// It has another form.
    #[error("{0}")]
    Form(String),
    /// A field of a constraint is wrong.
    #[error("podTopologySpread.defaultConstraints[{index}].{field}: {message}")]
    Constraint {
        /// Position of the constraint in the list, from 0.
        index: usize,
        field: &'static str,
        /// Fault of the field, in words.
        message: String,
    },
}

/// The default constraints of a scheduler's configuration, each with its selector still open.
pub fn parse(config: Value) -> Result<Vec<TopologySpread>, InvalidConfig> {
    if config.is_null() {
        return Ok(Vec::new());
    }
    let config: ConfigDocument =
        serde_json::from_value(config).map_err(|it| InvalidConfig::Form(it.to_string()))?;
    let mut known = BTreeSet::new();
    let constraints = config.pod_topology_spread.default_constraints;
    let constraints = constraints.into_iter().enumerate();
    let parsed = constraints.map(|(index, constraint)| {
        let wrong = |(field, message)| InvalidConfig::Constraint {
            index,
            field,
            message,
        };
        check(&constraint).map_err(wrong)?;
        let identity = (
            constraint.topology_key.clone(),
            constraint.when_unsatisfiable.clone(),
        );
        if !known.insert(identity) {
            let message = format!(
                "{:?} with {:?} is there already",
                constraint.topology_key, constraint.when_unsatisfiable
            );
            return Err(wrong(("topologyKey", message)));
        }
        Ok(TopologySpread {
            max_skew: constraint.max_skew,
            topology_key: labels::normalize(&constraint.topology_key).to_owned(),
            is_required: constraint.when_unsatisfiable == "DoNotSchedule",
            selector: None,
            min_domains: constraint.min_domains,
            honors_node_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honors_node_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        })
    });
    parsed.collect()
}

fn check(constraint: &ConfiguredConstraint) -> Result<(), (&'static str, String)> {
    let ConfiguredConstraint {
        max_skew,
        topology_key,
        when_unsatisfiable,
        min_domains,
        node_affinity_policy,
        node_taints_policy,
        label_selector,
        match_label_keys,
    } = constraint;
    if *max_skew <= 0 {
        return Err(("maxSkew", format!("{max_skew} is not greater than 0")));
    }
    if !is_qualified_name(topology_key) {
        return Err(("topologyKey", format!("{topology_key:?} is no label key")));
    }
    let is_required = when_unsatisfiable == "DoNotSchedule";
    if !is_required && when_unsatisfiable != "ScheduleAnyway" {
        let message = format!("{when_unsatisfiable:?} is neither DoNotSchedule nor ScheduleAnyway");
        return Err(("whenUnsatisfiable", message));
    }
    if min_domains.is_some_and(|it| it <= 0 || !is_required) {
        let message = "takes a number greater than 0, and DoNotSchedule".to_owned();
        return Err(("minDomains", message));
    }
    for (field, policy) in [
        ("nodeAffinityPolicy", node_affinity_policy),
        ("nodeTaintsPolicy", node_taints_policy),
    ] {
        let policy = policy.as_deref().unwrap_or("Honor");
        if policy != "Honor" && policy != "Ignore" {
            return Err((field, format!("{policy:?} is neither Honor nor Ignore")));
        }
    }
    if label_selector.is_some() {
        let message = "is deduced from each pod, so none may be set".to_owned();
        return Err(("labelSelector", message));
    }
    if match_label_keys.as_ref().is_some_and(|it| !it.is_empty()) {
        return Err(("matchLabelKeys", "may not be set".to_owned()));
    }
    Ok(())
}
