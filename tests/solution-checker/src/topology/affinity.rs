//! Pod affinity: in some order of arrival every pod found a friend in its domain, or was free to be the first.

use std::collections::BTreeSet;

use apis::labels;
use scheduling::pod::{AffinityTerm, Pod};

use super::{is_counted, selects, universe};
use crate::layout::{Domain, Layout, Place, alternatives};
use crate::{Faults, Rule};

/// Equal pods on one place.
#[derive(Clone)]
struct Party<'a> {
    place: &'a Place<'a>,
    pod: &'a Pod,
    has_arrived: bool,
    /// It ran before, or opened its domain: whoever opens another after it saw it. Others may have come later.
    was_there_first: bool,
    /// How many domains it could have chosen from.
    width: usize,
}

/// Orders of arrival that are tried before it is said that there is none.
const LOOKS_MAX: usize = 200;

pub(super) fn check(layout: &Layout<'_>, faults: &mut Faults) {
    let has_terms = |pod: &Pod| !pod.shape.pod_affinity.is_empty();
    let mut guests = layout.places.iter().flat_map(|p| &p.guests);
    if !guests.any(|g| g.is_new && has_terms(g.pod)) {
        return;
    }
    let mut parties = parties(layout);
    let mut looks = LOOKS_MAX;
    if let Some(all) = arrive(layout, &parties, &mut looks) {
        parties = all;
    }
    for party in parties.iter().filter(|p| !p.has_arrived) {
        let (pod, place) = (&party.pod.key, &party.place.name);
        let what = format!("{pod} on {place} has no friend near and was not free to be first");
        faults.add(Rule::Affinity, what);
    }
}

/// Lets everybody arrive who can, whoever must be first for that; the first order looked at where there is none for
/// all.
fn arrive<'a>(
    layout: &Layout<'_>,
    parties: &[Party<'a>],
    looks: &mut usize,
) -> Option<Vec<Party<'a>>> {
    *looks = looks.checked_sub(1)?;
    let mut parties = parties.to_vec();
    loop {
        let ready: Vec<usize> = (0..parties.len())
            .filter(|i| !parties[*i].has_arrived && finds_friends(layout, &parties, *i))
            .collect();
        if ready.is_empty() {
            break;
        }
        for index in ready {
            parties[index].has_arrived = true;
        }
    }
    let mut firsts: Vec<usize> = (0..parties.len())
        .filter(|i| !parties[*i].has_arrived && may_be_first(layout, &parties, *i))
        .collect();
    // Who may go to most domains is least likely to be first by right of being alone in its own.
    firsts.sort_by_key(|i| (std::cmp::Reverse(parties[*i].width), *i));
    let mut best = None;
    for first in firsts {
        let mut with_first = parties.clone();
        with_first[first].has_arrived = true;
        with_first[first].was_there_first = true;
        let Some(after) = arrive(layout, &with_first, looks) else {
            break;
        };
        if after.iter().all(|p| p.has_arrived) {
            return Some(after);
        }
        best.get_or_insert(after);
    }
    Some(best.unwrap_or(parties))
}

fn parties<'a>(layout: &'a Layout<'a>) -> Vec<Party<'a>> {
    let mut parties = Vec::new();
    for place in &layout.places {
        let mut seen = BTreeSet::new();
        for guest in place.guests.iter().filter(|g| is_counted(g.pod)) {
            let is_met = !guest.is_new || guest.pod.shape.pod_affinity.is_empty();
            if seen.insert((std::sync::Arc::as_ptr(&guest.pod.shape), guest.is_new)) {
                parties.push(Party {
                    place,
                    pod: guest.pod,
                    has_arrived: is_met,
                    was_there_first: !guest.is_new,
                    width: if is_met { 0 } else { widest(layout, guest.pod) },
                });
            }
        }
    }
    parties
}

fn finds_friends(layout: &Layout<'_>, parties: &[Party<'_>], index: usize) -> bool {
    let mut terms = parties[index].pod.shape.pod_affinity.iter();
    terms.all(|term| has_friend(layout, parties, index, term))
}

fn has_friend(
    layout: &Layout<'_>,
    parties: &[Party<'_>],
    index: usize,
    term: &AffinityTerm,
) -> bool {
    let own = &parties[index];
    parties.iter().any(|other| {
        other.has_arrived
            && selects(layout.problem, term, &own.pod.shape, &other.pod.shape)
            && is_near(own.place, other.place, &term.topology_key)
    })
}

fn is_near(a: &Place<'_>, b: &Place<'_>, key: &str) -> bool {
    if key == labels::HOSTNAME {
        return std::ptr::eq(a, b);
    }
    match (a.domain(key), b.domain(key)) {
        (Domain::One(a), Domain::One(b)) => a == b,
        _ => false,
    }
}

/// Every term finds a friend, or looks for pods like this one and finds none wherever the pod may go.
fn may_be_first(layout: &Layout<'_>, parties: &[Party<'_>], index: usize) -> bool {
    let own = &parties[index];
    let shape = &own.pod.shape;
    own.pod.shape.pod_affinity.iter().all(|term| {
        let is_free = || {
            alternatives(own.pod)
                .iter()
                .filter(|asked| own.place.satisfies(asked))
                .any(|asked| {
                    let key = &term.topology_key;
                    let is_allowed = |place: &Place<'_>| match place.domain(key) {
                        Domain::One(value) => asked.get(key).is_none_or(|set| set.has(&value)),
                        Domain::None | Domain::Several(_) | Domain::Open => false,
                    };
                    !parties.iter().any(|other| {
                        other.was_there_first
                            && is_allowed(other.place)
                            && selects(layout.problem, term, shape, &other.pod.shape)
                    })
                })
        };
        let is_settled = term.topology_key == labels::HOSTNAME
            || matches!(own.place.domain(&term.topology_key), Domain::One(_));
        let is_of_its_kind = selects(layout.problem, term, shape, shape);
        has_friend(layout, parties, index, term) || (is_settled && is_of_its_kind && is_free())
    })
}

/// How many domains a pod could have chosen from.
fn widest(layout: &Layout<'_>, pod: &Pod) -> usize {
    let count = |term: &AffinityTerm| {
        let key = &term.topology_key;
        let all = universe(layout, key, |place| place.claim().is_none());
        let allowed = |asked: &std::collections::BTreeMap<String, crate::sets::Set>| {
            let is_allowed = |value: &&String| asked.get(key).is_none_or(|set| set.has(value));
            all.iter().filter(is_allowed).count()
        };
        alternatives(pod).iter().map(allowed).max().unwrap_or(0)
    };
    let terms = pod.shape.pod_affinity.iter();
    terms.map(count).min().unwrap_or(0)
}
