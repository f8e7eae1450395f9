//! A burst that has just ended: consolidation waits for its last nodes to come to rest.
//!
//! Pods of a workload that is scaled down leave one node after the other, so that nodes come to rest one after the
//! other. A move of those that were first puts pods onto the others, keeps these from rest, and is followed by a second
//! move and a third; one plan for all moves each pod once. Karpenter has no such rule. Empty nodes do not wait.

use apis::GoDuration;
use jiff::SignedDuration;
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::consolidation::eligibility::becomes_consolidatable;
use crate::scan::Scan;

/// Nodes that come to rest later than this are not waited for.
const REST_WITHIN: GoDuration = GoDuration::from_seconds(60);
/// The longest that one wait takes: in a cluster whose pods never rest, consolidation must go on.
const WAIT_MAX: SignedDuration = SignedDuration::from_secs(60);
/// One node that is not at rest among fewer than this many is reason to wait.
const ONE_IN: usize = 4;

/// Whether these nodes at rest wait for others, which is then said of them. Where moves are not put off none does: who
/// asks where the cluster ends up is not told to ask again.
pub(crate) fn wait_for_others<'s>(scan: &mut Scan<'s, '_>, at_rest: &[&'s Candidate]) -> bool {
    let may_wait = scan.scene.input.gates.puts_moves_off && !at_rest.is_empty();
    if !may_wait || !is_unsettled(scan, at_rest.len()) {
        scan.memory.unsettled_since = None;
        return false;
    }
    let now = scan.scene.input.options.now;
    let since = *scan.memory.unsettled_since.get_or_insert(now);
    if now.duration_since(since) >= WAIT_MAX {
        return false;
    }
    for candidate in at_rest {
        scan.note(candidate, OutcomeId::NodeAwaitsOthers.into());
    }
    scan.look_again_soon();
    true
}

/// Whether many of the nodes that consolidation might move have pods that came or left just now. Empty ones count: a
/// scheduler that spreads pods would put onto them what is moved, just before they go.
fn is_unsettled(scan: &Scan<'_, '_>, at_rest: usize) -> bool {
    let scene = scan.scene;
    let candidates = scene.candidates.iter();
    let restless = candidates.filter(|it| becomes_consolidatable(scene, it, REST_WITHIN));
    let restless = restless.count();
    restless * ONE_IN > at_rest + restless
}
