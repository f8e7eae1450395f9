//! The play of a plan: what a scheduler that nobody can talk to makes of it.
//!
//! Nodes come ready in some order and pods are tried in theirs, as kube-scheduler tries them: highest priority first,
//! then the one that was queued first, each on the node that scores best. A model, and not the scheduler: it knows
//! nothing of images, preemption, limits of volumes and devices, and where the real one draws lots among nodes that
//! score the same, it takes the first. Total and deterministic.

mod choice;
mod counters;
mod field;
mod follow;
mod kinds;
mod mend;
mod planned_node;
mod profile;
pub mod scores;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;

use crate::existing_node::ExistingNode;
use crate::pod::{Pod, PodKey};
use crate::problem::Problem;
use crate::solution::Solution;

pub use choice::{PlanBills, PlanChoice, bill_without, choose};
use field::Field;
pub use follow::{Followed, follow};
use kinds::{Columns, PlayKindId, PlayKinds};
pub use mend::{MendedPlan, PlayStage, mend};
use planned_node::planned_node;
pub use profile::{SchedulerProfile, ScoreWeights};

/// Order in which pods of one priority come to the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// The oldest first.
    ByAge,
    /// Those of one node after those of another that they leave, of each the largest first.
    NodeByNode,
    /// The largest first, whatever nodes they leave.
    BySize,
}

/// Order in which nodes come ready and pods are tried.
#[derive(Debug, Clone, Copy)]
struct PlayOrder {
    /// In how many waves the nodes of the plan come.
    waves: usize,
    arrival: Arrival,
}

/// Result of a play.
#[derive(Debug, Clone, Default)]
pub struct PlayOutcome {
    /// Position of the claim that each pod came to, by position of the pod in the problem; pods on nodes that were
    /// there are absent.
    pub on_claims: BTreeMap<usize, usize>,
    /// Position among the problem's nodes of the one that each pod came to, of those that were there.
    pub on_nodes: BTreeMap<usize, usize>,
    /// Pods of the plan that found no place, in queue order.
    pub stranded: Vec<usize>,
    /// Work done, in nodes scored.
    pub effort: usize,
}

/// A pod, by its position in the problem, that no node has yet.
#[derive(Debug, Clone, Copy)]
struct WaitingPod {
    pod: usize,
    kind: PlayKindId,
}

/// A pod, by its position in the problem, and the node of the play that it went to.
#[derive(Debug, Clone, Copy)]
struct BoundPod {
    pod: usize,
    node: usize,
}

/// Plays a plan: what is there already is open, and the claims' nodes come in so many waves, in the order of claims.
pub fn play(
    problem: &Problem,
    solution: &Solution,
    profile: &SchedulerProfile,
    waves: usize,
) -> PlayOutcome {
    let order = PlayOrder {
        waves,
        arrival: Arrival::ByAge,
    };
    play_in(order, problem, solution, profile)
}

fn play_in(
    order: PlayOrder,
    problem: &Problem,
    solution: &Solution,
    profile: &SchedulerProfile,
) -> PlayOutcome {
    let (nodes, claims) = all_nodes(problem, solution);
    let first_claim = nodes.len() - claims;
    let planned = planned_pods(solution);
    let mut kinds = PlayKinds::new(columns(problem, &nodes, profile));
    let running = nodes.iter().map(|node| {
        let active = node.pods.iter().filter(|it| it.is_active());
        active.map(|pod| kinds.of(pod, problem)).collect()
    });
    let running: Vec<Vec<PlayKindId>> = running.collect();
    let queued = order.arrival.queue(&problem.pods).into_iter();
    let queued = queued.filter(|pod| planned.contains(&problem.pods[*pod].key));
    let queued = queued.map(|pod| WaitingPod {
        pod,
        kind: kinds.of(&problem.pods[pod], problem),
    });
    let mut waiting: Vec<WaitingPod> = queued.collect();
    let mut field = Field::new(problem, &kinds, &nodes, &running, profile);
    (0..first_claim).for_each(|node| field.open(node));
    let mut played = PlayOutcome::default();
    let in_wave = claims.div_ceil(order.waves.max(1)).max(1);
    let mut next_claim = first_claim;
    loop {
        let end = nodes.len().min(next_claim + in_wave);
        (next_claim..end).for_each(|node| field.open(node));
        next_claim = end;
        for BoundPod { pod, node } in bind_all(&mut field, &mut waiting) {
            match node.checked_sub(first_claim) {
                Some(claim) => drop(played.on_claims.insert(pod, claim)),
                None => drop(played.on_nodes.insert(pod, node)),
            }
        }
        if next_claim == nodes.len() {
            break;
        }
    }
    played.stranded = waiting.into_iter().map(|it| it.pod).collect();
    played.effort = field.effort;
    played
}

