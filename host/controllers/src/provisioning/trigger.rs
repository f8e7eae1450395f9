//! Triggers the provisioner for pods that wait, and for nodes whose pods are about to.
//!
//! Answers to `pkg/controllers/provisioning/controller.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::labels;
use jiff::Timestamp;
use scheduling::pod::Pod;
use state::Snapshot;

use crate::provisioning::batcher::Batcher;
use crate::provisioning::undecided_pods::UndecidedPods;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::{Action, Reconciler};

/// As long as it waits, a pod triggers again after this time.
const AGAIN: Action = Action::RequeueAfter(Duration::from_secs(10));

/// Once the node planned for it is there, a pod triggers again after this time: others may take its room, and then it
/// is planned anew.
const AGAIN_SOON: Action = Action::RequeueAfter(Duration::from_secs(2));

/// A controller that was asked for pods has created them by then; what it creates later comes in the place of others,
/// and nobody could expect that.
const EXPECTED_MAX: Duration = Duration::from_mins(5);

/// Controller `provisioner.trigger.pod`: pending pods start a batch.
pub(crate) struct PodTrigger {
    pub(crate) shell: Arc<Shell>,
    pub(crate) batcher: Arc<Batcher>,
    pub(crate) undecided_pods: Arc<UndecidedPods>,
}

/// Controller `provisioner.trigger.node`: pods of nodes that go start a batch.
pub(crate) struct NodeTrigger {
    pub(crate) shell: Arc<Shell>,
    pub(crate) batcher: Arc<Batcher>,
}

#[async_trait::async_trait]
impl Reconciler for PodTrigger {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(pod) = self
            .shell
            .model
            .pod(key)
            .filter(|pod| pod.is_provisionable())
        else {
            return Ok(Action::Await);
        };
        let (now, snapshot) = (self.shell.now(), self.shell.model.snapshot());
        self.undecided_pods.saw(key, now);
        let expected_for = self.expected_for(&snapshot, &pod, now);
        self.batcher.trigger_expected(&pod.uid, expected_for);
        let is_there = snapshot.place(key).is_some_and(|it| it.is_ready());
        Ok(if is_there { AGAIN_SOON } else { AGAIN })
    }
}

impl PodTrigger {
    /// For how long plans have held the pod, as one that its controller was about to create; zero if they have not.
    fn expected_for(&self, snapshot: &Snapshot, pod: &Pod, now: Timestamp) -> Duration {
        if !self.shell.settings.plans_coming_pods() {
            return Duration::ZERO;
        }
        let asked_for_at = snapshot.asked_for_at(&pod.shape);
        let age = asked_for_at.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
        age.filter(|it| *it <= EXPECTED_MAX).unwrap_or_default()
    }
}

#[async_trait::async_trait]
impl Reconciler for NodeTrigger {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let snapshot = self.shell.model.snapshot();
        let node = snapshot
            .node(&key.name)
            .and_then(|node| node.node().cloned());
        let Some(node) = node else {
            return Ok(Action::Await);
        };
        let is_disrupted = node.taints.iter().any(|taint| {
            taint.key == labels::DISRUPTED_TAINT_KEY && taint.effect == labels::NO_SCHEDULE
        });
        if !is_disrupted {
            return Ok(Action::Await);
        }
        self.batcher.trigger(&node.uid);
        Ok(AGAIN)
    }
}
