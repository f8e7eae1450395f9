//! Says in a pool's status whether it passes the checks that the CRD's rules cannot make.
//!
//! Answers to `pkg/controllers/nodepool/validation/controller.go`.

use std::sync::Arc;

use apis::NodePool;
use apis::ObjectKey;
use apis::conditions::{self, Conditioned, reason};
use jiff::Timestamp;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

/// Controller of the runtime validation of NodePools: one pool a reconcile.
pub(crate) struct Validation {
    pub(crate) shell: Arc<Shell>,
}

impl Reconciler for Validation {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(pool) = self.shell.model.fresh_node_pool(&key.name).await? else {
            return Ok(Action::Await);
        };
        let after = decide(&pool, self.shell.now());
        self.shell.writer.write_pool_status(&pool, &after).await?;
        Ok(Action::Await)
    }
}

/// The pool with `ValidationSucceeded` as its spec deserves.
fn decide(pool: &NodePool, now: Timestamp) -> NodePool {
    let mut after = pool.clone();
    let problems = apis::validation::node_pool(pool);
    after.edit_conditions(now, |editor| {
        if problems.is_empty() {
            editor.set_true(conditions::VALIDATION_SUCCEEDED);
        } else {
            let message = apis::validation::message(&problems);
            let condition = conditions::VALIDATION_SUCCEEDED;
            editor.set_false(condition, reason::NODE_POOL_VALIDATION_FAILED, &message);
        }
    });
    after
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(labels: &Value) -> String {
        let pool = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
            "spec": {"template": {"metadata": {"labels": labels}, "spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "d"},
            }}},
        }));
        let after = decide(&pool.unwrap(), Timestamp::UNIX_EPOCH);
        let condition = after.condition(conditions::VALIDATION_SUCCEEDED).unwrap();
        format!(
            "{} {}: {}",
            condition.status, condition.reason, condition.message
        )
    }

    #[test]
    fn a_pool_is_told_all_that_is_wrong_with_it() {
        assert_eq!(told(&json!({"team": "a"})), "True ValidationSucceeded: ");
        let wrong = told(&json!({"karpenter.sh/nodepool": "p", "team": "not a value"}));
        assert!(
            wrong.starts_with("False NodePoolValidationFailed: "),
            "{wrong}"
        );
        for field in ["karpenter.sh/nodepool", "team"] {
            assert!(wrong.contains(field), "{wrong}");
        }
    }
}
