//! What a consolidation rule may name: a proposed move, the nodes that go, and the NodePool of the first of them.

use apis::CapacityType;
use hooks::columns::saturated;
use hooks::disruption::{ConsolidationRound, Context, Move, MoveKind, NEVER_SECONDS, PoolView};

use super::super::evaluate::{RowFacts, Variable};
use super::super::value::Value;
use super::{LabelSet, OwnersView, at, capacity_type, index, label, symbol, vocabulary};
use crate::needs::Need;

/// Words that are looked up by a key.
pub(crate) static MOVE_LABELS: &[(&str, LabelSet)] = &[
    ("labels", LabelSet::Own),
    ("nodepool_labels", LabelSet::NodePool),
    ("node_labels", LabelSet::Node),
];

vocabulary! {
    /// Of a proposed move.
    MoveVariable MOVE_VARIABLES {
        Kind "kind" Text "delete, replace, empty, drift, static-drift or expire",
        Savings "savings" Double "USD an hour saved, as the rank policies in charge have it",
        EffectiveBefore "effective_before" Double "what goes costs so much an hour by them",
        EffectiveAfter "effective_after" Double "what comes costs so much an hour by them",
        ListSavings "list_savings" Double "USD an hour saved by list prices",
        CostBefore "cost_before" Double "list price an hour of what goes",
        CostAfter "cost_after" Double "list price an hour of what comes",
        Nodes "nodes" Int "nodes that go",
        NewNodes "new_nodes" Int "nodes that come",
        PodsMoved "pods_moved" Int "pods that are moved",
        SingletonsMoved "singletons_moved" Int "those of controllers with one replica",
        MaxPriority "max_priority" Int "highest priority among them",
        ReplacementType "replacement_type" Text "instance type that comes; empty without one",
        ReplacementZone "replacement_zone" Text "its zone; empty without one",
        ReplacementCapacityType "replacement_capacity_type" Text "its capacity type; empty without one",
        ReplacementSpot "replacement_spot" Bool "whether that is spot",
        NodePool "nodepool" Text "NodePool of the first node that goes",
        NodePoolNodes "nodepool_nodes" Int "its nodes, whether they may go or not",
        NodePoolPrice "nodepool_price" Double "list price an hour of all its nodes",
        NodePoolEffectivePrice "nodepool_effective_price" Double "the same by the rank policies",
        NodePoolDisruptionCost "nodepool_disruption_cost" Double "disruption cost of all its nodes",
        ConsolidationPolicy "consolidation_policy" Text "its consolidationPolicy",
        RecentHour "recent_hour" Int "its moves finished in the last hour",
        RecentDay "recent_day" Int "its moves finished in the last day",
    }
    /// Of the nodes that go, the first of them or all together.
    Removed RemovedVariable {
        NodeName "node" Text "name of the first node that goes",
        InstanceType "instance_type" Text "its instance type",
        Zone "zone" Text "its zone",
        CapacityType "capacity_type" Text "its capacity type: on-demand, spot or reserved",
        DriftReason "drift_reason" Text "why it drifted; empty when it did not",
        SpotNodes "spot_nodes" Int "nodes that go and are spot",
        Pods "pods" Int "pods on the nodes that go",
        BlockedPods "blocked_pods" Int "those that may not be disrupted, or that a PodDisruptionBudget holds",
        YoungestAge "youngest_age" Int "seconds since the youngest node that goes was created",
        OldestAge "oldest_age" Int "seconds since the oldest of them was",
        TimeToExpiry "time_to_expiry" Int "seconds until the first of them expires; 4294967295 when none does",
        LastPodEvent "last_pod_event" Int "seconds since a pod came to one of them or left it; 4294967295 when unknown",
        CpuUtilization "cpu_utilization" Double "requested share of the CPU of the nodes that go, 0 to 1",
        MemoryUtilization "memory_utilization" Double "requested share of their memory, 0 to 1",
        Gpus "gpus" Int "their accelerators",
        GpusRequested "gpus_requested" Int "those that are requested",
        DisruptionCost "disruption_cost" Double "disruption cost of the nodes that go",
        Namespaces "namespaces" Texts "namespaces of their pods",
        OwnerKinds "owner_kinds" Texts "kinds of the owners of their pods, such as Deployment, StatefulSet and Job",
        PriorityClasses "priority_classes" Texts "priority classes of their pods",
        LeastReplicas "least_replicas" Int "pods in the cluster of the owner that has fewest; absent without owners",
        DisruptionsAllowed "disruptions_allowed" Int "fewest that PodDisruptionBudgets let go of one owner; 4294967295 without any",
    }
}

