//! Registers the node of a launched claim: with what its claim has, once the provider lets it and its pods were told of
//! it.
//!
//! What a node must carry, `sync.rs` says; when it opens, `planning::pod_nomination` does. Answers to
//! `pkg/controllers/nodeclaim/lifecycle/registration.go`.

pub(super) mod sync;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeClaim;
use apis::conditions::{self, ConditionUpdate, Conditioned, Status, reason};
use cloudprovider::{CloudProvider, CloudProviderError, Registrable};
use jiff::Timestamp;
use kube::ResourceExt as _;
use planning::pod_nomination::{ClosedNode, HoldReason, NodeOpening, OpeningContext, OpeningTerms};
use scheduling::pod::PodKey;
use state::Snapshot;
use state::facts::NodeFacts;

use super::initialization::{self, Lack};
use super::liveness::TimeLimit;
use super::transitions::LifecycleTransitions;
use crate::node_capacity;
use crate::node_claim::REPORTED_AFTER;
use crate::node_claim::entries::running::UnregisteredTaintMissing;
use crate::pod_nomination::until_next_look;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::action::Action;

/// The part of the lifecycle that ends with a registered node.
pub(crate) struct Registrar {
    pub(super) shell: Arc<Shell>,
    pub(super) provider: Arc<dyn CloudProvider>,
    pub(super) transitions: Arc<LifecycleTransitions>,
}

struct Observed<'a> {
    claim: &'a NodeClaim,
    node: &'a NodeFacts,
    registrable: Result<Registrable, CloudProviderError>,
    snapshot: Snapshot,
    terms: OpeningTerms,
    /// Pods that would be kept off their node, whoever traded places.
    shut_out: Arc<BTreeSet<PodKey>>,
    /// When nodes open next, or opened last.
    opens_at: Timestamp,
}

/// Writes on a node that the provider lets register, whether it opens yet or not.
#[derive(Debug, PartialEq)]
struct Preparation {
    /// Of the claim, which the provider knows only now.
    labels: BTreeMap<String, String>,
    /// When it opens, and whether its pods are told of it.
    opening: NodeOpening,
}

/// Step for a node that is to register.
#[derive(Debug, PartialEq)]
enum Step {
    /// It took too long.
    GiveUp,
    /// It stays closed until the provider has done this.
    AwaitProvider(&'static str),
    /// It stays closed, as the provider cannot say whether it may register.
    AskAgain(CloudProviderError),
    /// It stays closed, for so short a time that its claim need not say what for.
    KeepClosed(Preparation),
    /// It stays closed, and its claim says what for.
    Hold(Preparation, HoldReason),
    /// It takes pods from now on.
    Open(Preparation),
}

impl Registrar {
    /// One step towards a registered node.
    pub(super) async fn register(
        &self,
        claim: &NodeClaim,
        node: &NodeFacts,
    ) -> Result<Action, ReconcileError> {
        let observed = self.observe(claim, node).await;
        let step = decide(observed, self.shell.now());
        self.apply(claim, node, step).await
    }

    async fn observe<'a>(&self, claim: &'a NodeClaim, node: &'a NodeFacts) -> Observed<'a> {
        let registrable = self.provider.registrable(claim).await;
        let snapshot = self.shell.model.snapshot();
        let pod_nominations = &self.transitions.pod_nominations;
        Observed {
            claim,
            node,
            registrable,
            terms: pod_nominations.opening_terms(),
            shut_out: pod_nominations.played(&snapshot).shut_out,
            opens_at: pod_nominations.opens_at(),
            snapshot,
        }
    }

    async fn apply(
        &self,
        claim: &NodeClaim,
        node: &NodeFacts,
        step: Step,
    ) -> Result<Action, ReconcileError> {
        if sync::lacks_unregistered_taint(node) {
            let entry = UnregisteredTaintMissing { node: &node.name };
            self.shell.journal.write(claim, &entry);
        }
        match step {
            Step::GiveUp => {
                let what = TimeLimit::Registration;
                self.transitions.give_up(claim, what).await
            }
            Step::AwaitProvider(hook) => self.keep_closed(claim, node, hook).await,
            Step::AskAgain(error) => {
                self.keep_closed(claim, node, &error.to_string()).await?;
                Err(error.into())
            }
            Step::KeepClosed(due) => {
                self.prepare(claim, node, due).await?;
                Ok(self.requeue())
            }
            Step::Hold(due, hold) => {
                let claim = self.prepare(claim, node, due).await?;
                self.keep_closed(&claim, node, hold.message()).await
            }
            Step::Open(due) => {
                let claim = self.prepare(claim, node, due).await?;
                self.open(&claim, node).await
            }
        }
    }

