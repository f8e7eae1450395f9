//! Filters that judge one node for one shape of pod, and their words.
//!
//! Never writes, and looks at no other node.

use std::collections::BTreeMap;
use std::fmt;

use apis::labels;
use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

use crate::cluster::amounts::Shortage;
use crate::cluster::node::NodeRecord;
use crate::cluster::shape::SchedulingShape;

/// Reasons for which nodes were turned down, with counts, as kube-scheduler reports them.
pub(crate) type Rejections = BTreeMap<String, usize>;

/// Why a node was turned down, in kube-scheduler's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FilterFailure<'a> {
    Unschedulable,
    /// Key and value of the taint.
    Taint(&'a str, &'a str),
    Affinity,
    Volume,
    TooManyPods,
    /// The named resource is short.
    Insufficient(&'a str),
    HostPorts,
    PodAffinity,
    PodAntiAffinity,
    ExistingAntiAffinity,
    Spread,
    SpreadMissingLabel,
}

impl fmt::Display for FilterFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Taint(key, value) => {
                return write!(f, "node(s) had untolerated taint {{{key}: {value}}}");
            }
            Self::Insufficient(resource) => return write!(f, "Insufficient {resource}"),
            Self::Unschedulable => "node(s) were unschedulable",
            Self::Affinity => "node(s) didn't match Pod's node affinity/selector",
            Self::Volume => "node(s) had volume node affinity conflict",
            Self::TooManyPods => "Too many pods",
            Self::HostPorts => "node(s) didn't have free ports for the requested pod ports",
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => {
                "node(s) didn't satisfy existing pods anti-affinity rules"
            }
            Self::Spread => "node(s) didn't match pod topology spread constraints",
            Self::SpreadMissingLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
        };
        f.write_str(text)
    }
}

/// What does not depend on the pods that run already.
pub(super) fn static_rejection<'a>(
    shape: &SchedulingShape,
    node: &'a NodeRecord,
) -> Option<FilterFailure<'a>> {
    if node.unschedulable && !tolerates_unschedulable(shape) {
        return Some(FilterFailure::Unschedulable);
    }
    if let Some(taint) = node.untolerated(
        &shape.tolerations,
        &[labels::NO_SCHEDULE, labels::NO_EXECUTE],
    ) {
        let value = taint.value.as_deref().unwrap_or_default();
        return Some(FilterFailure::Taint(&taint.key, value));
    }
    (!matches_node(shape, node)).then_some(FilterFailure::Affinity)
}

/// Failure of a node by its resources or host ports.
pub(super) fn resource_rejection<'a>(
    shape: &'a SchedulingShape,
    node: &NodeRecord,
) -> Option<FilterFailure<'a>> {
    if !shape.requests.fits(&node.free) {
        return shape.requests.shortage(&node.free).map(|it| match it {
            Shortage::Pods => FilterFailure::TooManyPods,
            Shortage::Of(resource) => FilterFailure::Insufficient(resource),
        });
    }
    let taken = |port: &(String, i32)| node.host_ports.get(port).is_some_and(|count| *count > 0);
    shape
        .host_ports
        .iter()
        .any(taken)
        .then_some(FilterFailure::HostPorts)
}

/// Node selector and required node affinity.
pub(crate) fn matches_node(shape: &SchedulingShape, node: &NodeRecord) -> bool {
    shape
        .node_selector
        .iter()
        .all(|(key, value)| node.labels.get(key) == Some(value))
        && shape
            .node_affinity
            .as_ref()
            .is_none_or(|selector| matches_selector(selector, node))
}

/// Whether any term of a node selector holds.
pub(crate) fn matches_selector(selector: &NodeSelector, node: &NodeRecord) -> bool {
    selector
        .node_selector_terms
        .iter()
        .any(|term| matches_term(term, node))
}

/// Whether a term holds; an empty one never does.
pub(super) fn matches_term(term: &NodeSelectorTerm, node: &NodeRecord) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let named = |field: &NodeSelectorRequirement| {
        let names = BTreeMap::from([(field.key.clone(), node.name.clone())]);
        field.key == "metadata.name" && holds(field, &names)
    };
    !(expressions.is_empty() && fields.is_empty())
        && expressions
            .iter()
            .all(|expression| holds(expression, &node.labels))
        && fields.iter().all(named)
}

fn holds(requirement: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let values = requirement.values.as_deref().unwrap_or_default();
    let compare = |greater: bool| {
        let number = |text: &String| text.parse::<i64>().ok();
        match (value.and_then(number), values.first().and_then(number)) {
            (Some(have), Some(bound)) => {
                if greater {
                    have > bound
                } else {
                    have < bound
                }
            }
            _ => false,
        }
    };
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(true),
        "Lt" => compare(false),
        _ => false,
    }
}

fn tolerates_unschedulable(shape: &SchedulingShape) -> bool {
    let taint = k8s_openapi::api::core::v1::Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: labels::NO_SCHEDULE.to_owned(),
        ..Default::default()
    };
    shape
        .tolerations
        .iter()
        .any(|toleration| crate::cluster::node::tolerates(toleration, &taint))
}
