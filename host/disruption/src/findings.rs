//! What a loop says of each candidate: the rule that keeps the node, or the one that chose it.
//!
//! The last word of a method on a node stands, save that what keeps a drifted node is not talked over by
//! consolidation, which looks at it too. Says nothing by itself.

use std::collections::BTreeMap;

use state::ledger::{NodeOutcome, OutcomeId};

use crate::candidate::{Blocked, Candidate};
use crate::command::Command;
use crate::consolidation::eligibility::eligibility;
use crate::obstacle::Obstacle;
use crate::scene::Scene;

/// What was said so far, by name of the node.
#[derive(Default)]
pub(crate) struct Findings<'s> {
    last: BTreeMap<&'s str, Obstacle>,
    of_drift: BTreeMap<&'s str, Obstacle>,
}

/// What stands in the end.
pub(crate) struct NodeFinding {
    pub(crate) obstacle: Obstacle,
    /// What keeps a drifted node, for the event about it.
    pub(crate) keeps_drifted: bool,
    pub(crate) is_chosen: bool,
}

impl<'s> Findings<'s> {
    /// Says it of a node.
    pub(crate) fn note(&mut self, candidate: &'s Candidate, obstacle: Obstacle) {
        self.last.insert(candidate.name(), obstacle);
    }

    /// What was said of these drifted nodes outlasts what other methods say.
    pub(crate) fn keep_of_drift(&mut self, drifted: &[&'s Candidate]) {
        for candidate in drifted {
            if let Some(obstacle) = self.last.get(candidate.name()) {
                self.of_drift.insert(candidate.name(), obstacle.clone());
            }
        }
    }

    /// The last word on a node, where these commands go first.
    pub(crate) fn of(
        &self,
        candidate: &Candidate,
        scene: &Scene<'_>,
        commands: &[Command],
    ) -> NodeFinding {
        let last = self.last.get(candidate.name());
        let is_chosen = last.is_some_and(|it| it.outcome.is_chosen());
        let of_drift = self.of_drift.get(candidate.name());
        let of_drift = of_drift.filter(|_| !is_chosen);
        let obstacle = of_drift.or(last).cloned();
        NodeFinding {
            obstacle: obstacle.unwrap_or_else(|| unexamined(candidate, scene, commands)),
            keeps_drifted: of_drift.is_some(),
            is_chosen,
        }
    }
}

/// What to say of a node that no method came to.
fn unexamined(candidate: &Candidate, scene: &Scene<'_>, commands: &[Command]) -> Obstacle {
    if let Some(block) = &candidate.pod_block {
        return Obstacle::new(block.outcome, block.message.clone());
    }
    match eligibility(scene, candidate) {
        Err(obstacle) => obstacle,
        Ok(()) if !commands.is_empty() => {
            Obstacle::new(OutcomeId::NodeOutranked, "another command goes first")
        }
        Ok(()) => Obstacle::new(OutcomeId::NodeWithoutReason, ""),
    }
}

/// The outcome of a candidate.
pub(crate) fn outcome(candidate: &Candidate, obstacle: Obstacle) -> NodeOutcome {
    NodeOutcome {
        node: candidate.name().to_owned(),
        claim: candidate.claim().to_owned(),
        pool: candidate.pool().to_owned(),
        outcome: obstacle.outcome,
        reason: obstacle.reason,
    }
}

/// The outcome of a node that is no candidate.
pub(crate) fn blocked_outcome(blocked: &Blocked) -> NodeOutcome {
    NodeOutcome {
        node: blocked.name.clone(),
        claim: blocked.claim.clone().unwrap_or_default(),
        pool: blocked.pool.clone(),
        outcome: blocked.outcome,
        reason: blocked.message.clone().unwrap_or_default(),
    }
}

/// What is told as `DisruptionBlocked` of a drifted node that could go but for what should come in its place: its pods
/// find none or one on a node that is not open, or its pool of replicas may have no node more.
pub(crate) fn blocked_drift(candidate: &Candidate, obstacle: &Obstacle) -> Option<Blocked> {
    let is_reported = matches!(
        obstacle.outcome,
        OutcomeId::NodePodsDoNotFit
            | OutcomeId::NodeUninitializedDestination
            | OutcomeId::NodeStaticAtLimit
            | OutcomeId::NodeReservationsFull
    );
    let rule = obstacle.outcome.meaning().trim_end_matches('.');
    let message = format!("{rule}: {}", obstacle.reason);
    is_reported.then(|| Blocked::candidate(candidate, obstacle.outcome, "", &message))
}
