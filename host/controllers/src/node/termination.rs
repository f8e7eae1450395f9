//! Takes a deleted node out of service: taint, drain, volumes, instance, finalizer, in this order.
//!
//! Level-triggered: each reconcile looks at the objects and takes the next step. Answers to
//! `pkg/controllers/node/termination/controller.go`.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned, Status, is_node_ready, reason};
use apis::{NodeClaim, labels};
use cloudprovider::{CloudProvider, CloudProviderError};
use disruption::drain::{DrainInput, DrainStep, drain_step};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use scheduling::pod::Pod;
use state::pod::PodLife;

use crate::error::{ReconcileError, ignore_not_found};
use crate::node::entries::{LeavingNode, NodeEntry};
use crate::node::eviction::EvictionKey;
use crate::node_claim::NodeClaimExt;
use crate::node_claim::initialization::taints;
use crate::runtime::{Action, Reconciler};
use crate::shell::Shell;
use crate::work_queue::WorkQueue;

const DRAIN_POLL: Duration = Duration::from_secs(1);
const INSTANCE_POLL: Duration = Duration::from_secs(5);

/// The controller.
pub(crate) struct Termination {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    evictions: Arc<WorkQueue<EvictionKey>>,
}

struct Observed {
    node: Arc<Node>,
    claim: Option<Arc<NodeClaim>>,
    pods: Vec<Arc<Pod>>,
    /// VolumeAttachments that somebody may still wait for.
    attachments: Vec<String>,
    /// Asked only of nodes that are not ready.
    is_instance_gone: bool,
}

#[derive(Debug)]
enum Step {
    /// Not ours, or not deleted.
    Leave,
    /// The claim goes with the node.
    DeleteClaim,
    /// Keep new pods and load balancers away.
    Taint,
    /// Pods are still there, or the drain is too young to be trusted.
    Drain(DrainStep),
    /// Tell that the drain is over.
    Drained,
    /// Volumes are still attached.
    AwaitVolumes,
    /// Tell how the wait for volumes ended.
    VolumesDone { in_time: bool },
    /// Take the instance away.
    TerminateInstance,
    /// Let the node go.
    Release,
}

