//! Which controllers are to look at what changed: a table from changes to the keys of queues.
//!
//! A key too many costs one look at the object; a key too few is a controller that sleeps. Decides, and touches
//! nothing. Answers to the watch predicates of Karpenter's controllers.

use apis::conditions::{Conditioned as _, READY, REBOOTING};
use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodePool, ObjectKey};
use kube::ResourceExt;
use scheduling::pod::{Pod, PodKey};
use state::Snapshot;
use state::cluster::{Change, NodeSummary, Versions};

use super::queues::QueueName;

#[cfg(test)]
mod tests;

/// What follows from a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wake {
    /// A controller looks at the object.
    Add(QueueName, ObjectKey),
    /// It does unless it is to do so at a time of its own already.
    AddNew(QueueName, ObjectKey),
    /// There is nothing to look at any more.
    Forget(QueueName, ObjectKey),
    /// Overlays are judged together, whichever of them or of what they depend on changed.
    Overlays,
    /// Which NodePools a policy is for hangs on what NodePools there are.
    Policies,
    /// A pod was bound, to the node that was planned for it or to another.
    PodBound {
        /// The pod.
        pod: PodKey,
        /// Name of its Node.
        node: String,
        /// The Node or NodeClaim that it was planned for.
        planned: String,
    },
    /// A pod needs no decision any more.
    PodEnded(PodKey),
    /// A node that stays has more room.
    RoomFreed,
    /// A NodePool with this UID is gone.
    PoolGone(String),
}

/// What follows from a change; the snapshot has it already.
pub(super) fn wakes(change: &Change, snapshot: &Snapshot) -> Vec<Wake> {
    match change {
        Change::Pod {
            before,
            after,
            planned,
            is_deleted,
        } => match (before.as_deref(), after.as_deref()) {
            (before, Some(after)) => pod_applied(before, after, planned.as_deref(), snapshot),
            (Some(before), None) => pod_ended(before, *is_deleted, snapshot),
            (None, None) => Vec::new(),
        },
        Change::Node {
            name,
            provider_id,
            after,
        } => node(name, provider_id, *after, snapshot),
        Change::NodeClaim {
            name,
            node,
            pool,
            after,
        } => {
            let mut wakes = static_pool(pool.as_deref(), snapshot);
            wakes.extend(match after {
                Some(after) => claim_applied(after, node.as_deref()),
                None => claim_gone(name, node.as_deref()),
            });
            wakes
        }
        Change::NodePool(versions) => node_pool(versions, snapshot),
        Change::NodeClass(versions) => node_class(versions, snapshot),
        Change::NodeOverlay(versions) => {
            let is_other = versions.differ(|it| it.metadata.generation);
            is_other.then_some(Wake::Overlays).into_iter().collect()
        }
        Change::CapacityBuffer(versions) => {
            // Its status is our own doing.
            let is_other = versions.differ(|it: &CapacityBuffer| (it.uid(), it.spec.clone()));
            let wake = Wake::Add(QueueName::CapacityBuffers, versions.key.clone());
            is_other.then_some(wake).into_iter().collect()
        }
        Change::Workload(key) => workload(key, snapshot),
    }
}

fn pod_applied(
    before: Option<&Pod>,
    after: &Pod,
    planned: Option<&str>,
    snapshot: &Snapshot,
) -> Vec<Wake> {
    let mut wakes = Vec::new();
    if let (Some(node), Some(planned)) = (&after.node_name, planned) {
        wakes.push(Wake::PodBound {
            pod: after.key.clone(),
            node: node.clone(),
            planned: planned.to_owned(),
        });
    }
    if after.is_provisionable() && !before.is_some_and(Pod::is_provisionable) {
        wakes.push(Wake::Add(QueueName::PodTrigger, after.key.clone()));
    }
    let is_same_life = before.is_some_and(|before| {
        before.uid == after.uid
            && before.node_name == after.node_name
            && before.is_terminating() == after.is_terminating()
    });
    if !is_same_life {
        wakes.extend(pod_event(after, snapshot));
    }
    wakes
}

/// The model keeps no finished pods. The end of a long grace period counts as much as its beginning.
fn pod_ended(before: &Pod, is_deleted: bool, snapshot: &Snapshot) -> Vec<Wake> {
    let mut wakes = Vec::new();
    if !(is_deleted && before.is_terminating()) {
        wakes.extend(pod_event(before, snapshot));
    }
    wakes.push(Wake::PodEnded(before.key.clone()));
    let Some(name) = &before.node_name else {
        return wakes;
    };
    match snapshot.node(name) {
        Some(node) if node.is_marked_for_deletion() => {
            let key = ObjectKey::cluster(name);
            wakes.push(Wake::Add(QueueName::NodeTermination, key));
        }
        Some(_) => wakes.push(Wake::RoomFreed),
        None => {}
    }
    wakes
}

/// The claim of a pod's node counts when pods come and go.
fn pod_event(pod: &Pod, snapshot: &Snapshot) -> Option<Wake> {
    if pod.is_owned_by_daemon_set() {
        return None;
    }
    let claim = snapshot.node(pod.node_name.as_deref()?)?.claim_name()?;
    Some(Wake::Add(QueueName::PodEvents, ObjectKey::cluster(claim)))
}

