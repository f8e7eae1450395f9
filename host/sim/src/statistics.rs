//! The world in numbers, read from its truth and not from what a controller believes.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::SimulatedCluster;
use crate::cluster::pod::SimulatedPhase;
use crate::ec2::{InstanceState, SimulatedInstance};

/// Numbers of a moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Statistics {
    /// Number of instances by EC2's word for their state.
    pub instances: BTreeMap<&'static str, usize>,
    /// Instances launched since the start.
    pub launches: u64,
    /// Terminations begun since the start.
    pub terminations: u64,
    /// Number of Nodes.
    pub nodes: usize,
    /// Number of pods that run.
    pub pods_running: usize,
    /// Pods that wait, bound or not.
    pub pods_pending: usize,
    /// Pods that wait and that the scheduler found no node for.
    pub pods_unschedulable: usize,
    /// Pods that ended, well or badly.
    pub pods_finished: usize,
    /// Price of the billed instances, USD an hour.
    pub price_per_hour: f64,
    /// Billed instances that no NodeClaim names.
    pub leaked_instances: Vec<String>,
    /// Calls to AWS by operation.
    pub calls: BTreeMap<&'static str, u64>,
}

/// Numbers that change whenever an instance or a pod comes or goes; cheap enough to be asked all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pulse {
    /// Instances launched since the start.
    pub launches: u64,
    /// Terminations begun since the start.
    pub terminations: u64,
    /// Number of pods that run.
    pub pods_running: usize,
    /// Pods that wait, bound or not.
    pub pods_pending: usize,
}

impl Pulse {
    pub(crate) fn of(cluster: &SimulatedCluster) -> Self {
        let mut pulse = Self {
            launches: cluster.ec2.launches(),
            terminations: cluster.ec2.terminations(),
            ..Self::default()
        };
        for pod in cluster.pods.values() {
            match pod.phase {
                SimulatedPhase::Running => pulse.pods_running += 1,
                SimulatedPhase::Pending => pulse.pods_pending += 1,
                SimulatedPhase::Succeeded | SimulatedPhase::Failed => {}
            }
        }
        pulse
    }
}

impl Statistics {
    pub(crate) fn of(cluster: &SimulatedCluster) -> Self {
        let states = cluster.ec2.count_by_state();
        let pods = |phase: SimulatedPhase| {
            cluster
                .pods
                .values()
                .filter(|pod| pod.phase == phase)
                .count()
        };
        Self {
            instances: states
                .into_iter()
                .map(|(state, count)| (state.as_str(), count))
                .collect(),
            launches: cluster.ec2.launches(),
            terminations: cluster.ec2.terminations(),
            nodes: cluster.nodes.len(),
            pods_running: pods(SimulatedPhase::Running),
            pods_pending: pods(SimulatedPhase::Pending),
            pods_unschedulable: cluster.unschedulable.len(),
            pods_finished: pods(SimulatedPhase::Succeeded) + pods(SimulatedPhase::Failed),
            price_per_hour: cluster.ec2.price_per_hour(),
            leaked_instances: leaked(cluster)
                .into_iter()
                .map(|instance| instance.id)
                .collect(),
            calls: cluster.ec2.calls(),
        }
    }
}

/// Billed instances that no NodeClaim names by its provider id.
pub(crate) fn leaked(cluster: &SimulatedCluster) -> Vec<SimulatedInstance> {
    let now = cluster.clock.now();
    let claims = cluster.node_claims.values();
    let claimed: BTreeSet<&str> = claims.filter_map(|it| it.instance_id.as_deref()).collect();
    let instances = cluster.ec2.instances().into_iter();
    instances
        .filter(|instance| instance.is_billed(now) && !claimed.contains(instance.id.as_str()))
        .collect()
}

/// Whether any instance is booting or on its way out.
pub(crate) fn has_moving_instances(cluster: &SimulatedCluster) -> bool {
    let now = cluster.clock.now();
    let moves = |instance: &SimulatedInstance| match instance.state(now) {
        InstanceState::Pending | InstanceState::ShuttingDown => true,
        InstanceState::Running => instance.ready_at > now,
        InstanceState::Terminated => false,
    };
    cluster.ec2.each_instance(moves).contains(&true)
}
