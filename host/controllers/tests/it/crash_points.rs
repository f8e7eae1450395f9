//! A controller that dies anywhere between the creation of a claim and the registration of its node, at a write or at a
//! call of EC2: every claim gets one instance, ever, and nothing is left over.
//!
//! Worlds and deaths are drawn from seeds, so that what fails is told by its world and its deaths and fails again. The
//! provider is the real one on the simulated EC2, which claims ask together; what was sent arrives, whoever died since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::seam::Ec2Api as _;
use aws::{AwsApis, AwsOptions, AwsProvider};
use aws_sdk_ec2::operation::describe_launch_templates::DescribeLaunchTemplatesInput;
use controllers::{
    Controllers, ControllersConfig, ControllersHooks, Metrics, Settings, SharedLedger,
};
use disruption::hooks::{DeclaredBudgets, DefaultConsolidation};
use scheduling::ranking::PriceRank;
use serde_json::{Value, json};
use sim::api_server::{Resource, Selection};
use sim::ec2::{Ec2Config, Ec2Faults, InstanceState, SimulatedInstance};
use sim::random::SplitMix64;
use sim::{SimulatedWorld, WorldConfig};
use tokio::task::JoinHandle;

use crate::process::{Death, Door, Judged, Process};

/// Worlds that differ; each is left by many deaths.
const WORLDS: u64 = 25;
/// Deaths in all, where nobody asks for another number: a share of the 2,000 that a run of the whole has, and of that a
/// tenth where nothing is optimised.
const DEATHS: u64 = if cfg!(debug_assertions) { 25 } else { 250 };
/// Processes of one world that may die, one after another.
const DEATHS_PER_WORLD_MAX: usize = 4;
/// Calls of a process that starts in the middle until it has found its way.
const CALLS_OF_A_START: u64 = 40;

const CLASS_IS_READY_SECONDS: u64 = 8;
const SETTLES_SECONDS_MAX: u64 = 900;
/// Longer than two passes of garbage collection and what EC2 lists late.
const REST_SECONDS: u64 = 260;
/// How long a launch template that nobody knows may stay: until the account is asked, five minutes, a moment of grace,
/// and sweeps that fail. Those of dry runs come and go meanwhile.
const TEMPLATE_SECONDS_MAX: u64 = 900;
const TEMPLATES_LOOKED_AT_EVERY_SECONDS: u64 = 10;

/// What one world is like.
#[derive(Debug, Clone)]
struct Case {
    seed: u64,
    /// Deployments: pods, each of which needs a node of its own, and the memory that one asks for.
    deployments: Vec<(u64, &'static str)>,
    capacity_type: &'static str,
    faults: Ec2Faults,
}

impl Case {
    fn of(seed: u64) -> Self {
        let mut chance = SplitMix64::new(seed, "crash-points");
        let sizes = ["1Gi", "5Gi", "9Gi"];
        let deployments = sizes[..size(chance.between(1, 3))].iter();
        let deployments = deployments.map(|memory| (chance.between(1, 4), *memory));
        let deployments = deployments.collect();
        let pick = |number: u64, of: &[f64]| of[size(number % of.len() as u64)];
        Self {
            deployments,
            capacity_type: ["on-demand", "spot"][size(chance.between(0, 1))],
            faults: Ec2Faults {
                on_demand_pools_dry: 0.0,
                spot_pools_dry: 0.0,
                visibility_delay_seconds_max: [0, 2, 15, 60][size(chance.between(0, 3))],
                throttling: chance.between(0, 3) == 0,
                internal_error_chance: pick(chance.next_u64(), &[0.0, 0.0, 0.03]),
                lost_answer_chance: pick(chance.next_u64(), &[0.0, 0.3]),
                ..Ec2Faults::default()
            },
            seed,
        }
    }
}

/// A world with the process that runs in it now.
struct Region {
    world: Arc<SimulatedWorld>,
    ledger: SharedLedger,
    judged: Judged,
    process: Process,
    running: JoinHandle<()>,
    claims: sim::api_server::Watch,
    /// UIDs of all claims that there ever were.
    created: BTreeSet<String>,
}

impl Region {
    fn new(case: &Case, death: Option<Death>) -> Self {
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
        let (ledger, judged) = (SharedLedger::default(), Judged::default());
        let process = Process::dying(death);
        let running = start(&world, &process, &ledger, &judged);
        Self {
            claims: world.api().watch(&[&Resource::NODE_CLAIMS]),
            world,
            ledger,
            judged,
            process,
            running,
            created: BTreeSet::new(),
        }
    }

