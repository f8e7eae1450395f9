//! Gauges of state: what there is at the moment that somebody scrapes, each a function of the model.
//!
//! Between scrapes they cost nothing, and a series goes with its object. Only whoever leads shows them, so that sums over
//! replicas are right. Answers to `pkg/controllers/metrics` and to the gauges of `pkg/controllers/state/metrics.go`.

mod conditions;
mod node_pools;
mod nodes;
mod offerings;
mod pods;
mod workers;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use state::Snapshot;

use crate::shell::Shell;
use crate::shell::turn::TurnStage;

/// Registers with a registry as one collector.
pub struct StateMetrics {
    shell: Arc<Shell>,
}

/// What gauges look at.
struct Observation<'a> {
    shell: &'a Shell,
    snapshot: &'a Snapshot,
    now: Timestamp,
}

/// Takes in one series: its labels and its value.
type Tell<'a> = dyn FnMut(&[(&'static str, &str)], f64) + 'a;

/// One family of series.
struct StateGauge {
    name: &'static str,
    help: &'static str,
    series: fn(&Observation<'_>, &mut Tell<'_>),
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    series: fn(&Observation<'_>, &mut Tell<'_>),
) -> StateGauge {
    StateGauge { name, help, series }
}

/// What is shown in any case: without labels, or of the process.
const OF_THE_PROCESS: &[StateGauge] = &[
    // No labels.
    gauge(
        "karpenter_cluster_state_node_count",
        "Nodes in cluster state",
        node_count,
    ),
    // No labels.
    gauge(
        "karpenter_cluster_state_synced",
        "Whether cluster state is synced",
        synced,
    ),
    // No labels.
    gauge(
        "karpenter_cluster_state_unsynced_time_seconds",
        "How long cluster state has not been synced",
        unsynced_seconds,
    ),
    // Labels: `controller`, `scheduling_id`.
    gauge(
        "karpenter_scheduler_queue_depth",
        "Pods left in the pass",
        workers::queue_depth,
    ),
    // Labels: `controller`, `scheduling_id`.
    gauge(
        "karpenter_scheduler_unfinished_work_seconds",
        "Age of a pass that is not over",
        workers::unfinished_passes,
    ),
    // Labels: `name`, `controller`, `priority`.
    gauge("workqueue_depth", "Keys in the queue", workers::depth),
    // Labels: `name`, `controller`.
    gauge(
        "workqueue_unfinished_work_seconds",
        "Ages of all work that is not done",
        workers::unfinished_work,
    ),
    // Labels: `name`, `controller`.
    gauge(
        "workqueue_longest_running_processor_seconds",
        "Age of the oldest work that is not done",
        workers::longest_work,
    ),
];

