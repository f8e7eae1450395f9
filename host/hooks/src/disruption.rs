//! The hooks through which policies judge: the order of candidates and the worth of a move; the budgets are in
//! `budgets.rs`.
//!
//! The inputs mirror `mortise:policy` field for field, so that converting them is copying columns. No hook may fail:
//! whoever implements one falls back to the built-in default inside. No hook can make a cluster unsafe either: fit,
//! PDBs and do-not-disrupt are checked natively after it, and so are declared budgets, unless the binding has the
//! authority to replace them (`mortise.dev/authority: replace`, which the controller must allow). Karpenter has no such
//! seam; the defaults answer to its `disruption/consolidation.go` and `disruption/helpers.go`.

mod budgets;
mod defaults;

use apis::CapacityType;
use serde::{Deserialize, Serialize};

use crate::columns::word;

pub use crate::ranking::{
    ExtraColumn, ExtraValues, NEVER_SECONDS, NO_SYMBOL, Needs, PolicyUse, WorkloadTable,
};
pub use budgets::{
    AllowAnswer, Allowance, BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook,
    DeclaredBudget, PoolActivity,
};
pub use defaults::{
    BalancedScore, DeclaredBudgets, DefaultConsolidation, PoolScore, balanced_scores,
};

/// [`Move::replacement_capacity_type`] where nothing comes.
pub const NO_CAPACITY_TYPE: u8 = CapacityType::NO_CODE;

/// Judges consolidation. The order is asked once a round at most; verdicts whenever a method has moves to show.
/// Emptiness and consolidation show many in one call. Drift and expiry show one: the next is only made once this one
/// was refused, so that no verdict, and no hold above all, comes of a move that nobody was about to make.
pub trait ConsolidationHook: Send + Sync {
    /// The order in which to try nodes, asked before anything is simulated.
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer;
    /// One verdict per simulated move, in the order of `moves`.
    fn judge(&self, round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer;

    /// Facts beside the plain tables that the policies need to be told.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Who judges, by name and digest: another text is another judgement, so that what came to nothing before is
    /// looked at again.
    fn identity(&self) -> String {
        String::new()
    }
}

/// Time, cluster and decision, which every call carries: the WIT record `context`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub now_seconds: u64,
    /// Broken-down civil time, UTC first, then the zones that bindings name.
    pub civil: Vec<Civil>,
    /// Name of the cluster.
    pub cluster: String,
    /// Stable identifier of the decision, for records; not an input to it.
    pub decision_id: String,
    /// Seed derived from the decision's inputs.
    pub seed: u64,
}

/// Civil time in one zone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Civil {
    /// IANA name of the zone.
    pub zone: String,
    /// Year of the proleptic Gregorian calendar.
    pub year: i32,
    /// Month of the year, 1..=12.
    pub month: u8,
    /// Day of the month, 1..=31.
    pub day: u8,
    /// 0 = Monday .. 6 = Sunday.
    pub weekday: u8,
    /// Hour of the day, 0..=23.
    pub hour: u8,
    /// Minute of the hour, 0..=59.
    pub minute: u8,
    /// Offset from UTC in minutes, positive to the east.
    pub utc_offset_minutes: i32,
    /// Configured calendars that contain this moment.
    pub calendars: Vec<String>,
}

impl Civil {
    /// Civil time in UTC. Guests have no zone data, so the host breaks the moment down for them.
    pub fn utc(now: jiff::Timestamp) -> Self {
        Self::of(&now.to_zoned(jiff::tz::TimeZone::UTC), "UTC")
    }

    /// Civil time in a zone of the tz database; `None` for an unknown zone.
    pub fn in_zone(now: jiff::Timestamp, zone: &str) -> Option<Self> {
        now.in_tz(zone).ok().map(|zoned| Self::of(&zoned, zone))
    }

    fn of(zoned: &jiff::Zoned, zone: &str) -> Self {
        let small = |value: i8| u8::try_from(value).unwrap_or_default();
        Self {
            zone: zone.to_owned(),
            year: i32::from(zoned.year()),
            month: small(zoned.month()),
            day: small(zoned.day()),
            weekday: small(zoned.weekday().to_monday_zero_offset()),
            hour: small(zoned.hour()),
            minute: small(zoned.minute()),
            utc_offset_minutes: zoned.offset().seconds() / 60,
            calendars: Vec::new(),
        }
    }
}

/// Input of both methods of [`ConsolidationHook`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsolidationRound {
    /// Time, cluster and decision of the call.
    pub context: Context,
    /// One row per candidate node.
    pub nodes: NodeTable,
    /// The pools of the candidates.
    pub pools: Vec<PoolView>,
    /// Pods of the nodes by owner; empty unless a policy needs them.
    pub workloads: WorkloadTable,
}

/// A NodePool of the candidates, with all its nodes: the WIT record `pool` of the interface `consolidation`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolView {
    /// Name of the NodePool (sym).
    pub name: u32,
    /// Labels of the NodePool object, as pairs of syms.
    pub labels: Vec<(u32, u32)>,
    /// Its nodes, whether candidates or not.
    pub nodes: u32,
    /// List price of all its nodes, USD an hour.
    pub price: f64,
    /// Cost of all its nodes as the ranking policy reckons, effective USD an hour.
    pub effective_price: f64,
    /// Sum of the disruption costs of all its nodes; a plain number, not money.
    pub disruption_cost: f64,
    /// Moves finished in the last hour.
    pub recent_hour: u32,
    /// Moves finished in the last day.
    pub recent_day: u32,
}

