//! Findings of a loop on each candidate: the rule that keeps the node, or the one that chose it.
//!
//! The last word of a method on a node stands, save that what keeps a drifted node is not talked over by
//! consolidation, which looks at it too. Says nothing by itself.

use std::collections::BTreeMap;

use state::ledger::{NodeOutcome, OutcomeId};

use crate::candidate::{Blocked, Candidate};
use crate::command::Command;
use crate::consolidation::eligibility::eligibility;
use crate::node_finding::NodeFinding;
use crate::obstacle::Obstacle;
use crate::scene::Scene;

/// Findings so far, by name of the node.
#[derive(Default)]
pub(crate) struct Findings<'s> {
    last: BTreeMap<&'s str, NodeFinding>,
    of_drift: BTreeMap<&'s str, Obstacle>,
}

/// Finding that stands in the end.
pub(crate) struct LastWord {
    pub(crate) finding: NodeFinding,
    /// Whether it is what keeps a drifted node, of which an event may be due.
    pub(crate) keeps_drifted: bool,
}

impl<'s> Findings<'s> {
    /// Says it of a node.
    pub(crate) fn note(&mut self, candidate: &'s Candidate, finding: NodeFinding) {
        self.last.insert(candidate.name(), finding);
    }

    /// Findings on these drifted nodes outlast those of other methods.
    pub(crate) fn keep_of_drift(&mut self, drifted: &[&'s Candidate]) {
        for candidate in drifted {
            let last = self.last.get(candidate.name());
            if let Some(obstacle) = last.and_then(NodeFinding::obstacle) {
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
    ) -> LastWord {
        let last = self.last.get(candidate.name());
        if let Some(chosen @ NodeFinding::Chosen { .. }) = last {
            return LastWord {
                finding: chosen.clone(),
                keeps_drifted: false,
            };
        }
        let of_drift = self.of_drift.get(candidate.name());
        let obstacle = of_drift
            .or_else(|| last.and_then(NodeFinding::obstacle))
            .cloned();
        let obstacle = obstacle.unwrap_or_else(|| unexamined(candidate, scene, commands));
        LastWord {
            finding: NodeFinding::Kept(obstacle),
            keeps_drifted: of_drift.is_some(),
        }
    }
}

/// Finding on a node that no method came to.
fn unexamined(candidate: &Candidate, scene: &Scene<'_>, commands: &[Command]) -> Obstacle {
    if let Some(block) = &candidate.pod_block {
        return block.clone();
    }
    match eligibility(scene, candidate) {
        Err(obstacle) => obstacle,
        Ok(()) if !commands.is_empty() => {
            Obstacle::new(OutcomeId::NodeOutranked, "another command goes first")
        }
        Ok(()) => OutcomeId::NodeWithoutReason.into(),
    }
}

/// The outcome of a candidate.
pub(crate) fn outcome(candidate: &Candidate, finding: &NodeFinding) -> NodeOutcome {
    NodeOutcome {
        node: candidate.name().to_owned(),
        claim: Some(candidate.claim().to_owned()),
        pool: Some(candidate.pool().to_owned()),
        outcome: finding.outcome(),
        reason: finding.reason().to_owned(),
    }
}

/// The outcome of a node that is no candidate.
pub(crate) fn blocked_outcome(blocked: &Blocked) -> NodeOutcome {
    NodeOutcome {
        node: blocked.name.clone(),
        claim: blocked.claim.clone(),
        pool: blocked.pool.clone(),
        outcome: blocked.obstacle.outcome,
        reason: blocked.obstacle.message.clone(),
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
    let message = format!("{rule}: {}", obstacle.message);
    is_reported.then(|| Blocked::new(&candidate.node, Obstacle::new(obstacle.outcome, message)))
}
