//! How a claim comes from one stage of its lifecycle to the next, or to its end: what is written and told of it is the
//! same whichever part of the lifecycle sees it.
//!
//! Whether it does is not decided here. Answers to what the reconcilers of `pkg/controllers/nodeclaim/lifecycle` do
//! once they have decided.

use std::sync::Arc;

use apis::NodeClaim;
use apis::conditions::{self, ConditionUpdate, Conditioned as _, reason};
use kube::ResourceExt as _;

use super::liveness::TimeLimit;
use crate::node_claim::consistency;
use crate::node_claim::entries::end::ClaimTimedOut;
use crate::node_claim::entries::running::{NodeInitialized, NodeRegistered};
use crate::node_claim::pods_of_claims::PodsOfClaims;
use crate::node_pool::registration_health::{Registration, RegistrationHealth};
use crate::pod_nomination::PodNominations;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::action::Action;

/// What all parts of the lifecycle write and tell by.
pub(crate) struct LifecycleTransitions {
    pub(crate) shell: Arc<Shell>,
    pub(crate) pod_nominations: Arc<PodNominations>,
    pub(crate) registration_health: Arc<RegistrationHealth>,
    pub(crate) pods_of_claims: Arc<PodsOfClaims>,
}

impl LifecycleTransitions {
    /// Says what the claim waits for, and comes back when its time to register is over.
    pub(super) async fn await_registration(
        &self,
        claim: &NodeClaim,
        registered: ConditionUpdate<'_>,
    ) -> Result<Action, ReconcileError> {
        let now = self.shell.now();
        let after = claim.with_condition(registered, now);
        self.shell.writer.write_claim_status(claim, &after).await?;
        let left = TimeLimit::Registration.left(claim, now);
        Ok(Action::RequeueAfter(left))
    }

    /// Deletes a claim that took too long.
    pub(super) async fn give_up(
        &self,
        claim: &NodeClaim,
        limit: TimeLimit,
    ) -> Result<Action, ReconcileError> {
        ignore_not_found(self.shell.writer.delete(claim).await)?;
        let entry = ClaimTimedOut { limit };
        self.shell.journal.write(claim, &entry);
        let launched = claim.condition(conditions::LAUNCHED);
        let (reason, message) = match limit {
            TimeLimit::Registration => (reason::REGISTRATION_FAILED, "Failed to register node"),
            TimeLimit::Launch => launched.map_or((reason::LAUNCH_FAILED, ""), |it| {
                (it.reason.as_str(), it.message.as_str())
            }),
        };
        self.note_registration(claim, &Registration::Failed { reason, message })
            .await?;
        Ok(Action::Await)
    }

    /// The node is the claim's from now on.
    pub(super) fn tell_registered(&self, claim: &NodeClaim, node: &str) {
        let entry = NodeRegistered { node };
        self.shell.journal.write(claim, &entry);
        self.pods_of_claims.settle(&claim.name_any());
    }

    /// The claim's pool hears that its node joined.
    pub(super) async fn note_registered(&self, claim: &NodeClaim) -> Result<(), ReconcileError> {
        self.note_registration(claim, &Registration::Succeeded)
            .await
    }

    async fn note_registration(
        &self,
        claim: &NodeClaim,
        outcome: &Registration<'_>,
    ) -> Result<(), ReconcileError> {
        let Shell { model, writer, .. } = self.shell.as_ref();
        let health = &self.registration_health;
        health.note(model, writer, claim, outcome).await
    }

    /// The claim, initialized, and found to be what it was told to be in the same write if it is.
    pub(super) fn initialized(&self, claim: &NodeClaim) -> NodeClaim {
        let now = self.shell.now();
        let after = claim.with_condition_true(conditions::INITIALIZED, now);
        let snapshot = self.shell.model.snapshot();
        match snapshot.node_of_claim(&claim.name_any()) {
            Some(node) if consistency::is_consistent(node) => {
                after.with_condition_true(conditions::CONSISTENT_STATE_FOUND, now)
            }
            Some(_) | None => after,
        }
    }

    /// The node takes pods from now on.
    pub(super) fn tell_initialized(&self, claim: &NodeClaim, node: &str) {
        let entry = NodeInitialized { node };
        self.shell.journal.write(claim, &entry);
        self.wake_pod_nominations();
    }

    /// Something happened to the node of a claim that may still await pods.
    pub(super) fn wake_pod_nominations(&self) {
        self.pod_nominations.wake();
    }
}
