//! A plan mended until every pod binds in the play: what stranded gets nodes of its own now, which the scheduler would
//! have asked for a boot later.
//!
//! Such nodes make room for others, too, so the plan is played again. Bounded by rounds; no clock has a say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;

use super::planned_node::with_pods;
use super::{PlayOrder, PlayOutcome, SchedulerProfile, all_nodes, play, play_in};
use crate::interrupt::Interrupt;
use crate::pod::PodKey;
use crate::problem::{Pool, Problem};
use crate::solution::{NewClaim, PodsOnNode, Solution};
use crate::solve::{Prepared, solve_prepared};

/// How often nodes are added to a plan at most.
const ROUNDS_MAX: usize = 4;

/// Everything that plans are tried with: the same for all of a pass.
#[derive(Clone, Copy)]
pub struct PlayStage<'a> {
    pub problem: &'a Problem,
    pub prepared: &'a Prepared,
    pub profile: &'a SchedulerProfile,
    pub interrupt: &'a Interrupt,
}

impl PlayStage<'_> {
    pub(super) fn play(self, plan: &Solution, order: PlayOrder) -> PlayOutcome {
        play_in(order, self.problem, plan, self.profile)
    }
}

/// A plan that was mended.
#[derive(Debug, Clone, Default)]
pub struct MendedPlan {
    /// Every pod where it came to in the last play; nodes that nobody came to are not bought.
    pub solution: Solution,
    /// How many pods found no place in the last play.
    pub stranded: usize,
}

/// Plays a plan with all its nodes open at once, and adds nodes for the pods that strand.
pub fn mend(stage: PlayStage<'_>, plan: Solution) -> MendedPlan {
    let mut mended = MendedPlan {
        solution: plan,
        ..MendedPlan::default()
    };
    for round in 0..=ROUNDS_MAX {
        let played = play(stage.problem, &mended.solution, stage.profile, 1);
        mended.stranded = played.stranded.len();
        let may_add = round < ROUNDS_MAX && !stage.interrupt.is_tripped();
        let rest = if played.stranded.is_empty() || !may_add {
            Vec::new()
        } else {
            solve_rest(stage, &mended.solution, &played).claims
        };
        if rest.is_empty() {
            move_pods(stage.problem, &mut mended.solution, &played);
            break;
        }
        add(&mut mended.solution, rest);
    }
    mended
}

/// Adds claims, whose pods the plan had elsewhere.
fn add(plan: &mut Solution, claims: Vec<NewClaim>) {
    let moved: BTreeSet<&PodKey> = claims.iter().flat_map(|it| &it.pods).collect();
    for claim in &mut plan.claims {
        claim.pods.retain(|pod| !moved.contains(pod));
    }
    for on_node in &mut plan.existing {
        on_node.pods.retain(|pod| !moved.contains(pod));
    }
    plan.claims.extend(claims);
}

/// Nodes for the pods that stranded, beside all others with what came to them.
pub(super) fn solve_rest(stage: PlayStage<'_>, plan: &Solution, played: &PlayOutcome) -> Solution {
    let problem = stage.problem;
    let (nodes, claims) = all_nodes(problem, plan);
    let first_claim = nodes.len() - claims;
    let mut on: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (pod, claim) in &played.on_claims {
        on[first_claim + claim].push(*pod);
    }
    for (pod, node) in &played.on_nodes {
        on[*node].push(*pod);
    }
    let nodes = nodes.iter().zip(on).map(|(node, pods)| {
        if pods.is_empty() {
            return Arc::clone(node);
        }
        let pods = pods.into_iter().map(|pod| Arc::clone(&problem.pods[pod]));
        Arc::new(with_pods(node, pods))
    });
    let nodes: Vec<_> = nodes.collect();
    let one_node = Resources::new().with_count(labels::RESOURCE_NODES, 1);
    let charged = |pool: &Pool| {
        let mut pool = pool.clone();
        let name = pool.node_pool.metadata.name.clone();
        for node in nodes[first_claim..].iter().filter(|it| it.pool == name) {
            pool.in_use.add_assign(&node.capacity);
            pool.in_use.add_assign(&one_node);
        }
        pool
    };
    let pods = played
        .stranded
        .iter()
        .map(|it| Arc::clone(&problem.pods[*it]));
    let rest = Problem {
        pools: problem.pools.iter().map(charged).collect(),
        pods: pods.collect(),
        nodes,
        namespaces: problem.namespaces.clone(),
        daemons: problem.daemons.clone(),
        volumes: problem.volumes.clone(),
        owners: problem.owners.clone(),
        candidates: problem.candidates.clone(),
        usage: problem.usage.clone(),
        ..Problem::new(problem.options.clone())
    };
    let prepared = stage.prepared.with_nodes_of(&rest);
    solve_prepared(&rest, &prepared, stage.interrupt)
}

