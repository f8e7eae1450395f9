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

use crate::shell::error::{ErrorClass, ReconcileError};
use crate::shell::runtime::action::Action;
use crate::shell::runtime::log_spans::number_round;
use crate::shell::runtime::work_queue::QueueMeter;
use buckets::{
    BucketFamily, doubling_to_1024, doubling_to_1280, doubling_to_2048, durations, histograms,
    library_default, lifetimes, queue_times, reconciles, scores,
};
use conditions::ConditionMetrics;
use labels::{
    CapacityTypeLabel, CategoryLabel, CodeLabel, ConditionLabel, ConsolidationPolicyLabel,
    ConsolidationTypeLabel, ControllerLabel, DecisionLabel, DynamicResourcesLabel, ErrorLabel,
    ImageIdLabel, MessageTypeLabel, MethodLabel, MinValuesRelaxedLabel, NodePoolLabel, PolicyLabel,
    ProviderLabel, QueueLabel, ReasonLabel, ResultLabel, Series, SeriesLabels,
    TerminateFirstReasonLabel, TerminationModeLabel, ZoneLabel, consolidation_type_label,
};
use summary::QuantileSummaries;

type CounterFamily<L> = Family<Series<L>, Counter>;
type Gauges<L> = Family<Series<L>, Gauge<f64, AtomicU64>>;
type Histograms<L> = BucketFamily<Series<L>>;

/// A dashboard can tell "never" from "no such metric": the two kinds that Karpenter presets.
fn never_yet() -> CounterFamily<ConsolidationTypeLabel> {
    let counters = CounterFamily::default();
    for method in [
        Method::MultiNodeConsolidation,
        Method::SingleNodeConsolidation,
    ] {
        drop(counters.get_or_create(&Series(consolidation_type_label(method))));
    }
    counters
}

/// A metric as the book has it.
#[derive(Debug)]
pub(crate) struct MetricRow {
    /// Without the ending of counters.
    pub(crate) name: &'static str,
    /// What it is scraped as.
    pub(crate) kind: MetricType,
    /// Names of the labels of its series.
    pub(crate) labels: Vec<&'static str>,
    pub(crate) help: &'static str,
}

/// A metric whose series are told apart by labels, or which has but one.
trait Labelled {
    /// Names of the labels, in the order in which they are written.
    fn label_names() -> Vec<&'static str> {
        Vec::new()
    }
}

impl Labelled for Counter {}
impl Labelled for Gauge<f64, AtomicU64> {}

impl<L: SeriesLabels, M, C> Labelled for Family<Series<L>, M, C> {
    fn label_names() -> Vec<&'static str> {
        names_of::<L>()
    }
}

impl<L: SeriesLabels> Labelled for QuantileSummaries<L> {
    fn label_names() -> Vec<&'static str> {
        names_of::<L>()
    }
}

/// Names of labels, in the order in which they are written.
pub(crate) fn names_of<L: SeriesLabels>() -> Vec<&'static str> {
    let mut names = Vec::new();
    L::add_names(&mut names);
    names
}

