//! The life of a node in moto's account: class, launch, tags, notices, end.

use std::sync::Arc;

use apis::{CapacityType, Ec2NodeClass, NodeClaim, NodePool};
use aws::SqsInterruptionQueue;
use aws::seam::Ec2Api as _;
use aws_sdk_ec2::operation::run_instances::RunInstancesInput;
use cloudprovider::{CloudProvider as _, InterruptionKind, InterruptionQueue as _};
use cloudprovider::{CloudProviderError, FleetingRecord, LaunchRequest, Launched};
use scheduling::ranking::RankedOffering;
use serde_json::{Value, json};
use tests::moto::Moto;

use crate::calls::assert_made;
use crate::rig::{Rig, class};

#[tokio::test]
async fn a_node_lives_and_dies_in_an_account_that_is_not_ours() {
    let Some(mut moto) = Moto::start() else {
        return;
    };
    let rig = Rig::new(&moto, ("testing", "testing")).await;
    // moto has no price list; the built-in one stands in.
    rig.provider.hydrate().await.unwrap();
    let class = resolved(&rig, &moto).await;
    tried(&rig, &moto).await;
    let launched = launched(&rig, &mut moto, &class).await;
    let claim = told(&launched);
    tagged(&rig, &mut moto, &claim).await;
    noticed(&rig, &mut moto, &launched).await;

    assert_eq!(rig.provider.impairments().await.unwrap(), []);
    rig.provider.reboot(&launched.provider_id).await.unwrap();
    drifted(&rig, &mut moto, (&claim, &class)).await;

    ended(&rig, &mut moto, &launched).await;
    released(&rig, &mut moto, &class).await;
    assert_made("life", &moto.asked());
}

/// The class finds what the account has.
async fn resolved(rig: &Rig, moto: &Moto) -> Ec2NodeClass {
    let class = rig.resolve(class()).await;
    let status = class.status.as_ref().unwrap();
    let told: Vec<_> = status
        .conditions
        .iter()
        .map(|it| (&it.type_, &it.status, &it.message))
        .collect();
    assert!(
        told.iter().all(|(_, status, _)| *status == "True"),
        "{told:?}"
    );
    let ids = |texts: Vec<&str>| {
        let mut texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        texts.sort();
        texts
    };
    let has = |value: &Value| {
        let values = value.as_array().cloned().unwrap_or_default();
        ids(values.iter().filter_map(Value::as_str).collect())
    };
    assert_eq!(
        ids(status.subnets.iter().map(|it| it.id.as_str()).collect()),
        has(&moto.has["subnets"])
    );
    let groups = status
        .security_groups
        .iter()
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(ids(groups), [moto.has["security_group"].as_str().unwrap()]);
    let images = moto.has["images"].as_object().unwrap().values();
    let images = ids(images.filter_map(Value::as_str).collect());
    assert_eq!(
        ids(status.amis.iter().map(|it| it.id.as_str()).collect()),
        images
    );
    class
}

/// The dry run of a single instance; those of fleets moto takes for fleets.
async fn tried(rig: &Rig, moto: &Moto) {
    let has = |it: &Value| it.as_str().unwrap().to_owned();
    let input = RunInstancesInput::builder()
        .dry_run(true)
        .min_count(1)
        .max_count(1)
        .instance_type("m5.large".into())
        .image_id(has(&moto.has["images"]["x86_64"]))
        .subnet_id(has(&moto.has["subnets"][0]));
    let answer = rig.clients.run_instances(input.build().unwrap()).await;
    assert_eq!(answer.unwrap_err().code, "DryRunOperation");
}

