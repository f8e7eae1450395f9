//! Families of problems by seed and size, and instance types to solve them with: for benchmarks and property tests.
//!
//! Everything comes from the seed, so that a result can be told in a line. Nothing here knows the solver.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "every user takes its part; a generator that fails has no one to tell but its reader"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodePool, labels};
use scheduling::instance_type::{InstanceType, Offering, Overhead};
use scheduling::pod::{Pod, PodKey, ShapeTable};
use scheduling::problem::{ExistingNode, Options, Pool, Problem};
use scheduling::requirements::{Operator, Requirement, Requirements};
use serde_json::{Value, json};

const MIB_MILLIS: i64 = 1024 * 1024 * 1000;
const ZONES: [&str; 4] = ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"];

/// What the pods of a problem are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// No constraint, a few sizes.
    Plain,
    /// Services of a company: replicas by a power law, sizes log-normal, most of them with a constraint.
    Fleet,
    /// A fifth each: plain, zone spread, host spread, zone affinity, one pod a host.
    Diverse,
    /// Preferences of which most cannot be met.
    Prefs,
    /// Groups of equal pods without constraints: as many as the name says.
    Groups(usize),
}

impl Family {
    /// The family of a name such as `plain`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "plain" => Some(Self::Plain),
            "fleet" => Some(Self::Fleet),
            "diverse" => Some(Self::Diverse),
            "prefs" => Some(Self::Prefs),
            "groups" => Some(Self::Groups(2000)),
            _ => None,
        }
    }
}

/// A small generator with a known sequence (splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        (self.next() % sides as u64) as usize
    }

    /// A number in `[0, 1)`.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of the values.
    pub fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.roll(values.len())]
    }

    /// A number around zero, one in most cases.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }
}

/// A problem of the family: its pods, and the pools that the family is used to.
pub fn problem(
    family: Family,
    seed: u64,
    count: usize,
    types: &Arc<[Arc<InstanceType>]>,
) -> Problem {
    let mut problem = Problem::new(Options::default());
    problem.pods = pods(family, seed, count);
    problem.pools = node_pools(family)
        .into_iter()
        .map(|node_pool| Pool {
            node_pool: Arc::new(node_pool),
            instance_types: Arc::clone(types),
            free_addresses: BTreeMap::new(),
            in_use: Resources::new(),
        })
        .collect();
    problem
}

/// The pools: the getting-started pool with Spot and both architectures, and for a fleet one of GPUs.
pub fn node_pools(family: Family) -> Vec<NodePool> {
    let pool = |name: &str, weight: u32, requirements: Value| {
        let class =
            json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": name, "uid": name},
            "spec": {
                "weight": weight,
                "limits": {"cpu": "10000000", "memory": "10000000Gi"},
                "template": {"spec": {
                    "nodeClassRef": class, "expireAfter": "Never", "requirements": requirements,
                }},
                "disruption": {"consolidateAfter": "0s"},
            },
        });
        serde_json::from_value(pool).unwrap()
    };
    let mut pools = vec![pool(
        "default",
        10,
        json!([
            {"key": labels::CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]},
            {"key": labels::INSTANCE_CATEGORY, "operator": "In", "values": ["c", "m", "r"]},
            {"key": labels::INSTANCE_GENERATION, "operator": "Gt", "values": ["2"]},
        ]),
    )];
    if family == Family::Fleet {
        pools.push(pool(
            "gpu",
            1,
            json!([
                {"key": labels::INSTANCE_CATEGORY, "operator": "In", "values": ["g", "p"]},
                {"key": labels::CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
            ]),
        ));
    }
    pools
}

/// Makes pods; equal ones are parsed once.
struct Pods {
    dice: Dice,
    shapes: ShapeTable,
    parsed: BTreeMap<String, Pod>,
    made: Vec<Arc<Pod>>,
    /// Of equal pods: number by what they are, and the Deployment that would keep them.
    numbers: BTreeMap<String, usize>,
    deployments: Vec<Value>,
}

