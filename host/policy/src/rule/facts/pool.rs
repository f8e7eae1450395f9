//! What a budgets rule may name: a NodePool and one reason to disrupt its nodes, and all NodePools together.

use hooks::disruption::{BudgetPool, BudgetReason, Context, PoolActivity};

use super::super::evaluate::{RowFacts, Variable};
use super::super::value::Value;
use super::{LabelSet, vocabulary};
use crate::needs::Need;

/// Words that are looked up by a key.
pub(crate) static POOL_LABELS: &[(&str, LabelSet)] = &[
    ("labels", LabelSet::Own),
    ("nodepool_labels", LabelSet::Own),
];

vocabulary! {
    /// Of a NodePool and one reason to disrupt its nodes.
    PoolVariable POOL_VARIABLES {
        NodePool "nodepool" Text "name of the NodePool",
        Reason "reason" Text "Underutilized, Empty or Drifted",
        Declared "declared" Int "what the active declared budgets allow for the reason; total without one",
        NextChange "next_change" Int "seconds until a declared budget begins or ends; 0 without a schedule",
        Total "total" Int "nodes of the NodePool",
        NotReady "not_ready" Int "those that are not ready",
        Deleting "deleting" Int "those that are being deleted",
        Drifted "drifted" Int "those that drifted",
        DriftTarget "drift_target" Text "what nodes made now would be, as a hash",
        Renewed "renewed" Int "drifted nodes renewed since that is so",
        TargetAge "target_age" Int "seconds since that is so; 4294967295 when it was not seen to change",
        Price "price" Double "USD an hour of all its nodes",
        Disrupting "disrupting" Int "those under disruption for the reason",
        DisruptingAll "disrupting_all" Int "those under disruption for any reason",
        RecentHour "recent_hour" Int "disruptions finished in the last hour",
        RecentDay "recent_day" Int "disruptions finished in the last day",
        ReasonRecentHour "reason_recent_hour" Int "those of them for the reason, in the last hour",
        ReasonRecentDay "reason_recent_day" Int "those of them for the reason, in the last day",
        FailedDay "failed_day" Int "replacements that did not come in the last day",
        ReasonFailedDay "reason_failed_day" Int "those of them for the reason",
        PendingPods "pending_pods" Int "pods that wait for a node",
        ClusterNodes "cluster_nodes" Int "nodes of all NodePools",
        ClusterNotReady "cluster_not_ready" Int "those that are not ready",
        ClusterDisrupting "cluster_disrupting" Int "those under disruption for any reason",
        ClusterRecentHour "cluster_recent_hour" Int "disruptions finished in all NodePools in the last hour",
    }
}

impl Variable for PoolVariable {
    fn is_of_claim(self) -> bool {
        false
    }

    fn need(self) -> Option<Need> {
        None
    }
}

/// A NodePool and one reason.
pub(crate) struct PoolFacts<'a> {
    pub(crate) pools: &'a [BudgetPool],
    pub(crate) pool: &'a BudgetPool,
    pub(crate) reason: BudgetReason,
    pub(crate) context: &'a Context,
}

impl PoolFacts<'_> {
    /// Nodes that the declared budgets allow; the whole pool without one.
    pub(crate) fn declared(&self) -> u32 {
        let least = self.pool.declared_least(self.reason);
        least.unwrap_or(self.pool.total)
    }

    /// Count for the reason that is judged.
    fn own(&self, count: fn(&PoolActivity) -> u32) -> Value<'_> {
        let own = self.pool.activity.get(self.reason.index());
        Value::count(own.map_or(0, count))
    }

    /// Sum over all reasons.
    fn any(&self, count: fn(&PoolActivity) -> u32) -> Value<'_> {
        Value::count(sum(self.pool, count))
    }

    fn cluster(&self, count: fn(&BudgetPool) -> u32) -> Value<'_> {
        let counts = self.pools.iter().map(count);
        Value::count(counts.fold(0, u32::saturating_add))
    }
}

