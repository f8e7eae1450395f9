//! Karpenter's metrics, as far as these controllers feed them: names, labels and buckets are byte for byte the
//! reference's, so dashboards and alerts keep working.
//!
//! Only the applying halves of controllers write here. Answers to `pkg/metrics/metrics.go`.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use disruption::Method;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::error::{ErrorClass, ReconcileError};
use crate::runtime::Action;

/// Label names and values of one series.
pub type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

const DURATION_BUCKETS: [f64; 44] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0, 120.0, 150.0, 300.0, 450.0,
];
const HOUR: f64 = 3600.0;
const LIFETIME_HOURS: [f64; 21] = [
    0.25, 0.5, 0.75, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 48.0, 72.0, 120.0,
    240.0, 360.0, 480.0, 600.0, 720.0,
];

fn durations() -> Histogram {
    Histogram::new(DURATION_BUCKETS.into_iter().chain([600.0]))
}

fn doubling_to_1024() -> Histogram {
    Histogram::new((0..=10).map(|exponent| f64::from(1_u32 << exponent)))
}

fn doubling_to_2048() -> Histogram {
    Histogram::new((0..=11).map(|exponent| f64::from(1_u32 << exponent)))
}

fn doubling_to_1280() -> Histogram {
    Histogram::new((0..8).map(|exponent| 10.0 * f64::from(1_u32 << exponent)))
}

fn scores() -> Histogram {
    Histogram::new([0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0])
}

fn lifetimes() -> Histogram {
    Histogram::new(LIFETIME_HOURS.into_iter().map(|hours| hours * HOUR))
}

fn library_default() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ])
}

/// A dashboard can tell "never" from "no such metric": the two kinds that Karpenter presets.
fn never_yet() -> Counters {
    let counters = Counters::default();
    for method in [
        Method::MultiNodeConsolidation,
        Method::SingleNodeConsolidation,
    ] {
        let kind = method.consolidation_type().to_owned();
        drop(counters.get_or_create(&vec![("consolidation_type", kind)]));
    }
    counters
}

fn histograms(constructor: fn() -> Histogram) -> Histograms {
    Family::new_with_constructor(constructor)
}

