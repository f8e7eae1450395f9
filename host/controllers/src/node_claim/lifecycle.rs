//! Takes a NodeClaim from its creation to an initialized node, and through its deletion.
//!
//! One step a reconcile; each is decided from the objects alone, so a restart in the middle changes nothing.
//! Answers to `pkg/controllers/nodeclaim/lifecycle/controller.go`.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned, Status, reason};
use apis::{NodeClaim, labels};
use cloudprovider::{CloudProvider, Registrable};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use state::facts::NodeFacts;

use crate::node_capacity;
use crate::node_claim::entries::ClaimEntry;
use crate::node_claim::finalize::Finalizer;
use crate::node_claim::initialization::{self, Lack};
use crate::node_claim::launch::Launcher;
use crate::node_claim::liveness::TimeLimit;
use crate::node_claim::{ConditionUpdate, NodeClaimExt, consistency, registration};
use crate::node_pool::registration_health::Registration;
use crate::nomination::until_next_look;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::finalizers::{add_finalizer, has_finalizer};
use crate::shell::runtime::{Action, Reconciler};

/// What keeps a node from opening or from being initialized is told once it has for that long: most are soon done with
/// it, and each word is a write.
const TOLD_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// The controller.
pub(crate) struct Lifecycle {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    launcher: Launcher,
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
    TellNodesApart(usize),
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
        launcher: Launcher,
        finalizer: Finalizer,
    ) -> Self {
        Self {
            shell,
            provider,
            launcher,
            finalizer,
        }
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(&key.name).await? else {
            return Ok(None);
        };
        let nodes = match claim.provider_id() {
            Some(id) => self.shell.model.node_facts_of(&id).await?,
            None => Vec::new(),
        };
        Ok(Some(Observed { claim, nodes }))
    }

    async fn apply(&self, claim: Arc<NodeClaim>, step: Step) -> Result<Action, ReconcileError> {
        match step {
            Step::Finalize => self.finalizer.finalize(claim).await,
            Step::AddFinalizer => self.add_finalizer(&claim).await,
            Step::Launch => self.launcher.launch(&claim).await,
            Step::AwaitNode => {
                self.await_registration(&claim, registration::NODE_AWAITED)
                    .await
            }
            Step::TellNodesApart(nodes) => {
                let registered = ConditionUpdate {
                    condition_type: conditions::REGISTERED,
                    status: Status::False,
                    reason: reason::MULTIPLE_NODES_FOUND,
                    message: &format!("Invariant violated, matched {nodes} nodes"),
                };
                self.await_registration(&claim, registered).await
            }
            Step::Register(node) => self.register(&claim, &node).await,
            Step::AwaitReadiness(left) => Ok(Action::RequeueAfter(left)),
            Step::AwaitInitialization(lack) => {
                let after = claim.with_condition(lack.as_condition(), self.shell.now());
                self.shell.writer.write_claim_status(&claim, &after).await?;
                Ok(Action::Await)
            }
            Step::Initialize(node) => self.initialize(&claim, &node).await,
            Step::GiveUp(what) => self.give_up(&claim, what).await,
            Step::Rest => {
                self.shell.nominations.node_opened();
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

    async fn await_registration(
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

    async fn register(
        &self,
        claim: &NodeClaim,
        seen: &NodeFacts,
    ) -> Result<Action, ReconcileError> {
        let name = &seen.name;
        if registration::lacks_unregistered_taint(seen) {
            let node = name;
            let entry = ClaimEntry::UnregisteredTaintMissing { node };
            self.shell.journal.write(claim, &entry);
        }
        let claim = &match self.provider.registrable(claim).await {
            Ok(Registrable::Ready(labels)) => self.label(claim, labels).await?,
            Ok(Registrable::Pending(hook)) => return self.await_hook(claim, seen, hook).await,
            Err(error) => {
                self.await_hook(claim, seen, &error.to_string()).await?;
                return Err(error.into());
            }
        };
        let nominations = &self.shell.nominations;
        if let Some(hold) = nominations.hold_or_nominate(claim, seen).await {
            if !is_held_long(seen, self.shell.now()) {
                return Ok(Action::RequeueAfter(self.next_poll()));
            }
            return self.await_hook(claim, seen, hold.message()).await;
        }
        let Some(node) = self.shell.model.node_seen(seen).await? else {
            return Ok(Action::RequeueAfter(self.next_poll()));
        };
        let mut registered = registration::registered_node(claim, &node);
        let lack = initialization::lack(claim, &NodeFacts::parse(&registered));
        if lack.is_none() {
            initialization::mark(&mut registered);
        }
        self.shell.writer.write_node(&node, &registered).await?;
        let now = self.shell.now();
        let mut after = claim.with_true(conditions::REGISTERED, now);
        after.status.get_or_insert_default().node_name = Some(name.clone());
        let after = match &lack {
            None => self.initialized(&after),
            Some(lack) => after.with_condition(lack.as_condition(), now),
        };
        self.shell.writer.write_claim_status(claim, &after).await?;
        node_capacity::report(&self.shell, self.provider.as_ref(), claim, &node).await;
        let entry = ClaimEntry::Registered { node: name };
        self.shell.journal.write(claim, &entry);
        self.shell.pod_ledger.settle_claim(&claim.name_any());
        self.note_registration(claim, &Registration::Succeeded)
            .await?;
        if lack.is_none() {
            self.tell_initialized(claim, name);
        }
        Ok(Action::Await)
    }

    /// The claim, initialized, and found to be what it was told to be in the same write if it is.
    fn initialized(&self, claim: &NodeClaim) -> NodeClaim {
        let now = self.shell.now();
        let after = claim.with_true(conditions::INITIALIZED, now);
        let snapshot = self.shell.model.snapshot();
        match snapshot.node_of_claim(&claim.name_any()) {
            Some(node) if consistency::is_consistent(node) => {
                after.with_true(conditions::CONSISTENT_STATE_FOUND, now)
            }
            Some(_) | None => after,
        }
    }

    fn tell_initialized(&self, claim: &NodeClaim, node: &str) {
        let entry = ClaimEntry::Initialized { node };
        self.shell.journal.write(claim, &entry);
        self.shell.nominations.node_opened();
    }

    /// The claim with labels that the provider knows only now.
    async fn label(
        &self,
        claim: &NodeClaim,
        labels: BTreeMap<String, String>,
    ) -> Result<NodeClaim, ReconcileError> {
        if labels.is_empty() {
            return Ok(claim.clone());
        }
        let mut labelled = claim.clone();
        labelled.labels_mut().extend(labels);
        self.shell.writer.write_claim(claim, &labelled).await
    }

    /// The node gets what its claim has and keeps the taint that keeps pods away, for as long as the provider's hook
    /// is not done.
    async fn await_hook(
        &self,
        claim: &NodeClaim,
        seen: &NodeFacts,
        hook: &str,
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
            message: hook,
        };
        match self.await_registration(claim, registered).await? {
            Action::RequeueAfter(left) if left.is_zero() => {
                self.give_up(claim, TimeLimit::Registration).await
            }
            limit => Ok(limit.sooner(Action::RequeueAfter(self.next_poll()))),
        }
    }

    fn next_poll(&self) -> Duration {
        until_next_look(self.shell.now())
    }

    async fn initialize(
        &self,
        claim: &NodeClaim,
        seen: &NodeFacts,
    ) -> Result<Action, ReconcileError> {
        let Shell { writer, .. } = self.shell.as_ref();
        let (label, value) = initialization::MARK;
        if !writer.label_node(seen, label, value).await? {
            return Ok(Action::RequeueAfter(self.next_poll()));
        }
        let after = self.initialized(claim);
        writer.write_claim_status(claim, &after).await?;
        self.tell_initialized(claim, &seen.name);
        Ok(Action::Await)
    }

    async fn give_up(&self, claim: &NodeClaim, what: TimeLimit) -> Result<Action, ReconcileError> {
        ignore_not_found(self.shell.writer.delete(claim).await)?;
        self.shell.journal.write(claim, &ClaimEntry::TimedOut(what));
        let launched = claim.condition(conditions::LAUNCHED);
        let (reason, message) = match what {
            TimeLimit::Registration => (
                conditions::reason::REGISTRATION_FAILED,
                "Failed to register node",
            ),
            TimeLimit::Launch => launched.map_or((conditions::reason::LAUNCH_FAILED, ""), |it| {
                (it.reason.as_str(), it.message.as_str())
            }),
        };
        self.note_registration(claim, &Registration::Failed { reason, message })
            .await?;
        Ok(Action::Await)
    }

    async fn note_registration(
        &self,
        claim: &NodeClaim,
        outcome: &Registration<'_>,
    ) -> Result<(), ReconcileError> {
        let Shell { model, writer, .. } = self.shell.as_ref();
        let health = &self.shell.registration_health;
        health.note(model, writer, claim, outcome).await
    }
}

#[async_trait::async_trait]
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

/// Whether a node was held closed for so long that its claim is to say what for.
fn is_held_long(node: &NodeFacts, now: Timestamp) -> bool {
    let since = node.ready_at().or(node.created_at);
    since.is_none_or(|at| now.duration_since(at) >= TOLD_AFTER)
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
            several => Step::TellNodesApart(several.len()),
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
    let is_told = initialized.is_some_and(|it| it.reason == lack.reason);
    let registered = claim.condition(conditions::REGISTERED);
    let registered_for = registered.map(|it| now.duration_since(it.last_transition_time.0));
    let left = registered_for.map(|it| TOLD_AFTER - it);
    match left.filter(|left| left.is_positive() && !is_told) {
        Some(left) => Step::AwaitReadiness(left.unsigned_abs()),
        None => Step::AwaitInitialization(lack),
    }
}
