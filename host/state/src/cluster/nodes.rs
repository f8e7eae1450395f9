//! Nodes and NodeClaims in the model, joined by their providerID.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use apis::conditions::is_node_ready;
use apis::labels;
use apis::{NodeClaim, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;

use super::{Change, Changes, Cluster, NodeSight, Refused, Watched};
use crate::facts::{ClaimFacts, NodeFacts};
use crate::state_node::StateNode;

/// A Node as far as watches go, also of one that is not joined to its claim yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenNode {
    provider_id: String,
    /// Of what controllers look at, which heartbeats do not change.
    digest: u64,
}

impl Watched for v1::Node {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let is_new = cluster.see(&object);
        cluster.node_applied(now, &object);
        if !is_new {
            return Ok(Changes::new());
        }
        let name = object.metadata.name.clone().unwrap_or_default();
        Ok(vec![Change::Node {
            provider_id: provider_id(&object).to_owned(),
            after: Some(NodeSight {
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
        // Not noted as seen, so that the watch tells of it.
        cluster.node_applied(now, &object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let seen = Arc::make_mut(&mut cluster.data.seen_nodes).remove(&key.name);
        cluster.node_gone(now, &key.name);
        let Some(seen) = seen else {
            return Changes::new();
        };
        cluster.unindex(&key.name, &seen.provider_id);
        vec![Change::Node {
            name: key.name.clone(),
            provider_id: seen.provider_id,
            after: None,
        }]
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.seen_nodes.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for NodeClaim {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        if !cluster.recent_claims.keep(&object) {
            return Ok(Changes::new());
        }
        cluster.claim_applied(now, &object);
        let name = object.metadata.name.clone().unwrap_or_default();
        let labels = object.metadata.labels.as_ref();
        Ok(vec![Change::NodeClaim {
            node: cluster.node_name_of_claim(&name),
            pool: labels.and_then(|it| it.get(labels::NODEPOOL).cloned()),
            after: Some(object),
            name,
        }])
    }

    fn deleted(cluster: &mut Cluster, now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        if !cluster.data.claim_keys.contains_key(&key.name) {
            return Changes::new();
        }
        let node = cluster.node_name_of_claim(&key.name);
        let pool = cluster.pool_of_claim(&key.name);
        let claim = cluster.of_claim(&key.name).and_then(|it| it.claim.as_ref());
        let uid = claim.map(|it| it.uid.clone());
        cluster.recent_claims.gone(&key.name, uid);
        cluster.claim_gone(now, &key.name);
        vec![Change::NodeClaim {
            name: key.name.clone(),
            node,
            pool,
            after: None,
        }]
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.claim_keys.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

fn provider_id(node: &v1::Node) -> &str {
    let spec = node.spec.as_ref();
    let provider_id = spec.and_then(|spec| spec.provider_id.as_deref());
    provider_id.unwrap_or_default()
}

fn taints(node: &v1::Node) -> &[v1::Taint] {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
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

impl Cluster {
    /// Notes what a Node looks like; whether it looked otherwise before.
    fn see(&mut self, object: &v1::Node) -> bool {
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

    fn unindex(&mut self, name: &str, provider_id: &str) {
        let index = Arc::make_mut(&mut self.data.nodes_by_provider_id);
        if let Some(names) = index.get_mut(provider_id) {
            names.remove(name);
            if names.is_empty() {
                index.remove(provider_id);
            }
        }
    }

    fn of_claim(&self, claim: &str) -> Option<&Arc<StateNode>> {
        self.data.nodes.get(self.data.claim_keys.get(claim)?)
    }

    fn node_name_of_claim(&self, claim: &str) -> Option<String> {
        let node = self.of_claim(claim)?;
        node.node_name().map(str::to_owned)
    }

    fn pool_of_claim(&self, claim: &str) -> Option<String> {
        let claim = self.of_claim(claim)?.claim.as_ref()?;
        claim.node_pool().map(str::to_owned)
    }

    fn node_applied(&mut self, now: Timestamp, object: &v1::Node) {
        let facts = NodeFacts::parse(object);
        let name = facts.name.clone();
        let is_young = facts
            .labels
            .get(labels::INITIALIZED)
            .is_none_or(String::is_empty);
        let key = match (facts.provider_id.as_str(), facts.claims_a_pool()) {
            // Nothing tells yet which claim it belongs to.
            ("", true) => return,
            ("", false) => name.clone(),
            (_, true) if is_young && !facts.labels.contains_key(labels::INSTANCE_TYPE) => return,
            (id, _) => id.to_owned(),
        };
        if self
            .data
            .node_keys
            .get(&name)
            .is_some_and(|old| *old != key)
        {
            self.node_gone(now, &name);
        }
        let before = self.data.nodes.get(&key).cloned().unwrap_or_default();
        if before.node.as_deref() == Some(&facts) {
            return;
        }
        let after = StateNode {
            node: Some(Arc::new(facts)),
            ..(*before).clone()
        };
        Arc::make_mut(&mut self.data.node_keys).insert(name, key.clone());
        self.replace(now, key, &before, after);
    }

    fn node_gone(&mut self, now: Timestamp, name: &str) {
        let Some(key) = Arc::make_mut(&mut self.data.node_keys).remove(name) else {
            return;
        };
        if let Some(before) = self.data.nodes.get(&key).cloned() {
            let after = StateNode {
                node: None,
                ..(*before).clone()
            };
            self.replace(now, key, &before, after);
        }
    }

    fn claim_applied(&mut self, now: Timestamp, object: &NodeClaim) {
        let facts = ClaimFacts::parse(object);
        let key = facts.provider_id.clone();
        let name = facts.name.clone();
        let old = self.data.claim_keys.get(&name).cloned();
        if old
            .as_ref()
            .is_some_and(|old| !old.is_empty() && *old != key)
        {
            // A launched claim does not lose its instance; an older copy of it came late.
            if key.is_empty() {
                return;
            }
            self.claim_gone(now, &name);
        }
        if old.as_ref() != Some(&key) {
            Arc::make_mut(&mut self.data.claim_keys).insert(name, key.clone());
        }
        if key.is_empty() {
            return;
        }
        let before = self.data.nodes.get(&key).cloned().unwrap_or_default();
        if before.claim.as_deref() == Some(&facts) {
            return;
        }
        let after = StateNode {
            claim: Some(Arc::new(facts)),
            ..(*before).clone()
        };
        self.replace(now, key, &before, after);
    }

    fn claim_gone(&mut self, now: Timestamp, name: &str) {
        let Some(key) = Arc::make_mut(&mut self.data.claim_keys).remove(name) else {
            return;
        };
        if let Some(before) = self.data.nodes.get(&key).cloned() {
            let after = StateNode {
                claim: None,
                ..(*before).clone()
            };
            self.replace(now, key, &before, after);
        }
    }

    /// Puts the new state of a node in place and notices what consolidation depends on.
    fn replace(&mut self, now: Timestamp, key: String, before: &StateNode, after: StateNode) {
        let appeared = before.node.is_some() != after.node.is_some()
            || before.claim.is_some() != after.claim.is_some();
        let flipped = before.is_initialized() != after.is_initialized()
            || before.is_marked_for_deletion() != after.is_marked_for_deletion()
            || (!before.is_consolidatable() && after.is_consolidatable());
        let nodes = Arc::make_mut(&mut self.data.nodes);
        if after.node.is_none() && after.claim.is_none() {
            nodes.remove(&key);
        } else {
            nodes.insert(key, Arc::new(after));
        }
        if appeared || flipped {
            self.bump(now);
        }
    }

    /// Key in `nodes` of a Node's or NodeClaim's name.
    fn key_of(&self, name: &str) -> Option<String> {
        let data = &self.data;
        let key = data
            .node_keys
            .get(name)
            .or_else(|| data.claim_keys.get(name))?;
        Some(key.clone()).filter(|key| !key.is_empty())
    }

    pub(super) fn nominated(&mut self, name: &str, until: Timestamp) {
        let Some(key) = self.key_of(name) else { return };
        if let Some(node) = Arc::make_mut(&mut self.data.nodes).get_mut(&key) {
            let node = Arc::make_mut(node);
            node.nominated_until = node.nominated_until.max(Some(until));
        }
    }

    pub(super) fn marked(&mut self, now: Timestamp, names: &[String], is_marked: bool) {
        for name in names {
            let Some(key) = self.key_of(name) else {
                continue;
            };
            let Some(before) = self.data.nodes.get(&key).cloned() else {
                continue;
            };
            if before.is_marked != is_marked {
                let after = StateNode {
                    is_marked,
                    ..(*before).clone()
                };
                self.replace(now, key, &before, after);
            }
        }
    }
}