/// Every metric the controllers write.
#[derive(Debug)]
pub struct Metrics {
    /// `karpenter_nodeclaims_created_total{reason,nodepool,min_values_relaxed}`.
    pub node_claims_created: Counters,
    /// `karpenter_nodeclaims_terminated_total{nodepool,capacity_type,zone}`.
    pub node_claims_terminated: Counters,
    /// `karpenter_nodeclaims_disrupted_total{reason,nodepool,capacity_type,…}`.
    pub node_claims_disrupted: Counters,
    /// `karpenter_nodeclaims_unhealthy_disrupted_total{condition,nodepool,capacity_type,image_id,termination_mode}`.
    pub node_claims_unhealthy_disrupted: Counters,
    /// `karpenter_nodeclaims_instance_termination_duration_seconds{nodepool}`.
    pub instance_termination_seconds: Histograms,
    /// `karpenter_nodeclaims_termination_duration_seconds{nodepool}`.
    pub node_claim_termination_seconds: Histograms,
    /// `karpenter_nodes_created_total{nodepool,zone}`.
    pub nodes_created: Counters,
    /// `karpenter_nodes_terminated_total{nodepool,zone}`.
    pub nodes_terminated: Counters,
    /// `karpenter_nodes_drained_total{nodepool}`.
    pub nodes_drained: Counters,
    /// `karpenter_nodes_termination_duration_seconds{nodepool}`.
    pub node_termination_seconds: Histograms,
    /// `karpenter_nodes_lifetime_duration_seconds{nodepool}`.
    pub node_lifetime_seconds: Histograms,
    /// `karpenter_nodes_reboots_total{result}`.
    pub reboots: Counters,
    /// `karpenter_nodes_reboot_duration_seconds{result}`.
    pub reboot_seconds: Histograms,
    /// `karpenter_nodes_reboot_recovery_duration_seconds`.
    pub reboot_recovery_seconds: Histograms,
    /// `karpenter_pods_eviction_requests_total{code}`.
    pub eviction_requests: Counters,
    /// `karpenter_pods_drained_total{reason}`.
    pub pods_drained: Counters,
    /// `karpenter_pods_disruption_initiated_total{reason,nodepool,capacity_type,…}`.
    pub pods_disruption_initiated: Counters,
    /// `mortise_pods_nominated_total`.
    pub pods_nominated: Counter,
    /// `mortise_pods_off_plan_total`.
    pub pods_off_plan: Counter,
    /// `mortise_nodeclaims_off_plan_total`.
    pub node_claims_off_plan: Counter,
    /// `mortise_nodeclaims_off_plan_usd_per_hour`.
    pub off_plan_usd_per_hour: Gauge<f64, AtomicU64>,
    /// `karpenter_pods_scheduling_decision_duration_seconds`.
    pub pod_decision_seconds: Histograms,
    /// `karpenter_nodepools_limit{resource_type,nodepool}`.
    pub node_pool_limit: Gauges,
    /// `karpenter_nodepools_usage{resource_type,nodepool}`.
    pub node_pool_usage: Gauges,
    /// `karpenter_nodepools_allowed_disruptions{nodepool,reason}`.
    pub allowed_disruptions: Gauges,
    /// `mortise_policy_premium_usd_per_hour{nodepool,policy}`.
    pub policy_premium: Gauges,
    /// `karpenter_nodepools_nodes_consuming_budgets{nodepool,reason}`.
    pub nodes_consuming_budgets: Gauges,
    /// `karpenter_voluntary_disruption_decision_evaluation_duration_seconds{reason,consolidation_type}`.
    pub disruption_evaluation_seconds: Histograms,
    /// `karpenter_voluntary_disruption_decisions_total{decision,reason,consolidation_type}`.
    pub disruption_decisions: Counters,
    /// `karpenter_voluntary_disruption_decisions_by_nodepool_total{nodepool,decision,reason,consolidation_type}`.
    pub disruption_decisions_by_node_pool: Counters,
    /// `karpenter_voluntary_disruption_eligible_nodes{reason}`.
    pub disruption_eligible_nodes: Gauges,
    /// `karpenter_voluntary_disruption_consolidation_timeouts_total{consolidation_type}`.
    pub consolidation_timeouts: Counters,
    /// `karpenter_voluntary_disruption_failed_validations_total{consolidation_type}`.
    pub failed_validations: Counters,
    /// `karpenter_voluntary_disruption_queue_failures_total{decision,reason,consolidation_type}`.
    pub disruption_queue_failures: Counters,
    /// `karpenter_voluntary_disruption_terminate_first_decisions_total{nodepool,reason,terminate_first_reason}`.
    pub terminate_first_decisions: Counters,
    /// `karpenter_consolidation_moves_total{decision,nodepool,policy}`.
    pub consolidation_moves: Counters,
    /// `karpenter_consolidation_score{decision,nodepool,policy}`.
    pub consolidation_score: Histograms,
    /// `karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes{nodepool}`.
    pub deletion_cost_pending_nodes: Gauges,
    /// `karpenter_pod_deletion_cost_pod_annotation_writes_total{result}`.
    pub deletion_cost_writes: Counters,
    /// `karpenter_interruption_received_messages_total{message_type}`.
    pub interruption_received: Counters,
    /// `karpenter_interruption_deleted_messages_total`.
    pub interruption_deleted: Counters,
    /// `karpenter_interruption_instance_status_unhealthy_total{category}`.
    pub instance_status_unhealthy: Counters,
    /// `karpenter_interruption_message_queue_duration_seconds`.
    pub interruption_queue_seconds: Histograms,
    /// `karpenter_scheduler_scheduling_duration_seconds{controller}`.
    pub scheduling_seconds: Histograms,
    /// `karpenter_scheduler_queue_depth{controller}`; the deprecated scheduling id is not a label here.
    pub scheduler_queue_depth: Gauges,
    /// `karpenter_scheduler_ignored_pods_count`.
    pub ignored_pods: Gauges,
    /// `karpenter_scheduler_unschedulable_pods_count{controller}`.
    pub unschedulable_pods: Gauges,
    /// `karpenter_cluster_state_node_count`.
    pub state_node_count: Gauges,
    /// `karpenter_cluster_state_synced`.
    pub state_synced: Gauges,
    /// `karpenter_cluster_state_unsynced_time_seconds`.
    pub state_unsynced_seconds: Gauges,
    /// `karpenter_cloudprovider_duration_seconds{controller,method,provider}`.
    pub cloud_seconds: Histograms,
    /// `karpenter_cloudprovider_errors_total{controller,method,provider,error}`.
    pub cloud_errors: Counters,
    /// `controller_runtime_reconcile_total{controller,result}`.
    pub reconciles: Counters,
    /// `controller_runtime_reconcile_errors_total{controller}`.
    pub reconcile_errors: Counters,
    /// `controller_runtime_reconcile_time_seconds{controller}`.
    pub reconcile_seconds: Histograms,
}

