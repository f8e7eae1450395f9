//! A disruption loop, or a settled cluster, as `mortise simulate --disruption` tells it.
//!
//! Only converts; times and memory are the caller's to add.

use std::collections::{BTreeMap, BTreeSet};

use apis::CapacityType;
use serde::Serialize;
use state::ledger::{NodeOutcome, OutcomeId};

use crate::command::Command;
use crate::decision::Decision;

/// Result of one loop, or of all loops until nothing was left to do.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionReport {
    /// Number of nodes before the first loop.
    pub nodes: usize,
    /// USD an hour before.
    pub price_per_hour_before: f64,
    /// USD an hour after.
    pub price_per_hour_after: f64,
    /// Commands that would be carried out, in order.
    pub commands: Vec<ReportedCommand>,
    /// Last word on each node: of those that went, why; of those that came on the way too.
    pub outcomes: BTreeMap<String, ReportedOutcome>,
    /// Policies that took part in any loop, as `kind/name@digest`, each once, in this order.
    pub policies: Vec<String>,
    /// Loops it took, where they were repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loops: Option<usize>,
}

/// A command that would be carried out.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedCommand {
    /// Unhealthy, Empty, Drifted or Underutilized.
    pub reason: String,
    /// Kind of command, such as `delete` or `replace`.
    pub decision: String,
    /// Names of the nodes that go.
    pub remove: Vec<String>,
    /// Nodes that come.
    pub replace: Vec<ReportedNode>,
    /// USD an hour, by list prices.
    pub savings_per_hour: f64,
    /// USD an hour, as the ranking policy reckons.
    pub effective_savings_per_hour: f64,
    /// Pods that find another node.
    pub pods_moved: u32,
    /// Score that the policy gave the move.
    pub score: f64,
}

/// A node that comes, as its best offering.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedNode {
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    /// List price, USD an hour.
    pub price_per_hour: f64,
    /// USD an hour, as the ranking policy reckons.
    pub effective_cost_per_hour: f64,
}

/// Last outcome of a node.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedOutcome {
    /// Stable name; `host/state/OUTCOMES.md` has the table.
    pub id: OutcomeId,
    /// What the outcome means, in words.
    pub message: String,
    /// Smallest change that would have flipped the outcome, where something nearly happened.
    pub nearest_miss: Option<String>,
}

impl DisruptionReport {
    /// The report of some loops.
    pub fn of(
        loops: &[Decision],
        price_per_hour_before: f64,
        price_per_hour_after: f64,
        is_repeated: bool,
    ) -> Self {
        let first = loops.first();
        // Later loops overwrite what earlier ones said.
        let outcomes = loops.iter().flat_map(|it| &it.outcomes);
        // A policy may be bound, or begin to answer, after the first loop.
        let uses = loops.iter().flat_map(|it| &it.uses);
        let policies: BTreeSet<String> = uses
            .map(|it| format!("{}/{}@{}", it.kind, it.name, it.digest))
            .collect();
        Self {
            nodes: first.map_or(0, |it| it.outcomes.len()),
            price_per_hour_before,
            price_per_hour_after,
            commands: loops
                .iter()
                .flat_map(|it| &it.commands)
                .map(ReportedCommand::of)
                .collect(),
            outcomes: outcomes
                .map(|it| (it.node.clone(), ReportedOutcome::of(it)))
                .collect(),
            policies: policies.into_iter().collect(),
            loops: is_repeated.then_some(loops.len()),
        }
    }
}

impl ReportedCommand {
    fn of(command: &Command) -> Self {
        let comes = command.replacements().iter().map(|it| &it.best);
        Self {
            reason: command.reason().to_string(),
            decision: command.decision().to_owned(),
            remove: command
                .candidates
                .iter()
                .map(|it| it.node.clone())
                .collect(),
            replace: comes
                .map(|best| ReportedNode {
                    instance_type: best.instance_type.clone(),
                    zone: best.zone.clone().unwrap_or_default(),
                    capacity_type: CapacityType::word(best.capacity_type).to_owned(),
                    price_per_hour: best.price_per_hour,
                    effective_cost_per_hour: best.effective_cost_per_hour,
                })
                .collect(),
            savings_per_hour: command.before.price_per_hour - command.after.price_per_hour,
            effective_savings_per_hour: command.before.effective_per_hour
                - command.after.effective_per_hour,
            pods_moved: command.candidates.iter().map(|it| it.pods).sum(),
            score: command.score,
        }
    }
}

impl ReportedOutcome {
    fn of(node: &NodeOutcome) -> Self {
        let was_near = node.outcome.is_near_miss() && !node.reason.is_empty();
        Self {
            id: node.outcome,
            message: node.outcome.meaning().to_owned(),
            nearest_miss: was_near.then(|| node.reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use hooks::policy_use::{PolicyKind, PolicyUse, UseOutcome};

    use super::*;

    #[test]
    fn policies_of_every_loop_are_told_once() {
        let asked = |name: &str| PolicyUse {
            kind: PolicyKind::Consolidation,
            name: name.to_owned(),
            digest: "d".to_owned(),
            outcome: UseOutcome::Ok,
        };
        let of = |names: &[&str]| Decision {
            uses: names.iter().map(|name| asked(name)).collect(),
            ..Decision::default()
        };
        let loops = [of(&["b"]), of(&["b", "a"]), of(&[])];
        let report = DisruptionReport::of(&loops, 1.0, 1.0, true);
        assert_eq!(report.policies, ["consolidation/a@d", "consolidation/b@d"]);
    }
}
