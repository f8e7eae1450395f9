//! The provider over the real SDK, pointed at moto.

use std::sync::{Arc, Mutex};

use apis::Ec2NodeClass;
use aws::sdk::SdkClients;
use aws::{AwsApis, AwsOptions, AwsProvider};
use aws_sdk_ec2::config::{Credentials, Region};
use cloudprovider::{Clock, CloudProvider as _};
use jiff::{SignedDuration, Timestamp};
use locks::lock;
use serde_json::json;
use tests::moto::Moto;

/// The time of day, and what a test lets pass beside it.
pub(crate) struct ShiftedClock(Mutex<SignedDuration>);

impl ShiftedClock {
    pub(crate) fn pass(&self, seconds: i64) {
        let mut shift = lock(&self.0);
        *shift += SignedDuration::from_secs(seconds);
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        Timestamp::now() + *lock(&self.0)
    }
}

pub(crate) struct Rig {
    pub(crate) clients: SdkClients,
    pub(crate) clock: Arc<ShiftedClock>,
    pub(crate) provider: Arc<AwsProvider>,
}

impl Rig {
    /// A provider for the cluster in moto's account, for whoever has this key.
    pub(crate) async fn new(moto: &Moto, (key, secret): (&str, &str)) -> Self {
        let config = SdkClients::loader()
            .endpoint_url(moto.endpoint())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new(key, secret, None, None, "tests"))
            .load()
            .await;
        let clients = SdkClients::of(&config);
        let clock = Arc::new(ShiftedClock(Mutex::new(SignedDuration::ZERO)));
        let options = AwsOptions {
            cluster_endpoint: "https://demo.example".to_owned(),
            cluster_cidr: Some("10.100.0.0/16".to_owned()),
            // moto takes the dry run of a fleet for a fleet.
            disable_dry_run: true,
            ..AwsOptions::new("demo", "us-east-1")
        };
        let apis = AwsApis::of(Arc::new(clients.clone()));
        let provider = AwsProvider::new(options, &apis, Arc::clone(&clock) as _);
        Self {
            clients,
            clock,
            provider: Arc::new(provider),
        }
    }

    /// The class with what AWS says of it.
    pub(crate) async fn resolve(&self, mut class: Ec2NodeClass) -> Ec2NodeClass {
        let resolved = self.provider.resolve_node_class(&class, &[]).await.unwrap();
        class.status = Some(resolved.status);
        class.metadata.annotations = Some(resolved.annotations);
        class
    }
}

/// A class of AL2023 that selects what the account has.
pub(crate) fn class() -> Ec2NodeClass {
    let tags = json!({"karpenter.sh/discovery": "demo"});
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default", "uid": "class-uid", "generation": 1},
        "spec": {
            "role": "node-role",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": tags}],
            "securityGroupSelectorTerms": [{"tags": tags}],
        },
    });
    serde_json::from_value(class).unwrap()
}