fn sum(pool: &BudgetPool, count: fn(&PoolActivity) -> u32) -> u32 {
    pool.activity.iter().map(count).fold(0, u32::saturating_add)
}

impl RowFacts for PoolFacts<'_> {
    type Variable = PoolVariable;

    fn value(&self, variable: PoolVariable) -> Value<'_> {
        let pool = self.pool;
        match variable {
            PoolVariable::NodePool => Value::text(&pool.name),
            PoolVariable::Reason => Value::text(self.reason.as_str()),
            PoolVariable::Declared => Value::count(self.declared()),
            PoolVariable::NextChange => {
                let changes = pool.declared.iter().map(|it| it.next_change_seconds);
                Value::count(changes.filter(|it| *it > 0).min().unwrap_or(0))
            }
            PoolVariable::Total => Value::count(pool.total),
            PoolVariable::NotReady => Value::count(pool.not_ready),
            PoolVariable::Deleting => Value::count(pool.deleting),
            PoolVariable::Drifted => Value::count(pool.drifted),
            PoolVariable::DriftTarget => Value::text(&pool.drift_target),
            PoolVariable::Renewed => Value::count(pool.renewed),
            PoolVariable::TargetAge => Value::count(pool.target_age_seconds),
            PoolVariable::Price => Value::Double(pool.price),
            PoolVariable::Disrupting => self.own(|it| it.disrupting),
            PoolVariable::DisruptingAll => self.any(|it| it.disrupting),
            PoolVariable::RecentHour => self.any(|it| it.recent_hour),
            PoolVariable::RecentDay => self.any(|it| it.recent_day),
            PoolVariable::ReasonRecentHour => self.own(|it| it.recent_hour),
            PoolVariable::ReasonRecentDay => self.own(|it| it.recent_day),
            PoolVariable::FailedDay => self.any(|it| it.failed_day),
            PoolVariable::ReasonFailedDay => self.own(|it| it.failed_day),
            PoolVariable::PendingPods => Value::count(pool.pending_pods),
            PoolVariable::ClusterNodes => self.cluster(|it| it.total),
            PoolVariable::ClusterNotReady => self.cluster(|it| it.not_ready),
            PoolVariable::ClusterDisrupting => self.cluster(|it| sum(it, |it| it.disrupting)),
            PoolVariable::ClusterRecentHour => self.cluster(|it| sum(it, |it| it.recent_hour)),
            PoolVariable::Moment(variable) => variable.value(self.context),
        }
    }

    fn label(&self, _: LabelSet, key: &str) -> Option<&str> {
        let mut labels = self.pool.labels.iter();
        labels
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    fn steps(&self, variable: PoolVariable) -> u64 {
        let steps = match variable {
            PoolVariable::Declared | PoolVariable::NextChange => self.pool.declared.len(),
            PoolVariable::ClusterNodes
            | PoolVariable::ClusterNotReady
            | PoolVariable::ClusterDisrupting
            | PoolVariable::ClusterRecentHour => self.pools.len(),
            PoolVariable::Moment(variable) => variable.steps(self.context),
            PoolVariable::NodePool
            | PoolVariable::Reason
            | PoolVariable::Total
            | PoolVariable::NotReady
            | PoolVariable::Deleting
            | PoolVariable::Drifted
            | PoolVariable::DriftTarget
            | PoolVariable::Renewed
            | PoolVariable::TargetAge
            | PoolVariable::Price
            | PoolVariable::Disrupting
            | PoolVariable::DisruptingAll
            | PoolVariable::RecentHour
            | PoolVariable::RecentDay
            | PoolVariable::ReasonRecentHour
            | PoolVariable::ReasonRecentDay
            | PoolVariable::FailedDay
            | PoolVariable::ReasonFailedDay
            | PoolVariable::PendingPods => 0,
        };
        u64::try_from(steps).unwrap_or(u64::MAX)
    }

    fn labels(&self, _: LabelSet) -> usize {
        self.pool.labels.len()
    }
}