/// One row a metric: its field and type, which names its labels, how it is made, its name and its help text. The row is
/// all there is to write beside the place that counts: `just tables` writes docs/metrics.md. A counter `of` an outcome
/// is the number of the ledger's records with it, and counts by itself. A label that no metric had before is a row of
/// `labels.rs`.
macro_rules! metrics {
    ($($field:ident: $kind:ty = $made:expr, $name:literal, $help:literal $(, of $outcome:ident)?;)*) => {
        /// Every metric the controllers write.
        #[derive(Debug)]
        pub struct Metrics {
            $(
                #[doc = concat!("`", $name, "`: ", $help, ".")]
                pub $field: $kind,
            )*
            /// Those of conditions.
            pub conditions: ConditionMetrics,
            /// Rounds of controllers without a queue that have begun; log lines bear the number.
            rounds: AtomicU64,
        }

        impl Metrics {
            /// Every row.
            pub(crate) fn rows() -> Vec<MetricRow> {
                vec![$(MetricRow {
                    name: $name,
                    kind: <$kind as TypedMetric>::TYPE,
                    labels: <$kind as Labelled>::label_names(),
                    help: $help,
                },)*]
            }

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
    node_claims_created: CounterFamily<(ReasonLabel, NodePoolLabel, MinValuesRelaxedLabel)> = CounterFamily::default(), "karpenter_nodeclaims_created", "NodeClaims created";
    node_claims_terminated: CounterFamily<(NodePoolLabel, CapacityTypeLabel, ZoneLabel)> = CounterFamily::default(), "karpenter_nodeclaims_terminated", "NodeClaims terminated";
    node_claims_disrupted: CounterFamily<(ReasonLabel, NodePoolLabel, CapacityTypeLabel, ConsolidationPolicyLabel, TerminationModeLabel)> = CounterFamily::default(), "karpenter_nodeclaims_disrupted", "NodeClaims disrupted";
    node_claims_unhealthy_disrupted: CounterFamily<(ConditionLabel, NodePoolLabel, CapacityTypeLabel, ImageIdLabel, TerminationModeLabel)> = CounterFamily::default(), "karpenter_nodeclaims_unhealthy_disrupted", "NodeClaims disrupted because their node was sick";
    instance_termination_seconds: Histograms<NodePoolLabel> = histograms(doubling_to_1024), "karpenter_nodeclaims_instance_termination_duration_seconds", "Time an instance took to terminate";
    node_claim_termination_seconds: Histograms<NodePoolLabel> = histograms(doubling_to_2048), "karpenter_nodeclaims_termination_duration_seconds", "Time a NodeClaim took to terminate";
    nodes_created: CounterFamily<(NodePoolLabel, ZoneLabel)> = CounterFamily::default(), "karpenter_nodes_created", "Nodes that registered";
    nodes_terminated: CounterFamily<(NodePoolLabel, ZoneLabel)> = CounterFamily::default(), "karpenter_nodes_terminated", "Nodes terminated";
    nodes_drained: CounterFamily<NodePoolLabel> = CounterFamily::default(), "karpenter_nodes_drained", "Nodes drained";
    node_termination_seconds: QuantileSummaries<NodePoolLabel> = QuantileSummaries::default(), "karpenter_nodes_termination_duration_seconds", "Time a node took to terminate";
    node_lifetime_seconds: Histograms<NodePoolLabel> = histograms(lifetimes), "karpenter_nodes_lifetime_duration_seconds", "Age of nodes at termination";
    reboots: CounterFamily<ResultLabel> = CounterFamily::default(), "karpenter_nodes_reboots", "Reboots of sick nodes";
    reboot_seconds: Histograms<ResultLabel> = histograms(doubling_to_1280), "karpenter_nodes_reboot_duration_seconds", "Time from the decision to reboot a node to its end";
    reboot_recovery_seconds: Histograms<()> = histograms(doubling_to_1280), "karpenter_nodes_reboot_recovery_duration_seconds", "Time a node was away to reboot";
    eviction_requests: CounterFamily<CodeLabel> = CounterFamily::default(), "karpenter_pods_eviction_requests", "Answers of the Eviction API";
    pods_drained: CounterFamily<ReasonLabel> = CounterFamily::default(), "karpenter_pods_drained", "Pods drained";
    pods_disruption_initiated: CounterFamily<(ReasonLabel, NodePoolLabel, CapacityTypeLabel, ConsolidationPolicyLabel, TerminationModeLabel)> = CounterFamily::default(), "karpenter_pods_disruption_initiated", "Reschedulable pods on disrupted NodeClaims";
    pods_nominated: Counter = Counter::default(), "mortise_pods_nominated", "Pods nominated to the node planned for them";
    pods_off_plan: Counter = Counter::default(), "mortise_pods_off_plan", "Pods that the scheduler bound to another node than the one planned for them", of PodOffPlan;
    node_claims_off_plan: Counter = Counter::default(), "mortise_nodeclaims_off_plan", "NodeClaims opened for pods whose place was taken by others";
    off_plan_usd_per_hour: Gauge<f64, AtomicU64> = Gauge::default(), "mortise_nodeclaims_off_plan_usd_per_hour", "What those NodeClaims cost together when they were opened";
    pod_decision_seconds: Histograms<()> = histograms(durations), "karpenter_pods_scheduling_decision_duration_seconds", "Time from a pod first seen to its first decision";
    allowed_disruptions: Gauges<(NodePoolLabel, ReasonLabel)> = Gauges::default(), "karpenter_nodepools_allowed_disruptions", "Disruptions the budgets allow";
    policy_premium: Gauges<(NodePoolLabel, PolicyLabel)> = Gauges::default(), "mortise_policy_premium_usd_per_hour", "What the nodes that there are cost more, by list price at their launch, than the default's choice";
    nodes_consuming_budgets: Gauges<(NodePoolLabel, ReasonLabel)> = Gauges::default(), "karpenter_nodepools_nodes_consuming_budgets", "Nodes not ready or deleting";
    disruption_evaluation_seconds: Histograms<(ReasonLabel, ConsolidationTypeLabel)> = histograms(durations), "karpenter_voluntary_disruption_decision_evaluation_duration_seconds", "Time of one disruption method";
    disruption_decisions: CounterFamily<(DecisionLabel, ReasonLabel, ConsolidationTypeLabel)> = CounterFamily::default(), "karpenter_voluntary_disruption_decisions", "Disruption commands started";
    disruption_decisions_by_node_pool: CounterFamily<(NodePoolLabel, DecisionLabel, ReasonLabel, ConsolidationTypeLabel)> = CounterFamily::default(), "karpenter_voluntary_disruption_decisions_by_nodepool", "Disruption commands started, for each NodePool";
    disruption_eligible_nodes: Gauges<ReasonLabel> = Gauges::default(), "karpenter_voluntary_disruption_eligible_nodes", "Candidates of the last run";
    consolidation_timeouts: CounterFamily<ConsolidationTypeLabel> = never_yet(), "karpenter_voluntary_disruption_consolidation_timeouts", "Consolidation scans cut short";
    failed_validations: CounterFamily<ConsolidationTypeLabel> = CounterFamily::default(), "karpenter_voluntary_disruption_failed_validations", "Candidates that failed validation";
    disruption_queue_failures: CounterFamily<(DecisionLabel, ReasonLabel, ConsolidationTypeLabel)> = CounterFamily::default(), "karpenter_voluntary_disruption_queue_failures", "Disruption commands that failed";
    terminate_first_decisions: CounterFamily<(NodePoolLabel, ReasonLabel, TerminateFirstReasonLabel)> = CounterFamily::default(), "karpenter_voluntary_disruption_terminate_first_decisions", "Nodes that go before their replacement comes";
    consolidation_moves: CounterFamily<(DecisionLabel, NodePoolLabel, PolicyLabel)> = CounterFamily::default(), "karpenter_consolidation_moves", "Moves of consolidation that were judged";
    consolidation_score: Histograms<(DecisionLabel, NodePoolLabel, PolicyLabel)> = histograms(scores), "karpenter_consolidation_score", "Scores of moves that take nodes of Balanced NodePools";
    deletion_cost_pending_nodes: Gauges<NodePoolLabel> = Gauges::default(), "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes", "Nodes with deletion costs to write in the last pass";
    deletion_cost_writes: CounterFamily<ResultLabel> = CounterFamily::default(), "karpenter_pod_deletion_cost_pod_annotation_writes", "Deletion costs written to pods, or not";
    interruption_received: CounterFamily<MessageTypeLabel> = CounterFamily::default(), "karpenter_interruption_received_messages", "Interruption notices received";
    interruption_deleted: CounterFamily<()> = CounterFamily::default(), "karpenter_interruption_deleted_messages", "Interruption notices taken off the queue";
    instance_status_unhealthy: CounterFamily<CategoryLabel> = CounterFamily::default(), "karpenter_interruption_instance_status_unhealthy", "Instances the cloud finds unhealthy, once for each time and kind of trouble";
    interruption_queue_seconds: Histograms<()> = histograms(durations), "karpenter_interruption_message_queue_duration_seconds", "Time from an event to the receipt of its notice";
    scheduling_seconds: Histograms<ControllerLabel> = histograms(durations), "karpenter_scheduler_scheduling_duration_seconds", "Time of one simulation";
    ignored_pods: Gauges<()> = Gauges::default(), "karpenter_scheduler_ignored_pods_count", "Pods failing validation";
    unschedulable_pods: Gauges<ControllerLabel> = Gauges::default(), "karpenter_scheduler_unschedulable_pods_count", "Pods without a place";
    cloud_seconds: Histograms<(ControllerLabel, MethodLabel, ProviderLabel)> = histograms(library_default), "karpenter_cloudprovider_duration_seconds", "Time of calls to the cloud provider";
    cloud_errors: CounterFamily<(ControllerLabel, MethodLabel, ProviderLabel, ErrorLabel, NodePoolLabel)> = CounterFamily::default(), "karpenter_cloudprovider_errors", "Errors of the cloud provider";
    pending_pods_by_zone: Gauges<(ControllerLabel, ZoneLabel)> = Gauges::default(), "karpenter_scheduler_pending_pods_by_effective_zone_count", "Pending pods by the one zone that they can run in, `flexible` or `none`";
    pod_startup_seconds: QuantileSummaries<()> = QuantileSummaries::default(), "karpenter_pods_startup_duration_seconds", "Time from the creation of a pod until it is ready";
    pod_bound_seconds: Histograms<DynamicResourcesLabel> = histograms(durations), "karpenter_pods_bound_duration_seconds", "Time from the creation of a pod until it is bound";
    pod_provisioning_startup_seconds: Histograms<()> = histograms(durations), "karpenter_pods_provisioning_startup_duration_seconds", "Time from the first place found for a pod until it is ready";
    pod_provisioning_bound_seconds: Histograms<DynamicResourcesLabel> = histograms(durations), "karpenter_pods_provisioning_bound_duration_seconds", "Time from the first place found for a pod until it is bound";
    cost_tracker_errors: CounterFamily<NodePoolLabel> = CounterFamily::default(), "karpenter_nodepools_cost_tracker_errors", "Nodes whose price was not known when the cost of the NodePool was summed up";
    reconciles: CounterFamily<(ControllerLabel, ResultLabel)> = CounterFamily::default(), "controller_runtime_reconcile", "Reconciles";
    reconcile_errors: CounterFamily<ControllerLabel> = CounterFamily::default(), "controller_runtime_reconcile_errors", "Failed reconciles";
    terminal_errors: CounterFamily<ControllerLabel> = CounterFamily::default(), "controller_runtime_terminal_reconcile_errors", "Reconciles that failed for good";
    reconcile_panics: CounterFamily<ControllerLabel> = CounterFamily::default(), "controller_runtime_reconcile_panics", "Reconciles that died of a bug";
    reconcile_timeouts: CounterFamily<ControllerLabel> = CounterFamily::default(), "controller_runtime_reconcile_timeouts", "Reconciles cut off; none is, as each request has a time limit of its own";
    webhook_panics: Counter = Counter::default(), "controller_runtime_conversion_webhook_panics", "Conversions of objects that died of a bug; there are none";
    reconcile_seconds: Histograms<ControllerLabel> = histograms(reconciles), "controller_runtime_reconcile_time_seconds", "Time of reconciles";
    reconciles_at_once: Gauges<ControllerLabel> = Gauges::default(), "controller_runtime_max_concurrent_reconciles", "Reconciles at one time, at most";
    active_workers: Gauges<ControllerLabel> = Gauges::default(), "controller_runtime_active_workers", "Reconciles at work";
    queue_adds: CounterFamily<(QueueLabel, ControllerLabel)> = CounterFamily::default(), "workqueue_adds", "Keys added to the queue";
    queue_retries: CounterFamily<(QueueLabel, ControllerLabel)> = CounterFamily::default(), "workqueue_retries", "Keys put back as their reconcile failed";
    queue_seconds: Histograms<(QueueLabel, ControllerLabel)> = histograms(queue_times), "workqueue_queue_duration_seconds", "Time of a key in the queue";
    work_seconds: Histograms<(QueueLabel, ControllerLabel)> = histograms(queue_times), "workqueue_work_duration_seconds", "Time of work on a key";
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

    fn label(self) -> ResultLabel {
        let word = match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Requeue => "requeue",
            Self::Error => "error",
        };
        ResultLabel(word)
    }
}

impl Metrics {
    /// Evictions that the API server granted so far.
    pub fn evictions_granted(&self) -> u64 {
        let granted = Series(CodeLabel("200".to_owned()));
        self.eviction_requests.get_or_create(&granted).get()
    }

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
        let controller = ControllerLabel(controller);
        let series = Series(controller.clone());
        for (counters, counts) in [
            (&self.reconcile_errors, result == ReconcileResult::Error),
            (&self.terminal_errors, is_terminal),
            (&self.reconcile_panics, is_panic),
        ] {
            if counts {
                counters.get_or_create(&series).inc();
            }
        }
        let seconds = &self.reconcile_seconds;
        seconds.get_or_create(&series).observe(took.as_secs_f64());
        let series = Series((controller, result.label()));
        self.reconciles.get_or_create(&series).inc();
    }

    /// Shows a controller before it did anything: what never failed has failed zero times.
    pub(crate) fn begin_controller(&self, controller: &'static str, concurrency: usize) {
        let controller = ControllerLabel(controller);
        let series = Series(controller.clone());
        for counters in [
            &self.reconcile_errors,
            &self.terminal_errors,
            &self.reconcile_panics,
            &self.reconcile_timeouts,
        ] {
            drop(counters.get_or_create(&series));
        }
        for result in ReconcileResult::ALL {
            let series = Series((controller.clone(), result.label()));
            drop(self.reconciles.get_or_create(&series));
        }
        drop(self.active_workers.get_or_create(&series));
        let at_once = self.reconciles_at_once.get_or_create(&series);
        at_once.set(f64::from(u32::try_from(concurrency).unwrap_or(u32::MAX)));
    }

    /// How many reconciles of a controller are at work.
    pub(crate) fn active_workers(&self, controller: &'static str) -> Gauge<f64, AtomicU64> {
        let series = Series(ControllerLabel(controller));
        self.active_workers.get_or_create(&series).clone()
    }

    /// Where the queue of a controller counts.
    pub(crate) fn queue_meter(&self, controller: &'static str) -> QueueMeter {
        let queue = QueueLabel(controller);
        let series = Series((queue, ControllerLabel(controller)));
        QueueMeter {
            adds: self.queue_adds.get_or_create(&series).clone(),
            retries: self.queue_retries.get_or_create(&series).clone(),
            queue_seconds: self.queue_seconds.get_or_create(&series).clone(),
            work_seconds: self.work_seconds.get_or_create(&series).clone(),
        }
    }

    /// One round of a controller that has no queue; it is told of when the round is dropped.
    pub(crate) fn round(&self, controller: &'static str) -> LoopRound<'_> {
        let active = self.active_workers(controller);
        active.inc();
        number_round(self.rounds.fetch_add(1, Ordering::Relaxed) + 1);
        LoopRound {
            metrics: self,
            controller,
            active,
            started: Instant::now(),
            outcome: Ok(Action::Await),
        }
    }
}

/// A round at work.
pub(crate) struct LoopRound<'a> {
    metrics: &'a Metrics,
    controller: &'static str,
    active: Gauge<f64, AtomicU64>,
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
        self.active.dec();
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
pub(crate) fn replace<L: SeriesLabels>(
    gauges: &Gauges<L>,
    series: impl IntoIterator<Item = (L, f64)>,
) {
    gauges.clear();
    for (labels, value) in series {
        gauges.get_or_create(&Series(labels)).set(value);
    }
}
