//! Takes a deleted node out of service: taint, drain, volumes, instance, finalizer, in this order.
//!
//! Level-triggered: each reconcile looks at the objects and takes the next step. Answers to
//! `pkg/controllers/node/termination/controller.go`.

mod decision;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, ConditionUpdate, Conditioned, Status, reason};
use apis::{NodeClaim, ProviderId, labels};
use cloudprovider::{CloudProvider, CloudProviderError};
use disruption::drain::DrainStep;
use k8s_openapi::api::core::v1::Node;
use scheduling::pod::Pod;
use state::facts::NodeFacts;

use self::decision::{Observed, Step, decide, is_ours, tainted};
use crate::node::entries::{LeavingNode, NodeEntry};
use crate::node::eviction::EvictionKey;
use crate::node_claim::instance_life;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;
use crate::shell::runtime::work_queue::WorkQueue;
use crate::shell::writer::finalizers::remove_finalizer;

const DRAIN_POLL: Duration = Duration::from_secs(1);
const INSTANCE_POLL: Duration = Duration::from_secs(5);

/// Controller of the ends of Nodes: one Node a reconcile.
pub(crate) struct Termination {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    evictions: Arc<WorkQueue<EvictionKey>>,
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
        let Some(node) = self.shell.model.node_facts(&key.name).await? else {
            return Ok(None);
        };
        if !is_ours(&node) {
            return Ok(None);
        }
        let claim = match self.shell.model.claim_name_of_node(&key.name) {
            Some(name) => self.shell.model.node_claim(&name).await?,
            None => None,
        };
        let is_instance_gone = !node.is_ready && self.is_instance_gone(&node).await?;
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

    async fn is_instance_gone(&self, node: &NodeFacts) -> Result<bool, ReconcileError> {
        let Some(provider_id) = &node.provider_id else {
            return Ok(false);
        };
        let life = instance_life(self.provider.as_ref(), provider_id).await?;
        Ok(life.is_none())
    }

    async fn apply(&self, observed: &Observed, step: Step<'_>) -> Result<Action, ReconcileError> {
        self.warn_of_deadline(observed);
        match step {
            Step::DeleteClaim(claim) => {
                ignore_not_found(self.shell.writer.delete(claim).await)?;
                // The model learns of it by the watch alone: looked at sooner, the claim would be deleted again.
                Ok(Action::RequeueAfter(DRAIN_POLL))
            }
            Step::Taint => self.taint(observed).await,
            Step::Drain(drain) => self.drain(observed, drain).await,
            Step::Drained(claim) => {
                let after = claim.with_condition_true(conditions::DRAINED, self.shell.now());
                self.drained(observed, claim, &after).await
            }
            Step::DrainedAndDetached(claim) => {
                let now = self.shell.now();
                let drained = claim.with_condition_true(conditions::DRAINED, now);
                let after = drained.with_condition_true(conditions::VOLUMES_DETACHED, now);
                self.drained(observed, claim, &after).await
            }
            Step::AwaitVolumes(attachments) => {
                let entry = NodeEntry::AwaitsVolumes { attachments };
                self.write_entry(observed, &entry);
                let (condition_type, reason) = (
                    conditions::VOLUMES_DETACHED,
                    reason::AWAITING_VOLUME_DETACHMENT,
                );
                self.write_condition(observed, condition_type, Status::Unknown, reason)
                    .await?;
                Ok(Action::RequeueAfter(DRAIN_POLL))
            }
            Step::VolumesDetached => {
                let action = self.volumes_detached(observed).await?;
                self.write_entry(observed, &NodeEntry::VolumesDetached);
                Ok(action)
            }
            Step::VolumesAbsent => self.volumes_detached(observed).await,
            Step::VolumesLate(attachments) => {
                let (condition_type, reason) = (
                    conditions::VOLUMES_DETACHED,
                    reason::TERMINATION_GRACE_PERIOD_ELAPSED,
                );
                self.write_condition(observed, condition_type, Status::False, reason)
                    .await?;
                let entry = NodeEntry::DeadlinePassed { attachments };
                self.write_entry(observed, &entry);
                Ok(Action::NOW)
            }
            Step::TerminateInstance(id) => self.terminate_instance(observed, id).await,
            Step::Release => self.release(observed).await,
        }
    }

