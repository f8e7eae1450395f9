//! Objects as users write them, read and written back.

use kube_core::Resource;
use serde_json::{Value, json};

use crate::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodePool, labels};

fn read<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

#[test]
fn node_pool_of_the_getting_started_guide() {
    let object = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "template": {"spec": {
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]},
                    {"key": "karpenter.k8s.aws/instance-family", "operator": "Exists", "minValues": 5},
                ],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "expireAfter": "720h",
                "terminationGracePeriod": "30m0s",
            }},
            "limits": {"cpu": 1000},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "1m",
                "budgets": [{"nodes": "10%"}, {"nodes": "0", "schedule": "0 9 * * 1-5", "duration": "8h0m0s", "reasons": ["Drifted"]}],
            },
        },
    });
    let pool: NodePool = read(&object);
    let mut expected = object;
    expected["spec"]["limits"]["cpu"] = "1000".into();
    assert_eq!(serde_json::to_value(pool).unwrap(), expected);
}

/// The API server fills in the defaults; what comes from elsewhere, as in a test, gets the same ones.
#[test]
fn absent_fields_get_the_definitions_defaults() {
    let class = json!({"group": "g", "kind": "k", "name": "n"});
    let pool: NodePool = read(&json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}},
    }));
    assert_eq!(
        serde_json::to_value(&pool.spec).unwrap(),
        json!({
            "template": {"spec": {"requirements": [], "nodeClassRef": class, "expireAfter": "720h"}},
            "disruption": {
                "consolidateAfter": "0s",
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "budgets": [{"nodes": "10%"}],
            },
        })
    );
    let class: Ec2NodeClass = read(&json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {"subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [{"alias": "al2023@latest"}]},
    }));
    assert_eq!(
        class
            .spec
            .metadata_options
            .as_ref()
            .unwrap()
            .http_tokens
            .as_deref(),
        Some("required")
    );
    assert_eq!(class.ami_family().as_str(), "AL2023");
    assert!(class.alias().unwrap().is_latest());
}

/// Older clients wrote conditions without reason and message.
#[test]
fn node_claim_conditions_may_lack_reason_and_message() {
    let claim: NodeClaim = read(&json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "a"},
        "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}},
        "status": {
            "providerID": "aws:///us-east-1a/i-1",
            "imageID": "ami-1",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }));
    let status = claim.status.unwrap();
    assert_eq!(
        (
            status.conditions[0].reason.as_str(),
            status.provider_id.as_deref()
        ),
        ("", Some("aws:///us-east-1a/i-1"))
    );
}

#[test]
fn kinds_have_karpenters_names() {
    let name = |group, version, kind, plural| format!("{group}/{version} {kind} {plural}");
    assert_eq!(
        name(
            NodePool::group(&()),
            NodePool::version(&()),
            NodePool::kind(&()),
            NodePool::plural(&())
        ),
        "karpenter.sh/v1 NodePool nodepools"
    );
    assert_eq!(
        name(
            Ec2NodeClass::group(&()),
            Ec2NodeClass::version(&()),
            Ec2NodeClass::kind(&()),
            Ec2NodeClass::plural(&())
        ),
        "karpenter.k8s.aws/v1 EC2NodeClass ec2nodeclasses"
    );
    assert_eq!(
        name(
            CapacityBuffer::group(&()),
            CapacityBuffer::version(&()),
            CapacityBuffer::kind(&()),
            CapacityBuffer::plural(&())
        ),
        "autoscaling.x-k8s.io/v1beta1 CapacityBuffer capacitybuffers"
    );
}

#[test]
fn a_claim_says_what_it_is_and_by_when_it_must_be_gone() {
    let claim = |labels: Value, deadline: Value| -> NodeClaim {
        let annotations = json!({labels::NODECLAIM_TERMINATION_TIMESTAMP_ANNOTATION: deadline});
        read(&json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "labels": labels, "annotations": annotations},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}},
        }))
    };
    let launched = json!({
        labels::NODEPOOL: "web", labels::INSTANCE_TYPE: "m7i.large", labels::CAPACITY_TYPE: "spot",
        labels::TOPOLOGY_ZONE: "us-east-1a",
    });
    let cases = [
        (launched, Some("web"), "m7i.large spot us-east-1a"),
        (
            json!({labels::TOPOLOGY_ZONE: "us-east-1a"}),
            None,
            "us-east-1a",
        ),
        (json!({}), None, ""),
    ];
    for (labels, pool, text) in cases {
        let claim = claim(labels.clone(), json!(""));
        assert_eq!(claim.pool_name(), pool, "{labels}");
        assert_eq!(claim.instance_text(), text, "{labels}");
    }
    let deadline = "2026-01-01T00:00:01.5Z".parse().unwrap();
    for (said, told) in [
        ("2026-01-01T00:00:01Z", Some("2026-01-01T00:00:01Z")),
        ("soon", None),
        ("", None),
    ] {
        let claim = claim(json!({}), json!(said));
        let found = claim.termination_deadline().map(NodeClaim::deadline_text);
        assert_eq!(found.as_deref(), told, "{said}");
        let after = claim.with_termination_deadline(deadline);
        let found = after.termination_deadline().map(NodeClaim::deadline_text);
        assert_eq!(found.as_deref(), Some("2026-01-01T00:00:01Z"), "{said}");
    }
}
