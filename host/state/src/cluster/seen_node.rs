//! Nodes as the watch tells of them, to know one that changed from one that merely beat its heart.
//!
//! Holds every Node, joined to its claim or not; what the model makes of a Node is in `nodes.rs`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use apis::conditions::is_node_ready;
use k8s_openapi::api::core::v1;

use super::Cluster;

/// A Node as far as watches go, also of one that is not joined to its claim yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenNode {
    pub(super) provider_id: String,
    /// Of what controllers look at, which heartbeats do not change.
    digest: u64,
}

impl Cluster {
    /// Notes what a Node looks like; whether it looked otherwise before.
    pub(super) fn see(&mut self, object: &v1::Node) -> bool {
        let name = object.metadata.name.clone().unwrap_or_default();
        let seen = SeenNode {
            provider_id: provider_id(object).to_owned(),
            digest: digest(object),
        };
        let before = self.data.seen_nodes.get(&name);
        if before == Some(&seen) {
            return false;
        }
        let before = before.map(|it| it.provider_id.clone());
        if let Some(before) = before.filter(|it| *it != seen.provider_id) {
            self.unindex(&name, &before);
        }
        if !seen.provider_id.is_empty() {
            let index = Arc::make_mut(&mut self.data.nodes_by_provider_id);
            let names = index.entry(seen.provider_id.clone()).or_default();
            names.insert(name.clone());
        }
        Arc::make_mut(&mut self.data.seen_nodes).insert(name, seen);
        true
    }

    pub(super) fn unindex(&mut self, name: &str, provider_id: &str) {
        let index = Arc::make_mut(&mut self.data.nodes_by_provider_id);
        if let Some(names) = index.get_mut(provider_id) {
            names.remove(name);
            if names.is_empty() {
                index.remove(provider_id);
            }
        }
    }
}

/// Whatever a controller may look at; not the heartbeats.
fn digest(node: &v1::Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    let meta = &node.metadata;
    meta.uid.hash(&mut hasher);
    meta.labels.hash(&mut hasher);
    meta.annotations.hash(&mut hasher);
    meta.finalizers.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    for taint in taints(node) {
        (&taint.key, &taint.value, &taint.effect).hash(&mut hasher);
    }
    is_node_ready(node).hash(&mut hasher);
    provider_id(node).hash(&mut hasher);
    let status = node.status.as_ref();
    for amounts in [
        status.and_then(|status| status.capacity.as_ref()),
        status.and_then(|status| status.allocatable.as_ref()),
    ] {
        for (name, quantity) in amounts.into_iter().flatten() {
            (name, &quantity.0).hash(&mut hasher);
        }
    }
    hasher.finish()
}

pub(super) fn provider_id(node: &v1::Node) -> &str {
    let spec = node.spec.as_ref();
    let provider_id = spec.and_then(|spec| spec.provider_id.as_deref());
    provider_id.unwrap_or_default()
}

pub(super) fn taints(node: &v1::Node) -> &[v1::Taint] {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}
