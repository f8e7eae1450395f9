//! Writes a launched instance on its claim as labels, annotations and status, and deals with an instance whose claim is
//! gone meanwhile.
//!
//! It launches nothing.

use std::sync::Arc;

use apis::NodeClaim;
use apis::conditions::{self, Conditioned as _};
use cloudprovider::{CloudProvider, Launched};
use jiff::Timestamp;
use kube::ResourceExt;
use scheduling::ranking::RankedLaunch;

use super::WriteTries;
use crate::node_claim::entries::launch::ClaimGoneMeanwhile;
use crate::node_claim::lifecycle::registration::sync;
use crate::shell::Shell;
use crate::shell::error::{ErrorClass, ReconcileError};

/// Writes instances on their claims.
pub(super) struct InstanceWriter {
    pub(super) shell: Arc<Shell>,
    pub(super) provider: Arc<dyn CloudProvider>,
}

impl InstanceWriter {
    /// Writes what the instance turned out to be. A claim that was changed or deleted meanwhile must still learn of
    /// its instance, or nobody would take it away before garbage collection does. Nothing is answered for a claim that
    /// is gone, and whose instance goes with it.
    pub(super) async fn persist(
        &self,
        claim: &NodeClaim,
        launched: &Launched,
    ) -> Result<Option<NodeClaim>, ReconcileError> {
        let mut result = self.write(claim, launched).await;
        let mut tries = WriteTries::default();
        while tries.has_another(&result) {
            // Not what is at hand: that is what was out of date.
            let claims = self.shell.writer.api::<NodeClaim>();
            let fresh = claims.get_opt(&claim.name_any()).await?;
            let Some(fresh) = fresh.filter(|it| it.metadata.uid == claim.metadata.uid) else {
                return self.abandon(claim, launched).await.map(|()| None);
            };
            result = self.write(&fresh, launched).await;
        }
        match result {
            Err(error) if error.class() == ErrorClass::Gone => {
                self.abandon(claim, launched).await.map(|()| None)
            }
            result => result.map(Some),
        }
    }

    async fn write(
        &self,
        claim: &NodeClaim,
        launched: &Launched,
    ) -> Result<NodeClaim, ReconcileError> {
        let hydrated = with_metadata(claim, launched);
        let written = self.shell.writer.write_claim(claim, &hydrated).await?;
        let after = with_status(&written, launched, self.shell.now());
        self.shell.writer.write_claim_status(&written, &after).await
    }

    /// The claim is gone, so its instance goes.
    async fn abandon(&self, claim: &NodeClaim, launched: &Launched) -> Result<(), ReconcileError> {
        let provider_id = &launched.provider_id;
        let entry = ClaimGoneMeanwhile { provider_id };
        self.shell.journal.write(claim, &entry);
        match self.provider.delete(provider_id).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Leaves word on the claim of the policies that changed what was bought, and of what that costs.
pub(super) fn ranked_by(mut launched: Launched, ranked: &RankedLaunch) -> Launched {
    if ranked.best_differs_from_list_price {
        let policies = ranked.uses.iter().filter(|it| it.outcome.is_ok());
        let policies: Vec<String> = policies
            .map(|it| format!("{}@{}", it.name, it.digest))
            .collect();
        let premium = format!("{:.6}", ranked.premium_per_hour);
        for (key, value) in [
            (apis::labels::RANKED_BY_ANNOTATION, policies.join(",")),
            (apis::labels::PREMIUM_ANNOTATION, premium),
        ] {
            launched.annotations.insert(key.to_owned(), value);
        }
    }
    launched
}

/// Labels of the claim win over the provider's, annotations of the provider over the claim's.
fn with_metadata(claim: &NodeClaim, launched: &Launched) -> NodeClaim {
    let mut after = claim.clone();
    let own = std::mem::take(after.labels_mut());
    let labels = after.labels_mut();
    labels.extend(launched.labels.clone());
    labels.extend(own);
    after.annotations_mut().extend(launched.annotations.clone());
    after
}

fn with_status(claim: &NodeClaim, launched: &Launched, now: Timestamp) -> NodeClaim {
    let launched_claim = claim.with_condition_true(conditions::LAUNCHED, now);
    let mut after = launched_claim.with_condition(sync::NODE_AWAITED, now);
    let status = after.status.get_or_insert_default();
    status.provider_id = Some(launched.provider_id.to_string());
    status.image_id = Some(launched.image_id.clone());
    status.capacity = launched.capacity.to_list();
    status.allocatable = launched.allocatable.to_list();
    after
}
