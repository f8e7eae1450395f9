//! Stamps the static drift hash on pools, and carries claims over when the hash algorithm changes.
//!
//! Answers to `pkg/controllers/nodepool/hash/controller.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use apis::{NodeClaim, NodePool, hash, labels};
use kube::ResourceExt;

use crate::node_claim::hashes::carry_over;
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
        let stamps = stamps(&pool);
        if is_outdated(&pool) {
            self.migrate(&key.name, &stamps).await?;
        }
        let mut after = pool.clone();
        after.annotations_mut().extend(stamps);
        self.shell.writer.write_pool(&pool, &after).await?;
        Ok(Action::Await)
    }
}

impl Hash {
    /// Claims of the pool of other versions get this one.
    async fn migrate(
        &self,
        pool: &str,
        stamps: &BTreeMap<String, String>,
    ) -> Result<(), ReconcileError> {
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
        let hash_key = labels::NODEPOOL_HASH_ANNOTATION;
        carry_over(&self.shell.writer, &outdated, stamps, hash_key).await
    }
}

fn version_of(annotations: &BTreeMap<String, String>) -> Option<&str> {
    annotations
        .get(labels::NODEPOOL_HASH_VERSION_ANNOTATION)
        .map(String::as_str)
}

fn is_outdated(pool: &NodePool) -> bool {
    version_of(pool.annotations()).is_some_and(|version| version != hash::NODE_POOL_HASH_VERSION)
}

/// What says of which hash the pool is.
fn stamps(pool: &NodePool) -> BTreeMap<String, String> {
    let version = hash::NODE_POOL_HASH_VERSION.to_owned();
    BTreeMap::from([
        (
            labels::NODEPOOL_HASH_ANNOTATION.to_owned(),
            hash::node_pool(pool),
        ),
        (labels::NODEPOOL_HASH_VERSION_ANNOTATION.to_owned(), version),
    ])
}
