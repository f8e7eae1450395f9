//! A native harness: a policy's unit tests build small tables, ask the hook, and read the answer.
//!
//! Nothing here ends up in a component, since nothing there calls it.

use crate::budgets::{Allowances, BudgetPolicy, DeclaredBudget, Pool, Reasons};
use crate::config::Settings;
use crate::consolidation::{ConsolidationPolicy, Move, MoveKind, Nodes, Verdict};
use crate::policy::{
    Civil, Column, ConfigIssue, Context, ExtraColumn, NEVER, NO_SYM, Policy, PolicyError,
};
use crate::rank::{Claim, Offerings, PodsSummary, RankPolicy, Ranking};

/// A configured policy under test.
#[derive(Debug)]
pub struct Harness<P> {
    /// The policy itself.
    pub policy: P,
    /// What it warned of while it was configured.
    pub warnings: Vec<ConfigIssue>,
    /// The context of every call; tests may change it.
    pub context: Context,
}

impl<P: Policy> Harness<P> {
    /// Configures the policy as the host would.
    pub fn new(config: &str) -> Result<Self, Vec<ConfigIssue>> {
        let (policy, warnings) = Settings::read(config)?;
        Ok(Self {
            policy,
            warnings,
            context: context(),
        })
    }
}

impl<P: RankPolicy> Harness<P> {
    /// The ranking of all rows for one claim without requirements.
    pub fn rank(&self, rows: &[OfferingRow<'_>]) -> Ranking {
        let table = offerings(rows);
        self.policy
            .rank(&self.context, &table, &[claim()])
            .ok()
            .and_then(|mut rankings| rankings.pop())
            .unwrap_or_else(|| panic!("{} refused the table", P::NAME))
    }

    /// The scores of all rows.
    pub fn scores(&self, rows: &[OfferingRow<'_>]) -> Vec<f64> {
        self.rank(rows).scores
    }

    /// Instance type of the row with the lowest score among those not excluded; ties go to the earlier.
    pub fn cheapest<'a>(&self, rows: &[OfferingRow<'a>]) -> &'a str {
        let ranking = self.rank(rows);
        (0_u32..)
            .zip(rows.iter().zip(&ranking.scores))
            .filter(|(position, _)| !ranking.excluded.contains(position))
            .min_by(|(_, (_, left)), (_, (_, right))| left.total_cmp(right))
            .map_or("", |(_, (row, _))| row.instance_type)
    }
}

