//! What the simulated EC2 answers, asked through the seam as the provider asks it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world has failed"
)]

use apis::CapacityType;
use aws::seam::{ApiError, Ec2Api, IamApi, PricingApi, SsmApi, ZonalShiftApi};
use aws_sdk_ec2::operation::create_fleet::{CreateFleetInput, CreateFleetOutput};
use aws_sdk_ec2::operation::create_launch_template::CreateLaunchTemplateInput;
use aws_sdk_ec2::operation::describe_instance_status::DescribeInstanceStatusInput;
use aws_sdk_ec2::operation::describe_instance_type_offerings::DescribeInstanceTypeOfferingsInput;
use aws_sdk_ec2::operation::describe_instance_types::DescribeInstanceTypesInput;
use aws_sdk_ec2::operation::describe_instances::DescribeInstancesInput;
use aws_sdk_ec2::operation::describe_placement_groups::DescribePlacementGroupsInput;
use aws_sdk_ec2::operation::describe_spot_price_history::DescribeSpotPriceHistoryInput;
use aws_sdk_ec2::operation::describe_subnets::DescribeSubnetsInput;
use aws_sdk_ec2::operation::terminate_instances::TerminateInstancesInput;
use aws_sdk_ec2::types::{
    DefaultTargetCapacityType, Filter, FleetLaunchTemplateConfigRequest,
    FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest, FleetType,
    Instance, InstanceType, LaunchTemplatePlacementRequest, LocationType,
    RequestLaunchTemplateData, ResourceType, SpotAllocationStrategy, SpotOptionsRequest, Tag,
    TagSpecification, TargetCapacitySpecificationRequest,
};
use aws_sdk_iam::operation::add_role_to_instance_profile::AddRoleToInstanceProfileInput;
use aws_sdk_iam::operation::create_instance_profile::CreateInstanceProfileInput;
use aws_sdk_iam::operation::delete_instance_profile::DeleteInstanceProfileInput;
use aws_sdk_pricing::operation::get_products::GetProductsInput;
use aws_sdk_pricing::types::{Filter as PriceFilter, FilterType};
use aws_sdk_ssm::operation::get_parameter::GetParameterInput;
use jiff::SignedDuration;
use sim::SimulatedClock;
use sim::ec2::{
    Ec2Config, Ec2Faults, InstanceState, PlacementGroupSpec, SimulatedEc2, StatusCheck,
};
use tokio::time::{Duration, sleep};

fn calm() -> Ec2Config {
    Ec2Config {
        faults: Ec2Faults::calm(),
        ..Ec2Config::default()
    }
}

fn account(config: Ec2Config) -> SimulatedEc2 {
    SimulatedEc2::new(config, SimulatedClock::virtual_time())
}

async fn image(ec2: &SimulatedEc2, path: &str) -> Result<String, ApiError> {
    let input = GetParameterInput::builder().name(path).build().unwrap();
    Ok(ec2
        .get_parameter(input)
        .await?
        .parameter
        .unwrap()
        .value
        .unwrap())
}

const X86: &str =
    "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id";

async fn template(ec2: &SimulatedEc2) {
    template_in(ec2, None).await;
}

async fn template_in(ec2: &SimulatedEc2, placement: Option<LaunchTemplatePlacementRequest>) {
    let data = RequestLaunchTemplateData::builder()
        .image_id(image(ec2, X86).await.unwrap())
        .set_placement(placement)
        .build();
    let input = CreateLaunchTemplateInput::builder()
        .launch_template_name("lt")
        .launch_template_data(data)
        .build()
        .unwrap();
    ec2.create_launch_template(input).await.unwrap();
}

