//! Resolves NodeClasses through the provider, and holds a deleted one until no claim uses it.
//!
//! Answers to the AWS provider's `pkg/controllers/nodeclass/controller.go` and `hash/controller.go` beside it.

pub(crate) mod profiles;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned};
use apis::{Ec2NodeClass, NodePool, labels};
use cloudprovider::{CloudProvider, NodeClassStatus};
use kube::{Resource, ResourceExt};

use crate::node_claim::hashes::carry_over;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::finalizers::{add_finalizer, has_finalizer, remove_finalizer};
use crate::shell::journal::JournalEntry;
use crate::shell::patching::{PatchTarget, patch};
use crate::shell::recorder::{EventType, Notice};
use crate::shell::runtime::{Action, Reconciler};

const RELEASE_POLL: Duration = Duration::from_secs(30);
/// Claims that an event names; the others are counted.
const CLAIMS_NAMED_MAX: usize = 5;

/// The controller.
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

#[async_trait::async_trait]
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
            requeue_after_seconds,
        } = self.provider.resolve_node_class(class, &pools).await?;
        let version = annotations.get(labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION);
        if version.is_some_and(|version| hash_version(class.annotations()) != Some(version)) {
            self.migrate(class, &annotations).await?;
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
        Ok(Action::RequeueAfter(Duration::from_secs(
            requeue_after_seconds.max(1),
        )))
    }

    /// Claims of the class of other versions get this one.
    async fn migrate(
        &self,
        class: &Ec2NodeClass,
        stamps: &BTreeMap<String, String>,
    ) -> Result<(), ReconcileError> {
        let name = class.name_any();
        let version = hash_version(stamps);
        let mut outdated = Vec::new();
        self.shell
            .model
            .for_each_claim("", |claim| {
                if claim.spec.node_class_ref.name == name
                    && hash_version(claim.annotations()) != version
                {
                    outdated.push(claim);
                }
            })
            .await?;
        let hash_key = labels::EC2_NODE_CLASS_HASH_ANNOTATION;
        carry_over(&self.shell.writer, &outdated, stamps, hash_key).await
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

    fn events(&self, class: &Ec2NodeClass) -> Vec<Notice> {
        let Self::AwaitsClaims(claims) = self else {
            return Vec::new();
        };
        let message = format!("Waiting on NodeClaim termination for {}", some_of(claims));
        let (regarding, reason) = (class.object_ref(&()), "WaitingOnNodeClaimTermination");
        vec![Notice::new(regarding, EventType::Normal, reason, message)]
    }

    fn line(&self, class: &Ec2NodeClass) -> Option<String> {
        let Self::Resolved = self else {
            return None;
        };
        let ready = class.condition(conditions::READY);
        let message = ready.map_or("", |ready| ready.message.as_str());
        let state = if class.is_ready() {
            "is ready"
        } else {
            "is not ready: "
        };
        let name = class.name_any();
        Some(format!("EC2NodeClass {name} {state}{message}"))
    }
}

/// A class may have thousands of claims.
fn some_of(claims: &[String]) -> String {
    let named = claims.len().min(CLAIMS_NAMED_MAX);
    let names = claims.iter().take(named).map(String::as_str);
    let names = names.collect::<Vec<_>>().join(", ");
    match claims.len() - named {
        0 => names,
        others => format!("{names} and {others} other(s)"),
    }
}

fn hash_version(annotations: &BTreeMap<String, String>) -> Option<&String> {
    annotations.get(labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION)
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
    use super::some_of;

    #[test]
    fn five_claims_are_named_and_the_others_counted() {
        let claims: Vec<String> = ('a'..='g').map(String::from).collect();
        let cases = [
            (1, "a"),
            (5, "a, b, c, d, e"),
            (7, "a, b, c, d, e and 2 other(s)"),
        ];
        for (count, want) in cases {
            assert_eq!(some_of(&claims[..count]), want);
        }
    }
}
