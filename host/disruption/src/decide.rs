//! One disruption loop: from a snapshot to the commands of at most one method, with one outcome for every
//! node. One command is the rule; static drift has one for each node that it exchanges.
//!
//! The methods are tried in order and the first that finds something ends the loop. Policies order and
//! judge; the native rules come before and after. Answers to Karpenter's `disruption/controller.go`.

use std::collections::BTreeSet;

use scheduling::Interrupt;
use state::ledger::NodeOutcome;

use crate::budgets;
use crate::candidate::Blocked;
use crate::decision::Decision;
use crate::input::{DisruptionInput, PolicyHooks};
use crate::method::Method;
use crate::multi_node_consolidation::Found;
use crate::repair::{self, Repaired};
use crate::scan::Scan;
use crate::scene::Scene;
use crate::{
    drift, emptiness, expiry, multi_node_consolidation, single_node_consolidation, static_drift,
};

impl Decision {
    /// What repair found of a node stands, whatever other methods said of it.
    fn apply_repair(&mut self, repaired: Repaired) {
        let Repaired {
            findings,
            blocked,
            eligible,
            command: _,
        } = repaired;
        self.eligible.insert(Method::Repair, eligible);
        // A node that goes is not blocked, whatever repair may not do.
        let chosen = self.outcomes.iter().filter(|it| it.outcome.is_chosen());
        let chosen: BTreeSet<String> = chosen.map(|it| it.node.clone()).collect();
        let stays = |it: &Blocked| !chosen.contains(&it.name);
        for (node, finding) in findings {
            self.blocked.retain(|it| it.name != node);
            let is_other = |it: &&mut NodeOutcome| it.node == node && !it.outcome.is_chosen();
            for outcome in self.outcomes.iter_mut().filter(is_other) {
                outcome.outcome = finding.outcome();
                finding.reason().clone_into(&mut outcome.reason);
            }
        }
        self.blocked.extend(blocked.into_iter().filter(stays));
    }
}

/// Runs one loop.
pub fn decide(input: &DisruptionInput, hooks: PolicyHooks<'_>, interrupt: &Interrupt) -> Decision {
    decide_watched(input, hooks, interrupt, &mut |_| {})
}

/// Runs one loop, and says of each method that it is done, so that somebody with a clock can time it.
pub fn decide_watched(
    input: &DisruptionInput,
    hooks: PolicyHooks<'_>,
    interrupt: &Interrupt,
    done: &mut dyn FnMut(Method),
) -> Decision {
    let now = input.options.now;
    let targets = budgets::targets(&input.snapshot, &input.memory.targets, &input.history, now);
    let scene = Scene::new(input, hooks, interrupt, &targets);
    let mut scan = Scan::new(&scene);
    let (mut repaired, mut exchange) = (Repaired::default(), None);
    let mut commands = Vec::new();
    for method in Method::ORDER {
        match method {
            Method::Repair => match &input.repair {
                Some(policies) => {
                    repaired = repair::look(&scene, policies);
                    commands.extend(repaired.command.take());
                }
                None => continue,
            },
            Method::Emptiness => commands.extend(emptiness::command(&mut scan)),
            Method::StaticDrift => commands = static_drift::commands(&mut scan),
            Method::Drift => commands.extend(drift::command(&mut scan)),
            Method::Expiry => commands.extend(expiry::command(&mut scan)),
            Method::MultiNodeConsolidation => match multi_node_consolidation::find(&mut scan) {
                Some(Found::Command(command)) => commands.push(command),
                Some(Found::Exchange(found)) => exchange = Some(found),
                None => {}
            },
            Method::SingleNodeConsolidation => {
                let exchange = exchange.take();
                commands.extend(single_node_consolidation::command(&mut scan, exchange));
            }
        }
        scan.note_done(method);
        done(method);
        if !commands.is_empty() {
            break;
        }
    }
    scan.memory.targets = targets;
    let mut decision = scan.finish(commands);
    decision.apply_repair(repaired);
    decision
}

#[cfg(test)]
mod tests;
