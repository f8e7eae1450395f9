//! Simulation of the cluster as if some nodes were gone: a solve without them.
//!
//! One base problem a loop, shared by all simulations; each is a difference to it. Answers to Karpenter's
//! `disruption/helpers.go` (`SimulateScheduling`). Never looks at prices; that is the methods' business.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::NodeRef;
use jiff::Timestamp;
use planning::provisioning::{self, PoolTypes};
use scheduling::play::{PlayStage, SchedulerProfile, bill_without};
use scheduling::pod::{Pod, PodKey};
use scheduling::problem::{Options, Packing, Problem, ReservedMode};
use scheduling::ranking::{PolicyUse, RankHook};
use scheduling::solution::{NewClaim, PodsOnNode, Solution};
use scheduling::{Interrupt, Prepared, TableCache, solve_without};
use state::Snapshot;
use state::ledger::OutcomeId;

use crate::candidate::{Candidate, TypesByPool};
use crate::command::Command;
use crate::method::Method;
use crate::obstacle::Obstacle;

/// Runs simulations against one snapshot.
pub(crate) struct Simulator<'a> {
    snapshot: &'a Snapshot,
    base: Problem,
    /// The ranking policy's one answer of the loop, and what else all simulations share.
    prepared: Prepared,
    /// Pods that wait anyway: whether they find a place is not the move's fault.
    pending: BTreeSet<PodKey>,
    /// Pods of nodes that are going already.
    moving: BTreeSet<PodKey>,
    interrupt: &'a Interrupt,
    scheduler: &'a SchedulerProfile,
    now: Timestamp,
}

/// Everything that simulations of a loop work with.
#[derive(Clone, Copy)]
pub(crate) struct SimulationInput<'a> {
    /// The cluster as the loop sees it.
    pub(crate) snapshot: &'a Snapshot,
    /// Pools that may open nodes.
    pub(crate) pools: &'a [PoolTypes],
    /// Instance types of every pool that has nodes.
    pub(crate) types: &'a TypesByPool,
    /// Options of the solver in simulations.
    pub(crate) options: &'a Options,
    /// Policy that ranks the offerings.
    pub(crate) rank: &'a dyn RankHook,
    /// How the scheduler scores.
    pub(crate) scheduler: &'a SchedulerProfile,
    /// Signal that cuts simulations off.
    pub(crate) interrupt: &'a Interrupt,
}

impl SimulationInput<'_> {
    /// The problem of a provisioning pass, in which nodes of pools that may not buy have their prices, too.
    pub(crate) fn problem(&self, pools: &[PoolTypes], options: Options) -> Problem {
        let usage = provisioning::usage(self.snapshot, self.types);
        provisioning::problem_for_provisioning(self.snapshot, pools, usage, options).problem
    }
}

/// Purpose of a simulation, which decides what may come and which pods may stay behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The nodes must go; what comes is bought as for pending pods.
    Renewal,
    /// The nodes must go, and so must all their pods, those too that something holds there; what comes is bought as for
    /// pending pods.
    Repair,
    /// The nodes go if one new node at most is enough. Nodes that pods joined or left only just now are no
    /// destination.
    Consolidation,
    /// The nodes go if the cheapest set of new nodes, however many, is enough. Nodes that pods joined or left only just
    /// now are no destination.
    Repacking,
}

impl Purpose {
    /// What the simulation is for that finds out whether the command still holds.
    pub(crate) fn of(command: &Command) -> Self {
        match command.method {
            Method::Repair => Self::Repair,
            Method::StaticDrift | Method::Drift | Method::Expiry => Self::Renewal,
            Method::Emptiness
            | Method::MultiNodeConsolidation
            | Method::SingleNodeConsolidation => match command.replacements().len() {
                0 | 1 => Self::Consolidation,
                _ => Self::Repacking,
            },
        }
    }
}

/// Outcome of a simulation in which every pod that has a place today has one afterwards, on a node that takes pods.
#[derive(Debug, Clone)]
pub(crate) struct Simulated {
    /// Claims that would be opened.
    pub(crate) claims: Vec<NewClaim>,
    /// Existing nodes that would take pods over, with the pods.
    pub(crate) placements: Vec<PodsOnNode>,
}

