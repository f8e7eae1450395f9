//! Policies that only watch: what they would have said otherwise, for whoever thinks of putting one in charge.
//!
//! Nothing here changes what was decided.

use hooks::disruption::{ConsolidationRound, Move, Verdict, VerdictDecision};

use super::{at_round, chained_key, chained_verdict, is_for_move, rows_for};
use crate::active_policy::ActivePolicy;
use crate::host::HostState;
use crate::records::ShadowDifference;

/// Asks a policy that only watches for its order, and notes of how many nodes it would say otherwise whether they are
/// tried; another node tried first counts as one.
pub(super) fn watch_order(
    host: &HostState,
    round: &ConsolidationRound,
    shadow: &ActivePolicy,
    enforced: &[f64],
    decided: &[Option<f64>],
) {
    let rows = rows_for(shadow, &round.nodes);
    if rows.is_empty() {
        return;
    }
    let called = host.ask_order(shadow, round);
    let difference = called.result.as_ref().ok().map(|answer| {
        let mut keys = enforced.to_vec();
        let mut disagreements = 0;
        for row in rows {
            let (Some(key), Some(&theirs)) = (keys.get_mut(row), answer.get(row)) else {
                continue;
            };
            let earlier = decided.get(row).copied().flatten();
            let theirs = earlier.map_or(theirs, |earlier| chained_key(earlier, theirs));
            disagreements += u32::from((*key < 0.0) != (theirs < 0.0));
            *key = theirs;
        }
        disagreements += u32::from(tried_first(&keys) != tried_first(enforced));
        ShadowDifference {
            disagreements,
            usd_per_hour: 0.0,
        }
    });
    host.note(shadow, at_round(round), &called, difference);
}

/// The node that is tried first: the lowest key that is no skip.
fn tried_first(keys: &[f64]) -> Option<usize> {
    let tried = keys.iter().enumerate().filter(|(_, key)| **key >= 0.0);
    tried
        .min_by(|(_, left), (_, right)| left.total_cmp(right))
        .map(|(row, _)| row)
}

/// Decisions on some moves, for policies that only watch.
pub(super) struct ShadowedMoves<'a> {
    pub(super) host: &'a HostState,
    pub(super) round: &'a ConsolidationRound,
    pub(super) moves: &'a [Move],
    pub(super) verdicts: &'a [Verdict],
    /// Verdicts of policies, where they gave one; the rest is the default's.
    pub(super) decided: &'a [Option<Verdict>],
}

impl ShadowedMoves<'_> {
    /// Asks a policy that only watches and notes how many verdicts it would change.
    pub(super) fn by(&self, shadow: &ActivePolicy) {
        let (round, nodes) = (self.round, &self.round.nodes);
        if !self.moves.iter().any(|it| is_for_move(shadow, nodes, it)) {
            return;
        }
        let called = self.host.ask_judge(shadow, round, self.moves);
        let difference = called.result.as_ref().ok().map(|answers| {
            let mut difference = ShadowDifference::default();
            let decided = self.verdicts.iter().zip(self.decided);
            for ((it, (ours, earlier)), theirs) in self.moves.iter().zip(decided).zip(answers) {
                let theirs = match earlier {
                    Some(earlier) => chained_verdict(earlier.clone(), theirs.clone()).decision,
                    None => theirs.decision,
                };
                if !is_for_move(shadow, nodes, it) || ours.decision == theirs {
                    continue;
                }
                difference.disagreements += 1;
                let savings = it.cost_before - it.cost_after;
                difference.usd_per_hour += match (ours.decision, theirs) {
                    (VerdictDecision::Approve, _) => savings,
                    (VerdictDecision::Reject | VerdictDecision::Hold, VerdictDecision::Approve) => {
                        -savings
                    }
                    (
                        VerdictDecision::Reject | VerdictDecision::Hold,
                        VerdictDecision::Reject | VerdictDecision::Hold,
                    ) => 0.0,
                };
            }
            difference
        });
        self.host.note(shadow, at_round(round), &called, difference);
    }
}
