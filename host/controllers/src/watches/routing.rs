//! Which controllers are to look at what changed: a table from changes to the keys of queues.
//!
//! A key too many costs one look at the object; a key too few is a controller that sleeps. Decides, and touches
//! nothing. Answers to the watch predicates of Karpenter's controllers.

use apis::conditions::{Conditioned as _, READY, REBOOTING};
use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodePool, NodeRef, ObjectKey, ProviderId};
use kube::ResourceExt;
use scheduling::pod::{Pod, PodKey};
use state::Snapshot;
use state::cluster::{Change, ChangedObject, NodeSummary, PodEnd, Versions};

use super::queues::QueueName;

#[cfg(test)]
mod tests;

/// Consequence of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reaction {
    /// A controller looks at the object.
    Enqueue(QueueName, ObjectKey),
    /// It does unless it is to do so at a time of its own already.
    EnqueueNew(QueueName, ObjectKey),
    /// There is nothing to look at any more.
    Forget(QueueName, ObjectKey),
    /// Overlays are judged together, whichever of them or of what they depend on changed.
    Overlays,
    /// Which NodePools a policy is for hangs on what NodePools there are.
    Policies,
    /// A pod was bound, to the node that was planned for it or to another.
    PodBound {
        /// Namespace and name of the pod.
        pod: PodKey,
        /// Name of its Node.
        node: String,
        /// The node that it was planned for.
        planned: NodeRef,
    },
    /// A pod needs no decision any more.
    PodEnded(PodKey),
    /// A pod left a node that stays, and with it something that it asked for.
    PodLeft,
    /// A NodePool with this UID is gone.
    PoolGone(String),
    /// The NodeClaim of this name is gone.
    ClaimGone(String),
}

/// Consequences of a change; the snapshot has it already.
pub(super) fn reactions(change: &Change, snapshot: &Snapshot) -> Vec<Reaction> {
    match change {
        Change::Pod {
            before,
            after,
            planned,
        } => pod_applied(before.as_deref(), after, planned.as_ref(), snapshot),
        Change::PodGone { before, end } => pod_gone(before, *end, snapshot),
        Change::PodDisplaced(pod) => vec![Reaction::Enqueue(QueueName::PodTrigger, pod.clone())],
        Change::Node {
            name,
            provider_id,
            after,
        } => node(name, provider_id.as_ref(), *after, snapshot),
        Change::NodeClaim {
            name,
            node,
            pool,
            after,
        } => {
            let mut reactions = static_pool(pool.as_deref(), snapshot);
            reactions.extend(match after {
                Some(after) => claim_applied(after, node.as_deref()),
                None => claim_gone(name, node.as_deref()),
            });
            reactions
        }
        Change::NodePool(versions) => node_pool(versions, snapshot),
        Change::NodeClass(versions) => node_class(versions, snapshot),
        Change::NodeOverlay(versions) => {
            let is_other = versions.differ(|it| it.metadata.generation);
            is_other.then_some(Reaction::Overlays).into_iter().collect()
        }
        Change::CapacityBuffer(versions) => {
            // Its status is our own doing.
            let is_other = versions.differ(|it: &CapacityBuffer| (it.uid(), it.spec.clone()));
            let reaction = Reaction::Enqueue(QueueName::CapacityBuffers, versions.key.clone());
            is_other.then_some(reaction).into_iter().collect()
        }
        Change::Workload(key) => workload(key, snapshot),
    }
}

fn pod_applied(
    before: Option<&Pod>,
    after: &Pod,
    planned: Option<&NodeRef>,
    snapshot: &Snapshot,
) -> Vec<Reaction> {
    let mut reactions = Vec::new();
    if let (Some(node), Some(planned)) = (&after.node_name, planned) {
        reactions.push(Reaction::PodBound {
            pod: after.key.clone(),
            node: node.clone(),
            planned: planned.clone(),
        });
    }
    if after.is_provisionable() && !before.is_some_and(Pod::is_provisionable) {
        reactions.push(Reaction::Enqueue(QueueName::PodTrigger, after.key.clone()));
    }
    let is_same_life = before.is_some_and(|before| {
        before.uid == after.uid
            && before.node_name == after.node_name
            && before.is_terminating() == after.is_terminating()
    });
    if !is_same_life {
        reactions.extend(pod_event(after, snapshot));
    }
    reactions
}

/// The end of a long grace period counts as much as its beginning.
fn pod_gone(before: &Pod, end: PodEnd, snapshot: &Snapshot) -> Vec<Reaction> {
    let mut reactions = Vec::new();
    if end == PodEnd::Over || !before.is_terminating() {
        reactions.extend(pod_event(before, snapshot));
    }
    reactions.push(Reaction::PodEnded(before.key.clone()));
    let Some(name) = &before.node_name else {
        return reactions;
    };
    match snapshot.node(name) {
        Some(node) if node.is_marked_for_deletion() => {
            let key = ObjectKey::cluster(name);
            reactions.push(Reaction::Enqueue(QueueName::NodeTermination, key));
        }
        Some(_) => reactions.push(Reaction::PodLeft),
        None => {}
    }
    reactions
}

/// The claim of a pod's node counts when pods come and go.
fn pod_event(pod: &Pod, snapshot: &Snapshot) -> Option<Reaction> {
    if pod.is_owned_by_daemon_set() {
        return None;
    }
    let claim = snapshot.node(pod.node_name.as_deref()?)?.claim_name()?;
    Some(Reaction::Enqueue(
        QueueName::PodEvents,
        ObjectKey::cluster(claim),
    ))
}

