//! NodeClaims in the model, joined to their Nodes by the providerID.

use std::sync::Arc;

use apis::labels;
use apis::{NodeClaim, ObjectKey};
use jiff::Timestamp;

use super::Cluster;
use super::change::{Change, Changes, Refused};
use super::watched::Watched;
use crate::facts::ClaimFacts;
use crate::state_node::StateNode;

impl Watched for NodeClaim {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let changes = Self::written(cluster, now, Arc::clone(&object));
        cluster.recent_claims.note_told(&object);
        changes
    }

    fn written(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        if !cluster.recent_claims.keep(&object) {
            return Ok(Changes::new());
        }
        cluster.apply_claim(now, &object);
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
        let tracked = cluster.data.node_of_claim(&key.name);
        let node = tracked.and_then(|it| it.node_name()).map(str::to_owned);
        let claim = tracked.and_then(|it| it.claim());
        let pool = claim.and_then(|it| it.node_pool()).map(str::to_owned);
        cluster.recent_claims.note_deleted(&key.name);
        cluster.delete_claim(now, &key.name);
        vec![Change::NodeClaim {
            name: key.name.clone(),
            node,
            pool,
            after: None,
        }]
    }

    fn unlisted(cluster: &mut Cluster, now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        // One that was created while the list was on its way may be newer than the list; the watch that follows tells
        // of it.
        if cluster.recent_claims.excuse_once(&key.name) {
            return Changes::new();
        }
        Self::deleted(cluster, now, (), key)
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.claim_keys.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Cluster {
    /// Whether every claim has its instance: the capacity of one that has none is unknown, so that nothing may be
    /// decided.
    pub fn is_every_claim_launched(&self) -> bool {
        self.unlaunched_claims().next().is_none()
    }

    /// Names of claims that have no instance yet.
    pub fn unlaunched_claims(&self) -> impl Iterator<Item = &str> {
        let unlaunched = self.data.claim_keys.iter().filter(|(_, key)| key.is_none());
        unlaunched.map(|(name, _)| name.as_str())
    }

    fn node_name_of_claim(&self, claim: &str) -> Option<String> {
        let node = self.data.node_of_claim(claim)?;
        node.node_name().map(str::to_owned)
    }

    fn apply_claim(&mut self, now: Timestamp, object: &NodeClaim) {
        let facts = ClaimFacts::parse(object);
        let key = facts.provider_id.clone();
        let name = facts.name.clone();
        let old = self.data.claim_keys.get(&name).cloned();
        if old.as_ref().is_some_and(|old| old.is_some() && *old != key) {
            // A launched claim does not lose its instance; an older copy of it came late.
            if key.is_none() {
                return;
            }
            self.delete_claim(now, &name);
        }
        if old.as_ref() != Some(&key) {
            Arc::make_mut(&mut self.data.claim_keys).insert(name, key.clone());
        }
        let Some(key) = key else {
            return;
        };
        let before = self.data.nodes.get(key.as_str()).cloned();
        let known = before.as_ref().and_then(|it| it.claim());
        if known.is_some_and(|it| **it == facts) {
            return;
        }
        let facts = Arc::new(facts);
        let after = match &before {
            Some(before) => before.with_claim(facts),
            None => StateNode::of_claim(facts),
        };
        self.replace(now, key.to_string(), before.as_deref(), Some(after));
    }

    fn delete_claim(&mut self, now: Timestamp, name: &str) {
        let key = Arc::make_mut(&mut self.data.claim_keys).remove(name);
        let Some(key) = key.flatten() else {
            return;
        };
        let before = self.data.nodes.get(key.as_str());
        let is_its = |it: &&Arc<StateNode>| it.claim().is_some_and(|claim| claim.name == name);
        // Another claim may have come to the instance first; that one stays.
        if let Some(before) = before.filter(is_its).cloned() {
            let after = before.without_claim();
            self.replace(now, key.to_string(), Some(&before), after);
        }
    }
}
