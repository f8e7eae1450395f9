//! Gauges of state: what there is at the moment that somebody scrapes, each a function of the model.
//!
//! Between scrapes they cost nothing, and a series goes with its object. Only whoever leads shows them, so that sums
//! over replicas are right. Answers to `pkg/controllers/metrics` and to the gauges of
//! `pkg/controllers/state/metrics.go`.

mod conditions;
mod node_pools;
mod nodes;
mod offerings;
pub(crate) mod page;
mod pods;
mod workers;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use state::Snapshot;

use crate::provisioning::passes::Passes;
use crate::provisioning::undecided_pods::UndecidedPods;
use crate::shell::Shell;
use crate::shell::metrics::labels::{
    CapacityTypeLabel, ControllerLabel, InstanceTypeLabel, NodePoolLabel, PriorityLabel,
    QueueLabel, ResourceTypeLabel, SchedulingIdLabel, Series, SeriesLabels, WrittenLabels,
    ZoneLabel,
};
use crate::shell::metrics::names_of;
use crate::shell::runtime::queue_loads::QueueLoads;
use crate::shell::turn::{Turn, TurnStage};
use crate::status_conditions::StatusConditions;
use crate::voluntary_disruption::sold_types::SoldTypes;
use crate::watches::pod_starts::PodStarts;

/// Registers with a registry as one collector.
pub struct StateMetrics {
    pub(crate) shell: Arc<Shell>,
    pub(crate) turn: Turn,
    pub(crate) undecided_pods: Arc<UndecidedPods>,
    pub(crate) pod_starts: Arc<PodStarts>,
    pub(crate) status_conditions: Arc<StatusConditions>,
    pub(crate) sold_types: Arc<SoldTypes>,
    pub(crate) passes: Arc<Passes>,
    pub(crate) queue_loads: Arc<QueueLoads>,
}

/// Everything that gauges look at.
struct Observation<'a> {
    known: &'a StateMetrics,
    snapshot: &'a Snapshot,
    now: Timestamp,
}

/// What tells the series of a gauge apart.
trait GaugeLabels: 'static {
    /// The labels of one of them.
    type Scraped<'a>: WrittenLabels;

    /// All of them as the book has them.
    fn in_words() -> String;
}

impl<L: SeriesLabels> GaugeLabels for L {
    type Scraped<'a> = L::Scraped<'a>;

    fn in_words() -> String {
        let names = names_of::<L>().into_iter();
        let names: Vec<String> = names.map(|it| format!("`{it}`")).collect();
        names.join(", ")
    }
}