fn node(
    name: &str,
    provider_id: Option<&ProviderId>,
    after: Option<NodeSummary>,
    snapshot: &Snapshot,
) -> Vec<Reaction> {
    let mut reactions = Vec::new();
    if let Some(NodeSummary {
        is_deleting,
        is_disrupted,
    }) = after
    {
        let add = |queue| Reaction::Enqueue(queue, ObjectKey::cluster(name));
        reactions.extend(is_deleting.then(|| add(QueueName::NodeTermination)));
        reactions.extend(is_disrupted.then(|| add(QueueName::NodeTrigger)));
        reactions.push(add(QueueName::NodeHydration));
    }
    let joined = provider_id.and_then(|id| snapshot.node_by_provider_id(id));
    let claim = joined.and_then(|node| node.claim_name());
    reactions.extend(
        claim.map(|claim| Reaction::Enqueue(QueueName::Lifecycle, ObjectKey::cluster(claim))),
    );
    reactions
}

fn claim_applied(claim: &NodeClaim, node: Option<&str>) -> Vec<Reaction> {
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
    let reactions = queues.map(|queue| Reaction::Enqueue(queue, key.clone()));
    let node =
        node.map(|node| Reaction::Enqueue(QueueName::NodeHydration, ObjectKey::cluster(node)));
    reactions.chain(node).collect()
}

fn claim_gone(name: &str, node: Option<&str>) -> Vec<Reaction> {
    let key = ObjectKey::cluster(name);
    let forgotten = [QueueName::Lifecycle, QueueName::ClaimDisruption];
    let reactions = forgotten.map(|queue| Reaction::Forget(queue, key.clone()));
    let node =
        node.map(|node| Reaction::Enqueue(QueueName::NodeTermination, ObjectKey::cluster(node)));
    let gone = Reaction::ClaimGone(name.to_owned());
    let reactions = reactions.into_iter().chain([gone]);
    reactions.chain(node).collect()
}

/// A pool that holds a number of nodes counts them when its claims come and go.
fn static_pool(pool: Option<&str>, snapshot: &Snapshot) -> Vec<Reaction> {
    let pool = pool.and_then(|name| snapshot.node_pool(name));
    let own = pool.filter(|it| it.is_static());
    let reaction =
        own.map(|it| Reaction::Enqueue(QueueName::StaticPools, ObjectKey::cluster(it.name_any())));
    reaction.into_iter().collect()
}

fn node_pool(versions: &Versions<NodePool>, snapshot: &Snapshot) -> Vec<Reaction> {
    let key = &versions.key;
    if let ChangedObject::Gone(before) = &versions.change {
        return vec![
            Reaction::PoolGone(before.uid().unwrap_or_default()),
            Reaction::Forget(QueueName::PoolCounter, key.clone()),
            Reaction::Policies,
        ];
    }
    let mut reactions = Vec::new();
    reactions.extend(
        versions
            .differ(|it| it.metadata.generation)
            .then_some(Reaction::Overlays),
    );
    let queues = [
        QueueName::PoolHash,
        QueueName::PoolReadiness,
        QueueName::PoolValidation,
    ];
    reactions.extend(queues.map(|queue| Reaction::Enqueue(queue, key.clone())));
    reactions.push(Reaction::EnqueueNew(QueueName::PoolCounter, key.clone()));
    reactions.extend(static_pool(Some(&key.name), snapshot));
    let own = snapshot.nodes();
    let own = own.filter(|node| node.node_pool() == Some(key.name.as_str()));
    let claims = own.filter_map(|node| node.claim_name());
    reactions.extend(
        claims.map(|it| Reaction::Enqueue(QueueName::ClaimDisruption, ObjectKey::cluster(it))),
    );
    let is_relabelled = versions.differ(|it| it.metadata.labels.clone());
    reactions.extend(is_relabelled.then_some(Reaction::Policies));
    reactions
}

fn node_class(versions: &Versions<Ec2NodeClass>, snapshot: &Snapshot) -> Vec<Reaction> {
    let key = &versions.key;
    let mut reactions = Vec::new();
    // Types can be told once the class is ready, which its generation does not say.
    let is_other = versions.differ(|it| {
        let ready = it.condition(READY);
        (it.metadata.generation, ready.map(|it| it.status.clone()))
    });
    if versions.after().is_some() && is_other {
        reactions.push(Reaction::Overlays);
    }
    reactions.push(Reaction::Enqueue(QueueName::NodeClass, key.clone()));
    let pools = snapshot
        .node_pools()
        .filter(|pool| pool.spec.template.spec.node_class_ref.name == key.name);
    reactions.extend(pools.map(|it| {
        let pool = ObjectKey::cluster(it.name_any());
        Reaction::Enqueue(QueueName::PoolReadiness, pool)
    }));
    let claims = snapshot.nodes().filter_map(|node| node.claim());
    let own = claims.filter(|claim| claim.node_class == key.name);
    reactions.extend(
        own.map(|it| Reaction::Enqueue(QueueName::ClaimDisruption, ObjectKey::cluster(&*it.name))),
    );
    reactions
}

/// Buffers that take their pods from the workload or template of that name.
fn workload(key: &ObjectKey, snapshot: &Snapshot) -> Vec<Reaction> {
    let names = |buffer: &CapacityBuffer| {
        let template = buffer.spec.pod_template_ref.as_ref().map(|it| &it.name);
        let scalable = buffer.spec.scalable_ref.as_ref().map(|it| &it.name);
        template.or(scalable) == Some(&key.name)
            && buffer.metadata.namespace.as_ref() == Some(&key.namespace)
    };
    let buffers = snapshot.capacity_buffers().filter(|it| names(it));
    let reactions = buffers.map(|it| {
        let buffer = ObjectKey::new(&key.namespace, &it.name_any());
        Reaction::Enqueue(QueueName::CapacityBuffers, buffer)
    });
    reactions.collect()
}
