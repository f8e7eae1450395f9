//! Sees a reboot in place through: taint, drain, remember the boot, ask the cloud, wait for the node to come back.
//!
//! Repair asks for it by the claim's condition `Rebooting`; everything else is told by the objects, so a restart in
//! the middle goes on where it was. What does not come back is replaced. Answers to Karpenter's
//! `pkg/controllers/nodeclaim/reboot`.

mod asked;
mod decision;
pub(crate) mod draining;
mod entries;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, ConditionUpdate, Conditioned, Status};
use apis::duration::GoDuration;
use apis::{NodeClaim, labels};
use cloudprovider::{CloudProvider, RebootError};
use disruption::drain::DrainStep;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use tracing::warn;

use crate::node::eviction::EvictionKey;
use crate::node::taints::{with_taint, without_taint};
use crate::node_claim::reboot::asked::AskedReboots;
use crate::node_claim::reboot::decision::{
    Ending, FailedReboot, ISSUED, Observed, Step, decide, is_issued,
};
use crate::node_claim::reboot::entries::{RebootEntry, RebootFailure};
use crate::node_claim::with_drain_within;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;
use crate::shell::runtime::work_queue::WorkQueue;

const SUCCEEDED: &str = "RebootSucceeded";
const FAILED: &str = "RebootFailed";
/// Reason of `Initialized` while the node is away.
const AWAY: &str = "Rebooting";

const POLL: Duration = Duration::from_secs(15);
const DRAIN_POLL: Duration = Duration::from_secs(1);

/// Controller of reboots: one claim a reconcile.
pub(crate) struct Reboot {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    evictions: Arc<WorkQueue<EvictionKey>>,
    asked: AskedReboots,
}

