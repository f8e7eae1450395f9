//! What tools ask of a recorded question: its decision, its moment, and what of it is about one NodePool.

use hooks::columns::{at, word};
use hooks::disruption::{Move, NodeTable};

use crate::recording::RecordedQuestion;

impl RecordedQuestion {
    /// Id of the decision.
    pub fn decision_id(&self) -> &str {
        match self {
            Self::Rank { round, .. } => &round.decision_id,
            Self::Order { round } | Self::Judge { round, .. } => &round.context.decision_id,
            Self::Allow { round } => &round.context.decision_id,
        }
    }

    /// Moment of the decision.
    pub fn now_seconds(&self) -> u64 {
        match self {
            Self::Rank { round, .. } => round.now_seconds,
            Self::Order { round } | Self::Judge { round, .. } => round.context.now_seconds,
            Self::Allow { round } => round.context.now_seconds,
        }
    }

    /// Whether it is the other question, put to the next policy of a chain.
    pub fn is_same_round(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rank { round, .. }, Self::Rank { round: theirs, .. }) => round == theirs,
            _ => self == other,
        }
    }

    /// With what is about one NodePool; nothing where nothing is.
    pub fn about(mut self, node_pool: &str) -> Option<Self> {
        let is_left = match &mut self {
            Self::Rank { round, .. } => {
                let symbols = &round.table.symbols;
                round
                    .claims
                    .retain(|it| word(symbols, it.nodepool) == node_pool);
                !round.claims.is_empty()
            }
            // What is said of these may hang on all of them: the table is cut, and not the question.
            Self::Order { round } => pools_of(&round.nodes).any(|it| it == node_pool),
            Self::Judge { round, moves } => moves
                .iter()
                .any(|it| pool_of(&round.nodes, it) == node_pool),
            Self::Allow { round } => round.pools.iter().any(|it| it.name == node_pool),
        };
        is_left.then_some(self)
    }
}

pub(super) fn pools_of(nodes: &NodeTable) -> impl Iterator<Item = &str> {
    nodes.nodepool.iter().map(|it| nodes.symbol(*it))
}

/// NodePool of the first node that goes.
pub(super) fn pool_of<'a>(nodes: &'a NodeTable, proposed: &Move) -> &'a str {
    let first = proposed.remove.first();
    first.map_or("", |row| nodes.symbol(at(&nodes.nodepool, *row)))
}
