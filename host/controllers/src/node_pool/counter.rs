//! Keeps `status.resources` and `status.nodes` of a pool at what its nodes add up to.
//!
//! Nothing is decided by what it writes: limits are held against the model. Answers to
//! `pkg/controllers/nodepool/counter/controller.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::resources::Resources;
use apis::{NodePool, labels};

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

const PERIOD: Action = Action::RequeueAfter(Duration::from_secs(5));
const UNSYNCED: Action = Action::RequeueAfter(Duration::from_secs(1));
/// Always present, zero where the pool has no node.
const BASE: [&str; 5] = [
    labels::RESOURCE_CPU,
    labels::RESOURCE_MEMORY,
    labels::RESOURCE_PODS,
    labels::RESOURCE_EPHEMERAL_STORAGE,
    labels::RESOURCE_NODES,
];

/// Controller of the sums in the status of NodePools: one pool a reconcile.
pub(crate) struct Counter {
    pub(crate) shell: Arc<Shell>,
}

impl Reconciler for Counter {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        if !self.shell.model.is_synced() {
            return Ok(UNSYNCED);
        }
        let snapshot = self.shell.model.snapshot();
        let Some(pool) = snapshot.node_pool(&key.name).cloned() else {
            return Ok(Action::Await);
        };
        let usage = snapshot.pool_resources(&key.name);
        drop(snapshot);
        let after = decide(&pool, &usage);
        if after.status != pool.status {
            let Some(pool) = self.shell.model.fresh_node_pool(&key.name).await? else {
                return Ok(Action::Await);
            };
            self.shell
                .writer
                .write_pool_status(&pool, &decide(&pool, &usage))
                .await?;
        }
        Ok(PERIOD)
    }
}

fn decide(pool: &NodePool, usage: &Resources) -> NodePool {
    let mut after = pool.clone();
    let base: Resources = BASE.iter().map(|name| (*name, 0)).collect();
    let status = after.status.get_or_insert_default();
    status.resources = base.add(usage).to_list();
    status.nodes = usage.count(labels::RESOURCE_NODES);
    after
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_pool_says_what_its_nodes_add_up_to_and_zero_of_what_they_lack() {
        let nothing = [
            ("cpu", "0"),
            ("ephemeral-storage", "0"),
            ("memory", "0"),
            ("nodes", "0"),
            ("pods", "0"),
        ];
        let with = |more: &[(&'static str, &'static str)]| {
            let mut resources = BTreeMap::from(nothing);
            resources.extend(more.iter().copied());
            resources
        };
        let cases = [
            (vec![], 0, with(&[])),
            (
                vec![("cpu", 4500), ("nodes", 2000), ("nvidia.com/gpu", 1000)],
                2,
                with(&[("cpu", "4500m"), ("nodes", "2"), ("nvidia.com/gpu", "1")]),
            ),
        ];
        for (usage, nodes, expected) in cases {
            let usage: Resources = usage.into_iter().collect();
            let status = decide(&NodePool::default(), &usage).status.unwrap();
            assert_eq!(status.nodes, nodes);
            let resources = status.resources.iter();
            let resources: BTreeMap<_, _> = resources
                .map(|(name, it)| (name.as_str(), it.0.as_str()))
                .collect();
            assert_eq!(resources, expected);
        }
    }
}