/// An instance of the type, the zone, the image and the tags that were asked for.
async fn launched(rig: &Rig, moto: &mut Moto, class: &Ec2NodeClass) -> Launched {
    let types = rig
        .provider
        .instance_types(&NodePool::default(), class)
        .await
        .unwrap();
    let found = types.iter().find(|it| it.name == "m5.large").unwrap();
    let offering = found
        .offering("us-east-1a", CapacityType::OnDemand)
        .unwrap();
    assert!(offering.is_available(), "{offering:?}");
    let request = LaunchRequest {
        node_claim: Arc::new(claim(json!({}))),
        record: Arc::new(FleetingRecord::default()),
        node_class: Arc::new(class.clone()),
        offerings: Arc::new([RankedOffering {
            instance_type: "m5.large".into(),
            zone: "us-east-1a".into(),
            capacity_type: CapacityType::OnDemand,
            price_per_hour: 0.096,
            effective_cost_per_hour: 0.096,
        }]),
        order_differs_from_price: false,
        instance_types: types,
    };
    let launched = rig.provider.create(request).await.unwrap();
    assert_eq!(launched.image_id, moto.has["images"]["x86_64"]);
    let instance = instance(moto, &launched);
    assert_eq!(instance["InstanceType"], "m5.large");
    assert_eq!(instance["SubnetId"], moto.has["subnets"][0]);
    assert_eq!(instance["ImageId"], moto.has["images"]["x86_64"]);
    for (key, value) in [
        ("kubernetes.io/cluster/demo", "owned"),
        ("eks:eks-cluster-name", "demo"),
        ("karpenter.sh/nodepool", "default"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
    ] {
        assert_eq!(tag(&instance, key), Some(value), "{instance:#}");
    }
    let listed = rig.provider.list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].provider_id, launched.provider_id);
    assert_eq!(
        rig.provider.get(&launched.provider_id).await.unwrap(),
        listed[0]
    );
    launched
}

async fn tagged(rig: &Rig, moto: &mut Moto, claim: &NodeClaim) {
    rig.provider.tag(claim).await.unwrap();
    let provider_id = claim.provider_id().unwrap();
    let launched = rig.provider.get(&provider_id).await.unwrap();
    assert_eq!(launched.node_claim_name.as_deref(), Some("one"));
    let instance = instance(moto, &launched);
    assert_eq!(tag(&instance, "Name"), Some("ip-10-0-0-1.ec2.internal"));
}

/// moto's fleets pass over the security groups of a template, which is drift until somebody mends it.
async fn drifted(rig: &Rig, moto: &mut Moto, (claim, class): (&NodeClaim, &Ec2NodeClass)) {
    let drift = rig.provider.is_drifted(claim, class).await.unwrap();
    assert_eq!(drift.as_deref(), Some("SecurityGroupDrift"));
    let provider_id = claim.provider_id().unwrap();
    let id = provider_id.instance_id();
    let groups = json!({"InstanceId": id, "Groups": [moto.has["security_group"]]});
    moto.call("ec2", "modify_instance_attribute", &groups);
    // Drift goes by what the last list told.
    rig.provider.list().await.unwrap();
    let drift = rig.provider.is_drifted(claim, class).await.unwrap();
    assert_eq!(drift, None);
}

/// What EventBridge sends is told, and what others put onto the queue comes to nothing.
async fn noticed(rig: &Rig, moto: &mut Moto, launched: &Launched) {
    let id = launched.provider_id.instance_id();
    let notice = |account: &str, region: &str, source: &str| {
        let notice = json!({
            "version": "0",
            "source": source,
            "detail-type": "EC2 Spot Instance Interruption Warning",
            "account": account,
            "region": region,
            "time": "2026-01-01T00:00:00Z",
            "detail": {"instance-id": id, "instance-action": "terminate"},
        });
        notice.to_string()
    };
    let (own, region, ec2) = ("123456789012", "us-east-1", "aws.ec2");
    let bodies = [
        (notice(own, region, ec2), InterruptionKind::SpotInterrupted),
        (notice(own, "eu-west-1", ec2), InterruptionKind::NoOp),
        (notice("999900001111", region, ec2), InterruptionKind::NoOp),
        (notice(own, region, "com.example"), InterruptionKind::NoOp),
        ("{\"version\": 0".to_owned(), InterruptionKind::NoOp),
    ];
    let url = moto.call(
        "sqs",
        "get_queue_url",
        &json!({"QueueName": "interruptions"}),
    );
    let url = &url["QueueUrl"];
    let sqs = Arc::new(rig.clients.clone());
    let queue = SqsInterruptionQueue::new(sqs, "interruptions", Arc::clone(&rig.provider));
    for (body, kind) in bodies {
        moto.call(
            "sqs",
            "send_message",
            &json!({"QueueUrl": url, "MessageBody": body}),
        );
        let told = queue.receive().await.unwrap();
        let [told] = &told[..] else {
            panic!("one notice was sent: {told:?}");
        };
        assert_eq!(told.kind, kind, "{body}");
        let ids = if kind == InterruptionKind::NoOp {
            vec![]
        } else {
            vec![id.to_owned()]
        };
        assert_eq!(told.instance_ids, ids, "{body}");
        queue.delete(&told.receipt).await.unwrap();
    }
    let asked = json!({"QueueUrl": url, "AttributeNames": ["All"]});
    let left = moto.call("sqs", "get_queue_attributes", &asked);
    for state in [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
    ] {
        assert_eq!(left["Attributes"][state], "0");
    }
}

