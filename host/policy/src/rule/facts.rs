//! What rules may name: one table of variables for each kind, and where their values come from.
//!
//! Names follow the columns of the interface; whoever knows one knows the other.

use disruption::hooks::{
    BudgetPool, BudgetReason, COLUMN_CONSOLIDATION_POLICY, Context, ExtraValues, Move, MoveKind,
    NodeTable,
};
use scheduling::ranking::{ClaimView, OfferingTable};

use super::compile::{Known, Type};
use super::evaluate::{Facts, Value};

macro_rules! vocabulary {
    ($(#[$doc:meta])* $enum:ident $table:ident { $($variant:ident $name:literal $of:ident $about:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $enum { $($variant,)* }

        pub(crate) static $table: &[Known<$enum>] = &[
            $(Known { name: $name, of: Type::$of, variable: $enum::$variant, about: $about },)*
        ];
    };
}

vocabulary! {
    /// Of an offering and the claim it would be launched for.
    RankVariable RANK_VARIABLES {
        Price "price" Double "USD an hour",
        Prior "prior" Double "USD an hour as the policy before this one in the chain has it, else price",
        OnDemandPrice "on_demand_price" Double "USD an hour on demand; 0 when unknown",
        InstanceType "instance_type" Text "m7g.large",
        Family "family" Text "m7g",
        Zone "zone" Text "us-east-1a",
        Arch "arch" Text "amd64 or arm64",
        CapacityType "capacity_type" Text "on-demand, spot or reserved",
        CpuMilli "cpu_milli" Int "CPU of the type, thousandths",
        MemoryMib "memory_mib" Int "memory of the type",
        Gpus "gpus" Int "accelerators of the type",
        MaxPods "max_pods" Int "pods that its kubelet takes",
        ReservationSlots "reservation_slots" Int "free slots of a capacity reservation",
        IceCount "ice_count" Int "recent insufficient-capacity answers",
        IceAge "ice_age" Int "seconds since the latest one; 4294967295 when there was none",
        InterruptionRate "interruption_rate" Double "expected interruptions in 30 days; negative when unknown",
        InUse "in_use" Int "nodes now running on this offering",
        NodePool "nodepool" Text "name of the claim's NodePool",
        Weight "weight" Int "weight of the NodePool",
        Pods "pods" Int "pods of the claim",
        PodsCpuMilli "pods_cpu_milli" Int "their CPU requests",
        PodsMemoryMib "pods_memory_mib" Int "their memory requests",
        PodsGpus "pods_gpus" Int "their accelerators",
        PodsReplicated "pods_replicated" Int "those whose controller keeps two replicas or more",
        Hour "hour" Int "0 to 23, UTC",
        Weekday "weekday" Int "0 = Monday to 6 = Sunday, UTC",
    }
}

vocabulary! {
    /// Of a proposed move.
    MoveVariable MOVE_VARIABLES {
        Kind "kind" Text "empty, delete, replace, drift or expire",
        CostBefore "cost_before" Double "USD an hour now",
        CostAfter "cost_after" Double "USD an hour afterwards",
        Savings "savings" Double "USD an hour saved",
        Nodes "nodes" Int "nodes that go",
        NewNodes "new_nodes" Int "nodes that come",
        PodsMoved "pods_moved" Int "pods that are moved",
        SingletonsMoved "singletons_moved" Int "those of controllers with one replica",
        MaxPriority "max_priority" Int "highest priority among them",
        ReplacementType "replacement_type" Text "instance type that comes; empty without one",
        ReplacementSpot "replacement_spot" Bool "whether that is spot",
        RecentHour "recent_hour" Int "moves of the NodePool finished in the last hour",
        RecentDay "recent_day" Int "moves of the NodePool finished in the last day",
        NodePool "nodepool" Text "NodePool of the first node that goes",
        ConsolidationPolicy "consolidation_policy" Text "its consolidationPolicy",
        YoungestAge "youngest_age" Int "seconds since the youngest node that goes was created",
        CpuUtilization "cpu_utilization" Double "requested share of the CPU of the nodes that go, 0 to 1",
        MemoryUtilization "memory_utilization" Double "requested share of their memory, 0 to 1",
        DisruptionCost "disruption_cost" Double "disruption cost of the nodes that go",
        Hour "hour" Int "0 to 23, UTC",
        Weekday "weekday" Int "0 = Monday to 6 = Sunday, UTC",
    }
}

vocabulary! {
    /// Of a NodePool and one reason to disrupt its nodes.
    PoolVariable POOL_VARIABLES {
        NodePool "nodepool" Text "name of the NodePool",
        Reason "reason" Text "Underutilized, Empty or Drifted",
        Declared "declared" Int "what the active declared budgets allow for the reason; total without one",
        Total "total" Int "nodes of the NodePool",
        NotReady "not_ready" Int "those that are not ready",
        Deleting "deleting" Int "those that are being deleted",
        Disrupting "disrupting" Int "those under disruption for the reason",
        DisruptingAll "disrupting_all" Int "those under disruption for any reason",
        PendingPods "pending_pods" Int "pods that wait for a node",
        RecentHour "recent_hour" Int "disruptions finished in the last hour",
        RecentDay "recent_day" Int "disruptions finished in the last day",
        Hour "hour" Int "0 to 23, UTC",
        Weekday "weekday" Int "0 = Monday to 6 = Sunday, UTC",
    }
}

impl RankVariable {
    /// Whether the value depends on the claim; without one of these a row is computed once a round.
    pub(crate) fn is_of_claim(self) -> bool {
        matches!(
            self,
            Self::NodePool
                | Self::Weight
                | Self::Pods
                | Self::PodsCpuMilli
                | Self::PodsMemoryMib
                | Self::PodsGpus
                | Self::PodsReplicated
        )
    }
}

/// One offering for one claim.
pub(crate) struct OfferingFacts<'a> {
    pub(crate) table: &'a OfferingTable,
    pub(crate) prior: &'a [f64],
    pub(crate) claim: &'a ClaimView,
    pub(crate) context: &'a Context,
    pub(crate) row: usize,
}

