//! Karpenter's metrics, as far as these controllers feed them: names, labels and buckets are byte for byte
//! Karpenter's, so dashboards and alerts keep working. What Karpenter does not count has a name of `mortise_`.
//!
//! Only the applying halves of controllers write here. Answers to `pkg/metrics/metrics.go`.

pub(crate) mod buckets;
pub(crate) mod conditions;
pub(crate) mod labels;
pub(crate) mod summary;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disruption::Method;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use state::ledger::{OutcomeId, Record};
use tokio::time::Instant;

use crate::shell::action::Action;
use crate::shell::error::{ErrorClass, ReconcileError};
use crate::shell::log_values::number_round;
use crate::shell::work_queue::QueueMeter;
use buckets::{
    Histograms, doubling_to_1024, doubling_to_1280, doubling_to_2048, durations, histograms,
    library_default, lifetimes, queue_times, reconciles, scores,
};
use conditions::ConditionMetrics;
use labels::Label;
use summary::QuantileSummaries;

pub use labels::Labels;
pub(crate) use labels::{
    consolidation_type_label, controller_label, reason_label, reason_word, resource_type,
    snake_case,
};

type CounterFamily = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// A dashboard can tell "never" from "no such metric": the two kinds that Karpenter presets.
fn never_yet() -> CounterFamily {
    let counters = CounterFamily::default();
    for method in [
        Method::MultiNodeConsolidation,
        Method::SingleNodeConsolidation,
    ] {
        drop(counters.get_or_create(&vec![consolidation_type_label(method)]));
    }
    counters
}

/// A metric as the book has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetricRow {
    /// Without the ending of counters.
    pub(crate) name: &'static str,
    /// What it is scraped as.
    pub(crate) kind: MetricType,
    /// Such as "Labels: `nodepool`." or "No labels."
    pub(crate) labels: &'static str,
    pub(crate) help: &'static str,
}