async fn ended(rig: &Rig, moto: &mut Moto, launched: &Launched) {
    rig.provider.delete(&launched.provider_id).await.unwrap();
    assert_eq!(instance(moto, launched)["State"]["Name"], "terminated");
    let gone = rig.provider.get(&launched.provider_id).await;
    assert!(
        gone.as_ref().is_err_and(CloudProviderError::is_not_found),
        "{gone:?}"
    );
    assert_eq!(rig.provider.list().await.unwrap(), []);
}

/// Nothing of the class is left in the account.
async fn released(rig: &Rig, moto: &mut Moto, class: &Ec2NodeClass) {
    let templates = |moto: &mut Moto| {
        let all = moto.call("ec2", "describe_launch_templates", &json!({}));
        all["LaunchTemplates"].as_array().unwrap().len()
    };
    assert_eq!(templates(moto), 1);
    rig.clock.pass(61);
    rig.provider.sweep_launch_templates().await;
    assert_eq!(templates(moto), 0);
    let profiles = |moto: &mut Moto| {
        let all = moto.call("iam", "list_instance_profiles", &json!({}));
        all["InstanceProfiles"].as_array().cloned().unwrap()
    };
    let made = profiles(moto);
    let name = class
        .status
        .as_ref()
        .and_then(|it| it.instance_profile.clone());
    assert_eq!(made[0]["InstanceProfileName"], name.unwrap());
    assert_eq!(made[0]["Roles"][0]["RoleName"], "node-role");
    rig.provider.release_node_class(class).await.unwrap();
    assert_eq!(profiles(moto), Vec::<Value>::new());
}

/// A claim of the pool `default` with this status.
pub(crate) fn claim(status: Value) -> NodeClaim {
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "one", "uid": "uid-one", "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
        },
    });
    claim["status"] = status;
    serde_json::from_value(claim).unwrap()
}

/// The claim as it is written once it is launched and its node is there.
fn told(launched: &Launched) -> NodeClaim {
    let mut claim = claim(json!({
        "providerID": launched.provider_id.as_str(),
        "imageID": launched.image_id,
        "nodeName": "ip-10-0-0-1.ec2.internal",
    }));
    claim.metadata.annotations = Some(launched.annotations.clone());
    let labels = claim.metadata.labels.get_or_insert_default();
    labels.extend(launched.labels.clone());
    claim
}

fn instance(moto: &mut Moto, launched: &Launched) -> Value {
    let id = launched.provider_id.instance_id();
    let answer = moto.call("ec2", "describe_instances", &json!({"InstanceIds": [id]}));
    answer["Reservations"][0]["Instances"][0].clone()
}

fn tag<'a>(instance: &'a Value, key: &str) -> Option<&'a str> {
    let tags = instance["Tags"].as_array()?;
    tags.iter().find(|it| it["Key"] == key)?["Value"].as_str()
}