impl Facts for OfferingFacts<'_> {
    type Variable = RankVariable;

    fn value(&self, variable: RankVariable) -> Value<'_> {
        let Self {
            table, claim, row, ..
        } = self;
        let text = |column: &[u32]| Value::text(symbol(&table.symbols, at(column, *row)));
        let count = |column: &[u32]| Value::count(at(column, *row));
        let float = |column: &[f64]| Value::Double(at(column, *row));
        match variable {
            RankVariable::Price => float(&table.price),
            RankVariable::Prior => float(self.prior),
            RankVariable::OnDemandPrice => float(&table.on_demand_price),
            RankVariable::InstanceType => text(&table.instance_type),
            RankVariable::Family => text(&table.family),
            RankVariable::Zone => text(&table.zone),
            RankVariable::Arch => text(&table.arch),
            RankVariable::CapacityType => Value::text(match at(&table.capacity_type, *row) {
                1 => "spot",
                2 => "reserved",
                _ => "on-demand",
            }),
            RankVariable::CpuMilli => count(&table.cpu_milli),
            RankVariable::MemoryMib => count(&table.memory_mib),
            RankVariable::Gpus => count(&table.gpus),
            RankVariable::MaxPods => count(&table.max_pods),
            RankVariable::ReservationSlots => count(&table.reservation_slots),
            RankVariable::IceCount => count(&table.ice_count),
            RankVariable::IceAge => count(&table.ice_age),
            RankVariable::InterruptionRate => float(&table.interruption_rate),
            RankVariable::InUse => count(&table.in_use),
            RankVariable::NodePool => Value::text(symbol(&table.symbols, claim.nodepool)),
            RankVariable::Weight => Value::count(claim.weight),
            RankVariable::Pods => Value::count(claim.pods.count),
            RankVariable::PodsCpuMilli => Value::count(claim.pods.cpu_milli),
            RankVariable::PodsMemoryMib => Value::count(claim.pods.memory_mib),
            RankVariable::PodsGpus => Value::count(claim.pods.gpus),
            RankVariable::PodsReplicated => Value::count(claim.pods.replicated),
            RankVariable::Hour => hour(self.context),
            RankVariable::Weekday => weekday(self.context),
        }
    }

    fn label(&self, key: &str) -> Option<&str> {
        label(&self.table.symbols, &self.claim.labels, key)
    }
}

