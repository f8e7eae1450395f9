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
use disruption::surplus;
use jiff::Timestamp;
use kube::ResourceExt;
use scheduling::solution::NewClaim;
use state::Snapshot;

use self::pending::StaticPending;
use crate::node_claim::creation::{ClaimCreator, CreationCause, CreationReason};
use crate::node_claim::entries::launch::ClaimSurplus;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

const PERIOD: Action = Action::RequeueAfter(Duration::from_mins(1));
const AT_LIMIT: Action = Action::RequeueAfter(Duration::from_secs(30));

/// How many claims a pool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplicaCount {
    /// Names of those that stay.
    active: Vec<String>,
    pending: usize,
    deleting: usize,
    replicas: usize,
    limit: usize,
}

impl ReplicaCount {
    /// Nodes that may still come.
    pub(crate) fn headroom(&self) -> usize {
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

    fn surplus(&self) -> usize {
        self.active.len().saturating_sub(self.replicas)
    }
}

/// Counts the claims of a pool.
pub(crate) async fn count(
    shell: &Shell,
    pool: &NodePool,
    pending: &BTreeSet<String>,
) -> Result<ReplicaCount, ReconcileError> {
    let as_count = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
    let mut count = ReplicaCount {
        active: Vec::new(),
        pending: 0,
        deleting: 0,
        replicas: as_count(pool.replicas_wanted()),
        limit: pool.nodes_max().map_or(usize::MAX, as_count),
    };
    let of_pool = format!("{}={}", labels::NODEPOOL, pool.name_any());
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

/// Controller of NodePools with replicas: one pool a reconcile.
pub(crate) struct StaticPools {
    pub(crate) shell: Arc<Shell>,
    pub(crate) claims: ClaimCreator,
    pub(crate) pending: Arc<StaticPending>,
}

/// A pool that keeps replicas, and what there is of them.
struct Observed {
    pool: NodePool,
    count: ReplicaCount,
    snapshot: Snapshot,
}

/// Step that brings the pool to its count.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It has what it is to have, or may have nothing now.
    Leave,
    /// These claims are too many.
    Delete(Vec<String>),
    /// So many are missing.
    Create {
        claims: usize,
        /// More would be missing than the limit of the pool allows.
        is_at_limit: bool,
    },
}

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
        // Until it is done, nobody else makes claims for such pools.
        let pending = self.pending.lock().await;
        let observed = self.observe(pool, &pending).await?;
        let step = decide(&observed, self.shell.now());
        self.apply(&observed.pool, step).await
    }
}

impl StaticPools {
    async fn observe(
        &self,
        pool: NodePool,
        pending: &BTreeSet<String>,
    ) -> Result<Observed, ReconcileError> {
        Ok(Observed {
            count: count(&self.shell, &pool, pending).await?,
            snapshot: self.shell.model.snapshot(),
            pool,
        })
    }

    async fn apply(&self, pool: &NodePool, step: Step) -> Result<Action, ReconcileError> {
        match step {
            Step::Leave => Ok(PERIOD),
            Step::Delete(claims) => {
                for name in &claims {
                    self.delete(pool, name).await?;
                }
                Ok(PERIOD)
            }
            Step::Create {
                claims,
                is_at_limit,
            } => {
                for _ in 0..claims {
                    self.create(pool).await?;
                }
                Ok(if is_at_limit { AT_LIMIT } else { PERIOD })
            }
        }
    }

    async fn create(&self, pool: &NodePool) -> Result<(), ReconcileError> {
        let name = pool.name_any();
        let cause = CreationCause {
            decision_id: &name,
            reason: CreationReason::Provisioned,
            record: Some("replicas"),
        };
        let new = NewClaim::of_template(pool, &[]);
        self.claims.create(pool, &new, cause).await?;
        Ok(())
    }

    async fn delete(&self, pool: &NodePool, name: &str) -> Result<(), ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(name).await? else {
            return Ok(());
        };
        ignore_not_found(self.shell.writer.delete(claim.as_ref()).await)?;
        let pool = &pool.name_any();
        let entry = ClaimSurplus { pool };
        self.shell.journal.write(claim.as_ref(), &entry);
        Ok(())
    }
}

