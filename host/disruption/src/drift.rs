//! Drift: a node that no longer matches its definition is replaced, one a command, oldest first.
//!
//! Prices do not matter here and neither does `consolidateAfter`. Answers to Karpenter's
//! `disruption/drift.go`.

use crate::candidate::Candidate;
use crate::command::Command;
use crate::method::Method;
use crate::renewal;
use crate::scan::Scan;

const METHOD: Method = Method::Drift;

/// Whether a candidate is for this method.
fn is_eligible(candidate: &Candidate) -> bool {
    candidate.drifted_at().is_some() && !candidate.node_pool.is_static()
}

/// One drifted node and what replaces it.
pub(crate) fn command(scan: &mut Scan<'_, '_>) -> Option<Command> {
    let drifted = renewal::order(&scan.scene.candidates, is_eligible);
    let open = scan.retain_unblocked(drifted.clone(), METHOD);
    scan.count(METHOD, open.len());
    let open = renewal::retain_pools_without_backoff(scan, open);
    let open = scan.retain_each_within(&open, METHOD);
    let command = renewal::first(scan, &open, METHOD);
    scan.keep_of_drift(&drifted);
    command
}
