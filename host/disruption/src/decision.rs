//! Everything that a disruption loop decided, and the record of it.
//!
//! Values only: whoever carries them out tells of them.

use std::collections::BTreeMap;
use std::num::NonZero;

use hooks::columns::saturated;
use jiff::Timestamp;
use scheduling::ranking::PolicyUse;
use state::ledger::{DisruptionRound, NodeOutcome};

use crate::budgets::Budgets;
use crate::candidate::Blocked;
use crate::command::Command;
use crate::memory::Memory;
use crate::method::Method;
use crate::scored::ScoredMove;

/// Everything that a loop decided.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// At most one, unless a method may start several.
    pub commands: Vec<Command>,
    /// Exactly one per tracked node.
    pub outcomes: Vec<NodeOutcome>,
    /// Nodes that may not be disrupted, with the text of their event.
    pub blocked: Vec<Blocked>,
    /// Pools, for the event and the metrics of budgets.
    pub budgets: Budgets,
    /// Policies that were asked, and how it went.
    pub uses: Vec<PolicyUse>,
    /// Knowledge that the next loop starts from.
    pub memory: Memory,
    /// When to look again at the latest, as far as budgets change with time or nodes come to rest.
    pub next_look_seconds: Option<NonZero<u32>>,
    /// Moves of consolidation that were judged, for metrics and events.
    pub scored: Vec<ScoredMove>,
    /// Eligible nodes of each method, for the metric.
    pub eligible: BTreeMap<Method, u32>,
    /// The loop was cut off.
    pub is_interrupted: bool,
    /// The first kind of consolidation that was cut short; none where only other methods had run by then.
    pub cut_short: Option<Method>,
    /// Identifier of the loop.
    pub decision_id: String,
}

impl Decision {
    /// The record of the loop.
    pub fn record(&self, at: Timestamp) -> DisruptionRound {
        DisruptionRound {
            at,
            decision_id: self.decision_id.clone(),
            nodes: self.outcomes.clone(),
            policies: self.uses.clone(),
            commands: saturated(self.commands.len()),
            interrupted: self.is_interrupted,
        }
    }
}