/// Harm that the removal would do to a pod that has its place today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unsound {
    /// Nobody knows: the solve was cut off, and the rest of the answer means nothing.
    CutOff,
    /// It would find no place.
    Stranded {
        pod: PodKey,
        /// Why, in the solver's words.
        error: String,
    },
    /// It would go to a node that may never open.
    Uninitialized { pod: PodKey, node: NodeRef },
}

impl From<Unsound> for Obstacle {
    fn from(unsound: Unsound) -> Self {
        match unsound {
            Unsound::CutOff => Self::new(OutcomeId::NodeNotReached, "the simulation was cut off"),
            Unsound::Stranded { pod, error } => {
                Self::new(OutcomeId::NodePodsDoNotFit, format!("pod {pod}: {error}"))
            }
            Unsound::Uninitialized { pod, node } => Self::new(
                OutcomeId::NodeUninitializedDestination,
                format!("pod {pod} would go to {node}"),
            ),
        }
    }
}

impl Simulated {
    /// Existing nodes that would take pods over.
    pub(crate) fn destinations(&self) -> Vec<NodeRef> {
        self.placements.iter().map(|it| it.node.clone()).collect()
    }
}

impl<'a> Simulator<'a> {
    /// Works out what all simulations share.
    pub(crate) fn new(world: &SimulationInput<'a>, tables: &TableCache) -> Self {
        let options = world.options.clone();
        let options = match options.reserved {
            ReservedMode::Off => options,
            ReservedMode::Strict | ReservedMode::Fallback => Options {
                reserved: ReservedMode::Fallback,
                ..options
            },
        };
        Self::with(world, world.pools, options, tables)
    }

    /// As [`Self::new`], for a node that goes before anything comes in its place: the slot of a reservation that it
    /// held is free, and reservations are treated as by provisioning: what it leaves is all its pods may count on.
    pub(crate) fn after_termination(
        world: &SimulationInput<'a>,
        freed_reservation: Option<&str>,
    ) -> Self {
        let pools = world.pools.iter().map(|it| match freed_reservation {
            Some(id) => it.with_slot(id),
            None => it.clone(),
        });
        let pools: Vec<PoolTypes> = pools.collect();
        let reserved = match world.options.reserved {
            ReservedMode::Off => ReservedMode::Off,
            ReservedMode::Strict | ReservedMode::Fallback => ReservedMode::Strict,
        };
        let options = Options {
            reserved,
            ..world.options.clone()
        };
        Self::with(world, &pools, options, &TableCache::default())
    }

    fn with(
        world: &SimulationInput<'a>,
        pools: &[PoolTypes],
        options: Options,
        tables: &TableCache,
    ) -> Self {
        let SimulationInput {
            snapshot,
            pools: _,
            types: _,
            options: &Options { now, .. },
            rank,
            scheduler,
            interrupt,
        } = *world;
        // What waits now waits in every simulation too, so that no move takes room meant for it.
        let mut base = world.problem(pools, options);
        let (pending, moving): (Vec<_>, Vec<_>) = base
            .pods
            .iter()
            .cloned()
            .partition(|pod| pod.is_provisionable());
        base.pods.shrink_to_fit();
        let prepared = Prepared::new(&base, rank, tables);
        // Only the preparation looked at them.
        base.nodes = Vec::new();
        base.usage.clear();
        base.owners.clear();
        Self {
            snapshot,
            base,
            prepared,
            pending: pending.iter().map(|pod| pod.key.clone()).collect(),
            moving: moving.iter().map(|pod| pod.key.clone()).collect(),
            interrupt,
            scheduler,
            now,
        }
    }

    /// The pools with what they may buy.
    pub(crate) fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The ranking policies asked.
    pub(crate) fn uses(&self) -> &[PolicyUse] {
        self.prepared.uses()
    }

    /// The cluster without the removed nodes; the first harm to a pod, where there is any.
    pub(crate) fn without(
        &self,
        removed: &[&Candidate],
        purpose: Purpose,
    ) -> Result<Simulated, Unsound> {
        let problem = self.problem(removed, purpose);
        let removed: Vec<NodeRef> = removed.iter().map(|it| it.node.node_ref()).collect();
        let solution = solve_without(&problem, &self.prepared, &removed, self.interrupt);
        match self.unsound(&solution) {
            Some(unsound) => Err(unsound),
            None => Ok(Simulated {
                claims: solution.claims,
                placements: solution.existing,
            }),
        }
    }

