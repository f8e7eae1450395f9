//! Demands of one pod that no node can meet together. Nothing the API server would refuse.

use crate::fault::ObjectFaults;
use k8s_openapi::api::core::v1;
use scheduling::requirements::{Operator, Requirement, Requirements};
use std::collections::BTreeMap;

/// Alternatives of node affinity that contradict the node selector or themselves; a pod is at fault when all do.
pub(super) fn contradictions(path: &str, spec: &v1::PodSpec, faults: &mut ObjectFaults) {
    let selector = Requirements::from_labels(spec.node_selector.iter().flatten());
    let required = spec
        .affinity
        .as_ref()
        .and_then(|it| it.node_affinity.as_ref())
        .and_then(|it| {
            it.required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    let terms = required.map_or(&[][..], |it| it.node_selector_terms.as_slice());
    let mut found = ObjectFaults::default();
    for term in terms {
        let asked = term.match_expressions.iter().flatten().filter_map(|it| {
            let values = it.values.iter().flatten().map(String::as_str);
            Some(Requirement::new(
                &it.key,
                Operator::parse(&it.operator)?,
                values,
            ))
        });
        let before = found.0.len();
        contradiction(path, selector.iter().cloned().chain(asked), &mut found);
        if found.0.len() == before {
            return;
        }
    }
    faults.0.append(&mut found.0);
}

/// A label of which a node would need two values at once.
pub(super) fn contradiction(
    path: &str,
    requirements: impl Iterator<Item = Requirement>,
    faults: &mut ObjectFaults,
) {
    let mut so_far: BTreeMap<String, Requirement> = BTreeMap::new();
    for requirement in requirements {
        let key = requirement.key().to_owned();
        let Some(before) = so_far.get(&key) else {
            so_far.insert(key, requirement);
            continue;
        };
        if !before.has_intersection(&requirement) && !are_both_absent(before, &requirement) {
            let message = format!("no node can be both {before} and {requirement}");
            faults.push(path, message);
        }
        let both = before.intersection(&requirement);
        so_far.insert(key, both);
    }
}

/// `NotIn` and `DoesNotExist` hold where the label is absent.
fn are_both_absent(a: &Requirement, b: &Requirement) -> bool {
    let is_negative =
        |it: &Requirement| matches!(it.operator(), Operator::NotIn | Operator::DoesNotExist);
    is_negative(a) && is_negative(b)
}
