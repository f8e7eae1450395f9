//! Where a cluster would end up: commands applied to the model, loop after loop, until a loop finds nothing.
//!
//! Nothing waits here: replacements are ready at once and every pod runs again where the simulation put it. For
//! `mortise simulate` and for tests that judge an end state; Karpenter has no such tool.

mod new_node;
mod report;

pub use report::{DisruptionReport, ReportedCommand, ReportedNode, ReportedOutcome};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{NodeClaim, ObjectKey};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use planning::provisioning::PoolTypes;
use scheduling::play::SchedulerProfile;
use scheduling::pod::PodKey;
use scheduling::problem::Options;
use scheduling::solution::NewClaim;
use scheduling::{Interrupt, TableCache};
use state::{Cluster, Event, Snapshot};

use crate::candidate::{Candidate, TypesByPool, list_price, types_of};
use crate::command::{Command, Execution};
use crate::decide::decide;
use crate::decision::Decision;
use crate::history::History;
use crate::input::{DisruptionInput, Gates, PolicyHooks};
use crate::memory::Memory;
use crate::repair::policies::RepairPolicies;
use crate::simulation::{Purpose, Simulated, SimulationInput, Simulator};
use new_node::node;

/// How far the clock moves on between two loops.
const LOOP_SECONDS: i64 = 30;

/// Everything that loops work with beside the model.
#[derive(Clone, Copy)]
pub struct EndStateInput<'a> {
    /// Instance types of every pool that has nodes.
    pub types: &'a TypesByPool,
    /// Pools that may open nodes.
    pub pools: &'a [PoolTypes],
    /// Options of simulations; `now` is the moment of the first loop.
    pub options: &'a Options,
    /// How the scheduler scores.
    pub scheduler: &'a Arc<SchedulerProfile>,
    /// Moves that are switched on.
    pub gates: Gates,
    /// Policies that say which nodes are sick; `None` while repair is switched off.
    pub repair: Option<&'a Arc<RepairPolicies>>,
    /// Policies that rank, judge and allow.
    pub hooks: PolicyHooks<'a>,
}

/// Loops that led to the end.
#[derive(Debug, Clone, Default)]
pub struct EndState {
    /// Every loop, the last one without a command unless loops ran out.
    pub loops: Vec<Decision>,
}

impl EndState {
    /// All commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.loops.iter().flat_map(|it| &it.commands)
    }
}

/// One loop on the model as it is.
pub fn look(
    cluster: &Cluster,
    stage: &EndStateInput<'_>,
    memory: &Memory,
    history: &History,
    interrupt: &Interrupt,
) -> Decision {
    let input = DisruptionInput {
        snapshot: cluster.snapshot(),
        types: stage.types.clone(),
        pools: stage.pools.to_vec(),
        queued: BTreeSet::new(),
        history: history.clone(),
        memory: memory.clone(),
        options: stage.options.clone(),
        scheduler: Arc::clone(stage.scheduler),
        gates: stage.gates,
        repair: stage.repair.cloned(),
        tables: Arc::default(),
    };
    decide(&input, stage.hooks, interrupt)
}

/// Looks and acts until there is nothing left to do, or for so many loops.
pub fn until_stable(
    cluster: &mut Cluster,
    stage: &EndStateInput<'_>,
    loops_max: usize,
    interrupt: &Interrupt,
) -> EndState {
    let (mut memory, mut history) = (Memory::default(), History::default());
    let mut settled = EndState::default();
    let mut options = stage.options.clone();
    let mut serial = 0;
    for _ in 0..loops_max {
        let stage = EndStateInput {
            options: &options,
            ..*stage
        };
        let decision = look(cluster, &stage, &memory, &history, interrupt);
        memory = decision.memory.clone();
        let is_done = decision.commands.is_empty();
        for command in &decision.commands {
            let claims = carry_out(cluster, &stage, command, &mut serial);
            note(&mut history, &cluster.snapshot(), command, options.now);
            history.note_replacements(command, &claims, options.now);
        }
        settled.loops.push(decision);
        if is_done || interrupt.is_tripped() {
            break;
        }
        let step = SignedDuration::from_secs(LOOP_SECONDS);
        options.now = options.now.saturating_add(step).unwrap_or(options.now);
    }
    settled
}

/// Tells the history of a command that was carried out.
fn note(history: &mut History, snapshot: &Snapshot, command: &Command, now: Timestamp) {
    for node in &command.candidates {
        match command.execution {
            Execution::ReplaceFirst(_) | Execution::TerminateFirst(_) => {
                // Budgets count by reason, which the end alone does not tell.
                history.note_start(&node.claim, command.method.budget_reason());
                history.note_end(&node.claim, &node.pool, now);
            }
            // Nobody is there to say that it helped: a node that is still sick is replaced in the end.
            Execution::Reboot => {
                let sick = snapshot.node_of_claim(&node.claim);
                if let Some(claim) = sick.and_then(|it| it.claim()) {
                    history.note_reboot(&claim.uid, now);
                }
            }
        }
    }
}

