//! Gives nodes made by older releases the NodeClass label of their claim.
//!
//! Answers to `pkg/controllers/node/hydration/controller.go`.

use std::sync::Arc;

use apis::ObjectKey;
use apis::labels;
use kube::ResourceExt;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::{Action, Reconciler};

/// The controller.
pub(crate) struct NodeHydration {
    pub(crate) shell: Arc<Shell>,
}

#[async_trait::async_trait]
impl Reconciler for NodeHydration {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let state = self.shell.model.snapshot().node(&key.name).cloned();
        let Some((facts, claim)) = state.and_then(|it| Some((it.node.clone()?, it.claim.clone()?)))
        else {
            return Ok(Action::Await);
        };
        let is_registered = facts.labels.contains_key(labels::REGISTERED);
        if !is_registered || facts.labels.contains_key(labels::EC2_NODE_CLASS) {
            return Ok(Action::Await);
        }
        let Some(node) = self.shell.model.node(&key.name).await? else {
            return Ok(Action::Await);
        };
        let mut after = node.as_ref().clone();
        after
            .labels_mut()
            .insert(labels::EC2_NODE_CLASS.to_owned(), claim.node_class.clone());
        self.shell.writer.write_node(&node, &after).await?;
        Ok(Action::Await)
    }
}
