//! Keeps NodePools with replicas at their count: makes claims that no pod asked for, and deletes those too many.
//!
//! Claims are counted as the API server has them, never as the model remembers, and under one lock with everything
//! else that makes claims for such pools, so that neither a restart nor a late watch makes one node too many. Answers
//! to `pkg/controllers/static`.

pub(crate) mod pending;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::Conditioned;
use apis::{NodePool, conditions, labels};
use disruption::{static_drift, surplus};
use kube::ResourceExt;
use scheduling::solution::NewClaim;

use crate::error::{ReconcileError, ignore_not_found};
use crate::node_claim::entries::ClaimEntry;
use crate::runtime::{Action, Reconciler};
use crate::shell::Shell;

const PERIOD: Action = Action::RequeueAfter(Duration::from_mins(1));
const AT_LIMIT: Action = Action::RequeueAfter(Duration::from_secs(30));

/// How many claims a pool has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Names of those that stay.
    active: Vec<String>,
    pending: usize,
    deleting: usize,
    replicas: usize,
    limit: usize,
}

impl Count {
    /// Nodes that may still come.
    pub(crate) fn room(&self) -> usize {
        let there = self.active.len() + self.pending + self.deleting;
        self.limit.saturating_sub(there)
    }

    /// Nodes that are missing. Those that a command is about are replaced by the command.
    fn missing(&self) -> usize {
        if self.active.len() + self.pending >= self.replicas {
            return 0;
        }
        self.replicas - self.active.len()
    }

    fn too_many(&self) -> usize {
        self.active.len().saturating_sub(self.replicas)
    }
}

/// Counts the claims of a pool.
pub(crate) async fn count(
    shell: &Shell,
    pool: &str,
    pending: &BTreeSet<String>,
) -> Result<Count, ReconcileError> {
    let Some(node_pool) = shell.model.fresh_node_pool(pool).await? else {
        return Ok(Count::default());
    };
    let as_count = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
    let mut count = Count {
        replicas: as_count(static_drift::replicas(&node_pool)),
        limit: as_count(static_drift::node_limit(&node_pool)),
        ..Count::default()
    };
    let of_pool = format!("{}={pool}", labels::NODEPOOL);
    shell
        .model
        .for_each_claim(&of_pool, |claim| {
            let name = claim.name_any();
            if claim.metadata.deletion_timestamp.is_some() {
                count.deleting += 1;
            } else if pending.contains(&name) {
                count.pending += 1;
            } else {
                count.active.push(name);
            }
        })
        .await?;
    Ok(count)
}

/// The controller.
pub(crate) struct StaticPools {
    pub(crate) shell: Arc<Shell>,
}

#[async_trait::async_trait]
impl Reconciler for StaticPools {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        if !self.shell.settings.feature_gates.static_capacity {
            return Ok(Action::Await);
        }
        let pool = self.shell.model.fresh_node_pool(&key.name).await?;
        let is_kept = |it: &NodePool| it.is_static() && it.metadata.deletion_timestamp.is_none();
        let Some(pool) = pool.filter(is_kept) else {
            return Ok(Action::Await);
        };
        let pending = self.shell.static_pending.lock().await;
        let count = count(&self.shell, &key.name, &pending).await?;
        if count.too_many() > 0 {
            self.delete(&pool, &count).await?;
            return Ok(PERIOD);
        }
        let missing = count.missing();
        let is_ready = pool.is_condition_true(conditions::READY);
        if missing == 0 || !is_ready {
            return Ok(PERIOD);
        }
        let comes = missing.min(count.room());
        for _ in 0..comes {
            self.create(&pool).await?;
        }
        Ok(if comes < missing { AT_LIMIT } else { PERIOD })
    }
}

impl StaticPools {
    async fn create(&self, pool: &NodePool) -> Result<(), ReconcileError> {
        let name = pool.name_any();
        let object =
            NewClaim::of_template(pool, &[]).to_node_claim(pool, self.shell.seed_for(&name));
        let created = self.shell.writer.create_claim(&object).await?;
        let entry = ClaimEntry::Created {
            reason: "provisioned",
            record: Some("replicas"),
        };
        self.shell.journal.write(&created, &entry);
        Ok(())
    }

    async fn delete(&self, pool: &NodePool, count: &Count) -> Result<(), ReconcileError> {
        let (snapshot, now) = (self.shell.model.snapshot(), self.shell.now());
        let picked = surplus::pick(&snapshot, &count.active, count.too_many(), now);
        drop(snapshot);
        for name in picked {
            let Some(claim) = self.shell.model.node_claim(&name).await? else {
                continue;
            };
            ignore_not_found(self.shell.writer.delete(claim.as_ref()).await)?;
            let pool = &pool.name_any();
            let entry = ClaimEntry::Surplus { pool };
            self.shell.journal.write(claim.as_ref(), &entry);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_what_is_too_much() {
        let count = |active: usize, pending, deleting, replicas, limit| Count {
            active: (0..active).map(|it| it.to_string()).collect(),
            pending,
            deleting,
            replicas,
            limit,
        };
        let cases = [
            (count(2, 0, 0, 3, 9), (1, 0, 7)),
            (count(3, 0, 0, 3, 9), (0, 0, 6)),
            // A replacement is there, the node it replaces still is as well.
            (count(3, 1, 0, 3, 9), (0, 0, 5)),
            // A node goes first and makes up for itself only once it is going.
            (count(2, 1, 0, 3, 3), (0, 0, 0)),
            (count(2, 0, 1, 3, 3), (1, 0, 0)),
            (count(5, 0, 0, 3, 9), (0, 2, 4)),
            (count(0, 0, 0, 0, 9), (0, 0, 9)),
        ];
        for (count, expected) in cases {
            let got = (count.missing(), count.too_many(), count.room());
            assert_eq!(got, expected, "{count:?}");
        }
    }
}
