//! Spread constraints that a scheduler's configuration gives to pods that declare none.
//!
//! Anything in them that is not understood is an error. Answers to Karpenter's reading of the configuration, and to
//! the checks of Kubernetes' `PodTopologySpreadArgs`.

use std::collections::BTreeSet;

use apis::labels;
use apis::validation::is_qualified_name;
use scheduling::pod::{NodeInclusionPolicy, TopologySpread, WhenUnsatisfiable};
use serde::Deserialize;
use serde_json::Value;

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
pub fn default_constraints(config: Value) -> Result<Vec<TopologySpread>, InvalidConfig> {
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
        let spread = default_spread(&constraint).map_err(wrong)?;
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
        Ok(spread)
    });
    parsed.collect()
}

/// The constraint, or its first wrong field and what is wrong with it.
fn default_spread(
    constraint: &ConfiguredConstraint,
) -> Result<TopologySpread, (&'static str, String)> {
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
    let when = WhenUnsatisfiable::parse(when_unsatisfiable).ok_or_else(|| {
        let message = format!("{when_unsatisfiable:?} is neither DoNotSchedule nor ScheduleAnyway");
        ("whenUnsatisfiable", message)
    })?;
    let is_required = when == WhenUnsatisfiable::DoNotSchedule;
    if min_domains.is_some_and(|it| it <= 0 || !is_required) {
        let message = "takes a number greater than 0, and DoNotSchedule".to_owned();
        return Err(("minDomains", message));
    }
    let policy = |field, policy: Option<&String>| {
        let wrong = |text| (field, format!("{text:?} is neither Honor nor Ignore"));
        policy
            .map(|text| NodeInclusionPolicy::parse(text).ok_or_else(|| wrong(text)))
            .transpose()
    };
    let affinity = policy("nodeAffinityPolicy", node_affinity_policy.as_ref())?;
    let taints = policy("nodeTaintsPolicy", node_taints_policy.as_ref())?;
    if label_selector.is_some() {
        let message = "is deduced from each pod, so none may be set".to_owned();
        return Err(("labelSelector", message));
    }
    if match_label_keys.as_ref().is_some_and(|it| !it.is_empty()) {
        return Err(("matchLabelKeys", "may not be set".to_owned()));
    }
    Ok(TopologySpread {
        max_skew: *max_skew,
        topology_key: labels::normalize(topology_key).to_owned(),
        is_required,
        selector: None,
        min_domains: *min_domains,
        honors_node_affinity: affinity != Some(NodeInclusionPolicy::Ignore),
        honors_node_taints: taints == Some(NodeInclusionPolicy::Honor),
    })
}
