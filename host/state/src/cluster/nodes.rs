//! Nodes in the model, joined to their NodeClaims by the providerID, and our marks on both.

use std::sync::Arc;

use apis::labels;
use apis::{NodeRef, ObjectKey, ProviderId};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;

use super::Cluster;
use super::change::{Change, Changes, NodeSummary, Refused};
use super::seen_node::taints;
use super::watched::Watched;
use crate::facts::NodeFacts;
use crate::state_node::StateNode;

impl Watched for v1::Node {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let is_new = cluster.see(&object);
        cluster.apply_node(now, &object);
        if !is_new {
            return Ok(Changes::new());
        }
        let name = object.metadata.name.clone().unwrap_or_default();
        Ok(vec![Change::Node {
            provider_id: ProviderId::of_node(&object),
            after: Some(NodeSummary {
                is_deleting: object.metadata.deletion_timestamp.is_some(),
                is_disrupted: taints(&object)
                    .iter()
                    .any(|taint| taint.key == labels::DISRUPTED_TAINT_KEY),
            }),
            name,
        }])
    }

    fn written(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        // The answer to a write may come after the watch told of what others made of the Node meanwhile, or of its end.
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let seen = cluster.seen_nodes.get(name);
        if seen.is_some_and(|it| !it.is_newer_than(&object)) {
            // Not noted as seen, so that the watch tells of it.
            cluster.apply_node(now, &object);
        }
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let seen = cluster.seen_nodes.remove(&key.name);
        cluster.delete_node(now, &key.name);
        let Some(seen) = seen else {
            return Changes::new();
        };
        if let Some(provider_id) = &seen.provider_id {
            cluster.unindex(&key.name, provider_id);
        }
        vec![Change::Node {
            name: key.name.clone(),
            provider_id: seen.provider_id,
            after: None,
        }]
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.seen_nodes.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Cluster {
    fn apply_node(&mut self, now: Timestamp, object: &v1::Node) {
        let facts = NodeFacts::parse(object);
        let name = facts.name.clone();
        let is_young = facts
            .labels
            .get(labels::INITIALIZED)
            .is_none_or(String::is_empty);
        let key = match (&facts.provider_id, facts.claims_a_pool()) {
            // Nothing tells yet which claim it belongs to.
            (None, true) => return,
            (None, false) => name.clone(),
            (Some(_), true) if is_young && !facts.labels.contains_key(labels::INSTANCE_TYPE) => {
                return;
            }
            (Some(id), _) => id.to_string(),
        };
        if self
            .data
            .node_keys
            .get(&name)
            .is_some_and(|old| *old != key)
        {
            self.delete_node(now, &name);
        }
        let before = self.data.nodes.get(&key).cloned();
        let known = before.as_ref().and_then(|it| it.node());
        if known.is_some_and(|it| **it == facts) {
            return;
        }
        let facts = Arc::new(facts);
        let after = match &before {
            Some(before) => before.with_node(facts),
            None => StateNode::of_node(facts),
        };
        Arc::make_mut(&mut self.data.node_keys).insert(name, key.clone());
        self.replace(now, key, before.as_deref(), Some(after));
    }

    fn delete_node(&mut self, now: Timestamp, name: &str) {
        let Some(key) = Arc::make_mut(&mut self.data.node_keys).remove(name) else {
            return;
        };
        let before = self.data.nodes.get(&key);
        // A Node of another name may have come to the instance first; that one stays.
        if let Some(before) = before.filter(|it| it.node_name() == Some(name)).cloned() {
            let after = before.without_node();
            self.replace(now, key, Some(&before), after);
        }
    }

    /// Puts the new state of a node in place and notices what consolidation depends on.
    pub(super) fn replace(
        &mut self,
        now: Timestamp,
        key: String,
        before: Option<&StateNode>,
        after: Option<StateNode>,
    ) {
        let matters = match (before, &after) {
            (Some(before), Some(after)) => matters_to_consolidation(before, after),
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        };
        let nodes = Arc::make_mut(&mut self.data.nodes);
        match after {
            Some(after) => nodes.insert(key, Arc::new(after)),
            None => nodes.remove(&key),
        };
        if matters {
            self.bump(now);
        }
    }

    pub(super) fn nominate(&mut self, node: &NodeRef, until: Timestamp) {
        let Some(key) = self.data.key(node).map(str::to_owned) else {
            return;
        };
        if let Some(node) = Arc::make_mut(&mut self.data.nodes).get_mut(&key) {
            let node = Arc::make_mut(node);
            node.nominated_until = node.nominated_until.max(Some(until));
        }
    }

    /// A command is about to delete these.
    pub(super) fn mark(&mut self, now: Timestamp, nodes: &[NodeRef]) {
        self.set_marks(now, nodes, true);
    }

    /// The command was given up.
    pub(super) fn unmark(&mut self, now: Timestamp, nodes: &[NodeRef]) {
        self.set_marks(now, nodes, false);
    }

    fn set_marks(&mut self, now: Timestamp, nodes: &[NodeRef], is_marked: bool) {
        for node in nodes {
            let Some(key) = self.data.key(node).map(str::to_owned) else {
                continue;
            };
            let Some(before) = self.data.nodes.get(&key).cloned() else {
                continue;
            };
            if before.is_marked != is_marked {
                let mut after = (*before).clone();
                after.is_marked = is_marked;
                self.replace(now, key, Some(&before), Some(after));
            }
        }
    }
}

/// Whether a node is another one to consolidation than it was.
fn matters_to_consolidation(before: &StateNode, after: &StateNode) -> bool {
    before.node().is_some() != after.node().is_some()
        || before.is_managed() != after.is_managed()
        || before.is_initialized() != after.is_initialized()
        || before.is_marked_for_deletion() != after.is_marked_for_deletion()
        || (!before.is_consolidatable() && after.is_consolidatable())
}
