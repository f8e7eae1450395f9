//! Commands under way: when to go on, when to give up, what to clean.
//!
//! Pure: the shell holds the queue, writes taints and deletes claims. Answers to Karpenter's
//! `disruption/queue.go`.

use std::collections::BTreeSet;

use apis::labels;
use jiff::{SignedDuration, Timestamp};
use state::Snapshot;

use crate::command::Command;

const TIMEOUT_PER_CANDIDATE_MILLIS: i64 = 80;
const TIMEOUT_MIN_SECONDS: i64 = 600;
const TIMEOUT_MAX_SECONDS: i64 = 3_600;

/// A command whose candidates are tainted and whose replacements are created.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningCommand {
    /// The command as it was decided.
    pub command: Command,
    /// Names of the replacement claims, in the order of the command's.
    pub replacements: Vec<String>,
    /// Moment at which the command started; replacements time out from here.
    pub started_at: Timestamp,
    /// Whether the ledger has it that replacements are waited for.
    pub is_wait_told: bool,
}

/// Next step of a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandProgress {
    /// Replacements are not ready: look again in a second.
    Wait {
        /// The claims waited for.
        on: Vec<String>,
    },
    /// Delete the candidates' claims, then drop the command.
    Delete,
    /// Take taints, conditions and marks back, then drop the command.
    GiveUp {
        /// Reason for events and the ledger.
        reason: String,
    },
}

/// How far a command has come. `queued` counts the candidates of all commands.
pub fn progress(
    running: &RunningCommand,
    snapshot: &Snapshot,
    queued: usize,
    now: Timestamp,
) -> CommandProgress {
    let mut waiting = Vec::new();
    for name in &running.replacements {
        if !snapshot.has_claim(name) {
            return CommandProgress::GiveUp {
                reason: format!("replacement {name} is gone"),
            };
        }
        let node = snapshot.node_of_claim(name);
        let claim = node.as_ref().and_then(|it| it.claim());
        if claim.is_some_and(|it| it.deleted_at.is_some()) {
            return CommandProgress::GiveUp {
                reason: format!("replacement {name} is being deleted"),
            };
        }
        // One that came up may be down again while another is waited for.
        let is_ready = node.as_ref().is_some_and(|it| it.is_ready());
        if !is_ready || claim.is_none_or(|it| it.conditions.initialized_at.is_none()) {
            waiting.push(name.clone());
        }
    }
    if waiting.is_empty() {
        return CommandProgress::Delete;
    }
    let elapsed = now.duration_since(running.started_at);
    if elapsed > timeout(queued) {
        let seconds = elapsed.as_secs();
        return CommandProgress::GiveUp {
            reason: format!("replacements were not ready after {seconds} s"),
        };
    }
    CommandProgress::Wait { on: waiting }
}

/// How long replacements may take: longer when many nodes are on the move.
pub fn timeout(queued: usize) -> SignedDuration {
    let millis =
        TIMEOUT_PER_CANDIDATE_MILLIS.saturating_mul(i64::try_from(queued).unwrap_or(i64::MAX));
    SignedDuration::from_secs((millis / 1000).clamp(TIMEOUT_MIN_SECONDS, TIMEOUT_MAX_SECONDS))
}

/// Whether the replacement of a command that was given up serves nothing: it has a node or will, no pod came to it that
/// must run somewhere, and none is planned for it.
pub fn is_unused(snapshot: &Snapshot, replacement: &str, now: Timestamp) -> bool {
    let Some(node) = snapshot.node_of_claim(replacement) else {
        return false;
    };
    let here = node.node_name().map(|it| snapshot.bound_to(it));
    let mut pods = here.into_iter().flat_map(|it| it.pods());
    !node.is_nominated(now) && !pods.any(|pod| pod.is_reschedulable())
}

/// A node that still bears the marks of a command that is no more: the taint, the condition `DisruptionReason` or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleMark {
    /// Name of the Node.
    pub node: String,
    /// Name of the node's claim.
    pub claim: String,
    /// Whether it bears the taint; whoever takes the condition off reads the claim anyway.
    pub is_tainted: bool,
}

/// Marks to remove at the start of every loop: of nodes neither queued nor going.
pub fn stale_marks(snapshot: &Snapshot, queued: &BTreeSet<String>) -> Vec<StaleMark> {
    snapshot
        .nodes()
        .filter(|it| !it.is_marked_for_deletion())
        .filter_map(|it| {
            let (node, claim) = (it.node()?, it.claim()?);
            let is_rebooting = claim.conditions.rebooting_at.is_some();
            if node.deleted_at.is_some() || queued.contains(&claim.name) || is_rebooting {
                return None;
            }
            let is_tainted = node
                .taints
                .iter()
                .any(|it| it.key == labels::DISRUPTED_TAINT_KEY);
            let has_condition = claim.conditions.disruption_reason_at.is_some();
            (is_tainted || has_condition).then(|| StaleMark {
                node: node.name.clone(),
                claim: claim.name.clone(),
                is_tainted,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
