//! Resolves NodeClasses through the provider, and holds a deleted one until no claim uses it.
//!
//! Answers to the AWS provider's `pkg/controllers/nodeclass/controller.go` and `hash/controller.go` beside it.

pub(crate) mod profiles;

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned};
use apis::{Ec2NodeClass, NodeClaim, NodePool, labels};
use cloudprovider::{CloudProvider, NodeClassStatus};
use kube::ResourceExt;

use crate::node_claim::hashes::{HashKeys, carry_over};
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::log_values::FirstFew;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;
use crate::shell::writer::finalizers::{add_finalizer, has_finalizer, remove_finalizer};
use crate::shell::writer::patching::{PatchTarget, patch};

const RELEASE_POLL: Duration = Duration::from_secs(30);
/// A class is not resolved more often, whatever its provider asks for.
const REQUEUE_MIN: Duration = Duration::from_secs(1);
const HASH_KEYS: HashKeys = HashKeys {
    hash: labels::EC2_NODE_CLASS_HASH_ANNOTATION,
    version: labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION,
};

/// Controller of EC2NodeClasses: one class a reconcile.
pub(crate) struct NodeClassController {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    AddFinalizer,
    Resolve,
    /// Deleted, but these claims still use it.
    AwaitClaims(Vec<String>),
    Release,
    Leave,
}

impl Reconciler for NodeClassController {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let observed = self
            .shell
            .writer
            .api::<Ec2NodeClass>()
            .get_opt(&key.name)
            .await?;
        let Some(class) = observed else {
            return Ok(Action::Await);
        };
        let users = if class.metadata.deletion_timestamp.is_some() {
            self.users(&class).await?
        } else {
            Vec::new()
        };
        self.apply(&class, decide(&class, users)).await
    }
}

impl NodeClassController {
    async fn users(&self, class: &Ec2NodeClass) -> Result<Vec<String>, ReconcileError> {
        let name = class.name_any();
        let mut users = Vec::new();
        self.shell
            .model
            .for_each_claim("", |claim| {
                if claim.spec.node_class_ref.name == name {
                    users.push(claim.name_any());
                }
            })
            .await?;
        Ok(users)
    }

    async fn apply(&self, class: &Ec2NodeClass, step: Step) -> Result<Action, ReconcileError> {
        match step {
            Step::Leave => Ok(Action::Await),
            Step::AddFinalizer => {
                let mut after = class.clone();
                add_finalizer(&mut after, labels::EC2_NODE_CLASS_TERMINATION_FINALIZER);
                self.write(class, &after, PatchTarget::Main).await?;
                Ok(Action::NOW)
            }
            Step::Resolve => self.resolve(class).await,
            Step::AwaitClaims(claims) => {
                let entry = NodeClassEntry::AwaitsClaims(&claims);
                self.shell.journal.write(class, &entry);
                Ok(Action::RequeueAfter(RELEASE_POLL))
            }
            Step::Release => {
                self.provider.release_node_class(class).await?;
                let mut after = class.clone();
                remove_finalizer(&mut after, labels::EC2_NODE_CLASS_TERMINATION_FINALIZER);
                self.write(class, &after, PatchTarget::Main).await?;
                Ok(Action::Await)
            }
        }
    }

    /// The pools that make nodes from the class.
    fn pools(&self, class: &Ec2NodeClass) -> Vec<Arc<NodePool>> {
        let (snapshot, name) = (self.shell.model.snapshot(), class.name_any());
        let pools = snapshot.node_pools();
        pools
            .filter(|pool| pool.spec.template.spec.node_class_ref.name == name)
            .cloned()
            .collect()
    }

