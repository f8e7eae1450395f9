//! Stamps the static drift hash on pools, and carries claims over when the hash algorithm changes.
//!
//! Answers to `pkg/controllers/nodepool/hash/controller.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use apis::{NodePool, hash, labels};
use kube::ResourceExt;

use crate::node_claim::hashes::{HashKeys, carry_over};
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::{Action, Reconciler};

const KEYS: HashKeys = HashKeys {
    hash: labels::NODEPOOL_HASH_ANNOTATION,
    version: labels::NODEPOOL_HASH_VERSION_ANNOTATION,
};

/// Controller of the static drift hash: one pool a reconcile.
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
            let of_pool = format!("{}={}", labels::NODEPOOL, key.name);
            carry_over(&self.shell, &of_pool, |_| true, &stamps, KEYS).await?;
        }
        let mut after = pool.clone();
        after.annotations_mut().extend(stamps);
        self.shell.writer.write_pool(&pool, &after).await?;
        Ok(Action::Await)
    }
}

fn is_outdated(pool: &NodePool) -> bool {
    let version = pool.annotations().get(KEYS.version);
    version.is_some_and(|version| version != hash::NODE_POOL_HASH_VERSION)
}

/// Annotations that carry the hash of the pool and its version.
fn stamps(pool: &NodePool) -> BTreeMap<String, String> {
    let version = hash::NODE_POOL_HASH_VERSION.to_owned();
    BTreeMap::from([
        (KEYS.hash.to_owned(), hash::node_pool(pool)),
        (KEYS.version.to_owned(), version),
    ])
}
