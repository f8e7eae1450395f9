//! Tags a registered claim's instance with the names of claim and node, once.
//!
//! Answers to the AWS provider's `pkg/controllers/nodeclaim/tagging/controller.go`.

use std::sync::Arc;

use apis::ObjectKey;
use apis::labels;
use cloudprovider::{CloudProvider, CloudProviderError};
use kube::ResourceExt;

use crate::error::ReconcileError;
use crate::node_claim::NodeClaimExt;
use crate::runtime::{Action, Reconciler};
use crate::shell::Shell;

/// The controller.
pub(crate) struct Tagging {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

#[async_trait::async_trait]
impl Reconciler for Tagging {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let facts = self
            .shell
            .model
            .snapshot()
            .node_of_claim(&key.name)
            .and_then(|it| it.claim.clone());
        let is_due = facts.is_some_and(|claim| {
            claim.deleted_at.is_none()
                && !claim.node_name.is_empty()
                && !claim
                    .annotations
                    .contains_key(labels::INSTANCE_TAGGED_ANNOTATION)
        });
        if !is_due {
            return Ok(Action::Await);
        }
        let observed = self.shell.model.node_claim(&key.name).await?;
        let Some(claim) = observed.filter(|claim| claim.provider_id().is_some()) else {
            return Ok(Action::Await);
        };
        match self.provider.tag(&claim).await {
            Ok(()) => {}
            Err(CloudProviderError::NotFound(_)) => return Ok(Action::Await),
            Err(error) => return Err(error.into()),
        }
        let mut after = claim.as_ref().clone();
        let annotations = after.annotations_mut();
        for annotation in [
            labels::INSTANCE_TAGGED_ANNOTATION,
            labels::CLUSTER_NAME_TAGGED_ANNOTATION,
        ] {
            annotations.insert(annotation.to_owned(), "true".to_owned());
        }
        self.shell.writer.write_claim(&claim, &after).await?;
        Ok(Action::Await)
    }
}
