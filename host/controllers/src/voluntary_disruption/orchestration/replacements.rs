//! NodeClaims that come in place of a command's nodes: created before anything goes, and given back where they turn out
//! to serve nothing.
//!
//! Answers to `createReplacementNodeClaims` in `pkg/controllers/disruption/queue.go`.

use std::collections::BTreeMap;

use apis::NodeClaim;
use disruption::Command;
use disruption::queue::is_unused;
use kube::ResourceExt;
use scheduling::solution::NewClaim;
use tracing::{info, warn};

use super::Orchestration;
use crate::node_claim::creation::{CreationCause, CreationReason};
use crate::shell::error::{PoolGone, PoolRefusal, ReconcileError, ignore_not_found};
use crate::static_capacity;

impl Orchestration {
    /// All that is to come first, or none of it.
    pub(super) async fn create_replacements(
        &self,
        command: &Command,
    ) -> Result<Vec<NodeClaim>, ReconcileError> {
        if command.replacements().iter().any(NewClaim::is_of_template) {
            self.create_static(command).await
        } else {
            self.create_each(command).await
        }
    }

    /// A pool that keeps replicas must not take what comes for one node too many, nor get more than its limit.
    async fn create_static(&self, command: &Command) -> Result<Vec<NodeClaim>, ReconcileError> {
        let mut pending = self.static_pending.lock().await;
        for (name, nodes) in by_pool(command.replacements()) {
            let pool = self.shell.model.fresh_node_pool(name).await?;
            let pool = pool.ok_or_else(|| PoolRefusal::from(PoolGone(name.to_owned())))?;
            let count = static_capacity::count(&self.shell, &pool, &pending).await?;
            if count.headroom() < nodes {
                return Err(PoolRefusal::AtLimit(name.to_owned()).into());
            }
        }
        let created = self.create_each(command).await?;
        pending.extend(command.candidates.iter().map(|it| it.claim.clone()));
        Ok(created)
    }

    async fn create_each(&self, command: &Command) -> Result<Vec<NodeClaim>, ReconcileError> {
        let mut created: Vec<NodeClaim> = Vec::new();
        for replacement in command.replacements() {
            let result = self.create_replacement(command, replacement).await;
            match result {
                Ok(claim) => created.push(claim),
                Err(error) => {
                    // What was created already would run for nothing.
                    for claim in &created {
                        self.give_back(claim).await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(created)
    }

    async fn create_replacement(
        &self,
        command: &Command,
        replacement: &NewClaim,
    ) -> Result<NodeClaim, ReconcileError> {
        let pool = self.shell.model.node_pool(&replacement.pool);
        let pool = pool.ok_or_else(|| PoolRefusal::from(PoolGone(replacement.pool.clone())))?;
        let cause = CreationCause {
            decision_id: &command.id,
            reason: CreationReason::Disrupted(command.reason()),
            record: None,
        };
        let created = self.claims.create(&pool, replacement, cause).await?;
        let pods = &replacement.pods;
        self.claims.note_pods(&created, pods.clone(), pods.clone());
        Ok(created)
    }

    /// Replacements without pods serve nothing any more. One that pods came to, or are planned for, stays.
    pub(super) async fn return_replacements(&self, names: &[String]) {
        let (snapshot, now) = (self.shell.model.snapshot(), self.shell.now());
        for name in names {
            if !is_unused(&snapshot, name, now) {
                continue;
            }
            match self.shell.model.node_claim(name).await {
                Ok(Some(claim)) => self.give_back(&claim).await,
                Ok(None) => {}
                Err(error) => {
                    warn!(NodeClaim = %name, %error, "reading unused replacement, left to consolidation");
                }
            }
        }
    }

    async fn give_back(&self, claim: &NodeClaim) {
        let name = claim.name_any();
        match ignore_not_found(self.shell.writer.delete(claim).await) {
            Ok(_) => info!(NodeClaim = %name, "deleted unused replacement"),
            Err(error) => {
                warn!(NodeClaim = %name, %error, "deleting unused replacement, left to consolidation");
            }
        }
    }
}

/// How many replacements come in each pool.
fn by_pool(replacements: &[NewClaim]) -> BTreeMap<&str, usize> {
    let mut nodes = BTreeMap::new();
    for replacement in replacements {
        *nodes.entry(replacement.pool.as_str()).or_default() += 1;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use apis::NodePool;

    use super::*;

    #[test]
    fn several_replacements_in_one_pool_need_room_together() {
        let cases: [(&[&str], &str); 4] = [
            (&[], "{}"),
            (&["web"], "{\"web\": 1}"),
            (&["web", "web"], "{\"web\": 2}"),
            (&["web", "db", "web"], "{\"db\": 1, \"web\": 2}"),
        ];
        for (pools, expected) in cases {
            let replacement = |pool: &&str| {
                let mut object = NodePool::default();
                object.metadata.name = Some((*pool).to_owned());
                NewClaim::of_template(&object, &[])
            };
            let replacements: Vec<NewClaim> = pools.iter().map(replacement).collect();
            let found = by_pool(&replacements);
            assert_eq!(format!("{found:?}"), expected);
        }
    }
}
