//! Expiry: a node is replaced some time before it expires, one a command, where a policy asks for that.
//!
//! Prices do not matter here and neither does `consolidateAfter`; the policy decides how early. Karpenter waits until
//! the node has expired (`nodeclaim/expiration`), when nothing comes in its place first.

use jiff::Timestamp;

use crate::candidate::Candidate;
use crate::command::Command;
use crate::method::Method;
use crate::renewal;
use crate::scan::Scan;

const METHOD: Method = Method::Expiry;
/// Nodes that a loop proposes to renew, the next to expire first.
const NODES_AT_ONCE: usize = 5;

/// One node and what replaces it.
pub(crate) fn command(scan: &mut Scan<'_, '_>) -> Option<Command> {
    if !scan.scene.hooks.consolidation.needs().expire {
        return None;
    }
    let expiring = next_to_expire(&scan.scene.candidates);
    let open = scan.retain_unblocked(expiring, METHOD);
    scan.count(METHOD, open.len());
    let open = renewal::retain_pools_without_backoff(scan, open);
    let mut open = scan.retain_each_within(&open, METHOD);
    open.retain(|it| !scan.note_if_held(it));
    open.truncate(NODES_AT_ONCE);
    renewal::first(scan, &open, METHOD)
}

fn next_to_expire(candidates: &[Candidate]) -> Vec<&Candidate> {
    let of_others = |it: &&Candidate| !it.node_pool.is_static() && it.drifted_at().is_none();
    let mut expiring: Vec<(Timestamp, &Candidate)> = candidates
        .iter()
        .filter(of_others)
        .filter_map(|it| Some((it.expires_at()?, it)))
        .collect();
    // Stable: candidates are in order of name.
    expiring.sort_by_key(|it| it.0);
    expiring.into_iter().map(|(_, it)| it).collect()
}