impl<P: ConsolidationPolicy> Harness<P> {
    /// The order keys of the nodes.
    pub fn order(&self, rows: &[NodeRow<'_>]) -> Result<Vec<f64>, PolicyError> {
        self.policy.order(&self.context, &nodes(rows))
    }

    /// The verdict on one move.
    pub fn judge(&self, rows: &[NodeRow<'_>], proposed: Move) -> Verdict {
        self.policy
            .judge(&self.context, &nodes(rows), &[proposed])
            .ok()
            .and_then(|mut verdicts| verdicts.pop())
            .unwrap_or_else(|| panic!("{} refused the move", P::NAME))
    }
}

impl<P: BudgetPolicy> Harness<P> {
    /// The allowances of the pools.
    pub fn allow(&self, pools: &[Pool]) -> Result<Allowances, PolicyError> {
        self.policy.allow(&self.context, pools)
    }
}

/// Noon UTC of Monday 2026-01-05.
pub fn context() -> Context {
    Context {
        now: 1_767_614_400,
        civil: vec![Civil {
            zone: "UTC".to_owned(),
            year: 2026,
            month: 1,
            day: 5,
            weekday: 0,
            hour: 12,
            minute: 0,
            utc_offset_minutes: 0,
            calendars: Vec::new(),
        }],
        cluster: "test".to_owned(),
        decision_id: "test-1".to_owned(),
        seed: 1,
    }
}

/// A claim without requirements that may become any row.
pub fn claim() -> Claim {
    Claim {
        nodepool: 0,
        weight: 1,
        candidates: Vec::new(),
        requirements: Vec::new(),
        pods: PodsSummary {
            count: 1,
            cpu_milli: 100,
            memory_mib: 128,
            gpus: 0,
            max_priority: 0,
            do_not_disrupt: 0,
            replicated: 0,
            expected_runtime: 0,
        },
        labels: Vec::new(),
    }
}

/// One offering, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct OfferingRow<'a> {
    /// Its family is what stands before the dot.
    pub instance_type: &'a str,
    /// Availability zone.
    pub zone: &'a str,
    /// `amd64` or `arm64`.
    pub arch: &'a str,
    /// 0 on-demand, 1 spot, 2 reserved.
    pub capacity_type: u8,
    /// USD an hour; also what the chain starts from.
    pub price: f64,
    /// USD an hour on demand; 0 when unknown.
    pub on_demand_price: f64,
    /// CPU of the type.
    pub cpu_milli: u32,
    /// Memory of the type.
    pub memory_mib: u32,
    /// Accelerators of the type.
    pub gpus: u32,
    /// Insufficient-capacity answers.
    pub ice_count: u32,
    /// Seconds since the latest one.
    pub ice_age: u32,
    /// Interruptions per node and 30 days; negative when unknown.
    pub interruption_rate: f64,
    /// Nodes now running on it.
    pub in_use: u32,
}

impl Default for OfferingRow<'_> {
    fn default() -> Self {
        Self {
            instance_type: "m7i.large",
            zone: "us-east-1a",
            arch: "amd64",
            capacity_type: 0,
            price: 0.1,
            on_demand_price: 0.0,
            cpu_milli: 2000,
            memory_mib: 8192,
            gpus: 0,
            ice_count: 0,
            ice_age: NEVER,
            interruption_rate: -1.0,
            in_use: 0,
        }
    }
}

