//! Terms of a node selector as requirements, and what several lists of alternatives come to together.
//!
//! Volumes and devices say by such terms where they can be. Knows neither.

use apis::labels;
use k8s_openapi::api::core::v1;
use scheduling::requirements::{Operator, Requirement, Requirements};

/// The requirements of a term of a node selector.
pub(crate) fn node_term(term: &v1::NodeSelectorTerm) -> Requirements {
    term_requirements(term, false)
}

pub(crate) fn term_requirements(term: &v1::NodeSelectorTerm, is_local: bool) -> Requirements {
    let mut requirements = Requirements::new();
    for it in term.match_expressions.iter().flatten() {
        if is_local && it.key == labels::HOSTNAME {
            continue;
        }
        if let Some(operator) = Operator::parse(&it.operator) {
            let values = it.values.iter().flatten().map(String::as_str);
            requirements.add(Requirement::new(&it.key, operator, values));
        }
    }
    requirements
}

/// Every combination of an alternative so far with one of the next list; those that contradict themselves are dropped,
/// unless all do.
pub(crate) fn cross(so_far: Vec<Requirements>, next: &[Requirements]) -> Vec<Requirements> {
    if next.is_empty() {
        return so_far;
    }
    if so_far.is_empty() {
        return next.to_vec();
    }
    let mut compatible = Vec::new();
    let mut raw = Vec::new();
    for left in &so_far {
        for right in next {
            let mut both = left.clone();
            both.extend_with(right);
            if left.intersects(right).is_ok() {
                compatible.push(both);
            } else {
                raw.push(both);
            }
        }
    }
    if compatible.is_empty() {
        raw
    } else {
        compatible
    }
}
