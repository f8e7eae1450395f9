//! What a refresh of the whole catalogue costs the AWS provider, and what it keeps: every type of the region in four
//! zones, on demand, spot and reserved.
//!
//! `cargo bench -p sim --bench catalogue`. The account is simulated, so that its answers cost time as well; `answers`
//! tells how much.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot set up its world has failed, and one that tells nothing is of no use"
)]

use std::alloc::System;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apis::Ec2NodeClass;
use apis::NodePool;
use aws::seam::Ec2Api as _;
use aws::{AwsApis, AwsOptions, AwsProvider};
use aws_sdk_ec2::operation::describe_instance_type_offerings::DescribeInstanceTypeOfferingsInput;
use aws_sdk_ec2::operation::describe_instance_types::DescribeInstanceTypesInput;
use aws_sdk_ec2::types::LocationType;
use cloudprovider::CloudProvider as _;
use criterion::Criterion;
use scheduling::instance_type::InstanceType;
use serde_json::json;
use sim::SimulatedClock;
use sim::catalogue::Catalogue;
use sim::ec2::{CapacityReservationSpec, DEMO_NAME, Ec2Config, SimulatedEc2};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ZONES: [&str; 4] = ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let rig = runtime.block_on(Rig::new());
    rig.tell_what_is_kept(&runtime);
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    rig.measure(&mut criterion, &runtime);
    criterion.final_summary();
}

struct Rig {
    ec2: SimulatedEc2,
    provider: AwsProvider,
    class: Ec2NodeClass,
}

impl Rig {
    async fn new() -> Self {
        let config = Ec2Config {
            zones: ZONES.map(str::to_owned).to_vec(),
            cluster_name: DEMO_NAME.to_owned(),
            latency: false,
            capacity_reservations: reservations(),
            ..Ec2Config::default()
        };
        let ec2 = SimulatedEc2::new(config, SimulatedClock::virtual_time());
        let provider = provider(&ec2);
        provider.hydrate().await.unwrap();
        let mut class = class();
        let resolved = provider.resolve_node_class(&class, &[]).await.unwrap();
        class.status = Some(resolved.status);
        Self {
            ec2,
            provider,
            class,
        }
    }

    fn tell_what_is_kept(&self, runtime: &Runtime) {
        let region = Region::new(ALLOCATOR);
        let types = runtime.block_on(types(&self.provider, &self.class));
        let change = region.change();
        let kept = change.bytes_allocated - change.bytes_deallocated;
        let offerings: usize = types.iter().map(|it| it.offerings.len()).sum();
        println!(
            "{} types, {offerings} offerings: {:.1} MB kept",
            types.len(),
            kept as f64 / 1e6
        );
    }

    fn measure(&self, criterion: &mut Criterion, runtime: &Runtime) {
        criterion.bench_function("refresh/answers", |bencher| {
            bencher.iter(|| runtime.block_on(self.answers()));
        });
        criterion.bench_function("refresh/answers, and reading them", |bencher| {
            bencher.iter(|| runtime.block_on(self.provider.refresh_instance_types()));
        });
        criterion.bench_function("refresh/the list of a class, built", |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| self.built(runtime)).sum());
        });
        criterion.bench_function("refresh/the list of a class, kept", |bencher| {
            bencher.iter(|| black_box(runtime.block_on(types(&self.provider, &self.class))));
        });
    }

    /// How long the list takes where nothing is known but what the account answered.
    fn built(&self, runtime: &Runtime) -> Duration {
        let provider = provider(&self.ec2);
        runtime.block_on(provider.hydrate()).unwrap();
        let begun = Instant::now();
        black_box(runtime.block_on(types(&provider, &self.class)));
        begun.elapsed()
    }

    /// What the account is asked for by a refresh.
    async fn answers(&self) {
        let mut next = None;
        loop {
            let page = DescribeInstanceTypesInput::builder()
                .max_results(100)
                .set_next_token(next);
            let answer = self.ec2.describe_instance_types(page.build().unwrap());
            next = black_box(answer.await.unwrap()).next_token;
            if next.is_none() {
                break;
            }
        }
        loop {
            let page = DescribeInstanceTypeOfferingsInput::builder()
                .location_type(LocationType::AvailabilityZone)
                .max_results(1000)
                .set_next_token(next);
            let answer = self
                .ec2
                .describe_instance_type_offerings(page.build().unwrap());
            next = black_box(answer.await.unwrap()).next_token;
            if next.is_none() {
                break;
            }
        }
    }
}

fn provider(ec2: &SimulatedEc2) -> AwsProvider {
    let options = AwsOptions {
        disable_dry_run: true,
        ..ec2.provider_options(DEMO_NAME)
    };
    let apis = AwsApis::of(Arc::new(ec2.clone()));
    AwsProvider::new(options, &apis, Arc::new(SimulatedClock::virtual_time()))
}

async fn types(provider: &AwsProvider, class: &Ec2NodeClass) -> Arc<[Arc<InstanceType>]> {
    let types = provider.instance_types(&NodePool::default(), class).await;
    types.unwrap()
}

/// One of every type in every zone.
fn reservations() -> Vec<CapacityReservationSpec> {
    let types = Catalogue::embedded().iter();
    let everywhere = types.flat_map(|it| ZONES.map(|zone| (it.name, zone)));
    everywhere
        .map(|(instance_type, zone)| CapacityReservationSpec {
            name: format!("{instance_type}-{zone}"),
            instance_type: instance_type.to_string(),
            zone: zone.to_owned(),
            instances: 1,
            tags: [("team".to_owned(), "a".to_owned())].into(),
        })
        .collect()
}

fn class() -> Ec2NodeClass {
    let discovered = json!([{"tags": {"karpenter.sh/discovery": DEMO_NAME}}]);
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default", "uid": "1", "resourceVersion": "1"},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovered, "securityGroupSelectorTerms": discovered,
            "capacityReservationSelectorTerms": [{"tags": {"team": "a"}}],
        },
    });
    serde_json::from_value(class).unwrap()
}