/// Takes in one series: its labels and its value.
type Tell<'t, L> = dyn for<'a> FnMut(<L as GaugeLabels>::Scraped<'a>, f64) + 't;

/// One family of series, which its labels tell apart.
struct StateGauge<L: GaugeLabels> {
    name: &'static str,
    help: &'static str,
    series: fn(&Observation<'_>, &mut Tell<'_, L>),
}

const fn gauge<L: GaugeLabels>(
    name: &'static str,
    help: &'static str,
    series: fn(&Observation<'_>, &mut Tell<'_, L>),
) -> StateGauge<L> {
    StateGauge { name, help, series }
}

/// A gauge, whatever its labels.
trait ScrapedGauge {
    /// Name, labels and help as the book has them.
    fn in_words(&self) -> [String; 3];

    fn encode(
        &self,
        observation: &Observation<'_>,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), fmt::Error>;
}

impl<L: GaugeLabels> ScrapedGauge for StateGauge<L> {
    fn in_words(&self) -> [String; 3] {
        [self.name.to_owned(), L::in_words(), self.help.to_owned()]
    }

    fn encode(
        &self,
        observation: &Observation<'_>,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), fmt::Error> {
        let mut family =
            encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        let mut written = Ok(());
        (self.series)(observation, &mut |labels, value| {
            if written.is_ok() {
                written = family
                    .encode_family(&Series(labels))
                    .and_then(|mut series| series.encode_gauge(&value));
            }
        });
        written
    }
}

/// Gauges that the replica which leads shows with `DISABLE_CLUSTER_STATE_OBSERVABILITY`, too: without labels, or of the
/// process.
const OF_THE_PROCESS: &[&dyn ScrapedGauge] = &[
    &gauge::<()>(
        "karpenter_cluster_state_node_count",
        "Nodes in cluster state",
        node_count,
    ),
    &gauge::<()>(
        "karpenter_cluster_state_synced",
        "Whether cluster state is synced",
        synced,
    ),
    &gauge::<()>(
        "karpenter_cluster_state_unsynced_time_seconds",
        "How long cluster state has not been synced",
        unsynced_seconds,
    ),
    &gauge::<(ControllerLabel, SchedulingIdLabel)>(
        "karpenter_scheduler_queue_depth",
        "Pods left in the pass",
        workers::queue_depth,
    ),
    &gauge::<(ControllerLabel, SchedulingIdLabel)>(
        "karpenter_scheduler_unfinished_work_seconds",
        "Age of a pass that is not over",
        workers::unfinished_passes,
    ),
    &gauge::<(QueueLabel, ControllerLabel, PriorityLabel)>(
        "workqueue_depth",
        "Keys in the queue",
        workers::depth,
    ),
    &gauge::<(QueueLabel, ControllerLabel)>(
        "workqueue_unfinished_work_seconds",
        "Ages of all work that is not done",
        workers::unfinished_work,
    ),
    &gauge::<(QueueLabel, ControllerLabel)>(
        "workqueue_longest_running_processor_seconds",
        "Age of the oldest work that is not done",
        workers::longest_work,
    ),
];

/// Gauges whose number grows with the cluster. Nodes carry a label for each well-known label, beside `node_name`,
/// `phase` and `managed`.
const OF_THE_CLUSTER: &[&dyn ScrapedGauge] = &[
    &gauge::<nodes::LabelsOfNodeResource>(
        "karpenter_nodes_allocatable",
        "What pods can have of a node",
        nodes::allocatable,
    ),
    &gauge::<nodes::LabelsOfNodeResource>(
        "karpenter_nodes_system_overhead",
        "What the system takes of a node",
        nodes::system_overhead,
    ),
    &gauge::<nodes::LabelsOfNodeResource>(
        "karpenter_nodes_total_pod_requests",
        "Requests of all pods on a node",
        nodes::pod_requests,
    ),
    &gauge::<nodes::LabelsOfNodeResource>(
        "karpenter_nodes_total_pod_limits",
        "Limits of all pods on a node",
        nodes::pod_limits,
    ),
    &gauge::<nodes::LabelsOfNodeResource>(
        "karpenter_nodes_total_daemon_requests",
        "Requests of pods of DaemonSets on a node",
        nodes::daemon_requests,
    ),
    &gauge::<nodes::LabelsOfNodeResource>(
        "karpenter_nodes_total_daemon_limits",
        "Limits of pods of DaemonSets on a node",
        nodes::daemon_limits,
    ),
    &gauge::<nodes::LabelsOfNode>(
        "karpenter_nodes_current_lifetime_seconds",
        "Age of a node",
        nodes::lifetime,
    ),
    &gauge::<ResourceTypeLabel>(
        "karpenter_cluster_utilization_percent",
        "Share of what pods can have that they request",
        nodes::utilization,
    ),
    &gauge::<pods::LabelsOfState>(
        "karpenter_pods_state",
        "Pods and where they are",
        pods::state,
    ),
    &gauge::<pods::PodNames>(
        "karpenter_pods_unstarted_time_seconds",
        "Age of a pod that has not been ready yet",
        pods::unstarted,
    ),
    &gauge::<pods::LabelsOfUnbound>(
        "karpenter_pods_unbound_time_seconds",
        "Age of a pod that is not bound yet",
        pods::unbound,
    ),
    &gauge::<pods::PodNames>(
        "karpenter_pods_provisioning_unstarted_time_seconds",
        "Time since the first place was found for a pod that has not been ready yet",
        pods::provisioning_unstarted,
    ),
    &gauge::<pods::LabelsOfUnbound>(
        "karpenter_pods_provisioning_unbound_time_seconds",
        "Time since the first place was found for a pod that is not bound yet",
        pods::provisioning_unbound,
    ),
    &gauge::<pods::PodNames>(
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
        "Time that a pod has waited for its first decision",
        pods::undecided,
    ),
    &gauge::<(ResourceTypeLabel, NodePoolLabel)>(
        "karpenter_nodepools_limit",
        "Limits of the NodePool",
        node_pools::limit,
    ),
    &gauge::<(ResourceTypeLabel, NodePoolLabel)>(
        "karpenter_nodepools_usage",
        "Resources of the NodePool's nodes",
        node_pools::usage,
    ),
    &gauge::<NodePoolLabel>(
        "karpenter_nodepools_cost_total",
        "What the NodePool's nodes cost an hour, by list price with NodeOverlays",
        node_pools::cost,
    ),
    &gauge::<InstanceTypeLabel>(
        "karpenter_cloudprovider_instance_type_cpu_cores",
        "CPUs of an instance type",
        offerings::cpu_cores,
    ),
    &gauge::<InstanceTypeLabel>(
        "karpenter_cloudprovider_instance_type_memory_bytes",
        "Memory of an instance type",
        offerings::memory_bytes,
    ),
    &gauge::<(InstanceTypeLabel, CapacityTypeLabel, ZoneLabel)>(
        "karpenter_cloudprovider_instance_type_offering_available",
        "Whether an offering can be bought",
        offerings::available,
    ),
    &gauge::<(InstanceTypeLabel, CapacityTypeLabel, ZoneLabel)>(
        "karpenter_cloudprovider_instance_type_offering_price_estimate",
        "Price of an offering an hour",
        offerings::price,
    ),
];

impl fmt::Debug for StateMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StateMetrics")
            .finish_non_exhaustive()
    }
}

impl Collector for StateMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if self.turn.stage() < TurnStage::Leads {
            return Ok(());
        }
        let observation = Observation {
            known: self,
            snapshot: &self.shell.model.snapshot(),
            now: self.shell.now(),
        };
        for family in OF_THE_PROCESS {
            family.encode(&observation, &mut encoder)?;
        }
        if !self.shell.settings.disable_cluster_state_observability {
            for family in OF_THE_CLUSTER {
                family.encode(&observation, &mut encoder)?;
            }
            conditions::encode(&observation, &mut encoder)?;
        }
        Ok(())
    }
}

fn node_count(observation: &Observation<'_>, emit: &mut Tell<'_, ()>) {
    emit((), count(observation.snapshot.nodes().len()));
}

fn synced(observation: &Observation<'_>, emit: &mut Tell<'_, ()>) {
    let is_synced = observation.known.shell.model.is_synced();
    emit((), f64::from(u8::from(is_synced)));
}

fn unsynced_seconds(observation: &Observation<'_>, emit: &mut Tell<'_, ()>) {
    let since = observation.known.shell.model.unsynced_since();
    emit((), since.map_or(0.0, |it| seconds(it, observation.now)));
}

/// Seconds from one moment to another; a clock that went back makes none.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[expect(clippy::cast_precision_loss, reason = "no cluster has that many")]
fn count(number: usize) -> f64 {
    number as f64
}

/// `cpu` in cores, everything else in base units.
#[expect(clippy::cast_precision_loss, reason = "amounts as metrics have them")]
fn amount(millis: i64) -> f64 {
    millis as f64 / 1000.0
}
