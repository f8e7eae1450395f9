//! `mortise controller --cloud aws` as a process: the demo's API server on one side, moto on the other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::has_program;
use tests::moto::Moto;
use tests::served::{Served, WEB};

use crate::calls::assert_made;

#[test]
fn pods_run_on_instances_of_an_account_that_is_not_ours() {
    if !has_program("kubectl", "help") {
        return;
    }
    let Some(mut moto) = Moto::start() else {
        return;
    };
    let file = |name: &str| {
        std::env::temp_dir().join(format!("mortise-moto-{}-{name}", std::process::id()))
    };
    let (world, token) = (file("world.yaml"), file("token"));
    std::fs::write(&world, MANIFESTS).unwrap();
    std::fs::write(&token, "a token").unwrap();
    let mut served = Served::start(&["--no-controller", "-f", world.to_str().unwrap()]);
    // As on EKS: who it is comes of a token, by STS.
    served.also_run_with(
        &[
            "controller",
            "--cloud=aws",
            "--metrics-port=0",
            "--health-probe-port=0",
            "--cluster-name=demo",
            "--eks-control-plane",
            // moto takes the dry run of a fleet for a fleet.
            "--disable-dry-run",
            "--interruption-queue=interruptions",
        ],
        &[
            ("AWS_ENDPOINT_URL", moto.endpoint()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/node-role"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ],
    );
    served.eventually("the class is ready", || {
        let classes = served.items("ec2nodeclasses");
        classes.iter().any(|it| condition(it, "Ready") == "True")
    });
    served.apply(WEB);
    served.eventually("a claim is launched", || {
        let claims = served.items("nodeclaims");
        !claims.is_empty() && claims.iter().all(|it| condition(it, "Launched") == "True")
    });
    let told = user_data(&mut moto);
    let endpoint = moto.has["cluster"]["endpoint"].as_str().unwrap().to_owned();
    for word in [endpoint.as_str(), "10.100.0.0/16"] {
        assert!(told.contains(word), "no {word} in {told}");
    }
    for claim in served.items("nodeclaims") {
        boot(&served, &claim);
    }
    served.eventually("the pods run", || served.running("web-") == 6);
    let instances = running(&mut moto);
    assert_eq!(instances.len(), served.items("nodes").len());

    served.kubectl(&["delete", "deployment", "web"]);
    served.eventually("the nodes are gone", || {
        served.items("nodes").is_empty() && served.items("nodeclaims").is_empty()
    });
    assert_eq!(running(&mut moto), [""; 0]);
    assert_made("controller", &moto.asked());
}

/// What EKS says of the cluster is what nodes are told.
fn user_data(moto: &mut Moto) -> String {
    let asked = json!({"Versions": ["$Latest"]});
    let all = moto.call("ec2", "describe_launch_templates", &json!({}));
    let mut texts = String::new();
    for template in all["LaunchTemplates"].as_array().unwrap() {
        let mut asked = asked.clone();
        asked["LaunchTemplateId"] = template["LaunchTemplateId"].clone();
        let versions = moto.call("ec2", "describe_launch_template_versions", &asked);
        let data = &versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]["UserData"];
        let text = STANDARD.decode(data.as_str().unwrap()).unwrap();
        texts += &String::from_utf8(text).unwrap();
    }
    texts
}

const MANIFESTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: node-role
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption: {consolidateAfter: 5s}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge, c5.xlarge]}
";

/// What the kubelet of a claim's instance would do; that of the demo keeps the node alive.
fn boot(served: &Served, claim: &Value) {
    let name = claim["metadata"]["name"].as_str().unwrap();
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name},
        },
        "spec": {
            "providerID": claim["status"]["providerID"],
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
        },
        "status": {
            "capacity": claim["status"]["capacity"],
            "allocatable": claim["status"]["allocatable"],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    });
    served.apply(&node.to_string());
    let patch = json!({"status": node["status"]}).to_string();
    served.kubectl(&[
        "patch",
        "node",
        name,
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ]);
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|it| it["type"] == kind);
    found
        .and_then(|it| it["status"].as_str())
        .unwrap_or_default()
}

fn running(moto: &mut Moto) -> Vec<String> {
    let filter = json!({"Filters": [{"Name": "instance-state-name", "Values": ["running"]}]});
    let answer = moto.call("ec2", "describe_instances", &filter);
    let reservations = answer["Reservations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let instances = reservations
        .iter()
        .flat_map(|it| it["Instances"].as_array().cloned().unwrap_or_default());
    instances
        .map(|it| it["InstanceId"].as_str().unwrap_or_default().to_owned())
        .collect()
}
