//! Topology spread: no domain holds more than `maxSkew` above the emptiest one.

use std::collections::{BTreeMap, BTreeSet};

use apis::labels;
use k8s_openapi::api::core::v1::Taint;
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

/// A constraint of a pod, with what decides where it counts.
#[derive(Clone, Copy)]
struct Spread<'a> {
    pod: &'a Pod,
    constraint: &'a TopologySpread,
    /// The pod's alternatives.
    asked: &'a [BTreeMap<String, Set>],
}

/// Pods counted in a domain: at least, and at most.
#[derive(Default, Clone, Copy)]
struct Count {
    least: i64,
    most: i64,
}

impl Spread<'_> {
    /// Whether the constraint counts pods on the place.
    fn counts_on(self, place: &Place<'_>) -> bool {
        let is_asked_for =
            !self.constraint.honors_node_affinity || self.asked.iter().any(|a| place.satisfies(a));
        let is_open = !self.constraint.honors_node_taints || self.tolerates(place.taints());
        is_asked_for && is_open
    }

    fn tolerates(self, taints: &[Taint]) -> bool {
        repelling(taints, &self.pod.shape.tolerations).is_none()
    }

    fn is_selected(self, guest: &Guest<'_>) -> bool {
        guest.pod.shape.namespace == self.pod.shape.namespace
            && is_counted(guest.pod)
            && matches(self.constraint.selector.as_ref(), &guest.pod.shape)
    }

    /// Pods on the place that count in any case: of the new ones those that keep the very same constraint.
    fn least_on(self, place: &Place<'_>) -> i64 {
        // Only for a pod that counts itself is it certain that the fullest moment was checked.
        let counts_itself = matches(self.constraint.selector.as_ref(), &self.pod.shape);
        let is_sure = |guest: &&Guest<'_>| {
            !guest.is_new || (counts_itself && shares(guest.pod, self.pod, self.constraint))
        };
        let guests = place.guests.iter().filter(|g| self.is_selected(g));
        guests.filter(is_sure).count() as i64
    }

    fn most_on(self, place: &Place<'_>) -> i64 {
        let guests = place.guests.iter();
        guests.filter(|g| self.is_selected(g)).count() as i64
    }
}

fn skew(
    layout: &Layout<'_>,
    place: &Place<'_>,
    pod: &Pod,
    constraint: &TopologySpread,
    faults: &mut Faults,
) {
    let asked = alternatives(pod);
    let spread = Spread {
        pod,
        constraint,
        asked: &asked,
    };
    let key = constraint.topology_key.as_str();
    let max_skew = i64::from(constraint.max_skew);
    if key == labels::HOSTNAME {
        let count = if spread.counts_on(place) {
            spread.least_on(place)
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
    // Equal pods that stand by different terms look at different domains, so none of them can be blamed.
    if asked.iter().any(|a| a.get(key) != asked[0].get(key)) {
        return;
    }
    let counts = counts(layout, spread);
    let full = counts.get(&own_domain).map_or(0, |c| c.least);
    let emptiest = asked
        .iter()
        .filter(|asked| place.satisfies(asked))
        .map(|one| emptiest(layout, spread, one.get(key), &counts))
        .max()
        .unwrap_or(0);
    if full - emptiest > max_skew {
        let name = &pod.key;
        let what = format!("{name}: {full} in {own_domain} and {emptiest} elsewhere by {key}");
        faults.add(Rule::Spread, what);
    }
}

/// Pods of every domain that some place is in, or may be in.
fn counts(layout: &Layout<'_>, spread: Spread<'_>) -> BTreeMap<String, Count> {
    let key = spread.constraint.topology_key.as_str();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for place in &layout.places {
        let most = spread.most_on(place);
        match place.domain(key) {
            Domain::One(value) if spread.counts_on(place) => {
                let count = counts.entry(value).or_default();
                count.least += spread.least_on(place);
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
    counts
}

/// The most that the emptiest domain can hold which the pod may use by one of its alternatives; `asked` are the values
/// that this one leaves, all without any.
fn emptiest(
    layout: &Layout<'_>,
    spread: Spread<'_>,
    asked: Option<&Set>,
    counts: &BTreeMap<String, Count>,
) -> i64 {
    let constraint = spread.constraint;
    let key = constraint.topology_key.as_str();
    let mut domains = universe(layout, key, |place| {
        place.claim().is_none() && spread.counts_on(place)
    });
    if constraint.honors_node_taints {
        let mut open = BTreeSet::new();
        for (index, pool) in layout.problem.pools.iter().enumerate() {
            let taints = &pool.node_pool.spec.template.spec.taints;
            if spread.tolerates(taints) {
                open.extend(layout.domains_of_pool(index, key).iter().cloned());
            }
        }
        for place in layout.places.iter().filter(|p| p.claim().is_none()) {
            if let Domain::One(value) = place.domain(key)
                && spread.tolerates(place.taints())
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

/// Whether another pod keeps the very same constraint.
fn shares(other: &Pod, pod: &Pod, constraint: &TopologySpread) -> bool {
    let (a, b) = (&other.shape, &pod.shape);
    a.namespace == b.namespace
        && a.topology_spread.contains(constraint)
        && (&a.node_selector, &a.required_node_affinity)
            == (&b.node_selector, &b.required_node_affinity)
        && (!constraint.honors_node_taints || a.tolerations == b.tolerations)
}
