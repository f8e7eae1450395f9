//! Launches: what EC2 is asked, and what its answers lead to.

use std::sync::Arc;

use apis::{
    CapacityType, Ec2NodeClass, NodeClaim, NodeSelectorRequirementWithMinValues, Operator,
    ProviderId, labels,
};
use aws_sdk_ec2::operation::create_fleet::CreateFleetInput;
use base64::Engine as _;
use cloudprovider::{
    CloudProvider, CloudProviderError, FleetingRecord, InstanceLife, LaunchRequest, Launched,
};
use scheduling::ranking::RankedOffering;

use super::catalogue::infos;
use super::{Rig, class};
use crate::seam::ApiError;

type Change<'a> = &'a dyn Fn(&mut Ec2NodeClass);

fn claim(name: &str) -> NodeClaim {
    let mut claim = NodeClaim::default();
    claim.metadata.name = Some(name.to_owned());
    claim.metadata.uid = Some(format!("uid-{name}"));
    claim.metadata.labels = Some([(labels::NODEPOOL.to_owned(), "default".to_owned())].into());
    claim
}

pub(super) fn offering(
    instance_type: &str,
    zone: &str,
    capacity_type: CapacityType,
    price: f64,
) -> RankedOffering {
    RankedOffering {
        instance_type: instance_type.into(),
        zone: zone.into(),
        capacity_type,
        price_per_hour: price,
        effective_cost_per_hour: price,
    }
}

/// What most launches here may buy.
pub(super) fn m5_on_demand() -> Vec<RankedOffering> {
    let kind = CapacityType::OnDemand;
    vec![offering("m5.large", "us-east-1a", kind, 0.096)]
}

pub(super) async fn request(
    rig: &Rig,
    class: &Ec2NodeClass,
    name: &str,
    offerings: Vec<RankedOffering>,
) -> LaunchRequest {
    LaunchRequest {
        node_claim: Arc::new(claim(name)),
        record: Arc::new(FleetingRecord::default()),
        node_class: Arc::new(class.clone()),
        offerings: offerings.into(),
        order_differs_from_price: false,
        instance_types: rig.types(class).await,
    }
}

pub(super) async fn launch(
    rig: &Rig,
    offerings: Vec<RankedOffering>,
) -> Result<Launched, CloudProviderError> {
    let class = rig.resolve(class()).await;
    let request = request(rig, &class, "one", offerings).await;
    rig.provider.create(request).await
}

fn overrides(input: &CreateFleetInput) -> Vec<(String, String, f64)> {
    let configs = input.launch_template_configs().iter();
    let all = configs.flat_map(aws_sdk_ec2::types::FleetLaunchTemplateConfigRequest::overrides);
    all.map(|request| {
        let kind = request.instance_type().unwrap().as_str().to_owned();
        (
            kind,
            request.availability_zone().unwrap().to_owned(),
            request.priority().unwrap(),
        )
    })
    .collect()
}

fn last_fleet(rig: &Rig) -> CreateFleetInput {
    rig.aws.edit(|state| state.fleets.last().cloned().unwrap())
}

#[tokio::test(start_paused = true)]
async fn spot_is_asked_for_by_price_and_capacity() {
    let rig = Rig::new(infos(&["m5.large", "c5.large"]));
    let offerings = vec![
        offering("c5.large", "us-east-1a", CapacityType::Spot, 0.03),
        offering("m5.large", "us-east-1b", CapacityType::Spot, 0.04),
        offering("c5.large", "us-east-1a", CapacityType::OnDemand, 0.085),
        offering("m5.large", "us-east-1a", CapacityType::Spot, 0.09),
    ];
    let launched = launch(&rig, offerings).await.unwrap();
    let fleet = last_fleet(&rig);
    let want = [
        ("c5.large", "us-east-1a", 0.03),
        ("m5.large", "us-east-1b", 0.04),
    ];
    let want: Vec<_> = want
        .map(|(kind, zone, price)| (kind.to_owned(), zone.to_owned(), price))
        .to_vec();
    assert_eq!(
        overrides(&fleet),
        want,
        "spot dearer than on-demand is not asked for"
    );
    let strategy = fleet.spot_options().unwrap().allocation_strategy().unwrap();
    assert_eq!(strategy.as_str(), "price-capacity-optimized");
    assert_eq!(fleet.client_token(), Some("uid-one-0"));
    assert_eq!(launched.provider_id.as_str(), "aws:///us-east-1a/i-0000");
    assert_eq!(launched.image_id, "ami-x86");
    let label = |key: &str| launched.labels[key].as_str();
    assert_eq!(
        (label(labels::INSTANCE_TYPE), label(labels::CAPACITY_TYPE)),
        ("c5.large", "spot")
    );
    assert_eq!(
        (
            label(labels::TOPOLOGY_ZONE),
            label(labels::TOPOLOGY_ZONE_ID)
        ),
        ("us-east-1a", "use1-az-a")
    );
    assert_eq!(
        (
            label(labels::INSTANCE_CATEGORY),
            label(labels::INSTANCE_TENANCY)
        ),
        ("c", "default")
    );
    assert!(!launched.labels.contains_key(labels::INSTANCE_GPU_COUNT));
    assert_eq!(
        launched.annotations[labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION],
        "v6"
    );
    assert_eq!(launched.capacity.cpu_millis(), 2000);
    assert!(launched.allocatable.cpu_millis() < 2000);
}

