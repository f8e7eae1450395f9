//! Gives nodes made by older releases the NodeClass label of their claim.
//!
//! Nothing else of them is touched. Answers to `pkg/controllers/node/hydration/controller.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use apis::labels;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

/// Controller that completes old Nodes: one a reconcile.
pub(crate) struct NodeHydration {
    pub(crate) shell: Arc<Shell>,
}

impl Reconciler for NodeHydration {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let state = self.shell.model.snapshot().node(&key.name).cloned();
        let both = state.as_ref().and_then(|it| it.node().zip(it.claim()));
        let Some((facts, claim)) = both else {
            return Ok(Action::Await);
        };
        if !is_lacking(&facts.labels) {
            return Ok(Action::Await);
        }
        let Some(node) = self.shell.model.node(&key.name).await? else {
            return Ok(Action::Await);
        };
        let after = labelled(&node, &claim.node_class);
        self.shell.writer.write_node(&node, &after).await?;
        Ok(Action::Await)
    }
}

/// Whether the labels are those of a node of ours without its class.
fn is_lacking(found: &BTreeMap<String, String>) -> bool {
    found.contains_key(labels::REGISTERED) && !found.contains_key(labels::EC2_NODE_CLASS)
}

/// The node with the label of its class.
fn labelled(node: &Node, class: &str) -> Node {
    let mut after = node.clone();
    let found = after.labels_mut();
    found.insert(labels::EC2_NODE_CLASS.to_owned(), class.to_owned());
    after
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_of_ours_gets_the_label_of_its_class_once() {
        let cases = [
            (json!({}), false),
            (json!({"karpenter.sh/registered": "true"}), true),
            (
                json!({"karpenter.sh/registered": "true", "karpenter.k8s.aws/ec2nodeclass": "c"}),
                false,
            ),
        ];
        for (labels, expected) in cases {
            let node = json!({"metadata": {"name": "n", "labels": labels}});
            let node: Node = serde_json::from_value(node).unwrap();
            assert_eq!(is_lacking(node.labels()), expected, "{labels}");
            let after = labelled(&node, "d");
            assert_eq!(after.labels()["karpenter.k8s.aws/ec2nodeclass"], "d");
            assert!(!is_lacking(after.labels()));
        }
    }
}
