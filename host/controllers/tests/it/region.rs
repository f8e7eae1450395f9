//! An account and a cluster under the controllers as the program puts them together: the real provider on the simulated
//! EC2, its queue, and a process that may die.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_server::{DeleteOptions, Resource, Selection};
use aws::seam::Ec2Api as _;
use aws::{AwsApis, AwsProvider, SqsInterruptionQueue};
use aws_sdk_ec2::operation::describe_launch_templates::DescribeLaunchTemplatesInput;
use cloudprovider::InterruptionQueue;
use controllers::{
    Controllers, ControllersConfig, ControllersHooks, Metrics, Settings, SharedLedger,
};
use hooks::disruption::{DeclaredBudgets, DefaultConsolidation};
use scheduling::ranking::PriceRank;
use serde_json::{Value, json};
use sim::ec2::{Ec2Config, Ec2Faults, SimulatedEc2, SimulatedQueue};
use sim::{SimulatedWorld, WorldConfig};
use tokio::task::JoinHandle;

use crate::no_policies::NoPolicies;
use crate::process::{Death, Door, Judged, Process};

const CLUSTER_NAME: &str = "mortise-demo";

/// How long a launch template that nobody knows may stay: until the account is asked, five minutes, a moment of grace,
/// and sweeps that fail. Those of dry runs come and go meanwhile.
const TEMPLATE_SECONDS_MAX: u64 = 900;
const TEMPLATES_LOOKED_AT_EVERY_SECONDS: u64 = 10;

/// What one world is like.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    /// Deployments: pods, each of which needs a node of its own, and the memory that one asks for.
    pub(crate) deployments: Vec<(u64, &'static str)>,
    pub(crate) capacity_type: &'static str,
    pub(crate) faults: Ec2Faults,
    /// Whether notices of the cloud are heard.
    pub(crate) has_queue: bool,
}

/// A world with the process that runs in it now.
pub(crate) struct Region {
    pub(crate) world: Arc<SimulatedWorld>,
    ledger: SharedLedger,
    judged: Judged,
    pub(crate) process: Process,
    /// Where the cloud tells what it takes back.
    pub(crate) queue: Option<SimulatedQueue>,
    /// Where the controller looks instead.
    elsewhere: Option<SimulatedEc2>,
    running: JoinHandle<()>,
    claims: api_server::Watch,
    /// UIDs of all claims that there ever were.
    created: BTreeSet<String>,
}

impl Region {
    pub(crate) fn new(case: &Case, death: Option<Death>) -> Self {
        let world = SimulatedWorld::new(WorldConfig {
            seed: case.seed,
            ec2: Ec2Config {
                families: ["m5", "c5", "r5"].map(str::to_owned).to_vec(),
                faults: case.faults.clone(),
                ..Ec2Config::default()
            },
            ..WorldConfig::default()
        });
        world.install_crds().unwrap();
        tokio::spawn(Arc::clone(&world).run());
        for (resource, object) in [
            (&Resource::EC2_NODE_CLASSES, node_class()),
            (&Resource::NODE_POOLS, node_pool(case.capacity_type)),
        ] {
            world.install(resource, object).unwrap();
        }
        let queue = || SimulatedQueue::new(CLUSTER_NAME, world.ec2(), world.clock());
        let mut region = Self {
            claims: world.api().watch(&[&Resource::NODE_CLAIMS]),
            queue: case.has_queue.then(queue),
            world,
            ledger: SharedLedger::default(),
            judged: Judged::default(),
            process: Process::default(),
            elsewhere: None,
            running: tokio::spawn(async {}),
            created: BTreeSet::new(),
        };
        region.restart(death);
        region
    }

    /// Another process, which knows what the API server and EC2 tell it.
    pub(crate) fn restart(&mut self, death: Option<Death>) {
        self.running.abort();
        self.process = Process::dying(death);
        self.running = self.start();
    }

    /// Starts anew in a region that has nothing of this cluster.
    pub(crate) fn look_elsewhere(&mut self, region: &str) {
        let config = Ec2Config {
            region: region.to_owned(),
            zones: vec![format!("{region}a")],
            cluster_name: "another".to_owned(),
            ..Ec2Config::default()
        };
        self.elsewhere = Some(SimulatedEc2::new(config, self.world.clock()));
        self.restart(None);
    }

    /// Starts anew where the cluster is.
    pub(crate) fn look_here(&mut self) {
        self.elsewhere = None;
        self.restart(None);
    }

    /// Deletes a claim, as a user does.
    pub(crate) fn delete_claim(&self, name: &str) {
        let (api, options) = (self.world.api(), DeleteOptions::default());
        api.delete(&Resource::NODE_CLAIMS, "", name, &options)
            .unwrap();
    }

