//! Drift: a node that no longer matches its definition is replaced, one a command, oldest first.
//!
//! Prices do not matter here and neither does `consolidateAfter`. Answers to Karpenter's
//! `disruption/drift.go`.

use state::ledger::OutcomeId;

use crate::candidate::{Blocked, Candidate};
use crate::command::Command;
use crate::findings::Obstacle;
use crate::method::Method;
use crate::renewal;
use crate::scan::Scan;

const METHOD: Method = Method::Drift;

/// Whether a candidate is for this method.
pub(crate) fn is_eligible(candidate: &Candidate) -> bool {
    candidate.drifted_at().is_some() && !candidate.node_pool.is_static()
}

/// One drifted node and what replaces it.
pub(crate) fn command(scan: &mut Scan<'_, '_>) -> Option<Command> {
    let drifted = renewal::order(&scan.scene.candidates, is_eligible);
    let open = scan.unblocked(drifted.clone(), METHOD);
    scan.count(METHOD, open.len());
    let open = renewal::of_awake_pools(scan, open);
    let open = scan.each_within(&open, METHOD);
    let command = renewal::first(scan, open, METHOD);
    scan.keep_of_drift(&drifted);
    command
}

/// What is told as `DisruptionBlocked` of a drifted node that could go but for what should come in its place: its pods
/// find none, or its pool of replicas may have no node more.
pub(crate) fn blocked(candidate: &Candidate, obstacle: &Obstacle) -> Option<Blocked> {
    let is_told = matches!(
        obstacle.outcome,
        OutcomeId::NodePodsDoNotFit
            | OutcomeId::NodeStaticAtLimit
            | OutcomeId::NodeReservationsFull
    );
    let rule = obstacle.outcome.meaning().trim_end_matches('.');
    let message = format!("{rule}: {}", obstacle.reason);
    is_told.then(|| Blocked::candidate(candidate, (obstacle.outcome, "", &message)))
}
