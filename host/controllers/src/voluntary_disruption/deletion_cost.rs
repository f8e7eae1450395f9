//! Writes the order in which nodes would best lose their pods onto the pods, once a minute and only what changed.
//!
//! The ranking is not decided here. Answers to `pkg/controllers/pod/deletioncost`.

pub(crate) mod written;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use apis::labels;
use disruption::budgets::{Budgets, Targets};
use disruption::candidate::Candidates;
use disruption::context;
use disruption::deletion_cost::{DeletionCost, NodeCost, rank};
use hooks::disruption::DeclaredBudgets;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, Patch};
use scheduling::pod::PodKey;
use serde_json::json;
use state::ConsolidationState;
use tracing::warn;

use super::VoluntaryDisruption;
use crate::shell::error::api_code;
use crate::shell::metrics::labels::{NodePoolLabel, ResultLabel, Series};
use crate::shell::metrics::replace;
use crate::shell::runtime::periodic::{self, PastRound, Periodic};
use crate::shell::writer::patching::patch_params;

const PERIOD: Duration = Duration::from_mins(1);
const UNSYNCED: Duration = Duration::from_secs(1);
/// Nodes whose pods are written in one pass, those on their way out aside.
const NODES_MAX: usize = 50;

/// The rounds in which pods are ranked.
pub(crate) struct PodRanking<'a> {
    disruption: &'a VoluntaryDisruption,
    /// State of the model when all was written.
    seen: Option<ConsolidationState>,
}

impl Periodic for PodRanking<'_> {
    const NAME: &'static str = "pod.deletioncost";
    const BEGINS_AT_ONCE: bool = true;
    type Error = Infallible;

    fn is_due(&self) -> bool {
        self.disruption.shell.model.is_synced()
    }

    async fn round(&mut self) -> Result<(), Infallible> {
        let shell = &self.disruption.shell;
        let state = shell.model.snapshot().consolidation_state(shell.now());
        if self.seen != Some(state) && self.disruption.rank_pods().await {
            self.seen = Some(state);
        }
        Ok(())
    }

    fn pause(&self, past: PastRound) -> Duration {
        match past {
            PastRound::NotDue => UNSYNCED,
            PastRound::Done | PastRound::Failed => PERIOD,
        }
    }
}

impl VoluntaryDisruption {
    /// For ever; nothing while the gate is closed.
    pub(super) async fn rank_pods_for_ever(&self) {
        let gates = &self.shell.settings.feature_gates;
        if !gates.pod_deletion_cost_management {
            return std::future::pending().await;
        }
        let ranking = PodRanking {
            disruption: self,
            seen: None,
        };
        periodic::run(&self.shell.metrics, ranking).await;
    }

    /// One pass; whether everything that was to be written is.
    async fn rank_pods(&self) -> bool {
        let observed = self.observe(self.next_number()).await;
        let now = observed.options.now;
        let context = context(&observed.options);
        let found = Candidates::find(&observed.snapshot, &observed.types, &observed.queued, now);
        // The declared budgets look at no roll-out.
        let targets = Targets::new();
        let world = observed.budget_world(&targets);
        let budgets = Budgets::ask(&world, context, &DeclaredBudgets);
        let costs = rank(&observed.snapshot, &found, &budgets);
        drop(observed);
        let decided = decide(&costs, &self.parts.written_costs.lock());
        self.measure_pending(&decided.pending);
        let mut is_done = decided.is_all;
        for (cost, pods) in decided.pending {
            for key in pods {
                is_done &= self.write_cost(key, cost.cost).await;
            }
        }
        is_done
    }

    fn measure_pending(&self, pending: &[(&NodeCost, Vec<&PodKey>)]) {
        let mut by_pool: BTreeMap<&str, u32> = BTreeMap::new();
        for (cost, _) in pending {
            *by_pool.entry(&cost.pool).or_default() += 1;
        }
        let series = by_pool
            .into_iter()
            .map(|(pool, nodes)| (NodePoolLabel(pool.to_owned()), f64::from(nodes)));
        replace(&self.shell.metrics.deletion_cost_pending_nodes, series);
    }

    /// Writes one pod's cost; whether that is as it should be.
    async fn write_cost(&self, key: &PodKey, cost: DeletionCost) -> bool {
        let outcome = self.try_to_write(key, cost).await;
        let series = Series(ResultLabel(outcome.result()));
        let counter = &self.shell.metrics.deletion_cost_writes;
        counter.get_or_create(&series).inc();
        outcome.is_done()
    }