/// Columnar table of the candidates: the WIT record `nodes`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTable {
    /// Dictionary of the `sym` columns.
    pub symbols: Vec<String>,
    /// Name of the node (sym).
    pub name: Vec<u32>,
    /// Name of the NodePool (sym).
    pub nodepool: Vec<u32>,
    /// Name of the instance type (sym).
    pub instance_type: Vec<u32>,
    /// Name of the zone (sym).
    pub zone: Vec<u32>,
    /// 0 on-demand, 1 spot, 2 reserved, 255 where nobody knows.
    pub capacity_type: Vec<u8>,
    /// USD an hour, 0 when unknown.
    pub price: Vec<f64>,
    /// Cost of the node as the ranking policy reckons, effective USD an hour.
    pub effective_price: Vec<f64>,
    /// The pool's `consolidationPolicy` (sym).
    pub consolidation_policy: Vec<u32>,
    /// Seconds since the claim was created.
    pub age: Vec<u32>,
    /// Seconds to expiry, [`NEVER_SECONDS`] without one.
    pub time_to_expiry: Vec<u32>,
    /// Seconds since a pod was last bound to it or left it, [`NEVER_SECONDS`] when unknown.
    pub last_pod_event: Vec<u32>,
    /// Why it drifted (sym).
    pub drift_reason: Vec<u32>,
    /// Pods on the node.
    pub pods: Vec<u32>,
    /// Pods that carry do-not-disrupt or are held by a PDB.
    pub blocked_pods: Vec<u32>,
    /// Cost of rescheduling its pods: one plus their positive eviction costs; a plain number, not money.
    pub disruption_cost: Vec<f64>,
    /// Allocatable CPU of the node, milli-CPU.
    pub cpu_milli: Vec<u32>,
    /// CPU that its pods request, milli-CPU.
    pub cpu_requested_milli: Vec<u32>,
    /// Allocatable memory of the node, MiB.
    pub memory_mib: Vec<u32>,
    /// Memory that its pods request, MiB.
    pub memory_requested_mib: Vec<u32>,
    /// Allocatable accelerators of the node, of any kind.
    pub gpus: Vec<u32>,
    /// Accelerators that its pods request.
    pub gpus_requested: Vec<u32>,
    /// Labels of the Node, as pairs of syms; empty unless a policy needs them.
    pub labels: Vec<Vec<(u32, u32)>>,
    /// Columns this version has no field for.
    pub extra: Vec<ExtraColumn>,
}

impl NodeTable {
    /// Number of rows, one per candidate.
    pub fn len(&self) -> usize {
        self.name.len()
    }

    /// Whether the table has no row.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    /// The text of a symbol; empty for [`NO_SYMBOL`] and for indexes outside the dictionary.
    pub fn symbol(&self, sym: u32) -> &str {
        word(&self.symbols, sym)
    }

    /// An extra column by name.
    pub fn extra(&self, name: &str) -> Option<&ExtraValues> {
        self.extra
            .iter()
            .find(|column| column.name == name)
            .map(|column| &column.values)
    }
}

/// Kind of a move: why nodes go, and whether others come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MoveKind {
    /// Remove nodes that hold nothing worth moving.
    Empty,
    /// Remove nodes whose pods fit elsewhere.
    Delete,
    /// Remove nodes and launch cheaper ones.
    Replace,
    /// Replace a node that no longer matches its definition.
    Drift,
    /// Replace a node that no longer matches its definition, in a pool with replicas.
    StaticDrift,
    /// Replace a node some time before the end of its life.
    Expire,
}

/// A proposed, already simulated move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// Why nodes go, and whether others come.
    pub kind: MoveKind,
    /// Rows of the table that go.
    pub remove: Vec<u32>,
    /// USD an hour of what goes.
    pub cost_before: f64,
    /// USD an hour of what comes.
    pub cost_after: f64,
    /// Effective USD an hour of what goes: by this moves are found and compared.
    pub effective_before: f64,
    /// Effective USD an hour of what comes.
    pub effective_after: f64,
    /// Pods that must find another node.
    pub pods_moved: u32,
    /// Those of them whose controller keeps a single replica.
    pub singletons_moved: u32,
    /// Highest priority among them.
    pub max_priority: i32,
    /// Number of nodes to launch; 0 for a deletion.
    pub new_nodes: u32,
    /// Type of the first of them (sym); [`NO_SYMBOL`] without one.
    pub replacement_type: u32,
    /// Its zone (sym); [`NO_SYMBOL`] without one.
    pub replacement_zone: u32,
    /// 0 on-demand, 1 spot, 2 reserved; [`NO_CAPACITY_TYPE`] without one.
    pub replacement_capacity_type: u8,
    /// Labels that all removed nodes have from their pools' templates, as pairs of syms.
    pub labels: Vec<(u32, u32)>,
}

/// Answer of [`ConsolidationHook::order`]: which nodes to try first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderAnswer {
    /// One key per row, lower first; a negative key skips the node.
    pub keys: Vec<f64>,
    /// The policies that took part.
    pub uses: Vec<PolicyUse>,
}

/// Decision of a policy on a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum VerdictDecision {
    /// The move may go ahead.
    Approve,
    /// The move must not happen.
    Reject,
    /// The move must wait for `retry_after_seconds`.
    Hold,
}

/// Verdict on one move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Whether the move goes ahead, is refused or waits.
    pub decision: VerdictDecision,
    /// Among approved moves the highest goes first.
    pub score: f64,
    /// For the record and the event.
    pub reason: String,
    /// For a hold: do not ask again before; an hour at most.
    pub retry_after_seconds: u32,
}

/// Answer of [`ConsolidationHook::judge`]: a verdict on each move.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgeAnswer {
    /// One per move, in order.
    pub verdicts: Vec<Verdict>,
    /// The policies that took part.
    pub uses: Vec<PolicyUse>,
}