impl Variable for MoveVariable {
    fn is_of_claim(self) -> bool {
        false
    }

    fn need(self) -> Option<Need> {
        match self {
            Self::Removed(variable) => variable.need(),
            Self::Kind
            | Self::Savings
            | Self::EffectiveBefore
            | Self::EffectiveAfter
            | Self::ListSavings
            | Self::CostBefore
            | Self::CostAfter
            | Self::Nodes
            | Self::NewNodes
            | Self::PodsMoved
            | Self::SingletonsMoved
            | Self::MaxPriority
            | Self::ReplacementType
            | Self::ReplacementZone
            | Self::ReplacementCapacityType
            | Self::ReplacementSpot
            | Self::NodePool
            | Self::NodePoolNodes
            | Self::NodePoolPrice
            | Self::NodePoolEffectivePrice
            | Self::NodePoolDisruptionCost
            | Self::ConsolidationPolicy
            | Self::RecentHour
            | Self::RecentDay
            | Self::Moment(_) => None,
        }
    }
}

impl RemovedVariable {
    fn need(self) -> Option<Need> {
        match self {
            Self::Namespaces
            | Self::OwnerKinds
            | Self::PriorityClasses
            | Self::LeastReplicas
            | Self::DisruptionsAllowed => Some(Need::Workloads),
            Self::NodeName
            | Self::InstanceType
            | Self::Zone
            | Self::CapacityType
            | Self::DriftReason
            | Self::SpotNodes
            | Self::Pods
            | Self::BlockedPods
            | Self::YoungestAge
            | Self::OldestAge
            | Self::TimeToExpiry
            | Self::LastPodEvent
            | Self::CpuUtilization
            | Self::MemoryUtilization
            | Self::Gpus
            | Self::GpusRequested
            | Self::DisruptionCost => None,
        }
    }
}

/// A proposed move.
pub(crate) struct MoveFacts<'a> {
    pub(crate) round: &'a ConsolidationRound,
    pub(crate) proposed: &'a Move,
    pub(crate) owners: &'a OwnersView<'a>,
    pub(crate) context: &'a Context,
}

