//! Taints of a Node: which it has, and the Node with one more or one less.
//!
//! Pure: nothing is written.

use k8s_openapi::api::core::v1::{Node, Taint};

/// Those that the node has.
pub(crate) fn taints(node: &Node) -> &[Taint] {
    node.spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default()
}

/// Whether one is among them. To Kubernetes those of one key and effect are one taint, whatever their value.
pub(crate) fn has_taint(taints: &[Taint], wanted: &Taint) -> bool {
    taints.iter().any(|it| is_same_taint(it, wanted))
}

pub(crate) fn is_same_taint(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

/// The node with the taint in place of all of its key.
pub(crate) fn with_taint(node: &Node, taint: Taint) -> Node {
    let mut after = without_taint(node, &taint.key);
    let spec = after.spec.get_or_insert_default();
    spec.taints.get_or_insert_default().push(taint);
    after
}

/// The node without the taints of a key.
pub(crate) fn without_taint(node: &Node, key: &str) -> Node {
    let mut after = node.clone();
    if let Some(taints) = after.spec.as_mut().and_then(|spec| spec.taints.as_mut()) {
        taints.retain(|taint| taint.key != key);
    }
    after
}