    async fn taint(&self, observed: &Observed) -> Result<Action, ReconcileError> {
        let Some(node) = self.current(observed).await? else {
            return Ok(Action::RequeueAfter(DRAIN_POLL));
        };
        let tainted = tainted(&node);
        self.shell.writer.write_node(&node, &tainted).await?;
        let pods = observed.pods.iter();
        let pods = pods.map(|pod| pod.key.to_string()).collect();
        self.write_entry(observed, &NodeEntry::Tainted { pods });
        Ok(Action::NOW)
    }

    async fn drain(&self, observed: &Observed, drain: DrainStep) -> Result<Action, ReconcileError> {
        let DrainStep {
            evict,
            delete,
            waiting,
        } = drain;
        let (condition_type, reason) = (conditions::DRAINED, reason::DRAINING);
        self.write_condition(observed, condition_type, Status::Unknown, reason)
            .await?;
        let node = &observed.node.name;
        for pod in evict.iter().chain(delete.iter().map(|forced| &forced.pod)) {
            self.evictions.evict(node, pod);
        }
        if !waiting.is_empty() {
            let why = format!("{} pods are waiting to be evicted", waiting.len());
            self.write_entry(observed, &NodeEntry::DrainWaits { why });
        }
        Ok(Action::RequeueAfter(DRAIN_POLL))
    }

    async fn drained(
        &self,
        observed: &Observed,
        claim: &NodeClaim,
        after: &NodeClaim,
    ) -> Result<Action, ReconcileError> {
        // Told once it is written: where somebody else wrote first, the step is taken again.
        ignore_not_found(self.shell.writer.write_claim_status(claim, after).await)?;
        self.write_entry(observed, &NodeEntry::Drained);
        Ok(Action::NOW)
    }

    async fn volumes_detached(&self, observed: &Observed) -> Result<Action, ReconcileError> {
        let condition_type = conditions::VOLUMES_DETACHED;
        self.write_condition(observed, condition_type, Status::True, condition_type)
            .await?;
        Ok(Action::NOW)
    }

    async fn terminate_instance(
        &self,
        observed: &Observed,
        provider_id: &ProviderId,
    ) -> Result<Action, ReconcileError> {
        match self.provider.delete(provider_id).await {
            Ok(()) => {
                let condition_type = conditions::INSTANCE_TERMINATING;
                self.write_condition(observed, condition_type, Status::True, condition_type)
                    .await?;
                Ok(Action::RequeueAfter(INSTANCE_POLL))
            }
            Err(CloudProviderError::NotFound(_)) => self.release(observed).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn release(&self, observed: &Observed) -> Result<Action, ReconcileError> {
        let Some(node) = self.current(observed).await? else {
            return Ok(Action::Await);
        };
        let mut after = node.as_ref().clone();
        remove_finalizer(&mut after, labels::TERMINATION_FINALIZER);
        self.shell.writer.write_node(&node, &after).await?;
        let now = self.shell.now();
        self.write_entry(observed, &NodeEntry::Gone { now });
        Ok(Action::Await)
    }

    /// The node as it is now, while it is held by our finalizer.
    async fn current(&self, observed: &Observed) -> Result<Option<Arc<Node>>, ReconcileError> {
        let node = self.shell.model.node_seen(&observed.node).await?;
        Ok(node.filter(|it| is_ours(&NodeFacts::parse(it))))
    }

    /// Writes a condition of the claim; nodes without one keep no such record.
    async fn write_condition(
        &self,
        observed: &Observed,
        condition_type: &str,
        status: Status,
        reason: &str,
    ) -> Result<(), ReconcileError> {
        if let Some(claim) = &observed.claim {
            let now = self.shell.now();
            let condition = ConditionUpdate {
                condition_type,
                status,
                reason,
                message: "",
            };
            let after = claim.with_condition(condition, now);
            ignore_not_found(self.shell.writer.write_claim_status(claim, &after).await)?;
        }
        Ok(())
    }

    fn warn_of_deadline(&self, observed: &Observed) {
        let claim = observed.claim.as_deref();
        if let Some(deadline) = claim.and_then(NodeClaim::termination_deadline) {
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
