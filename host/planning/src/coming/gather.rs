//! Which of the nodes of a plan are bought now: those for pods that are there.
//!
//! A plan for what is there and what is about to be may hold one real pod and twenty to come on every node. Pods of a
//! kind can change places, so the real ones are gathered on as few nodes as they fill, and the others are not bought
//! yet: the next pass, with the pods that came meanwhile, plans them again. A batch that goes on is looked into for
//! nodes that are full each time that it could have ended. A node that opens finds its pods waiting, and nothing is
//! ever bought for pods of which none is there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use scheduling::Solution;
use scheduling::pod::{Pod, PodKey};
use scheduling::solution::NewClaim;
use state::missing_pods::is_coming;

/// Pods that can change places, in order of their first appearance.
type PodKind = usize;

/// How many pods of each kind go to a node.
type Seats = BTreeMap<PodKind, usize>;

/// Real and coming pods of each kind that have no place yet.
#[derive(Default)]
struct Crowd {
    real: BTreeMap<PodKind, VecDeque<PodKey>>,
    coming: BTreeMap<PodKind, VecDeque<PodKey>>,
}

/// Gathers the real pods of a solution on existing nodes first and on as few new ones as they fill, and leaves out
/// claims without any. `pods` are those of the problem.
pub fn gather(pods: &[Arc<Pod>], solution: &mut Solution) {
    if !pods.iter().any(|it| is_coming(&it.key)) {
        return;
    }
    let kinds = kinds(pods);
    let mut crowd = Crowd::default();
    let existing = solution.existing.iter().flat_map(|it| &it.pods);
    let new = solution.claims.iter().flat_map(|claim| &claim.pods);
    for key in existing.chain(new) {
        crowd.join(&kinds, key);
    }
    for on_node in &mut solution.existing {
        crowd.seat(&kinds, &mut on_node.pods);
    }
    let open = std::mem::take(&mut solution.claims).into_iter();
    let mut open: Vec<_> = open
        .map(|claim| (seats(&kinds, &claim.pods), claim))
        .collect();
    while let Some(fullest) = fullest(&crowd, &open) {
        let (_, mut claim) = open.remove(fullest);
        crowd.seat(&kinds, &mut claim.pods);
        solution.claims.push(claim);
    }
}

/// Pods of one shape are alike, but for those with volumes or devices of their own.
fn kinds(pods: &[Arc<Pod>]) -> BTreeMap<&PodKey, PodKind> {
    let mut shapes = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    for (number, pod) in pods.iter().enumerate() {
        let kind = if pod.volume_claims.is_empty() && pod.resource_claims.is_empty() {
            // The address tells shapes apart and orders nothing.
            *shapes.entry(Arc::as_ptr(&pod.shape)).or_insert(number)
        } else {
            number
        };
        kinds.insert(&pod.key, kind);
    }
    kinds
}

fn seats(kinds: &BTreeMap<&PodKey, PodKind>, pods: &[PodKey]) -> Seats {
    let mut seats = Seats::new();
    for kind in pods.iter().filter_map(|key| kinds.get(key)) {
        *seats.entry(*kind).or_default() += 1;
    }
    seats
}

impl Crowd {
    fn join(&mut self, kinds: &BTreeMap<&PodKey, PodKind>, key: &PodKey) {
        let Some(kind) = kinds.get(key) else {
            return;
        };
        let of_its = if is_coming(key) {
            &mut self.coming
        } else {
            &mut self.real
        };
        of_its.entry(*kind).or_default().push_back(key.clone());
    }

    /// Gives the seats of these pods to real ones of their kinds as far as there are any left.
    fn seat(&mut self, kinds: &BTreeMap<&PodKey, PodKind>, seats: &mut [PodKey]) {
        for seat in seats {
            let Some(kind) = kinds.get(seat) else {
                continue;
            };
            let next = |of: &mut BTreeMap<PodKind, VecDeque<PodKey>>| of.get_mut(kind)?.pop_front();
            if let Some(key) = next(&mut self.real).or_else(|| next(&mut self.coming)) {
                *seat = key;
            }
        }
    }

    /// How many of the seats could be real pods'.
    fn real_among(&self, seats: &Seats) -> usize {
        let there = |kind| self.real.get(kind).map_or(0, VecDeque::len);
        let each = seats.iter().map(|(kind, count)| there(kind).min(*count));
        each.sum()
    }
}

/// The claim with the greatest share of pods that could be real, the first of equals; none once all have places.
fn fullest(crowd: &Crowd, claims: &[(Seats, NewClaim)]) -> Option<usize> {
    let mut best: Option<(usize, usize, usize)> = None;
    for (number, (seats, claim)) in claims.iter().enumerate() {
        let (real, all) = (crowd.real_among(seats), claim.pods.len());
        let is_fuller = |(_, most, of): (usize, usize, usize)| real * of > most * all;
        if real > 0 && best.is_none_or(is_fuller) {
            best = Some((number, real, all));
        }
    }
    best.map(|(number, ..)| number)
}