impl Pods {
    fn add(&mut self, name: &str, (namespace, labels): (&str, &Value), spec: &Value) {
        let uid = format!("{:016x}-{:04x}", self.dice.next(), self.made.len());
        let kind = format!("{namespace}{labels}{spec}");
        self.count(&kind, (namespace, labels), spec);
        let template = self.parsed.entry(kind).or_insert_with(|| {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": "template", "namespace": namespace, "labels": labels,
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": spec,
                "status": {"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
                ]},
            });
            Pod::parse(&serde_json::from_value(pod).unwrap(), &mut self.shapes).unwrap()
        });
        self.made.push(Arc::new(Pod {
            key: PodKey::new(namespace, name),
            uid,
            ..template.clone()
        }));
    }
}

impl Pods {
    fn count(&mut self, kind: &str, (namespace, labels): (&str, &Value), spec: &Value) {
        let next = self.deployments.len();
        let number = *self.numbers.entry(kind.to_owned()).or_insert(next);
        if number == next {
            let own = json!({"deployment": format!("d{number}")});
            let mut labels = labels.clone();
            labels["deployment"] = own["deployment"].clone();
            self.deployments.push(json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": format!("d{number}"), "namespace": namespace},
                "spec": {
                    "replicas": 0, "selector": {"matchLabels": own},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            }));
        }
        let replicas = &mut self.deployments[number]["spec"]["replicas"];
        *replicas = json!(replicas.as_u64().unwrap() + 1);
    }
}

fn containers(cpu_millis: usize, memory_mib: usize) -> Value {
    json!([{"name": "c", "image": "x", "resources": {"requests": {
        "cpu": format!("{cpu_millis}m"), "memory": format!("{memory_mib}Mi"),
    }}}])
}

fn term(key: &str, label: &str, value: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {label: value}}})
}

fn spread(key: &str, (label, value): (&str, &str), when: &str) -> Value {
    json!([{
        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {label: value}},
    }])
}

/// Pods of the family.
pub fn pods(family: Family, seed: u64, count: usize) -> Vec<Arc<Pod>> {
    made(family, seed, count).made
}

/// The same pods as Deployments, those that are equal together: for worlds that make their pods themselves.
pub fn deployments(family: Family, seed: u64, count: usize) -> Vec<Value> {
    made(family, seed, count).deployments
}

fn made(family: Family, seed: u64, count: usize) -> Pods {
    let mut pods = Pods {
        dice: Dice::new(seed),
        shapes: ShapeTable::new(),
        parsed: BTreeMap::new(),
        made: Vec::with_capacity(count),
        numbers: BTreeMap::new(),
        deployments: Vec::new(),
    };
    match family {
        Family::Plain => plain(&mut pods, count),
        Family::Fleet => fleet(&mut pods, count),
        Family::Diverse => diverse(&mut pods, count),
        Family::Prefs => preferring(&mut pods, count),
        Family::Groups(groups) => equal(&mut pods, count, groups),
    }
    pods
}

fn plain(pods: &mut Pods, count: usize) {
    for index in 0..count {
        let cpu = *pods.dice.pick(&[100, 250, 500, 1000, 1500, 3000]);
        let memory = *pods.dice.pick(&[128, 256, 512, 1024, 2048, 4096, 8192]);
        let spec = json!({"containers": containers(cpu, memory)});
        pods.add(
            &format!("p{index}"),
            ("default", &json!({"app": "x"})),
            &spec,
        );
    }
}

