//! Mirrors the readiness of a pool's NodeClass into the pool.
//!
//! Whether the class is ready is not judged here. Answers to `pkg/controllers/nodepool/readiness/controller.go`.

use std::sync::Arc;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned, Status, reason};
use apis::{Ec2NodeClass, NodePool};
use jiff::Timestamp;
use kube::ResourceExt;

use crate::node_pool::registration_health::RegistrationHealth;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

/// Controller of the readiness of NodePools: one pool a reconcile.
pub(crate) struct Readiness {
    pub(crate) shell: Arc<Shell>,
    pub(crate) registration_health: Arc<RegistrationHealth>,
}

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
        let is_past_outdated = is_past_outdated(&pool, class.as_deref());
        if let Some(uid) = pool.uid().filter(|_| is_past_outdated) {
            self.registration_health.forget(&uid);
        }
        self.shell.writer.write_pool_status(&pool, &after).await?;
        Ok(Action::Await)
    }
}

/// The pool with `NodeClassReady` as the class says.
fn decide(pool: &NodePool, class: Option<&Ec2NodeClass>, now: Timestamp) -> NodePool {
    let mut after = pool.clone();
    let (status, reason, message) = match class {
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
            Some(ready) if Status::of(ready) == Some(Status::True) => (
                Status::True,
                conditions::NODE_CLASS_READY.to_owned(),
                String::new(),
            ),
            Some(ready) if Status::of(ready) == Some(Status::False) => {
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
        editor.set(conditions::NODE_CLASS_READY, status, &reason, &message);
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
    let healthy = pool.condition(conditions::NODE_REGISTRATION_HEALTHY);
    observed != class.metadata.generation
        || healthy.is_none_or(|it| it.observed_generation != pool.metadata.generation)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A pool of generation 1 that knows of this generation of its class, healthy as of this generation of its own.
    fn pool(class: i64, healthy_as_of: i64) -> NodePool {
        let healthy = json!({
            "type": "NodeRegistrationHealthy", "status": "True", "reason": "NodeRegistrationHealthy",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": healthy_as_of,
        });
        let object = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p", "generation": 1},
            "spec": {"template": {"spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "d"},
            }}},
            "status": {"nodeClassObservedGeneration": class, "conditions": [healthy]},
        });
        serde_json::from_value(object).unwrap()
    }

    /// A class of generation 1, ready or not for a reason, or being deleted.
    fn class(ready: &str, deleted_at: &Value) -> Ec2NodeClass {
        let condition = json!({
            "type": "Ready", "status": ready, "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let metadata = json!({"name": "d", "generation": 1, "deletionTimestamp": deleted_at});
        let status = json!({"conditions": [condition]});
        Ec2NodeClass {
            metadata: serde_json::from_value(metadata).unwrap(),
            status: Some(serde_json::from_value(status).unwrap()),
            ..Ec2NodeClass::default()
        }
    }

    fn told(after: &NodePool, condition: &str) -> String {
        let condition = after.condition(condition).unwrap();
        format!(
            "{} {}: {}",
            condition.status, condition.reason, condition.message
        )
    }

    #[test]
    fn a_pool_is_as_ready_as_its_class() {
        let living = |ready| Some(class(ready, &json!(null)));
        let cases = [
            (
                None,
                "False NodeClassNotFound: NodeClass not found on cluster",
            ),
            (
                Some(class("True", &json!("2026-01-01T00:00:00Z"))),
                "False NodeClassTerminating: NodeClass is terminating",
            ),
            (living("True"), "True NodeClassReady: "),
            (living("False"), "False R: m"),
            (
                living("Unknown"),
                "False NodeClassReadinessUnknown: NodeClass readiness is unknown",
            ),
        ];
        for (class, expected) in cases {
            let after = decide(&pool(1, 1), class.as_ref(), Timestamp::UNIX_EPOCH);
            assert_eq!(told(&after, conditions::NODE_CLASS_READY), expected);
        }
    }

    #[test]
    fn registrations_of_another_pool_or_class_say_nothing() {
        let ready = class("True", &json!(null));
        let cases = [
            (pool(1, 1), Some(&ready), "True"),
            (pool(0, 1), Some(&ready), "Unknown"),
            (pool(1, 0), Some(&ready), "Unknown"),
            (pool(0, 0), None, "True"),
        ];
        for (pool, class, expected) in cases {
            let after = decide(&pool, class, Timestamp::UNIX_EPOCH);
            let healthy = told(&after, conditions::NODE_REGISTRATION_HEALTHY);
            assert_eq!(healthy.split(' ').next(), Some(expected));
            assert_eq!(is_past_outdated(&pool, class), expected == "Unknown");
            let observed = after.status.unwrap().node_class_observed_generation;
            assert_eq!(observed, Some(class.map_or(0, |_| 1)));
        }
    }
}
