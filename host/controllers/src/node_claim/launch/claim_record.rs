//! A claim that bears the attempt to launch its instance, for whoever comes after this process.
//!
//! It asks no cloud: the provider has it written on before it asks one.

use std::fmt;
use std::sync::{Arc, Mutex};

use apis::{NodeClaim, ProviderId, labels};
use cloudprovider::sync::lock;
use cloudprovider::{AttemptRecord, CloudProviderError, LaunchAttempt};
use kube::ResourceExt;

use super::WriteTries;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;

/// The claim, written on under its own lock.
pub(super) struct ClaimRecord {
    shell: Arc<Shell>,
    /// As last written.
    claim: Mutex<Arc<NodeClaim>>,
}

impl fmt::Debug for ClaimRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.claim().name_any();
        f.debug_tuple("ClaimRecord").field(&name).finish()
    }
}

impl ClaimRecord {
    pub(super) fn new(shell: Arc<Shell>, claim: Arc<NodeClaim>) -> Self {
        Self {
            shell,
            claim: Mutex::new(claim),
        }
    }

    /// The claim as it was last written.
    pub(super) fn claim(&self) -> Arc<NodeClaim> {
        let claim = lock(&self.claim);
        Arc::clone(&claim)
    }

    async fn write(
        &self,
        before: &NodeClaim,
        attempt: &LaunchAttempt,
    ) -> Result<(), ReconcileError> {
        let mut after = before.clone();
        let key = labels::LAUNCH_ANNOTATION.to_owned();
        after.annotations_mut().insert(key, attempt.to_annotation());
        let written = self.shell.writer.write_claim(before, &after).await?;
        let is_going = written.metadata.deletion_timestamp.is_some();
        *lock(&self.claim) = Arc::new(written);
        if is_going {
            let message = "the nodeclaim is being deleted".to_owned();
            return Err(ReconcileError::Terminal(message));
        }
        Ok(())
    }

    /// The claim as it is now, if it still is what this launch began with.
    async fn fresh(&self, before: &NodeClaim) -> Result<NodeClaim, ReconcileError> {
        let claims = self.shell.writer.api::<NodeClaim>();
        let fresh = claims.get_opt(&before.name_any()).await?;
        let is_same = |it: &NodeClaim| {
            it.metadata.uid == before.metadata.uid
                && it.provider_id().is_none()
                && LaunchAttempt::of(it) == LaunchAttempt::of(before)
        };
        fresh.filter(is_same).ok_or_else(|| {
            ReconcileError::Terminal("the nodeclaim was launched by somebody else".to_owned())
        })
    }
}

#[async_trait::async_trait]
impl AttemptRecord for ClaimRecord {
    async fn begin(&self, attempt: &LaunchAttempt) -> Result<(), CloudProviderError> {
        let mut before = self.claim();
        let mut result = self.write(&before, attempt).await;
        let mut tries = WriteTries::default();
        while tries.has_another(&result) {
            result = match self.fresh(&before).await {
                Ok(fresh) => {
                    before = Arc::new(fresh);
                    self.write(&before, attempt).await
                }
                Err(error) => Err(error),
            };
        }
        result.map_err(|error| {
            CloudProviderError::Other(format!("the launch could not be written down: {error}"))
        })
    }

    fn is_owned(&self, provider_id: &ProviderId) -> bool {
        let snapshot = self.shell.model.snapshot();
        let known = snapshot.node_by_provider_id(provider_id);
        known.is_some_and(|it| it.is_managed())
    }
}