    /// A process: the provider and the controllers, as the program puts them together.
    fn start(&self) -> JoinHandle<()> {
        let (settings, clock) = (Settings::default(), Arc::new(self.world.clock()));
        let provider = self.provider();
        let door = Door {
            api: self.world.api().clone(),
            process: self.process.clone(),
            clock: self.world.clock(),
            ledger: Arc::clone(&self.ledger),
            judged: self.judged.clone(),
            settings: Arc::new(settings.clone()),
        };
        let interruptions = self.queue.clone().map(|queue| {
            let queue =
                SqsInterruptionQueue::new(Arc::new(queue), CLUSTER_NAME, Arc::clone(&provider));
            Arc::new(queue) as Arc<dyn InterruptionQueue>
        });
        let controllers = Controllers::new(ControllersConfig {
            client: kube::Client::new(door, "default"),
            provider: Arc::clone(&provider) as _,
            hooks: ControllersHooks {
                rank: Arc::new(PriceRank),
                consolidation: Arc::new(DefaultConsolidation),
                budgets: Arc::new(DeclaredBudgets),
            },
            clock,
            settings,
            ledger: Arc::clone(&self.ledger),
            metrics: Arc::new(Metrics::new()),
            policies: Arc::new(NoPolicies),
            interruptions,
            stands_by: false,
        })
        .unwrap();
        tokio::spawn(async move {
            while provider.hydrate().await.is_err() {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            let sweeps = async {
                loop {
                    tokio::time::sleep(Duration::from_mins(1)).await;
                    provider.sweep_launch_templates().await;
                }
            };
            tokio::join!(controllers.run(), sweeps);
        })
    }

    fn provider(&self) -> Arc<AwsProvider> {
        let account = self.elsewhere.as_ref().unwrap_or_else(|| self.world.ec2());
        let account = account.behind(Arc::new(self.process.clone()));
        let options = account.provider_options(CLUSTER_NAME);
        let apis = AwsApis::of(Arc::new(account));
        let clock = Arc::new(self.world.clock());
        Arc::new(AwsProvider::new(options, &apis, clock))
    }

    pub(crate) async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            while let Some(event) = self.claims.try_next().unwrap() {
                let uid = event.object["metadata"]["uid"].as_str();
                self.created.extend(uid.map(str::to_owned));
            }
        }
    }

    pub(crate) fn list(&self, resource: &Resource) -> Vec<Arc<Value>> {
        self.world.api().list(resource, &Selection::everything())
    }

    /// Installs the Deployments.
    pub(crate) fn deploy(&self, case: &Case) {
        for (number, (pods, memory)) in case.deployments.iter().enumerate() {
            let web = deployment(&format!("web-{number}"), *pods, memory);
            self.world.install(&Resource::DEPLOYMENTS, web).unwrap();
        }
    }

    pub(crate) fn names_of_claims(&self) -> BTreeSet<String> {
        let claims = self.list(&Resource::NODE_CLAIMS);
        let names = claims
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Every pod has a node, and every claim is one.
    pub(crate) fn is_registered(&self, case: &Case) -> bool {
        let pods: u64 = case.deployments.iter().map(|it| it.0).sum();
        let bound = self.list(&Resource::PODS);
        let bound = bound.iter().filter(|it| it["spec"]["nodeName"].is_string());
        let claims = self.list(&Resource::NODE_CLAIMS);
        bound.count() as u64 == pods && claims.iter().all(|it| is_true(it, "Registered"))
    }

    /// Provider ids of the instances that start or run.
    pub(crate) fn living(&self) -> BTreeSet<String> {
        let now = self.world.clock().now();
        let instances = self.world.ec2().instances();
        let living = instances.iter().filter(|it| it.is_billed(now));
        living.map(|it| it.provider_id().to_string()).collect()
    }

    /// What broke an invariant so far.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.judged.found.lock().unwrap().clone()
    }

    /// What is not as it must be once all is at rest.
    pub(crate) async fn faults(&self) -> Vec<String> {
        let mut faults = self.violations();
        let ec2 = self.world.ec2();
        let claims = self.list(&Resource::NODE_CLAIMS);
        let living = self.living();
        let owned: Vec<&str> = claims
            .iter()
            .filter_map(|it| it["status"]["providerID"].as_str())
            .collect();
        let counts = BTreeMap::from([
            ("claims ever created", self.created.len()),
            ("claims", claims.len()),
            ("claims that name an instance", owned.len()),
            (
                "instances named",
                owned.iter().collect::<BTreeSet<_>>().len(),
            ),
            (
                "instances named that live",
                owned.iter().filter(|it| living.contains(**it)).count(),
            ),
            ("instances that live", living.len()),
            ("instances ever launched", size(ec2.launches())),
        ]);
        if counts.values().collect::<BTreeSet<_>>().len() != 1 {
            faults.push(format!("not equal: {counts:?}"));
        }
        for (what, count) in [
            ("terminations", size(ec2.terminations())),
            ("launch templates", self.templates_left().await),
        ] {
            if count != 0 {
                faults.push(format!("{what}: {count}"));
            }
        }
        faults
    }

    /// Launch templates of which there is never a moment without.
    async fn templates_left(&self) -> usize {
        let mut left = 0;
        for _ in 0..TEMPLATE_SECONDS_MAX / TEMPLATES_LOOKED_AT_EVERY_SECONDS {
            let every = DescribeLaunchTemplatesInput::builder().build().unwrap();
            // The account may fail or be out of breath for us, too.
            if let Ok(answer) = self.world.ec2().describe_launch_templates(every).await {
                left = answer.launch_templates().len();
                if left == 0 {
                    break;
                }
            }
            tokio::time::sleep(Duration::from_secs(TEMPLATES_LOOKED_AT_EVERY_SECONDS)).await;
        }
        left
    }
}

fn is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == kind && it["status"] == "True")
}

fn node_class() -> Value {
    let discovered = json!([{"tags": {"karpenter.sh/discovery": CLUSTER_NAME}}]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovered, "securityGroupSelectorTerms": discovered,
        },
    })
}

/// Types of two CPUs only, so that each pod needs a node of its own.
fn node_pool(capacity_type: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]},
                    {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"]},
                ],
            }},
        },
    })
}

fn deployment(name: &str, pods: u64, memory: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "c", "image": "i",
                    "resources": {"requests": {"cpu": "1500m", "memory": memory}},
                }]},
            },
        },
    })
}

pub(crate) fn size(number: u64) -> usize {
    usize::try_from(number).unwrap()
}
