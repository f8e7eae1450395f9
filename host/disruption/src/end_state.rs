//! Where a cluster would end up: commands applied to the model, loop after loop, until a loop finds nothing.
//!
//! Nothing waits here: replacements are ready at once and every pod runs again where the simulation put it. For
//! `mortise simulate` and for tests that judge an end state; Karpenter has no such tool.

mod new_node;
mod report;

pub use report::{DisruptionReport, ReportedCommand, ReportedNode, ReportedOutcome};

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::{NodeClaim, ObjectKey, conditions};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Node, Pod};
use planning::provisioning::PoolTypes;
use scheduling::play::SchedulerProfile;
use scheduling::pod::PodKey;
use scheduling::problem::Options;
use scheduling::{Interrupt, TableCache};
use state::{Cluster, Event, Snapshot};

use crate::candidate::{Candidate, Candidates, TypesByPool, list_price};
use crate::command::Command;
use crate::decide::decide;
use crate::decision::Decision;
use crate::history::History;
use crate::input::{DisruptionInput, Gates, PolicyHooks};
use crate::memory::Memory;
use crate::method::Method;
use crate::repair::policies::RepairPolicies;
use crate::simulation::{Purpose, SimulationInput, Simulator};
use new_node::node;

/// How far the clock moves on between two loops.
const LOOP_SECONDS: i64 = 30;
/// Conditions of a node on which everything is done.
const DONE: [&str; 4] = [
    conditions::LAUNCHED,
    conditions::REGISTERED,
    conditions::INITIALIZED,
    conditions::CONSOLIDATABLE,
];

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
            for node in &command.candidates {
                history.note_end(&node.claim, &node.pool, options.now);
            }
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

/// USD an hour of all managed nodes whose price is known.
pub fn price_per_hour(snapshot: &Snapshot, types: &TypesByPool) -> f64 {
    let nodes = snapshot.nodes().filter(|it| it.is_managed());
    // A sum of nothing is -0.0, which is not how money is written.
    let prices = nodes.filter_map(|it| list_price(types, it));
    prices.fold(0.0, |sum, price| sum + price)
}

/// Applies a command to the model; the names of the claims that come.
fn carry_out(
    cluster: &mut Cluster,
    stage: &EndStateInput<'_>,
    command: &Command,
    serial: &mut u32,
) -> Vec<String> {
    let (snapshot, now) = (cluster.snapshot(), stage.options.now);
    let found = Candidates::find(&snapshot, stage.types, &BTreeSet::new(), now).candidates;
    let goes: BTreeSet<&str> = command
        .candidates
        .iter()
        .map(|it| it.claim.as_str())
        .collect();
    let removed: Vec<&Candidate> = found
        .iter()
        .filter(|it| goes.contains(it.claim()))
        .collect();
    let mut moves = placements(&snapshot, stage, command, &removed);
    let mut events = Vec::new();
    let mut claims = Vec::new();
    for replacement in command.replacements() {
        *serial += 1;
        let name = format!("{}-settled-{serial:05}", replacement.pool);
        if let Some(made) = node(stage, replacement, &name, now) {
            events.extend(made);
            let pods = replacement.pods.iter().cloned();
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

/// Where pods go that an existing node takes over.
fn placements(
    snapshot: &Snapshot,
    stage: &EndStateInput<'_>,
    command: &Command,
    removed: &[&Candidate],
) -> Vec<(PodKey, String)> {
    let (tables, never) = (TableCache::default(), Interrupt::never());
    let world = SimulationInput {
        snapshot,
        pools: stage.pools,
        options: stage.options,
        rank: stage.hooks.rank,
        scheduler: stage.scheduler,
        interrupt: &never,
    };
    let simulator = Simulator::new(&world, &tables);
    let purpose = match command.method {
        Method::Repair | Method::StaticDrift | Method::Drift | Method::Expiry => Purpose::Renewal,
        Method::Emptiness | Method::MultiNodeConsolidation | Method::SingleNodeConsolidation => {
            match command.replacements().len() {
                0 | 1 => Purpose::Consolidation,
                _ => Purpose::Repacking,
            }
        }
    };
    let simulated = simulator.without(removed, purpose);
    let taken = simulated.placements.into_iter();
    taken
        .flat_map(|it| {
            let node = it.node.name().to_owned();
            it.pods.into_iter().map(move |pod| (pod, node.clone()))
        })
        .collect()
}
