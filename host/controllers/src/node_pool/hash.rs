//! Stamps the static drift hash on pools, and carries claims over when the hash algorithm changes.
//!
//! Answers to `pkg/controllers/nodepool/hash/controller.go`.

use std::sync::Arc;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned};
use apis::{NodeClaim, NodePool, hash, labels};
use kube::ResourceExt;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::{Action, Reconciler};

/// The controller.
pub(crate) struct Hash {
    pub(crate) shell: Arc<Shell>,
}

#[async_trait::async_trait]
impl Reconciler for Hash {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(pool) = self.shell.model.fresh_node_pool(&key.name).await? else {
            return Ok(Action::Await);
        };
        let hash = hash::node_pool(&pool);
        if is_outdated(&pool) {
            self.migrate(&key.name, &hash).await?;
        }
        let after = stamped(&pool, &hash);
        self.shell.writer.write_pool(&pool, &after).await?;
        Ok(Action::Await)
    }
}

impl Hash {
    /// Claims of the pool of other versions get this one.
    async fn migrate(&self, pool: &str, hash: &str) -> Result<(), ReconcileError> {
        let mut outdated: Vec<NodeClaim> = Vec::new();
        let of_pool = format!("{}={pool}", labels::NODEPOOL);
        self.shell
            .model
            .for_each_claim(&of_pool, |claim| {
                if version_of(claim.annotations()) != Some(hash::NODE_POOL_HASH_VERSION) {
                    outdated.push(claim);
                }
            })
            .await?;
        for claim in &outdated {
            let after = migrated(claim, hash);
            self.shell.writer.write_claim(claim, &after).await?;
        }
        Ok(())
    }
}

/// The claim with the version of today; with the pool's hash, too, unless it is drifted and must stay so.
fn migrated(claim: &NodeClaim, hash: &str) -> NodeClaim {
    let mut after = claim.clone();
    let annotations = after.annotations_mut();
    annotations.insert(
        labels::NODEPOOL_HASH_VERSION_ANNOTATION.to_owned(),
        hash::NODE_POOL_HASH_VERSION.to_owned(),
    );
    if claim.condition(conditions::DRIFTED).is_none() {
        annotations.insert(labels::NODEPOOL_HASH_ANNOTATION.to_owned(), hash.to_owned());
    }
    after
}

fn version_of(annotations: &std::collections::BTreeMap<String, String>) -> Option<&str> {
    annotations
        .get(labels::NODEPOOL_HASH_VERSION_ANNOTATION)
        .map(String::as_str)
}

fn is_outdated(pool: &NodePool) -> bool {
    version_of(pool.annotations()).is_some_and(|version| version != hash::NODE_POOL_HASH_VERSION)
}

fn stamped(pool: &NodePool, hash: &str) -> NodePool {
    let mut after = pool.clone();
    let annotations = after.annotations_mut();
    annotations.insert(labels::NODEPOOL_HASH_ANNOTATION.to_owned(), hash.to_owned());
    annotations.insert(
        labels::NODEPOOL_HASH_VERSION_ANNOTATION.to_owned(),
        hash::NODE_POOL_HASH_VERSION.to_owned(),
    );
    after
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_claim::tests::{claim_with, condition};

    #[test]
    fn a_claim_of_an_older_version_gets_the_hash_unless_it_is_drifted() {
        let annotations = json!({"karpenter.sh/nodepool-hash": "old", "karpenter.sh/nodepool-hash-version": "v0"});
        for (conditions, expected) in [
            (json!([]), "new"),
            (json!([condition("Drifted", "True", "00:30")]), "old"),
        ] {
            let claim = claim_with(&json!({
                "/metadata/annotations": annotations, "/status/conditions": conditions,
            }));
            let after = migrated(&claim, "new");
            let annotations = after.annotations();
            assert_eq!(version_of(annotations), Some(hash::NODE_POOL_HASH_VERSION));
            assert_eq!(annotations[labels::NODEPOOL_HASH_ANNOTATION], expected);
        }
    }
}