fn node(
    name: &str,
    provider_id: &str,
    after: Option<NodeSummary>,
    snapshot: &Snapshot,
) -> Vec<Wake> {
    let mut wakes = Vec::new();
    if let Some(NodeSummary {
        is_deleting,
        is_disrupted,
    }) = after
    {
        let add = |queue| Wake::Add(queue, ObjectKey::cluster(name));
        wakes.extend(is_deleting.then(|| add(QueueName::NodeTermination)));
        wakes.extend(is_disrupted.then(|| add(QueueName::NodeTrigger)));
        wakes.push(add(QueueName::NodeHydration));
    }
    let joined = snapshot.node_by_provider_id(provider_id);
    let claim = joined.and_then(|node| node.claim_name());
    wakes.extend(claim.map(|claim| Wake::Add(QueueName::Lifecycle, ObjectKey::cluster(claim))));
    wakes
}

fn claim_applied(claim: &NodeClaim, node: Option<&str>) -> Vec<Wake> {
    let key = ObjectKey::cluster(claim.name_any());
    let reboots = claim
        .is_condition_true(REBOOTING)
        .then_some(QueueName::Reboots);
    let queues = reboots.into_iter().chain([
        QueueName::Lifecycle,
        QueueName::ClaimDisruption,
        QueueName::Expiration,
        QueueName::Consistency,
        QueueName::ClaimHydration,
        QueueName::Tagging,
    ]);
    let wakes = queues.map(|queue| Wake::Add(queue, key.clone()));
    let node = node.map(|node| Wake::Add(QueueName::NodeHydration, ObjectKey::cluster(node)));
    wakes.chain(node).collect()
}

fn claim_gone(name: &str, node: Option<&str>) -> Vec<Wake> {
    let key = ObjectKey::cluster(name);
    let forgotten = [QueueName::Lifecycle, QueueName::ClaimDisruption];
    let wakes = forgotten.map(|queue| Wake::Forget(queue, key.clone()));
    let node = node.map(|node| Wake::Add(QueueName::NodeTermination, ObjectKey::cluster(node)));
    wakes.into_iter().chain(node).collect()
}

/// A pool that holds a number of nodes counts them when its claims come and go.
fn static_pool(pool: Option<&str>, snapshot: &Snapshot) -> Vec<Wake> {
    let pool = pool.and_then(|name| snapshot.node_pool(name));
    let own = pool.filter(|it| it.is_static());
    let wake = own.map(|it| Wake::Add(QueueName::StaticPools, ObjectKey::cluster(it.name_any())));
    wake.into_iter().collect()
}

fn node_pool(versions: &Versions<NodePool>, snapshot: &Snapshot) -> Vec<Wake> {
    let key = &versions.key;
    if versions.after.is_none() {
        let uid = versions.before.as_deref().and_then(ResourceExt::uid);
        return vec![
            Wake::PoolGone(uid.unwrap_or_default()),
            Wake::Forget(QueueName::PoolCounter, key.clone()),
            Wake::Policies,
        ];
    }
    let mut wakes = Vec::new();
    wakes.extend(
        versions
            .differ(|it| it.metadata.generation)
            .then_some(Wake::Overlays),
    );
    let queues = [
        QueueName::PoolHash,
        QueueName::PoolReadiness,
        QueueName::PoolValidation,
    ];
    wakes.extend(queues.map(|queue| Wake::Add(queue, key.clone())));
    wakes.push(Wake::AddNew(QueueName::PoolCounter, key.clone()));
    wakes.extend(static_pool(Some(&key.name), snapshot));
    let own = snapshot.nodes();
    let own = own.filter(|node| node.node_pool() == Some(key.name.as_str()));
    let claims = own.filter_map(|node| node.claim_name());
    wakes.extend(claims.map(|it| Wake::Add(QueueName::ClaimDisruption, ObjectKey::cluster(it))));
    let is_relabelled = versions.differ(|it| it.metadata.labels.clone());
    wakes.extend(is_relabelled.then_some(Wake::Policies));
    wakes
}

fn node_class(versions: &Versions<Ec2NodeClass>, snapshot: &Snapshot) -> Vec<Wake> {
    let key = &versions.key;
    let mut wakes = Vec::new();
    // Types can be told once the class is ready, which its generation does not say.
    let is_other = versions.differ(|it| {
        let ready = it.condition(READY);
        (it.metadata.generation, ready.map(|it| it.status.clone()))
    });
    if versions.after.is_some() && is_other {
        wakes.push(Wake::Overlays);
    }
    wakes.push(Wake::Add(QueueName::NodeClass, key.clone()));
    let pools = snapshot
        .node_pools()
        .filter(|pool| pool.spec.template.spec.node_class_ref.name == key.name);
    wakes.extend(pools.map(|it| {
        let pool = ObjectKey::cluster(it.name_any());
        Wake::Add(QueueName::PoolReadiness, pool)
    }));
    let claims = snapshot.nodes().filter_map(|node| node.claim.as_ref());
    let own = claims.filter(|claim| claim.node_class == key.name);
    wakes
        .extend(own.map(|it| Wake::Add(QueueName::ClaimDisruption, ObjectKey::cluster(&*it.name))));
    wakes
}

/// Buffers that take their pods from the workload or template of that name.
fn workload(key: &ObjectKey, snapshot: &Snapshot) -> Vec<Wake> {
    let names = |buffer: &CapacityBuffer| {
        let template = buffer.spec.pod_template_ref.as_ref().map(|it| &it.name);
        let scalable = buffer.spec.scalable_ref.as_ref().map(|it| &it.name);
        template.or(scalable) == Some(&key.name)
            && buffer.metadata.namespace.as_ref() == Some(&key.namespace)
    };
    let buffers = snapshot.capacity_buffers().filter(|it| names(it));
    let wakes = buffers.map(|it| {
        let buffer = ObjectKey::new(&key.namespace, &it.name_any());
        Wake::Add(QueueName::CapacityBuffers, buffer)
    });
    wakes.collect()
}