impl Metrics {
    /// Makes the metrics; [`Self::register`] shows them.
    pub fn new() -> Self {
        Self {
            node_claims_created: Counters::default(),
            node_claims_terminated: Counters::default(),
            node_claims_disrupted: Counters::default(),
            node_claims_unhealthy_disrupted: Counters::default(),
            instance_termination_seconds: histograms(doubling_to_1024),
            node_claim_termination_seconds: histograms(doubling_to_2048),
            nodes_created: Counters::default(),
            nodes_terminated: Counters::default(),
            nodes_drained: Counters::default(),
            node_termination_seconds: histograms(doubling_to_2048),
            node_lifetime_seconds: histograms(lifetimes),
            reboots: Counters::default(),
            reboot_seconds: histograms(doubling_to_1280),
            reboot_recovery_seconds: histograms(doubling_to_1280),
            eviction_requests: Counters::default(),
            pods_drained: Counters::default(),
            pods_disruption_initiated: Counters::default(),
            pods_nominated: Counter::default(),
            pods_off_plan: Counter::default(),
            node_claims_off_plan: Counter::default(),
            off_plan_usd_per_hour: Gauge::default(),
            pod_decision_seconds: histograms(durations),
            node_pool_limit: Gauges::default(),
            node_pool_usage: Gauges::default(),
            allowed_disruptions: Gauges::default(),
            nodes_consuming_budgets: Gauges::default(),
            policy_premium: Gauges::default(),
            disruption_evaluation_seconds: histograms(durations),
            disruption_decisions: Counters::default(),
            disruption_decisions_by_node_pool: Counters::default(),
            disruption_eligible_nodes: Gauges::default(),
            consolidation_timeouts: never_yet(),
            failed_validations: Counters::default(),
            disruption_queue_failures: Counters::default(),
            terminate_first_decisions: Counters::default(),
            consolidation_moves: Counters::default(),
            consolidation_score: histograms(scores),
            deletion_cost_pending_nodes: Gauges::default(),
            deletion_cost_writes: Counters::default(),
            interruption_received: Counters::default(),
            interruption_deleted: Counters::default(),
            instance_status_unhealthy: Counters::default(),
            interruption_queue_seconds: histograms(durations),
            scheduling_seconds: histograms(durations),
            scheduler_queue_depth: Gauges::default(),
            ignored_pods: Gauges::default(),
            unschedulable_pods: Gauges::default(),
            state_node_count: Gauges::default(),
            state_synced: Gauges::default(),
            state_unsynced_seconds: Gauges::default(),
            cloud_seconds: histograms(library_default),
            cloud_errors: Counters::default(),
            reconciles: Counters::default(),
            reconcile_errors: Counters::default(),
            reconcile_seconds: histograms(durations),
        }
    }

    /// Puts every metric under its name. The text encoder adds `_total` to counters.
    pub fn register(&self, registry: &mut Registry) {
        self.register_counters(registry);
        self.register_counters_of_plans(registry);
        self.register_disruption_counters(registry);
        self.register_counters_of_the_world_outside(registry);
        self.register_gauges(registry);
        self.register_histograms(registry);
    }

    fn register_counters(&self, registry: &mut Registry) {
        let counters = [
            (
                "karpenter_nodeclaims_created",
                "NodeClaims created",
                &self.node_claims_created,
            ),
            (
                "karpenter_nodeclaims_terminated",
                "NodeClaims terminated",
                &self.node_claims_terminated,
            ),
            (
                "karpenter_nodeclaims_disrupted",
                "NodeClaims disrupted",
                &self.node_claims_disrupted,
            ),
            (
                "karpenter_nodeclaims_unhealthy_disrupted",
                "NodeClaims disrupted because their node was sick",
                &self.node_claims_unhealthy_disrupted,
            ),
            (
                "karpenter_nodes_created",
                "Nodes that registered",
                &self.nodes_created,
            ),
            (
                "karpenter_nodes_terminated",
                "Nodes terminated",
                &self.nodes_terminated,
            ),
            (
                "karpenter_nodes_drained",
                "Nodes drained",
                &self.nodes_drained,
            ),
            (
                "karpenter_nodes_reboots",
                "Reboots of sick nodes",
                &self.reboots,
            ),
            (
                "karpenter_pods_eviction_requests",
                "Answers of the Eviction API",
                &self.eviction_requests,
            ),
            ("karpenter_pods_drained", "Pods drained", &self.pods_drained),
            (
                "karpenter_pods_disruption_initiated",
                "Reschedulable pods on disrupted NodeClaims",
                &self.pods_disruption_initiated,
            ),
        ];
        register_all(registry, counters);
    }

