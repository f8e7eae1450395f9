//! Spread, affinity and anti-affinity at the end state.

mod affinity;
mod spread;

use std::collections::{BTreeMap, BTreeSet};

use apis::labels;
use scheduling::Problem;
use scheduling::pod::{AffinityTerm, LabelSelector, Pod, PodShape, SelectorOperator};

use crate::layout::{Domain, Layout, Place};
use crate::{Faults, Rule};

pub(crate) fn check(layout: &Layout<'_>, faults: &mut Faults) {
    spread::check(layout, faults);
    affinity::check(layout, faults);
    anti_affinity(layout, faults);
}

/// Whether other pods may be what keeps a pod out.
pub(crate) fn has_stake(layout: &Layout<'_>, pod: &Pod) -> bool {
    let shape = &pod.shape;
    let is_bound = shape.topology_spread.iter().any(|s| s.is_required)
        || !shape.pod_affinity.is_empty()
        || !shape.pod_anti_affinity.is_empty();
    let is_shunned = |other: &PodShape| {
        let mut terms = other.pod_anti_affinity.iter();
        terms.any(|term| selects(layout.problem, term, other, shape))
    };
    let guests = layout.places.iter().flat_map(|place| &place.guests);
    is_bound
        || guests.into_iter().any(|guest| is_shunned(&guest.pod.shape))
        || is_counted_by_a_host_spread(layout, shape)
}

/// A spread over hosts is kept for its owners even when later guests come, so a guest may have to stay away.
fn is_counted_by_a_host_spread(layout: &Layout<'_>, shape: &PodShape) -> bool {
    layout.problem.pods.iter().any(|owner| {
        let spreads = owner.shape.topology_spread.iter();
        owner.shape.namespace == shape.namespace
            && spreads
                .filter(|s| s.topology_key == labels::HOSTNAME)
                .any(|s| matches(s.selector.as_ref(), shape))
    })
}

/// Whether the labels meet the selector; without a selector nothing does.
fn matches(selector: Option<&LabelSelector>, shape: &PodShape) -> bool {
    let holds = |labels: &BTreeMap<String, String>, selector: &LabelSelector| {
        selector.requirements.iter().all(|r| {
            let is_listed = labels.get(&r.key).map(|value| r.values.contains(value));
            match r.operator {
                SelectorOperator::In => is_listed == Some(true),
                SelectorOperator::NotIn => is_listed != Some(true),
                SelectorOperator::Exists => is_listed.is_some(),
                SelectorOperator::DoesNotExist => is_listed.is_none(),
            }
        })
    };
    selector.is_some_and(|selector| holds(&shape.labels, selector))
}

/// Whether the owner's term looks at a pod of the shape.
fn selects(problem: &Problem, term: &AffinityTerm, owner: &PodShape, shape: &PodShape) -> bool {
    let namespace = &shape.namespace;
    let is_named = term.namespaces.contains(namespace);
    let is_selected = term.namespace_selector.as_ref().is_some_and(|selector| {
        let labels = problem.namespaces.get(namespace);
        let probe = PodShape {
            labels: labels.cloned().unwrap_or_default(),
            ..PodShape::default()
        };
        selector.requirements.is_empty() || (labels.is_some() && matches(Some(selector), &probe))
    });
    let is_default = term.namespaces.is_empty() && term.namespace_selector.is_none();
    let is_own = is_default && *namespace == owner.namespace;
    (is_named || is_selected || is_own) && matches(term.selector.as_ref(), shape)
}

fn is_counted(pod: &Pod) -> bool {
    !pod.is_terminal() && !pod.is_terminating()
}

/// Whether two places may be the same domain. Without the label a place is in no domain.
fn may_coincide(a: &Place<'_>, b: &Place<'_>, key: &str) -> bool {
    if key == labels::HOSTNAME {
        return std::ptr::eq(a, b);
    }
    let values = |domain: Domain| match domain {
        Domain::None => Some(BTreeSet::new()),
        Domain::One(value) => Some(BTreeSet::from([value])),
        Domain::Several(values) => Some(values),
        Domain::Open => None,
    };
    match (values(a.domain(key)), values(b.domain(key))) {
        (Some(a), Some(b)) => !a.is_disjoint(&b),
        // A label that was left open becomes some integer.
        (Some(one), None) | (None, Some(one)) => one.iter().any(|v| v.parse::<i64>().is_ok()),
        (None, None) => true,
    }
}

/// A term keeps those it selects out of its owner's domain, whoever came first, unless both were there before.
fn anti_affinity(layout: &Layout<'_>, faults: &mut Faults) {
    for place in &layout.places {
        for owner in place.guests.iter().filter(|g| is_counted(g.pod)) {
            for term in &owner.pod.shape.pod_anti_affinity {
                for other_place in &layout.places {
                    let shunned = other_place.guests.iter().find(|other| {
                        (other.is_new || owner.is_new)
                            && !std::ptr::eq(other.pod, owner.pod)
                            && is_counted(other.pod)
                            && selects(layout.problem, term, &owner.pod.shape, &other.pod.shape)
                    });
                    if let Some(other) = shunned
                        && may_coincide(place, other_place, &term.topology_key)
                    {
                        let (key, owner, other) =
                            (&term.topology_key, &owner.pod.key, &other.pod.key);
                        let (at, there) = (&place.name, &other_place.name);
                        let what = format!("{owner} on {at} shuns {other} on {there} by {key}");
                        faults.add(Rule::AntiAffinity, what);
                    }
                }
            }
        }
    }
}

/// Every domain that there is or that a pool could open, available now or not.
fn universe(layout: &Layout<'_>, key: &str, has: impl Fn(&Place<'_>) -> bool) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    for pool in 0..layout.problem.pools.len() {
        values.extend(layout.domains_of_pool(pool, key).iter().cloned());
    }
    for place in layout.places.iter().filter(|p| has(p)) {
        if let Domain::One(value) = place.domain(key) {
            values.insert(value);
        }
    }
    values
}
