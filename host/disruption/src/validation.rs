//! The second look at a consolidation, some seconds after the first: does it still hold?
//!
//! Pods came or went meanwhile, budgets opened or closed. Pure part only: the shell waits. Answers to
//! Karpenter's `disruption/validation.go`.

use std::collections::BTreeSet;

use apis::{CapacityType, NodeRef};
use jiff::Timestamp;
use scheduling::Interrupt;
use scheduling::solution::NewClaim;
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::{Command, CommandCandidate};
use crate::consolidation::eligibility::{eligibility, eligibility_when_empty};
use crate::input::{DisruptionInput, PolicyHooks};
use crate::method::ValidatedMethod;
use crate::obstacle::Obstacle;
use crate::scene::Scene;
use crate::simulation::{Purpose, Simulator};

/// Most commands that wait at the same time: every loop meanwhile finds places for the pods of all of them.
pub const WAITING_MAX: usize = 8;

/// Why a command did not survive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// A candidate is one no more.
    #[error("churn: {0}")]
    Churn(String),
    /// A budget no longer allows the disruption.
    #[error("budget: {0}")]
    Budget(String),
    /// The pods would no longer fit as decided.
    #[error("scheduling: {0}")]
    Scheduling(String),
}

impl Rejection {
    /// Outcome of the command's nodes.
    pub fn outcome(&self) -> OutcomeId {
        match self {
            Self::Churn(_) => OutcomeId::NodeInvalidatedChurn,
            Self::Budget(_) => OutcomeId::NodeInvalidatedBudget,
            Self::Scheduling(_) => OutcomeId::NodeInvalidatedScheduling,
        }
    }
}

/// View of the cluster for loops while commands wait for their second look: their nodes count as going already, for
/// budgets too, and the nodes that are to take their pods over as expecting them, so that no other command counts on
/// either.
pub fn supposing_begun(
    mut input: DisruptionInput,
    waiting: &[Command],
    expected_until: Timestamp,
) -> DisruptionInput {
    let (mut leaving, mut expecting) = (Vec::new(), Vec::new());
    for command in waiting {
        for node in &command.candidates {
            let reason = command.method.budget_reason();
            input.history.note_start(&node.claim, reason);
            input.queued.insert(node.claim.clone());
            leaving.push(node.node_ref());
        }
        expecting.extend(command.destinations.iter().cloned());
    }
    let now = input.options.now;
    input.snapshot = input
        .snapshot
        .supposing(now, leaving, expecting, expected_until);
    input
}

/// Whether loops may go on while the command waits: what it would bring is not there to be counted with.
pub fn may_be_supposed_begun(command: &Command) -> bool {
    command.replacements().is_empty()
}

/// Result of a second look at a command.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedCommand {
    /// The command with the nodes that still hold, or why none is left of it.
    pub survivor: Result<Command, Rejection>,
    /// Every node that goes no more, with the reason.
    pub dropped: Vec<(CommandCandidate, Rejection)>,
}

/// Checks the command against the cluster as it is now. Emptiness and consolidation that brings no new node go on with
/// the survivors, as far as the pods of those still find places; the others go on with all of their nodes or none.
pub fn validate(
    input: &DisruptionInput,
    hooks: PolicyHooks<'_>,
    interrupt: &Interrupt,
    command: Command,
) -> ValidatedCommand {
    let decided = command.candidates.clone();
    let mut dropped = Vec::new();
    let survivor = check(input, hooks, interrupt, command, &mut dropped);
    // Nodes that dropped out have reasons of their own; what ends the command is that of all others.
    if let Err(rejection) = &survivor {
        let dropped_claims: BTreeSet<String> =
            dropped.iter().map(|(it, _)| it.claim.clone()).collect();
        let others = decided
            .into_iter()
            .filter(|it| !dropped_claims.contains(&it.claim));
        dropped.extend(others.map(|it| (it, rejection.clone())));
    }
    ValidatedCommand { survivor, dropped }
}