    /// Another process, which knows what the API server and EC2 tell it.
    fn restart(&mut self, death: Option<Death>) {
        self.running.abort();
        self.process = Process::dying(death);
        self.running = start(&self.world, &self.process, &self.ledger, &self.judged);
    }

    async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            while let Some(event) = self.claims.try_next() {
                let uid = event.object["metadata"]["uid"].as_str();
                self.created.extend(uid.map(str::to_owned));
            }
        }
    }

    fn list(&self, resource: &Resource) -> Vec<Arc<Value>> {
        self.world.api().list(resource, &Selection::everything())
    }

    /// Every pod has a node, and every claim is one.
    fn is_registered(&self, case: &Case) -> bool {
        let pods: u64 = case.deployments.iter().map(|it| it.0).sum();
        let bound = self.list(&Resource::PODS);
        let bound = bound.iter().filter(|it| it["spec"]["nodeName"].is_string());
        let claims = self.list(&Resource::NODE_CLAIMS);
        bound.count() as u64 == pods && claims.iter().all(|it| is_true(it, "Registered"))
    }

    /// What is not as it must be once all is at rest.
    async fn faults(&self) -> Vec<String> {
        let mut faults = self.judged.found.lock().unwrap().clone();
        let ec2 = self.world.ec2();
        let claims = self.list(&Resource::NODE_CLAIMS);
        let now = self.world.clock().now();
        let living: BTreeSet<String> = ec2
            .instances()
            .iter()
            .filter(|it| {
                matches!(
                    it.state(now),
                    InstanceState::Pending | InstanceState::Running
                )
            })
            .map(SimulatedInstance::provider_id)
            .collect();
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

/// A process: the provider and the controllers, as the program puts them together.
fn start(
    world: &Arc<SimulatedWorld>,
    process: &Process,
    ledger: &SharedLedger,
    judged: &Judged,
) -> JoinHandle<()> {
    let (settings, clock) = (Settings::default(), Arc::new(world.clock()));
    let account = world.ec2().behind(Arc::new(process.clone()));
    let options = AwsOptions {
        cluster_endpoint: "https://kubernetes.default.svc".to_owned(),
        cluster_cidr: Some("10.100.0.0/16".to_owned()),
        ..AwsOptions::new("mortise-demo", account.region())
    };
    let apis = AwsApis::of(Arc::new(account));
    let provider = Arc::new(AwsProvider::new(options, &apis, Arc::clone(&clock) as _));
    let door = Door {
        api: world.api().clone(),
        process: process.clone(),
        clock: world.clock(),
        ledger: Arc::clone(ledger),
        judged: judged.clone(),
        settings: Arc::new(settings.clone()),
    };
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
        ledger: Arc::clone(ledger),
        metrics: Arc::new(Metrics::new()),
        policies: Arc::new(controllers::NoPolicies),
        interruptions: None,
    });
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

