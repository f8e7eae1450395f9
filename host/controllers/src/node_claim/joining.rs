//! Takes the node of a launched claim in: with what its claim has, once the provider lets it and its pods were told of
//! it.
//!
//! What a node must carry, `registration.rs` says; when it opens, `state::nomination` does. Answers to
//! `pkg/controllers/nodeclaim/lifecycle/registration.go`.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use apis::NodeClaim;
use apis::conditions::{self, Status, reason};
use cloudprovider::{CloudProvider, CloudProviderError, Registrable};
use jiff::Timestamp;
use kube::ResourceExt as _;
use state::facts::NodeFacts;
use state::nomination::{HoldReason, NodeOpening};

use super::entries::ClaimEntry;
use super::initialization::{self, Lack};
use super::liveness::TimeLimit;
use super::milestones::Milestones;
use super::{ConditionUpdate, NodeClaimExt as _, TOLD_AFTER, registration};
use crate::node_capacity;
use crate::nomination::until_next_look;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Action;

/// The part of the lifecycle that ends with a registered node.
pub(crate) struct Joining {
    pub(super) shell: Arc<Shell>,
    pub(super) provider: Arc<dyn CloudProvider>,
    pub(super) milestones: Arc<Milestones>,
}

struct Observed<'a> {
    claim: &'a NodeClaim,
    node: &'a NodeFacts,
    registrable: Result<Registrable, CloudProviderError>,
    /// What becomes of the node; asked where the provider lets it join.
    opening: Option<NodeOpening>,
}

/// What becomes of a node that is to join.
#[derive(Debug, PartialEq)]
enum Step {
    /// It took too long.
    GiveUp,
    /// It stays closed until the provider has done this.
    AwaitProvider(&'static str),
    /// It stays closed, as the provider cannot say whether it may join.
    AskAgain(CloudProviderError),
    /// It stays closed, for so short a time that its claim need not say what for.
    KeepClosed,
    /// It stays closed, and its claim says what for.
    Hold(HoldReason),
    /// It takes pods from now on.
    Open,
}

impl Joining {
    /// One step towards a registered node.
    pub(super) async fn join(
        &self,
        claim: &NodeClaim,
        node: &NodeFacts,
    ) -> Result<Action, ReconcileError> {
        let observed = self.observe(claim, node).await;
        let step = decide(&observed, self.shell.now());
        self.apply(observed, step).await
    }

    async fn observe<'a>(&self, claim: &'a NodeClaim, node: &'a NodeFacts) -> Observed<'a> {
        let registrable = self.provider.registrable(claim).await;
        let opening = match &registrable {
            Ok(Registrable::Ready(_)) => Some(self.shell.nominations.opening(claim, node)),
            Ok(Registrable::Pending(_)) | Err(_) => None,
        };
        Observed {
            claim,
            node,
            registrable,
            opening,
        }
    }

    async fn apply(&self, observed: Observed<'_>, step: Step) -> Result<Action, ReconcileError> {
        let Observed { claim, node, .. } = observed;
        if registration::lacks_unregistered_taint(node) {
            let entry = ClaimEntry::UnregisteredTaintMissing { node: &node.name };
            self.shell.journal.write(claim, &entry);
        }
        let claim = match step {
            Step::GiveUp | Step::AwaitProvider(_) | Step::AskAgain(_) => Cow::Borrowed(claim),
            Step::KeepClosed | Step::Hold(_) | Step::Open => self.prepare(observed).await?,
        };
        let claim = claim.as_ref();
        match step {
            Step::GiveUp => {
                let what = TimeLimit::Registration;
                self.milestones.give_up(claim, what).await
            }
            Step::AwaitProvider(hook) => self.keep_closed(claim, node, hook).await,
            Step::AskAgain(error) => {
                self.keep_closed(claim, node, &error.to_string()).await?;
                Err(error.into())
            }
            Step::KeepClosed => Ok(self.look_again()),
            Step::Hold(hold) => self.keep_closed(claim, node, hold.message()).await,
            Step::Open => self.open(claim, node).await,
        }
    }