fn check(
    input: &DisruptionInput,
    hooks: PolicyHooks<'_>,
    interrupt: &Interrupt,
    mut command: Command,
    dropped: &mut Vec<(CommandCandidate, Rejection)>,
) -> Result<Command, Rejection> {
    let Some(method) = command.method.validated() else {
        return Ok(command);
    };
    let scene = Scene::new(input, hooks, interrupt, &input.memory.targets);
    let kept = survivors(&scene, &command, method, dropped)?;
    if !dropped.is_empty() {
        let claims: BTreeSet<&str> = kept.iter().map(|it| it.claim()).collect();
        command
            .candidates
            .retain(|it| claims.contains(it.claim.as_str()));
        command.before = command.candidates.iter().map(|it| it.cost).sum();
    }
    match method {
        ValidatedMethod::Emptiness => {}
        ValidatedMethod::Consolidation => {
            command.destinations = holds(scene.simulator(), &kept, &command)?;
        }
    }
    Ok(command)
}

/// Where the pods would go now, if the command still holds. One new node may have been found either way, as the
/// only one allowed or as the cheapest set; several only as a set.
fn holds(
    simulator: &Simulator<'_>,
    removed: &[&Candidate],
    command: &Command,
) -> Result<Vec<NodeRef>, Rejection> {
    let under = |purpose| -> Result<Vec<NodeRef>, Rejection> {
        let simulated = simulator.without(removed, purpose);
        let rejection = |it| Rejection::Scheduling(Obstacle::from(it).without_rule());
        let simulated = simulated.map_err(rejection)?;
        same_replacement(command.replacements(), &simulated.claims)?;
        Ok(simulated.destinations())
    };
    let as_decided = under(Purpose::of(command));
    match command.replacements().len() {
        1 => as_decided.or_else(|first| under(Purpose::Repacking).map_err(|_| first)),
        _ => as_decided,
    }
}

fn survivors<'s>(
    scene: &'s Scene<'_>,
    command: &Command,
    method: ValidatedMethod,
    dropped: &mut Vec<(CommandCandidate, Rejection)>,
) -> Result<Vec<&'s Candidate>, Rejection> {
    let (class, reason) = (command.method.class(), command.method.budget_reason());
    let goes_on = goes_on_without_some(method, command);
    let mut left = scene.budgets.remaining.clone();
    let mut kept = Vec::new();
    for wanted in &command.candidates {
        let mut candidates = scene.candidates.iter();
        let candidate = candidates.find(|it| it.claim() == wanted.claim);
        let rejection = match candidate {
            Some(it) if it.block(class).is_none() && is_still_eligible(it, method, scene) => {
                if left.take(&wanted.pool, reason) {
                    kept.push(it);
                    continue;
                }
                Rejection::Budget(format!(
                    "{}: {}",
                    wanted.node,
                    scene.budgets.why(&wanted.pool, reason)
                ))
            }
            Some(_) => Rejection::Churn(format!("{} is no longer eligible", wanted.node)),
            None => Rejection::Churn(why_no_candidate(scene, wanted)),
        };
        if !goes_on {
            return Err(rejection);
        }
        dropped.push((wanted.clone(), rejection));
    }
    match dropped.last() {
        Some((_, rejection)) if kept.is_empty() => Err(rejection.clone()),
        Some(_) | None => Ok(kept),
    }
}

/// What became of a node that is no candidate any more.
fn why_no_candidate(scene: &Scene<'_>, wanted: &CommandCandidate) -> String {
    let mut blocked = scene.blocked.iter();
    match blocked.find(|it| it.claim.as_deref() == Some(&wanted.claim)) {
        Some(blocked) => format!("{}: {}", wanted.node, blocked.obstacle.outcome.meaning()),
        None => format!("{} is gone", wanted.node),
    }
}

/// Whether what is left of a command without some of its nodes is worth as much a node: where nothing comes in their
/// place, a node that stays takes nothing from the others.
fn goes_on_without_some(method: ValidatedMethod, command: &Command) -> bool {
    match method {
        ValidatedMethod::Emptiness => true,
        ValidatedMethod::Consolidation => command.replacements().is_empty(),
    }
}