/// USD an hour of all managed nodes whose price is known.
pub fn price_per_hour(snapshot: &Snapshot, types: &TypesByPool) -> f64 {
    let nodes = snapshot.nodes().filter(|it| it.is_managed());
    // A sum of nothing is -0.0, which is not how money is written.
    let prices = nodes.filter_map(|it| list_price(types, it));
    prices.fold(0.0, |sum, price| sum + price)
}

/// Applies a command to the model: the nodes go, others come, and pods move. The names of the claims that come.
fn carry_out(
    cluster: &mut Cluster,
    stage: &EndStateInput<'_>,
    command: &Command,
    serial: &mut u32,
) -> Vec<String> {
    let (snapshot, now) = (cluster.snapshot(), stage.options.now);
    let removed = candidates(&snapshot, stage, command);
    let removed: Vec<&Candidate> = removed.iter().collect();
    let Some(simulated) = what_follows(&snapshot, stage, command, &removed) else {
        return Vec::new();
    };
    let taken_over = simulated.placements.into_iter().flat_map(|it| {
        let node = it.node.name().to_owned();
        it.pods.into_iter().map(move |pod| (pod, node.clone()))
    });
    let mut moves: Vec<(PodKey, String)> = taken_over.collect();
    let mut events = Vec::new();
    let mut claims = Vec::new();
    for replacement in simulated.claims {
        *serial += 1;
        let name = format!("{}-settled-{serial:05}", replacement.pool);
        if let Some(made) = node(&snapshot, stage, &replacement, &name) {
            events.extend(made);
            let pods = replacement.pods.into_iter();
            moves.extend(pods.map(|pod| (pod, name.clone())));
            claims.push(name);
        }
    }
    let placed: BTreeSet<&PodKey> = moves.iter().map(|it| &it.0).collect();
    for candidate in &removed {
        for pod in snapshot.bound(&candidate.node).pods() {
            if placed.contains(&pod.key) {
                continue;
            }
            events.push(if pod.is_reschedulable() {
                Event::PodMoved {
                    pod: pod.key.clone(),
                    node: None,
                }
            } else {
                Event::deleted::<Pod>(pod.key.clone())
            });
        }
        events.push(Event::deleted::<Node>(ObjectKey::cluster(candidate.name())));
        events.push(Event::deleted::<NodeClaim>(ObjectKey::cluster(
            candidate.claim(),
        )));
    }
    events.extend(moves.into_iter().map(|(pod, node)| Event::PodMoved {
        pod,
        node: Some(node),
    }));
    for event in events {
        // None of these carries an object that could fail to parse.
        cluster.apply(now, event).ok();
    }
    claims
}

/// The nodes that go, in order of name: those too that only repair may touch.
fn candidates(snapshot: &Snapshot, stage: &EndStateInput<'_>, command: &Command) -> Vec<Candidate> {
    let nodes = command.candidates.iter();
    let nodes = nodes.filter_map(|it| snapshot.find(&it.node_ref()));
    let found =
        nodes.filter_map(|it| Candidate::of(snapshot, stage.types, it, stage.options.now).ok());
    let mut found: Vec<Candidate> = found.collect();
    found.sort_by(|a, b| a.name().cmp(b.name()));
    found
}

/// What comes, and where pods go that an existing node takes over; `None` where the nodes stay. Pods wait where one of
/// them has no certain place.
fn what_follows(
    snapshot: &Snapshot,
    stage: &EndStateInput<'_>,
    command: &Command,
    removed: &[&Candidate],
) -> Option<Simulated> {
    let (tables, never) = (TableCache::default(), Interrupt::never());
    let world = SimulationInput {
        snapshot,
        pools: stage.pools,
        types: stage.types,
        options: stage.options,
        rank: stage.hooks.rank,
        scheduler: stage.scheduler,
        interrupt: &never,
    };
    let simulate = |simulator: Simulator<'_>| {
        let simulated = simulator.without(removed, Purpose::of(command));
        simulated.unwrap_or_else(|_| Simulated {
            claims: Vec::new(),
            placements: Vec::new(),
        })
    };
    match &command.execution {
        Execution::ReplaceFirst(claims) => Some(Simulated {
            claims: claims.clone(),
            ..simulate(Simulator::new(&world, &tables))
        }),
        Execution::TerminateFirst(_) => {
            let slot = removed.first()?.node.reservation_id();
            let mut simulated = simulate(Simulator::after_termination(&world, slot));
            // A pool with replicas makes up for the node whatever its pods need; provisioning does for others.
            if removed.iter().any(|it| it.node_pool.is_static()) {
                let refills = removed.iter().map(|it| refill(stage, it));
                simulated.claims = refills.collect();
            }
            Some(simulated)
        }
        Execution::Reboot => None,
    }
}

/// The node that a pool with replicas makes once one of its nodes, and what slot that held, is gone.
fn refill(stage: &EndStateInput<'_>, gone: &Candidate) -> NewClaim {
    let pool = PoolTypes {
        node_pool: Arc::clone(&gone.node_pool),
        instance_types: types_of(stage.types, gone.pool()).into(),
        free_addresses: BTreeMap::new(),
    };
    let pool = match gone.node.reservation_id() {
        Some(slot) => pool.with_slot(slot),
        None => pool,
    };
    NewClaim::of_template(&pool.node_pool, &pool.instance_types)
}