/// (type, zone) pairs in the order of the overrides.
async fn fleet(
    ec2: &SimulatedEc2,
    how: CapacityType,
    overrides: &[(&str, &str)],
    token: Option<&str>,
) -> Result<CreateFleetOutput, ApiError> {
    let subnets = ec2
        .describe_subnets(DescribeSubnetsInput::builder().build().unwrap())
        .await?;
    let request = |(name, zone): &(&str, &str)| {
        let subnet = subnets
            .subnets()
            .iter()
            .find(|s| s.availability_zone() == Some(zone))
            .unwrap();
        FleetLaunchTemplateOverridesRequest::builder()
            .instance_type(InstanceType::from(*name))
            .set_subnet_id(subnet.subnet_id.clone())
            .build()
    };
    let specification = FleetLaunchTemplateSpecificationRequest::builder()
        .launch_template_name("lt")
        .build();
    let config = FleetLaunchTemplateConfigRequest::builder()
        .launch_template_specification(specification)
        .set_overrides(Some(overrides.iter().map(request).collect()));
    let target = match how {
        CapacityType::Spot => DefaultTargetCapacityType::Spot,
        CapacityType::OnDemand | CapacityType::Reserved => DefaultTargetCapacityType::OnDemand,
    };
    let tags = TagSpecification::builder()
        .resource_type(ResourceType::Instance)
        .tags(
            Tag::builder()
                .key("karpenter.sh/nodepool")
                .value("default")
                .build(),
        );
    let input = CreateFleetInput::builder()
        .r#type(FleetType::Instant)
        .launch_template_configs(config.build())
        .set_client_token(token.map(ToOwned::to_owned))
        .spot_options(
            SpotOptionsRequest::builder()
                .allocation_strategy(SpotAllocationStrategy::PriceCapacityOptimized)
                .build(),
        )
        .tag_specifications(tags.build())
        .target_capacity_specification(
            TargetCapacitySpecificationRequest::builder()
                .total_target_capacity(1)
                .default_target_capacity_type(target)
                .build(),
        );
    ec2.create_fleet(input.build().unwrap()).await
}

fn launched(answer: &CreateFleetOutput) -> (String, String) {
    let made = &answer.instances()[0];
    (
        made.instance_ids()[0].clone(),
        made.instance_type().unwrap().as_str().to_owned(),
    )
}

fn codes(answer: &CreateFleetOutput) -> Vec<&str> {
    answer
        .errors()
        .iter()
        .filter_map(|error| error.error_code())
        .collect()
}

async fn instance(ec2: &SimulatedEc2, id: &str) -> Result<Instance, ApiError> {
    let input = DescribeInstancesInput::builder()
        .instance_ids(id)
        .build()
        .unwrap();
    let answer = ec2.describe_instances(input).await?;
    Ok(answer.reservations()[0].instances()[0].clone())
}

async fn describe(ec2: &SimulatedEc2, id: &str) -> Result<String, ApiError> {
    let instance = instance(ec2, id).await?;
    let state = instance.state().unwrap().name().unwrap();
    Ok(state.as_str().to_owned())
}

fn filter(name: &str, value: &str) -> Filter {
    Filter::builder().name(name).values(value).build()
}

