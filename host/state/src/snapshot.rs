//! The cluster at one moment, cheap to take and never changing under its reader.
//!
//! Read-only; every query is by name or in order of name. What is read of one kind alone stands in the file of the
//! kind, in `cluster/`.

mod solver_input;

use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodeRef, ProviderId};
use jiff::Timestamp;
use scheduling::pod::{Pod, PodKey};

use crate::cluster::{Cluster, Data, Event};
use crate::state_node::{BoundPods, StateNode};

/// A view of the model as it was when taken.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) data: Data,
    nothing: Arc<BoundPods>,
}

impl Snapshot {
    pub(crate) fn new(data: Data) -> Self {
        Self {
            data,
            nothing: Arc::new(BoundPods::default()),
        }
    }

    /// Every tracked node, in order of its key.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Arc<StateNode>> {
        self.data.nodes.values()
    }

    /// A node; by its NodeClaim it is found before and after it registers.
    pub fn find(&self, node: &NodeRef) -> Option<&Arc<StateNode>> {
        self.data.nodes.get(self.data.key(node)?)
    }

    /// A node by the name of its Node.
    pub fn node(&self, name: &str) -> Option<&Arc<StateNode>> {
        self.data.nodes.get(self.data.node_keys.get(name)?)
    }

    /// A node by the name of its NodeClaim.
    pub fn node_of_claim(&self, claim: &str) -> Option<&Arc<StateNode>> {
        self.data.node_of_claim(claim)
    }

    /// A node by its providerID.
    pub fn node_by_provider_id(&self, provider_id: &ProviderId) -> Option<&Arc<StateNode>> {
        self.data.nodes.get(provider_id.as_str())
    }

    /// Whether a claim of this name is known, launched or not.
    pub fn has_claim(&self, name: &str) -> bool {
        self.data.claim_keys.contains_key(name)
    }

    /// Pods bound to a node.
    pub fn bound(&self, node: &StateNode) -> &Arc<BoundPods> {
        node.node_name()
            .and_then(|name| self.data.bound.get(name))
            .unwrap_or(&self.nothing)
    }

    /// Pods bound to a Node, by its name, tracked or not.
    pub fn bound_to(&self, node_name: &str) -> &Arc<BoundPods> {
        self.data.bound.get(node_name).unwrap_or(&self.nothing)
    }

    /// Every pod that is not terminal.
    pub fn pods(&self) -> impl ExactSizeIterator<Item = &Arc<Pod>> {
        self.data.pods.values()
    }

    /// The pod of that name, unless it is terminal.
    pub fn pod(&self, key: &PodKey) -> Option<&Arc<Pod>> {
        self.data.pods.get(key)
    }

    /// Pods that its controlling owner keeps, this one included.
    pub fn replicas(&self, pod: &Pod) -> u32 {
        pod.shape
            .owner
            .as_ref()
            .and_then(|owner| self.data.owned.get(&owner.uid))
            .map_or(1, |owned| owned.pods.max(1))
    }

    /// Names of the Nodes with this providerID, also of those whose claim is not known yet.
    pub fn node_names_of(&self, provider_id: &ProviderId) -> impl Iterator<Item = &str> {
        let names = self.data.nodes_by_provider_id.get(provider_id);
        names.into_iter().flatten().map(String::as_str)
    }

    /// Capacity of the pool's nodes that are here to stay, with the pseudo resource `nodes`.
    pub fn pool_resources(&self, pool: &str) -> Resources {
        let mut total = Resources::new();
        for node in self.nodes() {
            if node.node_pool() == Some(pool) && node.is_managed() && !node.is_marked_for_deletion()
            {
                total.add_assign(&node.capacity());
            }
        }
        total
    }

    /// Allocatable less what bound pods request.
    pub fn available(&self, node: &StateNode) -> Resources {
        node.allocatable().sub(self.bound(node).requests())
    }

    /// The cluster as if some nodes were marked for deletion and pods were expected on others until then. The cluster
    /// learns nothing of it.
    #[must_use]
    pub fn supposing(
        &self,
        now: Timestamp,
        leaving: Vec<NodeRef>,
        expecting: Vec<NodeRef>,
        until: Timestamp,
    ) -> Self {
        let mut model = Cluster::new();
        model.data = self.data.clone();
        let nominated = |node| Event::Nominated { node, until };
        let events = expecting.into_iter().map(nominated);
        for event in events.chain([Event::MarkedForDeletion(leaving)]) {
            // Marks are never refused: what they name and is gone stays gone.
            model.apply(now, event).ok();
        }
        model.snapshot()
    }
}

impl Cluster {
    /// The model as it is now; later changes do not show in it.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.data.clone())
    }
}
