//! Which nodes to give back: the hook, and views of a node and of a proposed move.

use crate::bindings::exports::mortise::policy::consolidation;
use crate::policy::{Context, NEVER, NO_SYM, Policy, PolicyError};
use crate::rank::CapacityType;
use crate::symbols::{at, extra_number, extra_text, label, text, text_at};

pub use consolidation::{Decision, Move, MoveKind, Nodes, Verdict};

/// Judges which nodes to try and which moves are worth it.
pub trait ConsolidationPolicy: Policy {
    /// The order in which to try a node: lower first, negative to skip it. The default is Karpenter's:
    /// what gives back most money per disruption first.
    fn order_key(&self, node: &Node<'_>, _context: &Context) -> f64 {
        node.disruption_per_price()
    }

    /// Whether a simulated move is worth it.
    fn verdict(&self, proposed: &ProposedMove<'_>, context: &Context) -> Verdict;

    /// The whole call before simulation. The default asks [`order_key`](Self::order_key) per node.
    fn order(&self, context: &Context, nodes: &Nodes) -> Result<Vec<f64>, PolicyError> {
        Ok(nodes
            .iter()
            .map(|node| self.order_key(&node, context))
            .collect())
    }

    /// The whole call after simulation. The default asks [`verdict`](Self::verdict) per move.
    fn judge(
        &self,
        context: &Context,
        nodes: &Nodes,
        moves: &[Move],
    ) -> Result<Vec<Verdict>, PolicyError> {
        Ok(moves
            .iter()
            .map(|proposed| self.verdict(&ProposedMove { nodes, proposed }, context))
            .collect())
    }
}

impl Verdict {
    /// Go; among approved moves the highest score goes first.
    pub fn approve(score: f64, reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::Approve,
            score,
            reason: reason.into(),
            retry_after: 0,
        }
    }

    /// Do not.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::Reject,
            score: 0.0,
            reason: reason.into(),
            retry_after: 0,
        }
    }

    /// Not now; ask again after so many seconds.
    pub fn hold(retry_after_seconds: u32, reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::Hold,
            score: 0.0,
            reason: reason.into(),
            retry_after: retry_after_seconds,
        }
    }
}

/// One candidate node.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    table: &'a Nodes,
    row: u32,
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident <- $column:ident),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> &'a str {
            text_at(&self.table.symbols, &self.table.$column, self.row)
        })*
    };
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident <- $column:ident: $type:ty),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> $type { at(&self.table.$column, self.row) })*
    };
}

impl<'a> Node<'a> {
    texts! {
        /// Name of the node.
        name <- name,
        /// Its NodePool.
        node_pool <- nodepool,
        /// Its instance type.
        instance_type <- instance_type,
        /// Its zone.
        zone <- zone,
    }

    numbers! {
        /// USD an hour.
        price <- price: f64,
        /// Seconds since its NodeClaim was created.
        age_seconds <- age: u32,
        /// Pods on it.
        pods <- pods: u32,
        /// Pods that may not be disturbed now.
        blocked_pods <- blocked_pods: u32,
        /// The host's own disruption cost.
        disruption_cost <- disruption_cost: f64,
        /// Allocatable CPU.
        cpu_milli <- cpu_milli: u32,
        /// Requested CPU.
        cpu_requested_milli <- cpu_requested_milli: u32,
        /// Allocatable memory.
        memory_mib <- memory_mib: u32,
        /// Requested memory.
        memory_requested_mib <- memory_requested_mib: u32,
    }

    /// The row's index in the table.
    pub fn row(&self) -> u32 {
        self.row
    }

    /// Symbol of its NodePool: equal for nodes of one pool, and cheaper to compare than the name.
    pub fn node_pool_sym(&self) -> u32 {
        self.table
            .nodepool
            .get(self.row as usize)
            .copied()
            .unwrap_or(NO_SYM)
    }

    /// How it was bought.
    pub fn capacity_type(&self) -> CapacityType {
        match at(&self.table.capacity_type, self.row) {
            1 => CapacityType::Spot,
            2 => CapacityType::Reserved,
            _ => CapacityType::OnDemand,
        }
    }

