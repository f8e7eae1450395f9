//! Whether pods that are told of their places come to them, and who trades places so that more of them do.
//!
//! kube-scheduler tries a pod on the node that it is told of first, with all others of no lower priority that are told
//! of it as if they ran there, and without them. One that is kept off its node loses what it was told, and takes the
//! room of others. It goes to a node that lets it in instead, and pods to which it is all the same where they are come
//! back for it. Answers to `evaluateNominatedNode` and `RunFilterPluginsWithNominatedPods`.

mod exchange;
mod sweep;

use std::collections::{BTreeMap, BTreeSet};

use apis::labels::{CAPACITY_TYPE, TOPOLOGY_ZONE};

use super::counters::PodCounters;
use super::kinds::{DaemonDemand, PlayKindId, PlayKinds};
use super::{Arrival, SchedulerProfile, columns};
use crate::existing_node::ExistingNode;
use crate::pod::Pod;
use crate::problem::Problem;
use exchange::SizeColumns;
use sweep::{Sweep, Tried};

/// So often all that are kept off their places look for others at once: who moves may keep others off.
const ROUNDS: usize = 4;
/// Ways tried for one of those that are left then.
const WAYS_MAX: usize = 96;
/// Of these, those of each pod that keeps it off.
const BLOCKER_WAYS_MAX: usize = 6;
/// How bad it is that a pod is kept off its node, where one pod too many there counts as 1.
const KEPT_OFF_HARM: i64 = 1000;
/// How bad it is besides that company keeps it off which stays.
const SHUT_OUT_HARM: i64 = 4000;
/// Pods tried in all, after which nothing more is looked for: some tenths of a second.
const TRIES_MAX: usize = 150_000;
/// For so many pods another place is looked for, of any number: each look goes over all nodes and their pods.
const LOOKS_MAX: usize = 1000;

/// What comes of pods that are told of their places. All are positions in the problem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Followed {
    /// Pods that get another place, with the node.
    pub moved: BTreeMap<usize, usize>,
    /// Pods that would be kept off their node for now.
    pub kept_off: BTreeSet<usize>,
    /// Those of them that are told later, or they would keep off others that they must spread with.
    pub out_of_turn: BTreeSet<usize>,
}

/// A pod that is told of a place.
#[derive(Debug)]
struct ToldPod {
    /// Its position in the problem.
    position: usize,
    kind: PlayKindId,
    priority: i32,
    /// It may go to another node that lets it in.
    may_move: bool,
    /// It is all the same to it and to others where it is.
    is_free: bool,
}

/// The nodes, and all pods that are told of one, in the order in which they are tried.
struct ToldPods<'a> {
    nodes: Vec<&'a ExistingNode>,
    kinds: PlayKinds,
    /// Who runs already.
    counters: PodCounters,
    /// Counters by which it matters where pods of each kind are.
    seen_by: Vec<Vec<usize>>,
    /// Nodes by the number of a demand: whether they are what it asks for.
    admits: Vec<Vec<bool>>,
    /// What is free of each node, by column.
    free: Vec<Vec<i64>>,
    pods: Vec<ToldPod>,
    /// Nodes whose pods may trade places.
    trading: &'a BTreeSet<usize>,
    amounts: SizeColumns,
}

/// Finds out which pods come to the nodes that they are told of: `places` has the position of the node in the problem
/// by that of the pod. The pods of the nodes in `trading` trade places, so that more of them do.
pub fn follow(
    problem: &Problem,
    places: &BTreeMap<usize, usize>,
    trading: &BTreeSet<usize>,
) -> Followed {
    let course = ToldPods::new(problem, places, trading);
    let first = course.pods.iter().map(|it| places[&it.position]).collect();
    let mut best = course.swept(first);
    if trading.len() > 1 {
        best = course.improved_one_by_one(course.improved_at_once(best));
    }
    let moved = course.pods.iter().zip(best.places);
    let moved = moved.map(|(pod, node)| (pod.position, node));
    let positions = |pods: BTreeSet<usize>| {
        let positions = pods.into_iter().map(|it| course.pods[it].position);
        positions.collect()
    };
    Followed {
        moved: moved.filter(|(pod, node)| places[pod] != *node).collect(),
        kept_off: positions(best.kept_off),
        out_of_turn: positions(best.out_of_turn),
    }
}

/// A place for each pod, and what comes of it.
#[derive(Debug)]
struct ToldPlaces {
    /// Node of each pod.
    places: Vec<usize>,
    kept_off: BTreeSet<usize>,
    /// Those of them that are not told yet.
    out_of_turn: BTreeSet<usize>,
    /// How bad that is.
    harm: i64,
}

/// A pod and the node that it goes to.
type PlaceChange = (usize, usize);