fn is_still_eligible(candidate: &Candidate, method: ValidatedMethod, scene: &Scene<'_>) -> bool {
    match method {
        ValidatedMethod::Emptiness => {
            candidate.is_empty() && eligibility_when_empty(scene, candidate).is_ok()
        }
        ValidatedMethod::Consolidation => {
            !candidate.is_empty() && eligibility(scene, candidate).is_ok()
        }
    }
}

/// A delete still needs nothing; replacements are still as many, each one that may become all that was decided.
fn same_replacement(decided: &[NewClaim], now: &[NewClaim]) -> Result<(), Rejection> {
    let changed = |text: &str| Err(Rejection::Scheduling(text.to_owned()));
    match (decided, now) {
        ([], []) => return Ok(()),
        ([], _) => return changed("the pods would need a new node now"),
        ([_], []) => return changed("the pods would fit without a new node now"),
        (_, _) if decided.len() != now.len() => {
            return changed("the number of new nodes changed");
        }
        (_, _) => {}
    }
    let options: Vec<BTreeSet<&str>> = now
        .iter()
        .map(|it| it.instance_types.iter().collect())
        .collect();
    let fits = |wanted: &NewClaim| {
        let each = now.iter().zip(&options);
        each.map(|(it, options)| {
            wanted.pool == it.pool && wanted.instance_types.iter().all(|it| options.contains(it))
        })
        .collect()
    };
    let fits: Vec<Vec<bool>> = decided.iter().map(fits).collect();
    match unpaired(&fits) {
        None => Ok(()),
        Some(wanted) => changed(&another(&decided[wanted], now)),
    }
}

/// The first row that is left without a column of its own when as many rows as possible have one; `None` when all do.
///
/// A small claim may become large types too, so who takes the first fit may take the only one of another: rows that
/// have a column move on where that frees it (augmenting paths, as Kuhn's algorithm for bipartite matching does).
fn unpaired(fits: &[Vec<bool>]) -> Option<usize> {
    fn find(
        row: usize,
        fits: &[Vec<bool>],
        seen: &mut [bool],
        taken_by: &mut [Option<usize>],
    ) -> bool {
        for column in 0..taken_by.len() {
            if !fits[row][column] || std::mem::replace(&mut seen[column], true) {
                continue;
            }
            let is_free = match taken_by[column] {
                None => true,
                Some(other) => find(other, fits, seen, taken_by),
            };
            if is_free {
                taken_by[column] = Some(row);
                return true;
            }
        }
        false
    }
    let columns = fits.first().map_or(0, Vec::len);
    let mut taken_by = vec![None; columns];
    (0..fits.len()).find(|row| !find(*row, fits, &mut vec![false; columns], &mut taken_by))
}

/// Both decisions in words: the one that was wanted, and the one that it would be now.
fn another(wanted: &NewClaim, now: &[NewClaim]) -> String {
    let name = |claim: &NewClaim| {
        let best = &claim.best;
        let capacity_type = CapacityType::word(best.capacity_type);
        format!(
            "{} {capacity_type} of nodepool {}",
            best.instance_type, claim.pool
        )
    };
    let now: Vec<String> = now.iter().map(name).collect();
    format!(
        "the replacement would have to be another one now: {} was decided, {} would do now",
        name(wanted),
        now.join(" and "),
    )
}

#[cfg(test)]
mod tests {
    use super::unpaired;

    #[test]
    fn a_claim_gives_way_to_one_that_has_no_other_choice() {
        let cases: [(&[&[u8]], Option<usize>); 5] = [
            (&[], None),
            (&[&[1, 1], &[1, 0]], None),
            (&[&[1, 1, 0], &[1, 0, 1], &[1, 0, 0]], None),
            (&[&[1, 0], &[1, 0]], Some(1)),
            (&[&[1, 1], &[0, 0]], Some(1)),
        ];
        for (rows, expected) in cases {
            let fits: Vec<Vec<bool>> = rows
                .iter()
                .map(|row| row.iter().map(|it| *it == 1).collect())
                .collect();
            assert_eq!(unpaired(&fits), expected, "{rows:?}");
        }
    }
}
