//! One look at all pods that are told of a node, in the order in which the scheduler tries them.

use std::collections::BTreeSet;

use super::super::kinds::{PlayKindId, subtract};
use super::exchange::Exchange;
use super::{LOOKS_MAX, PlaceChange, ToldPod, ToldPods};
use crate::play::counters::PodCounters;

/// How far a sweep is with a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    NotYet,
    Bound,
    KeptOff,
    /// It is not told: of those that must spread one at a time is.
    OutOfTurn,
}

/// One look at all pods in their order.
pub(super) struct Sweep<'a> {
    course: &'a ToldPods<'a>,
    counters: PodCounters,
    /// Node of each pod.
    pub(super) places: Vec<usize>,
    /// Pods of each node.
    on: Vec<Vec<usize>>,
    /// Room of each node that nobody is meant to take.
    spare: Vec<Vec<i64>>,
    state: Vec<Tried>,
    /// By how many pods their domains were too full for those that were kept off.
    pub(super) too_many: i64,
    looks: usize,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(course: &'a ToldPods<'a>, places: Vec<usize>) -> Self {
        let mut on = vec![Vec::new(); course.nodes.len()];
        let mut spare = course.free.clone();
        for (pod, node) in places.iter().enumerate() {
            on[*node].push(pod);
            subtract(&mut spare[*node], course.requests(pod));
        }
        Self {
            counters: course.counters.clone(),
            state: vec![Tried::NotYet; places.len()],
            too_many: 0,
            looks: 0,
            course,
            places,
            on,
            spare,
        }
    }

    /// Tries the pod on the node that it is told of; whether that lets it in. Of rivals the first is told.
    pub(super) fn try_told(&mut self, pod: usize) -> bool {
        if self.state[pod] == Tried::OutOfTurn {
            return false;
        }
        let node = self.places[pod];
        let mut is_in = self.lets_in(pod, node);
        if !is_in && self.is_let_in(self.course.pods[pod].kind, node) {
            let rivals = self.rivals(pod);
            for rival in &rivals {
                self.state[*rival] = Tried::OutOfTurn;
            }
            is_in = !rivals.is_empty() && self.lets_in(pod, node);
            if !is_in {
                for rival in rivals {
                    self.state[rival] = Tried::NotYet;
                }
            }
        }
        self.state[pod] = if is_in { Tried::Bound } else { Tried::KeptOff };
        let kind = self.course.pods[pod].kind;
        if is_in {
            self.counters.count(kind, node);
        } else {
            self.too_many += self.beside_told(pod, node, |it| it.counters.too_many(kind, node));
        }
        is_in
    }

    /// All pods that are as far.
    pub(super) fn all(&self, tried: Tried) -> BTreeSet<usize> {
        let pods = self.state.iter().enumerate();
        let pods = pods.filter(|(_, it)| **it == tried);
        pods.map(|it| it.0).collect()
    }

    /// Whether the node lets the pod in, with the others that are told of it and without them.
    fn lets_in(&mut self, pod: usize, node: usize) -> bool {
        let kind = self.course.pods[pod].kind;
        if !self.counters.is_bound[kind] {
            return true;
        }
        if !self.is_let_in(kind, node) {
            return false;
        }
        self.beside_told(pod, node, |it| it.is_let_in(kind, node))
    }

    /// Asks with the others that are told of the node as if they ran there.
    fn beside_told<T>(&mut self, pod: usize, node: usize, ask: impl Fn(&Self) -> T) -> T {
        let priority = self.course.pods[pod].priority;
        let others = self.on[node].iter().copied().filter(|other| {
            let is_told = *other != pod && self.state[*other] == Tried::NotYet;
            is_told && self.course.pods[*other].priority >= priority
        });
        let others: Vec<PlayKindId> = others.map(|it| self.course.pods[it].kind).collect();
        for other in &others {
            self.counters.count(*other, node);
        }
        let answer = ask(self);
        for other in others {
            self.counters.uncount(other, node);
        }
        answer
    }

    /// Pods that are still to be told of the same node, and that must spread with this one.
    fn rivals(&self, pod: usize) -> Vec<usize> {
        let course = self.course;
        let kind = course.pods[pod].kind;
        let is_rival = |other: &usize| {
            *other != pod
                && self.state[*other] == Tried::NotYet
                && course.counters.are_rivals(kind, course.pods[*other].kind)
        };
        let others = self.on[self.places[pod]].iter().copied();
        others.filter(is_rival).collect()
    }

    pub(super) fn is_let_in(&self, kind: PlayKindId, node: usize) -> bool {
        let terms = self.counters.required(kind);
        self.counters.let_in(kind, &terms, node)
    }

    /// Finds another place for a pod that is kept off its own: that of an equal one, or another in the same zone first.
    pub(super) fn trade(&mut self, pod: usize) {
        if self.looks == LOOKS_MAX {
            return;
        }
        self.looks += 1;
        if self.trade_with_equal(pod) {
            return;
        }
        let from = self.places[pod];
        for to in self.destinations(pod) {
            if self.lets_in(pod, to)
                && let Some(back) = self.returned(pod, to, self.comes_back_unseen(from, to))
            {
                for other in back {
                    self.put(other, from);
                }
                self.put(pod, to);
                self.state[pod] = Tried::Bound;
                self.counters.count(self.course.pods[pod].kind, to);
                return;
            }
        }
    }

    /// Whether a pod may come back from a node without changing what anybody looks at: of those that must spread
    /// together one, and none where one is.
    fn comes_back_unseen(&self, from: usize, to: usize) -> impl FnMut(&ToldPod) -> bool + '_ {
        let course = self.course;
        let mut spread: Vec<PlayKindId> = Vec::new();
        let waiting = self.on[from].iter().copied();
        let waiting = waiting.filter(|it| self.state[*it] == Tried::NotYet);
        spread.extend(waiting.map(|it| course.pods[it].kind));
        move |other| {
            if other.is_free {
                return true;
            }
            let kind = other.kind;
            let is_unseen = other.may_move && course.is_all_one(kind, from, to);
            let mut rivals = spread.iter();
            if !is_unseen || rivals.any(|it| course.counters.are_rivals(kind, *it)) {
                return false;
            }
            spread.push(kind);
            true
        }
    }

    /// Exchanges the pod's place for that of an equal one whose turn comes later and which lets it in; whether there is
    /// one. Both nodes are as full as before.
    fn trade_with_equal(&mut self, pod: usize) -> bool {
        let course = self.course;
        let from = self.places[pod];
        if !course.pods[pod].may_move || !course.trading.contains(&from) {
            return false;
        }
        let kind = course.pods[pod].kind;
        let mut seen = BTreeSet::from([from]);
        for other in pod + 1..course.pods.len() {
            let to = self.places[other];
            let is_equal = course.pods[other].kind == kind && self.state[other] == Tried::NotYet;
            if !is_equal || !course.trading.contains(&to) || !seen.insert(to) {
                continue;
            }
            self.put(pod, to);
            self.put(other, from);
            if self.lets_in(pod, to) {
                self.state[pod] = Tried::Bound;
                self.counters.count(kind, to);
                return true;
            }
            self.put(pod, from);
            self.put(other, to);
        }
        false
    }

    /// So many ways in which the pod may go to another node, whoever comes back for it.
    pub(super) fn ways_of(&mut self, pod: usize, most: usize) -> Vec<Vec<PlaceChange>> {
        let from = self.places[pod];
        let mut ways = Vec::new();
        for to in self.destinations(pod) {
            if ways.len() == most {
                break;
            }
            if !self.lets_in(pod, to) {
                continue;
            }
            let may_come = |other: &ToldPod| {
                other.is_free || (other.may_move && self.is_let_in(other.kind, from))
            };
            let back = self.returned(pod, to, may_come);
            ways.extend(back.map(|back| {
                let back = back.into_iter().map(|it| (it, from));
                back.chain([(pod, to)]).collect()
            }));
        }
        ways
    }

    /// Nodes that the pod may trade its own for: those in the same zone first.
    fn destinations(&self, pod: usize) -> Vec<usize> {
        let course = self.course;
        let from = self.places[pod];
        if !course.pods[pod].may_move || !course.trading.contains(&from) {
            return Vec::new();
        }
        let others = course.trading.iter().copied();
        let others = others.filter(|it| *it != from && course.admits(pod, *it));
        let (mut near, far): (Vec<_>, Vec<_>) =
            others.partition(|it| course.have_same_domains(from, *it));
        near.extend(far);
        near
    }

    /// Pods of the same node that count where the pod looks.
    pub(super) fn blockers(&self, pod: usize) -> Vec<usize> {
        let kind = self.course.pods[pod].kind;
        let is_seen = |other: &usize| {
            let other = self.course.pods[*other].kind;
            self.counters.looks_at(kind, other)
        };
        let others = self.on[self.places[pod]].iter().copied();
        others.filter(|it| *it != pod).filter(is_seen).collect()
    }

    /// Pods that come back for the pod, if it can go: none where there is room for it anyway, else as few as there need
    /// be.
    fn returned(
        &self,
        pod: usize,
        to: usize,
        mut may_come: impl FnMut(&ToldPod) -> bool,
    ) -> Option<Vec<usize>> {
        let course = self.course;
        let from = self.places[pod];
        let others = self.on[to].iter().copied();
        let others = others.filter(|it| may_come(&course.pods[*it]) && course.admits(*it, from));
        let others: Vec<(usize, &[i64])> = others.map(|it| (it, course.requests(it))).collect();
        let exchange = Exchange {
            goes: course.requests(pod),
            spare_there: &self.spare[to],
            spare_here: &self.spare[from],
        };
        exchange.few(&course.amounts, others)
    }

    /// Gives a pod another place.
    fn put(&mut self, pod: usize, to: usize) {
        let from = std::mem::replace(&mut self.places[pod], to);
        let course = self.course;
        let kind = course.pods[pod].kind;
        if self.state[pod] == Tried::Bound {
            self.counters.uncount(kind, from);
            self.counters.count(kind, to);
        }
        self.on[from].retain(|it| *it != pod);
        self.on[to].push(pod);
        add(&mut self.spare[from], course.requests(pod));
        subtract(&mut self.spare[to], course.requests(pod));
    }
}

fn add(to: &mut [i64], more: &[i64]) {
    to.iter_mut().zip(more).for_each(|(sum, it)| *sum += it);
}