fn node_class() -> Value {
    let discovered = json!([{"tags": {"karpenter.sh/discovery": "mortise-demo"}}]);
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

/// What came of a world in which processes died.
struct Played {
    /// What the first process did until every claim had its node, or until it died.
    calls: Vec<String>,
    /// Who died, and of what.
    deaths: Vec<String>,
    faults: Vec<String>,
}

/// Plays a world in which the processes die so, one after another; the last one lives.
fn play(case: &Case, deaths: &[Death]) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut deaths = deaths.iter().copied();
        let mut death = deaths.next();
        let mut region = Region::new(case, death);
        region.pass(CLASS_IS_READY_SECONDS).await;
        for (number, (pods, memory)) in case.deployments.iter().enumerate() {
            let web = deployment(&format!("web-{number}"), *pods, memory);
            region.world.install(&Resource::DEPLOYMENTS, web).unwrap();
        }
        let mut played = Played {
            calls: Vec::new(),
            deaths: Vec::new(),
            faults: Vec::new(),
        };
        for second in 0.. {
            if second == SETTLES_SECONDS_MAX {
                played.faults.push("not every pod got a node".to_owned());
                break;
            }
            if region.process.is_dead() {
                let of = region.process.calls();
                let at = death.map_or(0, |it| it.call);
                let when = if death.is_some_and(|it| it.is_sent) {
                    "after"
                } else {
                    "before"
                };
                played
                    .deaths
                    .push(format!("{when} call {at}, {}", of[at - 1]));
                death = deaths.next();
                region.restart(death);
            } else if region.is_registered(case) {
                break;
            }
            region.pass(1).await;
        }
        played.calls = region.process.calls();
        if death.is_some() {
            // One that was to die and came through would do so at rest, with nobody to follow it.
            region.restart(None);
        }
        region.pass(REST_SECONDS).await;
        played.faults.extend(region.faults().await);
        played
    })
}

/// Draws deaths of the processes of a world: the first between the first claim and the last node, the others from the
/// start of their process on.
fn draw(chance: &mut SplitMix64, calls: &[String]) -> Vec<Death> {
    let is_claim = |call: &&String| call.starts_with("POST") && call.ends_with("/nodeclaims");
    let first = calls.iter().position(|it| is_claim(&it)).unwrap() as u64 + 1;
    let last = calls.len() as u64;
    let mut deaths = Vec::new();
    while deaths.is_empty() || (deaths.len() < DEATHS_PER_WORLD_MAX && chance.between(0, 1) == 1) {
        let call = if deaths.is_empty() {
            chance.between(first, last)
        } else {
            chance.between(1, last - first + CALLS_OF_A_START)
        };
        deaths.push(Death {
            call: size(call),
            is_sent: chance.between(0, 1) == 1,
        });
    }
    deaths
}

/// Deaths of one world until there are enough; how many there were, and what went wrong.
fn kill(seed: u64, deaths_wanted: usize) -> (usize, Vec<String>) {
    let case = Case::of(seed);
    let reference = play(&case, &[]);
    let mut wrong: Vec<String> = Vec::new();
    if !reference.faults.is_empty() {
        wrong.push(format!("{case:?} without a death: {:?}", reference.faults));
    }
    let mut chance = SplitMix64::new(seed, "deaths");
    let mut deaths = 0;
    while deaths < deaths_wanted && wrong.len() < 3 {
        let played = play(&case, &draw(&mut chance, &reference.calls));
        deaths += played.deaths.len();
        if !played.faults.is_empty() {
            wrong.push(format!(
                "{case:?}, dead {:?}: {:#?}",
                played.deaths, played.faults
            ));
        }
    }
    (deaths, wrong)
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn number(variable: &str, default: u64) -> u64 {
    let told = std::env::var(variable).ok();
    told.map_or(default, |it| it.parse().unwrap())
}

/// `MORTISE_CRASH_POINTS` sets how many deaths there are, `MORTISE_CRASH_SEED` which worlds.
#[test]
fn wherever_the_controller_dies_as_many_instances_are_launched_as_there_are_claims() {
    let wanted = size(number("MORTISE_CRASH_POINTS", DEATHS));
    let first = number("MORTISE_CRASH_SEED", 0);
    let seeds = Mutex::new(first..first + WORLDS);
    let found = Mutex::new((0, Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(seed) = seeds.lock().unwrap().next() else {
                        return;
                    };
                    let (deaths, wrong) = kill(seed, wanted.div_ceil(size(WORLDS)));
                    let mut found = found.lock().unwrap();
                    found.0 += deaths;
                    found.1.extend(wrong);
                }
            });
        }
    });
    let (deaths, wrong) = found.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(deaths >= wanted, "{deaths} of {wanted}");
}
