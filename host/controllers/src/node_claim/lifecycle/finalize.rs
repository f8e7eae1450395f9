//! Takes a deleted NodeClaim away: first its nodes, then its instance, then our finalizer.
//!
//! The finalizer never goes while the instance lives. Answers to the `finalize` half of
//! `pkg/controllers/nodeclaim/lifecycle/controller.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::conditions::{self, Conditioned};
use apis::{NodeClaim, ProviderId, labels};
use cloudprovider::{CloudProvider, CloudProviderError};
use jiff::{SignedDuration, Timestamp};
use state::facts::NodeFacts;

use crate::node_claim::entries::end::{ClaimReleased, DeadlineSet, InstanceTerminated};
use crate::node_claim::lifecycle::launch::is_listed_by_now;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::action::Action;
use crate::shell::writer::finalizers::{has_finalizer, remove_finalizer};

const INSTANCE_POLL: Duration = Duration::from_secs(5);
const NODE_POLL: Duration = Duration::from_secs(5);

/// The deleting part of the lifecycle controller.
pub(crate) struct Finalizer {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
}

#[derive(Debug, PartialEq)]
enum Step {
    /// Our finalizer is gone: somebody else holds the object.
    Leave,
    /// State by when the node must be gone.
    SetDeadline(Timestamp),
    /// Delete these nodes, and wait until they are gone.
    DeleteNodes(Vec<Arc<NodeFacts>>),
    /// Ask the cloud to take the instance away, until it says that it is gone.
    Terminate(ProviderId),
    /// The instance is gone, or there never was one.
    Release,
}

/// What it means that the cloud knows no instance of a claim that goes.
#[derive(Debug, PartialEq, Eq)]
enum MissingInstance {
    /// Nobody has seen it end: it is young, and the cloud tells of it late.
    Young,
    /// It ended because it was asked to, and took so long.
    Terminated { took: SignedDuration },
    /// It ended by itself.
    Gone,
}

impl MissingInstance {
    fn of(claim: &NodeClaim, now: Timestamp) -> Self {
        if claim.is_condition_true(conditions::INSTANCE_TERMINATING) {
            let since = claim.condition_since(conditions::INSTANCE_TERMINATING);
            let took = now.duration_since(since);
            Self::Terminated { took }
        } else if is_listed_by_now(claim, now) {
            Self::Gone
        } else {
            Self::Young
        }
    }
}

impl Finalizer {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self { shell, provider }
    }

    pub(crate) async fn finalize(&self, claim: Arc<NodeClaim>) -> Result<Action, ReconcileError> {
        let nodes = self.shell.model.nodes_of_claim(&claim).await?;
        let step = decide(&claim, nodes);
        self.apply(&claim, step).await
    }

    async fn apply(&self, claim: &NodeClaim, step: Step) -> Result<Action, ReconcileError> {
        match step {
            Step::Leave => Ok(Action::Await),
            Step::SetDeadline(deadline) => {
                let text = NodeClaim::deadline_text(deadline);
                let after = claim.with_termination_deadline(deadline);
                self.shell.writer.write_claim(claim, &after).await?;
                let entry = DeadlineSet { deadline: &text };
                self.shell.journal.write(claim, &entry);
                Ok(Action::NOW)
            }
            Step::DeleteNodes(nodes) => {
                for node in nodes.iter().filter(|node| node.deleted_at.is_none()) {
                    ignore_not_found(self.shell.writer.delete_node(node).await)?;
                }
                Ok(Action::RequeueAfter(NODE_POLL))
            }
            Step::Terminate(provider_id) => self.terminate(claim, &provider_id).await,
            Step::Release => self.release(claim).await,
        }
    }

    async fn terminate(
        &self,
        claim: &NodeClaim,
        provider_id: &ProviderId,
    ) -> Result<Action, ReconcileError> {
        let now = self.shell.now();
        match self.provider.delete(provider_id).await {
            Ok(()) => {
                let after = claim.with_condition_true(conditions::INSTANCE_TERMINATING, now);
                self.shell.writer.write_claim_status(claim, &after).await?;
                Ok(Action::RequeueAfter(INSTANCE_POLL))
            }
            Err(CloudProviderError::NotFound(_)) => match MissingInstance::of(claim, now) {
                MissingInstance::Young => Ok(Action::RequeueAfter(INSTANCE_POLL)),
                MissingInstance::Terminated { took } => {
                    let entry = InstanceTerminated { took };
                    self.shell.journal.write(claim, &entry);
                    self.release(claim).await
                }
                MissingInstance::Gone => self.release(claim).await,
            },
            Err(error) => Err(error.into()),
        }
    }

    async fn release(&self, claim: &NodeClaim) -> Result<Action, ReconcileError> {
        let mut after = claim.clone();
        remove_finalizer(&mut after, labels::TERMINATION_FINALIZER);
        self.shell.writer.write_claim(claim, &after).await?;
        let deleted_at = claim.metadata.deletion_timestamp.as_ref();
        let took = deleted_at.map(|at| self.shell.now().duration_since(at.0));
        self.shell.journal.write(claim, &ClaimReleased { took });
        Ok(Action::Await)
    }
}

