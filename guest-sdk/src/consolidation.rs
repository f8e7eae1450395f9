//! Which nodes to give back: the hook, and views of a node, of its NodePool and of a proposed move.

use crate::bindings::exports::mortise::policy::consolidation;
use crate::policy::{Context, NEVER, NO_SYM, Policy, PolicyError};
use crate::rank::CapacityType;
use crate::symbols::{at, extra_number, extra_text, label, text, text_at};
use crate::workloads::{Workload, WorkloadsView};

pub use consolidation::{
    Decision, Move, MoveKind, Nodes, Pool as ConsolidationPool, Verdict, Verdicts,
};

/// Judges which nodes to try and which moves are worth it.
pub trait ConsolidationPolicy: Policy {
    /// The order in which to try a node: lower first, negative to skip it. The default is Karpenter's:
    /// what gives back most money per disruption first.
    fn order_key(&self, node: &Node<'_>, _context: &Context) -> f64 {
        node.disruption_per_price()
    }

    /// Whether a simulated move is worth it.
    fn verdict(&self, proposed: &ProposedMove<'_>, context: &Context) -> Verdict;

    /// What the next call is to be given as `context.memory`, 4 KiB at most; `None` leaves it. Kept of `judge`, where
    /// [`Policy::NEEDS`] names [`Memory`](crate::Need::Memory).
    fn remember(
        &self,
        _call: &ConsolidationCall<'_>,
        _moves: &[Move],
        _verdicts: &[Verdict],
    ) -> Option<Vec<u8>> {
        None
    }

    /// The whole call before simulation. The default asks [`order_key`](Self::order_key) per node.
    fn order(&self, call: &ConsolidationCall<'_>) -> Result<Vec<f64>, PolicyError> {
        Ok(call
            .nodes()
            .map(|node| self.order_key(&node, call.context))
            .collect())
    }

    /// The whole call after simulation. The default asks [`verdict`](Self::verdict) per move.
    fn judge(&self, call: &ConsolidationCall<'_>, moves: &[Move]) -> Result<Verdicts, PolicyError> {
        let verdict = |proposed| self.verdict(&call.proposed(proposed), call.context);
        let items: Vec<Verdict> = moves.iter().map(verdict).collect();
        Ok(Verdicts {
            memory: self.remember(call, moves, &items),
            items,
            extra: Vec::new(),
        })
    }
}

/// Everything that a call is given.
#[derive(Debug, Clone, Copy)]
pub struct ConsolidationCall<'a> {
    /// Clock, cluster, seed, memory.
    pub context: &'a Context,
    /// The candidates.
    pub table: &'a Nodes,
    /// Their NodePools.
    pub pools: &'a [ConsolidationPool],
    /// Their pods by owner; without rows unless the policy needs them.
    pub workloads: WorkloadsView<'a>,
}

impl<'a> ConsolidationCall<'a> {
    /// All candidates.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'a>> + use<'a> {
        let call = *self;
        (0..call.table.rows()).map(move |row| Node { call, row })
    }

    /// A view of one candidate.
    pub fn node(&self, row: u32) -> Node<'a> {
        Node { call: *self, row }
    }

    /// The NodePools of the candidates.
    pub fn pools(&self) -> impl Iterator<Item = PoolView<'a>> + use<'a> {
        let symbols = &self.table.symbols;
        self.pools
            .iter()
            .map(move |pool| PoolView { pool, symbols })
    }

    /// A move together with what its rows point into.
    pub fn proposed(&self, proposed: &'a Move) -> ProposedMove<'a> {
        ProposedMove {
            call: *self,
            proposed,
        }
    }
}

/// A NodePool of the candidates, with all its nodes.
#[derive(Debug, Clone, Copy)]
pub struct PoolView<'a> {
    pool: &'a ConsolidationPool,
    symbols: &'a [String],
}