/// Lets every claim and node have the pods that came to it; those that stranded stay where the plan had them.
fn move_pods(problem: &Problem, plan: &mut Solution, played: &PlayOutcome) {
    let moved = played.on_claims.keys().chain(played.on_nodes.keys());
    let moved: BTreeSet<&PodKey> = moved.map(|pod| &problem.pods[*pod].key).collect();
    let by_key: BTreeMap<&PodKey, usize> = problem
        .pods
        .iter()
        .enumerate()
        .map(|(at, pod)| (&pod.key, at))
        .collect();
    let mut new: Vec<Vec<usize>> = vec![Vec::new(); plan.claims.len()];
    for (pod, claim) in &played.on_claims {
        new[*claim].push(*pod);
    }
    for (claim, new) in plan.claims.iter_mut().zip(new) {
        let old = claim.pods.iter().filter_map(|pod| by_key.get(pod).copied());
        let old: Vec<usize> = old.collect();
        let stay = old
            .iter()
            .copied()
            .filter(|pod| !moved.contains(&problem.pods[*pod].key));
        let all: Vec<usize> = new.into_iter().chain(stay).collect();
        if !all.is_empty() {
            let change = (old.as_slice(), all.as_slice());
            give(problem, claim, change);
        }
        claim.pods = all
            .iter()
            .map(|pod| problem.pods[*pod].key.clone())
            .collect();
    }
    plan.claims.retain(|claim| !claim.pods.is_empty());
    let mut existing: BTreeMap<usize, Vec<PodKey>> = BTreeMap::new();
    for (pod, node) in &played.on_nodes {
        existing
            .entry(*node)
            .or_default()
            .push(problem.pods[*pod].key.clone());
    }
    let existing = existing.into_iter();
    plan.existing = existing
        .map(|(node, pods)| PodsOnNode {
            node: problem.nodes[node].node_ref.clone(),
            pods,
        })
        .collect();
}

/// Makes a claim fit other pods: what is asked of it, and the types that have that.
fn give(problem: &Problem, claim: &mut NewClaim, (old, new): (&[usize], &[usize])) {
    let mut requests = claim.requests.clone();
    for (pods, sign) in [(old, -1), (new, 1)] {
        for pod in pods {
            for (name, amount) in problem.pods[*pod].shape.requests.iter() {
                requests.set(name, requests.get(name).saturating_add(sign * amount));
            }
        }
    }
    let Some(pool) = problem.pool(&claim.pool) else {
        return;
    };
    let shapes: BTreeSet<_> = new.iter().map(|pod| &problem.pods[*pod].shape).collect();
    let mut may_become: BTreeSet<&str> = BTreeSet::from([claim.best.instance_type.as_str()]);
    for it in pool
        .instance_types
        .iter()
        .filter(|it| claim.instance_types.contains(&it.name))
    {
        let fits = requests
            .iter()
            .all(|(name, amount)| amount <= it.allocatable_of(name));
        if fits
            && shapes
                .iter()
                .all(|shape| super::kinds::may_run_on(shape, &it.requirements))
        {
            may_become.insert(&it.name);
        }
    }
    claim
        .instance_types
        .retain(|name| may_become.contains(name));
    claim.requests = requests;
}