impl Termination {
    pub(crate) fn new(
        shell: Arc<Shell>,
        provider: Arc<dyn CloudProvider>,
        evictions: Arc<WorkQueue<EvictionKey>>,
    ) -> Self {
        Self {
            shell,
            provider,
            evictions,
        }
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, ReconcileError> {
        let Some(node) = self.shell.model.node(&key.name).await? else {
            return Ok(None);
        };
        if !is_ours(&node) {
            return Ok(None);
        }
        let claim = match self.shell.model.claim_name_of_node(&key.name) {
            Some(name) => self.shell.model.node_claim(&name).await?,
            None => None,
        };
        let is_instance_gone = !is_node_ready(&node) && self.is_instance_gone(&node).await?;
        let pods = self.shell.model.pods_on(&key.name);
        let attachments = self.attachments_to_await(&key.name, &pods);
        Ok(Some(Observed {
            node,
            claim,
            pods,
            attachments,
            is_instance_gone,
        }))
    }

    async fn is_instance_gone(&self, node: &Node) -> Result<bool, ReconcileError> {
        let Some(provider_id) = provider_id(node) else {
            return Ok(false);
        };
        match self.provider.get(provider_id).await {
            Ok(_) => Ok(false),
            Err(CloudProviderError::NotFound(_)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    async fn apply(&self, observed: &Observed, step: Step) -> Result<Action, ReconcileError> {
        let Observed {
            claim, attachments, ..
        } = observed;
        self.warn_of_deadline(observed);
        match step {
            Step::Leave => Ok(Action::Await),
            Step::DeleteClaim => {
                if let Some(claim) = claim {
                    ignore_not_found(self.shell.writer.delete(claim.as_ref()).await)?;
                }
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            Step::Taint => self.taint(observed).await,
            Step::Drain(drain) => self.drain(observed, drain).await,
            Step::Drained => {
                self.write_entry(observed, &NodeEntry::Drained);
                self.tell(
                    observed,
                    conditions::DRAINED,
                    (Status::True, conditions::DRAINED, ""),
                )
                .await?;
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            Step::AwaitVolumes => {
                let entry = NodeEntry::AwaitsVolumes { attachments };
                self.write_entry(observed, &entry);
                let told = (Status::Unknown, reason::AWAITING_VOLUME_DETACHMENT, "");
                self.tell(observed, conditions::VOLUMES_DETACHED, told)
                    .await?;
                Ok(Action::RequeueAfter(DRAIN_POLL))
            }
            Step::VolumesDone { in_time } => {
                let entry = if in_time {
                    NodeEntry::VolumesDetached
                } else {
                    NodeEntry::DeadlinePassed { attachments }
                };
                // Of volumes that were never there, nothing is to be told.
                if !in_time || has_awaited_volumes(observed) {
                    self.write_entry(observed, &entry);
                }
                let told = if in_time {
                    (Status::True, conditions::VOLUMES_DETACHED, "")
                } else {
                    (Status::False, reason::TERMINATION_GRACE_PERIOD_ELAPSED, "")
                };
                self.tell(observed, conditions::VOLUMES_DETACHED, told)
                    .await?;
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            Step::TerminateInstance => self.terminate_instance(observed).await,
            Step::Release => self.release(observed).await,
        }
    }

    async fn taint(&self, observed: &Observed) -> Result<Action, ReconcileError> {
        let tainted = tainted(&observed.node);
        self.shell
            .writer
            .write_node(&observed.node, &tainted)
            .await?;
        let pods = observed.pods.iter();
        let pods = pods.map(|pod| pod.key.to_string()).collect();
        self.write_entry(observed, &NodeEntry::Tainted { pods });
        Ok(Action::RequeueAfter(Duration::ZERO))
    }

    async fn drain(&self, observed: &Observed, drain: DrainStep) -> Result<Action, ReconcileError> {
        let DrainStep {
            evict,
            delete,
            waiting,
            is_drained: _,
        } = drain;
        let told = (Status::Unknown, reason::DRAINING, "");
        self.tell(observed, conditions::DRAINED, told).await?;
        let node = observed.node.name_any();
        for pod in evict.iter().chain(delete.iter().map(|forced| &forced.pod)) {
            self.evictions.evict(&node, pod);
        }
        if !waiting.is_empty() {
            let why = format!("{} pods are waiting to be evicted", waiting.len());
            self.write_entry(observed, &NodeEntry::DrainWaits { why });
        }
        Ok(Action::RequeueAfter(DRAIN_POLL))
    }

    async fn terminate_instance(&self, observed: &Observed) -> Result<Action, ReconcileError> {
        let Some(provider_id) = provider_id(&observed.node) else {
            return self.release(observed).await;
        };
        match self.provider.delete(provider_id).await {
            Ok(()) => {
                let told = (Status::True, conditions::INSTANCE_TERMINATING, "");
                self.tell(observed, conditions::INSTANCE_TERMINATING, told)
                    .await?;
                Ok(Action::RequeueAfter(INSTANCE_POLL))
            }
            Err(CloudProviderError::NotFound(_)) => self.release(observed).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn release(&self, observed: &Observed) -> Result<Action, ReconcileError> {
        let node = &observed.node;
        let mut after = node.as_ref().clone();
        after
            .finalizers_mut()
            .retain(|name| name != labels::TERMINATION_FINALIZER);
        self.shell.writer.write_node(node, &after).await?;
        let now = self.shell.now();
        self.write_entry(observed, &NodeEntry::Gone { now });
        Ok(Action::Await)
    }

    /// Writes a condition of the claim; nodes without one keep no such record.
    async fn tell(
        &self,
        observed: &Observed,
        condition_type: &str,
        told: (Status, &str, &str),
    ) -> Result<(), ReconcileError> {
        if let Some(claim) = &observed.claim {
            let reason = if told.1.is_empty() {
                condition_type
            } else {
                told.1
            };
            let told = (
                told.0,
                if told.0 == Status::True {
                    condition_type
                } else {
                    reason
                },
                told.2,
            );
            let after = claim.with_condition(condition_type, told, self.shell.now());
            ignore_gone(self.shell.writer.write_claim_status(claim, &after).await)?;
        }
        Ok(())
    }

    fn warn_of_deadline(&self, observed: &Observed) {
        let claim = observed.claim.as_deref();
        if let Some(deadline) = claim.and_then(NodeClaimExt::termination_deadline) {
            self.write_entry(observed, &NodeEntry::DeadlineSet { deadline });
        }
    }

    fn write_entry(&self, observed: &Observed, entry: &NodeEntry<'_>) {
        let subject = LeavingNode {
            node: &observed.node,
            claim: observed.claim.as_deref(),
        };
        self.shell.journal.write(&subject, entry);
    }

    /// VolumeAttachments of the node that will go once the drained pods are gone; those of pods that stay with
    /// the node are not waited for.
    fn attachments_to_await(&self, node_name: &str, pods: &[Arc<Pod>]) -> Vec<String> {
        let (snapshot, now) = (self.shell.model.snapshot(), self.shell.now());
        let staying: BTreeSet<&str> = pods
            .iter()
            .filter(|pod| !pod.is_drainable(now))
            .flat_map(|pod| snapshot.volumes().names_of(pod))
            .collect();
        let attached = snapshot.volumes().attached_to(node_name);
        let awaited =
            attached.filter(|(_, volume)| !volume.is_empty() && !staying.contains(volume));
        awaited.map(|(name, _)| name.to_owned()).collect()
    }
}

#[async_trait::async_trait]
impl Reconciler for Termination {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(observed) = self.observe(key).await? else {
            return Ok(Action::Await);
        };
        let step = decide(&observed, self.shell.now());
        self.apply(&observed, step).await
    }
}

fn decide(observed: &Observed, now: Timestamp) -> Step {
    let Observed {
        node,
        claim,
        pods,
        attachments,
        is_instance_gone,
    } = observed;
    if !is_ours(node) {
        return Step::Leave;
    }
    if claim
        .as_ref()
        .is_some_and(|claim| claim.metadata.deletion_timestamp.is_none())
    {
        return Step::DeleteClaim;
    }
    if *is_instance_gone {
        return Step::Release;
    }
    if tainted(node) != **node {
        return Step::Taint;
    }
    let deadline = claim
        .as_ref()
        .and_then(|claim| claim.termination_deadline());
    // A claim that does not say since when it drains has only begun; a node without claim has no such record.
    let draining_since = match claim {
        Some(claim) if claim.condition(conditions::DRAINED).is_none() => now,
        Some(claim) if claim.is_true(conditions::DRAINED) => Timestamp::UNIX_EPOCH,
        Some(claim) => claim.condition_since(conditions::DRAINED),
        None => node
            .metadata
            .deletion_timestamp
            .as_ref()
            .map_or(now, |time| time.0),
    };
    let drain = drain_step(&DrainInput {
        pods,
        deadline,
        draining_since,
        now,
    });
    if !drain.is_drained {
        return Step::Drain(drain);
    }
    let is_told = |condition: &str| claim.as_ref().is_none_or(|claim| claim.is_true(condition));
    if !is_told(conditions::DRAINED) {
        return Step::Drained;
    }
    let is_late = deadline.is_some_and(|deadline| now > deadline);
    if !attachments.is_empty() && !is_late {
        return Step::AwaitVolumes;
    }
    let is_volume_result_told = claim.as_ref().is_none_or(|claim| {
        claim
            .condition(conditions::VOLUMES_DETACHED)
            .is_some_and(|told| told.status != Status::Unknown.as_str())
    });
    if is_volume_result_told {
        Step::TerminateInstance
    } else {
        Step::VolumesDone {
            in_time: attachments.is_empty(),
        }
    }
}

/// Whether the claim says that volumes are waited for.
fn has_awaited_volumes(observed: &Observed) -> bool {
    let claim = observed.claim.as_ref();
    let condition = claim.and_then(|it| it.condition(conditions::VOLUMES_DETACHED));
    condition.is_some_and(|it| it.reason == reason::AWAITING_VOLUME_DETACHMENT)
}

/// Deleted, held by our finalizer, and made from a class we know.
fn is_ours(node: &Node) -> bool {
    node.metadata.deletion_timestamp.is_some()
        && node
            .finalizers()
            .iter()
            .any(|name| name == labels::TERMINATION_FINALIZER)
        && node.labels().contains_key(labels::EC2_NODE_CLASS)
}

fn provider_id(node: &Node) -> Option<&str> {
    node.spec
        .as_ref()?
        .provider_id
        .as_deref()
        .filter(|id| !id.is_empty())
}

/// The node with the taint and the label of those that go.
fn tainted(node: &Node) -> Node {
    let mut after = node.clone();
    let disrupted = labels::disrupted_taint();
    let has_taint = taints(node)
        .iter()
        .any(|taint| taint.key == disrupted.key && taint.effect == disrupted.effect);
    if !has_taint {
        let taints = after
            .spec
            .get_or_insert_default()
            .taints
            .get_or_insert_default();
        taints.retain(|taint| taint.key != disrupted.key);
        taints.push(disrupted);
    }
    after.labels_mut().insert(
        labels::NODE_EXCLUDE_BALANCERS.to_owned(),
        labels::EXCLUDE_BALANCERS_VALUE.to_owned(),
    );
    after
}

fn ignore_gone<T>(result: Result<T, ReconcileError>) -> Result<(), ReconcileError> {
    match result {
        Err(ReconcileError::Kube(error)) if crate::error::is_not_found(&error) => Ok(()),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}