/// A proposed move.
pub(crate) struct MoveFacts<'a> {
    pub(crate) nodes: &'a NodeTable,
    pub(crate) proposed: &'a Move,
    pub(crate) context: &'a Context,
}

impl MoveFacts<'_> {
    fn sum<T: Copy + Into<f64>>(&self, column: &[T]) -> f64 {
        let rows = self.proposed.remove.iter();
        rows.filter_map(|&row| column.get(index(row)).copied())
            .map(Into::into)
            .sum()
    }

    fn share(&self, part: &[u32], whole: &[u32]) -> Value<'_> {
        let whole = self.sum(whole);
        Value::Double(if whole > 0.0 {
            self.sum(part) / whole
        } else {
            0.0
        })
    }

    /// Of the first node that goes.
    fn first(&self, column: &[u32]) -> Value<'_> {
        let row = self.proposed.remove.first().copied().unwrap_or(u32::MAX);
        let sym = column.get(index(row)).copied().unwrap_or(u32::MAX);
        Value::text(symbol(&self.nodes.symbols, sym))
    }
}

impl Facts for MoveFacts<'_> {
    type Variable = MoveVariable;

    fn value(&self, variable: MoveVariable) -> Value<'_> {
        let Self {
            nodes, proposed, ..
        } = self;
        match variable {
            MoveVariable::Kind => Value::text(match proposed.kind {
                MoveKind::Empty => "empty",
                MoveKind::Delete => "delete",
                MoveKind::Replace => "replace",
                MoveKind::Drift => "drift",
                MoveKind::Expire => "expire",
            }),
            MoveVariable::CostBefore => Value::Double(proposed.cost_before),
            MoveVariable::CostAfter => Value::Double(proposed.cost_after),
            MoveVariable::Savings => Value::Double(proposed.cost_before - proposed.cost_after),
            MoveVariable::Nodes => {
                Value::count(u32::try_from(proposed.remove.len()).unwrap_or(u32::MAX))
            }
            MoveVariable::NewNodes => Value::count(proposed.new_nodes),
            MoveVariable::PodsMoved => Value::count(proposed.pods_moved),
            MoveVariable::SingletonsMoved => Value::count(proposed.singletons_moved),
            MoveVariable::MaxPriority => Value::Int(i64::from(proposed.max_priority)),
            MoveVariable::ReplacementType => {
                Value::text(symbol(&nodes.symbols, proposed.replacement_type))
            }
            MoveVariable::ReplacementSpot => Value::Bool(proposed.replacement_spot),
            MoveVariable::RecentHour => Value::count(proposed.recent_hour),
            MoveVariable::RecentDay => Value::count(proposed.recent_day),
            MoveVariable::NodePool => self.first(&nodes.nodepool),
            MoveVariable::ConsolidationPolicy => {
                let column = nodes
                    .extra
                    .iter()
                    .find(|it| it.name == COLUMN_CONSOLIDATION_POLICY);
                match column.map(|column| &column.values) {
                    Some(ExtraValues::Syms(syms)) => self.first(syms),
                    _ => Value::text(""),
                }
            }
            MoveVariable::YoungestAge => {
                let ages = proposed
                    .remove
                    .iter()
                    .filter_map(|&row| nodes.age.get(index(row)));
                Value::count(ages.min().copied().unwrap_or(0))
            }
            MoveVariable::CpuUtilization => {
                self.share(&nodes.cpu_requested_milli, &nodes.cpu_milli)
            }
            MoveVariable::MemoryUtilization => {
                self.share(&nodes.memory_requested_mib, &nodes.memory_mib)
            }
            MoveVariable::DisruptionCost => Value::Double(self.sum(&nodes.disruption_cost)),
            MoveVariable::Hour => hour(self.context),
            MoveVariable::Weekday => weekday(self.context),
        }
    }

    fn label(&self, key: &str) -> Option<&str> {
        label(&self.nodes.symbols, &self.proposed.labels, key)
    }
}

