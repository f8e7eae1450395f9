//! Writes the order in which nodes would best lose their pods onto the pods, once a minute and only what changed.
//!
//! The ranking is not decided here. Answers to `pkg/controllers/pod/deletioncost`.

use std::collections::BTreeMap;
use std::time::Duration;

use apis::labels;
use disruption::budgets::{BudgetWorld, Budgets, Targets};
use disruption::candidate::Candidates;
use disruption::deletion_cost::{NodeCost, rank};
use disruption::hooks::{Civil, Context, DeclaredBudgets};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use scheduling::pod::PodKey;
use serde_json::json;
use state::ConsolidationState;
use tracing::warn;

use super::VoluntaryDisruption;
use crate::shell::metrics::replace;

const PERIOD: Duration = Duration::from_mins(1);
const UNSYNCED: Duration = Duration::from_secs(1);
/// Nodes whose pods are written in one pass, those on their way out aside.
const NODES_MAX: usize = 50;

impl VoluntaryDisruption {
    /// For ever; nothing while the gate is closed.
    pub(super) async fn rank_pods_for_ever(&self) {
        if !self
            .shell
            .settings
            .feature_gates
            .pod_deletion_cost_management
        {
            return std::future::pending().await;
        }
        let mut seen: Option<ConsolidationState> = None;
        loop {
            if !self.shell.model.is_synced() {
                tokio::time::sleep(UNSYNCED).await;
                continue;
            }
            let state = self
                .shell
                .model
                .snapshot()
                .consolidation_state(self.shell.now());
            let round = self.shell.metrics.round("pod.deletioncost");
            if seen != Some(state) && self.rank_pods().await {
                seen = Some(state);
            }
            drop(round);
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// One pass; whether everything that was to be written is.
    async fn rank_pods(&self) -> bool {
        let observed = self.observe().await;
        let now = observed.options.now;
        let context = Context {
            now_seconds: u64::try_from(now.as_second()).unwrap_or_default(),
            civil: vec![Civil::utc(now)],
            cluster: observed.options.cluster.clone(),
            decision_id: observed.options.decision_id.clone(),
            seed: observed.options.seed,
        };
        let found = Candidates::find(&observed.snapshot, &observed.types, &observed.queued, now);
        let world = BudgetWorld {
            snapshot: &observed.snapshot,
            history: &observed.history,
            types: &observed.types,
            // The declared budgets look at no roll-out.
            targets: &Targets::new(),
            now,
        };
        let budgets = Budgets::ask(&world, context, &DeclaredBudgets);
        let costs = rank(&observed.snapshot, &found, &budgets);
        drop(observed);
        let (pending, is_all) = self.pending(&costs);
        self.measure_pending(&pending);
        let mut is_done = is_all;
        for (cost, pods) in pending {
            for key in pods {
                is_done &= self.write_cost(key, cost.value).await;
            }
        }
        is_done
    }

    /// Nodes with pods to write in this pass, and whether these are all.
    fn pending<'a>(&self, costs: &'a [NodeCost]) -> (Vec<(&'a NodeCost, Vec<&'a PodKey>)>, bool) {
        let mut pending = Vec::new();
        let mut nodes = 0;
        for cost in costs {
            let open = cost.pods.iter();
            let open: Vec<&PodKey> = open.filter(|key| !self.says(key, cost.value)).collect();
            if open.is_empty() {
                continue;
            }
            if !cost.is_going() {
                nodes += 1;
            }
            if nodes > NODES_MAX {
                return (pending, false);
            }
            pending.push((cost, open));
        }
        (pending, true)
    }

    fn measure_pending(&self, pending: &[(&NodeCost, Vec<&PodKey>)]) {
        let mut by_pool: BTreeMap<&str, u32> = BTreeMap::new();
        for (cost, _) in pending {
            *by_pool.entry(&cost.pool).or_default() += 1;
        }
        let series = by_pool.into_iter().map(|(pool, nodes)| {
            let labels = vec![("nodepool", pool.to_owned())];
            (labels, f64::from(nodes))
        });
        replace(&self.shell.metrics.deletion_cost_pending_nodes, series);
    }

    /// Whether the pod says so already, whoever wrote it.
    fn says(&self, pod: &PodKey, value: Option<i32>) -> bool {
        let wanted = value.map(|it| it.to_string());
        self.shell.deletion_costs.says(pod, wanted.as_ref())
    }

    async fn write_cost(&self, key: &PodKey, value: Option<i32>) -> bool {
        let pods: Api<Pod> = Api::namespaced(self.shell.client.clone(), &key.namespace);
        let pod = match pods.get_opt(&key.name).await {
            Ok(Some(pod)) => pod,
            Ok(None) => return self.count_cost("skipped_notfound", true),
            Err(error) => {
                warn!(Pod = %key, %error, "reading a pod to rank it");
                return self.count_cost("error", false);
            }
        };
        let known = pod.annotations().get(labels::POD_DELETION_COST_ANNOTATION);
        let wanted = value.map(|it| it.to_string());
        let outcome = if known == wanted.as_ref() {
            Ok("skipped_unchanged")
        } else {
            let change = json!({"metadata": {
                "resourceVersion": pod.resource_version(),
                "annotations": {labels::POD_DELETION_COST_ANNOTATION: wanted},
            }});
            let params = PatchParams::default();
            let patched = pods.patch(&key.name, &params, &Patch::Merge(&change)).await;
            patched.map(|_| "updated")
        };
        match outcome {
            Ok(result) => self.count_cost(result, true),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.count_cost("skipped_notfound", true)
            }
            // Somebody else wrote; the next pass looks again.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.count_cost("skipped_conflict", false)
            }
            Err(error) => {
                warn!(Pod = %key, %error, "ranking a pod");
                self.count_cost("error", false)
            }
        }
    }

    fn count_cost(&self, result: &str, is_done: bool) -> bool {
        let labels = vec![("result", result.to_owned())];
        let counter = &self.shell.metrics.deletion_cost_writes;
        counter.get_or_create(&labels).inc();
        is_done
    }
}
