//! Gives claims made by older releases the NodeClass label.
//!
//! Answers to `pkg/controllers/nodeclaim/hydration/controller.go`.

use std::sync::Arc;

use apis::ObjectKey;
use apis::labels;
use kube::ResourceExt;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::{Action, Reconciler};

/// The controller.
pub(crate) struct NodeClaimHydration {
    pub(crate) shell: Arc<Shell>,
}

#[async_trait::async_trait]
impl Reconciler for NodeClaimHydration {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let facts = self.shell.model.claim_facts(&key.name);
        let is_lacking =
            facts.is_some_and(|claim| !claim.labels.contains_key(labels::EC2_NODE_CLASS));
        if !is_lacking {
            return Ok(Action::Await);
        }
        let Some(claim) = self.shell.model.node_claim(&key.name).await? else {
            return Ok(Action::Await);
        };
        let class = &claim.spec.node_class_ref;
        let label = labels::node_class_label(&class.group, &class.kind);
        let mut after = claim.as_ref().clone();
        after.labels_mut().insert(label, class.name.clone());
        self.shell.writer.write_claim(&claim, &after).await?;
        Ok(Action::Await)
    }
}
