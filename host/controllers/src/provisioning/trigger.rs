//! Triggers the provisioner for pods that wait, and for nodes whose pods are about to.
//!
//! It plans nothing: what pods need is found out by the pass. Answers to `pkg/controllers/provisioning/controller.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::labels;
use planning::coming::expected_for;

use crate::provisioning::batcher::Batcher;
use crate::provisioning::undecided_pods::UndecidedPods;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

/// As long as it waits, a pod triggers again after this time.
const AGAIN: Action = Action::RequeueAfter(Duration::from_secs(10));

/// Once the node planned for it is there, a pod triggers again after this time: others may take its room, and then it
/// is planned anew.
const AGAIN_SOON: Action = Action::RequeueAfter(Duration::from_secs(2));

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

impl Reconciler for PodTrigger {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let pod = self.shell.model.pod(key);
        if pod.as_ref().is_none_or(|pod| pod.node_name.is_some()) {
            self.undecided_pods.forget(key);
        }
        let Some(pod) = pod.filter(|pod| pod.is_provisionable()) else {
            return Ok(Action::Await);
        };
        let (now, snapshot) = (self.shell.now(), self.shell.model.snapshot());
        self.undecided_pods.saw(key, now);
        let expected_for = if self.shell.settings.plans_coming_pods() {
            expected_for(&snapshot, &pod, now)
        } else {
            Duration::ZERO
        };
        self.batcher.trigger_expected(&pod.uid, expected_for);
        let is_there = snapshot.place(key).is_some_and(|it| it.is_ready());
        Ok(if is_there { AGAIN_SOON } else { AGAIN })
    }
}

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