    async fn try_to_write(&self, key: &PodKey, cost: DeletionCost) -> CostWrite {
        let pods: Api<Pod> = Api::namespaced(self.shell.client.clone(), &key.namespace);
        let pod = match pods.get_opt(&key.name).await {
            Ok(Some(pod)) => pod,
            Ok(None) => return CostWrite::NotFound,
            Err(error) => {
                warn!(Pod = %key, %error, "reading a pod to rank it");
                return CostWrite::Failed;
            }
        };
        let known = pod.annotations().get(labels::POD_DELETION_COST_ANNOTATION);
        let wanted = cost.annotation();
        if known == wanted.as_ref() {
            return CostWrite::Unchanged;
        }
        let change = json!({"metadata": {
            "resourceVersion": pod.resource_version(),
            "annotations": {labels::POD_DELETION_COST_ANNOTATION: wanted},
        }});
        let (params, change) = (patch_params(), Patch::Merge(&change));
        let patched = pods.patch(&key.name, &params, &change).await;
        let Err(error) = patched else {
            return CostWrite::Updated;
        };
        match api_code(&error) {
            Some(404) => CostWrite::NotFound,
            Some(409) => CostWrite::Conflict,
            Some(_) | None => {
                warn!(Pod = %key, %error, "ranking a pod");
                CostWrite::Failed
            }
        }
    }
}

/// Costs that are written in one pass.
#[derive(Debug, PartialEq, Eq)]
struct PendingCosts<'a> {
    /// Nodes, each with those of its pods that bear another cost.
    pending: Vec<(&'a NodeCost, Vec<&'a PodKey>)>,
    /// Whether nothing is left for the next pass.
    is_all: bool,
}

/// Which pods are to get another cost than the one they bear, whoever wrote that.
fn decide<'a>(costs: &'a [NodeCost], written: &BTreeMap<PodKey, String>) -> PendingCosts<'a> {
    let mut pending = Vec::new();
    let mut nodes = 0;
    for cost in costs {
        let wanted = cost.cost.annotation();
        let others = cost.pods.iter();
        let others: Vec<&PodKey> = others
            .filter(|key| written.get(key) != wanted.as_ref())
            .collect();
        if others.is_empty() {
            continue;
        }
        if cost.cost != DeletionCost::Going {
            nodes += 1;
        }
        if nodes > NODES_MAX {
            let is_all = false;
            return PendingCosts { pending, is_all };
        }
        pending.push((cost, others));
    }
    let is_all = true;
    PendingCosts { pending, is_all }
}

/// Result of writing a pod's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CostWrite {
    Updated,
    /// It says so already.
    Unchanged,
    /// The pod is gone.
    NotFound,
    /// Somebody else wrote; the next pass looks again.
    Conflict,
    Failed,
}

impl CostWrite {
    /// As the metric has it.
    fn result(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Unchanged => "skipped_unchanged",
            Self::NotFound => "skipped_notfound",
            Self::Conflict => "skipped_conflict",
            Self::Failed => "error",
        }
    }

    /// Whether there is nothing left to write.
    fn is_done(self) -> bool {
        match self {
            Self::Updated | Self::Unchanged | Self::NotFound => true,
            Self::Conflict | Self::Failed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(node: &str, cost: DeletionCost, pods: &[&str]) -> NodeCost {
        NodeCost {
            node: node.to_owned(),
            pool: "default".to_owned(),
            cost,
            pods: pods.iter().map(|it| PodKey::new("shop", it)).collect(),
        }
    }

    fn written(costs: &[(&str, &str)]) -> BTreeMap<PodKey, String> {
        let costs = costs.iter();
        let costs = costs.map(|(pod, cost)| (PodKey::new("shop", pod), (*cost).to_owned()));
        costs.collect()
    }

    #[test]
    fn only_pods_that_bear_another_cost_are_written() {
        let costs = [
            cost("a", DeletionCost::Rank(-2), &["a-1", "a-2"]),
            cost("b", DeletionCost::Rank(-1), &["b-1"]),
            cost("c", DeletionCost::Unset, &["c-1", "c-2"]),
        ];
        let written = written(&[("a-1", "-2"), ("a-2", "-3"), ("b-1", "-1"), ("c-2", "7")]);
        let PendingCosts { pending, is_all } = decide(&costs, &written);
        let found: Vec<_> = pending
            .iter()
            .map(|(cost, pods)| (cost.node.as_str(), pods.as_slice()))
            .collect();
        let expected = [("a", [&costs[0].pods[1]]), ("c", [&costs[2].pods[1]])];
        let expected: Vec<_> = expected
            .iter()
            .map(|(node, pods)| (*node, pods.as_slice()))
            .collect();
        assert_eq!((found, is_all), (expected, true));
    }

    #[test]
    fn a_pass_is_bounded_but_for_nodes_on_their_way_out() {
        let names: Vec<String> = (0..=NODES_MAX).map(|it| format!("p-{it}")).collect();
        let staying: Vec<_> = names
            .iter()
            .map(|it| cost("n", DeletionCost::Rank(-1), &[it]))
            .collect();
        let decided = decide(&staying, &BTreeMap::new());
        assert_eq!((decided.pending.len(), decided.is_all), (NODES_MAX, false));
        let going: Vec<_> = names
            .iter()
            .map(|it| cost("n", DeletionCost::Going, &[it]))
            .collect();
        let decided = decide(&going, &BTreeMap::new());
        assert_eq!(
            (decided.pending.len(), decided.is_all),
            (NODES_MAX + 1, true)
        );
    }
}
