//! Topology spread: no domain holds more than `maxSkew` above the emptiest one.

use std::collections::{BTreeMap, BTreeSet};

use apis::labels;
use scheduling::pod::{Pod, TopologySpread};

use super::{is_counted, matches, universe};
use crate::layout::{Domain, Guest, Layout, Place, alternatives, repelling};
use crate::sets::Set;
use crate::{Faults, Rule};

pub(super) fn check(layout: &Layout<'_>, faults: &mut Faults) {
    let mut seen: BTreeSet<(&str, *const scheduling::pod::PodShape)> = BTreeSet::new();
    for place in &layout.places {
        for pod in place.new_guests() {
            for constraint in pod.shape.topology_spread.iter().filter(|s| s.is_required) {
                settled(place, pod, constraint, faults);
            }
            // Equal pods on one node would only repeat what the first of them shows.
            if seen.insert((&place.name, std::sync::Arc::as_ptr(&pod.shape))) {
                for constraint in pod.shape.topology_spread.iter().filter(|s| s.is_required) {
                    skew(layout, place, pod, constraint, faults);
                }
            }
        }
    }
}

/// A pod that spreads must know its domain.
fn settled(place: &Place<'_>, pod: &Pod, constraint: &TopologySpread, faults: &mut Faults) {
    let key = &constraint.topology_key;
    let domain = place.domain(key);
    if key != labels::HOSTNAME && !matches!(domain, Domain::One(_)) {
        let what = format!(
            "{} spreads over {key}, yet {} is {domain:?}",
            pod.key, place.name
        );
        faults.add(Rule::Spread, what);
    }
}

/// Pods counted in a domain: at least, and at most.
#[derive(Default, Clone, Copy)]
struct Count {
    least: i64,
    most: i64,
}

fn skew(
    layout: &Layout<'_>,
    place: &Place<'_>,
    pod: &Pod,
    constraint: &TopologySpread,
    faults: &mut Faults,
) {
    let key = constraint.topology_key.as_str();
    let max_skew = i64::from(constraint.max_skew);
    let own = |guest: &Guest<'_>| !guest.is_new || shares(guest.pod, pod, constraint);
    let is_selected = |guest: &Guest<'_>| {
        guest.pod.shape.namespace == pod.shape.namespace
            && is_counted(guest.pod)
            && matches(constraint.selector.as_ref(), &guest.pod.shape)
    };
    // Only for a pod that counts itself is it certain that the fullest moment was checked.
    let counts_itself = matches(constraint.selector.as_ref(), &pod.shape);
    let least_of = |place: &Place<'_>| {
        let counted = place.guests.iter().filter(|g| is_selected(g) && own(g));
        counted.filter(|g| counts_itself || !g.is_new).count() as i64
    };
    if key == labels::HOSTNAME {
        let count = if filter(place, pod, constraint, &alternatives(pod)) {
            least_of(place)
        } else {
            0
        };
        if count > max_skew {
            let what = format!(
                "{count} of {} on {}, at most {max_skew}",
                pod.key, place.name
            );
            faults.add(Rule::Spread, what);
        }
        return;
    }
    let Domain::One(own_domain) = place.domain(key) else {
        return;
    };
    let asked: Vec<_> = alternatives(pod);
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for other in &layout.places {
        let most = other.guests.iter().filter(|g| is_selected(g)).count() as i64;
        match other.domain(key) {
            Domain::One(value) if filter(other, pod, constraint, &asked) => {
                let count = counts.entry(value).or_default();
                count.least += least_of(other);
                count.most += most;
            }
            Domain::One(value) => counts.entry(value).or_default().most += most,
            Domain::Several(values) => {
                for value in values {
                    counts.entry(value).or_default().most += most;
                }
            }
            Domain::None | Domain::Open => {}
        }
    }
    // Equal pods that stand by different terms look at different domains, so none of them can be blamed.
    if asked.iter().any(|a| a.get(key) != asked[0].get(key)) {
        return;
    }
    let full = counts.get(&own_domain).map_or(0, |c| c.least);
    let emptiest = asked
        .iter()
        .filter(|asked| place.satisfies(asked))
        .map(|one| emptiest(layout, (pod, constraint), (&asked, one.get(key)), &counts))
        .max()
        .unwrap_or(0);
    if full - emptiest > max_skew {
        let name = &pod.key;
        let what = format!("{name}: {full} in {own_domain} and {emptiest} elsewhere by {key}");
        faults.add(Rule::Spread, what);
    }
}

/// The most that the emptiest domain the pod may use can hold.
fn emptiest(
    layout: &Layout<'_>,
    (pod, constraint): (&Pod, &TopologySpread),
    (all_asked, asked): (&[BTreeMap<String, Set>], Option<&Set>),
    counts: &BTreeMap<String, Count>,
) -> i64 {
    let key = constraint.topology_key.as_str();
    let mut domains = universe(layout, key, |place| {
        place.claim().is_none() && filter(place, pod, constraint, all_asked)
    });
    if constraint.honors_node_taints {
        let mut open = BTreeSet::new();
        for (index, pool) in layout.problem.pools.iter().enumerate() {
            let taints = &pool.node_pool.spec.template.spec.taints;
            if repelling(taints, &pod.shape.tolerations).is_none() {
                open.extend(layout.domains_of_pool(index, key).iter().cloned());
            }
        }
        for place in layout.places.iter().filter(|p| p.claim().is_none()) {
            if let Domain::One(value) = place.domain(key)
                && repelling(place.taints(), &pod.shape.tolerations).is_none()
            {
                open.insert(value);
            }
        }
        domains.retain(|d| open.contains(d));
    }
    domains.retain(|d| asked.is_none_or(|set| set.has(d)));
    let is_wide = constraint
        .min_domains
        .is_none_or(|least| domains.len() as i64 >= i64::from(least));
    let most = |domain: &String| counts.get(domain).map_or(0, |c| c.most);
    if is_wide {
        domains.iter().map(most).min().unwrap_or(0)
    } else {
        0
    }
}

/// Whether the constraint counts pods on the place; `asked` are the pod's alternatives.
fn filter(
    place: &Place<'_>,
    pod: &Pod,
    constraint: &TopologySpread,
    asked: &[BTreeMap<String, Set>],
) -> bool {
    let is_asked_for = !constraint.honors_node_affinity || asked.iter().any(|a| place.satisfies(a));
    let is_open = !constraint.honors_node_taints
        || repelling(place.taints(), &pod.shape.tolerations).is_none();
    is_asked_for && is_open
}

/// Whether another pod keeps the very same constraint.
fn shares(other: &Pod, pod: &Pod, constraint: &TopologySpread) -> bool {
    let (a, b) = (&other.shape, &pod.shape);
    a.namespace == b.namespace
        && a.topology_spread.contains(constraint)
        && (&a.node_selector, &a.required_node_affinity)
            == (&b.node_selector, &b.required_node_affinity)
        && (!constraint.honors_node_taints || a.tolerations == b.tolerations)
}
