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

/// Takes in one series: its labels and its value.
type Tell<'a> = dyn FnMut(&[(&'static str, &str)], f64) + 'a;

/// One family of series.
struct StateGauge {
    name: &'static str,
    labels: &'static str,
    help: &'static str,
    series: fn(&Observation<'_>, &mut Tell<'_>),
}

const fn gauge(
    name: &'static str,
    labels: &'static str,
    help: &'static str,
    series: fn(&Observation<'_>, &mut Tell<'_>),
) -> StateGauge {
    StateGauge {
        name,
        labels,
        help,
        series,
    }
}

/// Gauges that the replica which leads shows with `DISABLE_CLUSTER_STATE_OBSERVABILITY`, too: without labels, or of the
/// process.
const OF_THE_PROCESS: &[StateGauge] = &[
    gauge(
        "karpenter_cluster_state_node_count",
        "No labels.",
        "Nodes in cluster state",
        node_count,
    ),
    gauge(
        "karpenter_cluster_state_synced",
        "No labels.",
        "Whether cluster state is synced",
        synced,
    ),
    gauge(
        "karpenter_cluster_state_unsynced_time_seconds",
        "No labels.",
        "How long cluster state has not been synced",
        unsynced_seconds,
    ),
    gauge(
        "karpenter_scheduler_queue_depth",
        "Labels: `controller`, `scheduling_id`.",
        "Pods left in the pass",
        workers::queue_depth,
    ),
    gauge(
        "karpenter_scheduler_unfinished_work_seconds",
        "Labels: `controller`, `scheduling_id`.",
        "Age of a pass that is not over",
        workers::unfinished_passes,
    ),
    gauge(
        "workqueue_depth",
        "Labels: `name`, `controller`, `priority`.",
        "Keys in the queue",
        workers::depth,
    ),
    gauge(
        "workqueue_unfinished_work_seconds",
        "Labels: `name`, `controller`.",
        "Ages of all work that is not done",
        workers::unfinished_work,
    ),
    gauge(
        "workqueue_longest_running_processor_seconds",
        "Labels: `name`, `controller`.",
        "Age of the oldest work that is not done",
        workers::longest_work,
    ),
];

/// Gauges whose number grows with the cluster. Nodes carry a label for each well-known label, beside `node_name`,
/// `phase` and `managed`.
const OF_THE_CLUSTER: &[StateGauge] = &[
    gauge(
        "karpenter_nodes_allocatable",
        "Labels: `resource_type`, and those of the node.",
        "What pods can have of a node",
        nodes::allocatable,
    ),
    gauge(
        "karpenter_nodes_system_overhead",
        "Labels: `resource_type`, and those of the node.",
        "What the system takes of a node",
        nodes::system_overhead,
    ),
    gauge(
        "karpenter_nodes_total_pod_requests",
        "Labels: `resource_type`, and those of the node.",
        "Requests of all pods on a node",
        nodes::pod_requests,
    ),
    gauge(
        "karpenter_nodes_total_pod_limits",
        "Labels: `resource_type`, and those of the node.",
        "Limits of all pods on a node",
        nodes::pod_limits,
    ),
    gauge(
        "karpenter_nodes_total_daemon_requests",
        "Labels: `resource_type`, and those of the node.",
        "Requests of pods of DaemonSets on a node",
        nodes::daemon_requests,
    ),
    gauge(
        "karpenter_nodes_total_daemon_limits",
        "Labels: `resource_type`, and those of the node.",
        "Limits of pods of DaemonSets on a node",
        nodes::daemon_limits,
    ),
    gauge(
        "karpenter_nodes_current_lifetime_seconds",
        "Labels: those of the node.",
        "Age of a node",
        nodes::lifetime,
    ),
    gauge(
        "karpenter_cluster_utilization_percent",
        "Labels: `resource_type`.",
        "Share of what pods can have that they request",
        nodes::utilization,
    ),
    gauge(
        "karpenter_pods_state",
        "Labels: `name`, `namespace`, `owner`, `node`, `scheduled`, `nodepool`, `zone`, `arch`, `capacity_type`, `instance_type`, `phase`, `ready`, `managed`.",
        "Pods and where they are",
        pods::state,
    ),
    gauge(
        "karpenter_pods_unstarted_time_seconds",
        "Labels: `name`, `namespace`.",
        "Age of a pod that has not been ready yet",
        pods::unstarted,
    ),
    gauge(
        "karpenter_pods_unbound_time_seconds",
        "Labels: `name`, `namespace`, `dynamic_resources`.",
        "Age of a pod that is not bound yet",
        pods::unbound,
    ),
    gauge(
        "karpenter_pods_provisioning_unstarted_time_seconds",
        "Labels: `name`, `namespace`.",
        "Time since the first place was found for a pod that has not been ready yet",
        pods::provisioning_unstarted,
    ),
    gauge(
        "karpenter_pods_provisioning_unbound_time_seconds",
        "Labels: `name`, `namespace`, `dynamic_resources`.",
        "Time since the first place was found for a pod that is not bound yet",
        pods::provisioning_unbound,
    ),
    gauge(
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
        "Labels: `name`, `namespace`.",
        "Time that a pod has waited for its first decision",
        pods::undecided,
    ),
    gauge(
        "karpenter_nodepools_limit",
        "Labels: `resource_type`, `nodepool`.",
        "Limits of the NodePool",
        node_pools::limit,
    ),
    gauge(
        "karpenter_nodepools_usage",
        "Labels: `resource_type`, `nodepool`.",
        "Resources of the NodePool's nodes",
        node_pools::usage,
    ),
    gauge(
        "karpenter_nodepools_cost_total",
        "Labels: `nodepool`.",
        "What the NodePool's nodes cost an hour, by list price with NodeOverlays",
        node_pools::cost,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_cpu_cores",
        "Labels: `instance_type`.",
        "CPUs of an instance type",
        offerings::cpu_cores,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_memory_bytes",
        "Labels: `instance_type`.",
        "Memory of an instance type",
        offerings::memory_bytes,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_offering_available",
        "Labels: `instance_type`, `capacity_type`, `zone`.",
        "Whether an offering can be bought",
        offerings::available,
    ),
    gauge(
        "karpenter_cloudprovider_instance_type_offering_price_estimate",
        "Labels: `instance_type`, `capacity_type`, `zone`.",
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

impl StateGauge {
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
                    .encode_family(&labels)
                    .and_then(|mut series| series.encode_gauge(&value));
            }
        });
        written
    }
}

fn node_count(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    emit(&[], count(observation.snapshot.nodes().len()));
}

fn synced(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    let is_synced = observation.known.shell.model.is_synced();
    emit(&[], f64::from(u8::from(is_synced)));
}

fn unsynced_seconds(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    let since = observation.known.shell.model.unsynced_since();
    emit(&[], since.map_or(0.0, |it| seconds(it, observation.now)));
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
