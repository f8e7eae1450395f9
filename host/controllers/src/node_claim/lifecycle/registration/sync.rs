//! Labels, taints and the like that a node must carry once it is known to be the node of a claim.
//!
//! Pure: `registration.rs` writes it. Answers to `syncNode` in `pkg/controllers/nodeclaim/lifecycle/registration.go`.

use std::collections::BTreeMap;

use apis::NodeClaim;
use apis::conditions::{self, ConditionUpdate, Status, reason};
use apis::labels;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use state::facts::{NodeFacts, own_annotations};

use crate::node::taints::{has_taint, is_same_taint};
use crate::shell::writer::finalizers::add_finalizer;

/// Condition of a launched claim until its node is there.
pub(crate) const NODE_AWAITED: ConditionUpdate<'static> = ConditionUpdate {
    condition_type: conditions::REGISTERED,
    status: Status::Unknown,
    reason: reason::NODE_NOT_FOUND,
    message: "Node not registered with cluster",
};

/// The node as registration leaves it: with what its claim has, the label that says so, and no taint of the
/// unregistered any more.
pub(crate) fn registered_node(claim: &NodeClaim, node: &Node) -> Node {
    let mut node = synced_node(claim, node);
    let unregistered = labels::unregistered_taint();
    let taints = node.spec.as_mut().and_then(|spec| spec.taints.as_mut());
    if let Some(taints) = taints {
        taints.retain(|taint| !is_same_taint(taint, &unregistered));
    }
    node.metadata
        .labels
        .get_or_insert_default()
        .insert(labels::REGISTERED.to_owned(), "true".to_owned());
    node
}

/// The node with the claim's labels, annotations and taints, our finalizer and owner.
pub(crate) fn synced_node(claim: &NodeClaim, node: &Node) -> Node {
    let mut node = node.clone();
    sync_metadata(claim, &mut node);
    let keeps_taints = keeps_taints(node.labels());
    let spec = node.spec.get_or_insert_default();
    let taints = spec.taints.get_or_insert_default();
    if !keeps_taints {
        for taint in claim.spec.taints.iter().chain(&claim.spec.startup_taints) {
            merge_taint(taints, taint);
        }
    }
    node
}

/// Whether the node has all of that, as far as the model tells: it comes in one write, the finalizer with it.
pub(crate) fn is_synced(claim: &NodeClaim, node: &NodeFacts) -> bool {
    let has = |found: &BTreeMap<String, String>, (key, value): (&String, &String)| {
        found.get(key) == Some(value)
    };
    let annotations = own_annotations(&claim.metadata);
    let mut taints = claim.spec.taints.iter().chain(&claim.spec.startup_taints);
    node.has_finalizer
        && claim.labels().iter().all(|it| has(&node.labels, it))
        && annotations.iter().all(|it| has(&node.annotations, it))
        && (keeps_taints(&node.labels) || taints.all(|it| has_taint(&node.taints, it)))
}

fn keeps_taints(found: &BTreeMap<String, String>) -> bool {
    found
        .get(labels::DO_NOT_SYNC_TAINTS)
        .is_some_and(|it| it == "true")
}

/// Whether the node came up without the taint that keeps pods away until registration.
pub(crate) fn lacks_unregistered_taint(node: &NodeFacts) -> bool {
    !node.labels.contains_key(labels::REGISTERED)
        && !has_taint(&node.taints, &labels::unregistered_taint())
}

fn sync_metadata(claim: &NodeClaim, node: &mut Node) {
    add_finalizer(node, labels::TERMINATION_FINALIZER);
    let meta = &mut node.metadata;
    let owners = meta.owner_references.get_or_insert_default();
    let uid = claim.metadata.uid.clone().unwrap_or_default();
    if !owners.iter().any(|owner| owner.uid == uid) {
        owners.push(OwnerReference {
            api_version: "karpenter.sh/v1".to_owned(),
            kind: "NodeClaim".to_owned(),
            name: claim.metadata.name.clone().unwrap_or_default(),
            uid,
            controller: None,
            block_owner_deletion: Some(true),
        });
    }
    let (own_labels, own_annotations) = (&claim.metadata.labels, &claim.metadata.annotations);
    meta.labels
        .get_or_insert_default()
        .extend(own_labels.clone().unwrap_or_default());
    meta.annotations
        .get_or_insert_default()
        .extend(own_annotations.clone().unwrap_or_default());
}