impl MoveFacts<'_> {
    /// A column for the nodes that go.
    fn of<T: Copy>(&self, column: &'_ [T]) -> impl Iterator<Item = T> {
        let rows = self.proposed.remove.iter();
        rows.filter_map(|&row| column.get(index(row)).copied())
    }

    fn sum<T: Copy + Into<f64>>(&self, column: &[T]) -> f64 {
        self.of(column).map(Into::into).sum()
    }

    fn total(&self, column: &[u32]) -> Value<'_> {
        Value::count(self.of(column).fold(0, u32::saturating_add))
    }

    fn least(&self, column: &[u32]) -> Value<'_> {
        Value::count(self.of(column).min().unwrap_or(NEVER_SECONDS))
    }

    fn share(&self, part: &[u32], whole: &[u32]) -> Value<'_> {
        let whole = self.sum(whole);
        Value::Double(if whole > 0.0 {
            self.sum(part) / whole
        } else {
            0.0
        })
    }

    fn first_row(&self) -> usize {
        let first = self.proposed.remove.first();
        first.map_or(usize::MAX, |row| index(*row))
    }

    /// Of the first node that goes.
    fn first(&self, column: &[u32]) -> Value<'_> {
        let sym = column.get(self.first_row()).copied().unwrap_or(u32::MAX);
        self.text(sym)
    }

    fn text(&self, sym: u32) -> Value<'_> {
        Value::text(symbol(&self.round.nodes.symbols, sym))
    }

    /// The NodePool of the first node that goes.
    fn pool(&self) -> Option<&PoolView> {
        let name = self.round.nodes.nodepool.get(self.first_row())?;
        self.round.pools.iter().find(|it| it.name == *name)
    }

    fn pool_count(&self, count: fn(&PoolView) -> u32) -> Value<'_> {
        Value::count(self.pool().map_or(0, count))
    }

    fn pool_sum(&self, sum: fn(&PoolView) -> f64) -> Value<'_> {
        Value::Double(self.pool().map_or(0.0, sum))
    }

    /// What the nodes that go have among them.
    fn of_nodes(&self, variable: RemovedVariable) -> Value<'_> {
        let nodes = &self.round.nodes;
        match variable {
            RemovedVariable::NodeName => self.first(&nodes.name),
            RemovedVariable::InstanceType => self.first(&nodes.instance_type),
            RemovedVariable::Zone => self.first(&nodes.zone),
            RemovedVariable::CapacityType => {
                capacity_type(at(&nodes.capacity_type, self.first_row()))
            }
            RemovedVariable::DriftReason => self.first(&nodes.drift_reason),
            RemovedVariable::SpotNodes => {
                let codes = self.of(&nodes.capacity_type);
                let spot = codes.filter(|code| *code == CapacityType::Spot.code());
                Value::count(saturated(spot.count()))
            }
            RemovedVariable::Pods => self.total(&nodes.pods),
            RemovedVariable::BlockedPods => self.total(&nodes.blocked_pods),
            RemovedVariable::OldestAge => Value::count(self.of(&nodes.age).max().unwrap_or(0)),
            RemovedVariable::YoungestAge => Value::count(self.of(&nodes.age).min().unwrap_or(0)),
            RemovedVariable::TimeToExpiry => self.least(&nodes.time_to_expiry),
            RemovedVariable::LastPodEvent => self.least(&nodes.last_pod_event),
            RemovedVariable::CpuUtilization => {
                self.share(&nodes.cpu_requested_milli, &nodes.cpu_milli)
            }
            RemovedVariable::MemoryUtilization => {
                self.share(&nodes.memory_requested_mib, &nodes.memory_mib)
            }
            RemovedVariable::Gpus => self.total(&nodes.gpus),
            RemovedVariable::GpusRequested => self.total(&nodes.gpus_requested),
            RemovedVariable::DisruptionCost => Value::Double(self.sum(&nodes.disruption_cost)),
            RemovedVariable::Namespaces => self.owners.namespaces.clone(),
            RemovedVariable::OwnerKinds => self.owners.kinds.clone(),
            RemovedVariable::PriorityClasses => self.owners.priority_classes.clone(),
            RemovedVariable::LeastReplicas => self.owners.least_replicas.clone(),
            RemovedVariable::DisruptionsAllowed => self.owners.disruptions_allowed.clone(),
        }
    }

    fn steps_of_nodes(&self, variable: RemovedVariable) -> usize {
        let rows = self.proposed.remove.len() / 4;
        match variable {
            RemovedVariable::CpuUtilization | RemovedVariable::MemoryUtilization => 2 * rows,
            RemovedVariable::SpotNodes
            | RemovedVariable::Pods
            | RemovedVariable::BlockedPods
            | RemovedVariable::OldestAge
            | RemovedVariable::YoungestAge
            | RemovedVariable::TimeToExpiry
            | RemovedVariable::LastPodEvent
            | RemovedVariable::Gpus
            | RemovedVariable::GpusRequested
            | RemovedVariable::DisruptionCost => rows,
            RemovedVariable::NodeName
            | RemovedVariable::InstanceType
            | RemovedVariable::Zone
            | RemovedVariable::CapacityType
            | RemovedVariable::DriftReason
            | RemovedVariable::Namespaces
            | RemovedVariable::OwnerKinds
            | RemovedVariable::PriorityClasses
            | RemovedVariable::LeastReplicas
            | RemovedVariable::DisruptionsAllowed => 0,
        }
    }

    fn labels_of(&self, set: LabelSet) -> &[(u32, u32)] {
        match set {
            LabelSet::Own => &self.proposed.labels,
            LabelSet::NodePool => self.pool().map_or(&[], |it| &it.labels),
            LabelSet::Node => {
                let labels = self.round.nodes.labels.get(self.first_row());
                labels.map_or(&[], Vec::as_slice)
            }
        }
    }
}