/// One row a metric: its labels, its field and type, how it is made, its name and its help text. The row is all there
/// is to write beside the place that counts: `just tables` writes docs/metrics.md. A counter `of` an outcome is the
/// number of the ledger's records with it, and counts by itself.
macro_rules! metrics {
    ($(#[doc = $labels:literal] $field:ident: $kind:ty = $made:expr, $name:literal, $help:literal $(, of $outcome:ident)?;)*) => {
        /// Every metric the controllers write.
        #[derive(Debug)]
        pub struct Metrics {
            $(
                #[doc = concat!("`", $name, "`: ", $help, ".\n")]
                #[doc = $labels]
                pub $field: $kind,
            )*
            /// Those of conditions.
            pub conditions: ConditionMetrics,
            /// Rounds of controllers without a queue that have begun; log lines bear the number.
            rounds: AtomicU64,
        }

        impl Metrics {
            /// Every row.
            pub(crate) const ROWS: &[MetricRow] = &[$(MetricRow {
                name: $name,
                kind: <$kind as TypedMetric>::TYPE,
                labels: $labels,
                help: $help,
            },)*];

            /// Makes the metrics; [`Self::register`] shows them.
            pub fn new() -> Self {
                Self {
                    $($field: $made,)*
                    conditions: ConditionMetrics::default(),
                    rounds: AtomicU64::new(0),
                }
            }

            /// Counts what the ledger is told.
            pub(crate) fn count(&self, record: &Record) {
                let outcome = record.outcome();
                $($(if outcome == Some(OutcomeId::$outcome) {
                    self.$field.inc();
                })?)*
            }

            /// Puts every metric under its name. The text encoder adds `_total` to counters.
            pub fn register(&self, registry: &mut Registry) {
                $(registry.register($name, $help, self.$field.clone());)*
                self.conditions.register(registry);
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
    node_termination_seconds: QuantileSummaries = QuantileSummaries::default(), "karpenter_nodes_termination_duration_seconds", "Time a node took to terminate";
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
    pods_off_plan: Counter = Counter::default(), "mortise_pods_off_plan", "Pods that the scheduler bound to another node than the one planned for them", of PodOffPlan;
    /// No labels.
    node_claims_off_plan: Counter = Counter::default(), "mortise_nodeclaims_off_plan", "NodeClaims opened for pods whose place was taken by others";
    /// No labels.
    off_plan_usd_per_hour: Gauge<f64, AtomicU64> = Gauge::default(), "mortise_nodeclaims_off_plan_usd_per_hour", "What those NodeClaims cost together when they were opened";
    /// No labels.
    pod_decision_seconds: Histograms = histograms(durations), "karpenter_pods_scheduling_decision_duration_seconds", "Time from a pod first seen to its first decision";
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
    /// No labels.
    ignored_pods: Gauges = Gauges::default(), "karpenter_scheduler_ignored_pods_count", "Pods failing validation";
    /// Labels: `controller`.
    unschedulable_pods: Gauges = Gauges::default(), "karpenter_scheduler_unschedulable_pods_count", "Pods without a place";
    /// Labels: `controller`, `method`, `provider`.
    cloud_seconds: Histograms = histograms(library_default), "karpenter_cloudprovider_duration_seconds", "Time of calls to the cloud provider";
    /// Labels: `controller`, `method`, `provider`, `error`, `nodepool`.
    cloud_errors: CounterFamily = CounterFamily::default(), "karpenter_cloudprovider_errors", "Errors of the cloud provider";
    /// Labels: `controller`, `zone`.
    pending_pods_by_zone: Gauges = Gauges::default(), "karpenter_scheduler_pending_pods_by_effective_zone_count", "Pending pods by the one zone that they can run in, `flexible` or `none`";
    /// No labels.
    pod_startup_seconds: QuantileSummaries = QuantileSummaries::default(), "karpenter_pods_startup_duration_seconds", "Time from the creation of a pod until it is ready";
    /// Labels: `dynamic_resources`.
    pod_bound_seconds: Histograms = histograms(durations), "karpenter_pods_bound_duration_seconds", "Time from the creation of a pod until it is bound";
    /// No labels.
    pod_provisioning_startup_seconds: Histograms = histograms(durations), "karpenter_pods_provisioning_startup_duration_seconds", "Time from the first place found for a pod until it is ready";
    /// Labels: `dynamic_resources`.
    pod_provisioning_bound_seconds: Histograms = histograms(durations), "karpenter_pods_provisioning_bound_duration_seconds", "Time from the first place found for a pod until it is bound";
    /// Labels: `nodepool`.
    cost_tracker_errors: CounterFamily = CounterFamily::default(), "karpenter_nodepools_cost_tracker_errors", "Nodes whose price was not known when the cost of the NodePool was summed up";
    /// Labels: `controller`, `result`.
    reconciles: CounterFamily = CounterFamily::default(), "controller_runtime_reconcile", "Reconciles";
    /// Labels: `controller`.
    reconcile_errors: CounterFamily = CounterFamily::default(), "controller_runtime_reconcile_errors", "Failed reconciles";
    /// Labels: `controller`.
    terminal_errors: CounterFamily = CounterFamily::default(), "controller_runtime_terminal_reconcile_errors", "Reconciles that failed for good";
    /// Labels: `controller`.
    reconcile_panics: CounterFamily = CounterFamily::default(), "controller_runtime_reconcile_panics", "Reconciles that died of a bug";
    /// Labels: `controller`.
    reconcile_timeouts: CounterFamily = CounterFamily::default(), "controller_runtime_reconcile_timeouts", "Reconciles cut off; none is, as each request has a time limit of its own";
    /// No labels.
    webhook_panics: Counter = Counter::default(), "controller_runtime_conversion_webhook_panics", "Conversions of objects that died of a bug; there are none";
    /// Labels: `controller`.
    reconcile_seconds: Histograms = histograms(reconciles), "controller_runtime_reconcile_time_seconds", "Time of reconciles";
    /// Labels: `controller`.
    reconciles_at_once: Gauges = Gauges::default(), "controller_runtime_max_concurrent_reconciles", "Reconciles at one time, at most";
    /// Labels: `controller`.
    active_workers: Gauges = Gauges::default(), "controller_runtime_active_workers", "Reconciles at work";
    /// Labels: `name`, `controller`.
    queue_adds: CounterFamily = CounterFamily::default(), "workqueue_adds", "Keys added to the queue";
    /// Labels: `name`, `controller`.
    queue_retries: CounterFamily = CounterFamily::default(), "workqueue_retries", "Keys put back as their reconcile failed";
    /// Labels: `name`, `controller`.
    queue_seconds: Histograms = histograms(queue_times), "workqueue_queue_duration_seconds", "Time of a key in the queue";
    /// Labels: `name`, `controller`.
    work_seconds: Histograms = histograms(queue_times), "workqueue_work_duration_seconds", "Time of work on a key";
}

/// How controller-runtime calls what came of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReconcileResult {
    Success,
    RequeueAfter,
    Requeue,
    Error,
}

impl ReconcileResult {
    const ALL: [Self; 4] = [
        Self::Success,
        Self::RequeueAfter,
        Self::Requeue,
        Self::Error,
    ];

    fn of(outcome: &Result<Action, ReconcileError>) -> Self {
        match outcome {
            Ok(Action::Await) => Self::Success,
            Ok(Action::RequeueAfter(_)) => Self::RequeueAfter,
            Err(error) => match error.class() {
                ErrorClass::Gone => Self::Success,
                ErrorClass::Retry => Self::Requeue,
                ErrorClass::Fault | ErrorClass::Terminal => Self::Error,
            },
        }
    }

    fn label(self) -> Label {
        let word = match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Requeue => "requeue",
            Self::Error => "error",
        };
        ("result", word.to_owned())
    }
}

impl Metrics {
    pub(crate) fn reconciled(
        &self,
        controller: &'static str,
        took: Duration,
        outcome: &Result<Action, ReconcileError>,
    ) {
        let result = ReconcileResult::of(outcome);
        let class = outcome.as_ref().err().map(ReconcileError::class);
        let is_terminal = class == Some(ErrorClass::Terminal);
        let is_panic = matches!(outcome, Err(ReconcileError::Panicked));
        let controller = vec![controller_label(controller)];
        for (counters, counts) in [
            (&self.reconcile_errors, result == ReconcileResult::Error),
            (&self.terminal_errors, is_terminal),
            (&self.reconcile_panics, is_panic),
        ] {
            if counts {
                counters.get_or_create(&controller).inc();
            }
        }
        let seconds = &self.reconcile_seconds;
        seconds
            .get_or_create(&controller)
            .observe(took.as_secs_f64());
        let mut labels = controller;
        labels.push(result.label());
        self.reconciles.get_or_create(&labels).inc();
    }

    /// Shows a controller before it did anything: what never failed has failed zero times.
    pub(crate) fn begin_controller(&self, controller: &'static str, concurrency: usize) {
        let labels = vec![controller_label(controller)];
        for counters in [
            &self.reconcile_errors,
            &self.terminal_errors,
            &self.reconcile_panics,
            &self.reconcile_timeouts,
        ] {
            drop(counters.get_or_create(&labels));
        }
        for result in ReconcileResult::ALL {
            let mut labels = labels.clone();
            labels.push(result.label());
            drop(self.reconciles.get_or_create(&labels));
        }
        drop(self.active_workers.get_or_create(&labels));
        let at_once = self.reconciles_at_once.get_or_create(&labels);
        at_once.set(f64::from(u32::try_from(concurrency).unwrap_or(u32::MAX)));
    }

    /// How many reconciles of a controller are at work.
    pub(crate) fn active_workers(&self, controller: &'static str) -> Gauge<f64, AtomicU64> {
        let labels = vec![controller_label(controller)];
        self.active_workers.get_or_create(&labels).clone()
    }

    /// Where the queue of a controller counts.
    pub(crate) fn queue_meter(&self, controller: &'static str) -> QueueMeter {
        let labels = vec![
            ("name", controller.to_owned()),
            controller_label(controller),
        ];
        QueueMeter {
            adds: self.queue_adds.get_or_create(&labels).clone(),
            retries: self.queue_retries.get_or_create(&labels).clone(),
            queue_seconds: self.queue_seconds.get_or_create(&labels).clone(),
            work_seconds: self.work_seconds.get_or_create(&labels).clone(),
        }
    }

    /// One round of a controller that has no queue; it is told of when the round is dropped.
    pub(crate) fn round(&self, controller: &'static str) -> LoopRound<'_> {
        let labels = vec![controller_label(controller)];
        self.active_workers.get_or_create(&labels).inc();
        number_round(self.rounds.fetch_add(1, Ordering::Relaxed) + 1);
        LoopRound {
            metrics: self,
            controller,
            labels,
            started: Instant::now(),
            outcome: Ok(Action::Await),
        }
    }
}

/// A round at work.
pub(crate) struct LoopRound<'a> {
    metrics: &'a Metrics,
    controller: &'static str,
    labels: Labels,
    started: Instant,
    outcome: Result<Action, ReconcileError>,
}

impl LoopRound<'_> {
    /// The round did not come to its end.
    pub(crate) fn failed(&mut self, error: ReconcileError) {
        self.outcome = Err(error);
    }
}

impl Drop for LoopRound<'_> {
    fn drop(&mut self) {
        let active = self.metrics.active_workers.get_or_create(&self.labels);
        active.dec();
        drop(active);
        let took = self.started.elapsed();
        self.metrics
            .reconciled(self.controller, took, &self.outcome);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows these series and no others: what is no more must not be seen for ever.
pub(crate) fn replace(gauges: &Gauges, series: impl IntoIterator<Item = (Labels, f64)>) {
    gauges.clear();
    for (labels, value) in series {
        gauges.get_or_create(&labels).set(value);
    }
}
