//! Takes a NodeClaim from its creation to an initialized node, and through its deletion.
//!
//! One step a reconcile; each is decided from the objects alone, so a restart in the middle changes nothing.
//! Answers to `pkg/controllers/nodeclaim/lifecycle/controller.go`.

pub(crate) mod finalize;
mod initialization;
pub(crate) mod launch;
pub(crate) mod liveness;
mod registration;
#[cfg(test)]
mod tests;
pub(crate) mod transitions;

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, ConditionUpdate, Conditioned, Status, reason};
use apis::{NodeClaim, labels};
use cloudprovider::CloudProvider;
use jiff::Timestamp;
use state::facts::NodeFacts;

use crate::node_claim::REPORTED_AFTER;
use crate::node_claim::lifecycle::finalize::Finalizer;
use crate::node_claim::lifecycle::initialization::Lack;
use crate::node_claim::lifecycle::launch::Launcher;
use crate::node_claim::lifecycle::liveness::TimeLimit;
use crate::node_claim::lifecycle::registration::{Registrar, sync};
use crate::node_claim::lifecycle::transitions::LifecycleTransitions;
use crate::pod_nomination::until_next_look;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;
use crate::shell::writer::finalizers::{add_finalizer, has_finalizer};

/// Controller of NodeClaims from creation to deletion: one claim a reconcile.
pub(crate) struct Lifecycle {
    shell: Arc<Shell>,
    launcher: Launcher,
    registrar: Registrar,
    transitions: Arc<LifecycleTransitions>,
    finalizer: Finalizer,
}

struct Observed {
    claim: Arc<NodeClaim>,
    /// Nodes with the claim's provider id; one, when all is well. What is written to one is made of the Node itself,
    /// which is asked for then: a node that is held closed is looked at every second.
    nodes: Vec<Arc<NodeFacts>>,
}

/// The next step of a claim.
#[derive(Debug, PartialEq)]
enum Step {
    /// It is being deleted.
    Finalize,
    /// It is not protected by our finalizer yet.
    AddFinalizer,
    /// It has no instance yet.
    Launch,
    /// Its node is not there.
    AwaitNode,
    /// Several nodes have its provider id.
    MultipleNodes(usize),
    /// Its node is there.
    Register(Arc<NodeFacts>),
    /// Its node is not ready for pods, and lacks something else than the claim says, but not for long: so much is left.
    AwaitReadiness(Duration),
    /// Its node is not ready for pods.
    AwaitInitialization(Lack),
    /// Its node is ready for pods.
    Initialize(Arc<NodeFacts>),
    /// It took too long.
    GiveUp(TimeLimit),
    /// Nothing is left to do but to see that pods come to its node.
    Rest,
}

impl Lifecycle {
    pub(crate) fn new(
        shell: Arc<Shell>,
        provider: Arc<dyn CloudProvider>,
        transitions: LifecycleTransitions,
        launcher: Launcher,
        finalizer: Finalizer,
    ) -> Self {
        let transitions = Arc::new(transitions);
        let registrar = Registrar {
            shell: Arc::clone(&shell),
            provider,
            transitions: Arc::clone(&transitions),
        };
        Self {
            shell,
            launcher,
            registrar,
            transitions,
            finalizer,
        }
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(&key.name).await? else {
            return Ok(None);
        };
        let nodes = self.shell.model.nodes_of_claim(&claim).await?;
        Ok(Some(Observed { claim, nodes }))
    }

    async fn apply(&self, claim: Arc<NodeClaim>, step: Step) -> Result<Action, ReconcileError> {
        match step {
            Step::Finalize => self.finalizer.finalize(claim).await,
            Step::AddFinalizer => self.add_finalizer(&claim).await,
            Step::Launch => self.launcher.launch(&claim).await,
            Step::AwaitNode => {
                let registered = sync::NODE_AWAITED;
                self.transitions
                    .await_registration(&claim, registered)
                    .await
            }
            Step::MultipleNodes(nodes) => {
                let registered = ConditionUpdate {
                    condition_type: conditions::REGISTERED,
                    status: Status::False,
                    reason: reason::MULTIPLE_NODES_FOUND,
                    message: &format!("Invariant violated, matched {nodes} nodes"),
                };
                self.transitions
                    .await_registration(&claim, registered)
                    .await
            }
            Step::Register(node) => self.registrar.register(&claim, &node).await,
            Step::AwaitReadiness(left) => Ok(Action::RequeueAfter(left)),
            Step::AwaitInitialization(lack) => {
                let after = claim.with_condition(lack.as_condition(), self.shell.now());
                self.shell.writer.write_claim_status(&claim, &after).await?;
                Ok(Action::Await)
            }
            Step::Initialize(node) => self.initialize(&claim, &node).await,
            Step::GiveUp(what) => self.transitions.give_up(&claim, what).await,
            Step::Rest => {
                self.transitions.wake_pod_nominations();
                Ok(Action::Await)
            }
        }
    }