    /// What became of plans.
    fn register_counters_of_plans(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            (
                "mortise_pods_nominated",
                "Pods nominated to the node planned for them",
                &self.pods_nominated,
            ),
            (
                "mortise_pods_off_plan",
                "Pods that the scheduler bound to another node than the one planned for them",
                &self.pods_off_plan,
            ),
            (
                "mortise_nodeclaims_off_plan",
                "NodeClaims opened for pods whose place was taken by others",
                &self.node_claims_off_plan,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "mortise_nodeclaims_off_plan_usd_per_hour",
            "What those NodeClaims cost together when they were opened",
            self.off_plan_usd_per_hour.clone(),
        );
    }

    fn register_disruption_counters(&self, registry: &mut Registry) {
        let counters = [
            (
                "karpenter_voluntary_disruption_decisions",
                "Disruption commands started",
                &self.disruption_decisions,
            ),
            (
                "karpenter_voluntary_disruption_decisions_by_nodepool",
                "Disruption commands started, for each NodePool",
                &self.disruption_decisions_by_node_pool,
            ),
            (
                "karpenter_voluntary_disruption_consolidation_timeouts",
                "Consolidation scans cut short",
                &self.consolidation_timeouts,
            ),
            (
                "karpenter_voluntary_disruption_failed_validations",
                "Candidates that failed validation",
                &self.failed_validations,
            ),
            (
                "karpenter_voluntary_disruption_queue_failures",
                "Disruption commands that failed",
                &self.disruption_queue_failures,
            ),
            (
                "karpenter_voluntary_disruption_terminate_first_decisions",
                "Nodes that go before their replacement comes",
                &self.terminate_first_decisions,
            ),
            (
                "karpenter_consolidation_moves",
                "Moves of consolidation that were judged",
                &self.consolidation_moves,
            ),
            (
                "karpenter_pod_deletion_cost_pod_annotation_writes",
                "Deletion costs written to pods, or not",
                &self.deletion_cost_writes,
            ),
        ];
        register_all(registry, counters);
    }

    fn register_counters_of_the_world_outside(&self, registry: &mut Registry) {
        let counters = [
            (
                "karpenter_interruption_received_messages",
                "Interruption notices received",
                &self.interruption_received,
            ),
            (
                "karpenter_interruption_instance_status_unhealthy",
                "Instances the cloud finds unhealthy, once for each time and kind of trouble",
                &self.instance_status_unhealthy,
            ),
            (
                "karpenter_interruption_deleted_messages",
                "Interruption notices taken off the queue",
                &self.interruption_deleted,
            ),
            (
                "karpenter_cloudprovider_errors",
                "Errors of the cloud provider",
                &self.cloud_errors,
            ),
            (
                "controller_runtime_reconcile",
                "Reconciles",
                &self.reconciles,
            ),
            (
                "controller_runtime_reconcile_errors",
                "Failed reconciles",
                &self.reconcile_errors,
            ),
        ];
        register_all(registry, counters);
    }

    fn register_gauges(&self, registry: &mut Registry) {
        let gauges = [
            (
                "karpenter_nodepools_limit",
                "Limits of the NodePool",
                &self.node_pool_limit,
            ),
            (
                "karpenter_nodepools_usage",
                "Resources of the NodePool's nodes",
                &self.node_pool_usage,
            ),
            (
                "karpenter_nodepools_allowed_disruptions",
                "Disruptions the budgets allow",
                &self.allowed_disruptions,
            ),
            (
                "mortise_policy_premium_usd_per_hour",
                "What the nodes that there are cost more, by list price at their launch, than the default's choice",
                &self.policy_premium,
            ),
            (
                "karpenter_nodepools_nodes_consuming_budgets",
                "Nodes not ready or deleting",
                &self.nodes_consuming_budgets,
            ),
            (
                "karpenter_voluntary_disruption_eligible_nodes",
                "Candidates of the last run",
                &self.disruption_eligible_nodes,
            ),
            (
                "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes",
                "Nodes with deletion costs to write in the last pass",
                &self.deletion_cost_pending_nodes,
            ),
            (
                "karpenter_scheduler_queue_depth",
                "Pods left in the pass",
                &self.scheduler_queue_depth,
            ),
            (
                "karpenter_scheduler_ignored_pods_count",
                "Pods failing validation",
                &self.ignored_pods,
            ),
            (
                "karpenter_scheduler_unschedulable_pods_count",
                "Pods without a place",
                &self.unschedulable_pods,
            ),
            (
                "karpenter_cluster_state_node_count",
                "Nodes in cluster state",
                &self.state_node_count,
            ),
            (
                "karpenter_cluster_state_synced",
                "Whether cluster state is synced",
                &self.state_synced,
            ),
            (
                "karpenter_cluster_state_unsynced_time_seconds",
                "How long cluster state has not been synced",
                &self.state_unsynced_seconds,
            ),
        ];
        register_all(registry, gauges);
    }