impl RowFacts for MoveFacts<'_> {
    type Variable = MoveVariable;

    fn value(&self, variable: MoveVariable) -> Value<'_> {
        let proposed = self.proposed;
        match variable {
            MoveVariable::Kind => Value::text(kind_word(proposed.kind)),
            MoveVariable::Savings => {
                Value::Double(proposed.effective_before - proposed.effective_after)
            }
            MoveVariable::EffectiveBefore => Value::Double(proposed.effective_before),
            MoveVariable::EffectiveAfter => Value::Double(proposed.effective_after),
            MoveVariable::ListSavings => Value::Double(proposed.cost_before - proposed.cost_after),
            MoveVariable::CostBefore => Value::Double(proposed.cost_before),
            MoveVariable::CostAfter => Value::Double(proposed.cost_after),
            MoveVariable::Nodes => Value::count(saturated(proposed.remove.len())),
            MoveVariable::NewNodes => Value::count(proposed.new_nodes),
            MoveVariable::PodsMoved => Value::count(proposed.pods_moved),
            MoveVariable::SingletonsMoved => Value::count(proposed.singletons_moved),
            MoveVariable::MaxPriority => Value::Int(i64::from(proposed.max_priority)),
            MoveVariable::ReplacementType => self.text(proposed.replacement_type),
            MoveVariable::ReplacementZone => self.text(proposed.replacement_zone),
            MoveVariable::ReplacementCapacityType => {
                capacity_type(proposed.replacement_capacity_type)
            }
            MoveVariable::ReplacementSpot => {
                Value::Bool(proposed.replacement_capacity_type == CapacityType::Spot.code())
            }
            MoveVariable::NodePool => self.first(&self.round.nodes.nodepool),
            MoveVariable::NodePoolNodes => self.pool_count(|pool| pool.nodes),
            MoveVariable::NodePoolPrice => self.pool_sum(|pool| pool.price),
            MoveVariable::NodePoolEffectivePrice => self.pool_sum(|pool| pool.effective_price),
            MoveVariable::NodePoolDisruptionCost => self.pool_sum(|pool| pool.disruption_cost),
            MoveVariable::ConsolidationPolicy => self.first(&self.round.nodes.consolidation_policy),
            MoveVariable::RecentHour => self.pool_count(|pool| pool.recent_hour),
            MoveVariable::RecentDay => self.pool_count(|pool| pool.recent_day),
            MoveVariable::Removed(variable) => self.of_nodes(variable),
            MoveVariable::Moment(variable) => variable.value(self.context),
        }
    }

    fn label(&self, set: LabelSet, key: &str) -> Option<&str> {
        label(&self.round.nodes.symbols, self.labels_of(set), key)
    }

    fn steps(&self, variable: MoveVariable) -> u64 {
        let steps = match variable {
            MoveVariable::Removed(variable) => self.steps_of_nodes(variable),
            MoveVariable::Moment(variable) => variable.steps(self.context),
            MoveVariable::NodePoolNodes
            | MoveVariable::NodePoolPrice
            | MoveVariable::NodePoolEffectivePrice
            | MoveVariable::NodePoolDisruptionCost
            | MoveVariable::RecentHour
            | MoveVariable::RecentDay => self.round.pools.len() / 4,
            MoveVariable::Kind
            | MoveVariable::Savings
            | MoveVariable::EffectiveBefore
            | MoveVariable::EffectiveAfter
            | MoveVariable::ListSavings
            | MoveVariable::CostBefore
            | MoveVariable::CostAfter
            | MoveVariable::Nodes
            | MoveVariable::NewNodes
            | MoveVariable::PodsMoved
            | MoveVariable::SingletonsMoved
            | MoveVariable::MaxPriority
            | MoveVariable::ReplacementType
            | MoveVariable::ReplacementZone
            | MoveVariable::ReplacementCapacityType
            | MoveVariable::ReplacementSpot
            | MoveVariable::NodePool
            | MoveVariable::ConsolidationPolicy => 0,
        };
        u64::try_from(steps).unwrap_or(u64::MAX)
    }

    fn labels(&self, set: LabelSet) -> usize {
        self.labels_of(set).len()
    }
}

/// The word of a kind of move.
pub(crate) fn kind_word(kind: MoveKind) -> &'static str {
    match kind {
        MoveKind::Empty => "empty",
        MoveKind::Delete => "delete",
        MoveKind::Replace => "replace",
        MoveKind::Drift => "drift",
        MoveKind::StaticDrift => "static-drift",
        MoveKind::Expire => "expire",
    }
}
