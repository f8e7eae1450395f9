//! Affinity of pods and of nodes, and label selectors: what the API server's validation would refuse of them.

use crate::fault::ObjectFaults;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use scheduling::requirements::Operator;

pub(super) fn affinity_terms<'a>(
    path: &str,
    affinity: &'a v1::Affinity,
) -> Vec<(String, &'a v1::PodAffinityTerm)> {
    let mut all = Vec::new();
    let mut take = |name: &str,
                    required: Option<&'a Vec<v1::PodAffinityTerm>>,
                    preferred: Option<&'a Vec<v1::WeightedPodAffinityTerm>>| {
        for (index, it) in required.into_iter().flatten().enumerate() {
            let field = "requiredDuringSchedulingIgnoredDuringExecution";
            all.push((format!("{path}.{name}.{field}[{index}]"), it));
        }
        for (index, it) in preferred.into_iter().flatten().enumerate() {
            let field = "preferredDuringSchedulingIgnoredDuringExecution";
            let path = format!("{path}.{name}.{field}[{index}].podAffinityTerm");
            all.push((path, &it.pod_affinity_term));
        }
    };
    if let Some(it) = &affinity.pod_affinity {
        take(
            "podAffinity",
            it.required_during_scheduling_ignored_during_execution
                .as_ref(),
            it.preferred_during_scheduling_ignored_during_execution
                .as_ref(),
        );
    }
    if let Some(it) = &affinity.pod_anti_affinity {
        take(
            "podAntiAffinity",
            it.required_during_scheduling_ignored_during_execution
                .as_ref(),
            it.preferred_during_scheduling_ignored_during_execution
                .as_ref(),
        );
    }
    all
}

pub(super) fn affinity_term(path: &str, term: &v1::PodAffinityTerm, faults: &mut ObjectFaults) {
    if term.topology_key.is_empty() {
        faults.push(format!("{path}.topologyKey"), "is not set");
    }
    label_selector(
        &format!("{path}.labelSelector"),
        term.label_selector.as_ref(),
        faults,
    );
    let namespaces = term.namespace_selector.as_ref();
    label_selector(&format!("{path}.namespaceSelector"), namespaces, faults);
}

pub(super) fn label_selector(
    path: &str,
    selector: Option<&LabelSelector>,
    faults: &mut ObjectFaults,
) {
    let expressions = selector
        .iter()
        .flat_map(|it| it.match_expressions.iter().flatten());
    for (index, it) in expressions.enumerate() {
        let values = it.values.as_deref().unwrap_or_default();
        let field = format!("{path}.matchExpressions[{index}]");
        match it.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                faults.push(
                    format!("{field}.values"),
                    format!("{} needs values", it.operator),
                );
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let message = format!("{values:?}: {} takes no values", it.operator);
                faults.push(format!("{field}.values"), message);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                faults.push(
                    format!("{field}.operator"),
                    format!("{other:?}: unknown operator"),
                );
            }
        }
    }
}

pub(super) fn node_affinity(path: &str, affinity: &v1::NodeAffinity, faults: &mut ObjectFaults) {
    let required = &affinity.required_during_scheduling_ignored_during_execution;
    if let Some(selector) = required {
        let path =
            format!("{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
        if selector.node_selector_terms.is_empty() {
            faults.push(path.as_str(), "is empty");
        }
        for (index, term) in selector.node_selector_terms.iter().enumerate() {
            node_term(&format!("{path}[{index}]"), term, faults);
        }
    }
    let preferred = &affinity.preferred_during_scheduling_ignored_during_execution;
    for (index, it) in preferred.iter().flatten().enumerate() {
        let path = format!("{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]");
        if !(1..=100).contains(&it.weight) {
            let message = format!("{}: must be between 1 and 100", it.weight);
            faults.push(format!("{path}.weight"), message);
        }
        node_term(&format!("{path}.preference"), &it.preference, faults);
    }
}

fn node_term(path: &str, term: &v1::NodeSelectorTerm, faults: &mut ObjectFaults) {
    for (index, it) in term.match_expressions.iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = it.values.as_deref().unwrap_or_default();
        // Two of them are Karpenter's own, for its NodePools.
        let of_pods = |it: &Operator| !matches!(it, Operator::Gte | Operator::Lte);
        let Some(operator) = Operator::parse(&it.operator).filter(of_pods) else {
            let message = format!("{:?}: unknown operator", it.operator);
            faults.push(format!("{path}.operator"), message);
            continue;
        };
        let message = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => "needs values",
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => "takes no values",
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte if !matches!(values, [bound] if bound.parse::<i64>().is_ok()) => {
                "needs one integer"
            }
            Operator::In
            | Operator::NotIn
            | Operator::Exists
            | Operator::DoesNotExist
            | Operator::Gt
            | Operator::Lt
            | Operator::Gte
            | Operator::Lte => continue,
        };
        let message = format!("{values:?}: {operator} of {} {message}", it.key);
        faults.push(format!("{path}.values"), message);
    }
}
