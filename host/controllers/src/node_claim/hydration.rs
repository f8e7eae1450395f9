//! Gives claims made by older releases the NodeClass label.
//!
//! Nothing else of them is touched. Answers to `pkg/controllers/nodeclaim/hydration/controller.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::{NodeClaim, ObjectKey, labels};
use kube::ResourceExt;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

/// Controller that completes old NodeClaims: one a reconcile.
pub(crate) struct NodeClaimHydration {
    pub(crate) shell: Arc<Shell>,
}

impl Reconciler for NodeClaimHydration {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let facts = self.shell.model.claim_facts(&key.name);
        if !facts.is_some_and(|claim| is_lacking(&claim.labels)) {
            return Ok(Action::Await);
        }
        let Some(claim) = self.shell.model.node_claim(&key.name).await? else {
            return Ok(Action::Await);
        };
        let after = labelled(&claim);
        self.shell.writer.write_claim(&claim, &after).await?;
        Ok(Action::Await)
    }
}

fn is_lacking(found: &BTreeMap<String, String>) -> bool {
    !found.contains_key(labels::EC2_NODE_CLASS)
}

/// The claim with the label of its class.
fn labelled(claim: &NodeClaim) -> NodeClaim {
    let class = &claim.spec.node_class_ref;
    let label = labels::node_class_label(&class.group, &class.kind);
    let mut after = claim.clone();
    after.labels_mut().insert(label, class.name.clone());
    after
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_claim::tests::claim_with;

    #[test]
    fn a_claim_gets_the_label_of_its_class_once() {
        let claim = claim_with(&json!({}));
        assert!(is_lacking(claim.labels()));
        let after = labelled(&claim);
        assert_eq!(after.labels()["karpenter.k8s.aws/ec2nodeclass"], "default");
        assert!(!is_lacking(after.labels()));
    }
}
