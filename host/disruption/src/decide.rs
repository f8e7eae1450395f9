//! One disruption loop: from a snapshot to the commands of at most one method, with one outcome for every
//! node. One command is the rule; static drift has one for each node that it exchanges.
//!
//! The methods are tried in order and the first that finds something ends the loop. Policies order and
//! judge; the native rules come before and after. Answers to Karpenter's `disruption/controller.go`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use scheduling::problem::Options;
use scheduling::ranking::{PolicyUse, RankHook};
use scheduling::{Interrupt, TableCache};
use state::ledger::{DisruptionRound, NodeOutcome, OutcomeId};
use state::provisioning::PoolTypes;
use state::{ConsolidationState, Snapshot};

use crate::appraisal::EffectiveCosts;
use crate::budgets::{self, Budgets, Targets};
use crate::candidate::{Blocked, TypesByPool};
use crate::command::Command;
use crate::consolidation::Gates;
use crate::history::History;
use crate::hooks::{BudgetsHook, Civil, ConsolidationHook, Context};
use crate::method::Method;
use crate::preferred::Preferred;
use crate::repair::{self, RepairPolicies, Repaired};
use crate::scan::Scan;
use crate::scene::Scene;
use crate::scored::ScoredMove;
use crate::{
    drift, emptiness, expiry, multi_node_consolidation, single_node_consolidation, static_drift,
};

/// How long an idle loop waits.
const LOOK_AGAIN_SECONDS: u32 = 10;

/// What a loop looks at.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// Instance types of every pool that has nodes, static and unready ones included.
    pub types: &'a TypesByPool,
    /// Pools that may open nodes.
    pub pools: &'a [PoolTypes],
    /// Claims that a command is about already.
    pub queued: &'a BTreeSet<String>,
    /// Nodes that capacity buffers rely on, by name.
    pub buffer_nodes: &'a BTreeSet<String>,
    /// Finished moves.
    pub history: &'a History,
    /// What the loop before left behind.
    pub memory: &'a Memory,
    /// Options of simulations; `now` is the present moment of the whole loop.
    pub options: &'a Options,
    /// Feature gates.
    pub gates: Gates,
    /// What counts as sick; `None` while repair is switched off.
    pub repair: Option<&'a RepairPolicies>,
    /// What earlier rounds worked out about pools and their types.
    pub tables: &'a TableCache,
}

impl<'a> Input<'a> {
    /// What budgets are worked out of.
    pub fn budget_world(&self, targets: &'a Targets) -> budgets::World<'a> {
        budgets::World {
            snapshot: self.snapshot,
            history: self.history,
            types: self.types,
            targets,
            now: self.options.now,
        }
    }
}

/// The policies.
#[derive(Clone, Copy)]
pub struct Hooks<'a> {
    /// Values offerings in simulations.
    pub rank: &'a dyn RankHook,
    /// Orders and judges.
    pub consolidation: &'a dyn ConsolidationHook,
    /// Allows.
    pub budgets: &'a dyn BudgetsHook,
}

/// What one loop leaves to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// When a method found nothing, so that it need not look again.
    pub nothing_found: BTreeMap<Method, NothingFound>,
    /// What consolidation last said of each claim, repeated while nothing changes.
    pub findings: BTreeMap<String, (OutcomeId, String)>,
    /// Claims that a policy holds back until then.
    pub holds: BTreeMap<String, Timestamp>,
    /// What the ranking policy made of the nodes when it was last asked.
    pub costs: EffectiveCosts,
    /// Who judged: what others held back or found nothing in is looked at again.
    pub judges: String,
    /// Moves that the ranking policy prefers although they cost more, by claim, and since when.
    pub preferred: Preferred,
    /// What nodes of each pool would be made of, and since when.
    pub targets: Targets,
    /// Claims that the last single-node run did not reach: the next one starts with them.
    pub unseen: BTreeSet<String>,
}

/// A look of a method that came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct NothingFound {
    /// How the cluster was.
    pub state: ConsolidationState,
    /// The claims it was about. Any other claim, such as one whose PodDisruptionBudget opened since, is
    /// reason to look again.
    pub claims: BTreeSet<String>,
    /// Those of them that rested: what wakes may be moved in more ways.
    pub resting: BTreeSet<String>,
    /// Those of them that the budgets left room for. As long as they leave room for no other, another look
    /// would find what this one found.
    pub tried: BTreeSet<String>,
}