/// Binds pods while any finds a node; the others are left. Answers who went where.
fn bind_all(field: &mut Field<'_>, waiting: &mut Vec<WaitingPod>) -> Vec<BoundPod> {
    let mut bound = Vec::new();
    loop {
        let before = waiting.len();
        // What one pod of a kind cannot find, the next cannot either, unless it is others that it waits for.
        let mut in_vain = BTreeSet::new();
        waiting.retain(|&WaitingPod { pod, kind }| {
            if in_vain.contains(&kind) {
                return true;
            }
            let node = field.bind(kind);
            if node.is_none() && field.stands_alone(kind) {
                in_vain.insert(kind);
            }
            bound.extend(node.map(|node| BoundPod { pod, node }));
            node.is_none()
        });
        // A pod that was placed may be what others waited for.
        if waiting.len() == before || waiting.iter().all(|it| field.stands_alone(it.kind)) {
            return bound;
        }
    }
}

/// Every resource that anybody asks for or scores.
fn columns(problem: &Problem, nodes: &[Arc<ExistingNode>], profile: &SchedulerProfile) -> Columns {
    let pods = problem
        .pods
        .iter()
        .chain(nodes.iter().flat_map(|it| &it.pods));
    let asked = pods.flat_map(|pod| pod.shape.requests.iter().map(|it| it.0));
    let scored = profile.fit_resources.iter().map(|it| it.0.as_str());
    let scored = scored.chain(profile.balanced_resources.iter().map(String::as_str));
    let always = [labels::RESOURCE_CPU, labels::RESOURCE_MEMORY];
    Columns::new(asked.chain(scored).chain(always))
}

/// The nodes that are there and behind them those of the claims, of which there are so many.
fn all_nodes(problem: &Problem, solution: &Solution) -> (Vec<Arc<ExistingNode>>, usize) {
    let mut nodes = problem.nodes.clone();
    let claims = solution.claims.iter().enumerate();
    nodes.extend(claims.map(|(number, claim)| {
        let name = format!("planned/{number}");
        let node = planned_node(problem, claim, &name);
        Arc::new(node.unwrap_or_else(|| unknown(name)))
    }));
    (nodes, solution.claims.len())
}

/// A node that nothing is known of takes nobody.
fn unknown(name: String) -> ExistingNode {
    ExistingNode {
        is_initialized: false,
        is_schedulable: false,
        ..ExistingNode::empty(name, Resources::new())
    }
}

/// The pods that the plan has a place for.
fn planned_pods(solution: &Solution) -> BTreeSet<&PodKey> {
    let on_claims = solution.claims.iter().flat_map(|it| &it.pods);
    let on_nodes = solution.existing.iter().flat_map(|it| &it.pods);
    on_claims.chain(on_nodes).collect()
}

impl Arrival {
    /// Positions of pods in the order in which the scheduler tries them.
    fn queue(self, pods: &[Arc<Pod>]) -> Vec<usize> {
        let mut queue: Vec<usize> = (0..pods.len()).collect();
        let priority = |at: usize| Reverse(pods[at].shape.priority);
        match self {
            Self::ByAge => queue.sort_by_key(|at| (priority(*at), pods[*at].queue_key())),
            Self::NodeByNode => queue.sort_by_key(|at| {
                let pod = &pods[*at];
                (priority(*at), &pod.node_name, Reverse(pod.size()))
            }),
            Self::BySize => queue.sort_by_key(|at| (priority(*at), Reverse(pods[*at].size()))),
        }
        queue
    }
}