    /// What the plan for a repacking is expected to cost once the scheduler, which is not told of it, has had its way
    /// with the pods; effective USD an hour.
    pub(crate) fn bill_after_play(&self, removed: &[&Candidate], plan: &Solution) -> f64 {
        let problem = self.problem(removed, Purpose::Repacking);
        let removed: Vec<NodeRef> = removed.iter().map(|it| it.node.node_ref()).collect();
        let stage = PlayStage {
            problem: &problem,
            prepared: &self.prepared,
            profile: self.scheduler,
            interrupt: self.interrupt,
        };
        bill_without(stage, &removed, plan)
    }

    fn unsound(&self, solution: &Solution) -> Option<Unsound> {
        if solution.is_interrupted {
            return Some(Unsound::CutOff);
        }
        let is_excused = |key: &PodKey| self.pending.contains(key);
        let mut errors = solution.pod_errors.iter();
        if let Some((pod, error)) = errors.find(|(key, _)| !is_excused(key)) {
            return Some(Unsound::Stranded {
                pod: pod.clone(),
                error: error.to_string(),
            });
        }
        let is_closed = |node: &NodeRef| {
            let node = self.snapshot.find(node);
            node.is_some_and(|it| it.is_managed() && !it.is_initialized())
        };
        let closed = solution.existing.iter().filter(|it| is_closed(&it.node));
        closed.into_iter().find_map(|it| {
            let mut pods = it.pods.iter();
            let pod = pods.find(|key| !is_excused(key) && !self.moving.contains(*key))?;
            Some(Unsound::Uninitialized {
                pod: pod.clone(),
                node: it.node.clone(),
            })
        })
    }

    /// The cluster without each of the nodes in turn, on as many threads as the options allow. The answers are in the
    /// order of the nodes, whatever thread was first.
    pub(crate) fn without_each(
        &self,
        removed: &[&Candidate],
        purpose: Purpose,
    ) -> Vec<Result<Simulated, Unsound>> {
        let all = |part: &[&Candidate]| -> Vec<Result<Simulated, Unsound>> {
            let each = part.iter();
            each.map(|it| self.without(&[*it], purpose)).collect()
        };
        let threads = self.base.options.threads.clamp(1, removed.len().max(1));
        if threads == 1 {
            return all(removed);
        }
        std::thread::scope(|scope| {
            let parts = removed.chunks(removed.len().div_ceil(threads));
            let running: Vec<_> = parts.map(|part| scope.spawn(|| all(part))).collect();
            let done = running.into_iter().map(|it| match it.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            done.flatten().collect()
        })
    }

    fn problem(&self, removed: &[&Candidate], purpose: Purpose) -> Problem {
        let mut problem = self.base.clone();
        for pool in &mut problem.pools {
            let name = pool.node_pool.metadata.name.as_deref().unwrap_or_default();
            // Limits bind the cluster as it will be, not the moment when old and new overlap.
            for candidate in removed.iter().filter(|it| it.pool() == name) {
                pool.in_use.sub_assign(&candidate.node.capacity());
            }
        }
        let movable = |it: &&Candidate| {
            provisioning::currently_reschedulable(self.snapshot, &it.node, self.now)
        };
        let pods: Vec<Arc<Pod>> = match purpose {
            Purpose::Repair => removed
                .iter()
                .flat_map(|it| it.reschedulable.iter().cloned())
                .collect(),
            Purpose::Renewal | Purpose::Consolidation | Purpose::Repacking => {
                removed.iter().flat_map(movable).collect()
            }
        };
        match purpose {
            Purpose::Renewal | Purpose::Repair | Purpose::Repacking => {}
            // One replacement is wanted, so the pods go on few large nodes.
            Purpose::Consolidation => problem.options.packing = Packing::Karpenter,
        }
        if matches!(purpose, Purpose::Consolidation | Purpose::Repacking) {
            problem.candidates = pods
                .iter()
                .filter(|pod| !pod.is_pending())
                .map(|pod| pod.key.clone())
                .collect();
        }
        provisioning::add_pods(&mut problem, self.snapshot, pods);
        problem
    }
}
