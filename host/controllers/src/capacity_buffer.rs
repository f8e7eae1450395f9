//! CapacityBuffers: says in their status what they come to, and wakes the provisioner to keep the room.
//!
//! What a buffer comes to is worked out by `planning::capacity_buffer`. Answers to `pkg/controllers/capacitybuffer`.

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, ConditionSet, reason};
use apis::{CapacityBuffer, CapacityBufferStatus};
use jiff::Timestamp;
use kube::{Api, ResourceExt};
use planning::capacity_buffer::{self, BufferHeadroom, ResolvedBuffer, Unresolved};
use scheduling::Solution;
use state::Snapshot;

use crate::provisioning::batcher::Batcher;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;
use crate::shell::writer::patching::{PatchTarget, patch};

/// Workloads grow and shrink without the buffer's doing.
const AGAIN: Action = Action::RequeueAfter(Duration::from_secs(30));

/// Buffers have conditions side by side, none of which sums the others up.
const CONDITIONS: ConditionSet = ConditionSet {
    root: conditions::READY_FOR_PROVISIONING,
    dependents: &[],
};

/// Controller `capacitybuffer`: one buffer a reconcile.
pub(crate) struct CapacityBufferController {
    pub(crate) shell: Arc<Shell>,
    pub(crate) batcher: Arc<Batcher>,
}

/// A buffer that is ours, and what it comes to.
struct Observed {
    buffer: Arc<CapacityBuffer>,
    resolved: Result<ResolvedBuffer, Unresolved>,
}

impl Reconciler for CapacityBufferController {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(observed) = self.observe(key) else {
            // The nodes that held its room may be empty now.
            self.batcher.trigger(&key.to_string());
            return Ok(Action::Await);
        };
        let after = decide(&observed, self.shell.now());
        self.apply(key, &observed.buffer, &after).await
    }
}

impl CapacityBufferController {
    fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let snapshot = self.shell.model.snapshot();
        let buffer = find(&snapshot, key).filter(|it| capacity_buffer::is_ours(it))?;
        let resolved = capacity_buffer::resolve(&snapshot, &buffer);
        Some(Observed { buffer, resolved })
    }

    async fn apply(
        &self,
        key: &ObjectKey,
        before: &CapacityBuffer,
        after: &CapacityBuffer,
    ) -> Result<Action, ReconcileError> {
        let api = Api::namespaced(self.shell.client.clone(), &key.namespace);
        patch(&api, before, after, PatchTarget::Status).await?;
        if let Some(uid) = before.uid() {
            self.batcher.trigger(&uid);
        }
        Ok(AGAIN)
    }
}

fn find(snapshot: &Snapshot, key: &ObjectKey) -> Option<Arc<CapacityBuffer>> {
    let mut all = snapshot.capacity_buffers();
    let is_it = |it: &&Arc<CapacityBuffer>| {
        it.name_any() == key.name && it.namespace().as_deref() == Some(&key.namespace)
    };
    all.find(is_it).cloned()
}

/// The buffer with what it comes to in its status.
fn decide(observed: &Observed, now: Timestamp) -> CapacityBuffer {
    let Observed { buffer, resolved } = observed;
    let mut after = buffer.as_ref().clone();
    let mut status = after.status.take().unwrap_or_default();
    status.provisioning_strategy = Some(buffer.spec.provisioning_strategy.clone());
    let mut editor = CONDITIONS.edit(&buffer.metadata, &mut status.conditions, now);
    let condition = conditions::READY_FOR_PROVISIONING;
    match resolved {
        Ok(_) => {
            let message = "pod template resolved";
            editor.set_true_with_reason(condition, reason::RESOLVED, message);
        }
        Err(error) => {
            editor.set_false(condition, error.reason(), &error.to_string());
        }
    }
    if let Ok(resolved) = resolved {
        status.replicas = Some(resolved.replicas);
        let (template, generation) = resolved.template.clone().unzip();
        status.pod_template_ref = template;
        status.pod_template_generation = generation.flatten();
    }
    after.status = Some(status);
    after
}

/// Says in the status of every buffer whether its room is there.
pub(crate) async fn write_rooms(shell: &Shell, snapshot: &Snapshot, solution: &Solution) {
    if !shell.settings.feature_gates.capacity_buffer {
        return;
    }
    for (key, headroom) in capacity_buffer::headrooms(snapshot, solution) {
        let api: Api<CapacityBuffer> = Api::namespaced(shell.client.clone(), &key.namespace);
        // Its conditions change from two sides, so what the API has now counts.
        let buffer = match api.get_opt(&key.name).await {
            Ok(Some(buffer)) => buffer,
            Ok(None) => continue,
            Err(error) => {
                tracing::debug!(CapacityBuffer = %key, %error, "not read, and so its status is not written");
                continue;
            }
        };
        let after = headroom_status(&buffer, headroom, shell.now());
        if let Err(error) = patch(&api, &buffer, &after, PatchTarget::Status).await {
            tracing::debug!(CapacityBuffer = %key, %error, "status not written");
        }
    }
}

fn headroom_status(
    buffer: &CapacityBuffer,
    headroom: BufferHeadroom,
    now: Timestamp,
) -> CapacityBuffer {
    let mut after = buffer.clone();
    let status: &mut CapacityBufferStatus = after.status.get_or_insert_default();
    let (truth, reason) = headroom.status_and_reason();
    let mut editor = CONDITIONS.edit(&buffer.metadata, &mut status.conditions, now);
    editor.set(conditions::PROVISIONING, truth, reason, reason);
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_says_what_it_comes_to_or_why_it_comes_to_nothing() {
        let status = |resolved: Result<ResolvedBuffer, Unresolved>| {
            let buffer = Arc::new(CapacityBuffer::default());
            let observed = Observed { buffer, resolved };
            let after = decide(&observed, Timestamp::UNIX_EPOCH);
            let status = after.status.unwrap_or_default();
            let ready = conditions::get(&status.conditions, conditions::READY_FOR_PROVISIONING);
            let ready = ready.map(|it| (it.status.clone(), it.message.clone()));
            (status.replicas, ready.unwrap_or_default())
        };
        let resolved = ResolvedBuffer {
            shape: Arc::default(),
            template: None,
            replicas: 3,
        };
        let (replicas, ready) = status(Ok(resolved));
        assert_eq!(replicas, Some(3));
        assert_eq!(
            ready,
            ("True".to_owned(), "pod template resolved".to_owned())
        );
        let (replicas, ready) = status(Err(Unresolved::PodTemplateNotFound("web".to_owned())));
        assert_eq!(replicas, None);
        assert_eq!(
            ready,
            (
                "False".to_owned(),
                "podtemplate \"web\" not found".to_owned()
            )
        );
    }
}
