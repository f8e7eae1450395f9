//! Mirrors the readiness of a pool's NodeClass into the pool.
//!
//! Answers to `pkg/controllers/nodepool/readiness/controller.go`.

use std::sync::Arc;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned, Status, reason};
use apis::{Ec2NodeClass, NodePool};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::{Action, Reconciler};

/// The controller.
pub(crate) struct Readiness {
    pub(crate) shell: Arc<Shell>,
}

#[async_trait::async_trait]
impl Reconciler for Readiness {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(pool) = self.shell.model.fresh_node_pool(&key.name).await? else {
            return Ok(Action::Await);
        };
        let class = self
            .shell
            .model
            .node_class(&pool.spec.template.spec.node_class_ref.name);
        let after = decide(&pool, class.as_deref(), self.shell.now());
        if is_past_outdated(&pool, class.as_deref()) {
            let uid = pool.uid().unwrap_or_default();
            self.shell.registration_health.forget(&uid);
        }
        self.shell.writer.write_pool_status(&pool, &after).await?;
        Ok(Action::Await)
    }
}

/// The pool with `NodeClassReady` as the class says.
fn decide(pool: &NodePool, class: Option<&Ec2NodeClass>, now: Timestamp) -> NodePool {
    let mut after = pool.clone();
    let told: (Status, String, String) = match class {
        None => (
            Status::False,
            reason::NODE_CLASS_NOT_FOUND.to_owned(),
            "NodeClass not found on cluster".to_owned(),
        ),
        Some(class) if class.metadata.deletion_timestamp.is_some() => (
            Status::False,
            reason::NODE_CLASS_TERMINATING.to_owned(),
            "NodeClass is terminating".to_owned(),
        ),
        Some(class) => match class.condition(conditions::READY) {
            Some(ready) if ready.status == "True" => (
                Status::True,
                conditions::NODE_CLASS_READY.to_owned(),
                String::new(),
            ),
            Some(ready) if ready.status == "False" => {
                (Status::False, ready.reason.clone(), ready.message.clone())
            }
            Some(_) | None => (
                Status::False,
                reason::NODE_CLASS_READINESS_UNKNOWN.to_owned(),
                "NodeClass readiness is unknown".to_owned(),
            ),
        },
    };
    after.edit_conditions(now, |editor| {
        editor.set(conditions::NODE_CLASS_READY, told.0, &told.1, &told.2);
        if is_past_outdated(pool, class) {
            editor.set_unknown(conditions::NODE_REGISTRATION_HEALTHY);
        }
    });
    let generation = class.and_then(|it| it.metadata.generation);
    if let (Some(generation), Some(status)) = (generation, after.status.as_mut()) {
        status.node_class_observed_generation = Some(generation);
    }
    after
}

/// Whether what is known of registrations is about an earlier version of the pool or of its class, or nothing is
/// said of them yet. A pool without class is looked at again when it has one.
fn is_past_outdated(pool: &NodePool, class: Option<&Ec2NodeClass>) -> bool {
    let Some(class) = class else {
        return false;
    };
    let status = pool.status.as_ref();
    let observed = status.and_then(|it| it.node_class_observed_generation);
    let told = pool.condition(conditions::NODE_REGISTRATION_HEALTHY);
    observed != class.metadata.generation
        || told.is_none_or(|told| told.observed_generation != pool.metadata.generation)
}
