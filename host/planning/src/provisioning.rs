//! From a snapshot to the problem of one provisioning round: which pods, which pools, which nodes.
//!
//! Decides nothing about placement. Answers to the input half of Karpenter's
//! `pkg/controllers/provisioning/provisioner.go`.

mod expected_volumes;
mod kept;
mod pending;
mod pools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scheduling::pod::{Pod, PodKey};
use scheduling::problem::{DaemonPod, Options, Pool, Problem};
use scheduling::ranking::{Usage, UsageKey};
use state::Snapshot;

use crate::capacity_buffer;
use crate::coming::coming_pods;
use crate::default_spread;
use expected_volumes::{expected_volumes, expecting_volumes};
use kept::{keep_places, place_coming};
use pending::{PendingPods, moving_pods, pending_pods, validate};

pub use pending::{IgnoredReason, awaits_command, currently_reschedulable};
pub use pools::{
    PoolTypes, ProvisionablePools, TypesByPool, provisionable_pools, types_by_pool, usage,
};

/// The problem, and the pods left out of it.
#[derive(Debug, Clone)]
pub struct ProvisioningInput {
    /// The problem that the solver is given.
    pub problem: Problem,
    /// Pods that wait for capacity but cannot be considered.
    pub ignored: Vec<(PodKey, IgnoredReason)>,
}

/// Everything that waits for a place: pending pods, pods of nodes that are going, and the room of buffers. What the
/// nodes in use cost is [`usage`] of all pools, for those that may not buy count as well.
pub fn problem_for_provisioning(
    snapshot: &Snapshot,
    pools: &[PoolTypes],
    usage: BTreeMap<UsageKey, Usage>,
    options: Options,
) -> ProvisioningInput {
    let now = options.now;
    let PendingPods { mut pods, ignored } = pending_pods(snapshot);
    let moving = moving_pods(snapshot, now);
    let moving_keys: BTreeSet<&PodKey> = moving.iter().map(|pod| &pod.key).collect();
    let plans_coming_pods = options.plans_coming_pods;
    let mut problem = base_problem(snapshot, pools, usage, options);
    for node in &mut problem.nodes {
        if !node.is_schedulable && node.pods.iter().any(|pod| moving_keys.contains(&pod.key)) {
            Arc::make_mut(node)
                .pods
                .retain(|pod| !moving_keys.contains(&pod.key));
        }
    }
    pods.extend(moving.iter().cloned());
    let headroom = capacity_buffer::virtual_pods(snapshot).into_iter();
    pods.extend(headroom.filter(|pod| validate(snapshot, pod).is_ok()));
    let coming = if plans_coming_pods {
        coming_pods(snapshot, now)
    } else {
        Vec::new()
    };
    let mut pods = keep_places(&mut problem, snapshot, &pods, now);
    pods.extend(place_coming(&mut problem, snapshot, coming));
    problem.owners = snapshot.owners(pods.iter());
    add_pods(&mut problem, snapshot, pods);
    ProvisioningInput { problem, ignored }
}

/// The problem without pods: pools, nodes, daemons, namespaces.
pub fn base_problem(
    snapshot: &Snapshot,
    pools: &[PoolTypes],
    usage: BTreeMap<UsageKey, Usage>,
    options: Options,
) -> Problem {
    let now = options.now;
    let pool = |it: &PoolTypes| Pool {
        node_pool: Arc::clone(&it.node_pool),
        instance_types: Arc::clone(&it.instance_types),
        free_addresses: it.free_addresses.clone(),
        in_use: snapshot.pool_resources(it.node_pool.metadata.name.as_deref().unwrap_or_default()),
    };
    let expected = expected_volumes(pools);
    Problem {
        pools: pools.iter().map(pool).collect(),
        nodes: snapshot
            .nodes()
            .map(|node| snapshot.existing_node(node, now))
            .map(|node| Arc::new(expecting_volumes(node, snapshot, &expected)))
            .collect(),
        daemons: daemon_pods(snapshot, options.ignores_devices),
        namespaces: snapshot.namespaces().clone(),
        usage,
        ..Problem::new(options)
    }
}

/// One pod a DaemonSet. Those that claim devices count where devices are looked at; what they get is their own affair.
fn daemon_pods(snapshot: &Snapshot, ignores_devices: bool) -> Vec<DaemonPod> {
    let mut daemons = snapshot.daemon_pods();
    if !ignores_devices {
        for daemon in &mut daemons {
            if daemon.shape.uses_resource_claims {
                Arc::make_mut(&mut daemon.shape).uses_resource_claims = false;
            }
        }
    }
    daemons
}

/// Adds pods to a problem together with their volumes.
pub fn add_pods(problem: &mut Problem, snapshot: &Snapshot, pods: Vec<Arc<Pod>>) {
    let pods = default_spread::with_defaults(snapshot, &problem.options.default_spread, pods);
    for pod in &pods {
        if !pod.volume_claims.is_empty() {
            problem
                .volumes
                .insert(pod.key.clone(), snapshot.volumes().resolve(pod));
        }
    }
    problem.pods.extend(pods);
    resolve_devices(problem, snapshot);
}

/// Finds out what the pods' claims come to, unless they are ignored. Pods that keep a place await their devices there.
fn resolve_devices(problem: &mut Problem, snapshot: &Snapshot) {
    let uses_devices = |pod: &Arc<Pod>| pod.shape.uses_resource_claims;
    if problem.options.ignores_devices || !problem.pods.iter().any(uses_devices) {
        return;
    }
    let world = snapshot.devices();
    let on_nodes = problem.nodes.iter().flat_map(|it| &it.pods);
    let keeping = on_nodes.filter(|it| it.node_name.is_none() && uses_devices(it));
    let keeping: Vec<Arc<Pod>> = keeping.cloned().collect();
    let devices = world.resolve(snapshot, &problem.pods, &keeping, &mut problem.volumes);
    problem.devices = Some(Arc::new(devices));
}

#[cfg(test)]
mod tests;