/// What grows with the cluster. Nodes carry a label for each well-known label, beside `node_name`, `phase` and `managed`.
const OF_THE_CLUSTER: &[StateGauge] = &[
    // Labels: `resource_type`, and those of the node.
    gauge(
        "karpenter_nodes_allocatable",
        "What pods can have of a node",
        nodes::allocatable,
    ),
    // Labels: `resource_type`, and those of the node.
    gauge(
        "karpenter_nodes_system_overhead",
        "What the system takes of a node",
        nodes::system_overhead,
    ),
    // Labels: `resource_type`, and those of the node.
    gauge(
        "karpenter_nodes_total_pod_requests",
        "Requests of all pods on a node",
        nodes::pod_requests,
    ),
    // Labels: `resource_type`, and those of the node.
    gauge(
        "karpenter_nodes_total_pod_limits",
        "Limits of all pods on a node",
        nodes::pod_limits,
    ),
    // Labels: `resource_type`, and those of the node.
    gauge(
        "karpenter_nodes_total_daemon_requests",
        "Requests of pods of DaemonSets on a node",
        nodes::daemon_requests,
    ),
    // Labels: `resource_type`, and those of the node.
    gauge(
        "karpenter_nodes_total_daemon_limits",
        "Limits of pods of DaemonSets on a node",
        nodes::daemon_limits,
    ),
    // Labels: those of the node.
    gauge(
        "karpenter_nodes_current_lifetime_seconds",
        "Age of a node",
        nodes::lifetime,
    ),
    // Labels: `resource_type`.
    gauge(
        "karpenter_cluster_utilization_percent",
        "Share of what pods can have that they request",
        nodes::utilization,
    ),
    // Labels: `name`, `namespace`, `owner`, `node`, `scheduled`, `nodepool`, `zone`, `arch`, `capacity_type`, `instance_type`, `phase`, `ready`, `managed`.
    gauge(
        "karpenter_pods_state",
        "Pods and where they are",
        pods::state,
    ),
    // Labels: `name`, `namespace`.
    gauge(
        "karpenter_pods_unstarted_time_seconds",
        "Age of a pod that has not been ready yet",
        pods::unstarted,
    ),
    // Labels: `name`, `namespace`, `dynamic_resources`.
    gauge(
        "karpenter_pods_unbound_time_seconds",
        "Age of a pod that is not bound yet",
        pods::unbound,
    ),
    // Labels: `name`, `namespace`.
    gauge(
        "karpenter_pods_provisioning_unstarted_time_seconds",
        "Time since the first place was found for a pod that has not been ready yet",
        pods::provisioning_unstarted,
    ),
    // Labels: `name`, `namespace`, `dynamic_resources`.
    gauge(
        "karpenter_pods_provisioning_unbound_time_seconds",
        "Time since the first place was found for a pod that is not bound yet",
        pods::provisioning_unbound,
    ),
    // Labels: `name`, `namespace`.
    gauge(
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
        "Time that a pod has waited for its first decision",
        pods::undecided,
    ),
    // Labels: `resource_type`, `nodepool`.
    gauge(
        "karpenter_nodepools_limit",
        "Limits of the NodePool",
        node_pools::limit,
    ),
    // Labels: `resource_type`, `nodepool`.
    gauge(
        "karpenter_nodepools_usage",
        "Resources of the NodePool's nodes",
        node_pools::usage,
    ),
    // Labels: `nodepool`.
    gauge(
        "karpenter_nodepools_cost_total",
        "What the NodePool's nodes cost an hour, by list price with NodeOverlays",
        node_pools::cost,
    ),
    // Labels: `instance_type`.
    gauge(
        "karpenter_cloudprovider_instance_type_cpu_cores",
        "CPUs of an instance type",
        offerings::cpu_cores,
    ),
    // Labels: `instance_type`.
    gauge(
        "karpenter_cloudprovider_instance_type_memory_bytes",
        "Memory of an instance type",
        offerings::memory_bytes,
    ),
    // Labels: `instance_type`, `capacity_type`, `zone`.
    gauge(
        "karpenter_cloudprovider_instance_type_offering_available",
        "Whether an offering can be bought",
        offerings::available,
    ),
    // Labels: `instance_type`, `capacity_type`, `zone`.
    gauge(
        "karpenter_cloudprovider_instance_type_offering_price_estimate",
        "Price of an offering an hour",
        offerings::price,
    ),
];

impl StateMetrics {
    pub(crate) fn new(shell: Arc<Shell>) -> Self {
        Self { shell }
    }
}

impl fmt::Debug for StateMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StateMetrics")
            .finish_non_exhaustive()
    }
}

impl Collector for StateMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if self.shell.turn.stage() < TurnStage::Leads {
            return Ok(());
        }
        let observation = Observation {
            shell: &self.shell,
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

fn node_count(observation: &Observation<'_>, tell: &mut Tell<'_>) {
    tell(&[], count(observation.snapshot.nodes().len()));
}

fn synced(observation: &Observation<'_>, tell: &mut Tell<'_>) {
    let is_synced = observation.shell.model.is_synced();
    tell(&[], f64::from(u8::from(is_synced)));
}

fn unsynced_seconds(observation: &Observation<'_>, tell: &mut Tell<'_>) {
    let since = observation.shell.model.unsynced_since();
    tell(&[], since.map_or(0.0, |it| seconds(it, observation.now)));
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