impl Reboot {
    pub(crate) fn new(
        shell: Arc<Shell>,
        provider: Arc<dyn CloudProvider>,
        evictions: Arc<WorkQueue<EvictionKey>>,
    ) -> Self {
        Self {
            shell,
            provider,
            evictions,
            asked: AskedReboots::default(),
        }
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, ReconcileError> {
        let claim = self.shell.model.node_claim(&key.name).await?;
        let Some(claim) = claim.filter(|it| is_to_reboot(it)) else {
            self.asked.forget(&key.name);
            return Ok(None);
        };
        let name = claim.status.as_ref().and_then(|it| it.node_name.clone());
        let node = match &name {
            Some(name) => self.shell.model.node(name).await?,
            None => None,
        };
        let pods = name
            .map(|it| self.shell.model.pods_on(&it))
            .unwrap_or_default();
        Ok(Some(Observed {
            asked_at: self.asked.first_asked_at(&claim),
            claim,
            node,
            pods,
        }))
    }

    async fn apply(&self, claim: &NodeClaim, step: Step<'_>) -> Result<Action, ReconcileError> {
        match step {
            Step::Taint(node) => {
                let after = with_taint(node, labels::rebooting_taint());
                self.shell.writer.write_node(node, &after).await?;
                Ok(Action::NOW)
            }
            Step::Drain(node, drain) => Ok(self.drain(&node.name_any(), &drain)),
            Step::Remember(boot) => {
                let mut after = claim.clone();
                let key = labels::REBOOT_PRE_BOOT_ID_ANNOTATION.to_owned();
                after.annotations_mut().insert(key, boot.to_owned());
                self.shell.writer.write_claim(claim, &after).await?;
                Ok(Action::NOW)
            }
            Step::Ask { bound } => self.ask(claim, bound).await,
            Step::Issued(node) => self.issued(claim, node).await,
            Step::Wait => Ok(Action::RequeueAfter(POLL)),
            Step::Untaint(node) => {
                let after = without_taint(node, labels::REBOOTING_TAINT_KEY);
                self.shell.writer.write_node(node, &after).await?;
                self.shell.journal.write(claim, &RebootEntry::Observed);
                Ok(Action::NOW)
            }
            Step::Succeed => self.succeed(claim).await,
            Step::Reject(why) => self.reject(claim, why).await,
            Step::Fail(failed) => self.fail(claim, failed).await,
        }
    }

    fn drain(&self, node: &str, drain: &DrainStep) -> Action {
        for pod in &drain.evict {
            self.evictions.evict(node, pod);
        }
        Action::RequeueAfter(DRAIN_POLL)
    }

    async fn ask(
        &self,
        claim: &NodeClaim,
        bound: Option<GoDuration>,
    ) -> Result<Action, ReconcileError> {
        let now = self.shell.now();
        self.asked.note(claim, now);
        let answer = match claim.provider_id() {
            Some(id) => self.provider.reboot(&id).await,
            None => Err(RebootError::Terminal(
                "the claim has no instance".to_owned(),
            )),
        };
        match answer {
            Ok(()) => {
                self.shell.journal.write(claim, &RebootEntry::Asked);
                self.shell
                    .writer
                    .write_claim_status(claim, &issued(claim, now))
                    .await?;
                Ok(Action::NOW)
            }
            Err(RebootError::Terminal(why)) => {
                warn!(NodeClaim = %claim.name_any(), why, "the node cannot be rebooted");
                let failed = FailedReboot {
                    ending: Ending::Refused,
                    why: Cow::Owned(why),
                    bound,
                };
                self.fail(claim, failed).await
            }
            Err(error @ RebootError::Other(_)) => {
                warn!(NodeClaim = %claim.name_any(), %error, "asking for a reboot, will be tried again");
                Ok(Action::RequeueAfter(POLL))
            }
        }
    }

    /// Says that the node is away, again where somebody took that back.
    async fn issued(&self, claim: &NodeClaim, node: &Node) -> Result<Action, ReconcileError> {
        let mut after = node.clone();
        after.labels_mut().remove(labels::INITIALIZED);
        self.shell.writer.write_node(node, &after).await?;
        if !is_issued(claim) {
            let after = issued(claim, self.shell.now());
            self.shell.writer.write_claim_status(claim, &after).await?;
        }
        Ok(Action::RequeueAfter(POLL))
    }

    async fn succeed(&self, claim: &NodeClaim) -> Result<Action, ReconcileError> {
        let (claim, now) = self.conclude(claim, SUCCEEDED, "").await?;
        let away = now.duration_since(claim.condition_since(conditions::INITIALIZED));
        let took = self.take_elapsed(&claim);
        let entry = RebootEntry::Succeeded { took, away };
        self.shell.journal.write(&claim, &entry);
        Ok(Action::Await)
    }

    /// A node that nobody knows how to drain stays.
    async fn reject(&self, claim: &NodeClaim, why: &str) -> Result<Action, ReconcileError> {
        self.conclude(claim, FAILED, why).await?;
        let entry = RebootEntry::Failed {
            failure: RebootFailure::Unclear,
            why,
            took: self.take_elapsed(claim),
        };
        self.shell.journal.write(claim, &entry);
        Ok(Action::Await)
    }

    /// The reboot is over, one way or the other, and the claim says so; answers when, and the claim as it was without
    /// the notes of the reboot.
    async fn conclude(
        &self,
        claim: &NodeClaim,
        reason: &str,
        message: &str,
    ) -> Result<(NodeClaim, Timestamp), ReconcileError> {
        let claim = self.forget(claim).await?;
        let now = self.shell.now();
        let condition = ConditionUpdate {
            condition_type: conditions::REBOOTING,
            status: Status::False,
            reason,
            message,
        };
        let after = claim.with_condition(condition, now);
        self.shell.writer.write_claim_status(&claim, &after).await?;
        Ok((claim, now))
    }

    /// A node that did not come back is replaced.
    async fn fail(
        &self,
        claim: &NodeClaim,
        failed: FailedReboot,
    ) -> Result<Action, ReconcileError> {
        let FailedReboot { ending, why, bound } = failed;
        let bounded = match bound {
            Some(bound) => {
                let after = with_drain_within(claim, bound, self.shell.now());
                self.shell.writer.write_claim(claim, &after).await?
            }
            None => claim.clone(),
        };
        // Whoever changed it meanwhile may have called the reboot off.
        ignore_not_found(self.shell.writer.delete_unchanged(&bounded).await)?;
        let entry = RebootEntry::Failed {
            failure: RebootFailure::Replaced(ending),
            why: &why,
            took: self.take_elapsed(claim),
        };
        self.shell.journal.write(claim, &entry);
        Ok(Action::Await)
    }

    /// Takes the notes of this reboot off the claim and the taint off its node.
    async fn forget(&self, claim: &NodeClaim) -> Result<NodeClaim, ReconcileError> {
        let name = claim.status.as_ref().and_then(|it| it.node_name.as_deref());
        if let Some(name) = name
            && let Some(node) = self.shell.model.node(name).await?
        {
            let after = without_taint(&node, labels::REBOOTING_TAINT_KEY);
            self.shell.writer.write_node(&node, &after).await?;
        }
        let mut after = claim.clone();
        for key in [
            labels::REBOOT_PRE_BOOT_ID_ANNOTATION,
            labels::REBOOT_TERMINATION_GRACE_PERIOD_ANNOTATION,
        ] {
            after.annotations_mut().remove(key);
        }
        self.shell.writer.write_claim(claim, &after).await
    }

    /// How long the reboot took; what was noted of it in memory goes.
    fn take_elapsed(&self, claim: &NodeClaim) -> SignedDuration {
        self.asked.forget(&claim.name_any());
        let since = claim.condition_since(conditions::REBOOTING);
        self.shell.now().duration_since(since)
    }
}

impl Reconciler for Reboot {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(observed) = self.observe(key).await? else {
            return Ok(Action::Await);
        };
        let step = decide(&observed, self.shell.now());
        self.apply(&observed.claim, step).await
    }
}

/// Whether the claim's node is to reboot, or is at it.
fn is_to_reboot(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_none() && claim.is_condition_true(conditions::REBOOTING)
}

/// The claim while the node is away.
fn issued(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let fault = claim.condition(conditions::REBOOTING);
    let rebooting = ConditionUpdate {
        condition_type: conditions::REBOOTING,
        status: Status::True,
        reason: ISSUED,
        message: fault.map_or("", |it| it.message.as_str()),
    };
    let away = ConditionUpdate {
        condition_type: conditions::INITIALIZED,
        status: Status::Unknown,
        reason: AWAY,
        message: "node is rebooting",
    };
    let after = claim.with_condition(rebooting, now);
    after.with_condition(away, now)
}