#[tokio::test(start_paused = true)]
async fn a_policys_order_is_kept_by_priorities() {
    let rig = Rig::new(infos(&["m5.large", "m7g.large"]));
    let class = rig.resolve(class()).await;
    let mut first = offering("m7g.large", "us-east-1a", CapacityType::OnDemand, 0.0816);
    first.effective_cost_per_hour = 0.05;
    let offerings = vec![
        first,
        offering("m5.large", "us-east-1a", CapacityType::OnDemand, 0.06),
    ];
    let mut request = request(&rig, &class, "one", offerings).await;
    request.order_differs_from_price = true;
    let launched = rig.provider.create(request).await.unwrap();
    let fleet = last_fleet(&rig);
    let mut asked = overrides(&fleet);
    asked.sort_by(|a, b| a.2.total_cmp(&b.2));
    let kinds: Vec<&str> = asked.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(kinds, ["m7g.large", "m5.large"]);
    assert_eq!(asked[0].2.to_bits(), 0.0_f64.to_bits());
    let strategy = fleet
        .on_demand_options()
        .unwrap()
        .allocation_strategy()
        .unwrap();
    assert_eq!(strategy.as_str(), "prioritized");
    assert_eq!(launched.labels[labels::ARCH], "arm64");
    assert_eq!(
        fleet.launch_template_configs().len(),
        2,
        "one template an image"
    );
}