fn diverse(pods: &mut Pods, count: usize) {
    const VALUES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
    for index in 0..count {
        let cpu = *pods.dice.pick(&[100, 250, 500, 1000, 1500]);
        let memory = *pods.dice.pick(&[100, 256, 512, 1024, 2048, 4096]);
        let (own, other) = (*pods.dice.pick(&VALUES), *pods.dice.pick(&VALUES));
        let mut spec = json!({"containers": containers(cpu, memory)});
        let mut pod_labels = json!({"my-label": own});
        let kind = index * 5 / count;
        match kind {
            1 | 2 => {
                let key = [labels::TOPOLOGY_ZONE, labels::HOSTNAME][kind - 1];
                spec["topologySpreadConstraints"] =
                    spread(key, ("my-label", other), "DoNotSchedule");
            }
            3 => {
                pod_labels = json!({"my-affinity": own});
                let term = term(labels::TOPOLOGY_ZONE, "my-affinity", own);
                spec["affinity"] = json!({"podAffinity":
                    {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
            }
            4 => {
                pod_labels = json!({"app": "nginx"});
                let term = term(labels::HOSTNAME, "app", "nginx");
                spec["affinity"] = json!({"podAntiAffinity":
                    {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
            }
            _ => {}
        }
        pods.add(&format!("p{kind}-{index}"), ("default", &pod_labels), &spec);
    }
}

fn preferring(pods: &mut Pods, count: usize) {
    let zone = term(labels::TOPOLOGY_ZONE, "app", "nginx");
    let host = term(labels::HOSTNAME, "app", "nginx");
    let preference = json!({"matchExpressions": [
        {"key": labels::TOPOLOGY_ZONE, "operator": "In", "values": [ZONES[0]]},
    ]});
    let spec = json!({
        "containers": containers(250, 256),
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": 1, "preference": preference}]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "podAffinityTerm": zone}, {"weight": 1, "podAffinityTerm": host},
            ]},
        },
    });
    for index in 0..count {
        pods.add(
            &format!("p{index}"),
            ("default", &json!({"app": "nginx"})),
            &spec,
        );
    }
}

fn equal(pods: &mut Pods, count: usize, groups: usize) {
    let specs: Vec<Value> = (0..groups)
        .map(|_| {
            let (cpu, memory) = size(&mut pods.dice);
            json!({"containers": containers(cpu, memory)})
        })
        .collect();
    for index in 0..count {
        let group = index % groups;
        let pod_labels = json!({"app": format!("svc-{group}")});
        pods.add(
            &format!("svc-{group}-{index}"),
            ("default", &pod_labels),
            &specs[group],
        );
    }
}

/// CPU around a quarter of a core, memory in the usual proportions.
fn size(dice: &mut Dice) -> (usize, usize) {
    let cpu = (250.0 * (dice.normal() * 0.9).exp()).clamp(25.0, 8000.0) as usize;
    let memory = cpu as f64 * dice.pick(&[0.5, 1.0, 2.0, 4.0, 8.0]);
    (cpu, (memory as usize).clamp(32, 65_536))
}

fn fleet(pods: &mut Pods, count: usize) {
    let mut service = 0;
    while pods.made.len() < count {
        service += 1;
        let replicas = (2.0 * (1.0 - pods.dice.share()).powf(-0.9)).min(400.0) as usize;
        let spec = service_spec(&mut pods.dice, &format!("svc-{service}"));
        let namespace = format!("ns{}", pods.dice.roll(20));
        let pod_labels = json!({
            "app": format!("svc-{service}"), "team": format!("t{}", pods.dice.roll(20)),
        });
        for replica in 0..replicas.min(count - pods.made.len()) {
            let name = format!("svc-{service}-{replica}");
            pods.add(&name, (&namespace, &pod_labels), &spec);
        }
    }
}

fn service_spec(dice: &mut Dice, app: &str) -> Value {
    let (cpu, memory) = size(dice);
    let mut spec = json!({"containers": containers(cpu, memory)});
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    match dice.share() {
        draw if draw < 0.30 => {
            let label = ("app", app);
            spec["topologySpreadConstraints"] =
                spread(labels::TOPOLOGY_ZONE, label, "DoNotSchedule");
        }
        draw if draw < 0.40 => {
            spec["affinity"]["podAntiAffinity"][required] =
                json!([term(labels::HOSTNAME, "app", app)]);
        }
        draw if draw < 0.43 => {
            spec["affinity"]["podAffinity"][required] =
                json!([term(labels::TOPOLOGY_ZONE, "app", app)]);
        }
        draw if draw < 0.50 => {
            spec["topologySpreadConstraints"] =
                spread(labels::HOSTNAME, ("app", app), "ScheduleAnyway");
        }
        _ => {}
    }
    match dice.share() {
        draw if draw < 0.15 => spec["nodeSelector"] = json!({labels::ARCH: "arm64"}),
        draw if draw < 0.55 => spec["nodeSelector"] = json!({labels::ARCH: "amd64"}),
        draw if draw < 0.60 => {
            spec["nodeSelector"] = json!({labels::CAPACITY_TYPE: "on-demand"});
        }
        draw if draw < 0.65 => {
            spec["affinity"]["nodeAffinity"][required] = json!({"nodeSelectorTerms": [
                {"matchExpressions": [
                    {"key": labels::INSTANCE_CATEGORY, "operator": "In", "values": ["m", "r"]},
                    {"key": labels::INSTANCE_GENERATION, "operator": "Gt", "values": ["5"]},
                ]},
            ]});
        }
        draw if draw < 0.655 => {
            spec["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = json!("1");
        }
        _ => {}
    }
    spec
}

/// About so many instance types: families of the categories that exist, sizes from medium to 24xlarge, Spot at 28 to
/// 63 % of on-demand by type and zone.
pub fn catalogue(seed: u64, count: usize) -> Arc<[Arc<InstanceType>]> {
    const SIZES: [(&str, i64); 10] = [
        ("medium", 1),
        ("large", 2),
        ("xlarge", 4),
        ("2xlarge", 8),
        ("4xlarge", 16),
        ("8xlarge", 32),
        ("12xlarge", 48),
        ("16xlarge", 64),
        ("24xlarge", 96),
        ("48xlarge", 192),
    ];
    const CATEGORIES: [(&str, i64, f64); 5] = [
        ("c", 2, 0.0425),
        ("m", 4, 0.048),
        ("r", 8, 0.063),
        ("g", 4, 0.25),
        ("t", 4, 0.042),
    ];
    const VARIANTS: [(&str, &str, f64); 8] = [
        ("g", "arm64", 0.8),
        ("i", "amd64", 1.0),
        ("a", "amd64", 0.9),
        ("gd", "arm64", 0.96),
        ("id", "amd64", 1.15),
        ("n", "amd64", 1.25),
        ("gn", "arm64", 1.05),
        ("", "amd64", 0.98),
    ];
    let mut dice = Dice::new(seed ^ 0xca7a_1093);
    let mut types = Vec::with_capacity(count);
    for generation in (2..=9).rev() {
        for (variant, arch, factor) in VARIANTS {
            for (category, gib_per_cpu, price_per_cpu) in CATEGORIES {
                for (size, cpus) in SIZES {
                    if types.len() == count {
                        return types.into_iter().map(Arc::new).collect();
                    }
                    let family = format!("{category}{generation}{variant}");
                    let age = 1.0 + 0.03 * f64::from(8 - generation);
                    let price = price_per_cpu * cpus as f64 * factor * age;
                    types.push(instance_type(
                        (&family, size, arch),
                        (cpus, gib_per_cpu),
                        price,
                        &mut dice,
                    ));
                }
            }
        }
    }
    types.into_iter().map(Arc::new).collect()
}

fn instance_type(
    (family, size, arch): (&str, &str, &str),
    (cpus, gib_per_cpu): (i64, i64),
    price: f64,
    dice: &mut Dice,
) -> InstanceType {
    let category: String = family.chars().take_while(|c| c.is_alphabetic()).collect();
    let digits: String = family.chars().filter(char::is_ascii_digit).collect();
    let name = format!("{family}.{size}");
    let mut requirements = Requirements::new();
    for (key, value) in [
        (labels::INSTANCE_TYPE, name.as_str()),
        (labels::ARCH, arch),
        (labels::OS, "linux"),
        (labels::INSTANCE_FAMILY, family),
        (labels::INSTANCE_SIZE, size),
        (labels::INSTANCE_CATEGORY, &category),
        (labels::INSTANCE_GENERATION, &digits),
        (labels::INSTANCE_CPU, &cpus.to_string()),
    ] {
        requirements.add(Requirement::new(key, Operator::In, [value]));
    }
    let mut capacity: Resources = [
        (labels::RESOURCE_CPU, cpus * 1000),
        (
            labels::RESOURCE_MEMORY,
            // The hypervisor keeps a part, as on EC2.
            cpus * gib_per_cpu * 1024 * 925 / 1000 * MIB_MILLIS,
        ),
        (
            labels::RESOURCE_PODS,
            (cpus * 14).clamp(8, 737).min(737) * 1000,
        ),
    ]
    .into_iter()
    .collect();
    if category == "g" {
        capacity.set(labels::RESOURCE_NVIDIA_GPU, (cpus / 16).max(1) * 1000);
    }
    let reserved = [
        (labels::RESOURCE_CPU, 100),
        (labels::RESOURCE_MEMORY, 10 * MIB_MILLIS),
    ];
    let mut offerings = Vec::new();
    for zone in ZONES {
        let spot = price * (0.28 + 0.35 * dice.share());
        for (capacity_type, price) in [
            (labels::CAPACITY_TYPE_ON_DEMAND, price),
            (labels::CAPACITY_TYPE_SPOT, spot),
        ] {
            offerings.push(offering(zone, capacity_type, price));
        }
    }
    InstanceType {
        name,
        requirements,
        offerings,
        capacity,
        overhead: Overhead {
            kube_reserved: reserved.into_iter().collect(),
            ..Overhead::default()
        },
        volume_attachment_limits: BTreeMap::new(),
    }
}

fn offering(zone: &str, capacity_type: &str, price: f64) -> Offering {
    Offering::new(
        [
            Requirement::new(labels::TOPOLOGY_ZONE, Operator::In, [zone]),
            Requirement::new(labels::CAPACITY_TYPE, Operator::In, [capacity_type]),
        ]
        .into_iter()
        .collect(),
        (price * 1e6).round() / 1e6,
    )
}

/// Adds nodes of eight cores that are half full.
pub fn add_nodes(problem: &mut Problem, count: usize) {
    for index in 0..count {
        let name = format!("node-{index:05}");
        let capacity: Resources = [
            (labels::RESOURCE_CPU, 8000),
            (labels::RESOURCE_MEMORY, 32 * 1024 * MIB_MILLIS),
            (labels::RESOURCE_PODS, 58_000),
        ]
        .into_iter()
        .collect();
        let node_labels = [
            (labels::HOSTNAME, name.as_str()),
            (labels::TOPOLOGY_ZONE, ZONES[index % ZONES.len()]),
            (labels::ARCH, "amd64"),
            (labels::OS, "linux"),
            (labels::CAPACITY_TYPE, labels::CAPACITY_TYPE_SPOT),
            (labels::INSTANCE_TYPE, "m6i.2xlarge"),
            (labels::NODEPOOL, "default"),
        ];
        problem.nodes.push(Arc::new(ExistingNode {
            pool: Some("default".to_owned()),
            node_claim: Some(format!("default-{index:05}")),
            labels: node_labels
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect(),
            requests: [(labels::RESOURCE_CPU, 4000 + (index as i64 % 8) * 400)]
                .into_iter()
                .collect(),
            ..ExistingNode::empty(name, capacity)
        }));
    }
}