impl<'a> ToldPods<'a> {
    fn new(
        problem: &'a Problem,
        places: &BTreeMap<usize, usize>,
        trading: &'a BTreeSet<usize>,
    ) -> Self {
        // Nothing is scored here, so what only scores need not be counted.
        let profile = SchedulerProfile {
            spreads_by_default: false,
            ..SchedulerProfile::default()
        };
        let nodes: Vec<&ExistingNode> = problem.nodes.iter().map(|it| &**it).collect();
        let mut kinds = PlayKinds::new(columns(problem, &problem.nodes, &profile));
        let running = nodes.iter().enumerate().flat_map(|(at, node)| {
            let active = node.pods.iter().filter(|it| it.is_active());
            active.map(move |pod| (at, pod))
        });
        let running: Vec<(usize, PlayKindId)> = running
            .map(|(at, pod)| (at, kinds.of(pod, problem)))
            .collect();
        let queue = Arrival::ByAge.queue(&problem.pods).into_iter();
        let queue = queue.filter(|it| places.contains_key(it));
        let told: Vec<(usize, PlayKindId)> = queue
            .map(|it| (it, kinds.of(&problem.pods[it], problem)))
            .collect();
        let mut counters = PodCounters::new(problem, &kinds, &nodes, &profile);
        for (node, kind) in running {
            counters.count(kind, node);
        }
        let daemons = DaemonDemand::all(&problem.daemons);
        let pod = |(position, kind): (usize, PlayKindId)| {
            ToldPod::new(&problem.pods[position], position, kind, &counters)
        };
        Self {
            admits: kinds
                .demands
                .iter()
                .map(|demand| nodes.iter().map(|it| demand.admits(it)).collect())
                .collect(),
            free: nodes
                .iter()
                .map(|it| DaemonDemand::free(&daemons, it, &kinds.columns))
                .collect(),
            seen_by: counters.seen_by(),
            pods: told.into_iter().map(pod).collect(),
            amounts: SizeColumns::new(&kinds.columns),
            nodes,
            kinds,
            counters,
            trading,
        }
    }

    /// Who is kept off these places.
    fn swept(&self, places: Vec<usize>) -> ToldPlaces {
        let mut sweep = Sweep::new(self, places);
        for pod in 0..self.pods.len() {
            sweep.try_told(pod);
        }
        let out_of_turn = sweep.all(Tried::OutOfTurn);
        let kept_off = &sweep.all(Tried::KeptOff) | &out_of_turn;
        let for_good = |pod: &usize| {
            let kind = self.pods[*pod].kind;
            !self.counters.must_spread(kind) && !sweep.is_let_in(kind, sweep.places[*pod])
        };
        let harm = kept_off.iter().map(|pod| {
            let shut_out = if for_good(pod) { SHUT_OUT_HARM } else { 0 };
            KEPT_OFF_HARM + shut_out
        });
        ToldPlaces {
            harm: harm.sum::<i64>() + sweep.too_many,
            kept_off,
            out_of_turn,
            places: sweep.places,
        }
    }

    /// All that are kept off trade their places, again and again while that helps.
    fn improved_at_once(&self, mut best: ToldPlaces) -> ToldPlaces {
        for _ in 0..ROUNDS {
            if best.kept_off.is_empty() {
                break;
            }
            let mut sweep = Sweep::new(self, best.places.clone());
            for pod in 0..self.pods.len() {
                if !sweep.try_told(pod) {
                    sweep.trade(pod);
                }
            }
            let next = self.swept(sweep.places);
            if next.harm >= best.harm {
                break;
            }
            best = next;
        }
        best
    }

    /// One after the other that is kept off tries its ways, each of them to its end.
    fn improved_one_by_one(&self, mut best: ToldPlaces) -> ToldPlaces {
        let mut tries = 0;
        let mut next = best.kept_off.first().copied();
        while let Some(pod) = next {
            let mut better = None;
            for way in self.ways(pod, &best.places) {
                tries += self.pods.len();
                let mut places = best.places.clone();
                for (pod, to) in way {
                    places[pod] = to;
                }
                let found = self.swept(places);
                if found.harm < best.harm {
                    better = Some(found);
                    break;
                }
            }
            tries += self.pods.len();
            if tries > TRIES_MAX {
                break;
            }
            // One that is still kept off, though by fewer, tries again.
            let from = if better.is_some() { pod } else { pod + 1 };
            best = better.unwrap_or(best);
            next = best.kept_off.range(from..).next().copied();
        }
        best
    }

    /// What may help a pod that is kept off its place: that it goes elsewhere, or that somebody does who keeps it off.
    fn ways(&self, pod: usize, places: &[usize]) -> Vec<Vec<PlaceChange>> {
        let mut sweep = Sweep::new(self, places.to_vec());
        for before in 0..pod {
            sweep.try_told(before);
        }
        let mut ways = sweep.ways_of(pod, WAYS_MAX / 2);
        for other in sweep.blockers(pod) {
            if ways.len() >= WAYS_MAX {
                break;
            }
            ways.extend(sweep.ways_of(other, BLOCKER_WAYS_MAX));
        }
        ways
    }

    fn requests(&self, pod: usize) -> &[i64] {
        &self.kinds.all[self.pods[pod].kind].requests
    }

    fn admits(&self, pod: usize, node: usize) -> bool {
        self.admits[self.kinds.all[self.pods[pod].kind].demand][node]
    }

    /// Whether all that look at pods of the kind, or that they look at, see no difference between both nodes.
    fn is_all_one(&self, kind: PlayKindId, a: usize, b: usize) -> bool {
        let mut seen = self.seen_by[kind].iter();
        seen.all(|counter| self.counters.is_all_one(*counter, a, b))
    }

    /// Whether nodes are in one zone and of one capacity type: pods spread over little else.
    fn have_same_domains(&self, a: usize, b: usize) -> bool {
        [TOPOLOGY_ZONE, CAPACITY_TYPE]
            .into_iter()
            .all(|key| self.nodes[a].label(key) == self.nodes[b].label(key))
    }
}

impl ToldPod {
    fn new(pod: &Pod, position: usize, kind: PlayKindId, counters: &PodCounters) -> Self {
        let shape = &pod.shape;
        let may_move = pod.volume_claims.is_empty()
            && pod.resource_claims.is_empty()
            && shape.host_ports.is_empty()
            && shape.pod_affinity.is_empty()
            && !counters.is_company(kind);
        Self {
            position,
            kind,
            priority: shape.priority,
            may_move,
            is_free: may_move && counters.is_free(kind),
        }
    }
}