#[tokio::test(start_paused = true)]
async fn accelerators_and_metal_are_left_out_unless_nothing_else_is_there() {
    let names = ["g4dn.xlarge", "m5.metal", "m5.xlarge"];
    let rig = Rig::new(infos(&names));
    let all = |names: &[&str]| {
        names
            .iter()
            .map(|n| offering(n, "us-east-1a", CapacityType::OnDemand, 0.5))
            .collect()
    };
    launch(&rig, all(&names)).await.unwrap();
    assert_eq!(overrides(&last_fleet(&rig)).len(), 1);
    launch(&rig, all(&names[..2])).await.unwrap();
    assert_eq!(overrides(&last_fleet(&rig)).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_ec2_refuses_is_marked_and_the_rest_is_launched() {
    let rig = Rig::new(infos(&["m5.large", "c5.large"]));
    let refuse = |kind: &str| {
        let key = (kind.to_owned(), "us-east-1a".to_owned());
        rig.aws.edit(|state| {
            state
                .refusals
                .insert(key, "InsufficientInstanceCapacity".to_owned())
        });
    };
    refuse("c5.large");
    let offerings = || {
        vec![
            offering("c5.large", "us-east-1a", CapacityType::OnDemand, 0.085),
            offering("m5.large", "us-east-1a", CapacityType::OnDemand, 0.096),
        ]
    };
    let launched = launch(&rig, offerings()).await.unwrap();
    assert_eq!(launched.labels[labels::INSTANCE_TYPE], "m5.large");
    let class = rig.resolve(class()).await;
    let types = rig.types(&class).await;
    assert!(
        !types[0]
            .offering("us-east-1a", CapacityType::OnDemand)
            .unwrap()
            .is_available()
    );
    let told = rig.metrics();
    let failures = "karpenter_cloudprovider_instance_launch_failures_total{zone=\"us-east-1a\"";
    let of = |line: &&str| {
        line.starts_with(failures)
            && line.contains("capacity_type=\"on-demand\"")
            && line.ends_with("reason=\"InsufficientInstanceCapacity\"} 1")
    };
    assert_eq!(told.lines().filter(of).count(), 1, "{told}");
    refuse("m5.large");
    let error = launch(&rig, offerings()).await.unwrap_err();
    assert!(
        matches!(error, CloudProviderError::InsufficientCapacity(_)),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn batches_and_user_data_are_measured() {
    let rig = Rig::new(infos(&["m5.large"]));
    let offerings = m5_on_demand();
    let launched = launch(&rig, offerings).await.unwrap();
    rig.provider.delete(&launched.provider_id).await.unwrap();
    let told = rig.metrics();
    for batcher in ["create_fleet", "terminate_instances", "describe_instances"] {
        for name in ["batch_size", "batch_time_seconds"] {
            let series = format!(
                "karpenter_cloudprovider_batcher_{name}_count{{batcher=\"{batcher}\"}} 1\n"
            );
            assert!(told.contains(&series), "{series} in {told}");
        }
    }
    let size = told.lines().find_map(|it| {
        it.strip_prefix("karpenter_ec2nodeclasses_userdata_bytes{nodeclass=\"default\"} ")
    });
    let size: f64 = size.unwrap().parse().unwrap();
    assert!(size > 100.0, "{size}");
    let mut class = class();
    class.status = None;
    rig.provider.release_node_class(&class).await.unwrap();
    assert!(!rig.metrics().contains("userdata_bytes{"));
}

#[tokio::test(start_paused = true)]
async fn equal_claims_share_a_fleet() {
    let rig = Rig::new(infos(&["m5.large"]));
    let class = rig.resolve(class()).await;
    let mut launches = Vec::new();
    for name in ["one", "two", "three"] {
        let offerings = m5_on_demand();
        launches.push(
            rig.provider
                .create(request(&rig, &class, name, offerings).await),
        );
    }
    let launched = futures::future::join_all(launches).await;
    let mut ids: Vec<ProviderId> = launched
        .into_iter()
        .map(|launched| launched.unwrap().provider_id)
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert_eq!(rig.aws.calls("CreateFleet"), 1);
    assert_eq!(rig.aws.calls("CreateLaunchTemplate"), 1);
    let target = last_fleet(&rig).target_capacity_specification.unwrap();
    assert_eq!(target.total_target_capacity, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_launch_keeps_its_token_until_it_is_known_how_it_ended() {
    let rig = Rig::new(infos(&["m5.large"]));
    let lost = ApiError::unanswered("cut");
    let refused = ApiError::client("InvalidParameterValue", "no");
    rig.aws
        .edit(|state| state.fleet_failures.extend([lost, refused]));
    for _ in 0..2 {
        let error = launch(&rig, m5_on_demand()).await.unwrap_err();
        assert!(
            matches!(error, CloudProviderError::Create { .. }),
            "{error:?}"
        );
    }
    launch(&rig, m5_on_demand()).await.unwrap();
    let tokens = rig.aws.edit(|state| {
        let tokens = state
            .fleets
            .iter()
            .map(|fleet| fleet.client_token.clone().unwrap());
        tokens.collect::<Vec<_>>()
    });
    assert_eq!(tokens, ["uid-one-0", "uid-one-0", "uid-one-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_template_is_made_again() {
    let rig = Rig::new(infos(&["m5.large"]));
    launch(&rig, m5_on_demand()).await.unwrap();
    rig.aws.edit(|state| state.templates.clear());
    launch(&rig, m5_on_demand()).await.unwrap();
    assert_eq!(rig.aws.calls("CreateLaunchTemplate"), 2);
    rig.pass(61);
    rig.provider.sweep_launch_templates().await;
    assert_eq!(rig.aws.edit(|state| state.templates.len()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_template_that_nobody_knows_is_found_and_deleted() {
    let rig = Rig::new(infos(&["m5.large"]));
    launch(&rig, m5_on_demand()).await.unwrap();
    let orphans = rig.aws.edit(|state| state.templates.clone());
    let left = || rig.aws.edit(|state| state.templates.len());
    rig.pass(61);
    rig.provider.sweep_launch_templates().await;
    assert_eq!(left(), 0);
    rig.aws.edit(|state| state.templates = orphans);
    rig.pass(301);
    rig.provider.sweep_launch_templates().await;
    assert_eq!(left(), 1, "somebody may be about to use it");
    rig.pass(61);
    rig.provider.sweep_launch_templates().await;
    assert_eq!(left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_subnet_hides_its_zone() {
    let rig = Rig::new(infos(&["m5.large"]));
    let key = ("m5.large".to_owned(), "us-east-1a".to_owned());
    rig.aws.edit(|state| {
        state
            .refusals
            .insert(key, "InsufficientFreeAddressesInSubnet".to_owned())
    });
    launch(&rig, m5_on_demand()).await.unwrap_err();
    let class = rig.resolve(class()).await;
    let found = &rig.types(&class).await[0];
    let available =
        |zone: &str, kind: CapacityType| found.offering(zone, kind).unwrap().is_available();
    assert!(
        !available("us-east-1a", CapacityType::Spot),
        "the subnet is full for all"
    );
    assert!(available("us-east-1b", CapacityType::Spot));
}

#[tokio::test(start_paused = true)]
async fn min_values_must_survive_the_cut() {
    let rig = Rig::new(infos(&["m5.large", "c5.large"]));
    let class = rig.resolve(class()).await;
    let offerings = m5_on_demand();
    let mut request = request(&rig, &class, "one", offerings).await;
    let mut claim = claim("one");
    let mut requirement = NodeSelectorRequirementWithMinValues::new(
        labels::INSTANCE_TYPE,
        Operator::Exists,
        Vec::<String>::new(),
    );
    requirement.min_values = Some(2);
    claim.spec.requirements = vec![requirement];
    request.node_claim = Arc::new(claim);
    let error = rig.provider.create(request).await.unwrap_err();
    assert!(
        matches!(error, CloudProviderError::InsufficientCapacity(_)),
        "{error:?}"
    );
    assert_eq!(rig.aws.calls("CreateFleet"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_class_that_is_not_ready_launches_nothing() {
    let rig = Rig::new(infos(&["m5.large"]));
    let class = rig.resolve(class()).await;
    let offerings = m5_on_demand();
    let mut request = request(&rig, &class, "one", offerings).await;
    let mut unresolved = super::class();
    unresolved.status = None;
    request.node_class = Arc::new(unresolved);
    let error = rig.provider.create(request).await.unwrap_err();
    let CloudProviderError::NotYet { reason, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(reason, "NodeClassReadinessUnknown");
}

#[tokio::test(start_paused = true)]
async fn the_template_tells_the_node_how_to_join() {
    let rig = Rig::new(infos(&["m5.large"]));
    launch(
        &rig,
        vec![offering("m5.large", "us-east-1a", CapacityType::Spot, 0.04)],
    )
    .await
    .unwrap();
    let data = rig
        .aws
        .edit(|state| state.templates.values().next().cloned().unwrap());
    let text = base64::engine::general_purpose::STANDARD
        .decode(data.user_data().unwrap())
        .unwrap();
    let text = String::from_utf8(text).unwrap();
    for part in [
        "boundary=\"//\"",
        "application/node.eks.aws",
        "apiServerEndpoint: https://demo.example",
        "cidr: 10.100.0.0/16",
        "maxPods: 29",
        "karpenter.sh/unregistered",
        "karpenter.sh/nodepool=default",
        "karpenter.sh/capacity-type=spot",
        "karpenter.sh/do-not-sync-taints=true",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert_eq!(data.network_interfaces().len(), 1);
    assert_eq!(data.network_interfaces()[0].groups(), ["sg-1"]);
    assert_eq!(
        data.block_device_mappings()[0].ebs().unwrap().volume_size(),
        Some(20)
    );
    assert_eq!(
        data.metadata_options()
            .unwrap()
            .http_tokens()
            .map(aws_sdk_ec2::types::LaunchTemplateHttpTokensState::as_str),
        Some("required")
    );
    let preference = data
        .capacity_reservation_specification()
        .unwrap()
        .capacity_reservation_preference();
    assert_eq!(
        preference.map(aws_sdk_ec2::types::CapacityReservationPreference::as_str),
        Some("none")
    );
}

#[tokio::test(start_paused = true)]
async fn an_instance_is_found_tagged_ended_and_gone() {
    let rig = Rig::new(infos(&["m5.large"]));
    let launched = launch(
        &rig,
        vec![offering("m5.large", "us-east-1a", CapacityType::Spot, 0.04)],
    )
    .await
    .unwrap();
    let mut claim = claim("one");
    claim.status = Some(apis::NodeClaimStatus {
        provider_id: Some(launched.provider_id.to_string()),
        node_name: Some("node-one".to_owned()),
        ..Default::default()
    });
    rig.provider.tag(&claim).await.unwrap();
    rig.provider.tag(&claim).await.unwrap();
    assert_eq!(
        rig.aws.calls("CreateTags"),
        1,
        "what is there is not added again"
    );
    let listed = rig.provider.list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].node_claim_name.as_deref(), Some("one"));
    assert_eq!(listed[0].node_pool_name.as_deref(), Some("default"));
    rig.provider.delete(&launched.provider_id).await.unwrap();
    let ends = rig.provider.get(&launched.provider_id).await.unwrap();
    assert_eq!(ends.life, InstanceLife::Ends);
    rig.provider.delete(&launched.provider_id).await.unwrap();
    assert_eq!(rig.aws.calls("TerminateInstances"), 1);
    rig.aws.edit(|state| state.instances.clear());
    assert!(
        rig.provider
            .get(&launched.provider_id)
            .await
            .unwrap_err()
            .is_not_found()
    );
    assert!(
        rig.provider
            .delete(&launched.provider_id)
            .await
            .unwrap_err()
            .is_not_found()
    );
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_ec2_describes_without_its_zone_is_not_taken_for_gone() {
    let rig = Rig::new(infos(&["m5.large"]));
    let launched = launch(&rig, m5_on_demand()).await.unwrap();
    let id = launched.provider_id.instance_id();
    rig.aws.edit(|state| {
        state.instances.get_mut(id).unwrap().placement = None;
    });
    let error = rig.provider.get(&launched.provider_id).await.unwrap_err();
    assert!(
        !error.is_not_found() && error.to_string().contains(id),
        "{error}"
    );
    assert_eq!(rig.provider.list().await.unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn drift_names_its_first_reason() {
    let rig = Rig::new(infos(&["m5.large"]));
    let launched = launch(
        &rig,
        vec![offering("m5.large", "us-east-1a", CapacityType::Spot, 0.04)],
    )
    .await
    .unwrap();
    let class = rig.resolve(class()).await;
    let mut claim = claim("one");
    claim
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .extend(launched.labels.clone());
    claim.metadata.annotations = Some(launched.annotations.clone());
    claim.status = Some(apis::NodeClaimStatus {
        provider_id: Some(launched.provider_id.to_string()),
        image_id: Some(launched.image_id.clone()),
        ..Default::default()
    });
    let drift = async |change: &dyn Fn(&mut Ec2NodeClass)| {
        let mut class = class.clone();
        change(&mut class);
        rig.provider.is_drifted(&claim, &class).await.unwrap()
    };
    assert_eq!(drift(&|_| {}).await, None);
    let cases: [(Change<'_>, &str); 4] = [
        (
            &|class| {
                let annotations = class.metadata.annotations.as_mut().unwrap();
                annotations.insert(
                    labels::EC2_NODE_CLASS_HASH_ANNOTATION.to_owned(),
                    "1".to_owned(),
                );
            },
            "NodeClassDrift",
        ),
        (
            &|class| class.status.as_mut().unwrap().amis[2].id = "ami-next".to_owned(),
            "AMIDrift",
        ),
        (
            &|class| class.status.as_mut().unwrap().security_groups[0].id = "sg-2".to_owned(),
            "SecurityGroupDrift",
        ),
        (
            &|class| {
                class
                    .status
                    .as_mut()
                    .unwrap()
                    .subnets
                    .retain(|subnet| subnet.id != "subnet-0");
            },
            "SubnetDrift",
        ),
    ];
    for (change, want) in cases {
        assert_eq!(drift(change).await.as_deref(), Some(want));
    }
}