    async fn add_finalizer(&self, claim: &NodeClaim) -> Result<Action, ReconcileError> {
        let mut after = claim.clone();
        add_finalizer(&mut after, labels::TERMINATION_FINALIZER);
        self.shell.writer.write_claim(claim, &after).await?;
        Ok(Action::NOW)
    }

    async fn initialize(
        &self,
        claim: &NodeClaim,
        seen: &NodeFacts,
    ) -> Result<Action, ReconcileError> {
        let Shell { writer, .. } = self.shell.as_ref();
        let (label, value) = initialization::MARK;
        if !writer.label_node(seen, label, value).await? {
            return Ok(Action::RequeueAfter(until_next_look(self.shell.now())));
        }
        let after = self.transitions.initialized(claim);
        writer.write_claim_status(claim, &after).await?;
        self.transitions.tell_initialized(claim, &seen.name);
        Ok(Action::Await)
    }
}

impl Reconciler for Lifecycle {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(observed) = self.observe(key).await? else {
            return Ok(Action::Await);
        };
        let step = decide(&observed, self.shell.now());
        self.apply(observed.claim, step).await
    }
}

fn decide(observed: &Observed, now: Timestamp) -> Step {
    let Observed { claim, nodes } = observed;
    if claim.metadata.deletion_timestamp.is_some() {
        return Step::Finalize;
    }
    if !has_finalizer(claim.as_ref(), labels::TERMINATION_FINALIZER) {
        return Step::AddFinalizer;
    }
    if !claim.is_condition_true(conditions::LAUNCHED) {
        return if TimeLimit::Launch.is_over(claim, now) {
            Step::GiveUp(TimeLimit::Launch)
        } else {
            Step::Launch
        };
    }
    if !claim.is_condition_true(conditions::REGISTERED) {
        return match nodes.as_slice() {
            [node] => Step::Register(Arc::clone(node)),
            _ if TimeLimit::Registration.is_over(claim, now) => {
                Step::GiveUp(TimeLimit::Registration)
            }
            [] => Step::AwaitNode,
            several => Step::MultipleNodes(several.len()),
        };
    }
    // What reboots is made ready again once it is back.
    if claim.is_condition_true(conditions::INITIALIZED)
        || claim.is_condition_true(conditions::REBOOTING)
    {
        return Step::Rest;
    }
    let Some(node) = nodes.first() else {
        let lack = Lack {
            reason: reason::NODE_NOT_FOUND,
            message: "Node not registered with cluster".to_owned(),
        };
        return await_initialization(claim, lack, now);
    };
    match initialization::lack(claim, node) {
        Some(lack) => await_initialization(claim, lack, now),
        None => Step::Initialize(Arc::clone(node)),
    }
}

/// What the claim does not say yet waits until its node has been registered for a while.
fn await_initialization(claim: &NodeClaim, lack: Lack, now: Timestamp) -> Step {
    let initialized = claim.condition(conditions::INITIALIZED);
    let is_reported = initialized.is_some_and(|it| it.reason == lack.reason);
    let registered = claim.condition(conditions::REGISTERED);
    let registered_for = registered.map(|it| now.duration_since(it.last_transition_time.0));
    let left = registered_for.map(|it| REPORTED_AFTER - it);
    match left.filter(|left| left.is_positive() && !is_reported) {
        Some(left) => Step::AwaitReadiness(left.unsigned_abs()),
        None => Step::AwaitInitialization(lack),
    }
}
