//! A claim that bears the attempt to launch its instance, for whoever comes after this process.
//!
//! It asks no cloud: the provider has it written on before it asks one.

use std::fmt;
use std::sync::{Arc, Mutex};

use apis::{NodeClaim, ProviderId, labels};
use cloudprovider::{AttemptError, AttemptRecord, LaunchAttempt};
use kube::ResourceExt;
use locks::lock;

use super::WriteTries;
use crate::shell::Shell;
use crate::shell::error::{ErrorClass, ReconcileError};

const IS_GONE: AttemptError = AttemptError::Lost("the nodeclaim is gone");

/// The claim, written on under its own lock.
pub(super) struct ClaimRecord {
    shell: Arc<Shell>,
    /// The claim as it was last written.
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

    /// Answers the claim as it was written.
    async fn write(
        &self,
        before: &NodeClaim,
        attempt: &LaunchAttempt,
    ) -> Result<Arc<NodeClaim>, ReconcileError> {
        let mut after = before.clone();
        let key = labels::LAUNCH_ANNOTATION.to_owned();
        after.annotations_mut().insert(key, attempt.to_annotation());
        let written = self.shell.writer.write_claim(before, &after).await?;
        let written = Arc::new(written);
        *lock(&self.claim) = Arc::clone(&written);
        Ok(written)
    }

    /// The claim as it is now, if it still is what this launch began with.
    async fn fresh(&self, before: &NodeClaim) -> Result<Arc<NodeClaim>, AttemptError> {
        let claims = self.shell.writer.api::<NodeClaim>();
        let fresh = claims.get_opt(&before.name_any()).await;
        let fresh = fresh.map_err(|error| unwritten(&error.into()))?;
        let fresh = fresh.filter(|it| it.metadata.uid == before.metadata.uid);
        let fresh = fresh.ok_or(IS_GONE)?;
        if fresh.provider_id().is_some() || LaunchAttempt::of(&fresh) != LaunchAttempt::of(before) {
            let why = "the nodeclaim was launched by somebody else";
            return Err(AttemptError::Lost(why));
        }
        Ok(Arc::new(fresh))
    }
}

fn unwritten(error: &ReconcileError) -> AttemptError {
    AttemptError::Unwritten(error.to_string())
}

#[async_trait::async_trait]
impl AttemptRecord for ClaimRecord {
    async fn begin(&self, attempt: &LaunchAttempt) -> Result<(), AttemptError> {
        let mut before = self.claim();
        let mut result = self.write(&before, attempt).await;
        let mut tries = WriteTries::default();
        while tries.has_another(&result) {
            before = self.fresh(&before).await?;
            result = self.write(&before, attempt).await;
        }
        match result {
            Ok(written) if written.metadata.deletion_timestamp.is_none() => Ok(()),
            Ok(_) => Err(AttemptError::Lost("the nodeclaim is being deleted")),
            Err(error) if error.class() == ErrorClass::Gone => Err(IS_GONE),
            Err(error) => Err(unwritten(&error)),
        }
    }

    fn is_owned(&self, provider_id: &ProviderId) -> bool {
        let snapshot = self.shell.model.snapshot();
        let known = snapshot.node_by_provider_id(provider_id);
        known.is_some_and(|it| it.is_managed())
    }
}
