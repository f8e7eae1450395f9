//! References of events to objects of which only the name is at hand.
//!
//! They carry the UID that the model knows: `kubectl describe` finds events by it. Answers to
//! `k8s.io/client-go/tools/reference`.

use k8s_openapi::api::core::v1::ObjectReference;
use scheduling::pod::PodKey;
use state::Snapshot;
use state::facts::NodeFacts;

/// Reference to a pod.
pub(crate) fn pod(key: &PodKey, uid: &str) -> ObjectReference {
    ObjectReference {
        namespace: Some(key.namespace.clone()),
        ..reference("v1", "Pod", &key.name, Some(uid))
    }
}

/// Reference to a Node.
pub(crate) fn node(snapshot: &Snapshot, name: &str) -> ObjectReference {
    let known = snapshot.node(name).and_then(|it| it.node());
    // The kubelet's events about its node carry the name there, so whoever looks for events looks for both.
    let uid = known.map_or(name, |it| &it.uid);
    reference("v1", "Node", name, Some(uid))
}

/// Reference to a Node of which more than the name is at hand.
pub(crate) fn node_seen(node: &NodeFacts) -> ObjectReference {
    reference("v1", "Node", &node.name, Some(&node.uid))
}

/// Reference to a NodeClaim.
pub(crate) fn node_claim(snapshot: &Snapshot, name: &str) -> ObjectReference {
    let known = snapshot.node_of_claim(name);
    let known = known.and_then(|it| it.claim());
    let uid = known.map(|it| it.uid.as_str());
    reference("karpenter.sh/v1", "NodeClaim", name, uid)
}

/// References to a Node and its NodeClaim.
pub(crate) fn node_and_claim(snapshot: &Snapshot, node: &str, claim: &str) -> [ObjectReference; 2] {
    [self::node(snapshot, node), node_claim(snapshot, claim)]
}

/// Reference to a NodePool.
pub(crate) fn node_pool(snapshot: &Snapshot, name: &str) -> ObjectReference {
    let known = snapshot.node_pool(name);
    let uid = known.and_then(|it| it.metadata.uid.as_deref());
    reference("karpenter.sh/v1", "NodePool", name, uid)
}

fn reference(api_version: &str, kind: &str, name: &str, uid: Option<&str>) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: uid.map(str::to_owned),
        ..ObjectReference::default()
    }
}
