//! How moves of consolidation scored and what became of them, for metrics and events.
//!
//! Tells, never decides. Answers to the observing half of Karpenter's `disruption/balanced.go`.

use std::collections::{BTreeMap, BTreeSet};

use apis::ConsolidationPolicy;
use hooks::disruption::{BalancedScore, VerdictDecision, balanced_scores};

use crate::command::{Command, Proposal};
use crate::round::PolicyRound;
use crate::scene::ShownMove;

/// A move of consolidation that a policy judged.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredMove {
    /// The claims that would go.
    pub claims: BTreeSet<String>,
    /// The pools they belong to, in order of name.
    pub pools: Vec<ScoredPool>,
    /// Whether the move was refused, approved or carried out.
    pub result: MoveResult,
}

/// End of a move that a policy judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveResult {
    /// The policy rejected it or held it back.
    Refused,
    /// The policy approved, and another move went first.
    Approved,
    /// It became a command.
    Chosen,
}

/// A pool that a move takes nodes from.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredPool {
    /// Name of the NodePool.
    pub name: String,
    /// Consolidation policy of the NodePool.
    pub policy: ConsolidationPolicy,
    /// The score, of a Balanced pool.
    pub balanced: Option<BalancedScore>,
}

impl ScoredMove {
    /// The move and what became of it.
    pub(crate) fn of(round: &PolicyRound, proposal: &Proposal<'_>, judged: &ShownMove) -> Self {
        let ShownMove { shown, verdict } = judged;
        let nodes = &round.table.nodes;
        let scores = balanced_scores(&round.table, shown).into_iter();
        let scores: BTreeMap<&str, BalancedScore> =
            scores.map(|it| (nodes.symbol(it.pool), it.score)).collect();
        let removed = || proposal.candidates.iter();
        let pools: BTreeMap<&str, ConsolidationPolicy> = removed()
            .map(|it| {
                let policy = it.node_pool.spec.disruption.consolidation_policy;
                (it.pool(), policy)
            })
            .collect();
        let pools = pools.into_iter().map(|(name, policy)| ScoredPool {
            name: name.to_owned(),
            policy,
            balanced: scores.get(name).copied(),
        });
        Self {
            claims: removed().map(|it| it.claim().to_owned()).collect(),
            pools: pools.collect(),
            result: match verdict.decision {
                VerdictDecision::Approve => MoveResult::Approved,
                VerdictDecision::Reject | VerdictDecision::Hold => MoveResult::Refused,
            },
        }
    }
}

/// Moves that count of all that were judged on the way: every node by itself, and of the sets of nodes the one that
/// became a command, or the largest that was refused where none did. A search asks about many sets and means one.
pub(crate) fn counted(judged: Vec<ScoredMove>, commands: &[Command]) -> Vec<ScoredMove> {
    let chosen: BTreeSet<BTreeSet<&str>> = commands
        .iter()
        .map(|it| it.candidates.iter().map(|it| it.claim.as_str()).collect())
        .collect();
    let mut moves: BTreeMap<BTreeSet<String>, ScoredMove> = BTreeMap::new();
    for mut it in judged {
        let claims: BTreeSet<&str> = it.claims.iter().map(String::as_str).collect();
        if it.result == MoveResult::Approved && chosen.contains(&claims) {
            it.result = MoveResult::Chosen;
        }
        // Asked again about the same nodes, the last answer counts.
        moves.insert(it.claims.clone(), it);
    }
    let (mut counted, sets): (Vec<_>, Vec<_>) =
        moves.into_values().partition(|it| it.claims.len() == 1);
    let (taken, others): (Vec<_>, Vec<_>) = sets
        .into_iter()
        .partition(|it| it.result == MoveResult::Chosen);
    let refused = others
        .into_iter()
        .filter(|it| it.result == MoveResult::Refused);
    let largest = refused.max_by_key(|it| it.claims.len());
    counted.extend(largest.filter(|_| taken.is_empty()));
    counted.extend(taken);
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(claims: &str, result: MoveResult) -> ScoredMove {
        ScoredMove {
            claims: claims.split_whitespace().map(str::to_owned).collect(),
            pools: Vec::new(),
            result,
        }
    }

    #[test]
    fn single_nodes_count_each_and_of_sets_the_largest_refused() {
        use MoveResult::{Approved, Refused};
        let all = ["a b", "a b c", "b", "a", "b"];
        let all = all.map(|it| judged(it, if it == "a" { Approved } else { Refused }));
        let counted = counted(all.into(), &[]);
        let claims = |it: &ScoredMove| it.claims.iter().map(String::as_str).collect::<String>();
        let text: Vec<_> = counted.iter().map(|it| (claims(it), it.result)).collect();
        let expected = [("a", Approved), ("b", Refused), ("abc", Refused)];
        assert_eq!(
            text,
            expected.map(|(claims, text)| (claims.to_owned(), text))
        );
    }
}