#[tokio::test(start_paused = true)]
async fn on_demand_takes_the_cheapest_type_whatever_the_order() {
    let ec2 = account(calm());
    template(&ec2).await;
    let overrides = [
        ("m5.4xlarge", "us-east-1a"),
        ("m5.large", "us-east-1b"),
        ("m5.xlarge", "us-east-1a"),
    ];
    let answer = fleet(&ec2, CapacityType::OnDemand, &overrides, None)
        .await
        .unwrap();
    assert_eq!(launched(&answer).1, "m5.large");
    assert!((ec2.price_per_hour() - 0.096).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn spot_takes_the_cheapest_pool_and_costs_a_part_of_on_demand() {
    let ec2 = account(calm());
    template(&ec2).await;
    let zones = ["us-east-1a", "us-east-1b", "us-east-1c"];
    let overrides = zones.map(|zone| ("c5.xlarge", zone));
    let answer = fleet(&ec2, CapacityType::Spot, &overrides, None)
        .await
        .unwrap();
    let (id, _) = launched(&answer);
    let instance = ec2.instance(&id).unwrap();
    let price = |zone: &str| ec2.spot_price_per_hour("c5.xlarge", zone).unwrap();
    let least = zones.map(price).into_iter().fold(f64::MAX, f64::min);
    assert!((instance.price_per_hour - least).abs() < 1e-9);
    assert!((0.28..=0.63).contains(&(least / 0.17)), "{least}");
    assert!(instance.spot_request_id.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dry_pool_is_named_in_the_errors_and_the_next_one_serves() {
    let ec2 = account(calm());
    template(&ec2).await;
    let soon = SimulatedClock::virtual_time().now() + jiff::SignedDuration::from_hours(1);
    ec2.drain_pool("m5.large", "us-east-1a", CapacityType::OnDemand, soon);
    let overrides = [("m5.large", "us-east-1a"), ("m5.xlarge", "us-east-1a")];
    let answer = fleet(&ec2, CapacityType::OnDemand, &overrides, None)
        .await
        .unwrap();
    assert_eq!(codes(&answer), ["InsufficientInstanceCapacity"]);
    assert_eq!(launched(&answer).1, "m5.xlarge");
    let only = fleet(&ec2, CapacityType::OnDemand, &overrides[..1], None)
        .await
        .unwrap();
    assert!(only.instances().is_empty());
    let overrides = only.errors()[0]
        .launch_template_and_overrides()
        .unwrap()
        .overrides()
        .unwrap();
    assert_eq!(overrides.availability_zone(), Some("us-east-1a"));
}

#[tokio::test(start_paused = true)]
async fn refusals_carry_ec2s_codes() {
    let ec2 = account(Ec2Config {
        addresses_per_subnet: 5,
        ..calm()
    });
    template(&ec2).await;
    for (name, expected) in [
        ("m6g.large", "InvalidParameterValue"),
        ("m5.large", "InsufficientFreeAddressesInSubnet"),
        ("no.such", "InvalidParameterValue"),
    ] {
        let answer = fleet(&ec2, CapacityType::OnDemand, &[(name, "us-east-1a")], None)
            .await
            .unwrap();
        assert_eq!(codes(&answer), [expected], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_token_launches_once() {
    let ec2 = account(calm());
    template(&ec2).await;
    let overrides = [("m5.large", "us-east-1a")];
    let first = fleet(&ec2, CapacityType::OnDemand, &overrides, Some("claim-1"))
        .await
        .unwrap();
    let again = fleet(&ec2, CapacityType::OnDemand, &overrides, Some("claim-1"))
        .await
        .unwrap();
    assert_eq!(launched(&first), launched(&again));
    assert_eq!(ec2.launches(), 1);
    let other = [("m5.xlarge", "us-east-1a")];
    let error = fleet(&ec2, CapacityType::OnDemand, &other, Some("claim-1"))
        .await
        .unwrap_err();
    assert_eq!(error.code, "IdempotentParameterMismatch");
    // A token is known for a day.
    for (seconds, launches) in [(86_000, 1), (600, 2), (600, 2)] {
        sleep(Duration::from_secs(seconds)).await;
        fleet(&ec2, CapacityType::OnDemand, &overrides, Some("claim-1"))
            .await
            .unwrap();
        assert_eq!(ec2.launches(), launches, "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_boots_is_seen_late_and_takes_its_time_to_end() {
    let faults = Ec2Faults {
        visibility_delay_seconds_max: 60,
        ..calm().faults
    };
    let ec2 = account(Ec2Config { faults, ..calm() });
    template(&ec2).await;
    let free = || async {
        let input = DescribeSubnetsInput::builder().build().unwrap();
        ec2.describe_subnets(input).await.unwrap().subnets()[0]
            .available_ip_address_count()
            .unwrap()
    };
    let before = free().await;
    let answer = fleet(
        &ec2,
        CapacityType::OnDemand,
        &[("m5.large", "us-east-1a")],
        None,
    )
    .await
    .unwrap();
    let (id, _) = launched(&answer);
    assert_eq!(free().await, before - 10);
    let error = describe(&ec2, &id).await.unwrap_err();
    assert_eq!(error.code, "InvalidInstanceID.NotFound");
    sleep(Duration::from_secs(61)).await;
    assert_eq!(describe(&ec2, &id).await.unwrap(), "running");
    let input = TerminateInstancesInput::builder()
        .instance_ids(&id)
        .build()
        .unwrap();
    ec2.terminate_instances(input).await.unwrap();
    assert_eq!(describe(&ec2, &id).await.unwrap(), "shutting-down");
    sleep(Duration::from_secs(40)).await;
    assert_eq!(describe(&ec2, &id).await.unwrap(), "terminated");
    assert_eq!(free().await, before);
    sleep(Duration::from_hours(2)).await;
    assert_eq!(
        describe(&ec2, &id).await.unwrap_err().code,
        "InvalidInstanceID.NotFound"
    );
}

#[tokio::test(start_paused = true)]
async fn partitions_fill_evenly_and_are_told_once_the_machine_runs() {
    let group = PlacementGroupSpec {
        name: "racks".to_owned(),
        strategy: "partition".to_owned(),
        partitions: Some(3),
    };
    let ec2 = account(Ec2Config {
        placement_groups: vec![group],
        ..calm()
    });
    let input = DescribePlacementGroupsInput::builder().build().unwrap();
    let groups = ec2.describe_placement_groups(input).await.unwrap();
    let id = groups.placement_groups()[0].group_id().unwrap();
    let placement = LaunchTemplatePlacementRequest::builder().group_id(id);
    template_in(&ec2, Some(placement.build())).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let overrides = [("m5.large", "us-east-1a")];
        let answer = fleet(&ec2, CapacityType::OnDemand, &overrides, None).await;
        ids.push(launched(&answer.unwrap()).0);
    }
    sleep(Duration::from_secs(2)).await;
    let partition = async |id: &str| {
        let placement = instance(&ec2, id).await.unwrap().placement.unwrap();
        assert!(placement.group_id().is_some());
        placement.partition_number()
    };
    assert_eq!(partition(&ids[0]).await, None, "not yet");
    sleep(Duration::from_mins(1)).await;
    let mut chosen = Vec::new();
    for id in &ids {
        chosen.extend(partition(id).await);
    }
    assert_eq!(chosen, [1, 2, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn instances_are_found_by_tag_and_state_page_by_page() {
    let ec2 = account(calm());
    template(&ec2).await;
    for _ in 0..5 {
        fleet(
            &ec2,
            CapacityType::OnDemand,
            &[("m5.large", "us-east-1a")],
            None,
        )
        .await
        .unwrap();
    }
    sleep(Duration::from_mins(1)).await;
    let mut found = 0;
    let mut token = None;
    loop {
        let input = DescribeInstancesInput::builder()
            .filters(filter("tag-key", "karpenter.sh/nodepool"))
            .filters(filter("instance-state-name", "running"))
            .max_results(2)
            .set_next_token(token);
        let answer = ec2
            .describe_instances(input.build().unwrap())
            .await
            .unwrap();
        found += answer.reservations().len();
        token = answer.next_token;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(found, 5);
}

#[tokio::test(start_paused = true)]
async fn a_spot_instance_gets_two_minutes_notice() {
    let ec2 = account(calm());
    template(&ec2).await;
    let answer = fleet(
        &ec2,
        CapacityType::Spot,
        &[("m5.large", "us-east-1a")],
        None,
    )
    .await
    .unwrap();
    let (id, _) = launched(&answer);
    let mut events = ec2.subscribe();
    assert!(ec2.interrupt_spot(&id));
    assert!(!ec2.interrupt_spot(&id));
    assert!(events.try_recv().is_ok());
    sleep(Duration::from_secs(119)).await;
    ec2.advance();
    assert_eq!(ec2.count_by_state().get(&InstanceState::Running), Some(&1));
    sleep(Duration::from_secs(2)).await;
    ec2.advance();
    assert_eq!(
        ec2.count_by_state().get(&InstanceState::ShuttingDown),
        Some(&1)
    );
}

#[tokio::test(start_paused = true)]
async fn failed_checks_and_scheduled_events_are_told_of_running_instances() {
    let ec2 = account(calm());
    template(&ec2).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let pools = [("m5.large", "us-east-1a")];
        let answer = fleet(&ec2, CapacityType::Spot, &pools, None).await.unwrap();
        ids.push(launched(&answer).0);
    }
    sleep(Duration::from_mins(2)).await;
    assert!(ec2.fail_status_check(&ids[0], StatusCheck::System));
    assert!(ec2.schedule_event(&ids[1], "instance-retirement"));
    assert!(!ec2.schedule_event("i-unknown", "instance-stop"));
    for (name, value, expected) in [
        ("instance-status.status", "impaired", &ids[..0]),
        ("system-status.status", "impaired", &ids[..1]),
        ("event.code", "instance-retirement", &ids[1..2]),
        ("event.code", "instance-stop", &ids[..0]),
    ] {
        let input = DescribeInstanceStatusInput::builder().filters(filter(name, value));
        let answer = ec2.describe_instance_status(input.build().unwrap()).await;
        let answer = answer.unwrap();
        let found = answer.instance_statuses().iter();
        let found: Vec<&str> = found.filter_map(|it| it.instance_id()).collect();
        assert_eq!(found, expected, "{name}={value}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_is_served_with_offerings_and_prices() {
    let ec2 = account(calm());
    let mut types = 0;
    let mut token = None;
    loop {
        let input = DescribeInstanceTypesInput::builder()
            .filters(
                Filter::builder()
                    .name("supported-virtualization-type")
                    .values("hvm")
                    .build(),
            )
            .filters(
                Filter::builder()
                    .name("processor-info.supported-architecture")
                    .set_values(Some(vec!["x86_64".to_owned(), "arm64".to_owned()]))
                    .build(),
            )
            .set_next_token(token);
        let answer = ec2
            .describe_instance_types(input.build().unwrap())
            .await
            .unwrap();
        types += answer.instance_types().len();
        token = answer.next_token;
        if token.is_none() {
            break;
        }
    }
    assert!((1_300..1_395).contains(&types), "{types}");
    let input = DescribeInstanceTypeOfferingsInput::builder()
        .location_type(LocationType::AvailabilityZone)
        .filters(
            Filter::builder()
                .name("instance-type")
                .values("m5.large")
                .build(),
        );
    let offerings = ec2
        .describe_instance_type_offerings(input.build().unwrap())
        .await
        .unwrap();
    assert!(offerings.instance_type_offerings().len() >= 5);
    let filter = |field: &str, value: &str| {
        PriceFilter::builder()
            .field(field)
            .value(value)
            .r#type(FilterType::TermMatch)
            .build()
            .unwrap()
    };
    let input = GetProductsInput::builder()
        .service_code("AmazonEC2")
        .filters(filter("instanceType", "m5.large"))
        .filters(filter("tenancy", "Shared"))
        .filters(filter("productFamily", "Compute Instance"));
    let products = ec2.get_products(input.build().unwrap()).await.unwrap();
    assert_eq!(products.price_list().len(), 1);
    assert!(products.price_list()[0].contains("0.0960000000"));
    let input = DescribeSpotPriceHistoryInput::builder().instance_types(InstanceType::M5Large);
    let history = ec2
        .describe_spot_price_history(input.build().unwrap())
        .await
        .unwrap();
    assert!(history.spot_price_history().len() >= 5);
}

#[tokio::test(start_paused = true)]
async fn parameters_name_images_of_their_line_and_version() {
    let ec2 = account(calm());
    let latest = image(&ec2, X86).await.unwrap();
    let pinned = X86.replace(
        "recommended",
        "amazon-eks-node-al2023-x86_64-standard-1.33-v20251217",
    );
    assert_eq!(image(&ec2, &pinned).await.unwrap(), latest);
    let older = pinned.replace("20251217", "20251120");
    assert_ne!(image(&ec2, &older).await.unwrap(), latest);
    let bottlerocket = "/aws/service/bottlerocket/aws-k8s-1.33-nvidia/arm64/latest/image_id";
    assert!(image(&ec2, bottlerocket).await.is_ok());
    for missing in [
        X86.replace("1.33", "1.99"),
        X86.replace("standard", "strange"),
    ] {
        assert_eq!(
            image(&ec2, &missing).await.unwrap_err().code,
            "ParameterNotFound"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_profile_with_a_role_is_not_deleted() {
    let faults = Ec2Faults {
        missing_roles: vec!["ghost".to_owned()],
        ..calm().faults
    };
    let ec2 = account(Ec2Config { faults, ..calm() });
    let create = || {
        CreateInstanceProfileInput::builder()
            .instance_profile_name("p")
            .build()
            .unwrap()
    };
    ec2.create_instance_profile(create()).await.unwrap();
    let error = ec2.create_instance_profile(create()).await.unwrap_err();
    assert_eq!(error.code, "EntityAlreadyExists");
    for (role, expected) in [
        ("ghost", Err("NoSuchEntity")),
        ("node", Ok(())),
        ("other", Err("LimitExceeded")),
    ] {
        let input = AddRoleToInstanceProfileInput::builder()
            .instance_profile_name("p")
            .role_name(role);
        let answer = ec2
            .add_role_to_instance_profile(input.build().unwrap())
            .await;
        assert_eq!(
            answer.map(drop).map_err(|e| e.code),
            expected.map_err(ToOwned::to_owned),
            "{role}"
        );
    }
    let input = DeleteInstanceProfileInput::builder()
        .instance_profile_name("p")
        .build()
        .unwrap();
    assert_eq!(
        ec2.delete_instance_profile(input).await.unwrap_err().code,
        "DeleteConflict"
    );
}

#[tokio::test(start_paused = true)]
async fn a_zone_is_shifted_away_from_until_its_end() {
    let clock = SimulatedClock::virtual_time();
    let ec2 = SimulatedEc2::new(calm(), clock);
    let cluster = "arn:aws:eks:us-east-1:111122223333:cluster/mortise-demo";
    assert_eq!(ec2.zonal_shifts(cluster).await.unwrap(), []);
    let until = clock.now() + SignedDuration::from_secs(60);
    ec2.shift_zone("use1-az4", until);
    let shifts = ec2.zonal_shifts(cluster).await.unwrap();
    assert_eq!(shifts.len(), 1);
    assert_eq!(shifts[0].away_from, "use1-az4");
    assert_eq!(shifts[0].expires_at, Some(until));
    sleep(Duration::from_secs(61)).await;
    assert_eq!(ec2.zonal_shifts(cluster).await.unwrap(), []);
}
