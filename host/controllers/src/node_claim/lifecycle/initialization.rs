//! Whether a registered node is ready for pods, and if not, why.
//!
//! Pure. Answers to `pkg/controllers/nodeclaim/lifecycle/initialization.go`.

use apis::NodeClaim;
use apis::conditions::{self, ConditionUpdate, Status, reason};
use apis::labels;
use apis::resources::Resources;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt;
use state::facts::NodeFacts;

use crate::node::taints::has_taint;

/// The label that says that a node lacks nothing.
pub(crate) const MARK: (&str, &str) = (labels::INITIALIZED, "true");

/// A lack that keeps a node from being initialized: a condition reason and a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Lack {
    /// As the claim says it.
    pub(crate) fn as_condition(&self) -> ConditionUpdate<'_> {
        ConditionUpdate {
            condition_type: conditions::INITIALIZED,
            status: Status::Unknown,
            reason: self.reason,
            message: &self.message,
        }
    }
}

/// Gives a node [`MARK`].
pub(crate) fn mark(node: &mut Node) {
    let (label, value) = MARK;
    node.labels_mut().insert(label.to_owned(), value.to_owned());
}

/// The first thing the node lacks, if it lacks anything.
pub(crate) fn lack(claim: &NodeClaim, node: &NodeFacts) -> Option<Lack> {
    let lack = |reason, message: String| Some(Lack { reason, message });
    if !node.is_ready {
        return lack(reason::NODE_NOT_READY, "Node status is NotReady".to_owned());
    }
    let taints = &node.taints;
    let mut startup = claim.spec.startup_taints.iter();
    let startup = startup.find(|it| has_taint(taints, it));
    if let Some(taint) = startup {
        return lack(
            reason::STARTUP_TAINTS_EXIST,
            format!("StartupTaint \"{}\" still exists", show(taint)),
        );
    }
    if let Some(taint) = taints
        .iter()
        .find(|taint| labels::is_known_ephemeral_taint(taint))
    {
        let message = format!("KnownEphemeralTaint \"{}\" still exists", show(taint));
        return lack(reason::KNOWN_EPHEMERAL_TAINTS_EXIST, message);
    }
    let requested = Resources::from_list(&claim.spec.resources.requests);
    let missing = requested
        .iter()
        .find(|(name, amount)| *amount > 0 && node.allocatable.get(name) == 0)
        .map(|(name, _)| name.to_owned());
    missing.and_then(|name| {
        lack(
            reason::RESOURCE_NOT_REGISTERED,
            format!("Resource \"{name}\" was requested but not registered"),
        )
    })
}

/// Whether the node is ready, and the cluster knows it: what it lacks beside may come from pods that are kept away from
/// it until it is registered.
pub(crate) fn is_up(node: &NodeFacts) -> bool {
    const OF_A_START: [&str; 3] = [
        labels::NOT_READY_TAINT_KEY,
        labels::UNREACHABLE_TAINT_KEY,
        labels::CLOUD_PROVIDER_UNINITIALIZED_TAINT_KEY,
    ];
    let mut taints = node.taints.iter();
    node.is_ready && !taints.any(|it| OF_A_START.contains(&it.key.as_str()))
}

fn show(taint: &Taint) -> String {
    match taint.value.as_deref() {
        Some(value) if !value.is_empty() => format!("{}={value}:{}", taint.key, taint.effect),
        Some(_) | None => format!("{}:{}", taint.key, taint.effect),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(claim: &Value, node: &Value) -> Option<&'static str> {
        let claim: NodeClaim = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}, "spec": claim,
        }))
        .unwrap();
        let node = serde_json::from_value(node.clone()).unwrap();
        lack(&claim, &NodeFacts::parse(&node)).map(|lack| lack.reason)
    }

    #[test]
    fn a_node_initializes_when_nothing_is_lacking_in_this_order() {
        let class =
            json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
        let claim = json!({
            "requirements": [],
            "nodeClassRef": class,
            "startupTaints": [{"key": "init", "effect": "NoSchedule"}],
            "resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "0"}},
        });
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let cases = [
            (json!({"status": {}}), Some("NodeNotReady")),
            (
                json!({"spec": {"taints": [{"key": "init", "effect": "NoSchedule"}]}, "status": {"conditions": ready}}),
                Some("StartupTaintsExist"),
            ),
            (
                json!({"spec": {"taints": [{"key": "readiness.k8s.io/x", "effect": "NoSchedule"}]}, "status": {"conditions": ready}}),
                Some("KnownEphemeralTaintsExist"),
            ),
            (
                json!({"status": {"conditions": ready}}),
                Some("ResourceNotRegistered"),
            ),
            (
                json!({"status": {"conditions": ready, "allocatable": {"nvidia.com/gpu": "0"}}}),
                Some("ResourceNotRegistered"),
            ),
            (
                json!({"status": {"conditions": ready, "allocatable": {"nvidia.com/gpu": "1"}}}),
                None,
            ),
        ];
        for (node, expected) in cases {
            assert_eq!(check(&claim, &node), expected, "{node}");
        }
    }
}
