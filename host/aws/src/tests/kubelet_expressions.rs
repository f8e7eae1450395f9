//! Settings of the kubelet that follow from the machine: what a class says of them, and what its nodes get.

use apis::conditions::{self, READY};
use apis::{CapacityType, Ec2NodeClass, quantity};
use base64::Engine as _;
use cloudprovider::CloudProvider;
use serde_json::{Value, json};

use super::catalogue::infos;
use super::launch::{offering, request};
use super::{Rig, class};
use crate::AwsFeatureGates;

fn rig(is_on: bool) -> Rig {
    Rig::with_options(infos(&["m5.large", "c5.xlarge"]), |options| {
        options.aws_feature_gates = AwsFeatureGates {
            node_class_cel: is_on,
        };
    })
}

async fn class_with(rig: &Rig, kubelet: Value) -> Ec2NodeClass {
    let mut class = class();
    class.spec.kubelet = serde_json::from_value(kubelet).unwrap();
    rig.resolve(class).await
}

#[tokio::test(start_paused = true)]
async fn a_class_says_what_is_wrong_with_its_expressions() {
    let pods = |source: &str| json!({"maxPods": source});
    let cases = [
        (
            false,
            pods("vcpus * 10"),
            "KubeletExpressionsDisabled",
            "maxPods",
        ),
        (
            true,
            pods("vcpus * ten"),
            "KubeletExpressionInvalid",
            "maxPods",
        ),
        (
            true,
            json!({"kubeReserved": {"cpu": "instance_type"}}),
            "KubeletExpressionInvalid",
            "kubeReserved.cpu",
        ),
        (
            true,
            json!({"systemReserved": {"memory": "100 / (vcpus - 2)"}}),
            "KubeletExpressionEvaluationFailed",
            "on m5.large",
        ),
        (
            true,
            pods("vcpus - 3"),
            "KubeletExpressionEvaluationFailed",
            "on m5.large",
        ),
        (true, pods("vcpus * 10"), "Ready", ""),
    ];
    for (is_on, kubelet, reason, part) in cases {
        let status = class_with(&rig(is_on), kubelet).await.status.unwrap();
        let is_ready = conditions::is_true(&status.conditions, READY);
        assert_eq!(is_ready, reason == "Ready", "{reason}");
        if !is_ready {
            let found = conditions::get(&status.conditions, "ValidationSucceeded").unwrap();
            assert_eq!(found.reason, reason, "{}", found.message);
            assert!(found.message.contains(part), "{}", found.message);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_type_gets_what_the_expressions_come_to_on_it() {
    let rig = rig(true);
    let kubelet = json!({
        "maxPods": "vcpus * 10",
        "kubeReserved": {"cpu": "max_pods + 1", "memory": "1Gi"},
        "systemReserved": {"memory": "memory_mib / 100"},
    });
    let class = class_with(&rig, kubelet).await;
    let types = rig.types(&class).await;
    let millis = |text: &str| quantity::parse_millis(text).unwrap();
    // Type, pods, CPU and memory that are reserved.
    let wants = [
        ("c5.xlarge", 40, "50m", "96Mi"),
        ("m5.large", 20, "30m", "96Mi"),
    ];
    for (built, (name, pods, cpu, memory)) in types.iter().zip(wants) {
        assert_eq!(built.name, name);
        let kube = &built.overhead.kube_reserved;
        let system = &built.overhead.system_reserved;
        assert_eq!(built.capacity.get("pods"), pods * 1000, "{name}");
        assert_eq!(kube.get("cpu"), millis(cpu), "{name}");
        assert_eq!(kube.get("memory"), millis("1Gi"), "{name}");
        assert_eq!(system.get("memory"), millis(memory), "{name}");
    }
    let offerings = wants.map(|(name, ..)| offering(name, "us-east-1a", CapacityType::Spot, 0.04));
    let request = request(&rig, &class, "one", offerings.to_vec()).await;
    rig.provider.create(request).await.unwrap();
    let templates = rig.aws.edit(|state| state.templates.clone());
    let texts = templates.values().map(|data| {
        let text = base64::engine::general_purpose::STANDARD.decode(data.user_data().unwrap());
        String::from_utf8(text.unwrap()).unwrap()
    });
    let texts: Vec<String> = texts.collect();
    assert_eq!(texts.len(), 2);
    for (_, pods, cpu, memory) in wants {
        let parts = [
            format!("maxPods: {pods}"),
            format!("cpu: {cpu}"),
            format!("memory: {memory}"),
        ];
        let has_all = |text: &&String| parts.iter().all(|part| text.contains(part));
        assert!(
            texts.iter().any(|text| has_all(&text)),
            "{parts:?} in {texts:?}"
        );
    }
}