/// A NodePool and one reason.
pub(crate) struct PoolFacts<'a> {
    pub(crate) pool: &'a BudgetPool,
    pub(crate) reason: BudgetReason,
    pub(crate) context: &'a Context,
}

impl PoolFacts<'_> {
    fn declared(&self) -> u32 {
        let budgets = self.pool.declared.iter().filter(|budget| {
            budget.active
                && match self.reason {
                    BudgetReason::Underutilized => budget.reasons.underutilized,
                    BudgetReason::Empty => budget.reasons.empty,
                    BudgetReason::Drifted => budget.reasons.drifted,
                    BudgetReason::Unhealthy => budget.reasons.unhealthy,
                }
        });
        budgets
            .map(|budget| budget.resolved)
            .min()
            .unwrap_or(self.pool.total)
    }

    fn disrupting(&self) -> u32 {
        let position = BudgetReason::ALL.iter().position(|it| *it == self.reason);
        let count = position.and_then(|it| self.pool.disrupting.get(it));
        count.copied().unwrap_or(0)
    }
}

impl Facts for PoolFacts<'_> {
    type Variable = PoolVariable;

    fn value(&self, variable: PoolVariable) -> Value<'_> {
        let pool = self.pool;
        match variable {
            PoolVariable::NodePool => Value::text(&pool.name),
            PoolVariable::Reason => Value::text(match self.reason {
                BudgetReason::Underutilized => "Underutilized",
                BudgetReason::Empty => "Empty",
                BudgetReason::Drifted => "Drifted",
                BudgetReason::Unhealthy => "Unhealthy",
            }),
            PoolVariable::Declared => Value::count(self.declared()),
            PoolVariable::Total => Value::count(pool.total),
            PoolVariable::NotReady => Value::count(pool.not_ready),
            PoolVariable::Deleting => Value::count(pool.deleting),
            PoolVariable::Disrupting => Value::count(self.disrupting()),
            PoolVariable::DisruptingAll => Value::count(
                pool.disrupting
                    .iter()
                    .fold(0, |sum, it| u32::saturating_add(sum, *it)),
            ),
            PoolVariable::PendingPods => Value::count(pool.pending_pods),
            PoolVariable::RecentHour => Value::count(pool.recent_hour),
            PoolVariable::RecentDay => Value::count(pool.recent_day),
            PoolVariable::Hour => hour(self.context),
            PoolVariable::Weekday => weekday(self.context),
        }
    }

    fn label(&self, key: &str) -> Option<&str> {
        let mut labels = self.pool.labels.iter();
        labels
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }
}

fn hour(context: &Context) -> Value<'static> {
    Value::Int(
        context
            .civil
            .first()
            .map_or(0, |civil| i64::from(civil.hour)),
    )
}

fn weekday(context: &Context) -> Value<'static> {
    Value::Int(
        context
            .civil
            .first()
            .map_or(0, |civil| i64::from(civil.weekday)),
    )
}

fn at<T: Copy + Default>(column: &[T], row: usize) -> T {
    column.get(row).copied().unwrap_or_default()
}

fn index(row: u32) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

fn symbol(symbols: &[String], sym: u32) -> &str {
    symbols.get(index(sym)).map_or("", String::as_str)
}

fn label<'a>(symbols: &'a [String], labels: &[(u32, u32)], key: &str) -> Option<&'a str> {
    let mut labels = labels.iter();
    labels
        .find(|&&(name, _)| symbol(symbols, name) == key)
        .map(|&(_, value)| symbol(symbols, value))
}
