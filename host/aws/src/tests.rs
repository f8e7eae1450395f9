//! The provider as a whole on a fake AWS.

mod catalogue;
mod dry_runs;
mod interruptions;
mod kubelet_expressions;
mod launch;
mod node_class;
mod placement_groups;
mod relaunch;
mod reservations;
mod zonal_shift;

use std::sync::{Arc, Mutex};

use apis::ec2nodeclass::{AmiSelectorTerm, SecurityGroupSelectorTerm, SubnetSelectorTerm};
use apis::{Ec2NodeClass, NodePool};
use aws_sdk_ec2::types::InstanceTypeInfo;
use cloudprovider::{Clock, CloudProvider};
use jiff::{SignedDuration, Timestamp};
use locks::lock;
use scheduling::instance_type::InstanceType;

use crate::cache::after;
use crate::fake::FakeAws;
use crate::{AwsApis, AwsOptions, AwsProvider};

/// A clock that stands still until moved.
struct StoppedClock(Mutex<Timestamp>);

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        *lock(&self.0)
    }
}

/// A provider, its fake, and its clock.
struct Rig {
    aws: Arc<FakeAws>,
    clock: Arc<StoppedClock>,
    provider: Arc<AwsProvider>,
}

impl Rig {
    fn new(types: Vec<InstanceTypeInfo>) -> Self {
        Self::with_options(types, |_| {})
    }

    fn with_options(types: Vec<InstanceTypeInfo>, change: impl FnOnce(&mut AwsOptions)) -> Self {
        let aws = FakeAws::new(types);
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Arc::new(StoppedClock(Mutex::new(start)));
        let mut options = AwsOptions::new("demo", "us-east-1");
        options.cluster_endpoint = "https://demo.example".to_owned();
        options.cluster_cidr = Some("10.100.0.0/16".to_owned());
        options.disable_dry_run = true;
        change(&mut options);
        let apis = AwsApis::of(Arc::clone(&aws));
        let provider = Arc::new(AwsProvider::new(options, &apis, Arc::clone(&clock) as _));
        Self {
            aws,
            clock,
            provider,
        }
    }

    /// Another process takes over: it knows what AWS tells, and nothing else.
    fn restart(&mut self) {
        let options = self.provider.options();
        let apis = AwsApis::of(Arc::clone(&self.aws));
        let clock = Arc::clone(&self.clock) as _;
        self.provider = Arc::new(AwsProvider::new((*options).clone(), &apis, clock));
    }

    /// What `/metrics` shows of the provider.
    fn metrics(&self) -> String {
        let mut registry = prometheus_client::registry::Registry::default();
        self.provider.metrics().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    fn pass(&self, seconds: i64) {
        let mut now = lock(&self.clock.0);
        *now = after(*now, SignedDuration::from_secs(seconds));
    }

    /// The class with its status as the provider resolves it.
    async fn resolve(&self, mut class: Ec2NodeClass) -> Ec2NodeClass {
        let resolved = self.provider.resolve_node_class(&class, &[]).await.unwrap();
        class.status = Some(resolved.status);
        class.metadata.annotations = Some(resolved.annotations);
        class
    }

    async fn types(&self, class: &Ec2NodeClass) -> Arc<[Arc<InstanceType>]> {
        self.provider
            .instance_types(&NodePool::default(), class)
            .await
            .unwrap()
    }
}

/// A class that selects everything the fake has.
fn class() -> Ec2NodeClass {
    let mut class = Ec2NodeClass::default();
    class.metadata.name = Some("default".to_owned());
    class.metadata.uid = Some("class-uid".to_owned());
    class.metadata.generation = Some(1);
    class.spec.role = Some("team/node-role".to_owned());
    let ami = AmiSelectorTerm {
        alias: Some("al2023@latest".to_owned()),
        ..AmiSelectorTerm::default()
    };
    class.spec.ami_selector_terms = vec![ami];
    let tags = [("team".to_owned(), "a".to_owned())].into();
    class.spec.subnet_selector_terms = vec![SubnetSelectorTerm { tags, id: None }];
    let group = SecurityGroupSelectorTerm {
        id: Some("sg-1".to_owned()),
        ..SecurityGroupSelectorTerm::default()
    };
    class.spec.security_group_selector_terms = vec![group];
    class
}
