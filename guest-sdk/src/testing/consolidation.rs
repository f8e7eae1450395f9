//! Rows of the tables that consolidation policies are given.

use super::{Labels, Words, WorkloadRow, workloads};
use crate::consolidation::{ConsolidationCall, ConsolidationPool, Move, MoveKind, Nodes};
use crate::policy::{Context, NEVER};
use crate::workloads::{Workloads, WorkloadsView};

/// A call as rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConsolidationQuestion<'a> {
    /// The candidates.
    pub nodes: &'a [NodeRow<'a>],
    /// Their NodePools; where one has no row, its candidates are all its nodes.
    pub pools: &'a [PoolRow<'a>],
    /// Their pods by owner.
    pub workloads: &'a [WorkloadRow<'a>],
    /// Proposed moves.
    pub moves: &'a [MoveRow<'a>],
}

/// The tables of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsolidationTables {
    /// The candidates.
    pub nodes: Nodes,
    /// Their NodePools.
    pub pools: Vec<ConsolidationPool>,
    /// Their pods by owner.
    pub workloads: Workloads,
    /// Proposed moves.
    pub moves: Vec<Move>,
}

impl ConsolidationTables {
    /// Rows as columns.
    pub fn of(question: &ConsolidationQuestion<'_>) -> Self {
        let ConsolidationQuestion {
            nodes: rows,
            pools,
            workloads: pods,
            moves,
        } = *question;
        let mut words = Words::default();
        let mut table = nodes(rows, &mut words);
        let mut views: Vec<ConsolidationPool> =
            pools.iter().map(|it| it.record(&mut words)).collect();
        for row in rows {
            let name = words.intern(row.node_pool);
            if views.iter().all(|it| it.name != name) {
                views.push(PoolRow::of(rows, row.node_pool).record(&mut words));
            }
        }
        let workloads = workloads(pods, &mut words);
        let moves = moves.iter().map(|it| it.record(&mut words)).collect();
        table.symbols = words.0;
        Self {
            nodes: table,
            pools: views,
            workloads,
            moves,
        }
    }

    /// The call.
    pub fn call<'a>(&'a self, context: &'a Context) -> ConsolidationCall<'a> {
        ConsolidationCall {
            context,
            table: &self.nodes,
            pools: &self.pools,
            workloads: WorkloadsView {
                table: &self.workloads,
                symbols: &self.nodes.symbols,
            },
        }
    }
}

/// One node, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct NodeRow<'a> {
    /// Name of the node.
    pub name: &'a str,
    /// Its NodePool.
    pub node_pool: &'a str,
    /// Its instance type.
    pub instance_type: &'a str,
    /// Its zone.
    pub zone: &'a str,
    /// 0 on-demand, 1 spot, 2 reserved.
    pub capacity_type: u8,
    /// USD an hour.
    pub price: f64,
    /// What the ranking policy says that it costs; the price where it says nothing.
    pub effective_price: Option<f64>,
    /// The pool's `consolidationPolicy`.
    pub consolidation_policy: &'a str,
    /// Seconds since its claim was created.
    pub age: u32,
    /// Seconds to its expiry.
    pub time_to_expiry: u32,
    /// Seconds since a pod was last bound to it or left it.
    pub last_pod_event: u32,
    /// Why it drifted.
    pub drift_reason: &'a str,
    /// Pods on it.
    pub pods: u32,
    /// Pods that may not be disturbed.
    pub blocked_pods: u32,
    /// Disruption cost.
    pub disruption_cost: f64,
    /// Allocatable CPU.
    pub cpu_milli: u32,
    /// Requested CPU.
    pub cpu_requested_milli: u32,
    /// Allocatable memory.
    pub memory_mib: u32,
    /// Requested memory.
    pub memory_requested_mib: u32,
    /// Allocatable accelerators.
    pub gpus: u32,
    /// Requested accelerators.
    pub gpus_requested: u32,
    /// Labels of the Node.
    pub labels: Labels<'a>,
}

impl Default for NodeRow<'_> {
    fn default() -> Self {
        Self {
            name: "node-1",
            node_pool: "default",
            instance_type: "m7i.xlarge",
            zone: "us-east-1a",
            capacity_type: 0,
            price: 1.0,
            effective_price: None,
            consolidation_policy: "WhenEmptyOrUnderutilized",
            age: 3600,
            time_to_expiry: NEVER,
            last_pod_event: NEVER,
            drift_reason: "",
            pods: 4,
            blocked_pods: 0,
            disruption_cost: 5.0,
            cpu_milli: 4000,
            cpu_requested_milli: 1000,
            memory_mib: 16384,
            memory_requested_mib: 4096,
            gpus: 0,
            gpus_requested: 0,
            labels: &[],
        }
    }
}

fn effective_price(row: &NodeRow<'_>) -> f64 {
    row.effective_price.unwrap_or(row.price)
}