    /// Seconds until it expires, if it does.
    pub fn seconds_to_expiry(&self) -> Option<u32> {
        self.table
            .time_to_expiry
            .get(self.row as usize)
            .copied()
            .filter(|&seconds| seconds != NEVER)
    }

    /// Disruption for each USD an hour given back: Karpenter's savings ratio, turned so that lower is
    /// better. A node without a price comes last.
    pub fn disruption_per_price(&self) -> f64 {
        if self.price() > 0.0 {
            (self.disruption_cost() / self.price()).max(0.0)
        } else {
            f64::MAX
        }
    }

    /// The `consolidationPolicy` of its NodePool; empty when the host gives none.
    pub fn consolidation_policy(&self) -> &'a str {
        self.extra_text("consolidation-policy").unwrap_or_default()
    }

    /// A number of a column this SDK has no method for.
    pub fn extra_number(&self, column: &str) -> Option<f64> {
        extra_number(&self.table.extra, column, self.row)
    }

    /// A text of a column this SDK has no method for.
    pub fn extra_text(&self, column: &str) -> Option<&'a str> {
        extra_text(&self.table.symbols, &self.table.extra, column, self.row)
    }
}

/// A simulated move together with the table its rows point into.
#[derive(Debug, Clone, Copy)]
pub struct ProposedMove<'a> {
    nodes: &'a Nodes,
    proposed: &'a Move,
}

impl<'a> ProposedMove<'a> {
    /// The move as it came.
    pub fn as_move(&self) -> &'a Move {
        self.proposed
    }

    /// What it is.
    pub fn kind(&self) -> MoveKind {
        self.proposed.kind
    }

    /// The nodes that go.
    pub fn removed(&self) -> impl Iterator<Item = Node<'a>> + use<'a> {
        let table = self.nodes;
        self.proposed
            .remove
            .iter()
            .map(move |&row| Node { table, row })
    }

    /// USD an hour saved; negative when the move costs money.
    pub fn savings(&self) -> f64 {
        self.proposed.cost_before - self.proposed.cost_after
    }

    /// Whether it is made to save money; drift and expiry are not.
    pub fn is_for_savings(&self) -> bool {
        matches!(self.proposed.kind, MoveKind::Delete | MoveKind::Replace)
    }

    /// What Karpenter objects to in a move made to save money, whatever else is wanted of it: a
    /// replacement that is not cheaper, and nodes with pods in a `WhenEmpty` pool.
    pub fn objection(&self) -> Option<&'static str> {
        if !self.is_for_savings() {
            return None;
        }
        if self.proposed.kind == MoveKind::Replace && self.savings() <= 0.0 {
            return Some("the replacement is not cheaper");
        }
        self.removed()
            .any(|node| node.consolidation_policy() == "WhenEmpty")
            .then_some("the pool consolidates only empty nodes")
    }

    /// Karpenter's order of approved moves: savings for each unit of disruption.
    pub fn savings_per_disruption(&self) -> f64 {
        let disruption = self.disruption_cost();
        if disruption > 0.0 {
            self.savings() / disruption
        } else {
            self.savings()
        }
    }

    /// Disruption cost of all nodes that go.
    pub fn disruption_cost(&self) -> f64 {
        self.removed().map(|node| node.disruption_cost()).sum()
    }

    /// Instance type of the replacement, if there is one.
    pub fn replacement_type(&self) -> Option<&'a str> {
        let sym = self.proposed.replacement_type;
        (sym != NO_SYM).then(|| self.nodes.symbol(sym))
    }

    /// A label of the move.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        label(&self.nodes.symbols, &self.proposed.labels, key)
    }
}

impl Nodes {
    /// Number of rows.
    pub fn rows(&self) -> u32 {
        u32::try_from(self.name.len()).unwrap_or(u32::MAX)
    }

    /// The text of a symbol; empty for "none".
    pub fn symbol(&self, sym: u32) -> &str {
        text(&self.symbols, sym)
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.rows()).map(|row| Node { table: self, row })
    }
}
