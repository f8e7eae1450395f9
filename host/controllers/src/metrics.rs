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
use crate::runtime::action::Action;

/// Label names and values of one series.
pub type SeriesLabels = Vec<(&'static str, String)>;
type CounterFamily = Family<SeriesLabels, Counter>;
type Gauges = Family<SeriesLabels, Gauge<f64, AtomicU64>>;
type Histograms = Family<SeriesLabels, Histogram, fn() -> Histogram>;

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
fn never_yet() -> CounterFamily {
    let counters = CounterFamily::default();
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

/// One row a metric: its field and type, how it is made, its name and its help text.
macro_rules! metrics {
    ($($(#[$labels:meta])* $field:ident: $kind:ty = $made:expr, $name:literal, $help:literal;)*) => {
        /// Every metric the controllers write.
        #[derive(Debug)]
        pub struct Metrics {
            $(
                #[doc = concat!("`", $name, "`: ", $help, ".\n")]
                $(#[$labels])*
                pub $field: $kind,
            )*
        }

        impl Metrics {
            /// Makes the metrics; [`Self::register`] shows them.
            pub fn new() -> Self {
                Self {
                    $($field: $made,)*
                }
            }

            /// Puts every metric under its name. The text encoder adds `_total` to counters.
            pub fn register(&self, registry: &mut Registry) {
                $(registry.register($name, $help, self.$field.clone());)*
            }
        }
    };
}

metrics! {
    /// Labels: `reason`, `nodepool`, `min_values_relaxed`.
    node_claims_created: CounterFamily = CounterFamily::default(), "karpenter_nodeclaims_created", "NodeClaims created";
    /// Labels: `nodepool`, `capacity_type`, `zone`.
    node_claims_terminated: CounterFamily = CounterFamily::default(), "karpenter_nodeclaims_terminated", "NodeClaims terminated";
    /// Labels: `reason`, `nodepool`, `capacity_type`, `consolidation_policy`, `termination_mode`.
    node_claims_disrupted: CounterFamily = CounterFamily::default(), "karpenter_nodeclaims_disrupted", "NodeClaims disrupted";
    /// Labels: `condition`, `nodepool`, `capacity_type`, `image_id`, `termination_mode`.
    node_claims_unhealthy_disrupted: CounterFamily = CounterFamily::default(), "karpenter_nodeclaims_unhealthy_disrupted", "NodeClaims disrupted because their node was sick";
    /// Labels: `nodepool`.
    instance_termination_seconds: Histograms = histograms(doubling_to_1024), "karpenter_nodeclaims_instance_termination_duration_seconds", "Time an instance took to terminate";
    /// Labels: `nodepool`.
    node_claim_termination_seconds: Histograms = histograms(doubling_to_2048), "karpenter_nodeclaims_termination_duration_seconds", "Time a NodeClaim took to terminate";
    /// Labels: `nodepool`, `zone`.
    nodes_created: CounterFamily = CounterFamily::default(), "karpenter_nodes_created", "Nodes that registered";
    /// Labels: `nodepool`, `zone`.
    nodes_terminated: CounterFamily = CounterFamily::default(), "karpenter_nodes_terminated", "Nodes terminated";
    /// Labels: `nodepool`.
    nodes_drained: CounterFamily = CounterFamily::default(), "karpenter_nodes_drained", "Nodes drained";
    /// Labels: `nodepool`.
    node_termination_seconds: Histograms = histograms(doubling_to_2048), "karpenter_nodes_termination_duration_seconds", "Time a node took to terminate";
    /// Labels: `nodepool`.
    node_lifetime_seconds: Histograms = histograms(lifetimes), "karpenter_nodes_lifetime_duration_seconds", "Age of nodes at termination";
    /// Labels: `result`.
    reboots: CounterFamily = CounterFamily::default(), "karpenter_nodes_reboots", "Reboots of sick nodes";
    /// Labels: `result`.
    reboot_seconds: Histograms = histograms(doubling_to_1280), "karpenter_nodes_reboot_duration_seconds", "Time from the decision to reboot a node to its end";
    /// No labels.
    reboot_recovery_seconds: Histograms = histograms(doubling_to_1280), "karpenter_nodes_reboot_recovery_duration_seconds", "Time a node was away to reboot";
    /// Labels: `code`.
    eviction_requests: CounterFamily = CounterFamily::default(), "karpenter_pods_eviction_requests", "Answers of the Eviction API";
    /// Labels: `reason`.
    pods_drained: CounterFamily = CounterFamily::default(), "karpenter_pods_drained", "Pods drained";
    /// Labels: `reason`, `nodepool`, `capacity_type`, `consolidation_policy`, `termination_mode`.
    pods_disruption_initiated: CounterFamily = CounterFamily::default(), "karpenter_pods_disruption_initiated", "Reschedulable pods on disrupted NodeClaims";
    /// No labels.
    pods_nominated: Counter = Counter::default(), "mortise_pods_nominated", "Pods nominated to the node planned for them";
    /// No labels.
    pods_off_plan: Counter = Counter::default(), "mortise_pods_off_plan", "Pods that the scheduler bound to another node than the one planned for them";
    /// No labels.
    node_claims_off_plan: Counter = Counter::default(), "mortise_nodeclaims_off_plan", "NodeClaims opened for pods whose place was taken by others";
    /// No labels.
    off_plan_usd_per_hour: Gauge<f64, AtomicU64> = Gauge::default(), "mortise_nodeclaims_off_plan_usd_per_hour", "What those NodeClaims cost together when they were opened";
    /// No labels.
    pod_decision_seconds: Histograms = histograms(durations), "karpenter_pods_scheduling_decision_duration_seconds", "Time from a pod first seen to its first decision";
    /// Labels: `resource_type`, `nodepool`.
    node_pool_limit: Gauges = Gauges::default(), "karpenter_nodepools_limit", "Limits of the NodePool";
    /// Labels: `resource_type`, `nodepool`.
    node_pool_usage: Gauges = Gauges::default(), "karpenter_nodepools_usage", "Resources of the NodePool's nodes";
    /// Labels: `nodepool`, `reason`.
    allowed_disruptions: Gauges = Gauges::default(), "karpenter_nodepools_allowed_disruptions", "Disruptions the budgets allow";
    /// Labels: `nodepool`, `policy`.
    policy_premium: Gauges = Gauges::default(), "mortise_policy_premium_usd_per_hour", "What the nodes that there are cost more, by list price at their launch, than the default's choice";
    /// Labels: `nodepool`, `reason`.
    nodes_consuming_budgets: Gauges = Gauges::default(), "karpenter_nodepools_nodes_consuming_budgets", "Nodes not ready or deleting";
    /// Labels: `reason`, `consolidation_type`.
    disruption_evaluation_seconds: Histograms = histograms(durations), "karpenter_voluntary_disruption_decision_evaluation_duration_seconds", "Time of one disruption method";
    /// Labels: `decision`, `reason`, `consolidation_type`.
    disruption_decisions: CounterFamily = CounterFamily::default(), "karpenter_voluntary_disruption_decisions", "Disruption commands started";
    /// Labels: `nodepool`, `decision`, `reason`, `consolidation_type`.
    disruption_decisions_by_node_pool: CounterFamily = CounterFamily::default(), "karpenter_voluntary_disruption_decisions_by_nodepool", "Disruption commands started, for each NodePool";
    /// Labels: `reason`.
    disruption_eligible_nodes: Gauges = Gauges::default(), "karpenter_voluntary_disruption_eligible_nodes", "Candidates of the last run";
    /// Labels: `consolidation_type`.
    consolidation_timeouts: CounterFamily = never_yet(), "karpenter_voluntary_disruption_consolidation_timeouts", "Consolidation scans cut short";
    /// Labels: `consolidation_type`.
    failed_validations: CounterFamily = CounterFamily::default(), "karpenter_voluntary_disruption_failed_validations", "Candidates that failed validation";
    /// Labels: `decision`, `reason`, `consolidation_type`.
    disruption_queue_failures: CounterFamily = CounterFamily::default(), "karpenter_voluntary_disruption_queue_failures", "Disruption commands that failed";
    /// Labels: `nodepool`, `reason`, `terminate_first_reason`.
    terminate_first_decisions: CounterFamily = CounterFamily::default(), "karpenter_voluntary_disruption_terminate_first_decisions", "Nodes that go before their replacement comes";
    /// Labels: `decision`, `nodepool`, `policy`.
    consolidation_moves: CounterFamily = CounterFamily::default(), "karpenter_consolidation_moves", "Moves of consolidation that were judged";
    /// Labels: `decision`, `nodepool`, `policy`.
    consolidation_score: Histograms = histograms(scores), "karpenter_consolidation_score", "Scores of moves that take nodes of Balanced NodePools";
    /// Labels: `nodepool`.
    deletion_cost_pending_nodes: Gauges = Gauges::default(), "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes", "Nodes with deletion costs to write in the last pass";
    /// Labels: `result`.
    deletion_cost_writes: CounterFamily = CounterFamily::default(), "karpenter_pod_deletion_cost_pod_annotation_writes", "Deletion costs written to pods, or not";
    /// Labels: `message_type`.
    interruption_received: CounterFamily = CounterFamily::default(), "karpenter_interruption_received_messages", "Interruption notices received";
    /// No labels.
    interruption_deleted: CounterFamily = CounterFamily::default(), "karpenter_interruption_deleted_messages", "Interruption notices taken off the queue";
    /// Labels: `category`.
    instance_status_unhealthy: CounterFamily = CounterFamily::default(), "karpenter_interruption_instance_status_unhealthy", "Instances the cloud finds unhealthy, once for each time and kind of trouble";
    /// No labels.
    interruption_queue_seconds: Histograms = histograms(durations), "karpenter_interruption_message_queue_duration_seconds", "Time from an event to the receipt of its notice";
    /// Labels: `controller`.
    scheduling_seconds: Histograms = histograms(durations), "karpenter_scheduler_scheduling_duration_seconds", "Time of one simulation";
    /// Labels: `controller`; the deprecated scheduling id is not a label here.
    scheduler_queue_depth: Gauges = Gauges::default(), "karpenter_scheduler_queue_depth", "Pods left in the pass";
    /// No labels.
    ignored_pods: Gauges = Gauges::default(), "karpenter_scheduler_ignored_pods_count", "Pods failing validation";
    /// Labels: `controller`.
    unschedulable_pods: Gauges = Gauges::default(), "karpenter_scheduler_unschedulable_pods_count", "Pods without a place";
    /// No labels.
    state_node_count: Gauges = Gauges::default(), "karpenter_cluster_state_node_count", "Nodes in cluster state";
    /// No labels.
    state_synced: Gauges = Gauges::default(), "karpenter_cluster_state_synced", "Whether cluster state is synced";
    /// No labels.
    state_unsynced_seconds: Gauges = Gauges::default(), "karpenter_cluster_state_unsynced_time_seconds", "How long cluster state has not been synced";
    /// Labels: `controller`, `method`, `provider`.
    cloud_seconds: Histograms = histograms(library_default), "karpenter_cloudprovider_duration_seconds", "Time of calls to the cloud provider";
    /// Labels: `controller`, `method`, `provider`, `error`.
    cloud_errors: CounterFamily = CounterFamily::default(), "karpenter_cloudprovider_errors", "Errors of the cloud provider";
    /// Labels: `controller`, `result`.
    reconciles: CounterFamily = CounterFamily::default(), "controller_runtime_reconcile", "Reconciles";
    /// Labels: `controller`.
    reconcile_errors: CounterFamily = CounterFamily::default(), "controller_runtime_reconcile_errors", "Failed reconciles";
    /// Labels: `controller`.
    reconcile_seconds: Histograms = histograms(durations), "controller_runtime_reconcile_time_seconds", "Time of reconciles";
}

impl Metrics {
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

/// Shows these series and no others: what is no more must not be seen for ever.
pub(crate) fn replace(gauges: &Gauges, series: impl IntoIterator<Item = (SeriesLabels, f64)>) {
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