/// The table of the rows; symbol 0 is the NodePool `default`.
pub fn offerings(rows: &[OfferingRow<'_>]) -> Offerings {
    let mut symbols = vec!["default".to_owned()];
    let mut syms = |text: fn(&OfferingRow<'_>) -> String| -> Vec<u32> {
        rows.iter()
            .map(|row| intern(&mut symbols, text(row)))
            .collect()
    };
    let instance_type = syms(|row| row.instance_type.to_owned());
    let family = syms(|row| {
        row.instance_type
            .split('.')
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    let zone = syms(|row| row.zone.to_owned());
    let arch = syms(|row| row.arch.to_owned());
    let prices: Vec<f64> = rows.iter().map(|row| row.price).collect();
    Offerings {
        instance_type,
        family,
        zone,
        arch,
        capacity_type: rows.iter().map(|row| row.capacity_type).collect(),
        on_demand_price: rows.iter().map(|row| row.on_demand_price).collect(),
        cpu_milli: rows.iter().map(|row| row.cpu_milli).collect(),
        memory_mib: rows.iter().map(|row| row.memory_mib).collect(),
        gpus: rows.iter().map(|row| row.gpus).collect(),
        max_pods: vec![110; rows.len()],
        reservation_slots: vec![0; rows.len()],
        ice_count: rows.iter().map(|row| row.ice_count).collect(),
        ice_age: rows.iter().map(|row| row.ice_age).collect(),
        interruption_rate: rows.iter().map(|row| row.interruption_rate).collect(),
        in_use: rows.iter().map(|row| row.in_use).collect(),
        prior: prices.clone(),
        price: prices,
        extra: Vec::new(),
        symbols,
    }
}

/// One node, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct NodeRow<'a> {
    /// Name of the node.
    pub name: &'a str,
    /// Its NodePool.
    pub node_pool: &'a str,
    /// The pool's `consolidationPolicy`.
    pub consolidation_policy: &'a str,
    /// USD an hour.
    pub price: f64,
    /// Disruption cost.
    pub disruption_cost: f64,
    /// Seconds since its claim was created.
    pub age: u32,
    /// USD an hour of the whole pool.
    pub pool_total_cost: f64,
    /// Disruption cost of the whole pool.
    pub pool_total_disruption: f64,
}

impl Default for NodeRow<'_> {
    fn default() -> Self {
        Self {
            name: "node-1",
            node_pool: "default",
            consolidation_policy: "WhenEmptyOrUnderutilized",
            price: 1.0,
            disruption_cost: 5.0,
            age: 3600,
            pool_total_cost: 10.0,
            pool_total_disruption: 50.0,
        }
    }
}

/// The table of the nodes.
pub fn nodes(rows: &[NodeRow<'_>]) -> Nodes {
    let mut symbols = Vec::new();
    let mut syms = |text: fn(&NodeRow<'_>) -> String| -> Vec<u32> {
        rows.iter()
            .map(|row| intern(&mut symbols, text(row)))
            .collect()
    };
    let name = syms(|row| row.name.to_owned());
    let nodepool = syms(|row| row.node_pool.to_owned());
    let policy = syms(|row| row.consolidation_policy.to_owned());
    let count = rows.len();
    let floats = |value: fn(&NodeRow<'_>) -> f64| Column::Floats(rows.iter().map(value).collect());
    let extra = |name: &str, values| ExtraColumn {
        name: name.to_owned(),
        values,
    };
    Nodes {
        name,
        nodepool,
        instance_type: vec![NO_SYM; count],
        zone: vec![NO_SYM; count],
        capacity_type: vec![0; count],
        price: rows.iter().map(|row| row.price).collect(),
        age: rows.iter().map(|row| row.age).collect(),
        time_to_expiry: vec![NEVER; count],
        pods: vec![4; count],
        blocked_pods: vec![0; count],
        disruption_cost: rows.iter().map(|row| row.disruption_cost).collect(),
        cpu_milli: vec![4000; count],
        cpu_requested_milli: vec![1000; count],
        memory_mib: vec![16384; count],
        memory_requested_mib: vec![4096; count],
        extra: vec![
            extra("consolidation-policy", Column::Syms(policy)),
            extra("pool-total-cost", floats(|row| row.pool_total_cost)),
            extra(
                "pool-total-disruption",
                floats(|row| row.pool_total_disruption),
            ),
        ],
        symbols,
    }
}

/// A move of the given rows.
pub fn proposed(kind: MoveKind, remove: &[u32], cost_before: f64, cost_after: f64) -> Move {
    Move {
        kind,
        remove: remove.to_vec(),
        cost_before,
        cost_after,
        pods_moved: 4,
        singletons_moved: 0,
        max_priority: 0,
        new_nodes: u32::from(cost_after > 0.0),
        replacement_type: NO_SYM,
        replacement_spot: false,
        recent_hour: 0,
        recent_day: 0,
        labels: Vec::new(),
    }
}

/// A pool of so many ready nodes with active budgets for every reason, already resolved.
pub fn pool(name: &str, total: u32, declared: &[u32]) -> Pool {
    Pool {
        name: name.to_owned(),
        labels: Vec::new(),
        total,
        not_ready: 0,
        deleting: 0,
        disrupting: vec![0; 3],
        pending_pods: 0,
        declared: declared
            .iter()
            .map(|&resolved| DeclaredBudget {
                nodes: resolved.to_string(),
                resolved,
                active: true,
                next_change: 0,
                reasons: Reasons::all(),
            })
            .collect(),
        recent_hour: 0,
        recent_day: 0,
    }
}

fn intern(symbols: &mut Vec<String>, text: String) -> u32 {
    let index = symbols
        .iter()
        .position(|known| *known == text)
        .unwrap_or_else(|| {
            symbols.push(text);
            symbols.len() - 1
        });
    u32::try_from(index).unwrap_or(NO_SYM)
}