    async fn resolve(&self, class: &Ec2NodeClass) -> Result<Action, ReconcileError> {
        let pools = self.pools(class);
        let NodeClassStatus {
            status,
            annotations,
            requeue_after,
        } = self.provider.resolve_node_class(class, &pools).await?;
        let version = annotations.get(HASH_KEYS.version);
        if version.is_some_and(|it| class.annotations().get(HASH_KEYS.version) != Some(it)) {
            let name = class.name_any();
            let is_its = |claim: &NodeClaim| claim.spec.node_class_ref.name == name;
            carry_over(&self.shell, "", is_its, &annotations, HASH_KEYS).await?;
        }
        let mut annotated = class.clone();
        annotated.annotations_mut().extend(annotations);
        let written = self.write(class, &annotated, PatchTarget::Main).await?;
        let mut after = written.clone();
        after.status = Some(status);
        let was_ready = class.is_ready();
        self.write(&written, &after, PatchTarget::Status).await?;
        if after.is_ready() != was_ready {
            let entry = NodeClassEntry::Resolved;
            self.shell.journal.write(&after, &entry);
        }
        Ok(Action::RequeueAfter(requeue_after.max(REQUEUE_MIN)))
    }

    async fn write(
        &self,
        before: &Ec2NodeClass,
        after: &Ec2NodeClass,
        part: PatchTarget,
    ) -> Result<Ec2NodeClass, ReconcileError> {
        let written = patch(&self.shell.writer.api(), before, after, part).await?;
        Ok(written.unwrap_or_else(|| before.clone()))
    }
}

/// Something in the life of a NodeClass.
enum NodeClassEntry<'a> {
    /// It is deleted, and these claims still use it.
    AwaitsClaims(&'a [String]),
    /// It became ready, or is ready no more.
    Resolved,
}

impl JournalEntry for NodeClassEntry<'_> {
    type Subject = Ec2NodeClass;

    fn events(&self, class: &Ec2NodeClass) -> Vec<KubernetesEvent> {
        let Self::AwaitsClaims(claims) = self else {
            return Vec::new();
        };
        // A class may have thousands of claims.
        let claims = FirstFew(claims.iter());
        let message = format!("Waiting on NodeClaim termination for {claims}");
        let (kind, reason) = (EventType::Normal, "WaitingOnNodeClaimTermination");
        vec![KubernetesEvent::about(class, kind, reason, message)]
    }

    fn lines(&self, class: &Ec2NodeClass) -> Vec<String> {
        let Self::Resolved = self else {
            return Vec::new();
        };
        let ready = class.condition(conditions::READY);
        let message = ready.map_or("", |ready| ready.message.as_str());
        let state = if class.is_ready() {
            "is ready"
        } else {
            "is not ready: "
        };
        let name = class.name_any();
        vec![format!("EC2NodeClass {name} {state}{message}")]
    }
}

fn decide(class: &Ec2NodeClass, users: Vec<String>) -> Step {
    let is_held = has_finalizer(class, labels::EC2_NODE_CLASS_TERMINATION_FINALIZER);
    match (class.metadata.deletion_timestamp.is_some(), is_held) {
        (false, false) => Step::AddFinalizer,
        (false, true) => Step::Resolve,
        (true, false) => Step::Leave,
        (true, true) if users.is_empty() => Step::Release,
        (true, true) => Step::AwaitClaims(users),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_objects::with_values;

    #[test]
    fn a_class_is_held_before_it_is_resolved_and_let_go_after_its_last_claim() {
        let held = json!([labels::EC2_NODE_CLASS_TERMINATION_FINALIZER]);
        let others = json!(["example.com/held"]);
        let going = json!("2026-01-01T00:00:00Z");
        let claims = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        let cases: [(_, _, Vec<String>, _); 7] = [
            (json!(null), json!([]), claims(&[]), Step::AddFinalizer),
            (json!(null), others.clone(), claims(&[]), Step::AddFinalizer),
            (json!(null), held.clone(), claims(&[]), Step::Resolve),
            (
                going.clone(),
                held.clone(),
                claims(&["a", "b"]),
                Step::AwaitClaims(claims(&["a", "b"])),
            ),
            (going.clone(), held, claims(&[]), Step::Release),
            (going.clone(), others, claims(&[]), Step::Leave),
            (going, json!([]), claims(&["a"]), Step::Leave),
        ];
        for (deleted_at, finalizers, users, expected) in cases {
            let class = json!({
                "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
                "spec": {"amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": []},
            });
            let said = json!({"/metadata/deletionTimestamp": deleted_at, "/metadata/finalizers": finalizers});
            let class = serde_json::from_value(with_values(class, &said)).unwrap();
            assert_eq!(decide(&class, users), expected, "{said}");
        }
    }
}