fn decide(observed: &Observed, now: Timestamp) -> Step {
    let Observed {
        pool,
        count,
        snapshot,
    } = observed;
    if count.surplus() > 0 {
        let picked = surplus::pick(snapshot, &count.active, count.surplus(), now);
        return Step::Delete(picked);
    }
    let missing = count.missing();
    if missing == 0 || !pool.is_condition_true(conditions::READY) {
        return Step::Leave;
    }
    let claims = missing.min(count.headroom());
    Step::Create {
        claims,
        is_at_limit: claims < missing,
    }
}

#[cfg(test)]
mod tests {
    use state::Cluster;

    use super::*;

    fn count(
        active: usize,
        pending: usize,
        deleting: usize,
        replicas: usize,
        limit: usize,
    ) -> ReplicaCount {
        ReplicaCount {
            active: (0..active).map(|it| it.to_string()).collect(),
            pending,
            deleting,
            replicas,
            limit,
        }
    }

    /// A pool that its class makes ready, or not.
    fn pool(is_ready: bool) -> NodePool {
        let mut pool = NodePool::default();
        pool.edit_conditions(Timestamp::UNIX_EPOCH, |editor| {
            for condition in apis::conditions::NODE_POOL.dependents {
                if is_ready {
                    editor.set_true(condition);
                }
            }
        });
        pool
    }

    #[test]
    fn a_pool_is_brought_to_its_count_within_its_limit() {
        let create = |claims, is_at_limit| Step::Create {
            claims,
            is_at_limit,
        };
        let cases = [
            (true, count(3, 0, 0, 3, 9), Step::Leave),
            (true, count(1, 0, 0, 3, 9), create(2, false)),
            (true, count(1, 0, 0, 3, 2), create(1, true)),
            (true, count(1, 0, 1, 3, 2), create(0, true)),
            // Nothing comes of a class that is not ready, but what is too much goes.
            (false, count(1, 0, 0, 3, 9), Step::Leave),
            (
                false,
                count(3, 0, 0, 2, 9),
                Step::Delete(vec!["0".to_owned()]),
            ),
        ];
        for (is_ready, count, expected) in cases {
            let observed = Observed {
                pool: pool(is_ready),
                count,
                snapshot: Cluster::new().snapshot(),
            };
            let step = decide(&observed, Timestamp::UNIX_EPOCH);
            assert_eq!(step, expected, "{:?}", observed.count);
        }
    }

    #[test]
    fn what_is_missing_and_what_is_too_much() {
        let cases = [
            (count(2, 0, 0, 3, 9), (1, 0, 7)),
            (count(3, 0, 0, 3, 9), (0, 0, 6)),
            // A replacement is there, the node it replaces still is as well.
            (count(3, 1, 0, 3, 9), (0, 0, 5)),
            // A node goes first and makes up for itself only once it is going.
            (count(2, 1, 0, 3, 3), (0, 0, 0)),
            (count(2, 0, 1, 3, 3), (1, 0, 0)),
            // Of two that are replaced both are still there, then one, then none.
            (count(3, 2, 0, 3, 9), (0, 0, 4)),
            (count(3, 1, 1, 3, 9), (0, 0, 4)),
            (count(3, 0, 2, 3, 9), (0, 0, 4)),
            // Two go first; what is missing comes as soon as the limit lets it.
            (count(1, 2, 0, 3, 3), (0, 0, 0)),
            (count(1, 1, 1, 3, 3), (2, 0, 0)),
            (count(1, 0, 2, 3, 3), (2, 0, 0)),
            (count(1, 0, 1, 3, 3), (2, 0, 1)),
            (count(5, 0, 0, 3, 9), (0, 2, 4)),
            (count(0, 0, 0, 0, 9), (0, 0, 9)),
        ];
        for (count, expected) in cases {
            let got = (count.missing(), count.surplus(), count.headroom());
            assert_eq!(got, expected, "{count:?}");
        }
    }
}
