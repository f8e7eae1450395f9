//! From the API's terms about nodes and other pods to ours.

use std::collections::BTreeMap;

use apis::labels;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::pod::{
    AffinityTerm, InvalidPod, LabelSelector, NodeInclusionPolicy, PodKey, SelectorOperator,
    TopologySpread, Weighted, WhenUnsatisfiable,
};
use crate::requirements::{Operator, Requirement};

pub(super) fn preferred_node_terms(
    list: Option<&Vec<core::PreferredSchedulingTerm>>,
    pod: &PodKey,
) -> Result<Vec<Weighted<Vec<Requirement>>>, InvalidPod> {
    let preferred = list.into_iter().flatten();
    preferred
        .map(|it| {
            Ok(Weighted {
                weight: it.weight,
                value: node_term(&it.preference, pod)?,
            })
        })
        .collect()
}

pub(super) fn node_term(
    term: &core::NodeSelectorTerm,
    pod: &PodKey,
) -> Result<Vec<Requirement>, InvalidPod> {
    term.match_expressions
        .iter()
        .flatten()
        .map(|expression| {
            let operator =
                Operator::parse(&expression.operator).ok_or_else(|| InvalidPod::Operator {
                    pod: pod.clone(),
                    key: expression.key.clone(),
                    operator: expression.operator.clone(),
                })?;
            let values = expression.values.iter().flatten().map(String::as_str);
            Ok(Requirement::new(&expression.key, operator, values))
        })
        .collect()
}

pub(super) fn affinity_terms(
    list: Option<&Vec<core::PodAffinityTerm>>,
    parse: impl Fn(&core::PodAffinityTerm) -> AffinityTerm,
) -> Vec<AffinityTerm> {
    list.into_iter().flatten().map(parse).collect()
}

pub(super) fn weighted_terms(
    list: Option<&Vec<core::WeightedPodAffinityTerm>>,
    parse: impl Fn(&core::PodAffinityTerm) -> AffinityTerm,
) -> Vec<Weighted<AffinityTerm>> {
    list.into_iter()
        .flatten()
        .map(|t| Weighted {
            weight: t.weight,
            value: parse(&t.pod_affinity_term),
        })
        .collect()
}

pub(super) fn affinity_term(
    term: &core::PodAffinityTerm,
    pod_labels: &BTreeMap<String, String>,
) -> AffinityTerm {
    let mut selector = selector(
        term.label_selector.as_ref(),
        term.match_label_keys.as_ref(),
        pod_labels,
    );
    if let Some(selector) = &mut selector {
        for key in term.mismatch_label_keys.iter().flatten() {
            if let Some(value) = pod_labels.get(key) {
                selector.require(key, SelectorOperator::NotIn, [value.clone()]);
            }
        }
    }
    let mut namespaces = term.namespaces.clone().unwrap_or_default();
    namespaces.sort();
    AffinityTerm {
        topology_key: labels::normalize(&term.topology_key).to_owned(),
        selector,
        namespaces,
        namespace_selector: term.namespace_selector.as_ref().map(LabelSelector::parse),
    }
}

fn selector(
    selector: Option<&meta::LabelSelector>,
    match_label_keys: Option<&Vec<String>>,
    pod_labels: &BTreeMap<String, String>,
) -> Option<LabelSelector> {
    let mut parsed = LabelSelector::parse(selector?);
    for key in match_label_keys.into_iter().flatten() {
        if let Some(value) = pod_labels.get(key) {
            parsed.require(key, SelectorOperator::In, [value.clone()]);
        }
    }
    Some(parsed)
}

pub(super) fn topology_spread(
    constraint: &core::TopologySpreadConstraint,
    pod_labels: &BTreeMap<String, String>,
) -> TopologySpread {
    let when = WhenUnsatisfiable::parse(&constraint.when_unsatisfiable);
    let policy = |text: Option<&String>| NodeInclusionPolicy::parse(text?);
    let affinity = policy(constraint.node_affinity_policy.as_ref());
    let taints = policy(constraint.node_taints_policy.as_ref());
    TopologySpread {
        max_skew: constraint.max_skew,
        topology_key: labels::normalize(&constraint.topology_key).to_owned(),
        is_required: when != Some(WhenUnsatisfiable::ScheduleAnyway),
        selector: selector(
            constraint.label_selector.as_ref(),
            constraint.match_label_keys.as_ref(),
            pod_labels,
        ),
        min_domains: constraint.min_domains,
        honors_node_affinity: affinity != Some(NodeInclusionPolicy::Ignore),
        honors_node_taints: taints == Some(NodeInclusionPolicy::Honor),
    }
}
