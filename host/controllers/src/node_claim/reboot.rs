//! Sees a reboot in place through: fence, drain, remember the boot, ask the cloud, wait for the node to come back.
//!
//! Repair asks for it by the claim's condition `Rebooting`; everything else is told by the objects, so a restart in
//! the middle goes on where it was. What does not come back is replaced. Answers to Karpenter's
//! `pkg/controllers/nodeclaim/reboot`.

pub(crate) mod draining;
mod entries;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned, Status, is_node_ready};
use apis::duration::GoDuration;
use apis::{NodeClaim, labels};
use cloudprovider::{CloudProvider, RebootError};
use disruption::drain::{DrainInput, DrainStep, drain_step};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use scheduling::pod::Pod;
use tracing::warn;

use crate::error::{ReconcileError, ignore_not_found};
use crate::node::eviction::EvictionKey;
use crate::node_claim::initialization::taints;
use crate::node_claim::reboot::draining::boot_before;
use crate::node_claim::reboot::entries::RebootEntry;
use crate::node_claim::{NodeClaimExt, uid, with_deadline};
use crate::runtime::{Action, Reconciler};
use crate::shell::Shell;
use crate::work_queue::WorkQueue;

const ISSUED: &str = "RebootIssued";
const SUCCEEDED: &str = "RebootSucceeded";
const FAILED: &str = "RebootFailed";
/// Reason of `Initialized` while the node is away.
const AWAY: &str = "Rebooting";

const POLL: Duration = Duration::from_secs(15);
const DRAIN_POLL: Duration = Duration::from_secs(1);
const DRAIN_MIN_SECONDS: i64 = 5;
/// For so long the cloud is asked again when it does not answer.
const ISSUANCE_SECONDS: i64 = 300;
/// So long the node may be away.
const RECOVERY_SECONDS: i64 = 1_200;

/// The controller.
pub(crate) struct Reboot {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    evictions: Arc<WorkQueue<EvictionKey>>,
    /// When the cloud was first asked, by UID of the claim; a restart begins anew.
    asked: Mutex<BTreeMap<String, Timestamp>>,
}

struct Observed {
    claim: Arc<NodeClaim>,
    node: Option<Arc<Node>>,
    pods: Vec<Arc<Pod>>,
    asked_at: Option<Timestamp>,
}

/// What a reboot that did not help comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The bound of the drain cannot be read, so nobody knows what was meant: the node stays.
    Invalid,
    /// The cloud cannot or would not.
    Refused,
    /// The node did not come back.
    Lost,
}

