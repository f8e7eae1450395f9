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
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

const KEYS: HashKeys = HashKeys {
    hash: labels::NODEPOOL_HASH_ANNOTATION,
    version: labels::NODEPOOL_HASH_VERSION_ANNOTATION,
};

/// Controller of the static drift hash: one pool a reconcile.
pub(crate) struct Hash {
    pub(crate) shell: Arc<Shell>,
}

/// What a pool is to say of its hash, and whether its claims have to follow first.
#[derive(Debug)]
struct Decided {
    /// Annotations with the hash of the pool and its version.
    stamps: BTreeMap<String, String>,
    carries_claims_over: bool,
}

impl Reconciler for Hash {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(pool) = self.shell.model.fresh_node_pool(&key.name).await? else {
            return Ok(Action::Await);
        };
        let Decided {
            stamps,
            carries_claims_over,
        } = decide(&pool);
        if carries_claims_over {
            let of_pool = format!("{}={}", labels::NODEPOOL, key.name);
            carry_over(&self.shell, &of_pool, |_| true, &stamps, KEYS).await?;
        }
        let mut after = pool.clone();
        after.annotations_mut().extend(stamps);
        self.shell.writer.write_pool(&pool, &after).await?;
        Ok(Action::Await)
    }
}

fn decide(pool: &NodePool) -> Decided {
    let current = hash::NODE_POOL_HASH_VERSION;
    let version = pool.annotations().get(KEYS.version);
    Decided {
        stamps: BTreeMap::from([
            (KEYS.hash.to_owned(), hash::node_pool(pool)),
            (KEYS.version.to_owned(), current.to_owned()),
        ]),
        carries_claims_over: version.is_some_and(|it| it != current),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pool_gets_its_hash_and_claims_follow_where_it_had_one_of_another_version() {
        let current = hash::NODE_POOL_HASH_VERSION;
        let cases = [
            (json!({}), false),
            (json!({KEYS.version: current}), false),
            (json!({KEYS.version: current, KEYS.hash: "1"}), false),
            (json!({KEYS.version: "v0", KEYS.hash: "1"}), true),
            (json!({KEYS.version: "", KEYS.hash: "1"}), true),
            // A hash of no version was written by nobody who carries claims over.
            (json!({KEYS.hash: "1"}), false),
        ];
        for (annotations, expected) in cases {
            let mut pool = NodePool::default();
            pool.metadata.annotations = serde_json::from_value(annotations.clone()).unwrap();
            let decided = decide(&pool);
            assert_eq!(decided.carries_claims_over, expected, "{annotations}");
            assert_eq!(decided.stamps[KEYS.hash], hash::node_pool(&pool));
            assert_eq!(decided.stamps[KEYS.version], current);
        }
    }
}
