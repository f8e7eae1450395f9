//! Nodes as the watch tells of them, to know one that changed from one that merely beat its heart.
//!
//! Every Node is noted, joined to its claim or not; what the model makes of a Node is in `nodes.rs`.

use std::hash::{DefaultHasher, Hash, Hasher};

use apis::ProviderId;
use apis::conditions::is_node_ready;
use k8s_openapi::api::core::v1;

use super::resource_version::resource_version;

/// A Node as far as watches go, also of one that is not joined to its claim yet.
#[derive(Debug)]
pub(super) struct SeenNode {
    pub(super) provider_id: Option<ProviderId>,
    /// Of what controllers look at, which heartbeats do not change.
    digest: u64,
    version: u64,
}

impl SeenNode {
    pub(super) fn of(node: &v1::Node) -> Self {
        Self {
            provider_id: ProviderId::of_node(node),
            digest: digest(node),
            version: resource_version(&node.metadata),
        }
    }

    /// Whether controllers would see the same.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// Whether that copy of the Node is older.
    pub(super) fn is_newer_than(&self, node: &v1::Node) -> bool {
        self.version > resource_version(&node.metadata)
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
    ProviderId::of_node(node).hash(&mut hasher);
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

pub(super) fn taints(node: &v1::Node) -> &[v1::Taint] {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}