#[derive(Debug, PartialEq)]
enum Step {
    /// Keep new pods away.
    Fence,
    /// Pods are asked to leave.
    Drain(DrainStep),
    /// Note which boot the node is in before the cloud is asked.
    Remember(String),
    /// Ask the cloud.
    Ask {
        operation_id: String,
    },
    /// The cloud has been asked; the node is not ours to use until it is back.
    Issued,
    /// The node is away.
    Wait,
    /// It has booted anew; pods may come again.
    Unfence,
    /// It is back.
    Succeed,
    Fail(Ending, &'static str),
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
            asked: Mutex::default(),
        }
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(&key.name).await? else {
            return Ok(None);
        };
        if claim.metadata.deletion_timestamp.is_some() || !claim.is_true(conditions::REBOOTING) {
            return Ok(None);
        }
        let name = claim.status.as_ref().and_then(|it| it.node_name.clone());
        let node = match &name {
            Some(name) => self.shell.model.node(name).await?,
            None => None,
        };
        let pods = name
            .map(|it| self.shell.model.pods_on(&it))
            .unwrap_or_default();
        let asked_at = self.asked(|it| it.get(&uid(&claim)).copied());
        Ok(Some(Observed {
            claim,
            node,
            pods,
            asked_at,
        }))
    }

    async fn apply(&self, observed: &Observed, step: Step) -> Result<Action, ReconcileError> {
        let Observed { claim, node, .. } = observed;
        match (step, node) {
            (Step::Fail(ending, why), _) => self.fail(claim, ending, why).await,
            (Step::Wait, _) | (_, None) => Ok(Action::RequeueAfter(POLL)),
            (Step::Fence, Some(node)) => {
                self.shell.writer.write_node(node, &fenced(node)).await?;
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            (Step::Drain(drain), Some(node)) => Ok(self.drain(&node.name_any(), &drain)),
            (Step::Remember(boot), Some(_)) => {
                let mut after = NodeClaim::clone(claim);
                let key = labels::REBOOT_PRE_BOOT_ID_ANNOTATION.to_owned();
                after.annotations_mut().insert(key, boot);
                self.shell.writer.write_claim(claim, &after).await?;
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            (Step::Ask { operation_id }, Some(_)) => self.ask(observed, &operation_id).await,
            (Step::Issued, Some(node)) => self.issued(claim, node).await,
            (Step::Unfence, Some(node)) => {
                self.shell.writer.write_node(node, &unfenced(node)).await?;
                let entry = RebootEntry::Observed;
                self.shell.journal.write(claim.as_ref(), &entry);
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            (Step::Succeed, Some(_)) => self.succeed(claim).await,
        }
    }

    fn drain(&self, node: &str, drain: &DrainStep) -> Action {
        for pod in &drain.evict {
            self.evictions.evict(node, pod);
        }
        Action::RequeueAfter(DRAIN_POLL)
    }

    async fn ask(&self, observed: &Observed, operation_id: &str) -> Result<Action, ReconcileError> {
        let claim = &observed.claim;
        let now = self.shell.now();
        self.asked(|it| *it.entry(uid(claim)).or_insert(now));
        let id = claim.provider_id().unwrap_or_default();
        match self.provider.reboot(id, operation_id).await {
            Ok(()) => {
                let entry = RebootEntry::Asked { operation_id };
                self.shell.journal.write(claim.as_ref(), &entry);
                self.shell
                    .writer
                    .write_claim_status(claim, &issued(claim, now))
                    .await?;
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            Err(RebootError::Terminal(why)) => {
                warn!(NodeClaim = %claim.name_any(), why, "the node cannot be rebooted");
                self.fail(claim, Ending::Refused, "the cloud refused").await
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
        let claim = self.forget(claim).await?;
        let now = self.shell.now();
        let told = (Status::False, SUCCEEDED, "");
        let after = claim.with_condition(conditions::REBOOTING, told, now);
        self.shell.writer.write_claim_status(&claim, &after).await?;
        let away = now.duration_since(claim.condition_since(conditions::INITIALIZED));
        let took = self.is_over(&claim);
        let entry = RebootEntry::Succeeded { took, away };
        self.shell.journal.write(&claim, &entry);
        Ok(Action::Await)
    }

    /// A node that did not come back is replaced; one that nobody knows how to drain stays.
    async fn fail(
        &self,
        claim: &NodeClaim,
        ending: Ending,
        why: &str,
    ) -> Result<Action, ReconcileError> {
        let now = self.shell.now();
        let result = match ending {
            Ending::Invalid => "invalid_request",
            Ending::Refused => "provider_error",
            Ending::Lost => "recovery_timeout",
        };
        if ending == Ending::Invalid {
            let claim = self.forget(claim).await?;
            let told = (Status::False, FAILED, why);
            let after = claim.with_condition(conditions::REBOOTING, told, now);
            self.shell.writer.write_claim_status(&claim, &after).await?;
        } else {
            let bound = bound(claim)
                .ok()
                .flatten()
                .map(GoDuration::to_signed_duration);
            let at = bound.and_then(|it| now.checked_add(it).ok());
            let earliest = at.into_iter().chain(claim.termination_deadline()).min();
            let claim = match earliest {
                Some(at) => {
                    let after = with_deadline(claim, at);
                    self.shell.writer.write_claim(claim, &after).await?
                }
                None => claim.clone(),
            };
            // Whoever changed it meanwhile may have called the reboot off.
            ignore_not_found(self.shell.writer.delete_unchanged(&claim).await)?;
        }
        let entry = RebootEntry::Failed {
            result,
            why,
            took: self.is_over(claim),
            is_deleted: ending != Ending::Invalid,
        };
        self.shell.journal.write(claim, &entry);
        Ok(Action::Await)
    }

    /// Takes the notes of this reboot off the claim and the fence off its node.
    async fn forget(&self, claim: &NodeClaim) -> Result<NodeClaim, ReconcileError> {
        let name = claim.status.as_ref().and_then(|it| it.node_name.as_deref());
        if let Some(name) = name
            && let Some(node) = self.shell.model.node(name).await?
        {
            self.shell
                .writer
                .write_node(&node, &unfenced(&node))
                .await?;
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

    /// What was noted of the reboot in memory goes; answers how long it took.
    fn is_over(&self, claim: &NodeClaim) -> SignedDuration {
        self.asked(|it| it.remove(&uid(claim)));
        let since = claim.condition_since(conditions::REBOOTING);
        self.shell.now().duration_since(since)
    }

    fn asked<T>(&self, of: impl FnOnce(&mut BTreeMap<String, Timestamp>) -> T) -> T {
        of(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait::async_trait]
impl Reconciler for Reboot {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(observed) = self.observe(key).await? else {
            return Ok(Action::Await);
        };
        let step = decide(&observed, self.shell.now());
        self.apply(&observed, step).await
    }
}

fn is_issued(claim: &NodeClaim) -> bool {
    let condition = claim.condition(conditions::REBOOTING);
    condition.is_some_and(|it| it.reason == ISSUED)
}

/// The claim while the node is away.
fn issued(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let told = (Status::True, ISSUED, "");
    let after = claim.with_condition(conditions::REBOOTING, told, now);
    let told = (Status::Unknown, AWAY, "");
    after.with_condition(conditions::INITIALIZED, told, now)
}

/// How long the drain may take; nothing where it is not bounded.
fn bound(claim: &NodeClaim) -> Result<Option<GoDuration>, ()> {
    let key = labels::REBOOT_TERMINATION_GRACE_PERIOD_ANNOTATION;
    let Some(text) = claim.annotations().get(key) else {
        return Ok(None);
    };
    match text.parse::<GoDuration>() {
        Ok(bound) if bound >= GoDuration::ZERO => Ok(Some(bound)),
        Ok(_) | Err(_) => Err(()),
    }
}

/// Which boot the node is in, where it says so.
fn boot_id(node: &Node) -> Option<&str> {
    let info = node.status.as_ref()?.node_info.as_ref()?;
    Some(info.boot_id.as_str()).filter(|it| !it.is_empty())
}

fn is_fenced(node: &Node) -> bool {
    taints(node)
        .iter()
        .any(|it| it.key == labels::REBOOTING_TAINT_KEY)
}

fn fenced(node: &Node) -> Node {
    let mut after = unfenced(node);
    let spec = after.spec.get_or_insert_default();
    spec.taints
        .get_or_insert_default()
        .push(labels::rebooting_taint());
    after
}

fn unfenced(node: &Node) -> Node {
    let mut after = node.clone();
    if let Some(taints) = after.spec.as_mut().and_then(|it| it.taints.as_mut()) {
        taints.retain(|it| it.key != labels::REBOOTING_TAINT_KEY);
    }
    after
}

fn decide(observed: &Observed, now: Timestamp) -> Step {
    let claim = &observed.claim;
    if is_issued(claim) {
        return away(observed, now);
    }
    let requested_at = claim.condition_since(conditions::REBOOTING);
    let since = |at: Timestamp| now.duration_since(at).as_secs();
    let Ok(bound) = bound(claim) else {
        return Step::Fail(Ending::Invalid, "the bound of its drain cannot be read");
    };
    let Some(node) = &observed.node else {
        return if since(requested_at) > ISSUANCE_SECONDS {
            Step::Fail(Ending::Lost, "its node is gone")
        } else {
            Step::Wait
        };
    };
    if !is_fenced(node) {
        return Step::Fence;
    }
    let boot = boot_id(node);
    let Some(before) = boot_before(claim) else {
        let drain = drain(observed, bound, requested_at, now).map(Step::Drain);
        let remember = || boot.map(|it| Step::Remember(it.to_owned()));
        // Without the boot before there is no telling whether the node booted anew.
        return drain.or_else(remember).unwrap_or(Step::Wait);
    };
    if boot.is_some_and(|it| it != before) {
        return Step::Issued;
    }
    if observed
        .asked_at
        .is_some_and(|at| since(at) > ISSUANCE_SECONDS)
    {
        return Step::Fail(Ending::Refused, "the cloud did not answer");
    }
    let nanos = requested_at.as_nanosecond();
    Step::Ask {
        operation_id: format!("{}-{nanos}-{before}", uid(claim)),
    }
}

/// What is left to do of the drain, if anything.
fn drain(
    observed: &Observed,
    bound: Option<GoDuration>,
    since: Timestamp,
    now: Timestamp,
) -> Option<DrainStep> {
    let step = drain_step(&DrainInput {
        pods: &observed.pods,
        deadline: None,
        draining_since: since,
        now,
    });
    let is_over = match bound {
        Some(bound) if bound == GoDuration::ZERO => true,
        Some(bound) => {
            let least = SignedDuration::from_secs(DRAIN_MIN_SECONDS);
            now.duration_since(since) >= bound.to_signed_duration().max(least)
        }
        None => false,
    };
    (!is_over && !step.is_drained).then_some(step)
}

fn away(observed: &Observed, now: Timestamp) -> Step {
    let claim = &observed.claim;
    let left_at = claim.condition_since(conditions::INITIALIZED);
    let is_late = now.duration_since(left_at).as_secs() > RECOVERY_SECONDS;
    let lost = Step::Fail(Ending::Lost, "the node did not come back in time");
    let Some(node) = &observed.node else {
        return if is_late { lost } else { Step::Wait };
    };
    let boots = boot_before(claim).zip(boot_id(node));
    let has_booted = boots.is_some_and(|(before, after)| before != after);
    let is_initialized = node.labels().contains_key(labels::INITIALIZED);
    match (has_booted, is_node_ready(node)) {
        (true, _) if is_fenced(node) => Step::Unfence,
        (true, true) => Step::Succeed,
        (true | false, _) if is_late => lost,
        (true | false, _) if is_initialized => Step::Issued,
        (true | false, _) => Step::Wait,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(kind: &str, status: &str, reason: &str) -> Value {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    }

    fn observed(annotations: &Value, reason: &str, boot: &Value) -> Observed {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "uid": "u", "annotations": annotations},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "n"},
                "requirements": [],
            },
            "status": {"conditions": [
                told("Initialized", "Unknown", AWAY),
                told("Rebooting", "True", reason),
            ]},
        });
        let node = json!({
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": "karpenter.sh/rebooting", "effect": "NoSchedule"}]},
            "status": {"nodeInfo": {
                "architecture": "", "bootID": boot, "containerRuntimeVersion": "",
                "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "",
                "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
            }},
        });
        Observed {
            claim: Arc::new(serde_json::from_value(claim).unwrap()),
            node: Some(Arc::new(serde_json::from_value(node).unwrap())),
            pods: Vec::new(),
            asked_at: None,
        }
    }

    #[test]
    fn a_node_that_does_not_say_its_boot_is_waited_for() {
        let before = json!({labels::REBOOT_PRE_BOOT_ID_ANNOTATION: "one"});
        let cases = [
            (
                json!({}),
                "RebootRequested",
                "one",
                Step::Remember("one".to_owned()),
            ),
            (json!({}), "RebootRequested", "", Step::Wait),
            (before.clone(), ISSUED, "one", Step::Wait),
            (before.clone(), ISSUED, "", Step::Wait),
            (before, ISSUED, "two", Step::Unfence),
        ];
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        for (annotations, reason, boot, step) in cases {
            let observed = observed(&annotations, reason, &json!(boot));
            assert_eq!(
                decide(&observed, now),
                step,
                "{annotations} {reason} {boot:?}"
            );
        }
    }
}