impl<'a> PoolView<'a> {
    /// The record as it came, for its numbers.
    pub fn as_record(&self) -> &'a ConsolidationPool {
        self.pool
    }

    /// Name of the NodePool.
    pub fn name(&self) -> &'a str {
        text(self.symbols, self.pool.name)
    }

    /// A label of the NodePool object.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        label(self.symbols, &self.pool.labels, key)
    }

    /// Its nodes, whether candidates or not.
    pub fn nodes(&self) -> u32 {
        self.pool.nodes
    }

    /// Effective USD an hour of all its nodes.
    pub fn effective_price(&self) -> f64 {
        self.pool.effective_price
    }

    /// Disruption cost of all its nodes.
    pub fn disruption_cost(&self) -> f64 {
        self.pool.disruption_cost
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
            extra: Vec::new(),
        }
    }

    /// Do not.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::Reject,
            score: 0.0,
            reason: reason.into(),
            retry_after: 0,
            extra: Vec::new(),
        }
    }

    /// Not now; ask again after so many seconds, an hour at most.
    pub fn hold(retry_after_seconds: u32, reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::Hold,
            score: 0.0,
            reason: reason.into(),
            retry_after: retry_after_seconds,
            extra: Vec::new(),
        }
    }
}

/// One candidate node.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    call: ConsolidationCall<'a>,
    row: u32,
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident <- $column:ident),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> &'a str {
            text_at(&self.call.table.symbols, &self.call.table.$column, self.row)
        })*
    };
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident <- $column:ident: $type:ty),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> $type { at(&self.call.table.$column, self.row) })*
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
        /// The `consolidationPolicy` of its NodePool.
        consolidation_policy <- consolidation_policy,
        /// Why it drifted, such as `NodePoolDrifted`; empty when it did not.
        drift_reason <- drift_reason,
    }

    numbers! {
        /// USD an hour; 0 when unknown.
        price <- price: f64,
        /// What the ranking policy says that it costs an hour.
        effective_price <- effective_price: f64,
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
        /// Allocatable accelerators.
        gpus <- gpus: u32,
        /// Requested accelerators.
        gpus_requested <- gpus_requested: u32,
    }

    /// The row's index in the table.
    pub fn row(&self) -> u32 {
        self.row
    }

    /// Symbol of its NodePool: equal for nodes of one pool, and cheaper to compare than the name.
    pub fn node_pool_sym(&self) -> u32 {
        self.call
            .table
            .nodepool
            .get(self.row as usize)
            .copied()
            .unwrap_or(NO_SYM)
    }

    /// How it was bought.
    pub fn capacity_type(&self) -> CapacityType {
        CapacityType::of(at(&self.call.table.capacity_type, self.row))
    }

    /// Its NodePool.
    pub fn pool(&self) -> Option<PoolView<'a>> {
        let name = self.node_pool_sym();
        self.call.pools().find(|it| it.pool.name == name)
    }

    /// Seconds until it expires, if it does.
    pub fn seconds_to_expiry(&self) -> Option<u32> {
        known(&self.call.table.time_to_expiry, self.row)
    }

    /// Seconds since a pod was last bound to it or left it, when known.
    pub fn last_pod_event_seconds(&self) -> Option<u32> {
        known(&self.call.table.last_pod_event, self.row)
    }

    /// A label of the Node. Needs [`NodeLabels`](crate::Need::NodeLabels).
    pub fn label(&self, key: &str) -> Option<&'a str> {
        let own = self.call.table.labels.get(self.row as usize)?;
        label(&self.call.table.symbols, own, key)
    }

    /// Its pods by owner. Needs [`Workloads`](crate::Need::Workloads).
    pub fn workloads(&self) -> impl Iterator<Item = Workload<'a>> + use<'a> {
        self.call.workloads.of(self.row)
    }

    /// Disruption for each effective USD an hour given back: Karpenter's savings ratio, turned so that lower is
    /// better. A node without a price comes last.
    pub fn disruption_per_price(&self) -> f64 {
        let price = self.effective_price();
        if price > 0.0 {
            (self.disruption_cost() / price).max(0.0)
        } else {
            f64::MAX
        }
    }

    /// A number of a column this SDK has no method for.
    pub fn extra_number(&self, column: &str) -> Option<f64> {
        extra_number(&self.call.table.extra, column, self.row)
    }

    /// A text of a column this SDK has no method for.
    pub fn extra_text(&self, column: &str) -> Option<&'a str> {
        extra_text(
            &self.call.table.symbols,
            &self.call.table.extra,
            column,
            self.row,
        )
    }
}

