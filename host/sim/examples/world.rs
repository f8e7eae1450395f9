//! A measured run of the world alone: a Deployment on instances made by hand through the seam.
//!
//! `cargo run --release -p sim --example world -- [pods] [instances]`

use std::sync::Arc;
use std::time::{Duration, Instant};

use api_server::Resource;
use aws::seam::{Ec2Api, SsmApi};
use aws_sdk_ec2::operation::create_fleet::CreateFleetInput;
use aws_sdk_ec2::operation::create_launch_template::CreateLaunchTemplateInput;
use aws_sdk_ec2::operation::describe_subnets::DescribeSubnetsInput;
use aws_sdk_ec2::types::{
    DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest,
    FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest, FleetType,
    InstanceType, RequestLaunchTemplateData, TargetCapacitySpecificationRequest,
};
use aws_sdk_ssm::operation::get_parameter::GetParameterInput;
use serde_json::json;
use sim::{SimulatedWorld, WorldConfig};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<i32>());
    let pods = args.next().transpose()?.unwrap_or(5_000);
    let instances = args.next().transpose()?.unwrap_or(400);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(run(pods, instances))
}

async fn run(pods: i32, instances: i32) -> Outcome<()> {
    let started = Instant::now();
    let world = SimulatedWorld::new(WorldConfig::default());
    world.install_crds()?;
    tokio::spawn(Arc::clone(&world).run());
    say(&format!("world ready after {:?}", started.elapsed()));
    world
        .api()
        .create(&Resource::DEPLOYMENTS, "default", deployment(pods))?;
    launch(&world, instances).await?;
    say(&format!("launched after {:?}", started.elapsed()));
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if world.is_settled() {
            break;
        }
    }
    let statistics = world.statistics();
    say(&format!("{statistics:#?}"));
    say(&format!(
        "settled after {:?} of wall time, {:?} of virtual time, peak memory {} MiB",
        started.elapsed(),
        world.clock().elapsed(),
        peak_memory_mib()
    ));
    for violation in world.check_always() {
        if !matches!(violation, sim::Violation::LeakedInstance { .. }) {
            say(&violation.to_string());
        }
    }
    world
        .api()
        .scale(&Resource::DEPLOYMENTS, "default", "web", 0)?;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if world.is_settled() {
            break;
        }
    }
    say(&format!(
        "scaled to zero after {:?}: {} pods run",
        started.elapsed(),
        world.statistics().pods_running
    ));
    Ok(())
}

fn deployment(pods: i32) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": pods,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{
                    "name": "web", "image": "nginx:1.29",
                    "resources": { "requests": { "cpu": "250m", "memory": "256Mi" } },
                }]},
            },
        },
    })
}

async fn launch(world: &SimulatedWorld, instances: i32) -> Outcome<()> {
    let ec2 = world.ec2();
    let path = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id";
    let image = ec2
        .get_parameter(GetParameterInput::builder().name(path).build()?)
        .await?;
    let image = image
        .parameter
        .and_then(|parameter| parameter.value)
        .ok_or("no image")?;
    let data = RequestLaunchTemplateData::builder()
        .image_id(&image)
        .build();
    let template = CreateLaunchTemplateInput::builder()
        .launch_template_name("by-hand")
        .launch_template_data(data)
        .build()?;
    ec2.create_launch_template(template).await?;
    let subnets = ec2
        .describe_subnets(DescribeSubnetsInput::builder().build()?)
        .await?;
    let mut left = instances;
    while left > 0 {
        let overrides = subnets.subnets().iter().map(|subnet| {
            FleetLaunchTemplateOverridesRequest::builder()
                .instance_type(InstanceType::M5Xlarge)
                .set_subnet_id(subnet.subnet_id.clone())
                .build()
        });
        let config = FleetLaunchTemplateConfigRequest::builder()
            .launch_template_specification(
                FleetLaunchTemplateSpecificationRequest::builder()
                    .launch_template_name("by-hand")
                    .version("$Latest")
                    .build(),
            )
            .set_overrides(Some(overrides.collect()))
            .build();
        let fleet = CreateFleetInput::builder()
            .r#type(FleetType::Instant)
            .launch_template_configs(config)
            .target_capacity_specification(
                TargetCapacitySpecificationRequest::builder()
                    .total_target_capacity(left.min(100))
                    .default_target_capacity_type(DefaultTargetCapacityType::OnDemand)
                    .build(),
            )
            .build()?;
        let answer = ec2.create_fleet(fleet).await?;
        let got: usize = answer
            .instances()
            .iter()
            .map(|made| made.instance_ids().len())
            .sum();
        if got == 0 {
            return Err(format!("{:?}", answer.errors()).into());
        }
        left -= i32::try_from(got)?;
    }
    Ok(())
}

/// The process's high-water mark, where the system tells it.
fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

#[expect(clippy::print_stdout, reason = "the example's purpose is its output")]
fn say(line: &str) {
    println!("{line}");
}