fn decide(claim: &NodeClaim, nodes: Vec<Arc<NodeFacts>>) -> Step {
    if !has_finalizer(claim, labels::TERMINATION_FINALIZER) {
        return Step::Leave;
    }
    let deleted_at = claim
        .metadata
        .deletion_timestamp
        .as_ref()
        .map(|time| time.0);
    let period = claim.spec.termination_grace_period;
    if let (Some(deleted_at), Some(period), None) =
        (deleted_at, period, claim.termination_deadline())
        && let Ok(deadline) = deleted_at.checked_add(period.to_signed_duration())
    {
        return Step::SetDeadline(deadline);
    }
    if claim.is_condition_true(conditions::REGISTERED) && !nodes.is_empty() {
        return Step::DeleteNodes(nodes);
    }
    claim.provider_id().map_or(Step::Release, Step::Terminate)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;

    use super::*;
    use crate::node_claim::tests::{claim_with, condition};

    #[test]
    fn an_instance_that_nobody_saw_end_is_gone_only_once_the_cloud_must_have_listed_it() {
        let launched = || condition("Launched", "True", "00:10");
        let asked = condition("InstanceTerminating", "True", "00:10");
        let took = SignedDuration::from_mins(1);
        let cases = [
            (vec![launched()], "00:11", MissingInstance::Young),
            (vec![launched()], "00:12", MissingInstance::Gone),
            (
                vec![launched(), asked],
                "00:11",
                MissingInstance::Terminated { took },
            ),
        ];
        for (conditions, at, expected) in cases {
            let claim = claim_with(&json!({"/status/conditions": conditions}));
            let now = format!("2026-01-01T{at}:00Z").parse().unwrap();
            assert_eq!(MissingInstance::of(&claim, now), expected, "{at}");
        }
    }

    #[test]
    fn deadline_then_nodes_then_instance_then_finalizer() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        let node = Arc::new(NodeFacts::parse(&node));
        let registered = json!([{"type": "Registered", "status": "True", "reason": "Registered", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let deadline = "2026-01-01T00:30:00Z".parse().unwrap();
        let terminate = Step::Terminate(ProviderId::of_instance("a", "i-1"));
        let cases = [
            (json!({"/metadata/finalizers": []}), vec![], Step::Leave),
            (
                json!({"/spec/terminationGracePeriod": "30m"}),
                vec![],
                Step::SetDeadline(deadline),
            ),
            (
                json!({"/spec/terminationGracePeriod": "30m", "/metadata/annotations": {"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-01T00:30:00Z"}}),
                vec![],
                terminate,
            ),
            (
                json!({"/status/conditions": registered}),
                vec![Arc::clone(&node)],
                Step::DeleteNodes(vec![Arc::clone(&node)]),
            ),
            (
                json!({}),
                vec![node],
                Step::Terminate(ProviderId::of_instance("a", "i-1")),
            ),
            (json!({"/status/providerID": ""}), vec![], Step::Release),
        ];
        for (extra, nodes, expected) in cases {
            assert_eq!(decide(&claim_with(&extra), nodes), expected, "{extra}");
        }
    }
}
