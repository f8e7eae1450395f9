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
        let before = self.data.seen_nodes.get(&name);
        if before == Some(&seen) {
            return false;
        }
        let before = before.and_then(|it| it.provider_id.clone());
        if let Some(before) = before.filter(|it| Some(it) != seen.provider_id.as_ref()) {
            self.unindex(&name, &before);
        }
        if let Some(provider_id) = seen.provider_id.clone() {
            let index = Arc::make_mut(&mut self.data.nodes_by_provider_id);
            let names = index.entry(provider_id).or_default();
            names.insert(name.clone());
        }
        Arc::make_mut(&mut self.data.seen_nodes).insert(name, seen);
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