fn merge_taint(taints: &mut Vec<Taint>, taint: &Taint) {
    if !has_taint(taints, taint) {
        taints.push(taint.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim() -> NodeClaim {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "uid": "u", "labels": {"team": "a", "zone": "claim"}, "annotations": {"x": "y"}},
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "taints": [{"key": "gpu", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "init", "effect": "NoSchedule"}],
            },
        }))
        .unwrap()
    }

    fn node(labels: &serde_json::Value) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n", "labels": labels},
            "spec": {"taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}, {"key": "gpu", "effect": "NoSchedule", "value": "own"}]},
        }))
        .unwrap()
    }

    fn taint_keys(node: &Node) -> Vec<&str> {
        node.spec
            .iter()
            .flat_map(|s| s.taints.iter().flatten())
            .map(|t| t.key.as_str())
            .collect()
    }

    #[test]
    fn registration_gives_the_node_what_the_claim_has() {
        let node = registered_node(&claim(), &node(&json!({"zone": "node"})));
        assert_eq!(taint_keys(&node), ["gpu", "init"]);
        let labels = node.metadata.labels.clone().unwrap();
        assert_eq!(labels["zone"], "claim", "the claim wins");
        assert_eq!(labels[labels::REGISTERED], "true");
        assert_eq!(node.metadata.annotations.as_ref().unwrap()["x"], "y");
        assert_eq!(
            node.metadata.finalizers.as_deref().unwrap(),
            [labels::TERMINATION_FINALIZER]
        );
        assert_eq!(
            node.metadata.owner_references.as_ref().unwrap()[0].block_owner_deletion,
            Some(true)
        );
        assert_eq!(
            registered_node(&claim(), &node),
            node,
            "a second time changes nothing"
        );
    }

    #[test]
    fn the_model_tells_whether_a_node_has_what_its_claim_gives() {
        let bare = node(&json!({"zone": "kubelet"}));
        let annotated = |node: &Node, key: &str| {
            let mut claim = claim();
            claim
                .annotations_mut()
                .insert(key.to_owned(), "true".to_owned());
            is_synced(&claim, &NodeFacts::parse(node))
        };
        let synced = synced_node(&claim(), &bare);
        let without = |change: fn(&mut Node)| {
            let mut node = synced.clone();
            change(&mut node);
            is_synced(&claim(), &NodeFacts::parse(&node))
        };
        let taintless: fn(&mut Node) = |it| it.spec.get_or_insert_default().taints = None;
        assert!(!is_synced(&claim(), &NodeFacts::parse(&bare)));
        assert!(without(|_| ()));
        assert!(
            without(|it| it.annotations_mut().clear()),
            "the model does not keep it"
        );
        assert!(!annotated(&synced, "karpenter.sh/do-not-disrupt"));
        assert!(!without(|it| it.finalizers_mut().clear()));
        assert!(!without(
            |it| *it.labels_mut() = [("zone".to_owned(), "kubelet".to_owned())].into()
        ));
        assert!(!without(taintless));
        assert!(without(|it| {
            it.labels_mut()
                .insert(labels::DO_NOT_SYNC_TAINTS.to_owned(), "true".to_owned());
            it.spec.get_or_insert_default().taints = None;
        }));
    }

    #[test]
    fn taints_are_left_alone_where_the_label_says_so() {
        let node = registered_node(
            &claim(),
            &node(&json!({labels::DO_NOT_SYNC_TAINTS: "true"})),
        );
        assert_eq!(taint_keys(&node), ["gpu"]);
    }
}