fn known(column: &[u32], row: u32) -> Option<u32> {
    let own = column.get(row as usize).copied();
    own.filter(|&seconds| seconds != NEVER)
}

/// A simulated move together with the table its rows point into.
#[derive(Debug, Clone, Copy)]
pub struct ProposedMove<'a> {
    call: ConsolidationCall<'a>,
    proposed: &'a Move,
}

/// What a move takes of one NodePool.
#[derive(Debug, Clone)]
pub struct PoolPart<'a> {
    /// Its nodes that go.
    pub nodes: Vec<Node<'a>>,
    /// Its part of what the move saves, by its nodes' part of the cost of all that go.
    pub savings: f64,
}

impl PoolPart<'_> {
    /// Disruption cost of its nodes that go.
    pub fn disruption_cost(&self) -> f64 {
        self.nodes.iter().map(Node::disruption_cost).sum()
    }
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
        let call = self.call;
        let rows = self.proposed.remove.iter();
        rows.map(move |&row| Node { call, row })
    }

    /// The nodes that go by NodePool, in the order of the table's symbols: a move over several pools should suit each
    /// of them.
    pub fn by_pool(&self) -> Vec<PoolPart<'a>> {
        let mut pools: Vec<u32> = self.removed().map(|node| node.node_pool_sym()).collect();
        pools.sort_unstable();
        pools.dedup();
        let cost_before = self.proposed.effective_before;
        let part = |pool: u32| {
            let nodes = self.removed().filter(|node| node.node_pool_sym() == pool);
            let nodes: Vec<Node<'a>> = nodes.collect();
            let cost: f64 = nodes.iter().map(Node::effective_price).sum();
            let share = if cost_before > 0.0 {
                cost / cost_before
            } else {
                0.0
            };
            PoolPart {
                nodes,
                savings: self.savings() * share,
            }
        };
        pools.into_iter().map(part).collect()
    }

    /// Effective USD an hour saved, by which moves are found and compared; negative when the move costs money.
    pub fn savings(&self) -> f64 {
        self.proposed.effective_before - self.proposed.effective_after
    }

    /// USD an hour that the bill is lower by.
    pub fn savings_on_the_bill(&self) -> f64 {
        self.proposed.cost_before - self.proposed.cost_after
    }

    /// Whether it is made to save money; drift and expiry are not.
    pub fn is_for_savings(&self) -> bool {
        matches!(self.proposed.kind, MoveKind::Delete | MoveKind::Replace)
    }

    /// What Karpenter objects to in a move, whatever else is wanted of it: a replacement that is not cheaper, nodes
    /// with pods in a `WhenEmpty` pool, and a node that is to be renewed before it expires.
    pub fn objection(&self) -> Option<&'static str> {
        if self.proposed.kind == MoveKind::Expire {
            return Some("it has not expired");
        }
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

    /// Approval as the default gives it: in Karpenter's order, for the reason that the kind of the move has.
    pub fn approve_as_default(&self) -> Verdict {
        let reason = if self.is_for_savings() {
            "saves cost"
        } else {
            "not a matter of savings"
        };
        Verdict::approve(self.savings_per_disruption(), reason)
    }

    /// Disruption cost of all nodes that go.
    pub fn disruption_cost(&self) -> f64 {
        self.removed().map(|node| node.disruption_cost()).sum()
    }

    /// Instance type of the first node that comes, if there is one.
    pub fn replacement_type(&self) -> Option<&'a str> {
        self.word(self.proposed.replacement_type)
    }

    /// Its zone.
    pub fn replacement_zone(&self) -> Option<&'a str> {
        self.word(self.proposed.replacement_zone)
    }

    /// How it would be bought.
    pub fn replacement_capacity_type(&self) -> Option<CapacityType> {
        let code = self.proposed.replacement_capacity_type;
        (code != u8::MAX).then(|| CapacityType::of(code))
    }

    /// A label that all removed nodes have from their NodePools' templates.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        label(&self.call.table.symbols, &self.proposed.labels, key)
    }

    fn word(&self, sym: u32) -> Option<&'a str> {
        (sym != NO_SYM).then(|| self.call.table.symbol(sym))
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
}
