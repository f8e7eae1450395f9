//! Hashes that Karpenter itself printed.

use rstest::rstest;
use serde_json::{Value, json};

use crate::{Ec2NodeClass, NodePool, hash};

fn pool(template: &Value) -> NodePool {
    let mut spec = json!({
        "requirements": [],
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
    });
    let fields = template["spec"].as_object().cloned().unwrap_or_default();
    spec.as_object_mut().unwrap().extend(fields);
    let metadata = template
        .get("metadata")
        .cloned()
        .unwrap_or_else(|| json!({}));
    serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"metadata": metadata, "spec": spec}},
    }))
    .unwrap()
}

fn full_template() -> Value {
    json!({
        "metadata": {"labels": {"team": "a", "env": "prod"}, "annotations": {"x": "y"}},
        "spec": {
            "expireAfter": "720h",
            "terminationGracePeriod": "30m",
            "taints": [
                {"key": "gpu", "value": "true", "effect": "NoSchedule"},
                {"key": "b", "effect": "NoExecute"},
            ],
            "startupTaints": [{"key": "init", "effect": "NoSchedule"}],
        },
    })
}

#[rstest]
#[case::default_expiry(json!({}), "6821555240594823858")]
#[case::other_spelling(json!({"spec": {"expireAfter": "43200m"}}), "6821555240594823858")]
#[case::never(json!({"spec": {"expireAfter": "Never"}}), "17369979337536258260")]
#[case::full(full_template(), "12203310531748226171")]
fn node_pool(#[case] template: Value, #[case] expected: &str) {
    assert_eq!(hash::node_pool(&pool(&template)), expected);
}

#[test]
fn node_pool_hash_leaves_out_what_may_change_in_place() {
    let mut changed = pool(&full_template());
    changed.spec.template.spec.taints.reverse();
    changed.spec.weight = Some(10);
    changed.spec.limits = Some(
        [(
            "cpu".to_owned(),
            serde_json::from_value(json!("10")).unwrap(),
        )]
        .into(),
    );
    changed.spec.template.spec.requirements = serde_json::from_value(json!([
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
    ]))
    .unwrap();
    assert_eq!(hash::node_pool(&changed), "12203310531748226171");
}

fn class(change: impl FnOnce(&mut Value)) -> Ec2NodeClass {
    let mut spec = json!({
        "role": "role-1",
        "tags": {"keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2"},
        "context": "fake-context",
        "detailedMonitoring": false,
        "associatePublicIPAddress": false,
        "metadataOptions": {
            "httpEndpoint": "disabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "optional",
        },
        "blockDeviceMappings": [
            {
                "deviceName": "map-device-1",
                "rootVolume": false,
                "ebs": {
                    "deleteOnTermination": false,
                    "encrypted": false,
                    "iops": 0,
                    "kmsKeyID": "fakeKMSKeyID",
                    "snapshotID": "fakeSnapshot",
                    "throughput": 0,
                    "volumeSize": "2G",
                    "volumeType": "standard",
                },
            },
            {"deviceName": "map-device-2"},
        ],
        "userData": "userdata-test-1",
        "subnetSelectorTerms": [],
        "securityGroupSelectorTerms": [],
        "amiSelectorTerms": [],
    });
    change(&mut spec);
    serde_json::from_value(json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": spec,
    }))
    .unwrap()
}

/// The provider's own vectors, from its hash test.
#[rstest]
#[case::base("", json!(null), "11148166120438674859")]
#[case("/userData", json!("userdata-test-2"), "11774429238106843388")]
#[case("/tags/keyTag-test-3", json!("valueTag-test-3"), "9327338697296909506")]
#[case("/context", json!("context-2"), "2279761750428738028")]
#[case("/detailedMonitoring", json!(true), "1936848126751988570")]
#[case("/instanceStorePolicy", json!("RAID0"), "16697988646989909967")]
#[case("/associatePublicIPAddress", json!(true), "16141801171825097963")]
#[case("/metadataOptions/httpEndpoint", json!("enabled"), "14969742554812447671")]
#[case("/metadataOptions/httpProtocolIPv6", json!("enabled"), "1581716956216772561")]
#[case("/metadataOptions/httpPutResponseHopLimit", json!(10), "14046948658064232764")]
#[case("/metadataOptions/httpTokens", json!("required"), "1346719102507290084")]
#[case("/connectionTracking", json!({"tcpEstablishedTimeout": 300}), "1619669030802245540")]
#[case("/connectionTracking", json!({"udpStreamTimeout": 120}), "13743705849402595405")]
#[case("/connectionTracking", json!({"udpTimeout": 45}), "17941926745862994490")]
#[case("/cpuOptions", json!({"nestedVirtualization": "enabled"}), "6157846767212910604")]
#[case("/blockDeviceMappings/0/deviceName", json!("map-device-test-3"), "8979166653850509463")]
#[case("/blockDeviceMappings/0/rootVolume", json!(true), "8875796205856543692")]
#[case("/blockDeviceMappings/0/ebs/deleteOnTermination", json!(true), "1470935115846151531")]
#[case("/blockDeviceMappings/0/ebs/encrypted", json!(true), "5252376125396833097")]
#[case("/blockDeviceMappings/0/ebs/iops", json!(10), "11651419893470054855")]
#[case("/blockDeviceMappings/0/ebs/kmsKeyID", json!("test"), "1488385067008138755")]
#[case("/blockDeviceMappings/0/ebs/snapshotID", json!("test"), "12786013539168652330")]
#[case("/blockDeviceMappings/0/ebs/throughput", json!(10), "1873429003468556999")]
#[case("/blockDeviceMappings/0/ebs/volumeType", json!("io1"), "6743466905516550702")]
#[case("/blockDeviceMappings/0/ebs/volumeSize", json!("10G"), "10372902467896351912")]
#[case("/blockDeviceMappings/0/ebs/volumeSize", json!("10000M"), "10372902467896351912")]
#[case("/subnetSelectorTerms", json!([{"id": "subnet-1"}]), "11148166120438674859")]
#[case("/ipPrefixCount", json!(3), "11148166120438674859")]
fn ec2_node_class(#[case] path: &str, #[case] value: Value, #[case] expected: &str) {
    let node_class = class(|spec| {
        if let Some((parent, field)) = path.rsplit_once('/') {
            spec.pointer_mut(parent).unwrap()[field] = value;
        }
    });
    assert_eq!(
        hash::ec2_node_class(&node_class, Some("test-ca-bundle")),
        expected
    );
}

#[test]
fn instance_profile_in_place_of_role() {
    let node_class = class(|spec| {
        spec.as_object_mut().unwrap().remove("role");
        spec["instanceProfile"] = "test-instance-profile".into();
    });
    assert_eq!(
        hash::ec2_node_class(&node_class, Some("test-ca-bundle")),
        "10323991363677716244"
    );
}

#[test]
fn kubelet_counts_by_value_and_not_by_the_order_of_keys() {
    let hash_of = |kubelet: Value| {
        hash::ec2_node_class(
            &class(|spec| spec["kubelet"] = kubelet),
            Some("test-ca-bundle"),
        )
    };
    assert_eq!(hash_of(json!({})), "11148166120438674859");
    assert_ne!(
        hash_of(json!({"maxPods": 12})),
        hash_of(json!({"maxPods": 21}))
    );
    assert_eq!(
        hash_of(json!({"a": {"x": 1, "b": "<"}, "c": [2]})),
        hash_of(json!({"c": [2], "a": {"b": "<", "x": 1}})),
    );
}
