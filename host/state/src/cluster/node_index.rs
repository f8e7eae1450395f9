//! Which Nodes bear which providerID, as watches tell of them.

use std::sync::Arc;

use apis::ProviderId;
use k8s_openapi::api::core::v1;

use super::Cluster;
use super::seen_node::SeenNode;

impl Cluster {
    /// Notes what a Node looks like; whether it looked otherwise before.
    pub(super) fn see(&mut self, object: &v1::Node) -> bool {
        let name = object.metadata.name.clone().unwrap_or_default();
        let seen = SeenNode::of(object);
        let known = self.seen_nodes.get(&name);
        let is_same = known.is_some_and(|it| it.looks_like(&seen));
        let provider_id = seen.provider_id.clone();
        let before = self.seen_nodes.insert(name.clone(), seen);
        if is_same {
            return false;
        }
        let before = before.and_then(|it| it.provider_id);
        if let Some(before) = before.filter(|it| Some(it) != provider_id.as_ref()) {
            self.unindex(&name, &before);
        }
        if let Some(provider_id) = provider_id {
            let index = Arc::make_mut(&mut self.data.nodes_by_provider_id);
            index.entry(provider_id).or_default().insert(name);
        }
        true
    }

    pub(super) fn unindex(&mut self, name: &str, provider_id: &ProviderId) {
        let index = Arc::make_mut(&mut self.data.nodes_by_provider_id);
        if let Some(names) = index.get_mut(provider_id) {
            names.remove(name);
            if names.is_empty() {
                index.remove(provider_id);
            }
        }
    }
}