    /// The claim with labels that the provider knows only now; and the node's pods are told of it.
    async fn prepare<'a>(
        &self,
        observed: Observed<'a>,
    ) -> Result<Cow<'a, NodeClaim>, ReconcileError> {
        let mut claim = Cow::Borrowed(observed.claim);
        if let Ok(Registrable::Ready(labels)) = observed.registrable
            && !labels.is_empty()
        {
            let mut labelled = observed.claim.clone();
            labelled.labels_mut().extend(labels);
            let written = self.shell.writer.write_claim(&claim, &labelled).await?;
            claim = Cow::Owned(written);
        }
        if let Some(opening) = observed.opening {
            let nominations = &self.shell.nominations;
            nominations.tell_pods(&claim, observed.node, opening).await;
        }
        Ok(claim)
    }

    /// The node gets what its claim has and keeps the taint that keeps pods away; the claim says what it waits for.
    async fn keep_closed(
        &self,
        claim: &NodeClaim,
        seen: &NodeFacts,
        awaited: &str,
    ) -> Result<Action, ReconcileError> {
        if !registration::is_synced(claim, seen)
            && let Some(node) = self.shell.model.node_seen(seen).await?
        {
            let synced = registration::synced_node(claim, &node);
            self.shell.writer.write_node(&node, &synced).await?;
        }
        let registered = ConditionUpdate {
            condition_type: conditions::REGISTERED,
            status: Status::Unknown,
            reason: reason::REGISTRATION_HOOK_PENDING,
            message: awaited,
        };
        let limit = self.milestones.await_registration(claim, registered);
        Ok(limit.await?.sooner(self.look_again()))
    }

    async fn open(&self, claim: &NodeClaim, seen: &NodeFacts) -> Result<Action, ReconcileError> {
        let Some(node) = self.shell.model.node_seen(seen).await? else {
            return Ok(self.look_again());
        };
        let mut registered = registration::registered_node(claim, &node);
        let lack = initialization::lack(claim, &NodeFacts::parse(&registered));
        if lack.is_none() {
            initialization::mark(&mut registered);
        }
        self.shell.writer.write_node(&node, &registered).await?;
        let after = self.registered(claim, seen, lack.as_ref());
        self.shell.writer.write_claim_status(claim, &after).await?;
        node_capacity::report(&self.shell, self.provider.as_ref(), claim, &node).await;
        self.milestones.tell_registered(claim, &seen.name).await?;
        if lack.is_none() {
            self.milestones.tell_initialized(claim, &seen.name);
        }
        Ok(Action::Await)
    }

    /// The claim of a node that has joined, and that lacks this or nothing.
    fn registered(&self, claim: &NodeClaim, node: &NodeFacts, lack: Option<&Lack>) -> NodeClaim {
        let now = self.shell.now();
        let mut after = claim.with_true(conditions::REGISTERED, now);
        after.status.get_or_insert_default().node_name = Some(node.name.clone());
        match lack {
            None => self.milestones.initialized(&after),
            Some(lack) => after.with_condition(lack.as_condition(), now),
        }
    }

    fn look_again(&self) -> Action {
        Action::RequeueAfter(until_next_look(self.shell.now()))
    }
}

fn decide(observed: &Observed<'_>, now: Timestamp) -> Step {
    let Observed {
        claim,
        node,
        registrable,
        opening,
    } = observed;
    let hold = opening.and_then(NodeOpening::hold);
    let step = match (registrable, hold) {
        (Err(error), _) => Step::AskAgain(error.clone()),
        (Ok(Registrable::Pending(hook)), _) => Step::AwaitProvider(hook),
        (Ok(Registrable::Ready(_)), None) => return Step::Open,
        (Ok(Registrable::Ready(_)), Some(_)) if !is_held_long(node, now) => Step::KeepClosed,
        (Ok(Registrable::Ready(_)), Some(hold)) => Step::Hold(hold),
    };
    if TimeLimit::Registration.is_over(claim, now) {
        Step::GiveUp
    } else {
        step
    }
}

/// Whether a node was held closed for so long that its claim is to say what for.
fn is_held_long(node: &NodeFacts, now: Timestamp) -> bool {
    let since = node.ready_at().or(node.created_at);
    since.is_none_or(|at| now.duration_since(at) >= TOLD_AFTER)
}