fn nodes(rows: &[NodeRow<'_>], words: &mut Words) -> Nodes {
    let mut syms = |text: fn(&NodeRow<'_>) -> String| -> Vec<u32> {
        rows.iter().map(|row| words.intern(&text(row))).collect()
    };
    let name = syms(|row| row.name.to_owned());
    let nodepool = syms(|row| row.node_pool.to_owned());
    let instance_type = syms(|row| row.instance_type.to_owned());
    let zone = syms(|row| row.zone.to_owned());
    let consolidation_policy = syms(|row| row.consolidation_policy.to_owned());
    let drift_reason = syms(|row| row.drift_reason.to_owned());
    let counts = |of: fn(&NodeRow<'_>) -> u32| rows.iter().map(of).collect();
    let floats = |of: fn(&NodeRow<'_>) -> f64| rows.iter().map(of).collect();
    Nodes {
        symbols: Vec::new(),
        name,
        nodepool,
        instance_type,
        zone,
        capacity_type: rows.iter().map(|row| row.capacity_type).collect(),
        price: floats(|row| row.price),
        effective_price: floats(effective_price),
        consolidation_policy,
        age: counts(|row| row.age),
        time_to_expiry: counts(|row| row.time_to_expiry),
        last_pod_event: counts(|row| row.last_pod_event),
        drift_reason,
        pods: counts(|row| row.pods),
        blocked_pods: counts(|row| row.blocked_pods),
        disruption_cost: floats(|row| row.disruption_cost),
        cpu_milli: counts(|row| row.cpu_milli),
        cpu_requested_milli: counts(|row| row.cpu_requested_milli),
        memory_mib: counts(|row| row.memory_mib),
        memory_requested_mib: counts(|row| row.memory_requested_mib),
        gpus: counts(|row| row.gpus),
        gpus_requested: counts(|row| row.gpus_requested),
        labels: rows.iter().map(|row| words.pairs(row.labels)).collect(),
        extra: Vec::new(),
    }
}

/// A NodePool with all its nodes, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct PoolRow<'a> {
    /// Name.
    pub name: &'a str,
    /// Labels of the NodePool object.
    pub labels: Labels<'a>,
    /// Its nodes.
    pub nodes: u32,
    /// USD an hour of all of them.
    pub price: f64,
    /// Effective USD an hour of all of them.
    pub effective_price: f64,
    /// Their disruption cost.
    pub disruption_cost: f64,
    /// Moves finished in the last hour.
    pub recent_hour: u32,
    /// Moves finished in the last day.
    pub recent_day: u32,
}

impl Default for PoolRow<'_> {
    /// Ten nodes as rows have them.
    fn default() -> Self {
        Self {
            name: "default",
            labels: &[],
            nodes: 10,
            price: 10.0,
            effective_price: 10.0,
            disruption_cost: 50.0,
            recent_hour: 0,
            recent_day: 0,
        }
    }
}

impl<'a> PoolRow<'a> {
    /// A NodePool that has these nodes alone.
    fn of(rows: &[NodeRow<'_>], name: &'a str) -> Self {
        let own = || rows.iter().filter(|row| row.node_pool == name);
        Self {
            name,
            nodes: u32::try_from(own().count()).unwrap_or(u32::MAX),
            price: own().map(|row| row.price).sum(),
            effective_price: own().map(effective_price).sum(),
            disruption_cost: own().map(|row| row.disruption_cost).sum(),
            ..Self::default()
        }
    }

    fn record(&self, words: &mut Words) -> ConsolidationPool {
        let Self {
            name,
            labels,
            nodes,
            price,
            effective_price,
            disruption_cost,
            recent_hour,
            recent_day,
        } = *self;
        ConsolidationPool {
            name: words.intern(name),
            labels: words.pairs(labels),
            nodes,
            price,
            effective_price,
            disruption_cost,
            recent_hour,
            recent_day,
            extra: Vec::new(),
        }
    }
}

/// A move, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct MoveRow<'a> {
    /// What it is.
    pub kind: MoveKind,
    /// Rows that go.
    pub remove: &'a [u32],
    /// USD an hour of what goes.
    pub cost_before: f64,
    /// USD an hour of what comes.
    pub cost_after: f64,
    /// Effective cost of what goes; the price where the ranking policy says nothing.
    pub effective_before: Option<f64>,
    /// Effective cost of what comes.
    pub effective_after: Option<f64>,
    /// Pods that must find another node.
    pub pods_moved: u32,
    /// Those of single-replica controllers.
    pub singletons_moved: u32,
    /// Highest priority among them.
    pub max_priority: i32,
    /// Nodes to launch.
    pub new_nodes: u32,
    /// Type of the first of them; empty without one.
    pub replacement_type: &'a str,
    /// Its zone; empty without one.
    pub replacement_zone: &'a str,
    /// 0 on-demand, 1 spot, 2 reserved; none without one.
    pub replacement_capacity_type: Option<u8>,
    /// Labels of what goes.
    pub labels: Labels<'a>,
}

/// A move of the given rows, of four pods; with something to pay afterwards it brings a node.
pub fn proposed(kind: MoveKind, remove: &[u32], cost_before: f64, cost_after: f64) -> MoveRow<'_> {
    MoveRow {
        kind,
        remove,
        cost_before,
        cost_after,
        effective_before: None,
        effective_after: None,
        pods_moved: 4,
        singletons_moved: 0,
        max_priority: 0,
        new_nodes: u32::from(cost_after > 0.0),
        replacement_type: "",
        replacement_zone: "",
        replacement_capacity_type: None,
        labels: &[],
    }
}

impl MoveRow<'_> {
    fn record(&self, words: &mut Words) -> Move {
        let Self {
            kind,
            remove,
            cost_before,
            cost_after,
            effective_before,
            effective_after,
            pods_moved,
            singletons_moved,
            max_priority,
            new_nodes,
            replacement_type,
            replacement_zone,
            replacement_capacity_type,
            labels,
        } = *self;
        Move {
            kind,
            remove: remove.to_vec(),
            cost_before,
            cost_after,
            effective_before: effective_before.unwrap_or(cost_before),
            effective_after: effective_after.unwrap_or(cost_after),
            pods_moved,
            singletons_moved,
            max_priority,
            new_nodes,
            replacement_type: words.intern(replacement_type),
            replacement_zone: words.intern(replacement_zone),
            replacement_capacity_type: replacement_capacity_type.unwrap_or(u8::MAX),
            labels: words.pairs(labels),
            extra: Vec::new(),
        }
    }
}