    fn register_histograms(&self, registry: &mut Registry) {
        let histograms = [
            (
                "karpenter_nodeclaims_instance_termination_duration_seconds",
                "Time an instance took to terminate",
                &self.instance_termination_seconds,
            ),
            (
                "karpenter_nodeclaims_termination_duration_seconds",
                "Time a NodeClaim took to terminate",
                &self.node_claim_termination_seconds,
            ),
            (
                "karpenter_nodes_termination_duration_seconds",
                "Time a node took to terminate",
                &self.node_termination_seconds,
            ),
            (
                "karpenter_nodes_lifetime_duration_seconds",
                "Age of nodes at termination",
                &self.node_lifetime_seconds,
            ),
            (
                "karpenter_nodes_reboot_duration_seconds",
                "Time from the decision to reboot a node to its end",
                &self.reboot_seconds,
            ),
            (
                "karpenter_nodes_reboot_recovery_duration_seconds",
                "Time a node was away to reboot",
                &self.reboot_recovery_seconds,
            ),
            (
                "karpenter_pods_scheduling_decision_duration_seconds",
                "Time from a pod first seen to its first decision",
                &self.pod_decision_seconds,
            ),
            (
                "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
                "Time of one disruption method",
                &self.disruption_evaluation_seconds,
            ),
            (
                "karpenter_consolidation_score",
                "Scores of moves that take nodes of Balanced NodePools",
                &self.consolidation_score,
            ),
            (
                "karpenter_scheduler_scheduling_duration_seconds",
                "Time of one simulation",
                &self.scheduling_seconds,
            ),
            (
                "karpenter_interruption_message_queue_duration_seconds",
                "Time from an event to the receipt of its notice",
                &self.interruption_queue_seconds,
            ),
            (
                "karpenter_cloudprovider_duration_seconds",
                "Time of calls to the cloud provider",
                &self.cloud_seconds,
            ),
            (
                "controller_runtime_reconcile_time_seconds",
                "Time of reconciles",
                &self.reconcile_seconds,
            ),
        ];
        register_all(registry, histograms);
    }

    pub(crate) fn reconciled(
        &self,
        controller: &'static str,
        took: Duration,
        outcome: &Result<Action, ReconcileError>,
    ) {
        let result = match outcome {
            Ok(Action::Await) => "success",
            Ok(Action::RequeueAfter(_)) => "requeue_after",
            Err(error) => match error.class() {
                ErrorClass::Gone => "success",
                ErrorClass::Retry => "requeue",
                ErrorClass::Fault | ErrorClass::Terminal => "error",
            },
        };
        let controller = ("controller", controller.to_owned());
        if result == "error" {
            self.reconcile_errors
                .get_or_create(&vec![controller.clone()])
                .inc();
        }
        self.reconcile_seconds
            .get_or_create(&vec![controller.clone()])
            .observe(took.as_secs_f64());
        self.reconciles
            .get_or_create(&vec![controller, ("result", result.to_owned())])
            .inc();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

fn register_all<M, const N: usize>(
    registry: &mut Registry,
    families: [(&'static str, &'static str, &M); N],
) where
    M: prometheus_client::registry::Metric + Clone,
{
    for (name, help, family) in families {
        registry.register(name, help, family.clone());
    }
}

/// Shows these series and no others: what is no more must not be seen for ever.
pub(crate) fn replace(gauges: &Gauges, series: impl IntoIterator<Item = (Labels, f64)>) {
    gauges.clear();
    for (labels, value) in series {
        gauges.get_or_create(&labels).set(value);
    }
}

/// Words of the API as label values are written.
pub(crate) fn snake_case(words: &str) -> String {
    let mut snake = String::new();
    for (position, letter) in words.char_indices() {
        if letter.is_uppercase() && position > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `cpu` in cores, everything else in base units, under the lower-cased name with underscores.
pub(crate) fn resource_type(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_snake_case() {
        let cases = [
            ("WhenEmptyOrUnderutilized", "when_empty_or_underutilized"),
            ("Drifted", "drifted"),
        ];
        for (words, snake) in cases {
            assert_eq!(snake_case(words), snake);
        }
    }
}