/// What a loop decided.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// At most one, unless a method may start several.
    pub commands: Vec<Command>,
    /// Exactly one per tracked node.
    pub outcomes: Vec<NodeOutcome>,
    /// Nodes that may not be disrupted, with the text of their event.
    pub blocked: Vec<Blocked>,
    /// Pools, for the event and the metrics of budgets.
    pub budgets: Budgets,
    /// Policies asked.
    pub uses: Vec<PolicyUse>,
    /// For the next loop.
    pub memory: Memory,
    /// When to look again, if nothing is decided.
    pub next_look_seconds: u32,
    /// Moves of consolidation that were judged, for metrics and events.
    pub scored: Vec<ScoredMove>,
    /// Eligible nodes of each method, for the metric.
    pub eligible: BTreeMap<Method, u32>,
    /// The loop was cut off.
    pub is_interrupted: bool,
    /// Identifier of the loop.
    pub decision_id: String,
}

impl Decision {
    /// What repair found of a node stands, whatever other methods said of it.
    fn repaired(&mut self, repaired: Repaired) {
        let Repaired {
            findings,
            blocked,
            eligible,
            command: _,
        } = repaired;
        self.eligible.insert(Method::Repair, eligible);
        for (node, finding) in findings {
            self.blocked.retain(|it| it.name != node);
            let is_other = |it: &&mut NodeOutcome| it.node == node && !it.outcome.is_chosen();
            for it in self.outcomes.iter_mut().filter(is_other) {
                it.outcome = finding.outcome;
                it.reason.clone_from(&finding.reason);
            }
        }
        self.blocked.extend(blocked);
    }

    /// The record of the loop.
    pub fn record(&self, at: Timestamp) -> DisruptionRound {
        DisruptionRound {
            at,
            decision_id: self.decision_id.clone(),
            nodes: self.outcomes.clone(),
            policies: self.uses.clone(),
            commands: u32::try_from(self.commands.len()).unwrap_or(u32::MAX),
            interrupted: self.is_interrupted,
        }
    }
}

/// Runs one loop.
pub fn decide(input: Input<'_>, hooks: Hooks<'_>, interrupt: &Interrupt) -> Decision {
    decide_watched(input, hooks, interrupt, &mut |_| {})
}

/// The same, and says of each method that it is done, so that somebody with a clock can time it.
pub fn decide_watched(
    input: Input<'_>,
    hooks: Hooks<'_>,
    interrupt: &Interrupt,
    done: &mut dyn FnMut(Method),
) -> Decision {
    let now = input.options.now;
    let targets = budgets::targets(input.snapshot, &input.memory.targets, now);
    let scene = Scene::new(input, hooks, interrupt, &targets);
    let mut scan = Scan::new(&scene);
    let (mut repaired, mut exchange) = (Repaired::default(), None);
    let mut commands = Vec::new();
    for method in Method::ORDER {
        match method {
            Method::Repair => match input.repair {
                Some(policies) => repaired = repair::look(&scene, policies),
                None => continue,
            },
            Method::Emptiness => commands.extend(emptiness::command(&mut scan)),
            Method::StaticDrift => commands = static_drift::commands(&mut scan),
            Method::Drift => commands.extend(drift::command(&mut scan)),
            Method::Expiry => commands.extend(expiry::command(&mut scan)),
            Method::MultiNodeConsolidation => {
                let found = multi_node_consolidation::find(&mut scan);
                exchange = found.exchange;
                commands.extend(found.command);
            }
            Method::SingleNodeConsolidation => {
                let exchange = exchange.take();
                commands.extend(single_node_consolidation::command(&mut scan, exchange));
            }
        }
        commands.extend(repaired.command.take());
        done(method);
        if !commands.is_empty() {
            break;
        }
    }
    scan.memory.targets = targets;
    let mut decision = scan.finish(commands);
    decision.repaired(repaired);
    decision
}

pub(crate) fn context(input: &Input<'_>) -> Context {
    let now = input.options.now;
    Context {
        now_seconds: u64::try_from(now.as_second()).unwrap_or_default(),
        civil: vec![Civil::utc(now)],
        cluster: input.options.cluster.clone(),
        decision_id: input.options.decision_id.clone(),
        seed: input.options.seed,
    }
}

pub(crate) const fn look_again_seconds(valid_for_seconds: u32) -> u32 {
    if valid_for_seconds == 0 || valid_for_seconds > LOOK_AGAIN_SECONDS {
        LOOK_AGAIN_SECONDS
    } else {
        valid_for_seconds
    }
}

#[cfg(test)]
mod tests;
