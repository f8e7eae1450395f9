//! Which pools and claims are ours: where another provider works in the same cluster, its objects are left alone.
//!
//! Answers to `IsManaged` in `pkg/utils/nodepool` and `pkg/utils/nodeclaim`.

use apis::{Ec2NodeClass, NodeClaim, NodeClassReference, NodePool};
use kube::Resource;

/// An object that refers to a NodeClass.
pub(crate) trait Managed {
    /// The class that it is made from.
    fn class(&self) -> &NodeClassReference;

    /// Whether that class is of a kind that we know.
    fn is_managed(&self) -> bool {
        let NodeClassReference {
            kind,
            name: _,
            group,
        } = self.class();
        *group == Ec2NodeClass::group(&()) && *kind == Ec2NodeClass::kind(&())
    }
}

impl Managed for NodeClaim {
    fn class(&self) -> &NodeClassReference {
        &self.spec.node_class_ref
    }
}

impl Managed for NodePool {
    fn class(&self) -> &NodeClassReference {
        &self.spec.template.spec.node_class_ref
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_classes_of_our_group_and_kind_are_ours() {
        let cases = [
            ("karpenter.k8s.aws", "EC2NodeClass", true),
            ("karpenter.kwok.sh", "EC2NodeClass", false),
            ("karpenter.k8s.aws", "KWOKNodeClass", false),
        ];
        for (group, kind, expected) in cases {
            let class = json!({"group": group, "kind": kind, "name": "default"});
            let claim: NodeClaim = serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"},
                "spec": {"requirements": [], "nodeClassRef": class},
            }))
            .unwrap();
            assert_eq!(claim.is_managed(), expected, "{group} {kind}");
        }
    }
}