    /// The claim with labels that the provider knows only now; and the node's pods are told of it. The time at which
    /// it opens is noted first, as others are decided on while this is written.
    async fn prepare<'a>(
        &self,
        claim: &'a NodeClaim,
        node: &NodeFacts,
        due: Preparation,
    ) -> Result<Cow<'a, NodeClaim>, ReconcileError> {
        let Preparation { labels, opening } = due;
        let pod_nominations = &self.transitions.pod_nominations;
        if let Some(at) = opening.appointment() {
            pod_nominations.appoint(at);
        }
        let claim = if labels.is_empty() {
            Cow::Borrowed(claim)
        } else {
            let mut labelled = claim.clone();
            labelled.labels_mut().extend(labels);
            Cow::Owned(self.shell.writer.write_claim(claim, &labelled).await?)
        };
        pod_nominations.tell_pods(&claim, node, opening).await;
        Ok(claim)
    }

    /// The node gets what its claim has and keeps the taint that keeps pods away; the claim says what it waits for.
    async fn keep_closed(
        &self,
        claim: &NodeClaim,
        seen: &NodeFacts,
        awaited: &str,
    ) -> Result<Action, ReconcileError> {
        if !sync::is_synced(claim, seen)
            && let Some(node) = self.shell.model.node_seen(seen).await?
        {
            let synced = sync::synced_node(claim, &node);
            self.shell.writer.write_node(&node, &synced).await?;
        }
        let registered = ConditionUpdate {
            condition_type: conditions::REGISTERED,
            status: Status::Unknown,
            reason: reason::REGISTRATION_HOOK_PENDING,
            message: awaited,
        };
        let limit = self.transitions.await_registration(claim, registered);
        Ok(limit.await?.sooner(self.requeue()))
    }

    async fn open(&self, claim: &NodeClaim, seen: &NodeFacts) -> Result<Action, ReconcileError> {
        let Some(node) = self.shell.model.node_seen(seen).await? else {
            return Ok(self.requeue());
        };
        let mut registered = sync::registered_node(claim, &node);
        let lack = initialization::lack(claim, &NodeFacts::parse(&registered));
        if lack.is_none() {
            initialization::mark(&mut registered);
        }
        self.shell.writer.write_node(&node, &registered).await?;
        let after = self.registered(claim, seen, lack.as_ref());
        self.shell.writer.write_claim_status(claim, &after).await?;
        node_capacity::report(&self.shell, self.provider.as_ref(), claim, &node).await;
        self.transitions.tell_registered(claim, &seen.name);
        if lack.is_none() {
            self.transitions.tell_initialized(claim, &seen.name);
        }
        // Last of all: the claim says already what was told, so nobody comes back to tell it.
        self.transitions.note_registered(claim).await?;
        Ok(Action::Await)
    }

    /// The claim of a node that has registered, and that lacks this or nothing.
    fn registered(&self, claim: &NodeClaim, node: &NodeFacts, lack: Option<&Lack>) -> NodeClaim {
        let now = self.shell.now();
        let mut after = claim.with_condition_true(conditions::REGISTERED, now);
        after.status.get_or_insert_default().node_name = Some(node.name.clone());
        match lack {
            None => self.transitions.initialized(&after),
            Some(lack) => after.with_condition(lack.as_condition(), now),
        }
    }

    fn requeue(&self) -> Action {
        Action::RequeueAfter(until_next_look(self.shell.now()))
    }
}

fn decide(observed: Observed<'_>, now: Timestamp) -> Step {
    let Observed {
        claim,
        node,
        registrable,
        snapshot,
        terms,
        shut_out,
        opens_at,
    } = observed;
    let step = match registrable {
        Err(error) => Step::AskAgain(error),
        Ok(Registrable::Pending(hook)) => Step::AwaitProvider(hook),
        Ok(Registrable::Ready(labels)) => {
            let name = claim.name_any();
            let closed = closed_node(&name, node);
            let among = OpeningContext {
                snapshot: &snapshot,
                shut_out: &shut_out,
                opens_at,
            };
            let opening = terms.decide(among, closed, now);
            let due = Preparation { labels, opening };
            match opening.hold() {
                None => return Step::Open(due),
                Some(hold) if is_held_long(node, now) => Step::Hold(due, hold),
                Some(_) => Step::KeepClosed(due),
            }
        }
    };
    if TimeLimit::Registration.is_over(claim, now) {
        Step::GiveUp
    } else {
        step
    }
}

fn closed_node<'a>(claim: &'a str, node: &NodeFacts) -> ClosedNode<'a> {
    ClosedNode {
        claim,
        ready_at: node.ready_at(),
        created_at: node.created_at,
        is_up: initialization::is_up(node),
    }
}

/// Whether a node was held closed for so long that its claim is to say what for.
fn is_held_long(node: &NodeFacts, now: Timestamp) -> bool {
    let since = node.ready_at().or(node.created_at);
    since.is_none_or(|at| now.duration_since(at) >= REPORTED_AFTER)
}
