//! Times a disruption loop over a full cluster in which nothing can be saved: the worst case of a scan.
//!
//! `cargo run --release -p disruption --example scan -- [nodes] [spread]`

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use apis::resources::Resources;
use apis::{NodeClaim, NodePool};
use disruption::candidate::TypesByPool;
use disruption::history::History;
use disruption::{DisruptionInput, Gates, Memory, PolicyHooks, decide};
use hooks::disruption::{DeclaredBudgets, DefaultConsolidation};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use planning::provisioning::PoolTypes;
use scheduling::instance_type::{InstanceType, Offering, Overhead};
use scheduling::problem::Options;
use scheduling::ranking::PriceRank;
use scheduling::requirements::{Operator, Requirement, Requirements};
use scheduling::{Interrupt, TableCache};
use serde_json::{Value, json};
use state::{Cluster, Event};

type Failure = Box<dyn std::error::Error>;

const ZONES: [&str; 3] = ["a", "b", "c"];
const FAMILIES: u32 = 80;
/// Sizes of a family, as CPUs.
const SIZES: [u32; 9] = [2, 4, 8, 16, 32, 48, 64, 96, 128];
/// Requests in milli-CPU of the pods of one node; together they leave no room for another.
const PODS: [u32; 8] = [900, 800, 600, 500, 400, 300, 250, 200];

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
#[expect(clippy::disallowed_methods, reason = "a yardstick needs a clock")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let nodes: u32 = arguments
        .iter()
        .find_map(|it| it.parse().ok())
        .unwrap_or(1000);
    let is_spread = arguments.iter().any(|it| it == "spread");
    let now: Timestamp = "2026-11-20T12:00:00Z".parse()?;
    let types: Arc<[Arc<InstanceType>]> = (0..FAMILIES)
        .flat_map(|family| SIZES.map(|cpus| Arc::new(instance_type(family, cpus))))
        .collect();
    let mut cluster = Cluster::new();
    let pool = Arc::new(serde_json::from_value(pool())?);
    cluster.apply(now, Event::applied::<NodePool>(Arc::clone(&pool)))?;
    for number in 0..nodes {
        for event in node(number, is_spread)? {
            cluster.apply(now, event)?;
        }
    }
    let types_by_pool: TypesByPool = [("web".to_owned(), Arc::clone(&types))].into();
    let pools = [PoolTypes {
        node_pool: pool,
        instance_types: types,
        free_addresses: std::collections::BTreeMap::new(),
    }];
    let (tables, mut memory) = (Arc::<TableCache>::default(), Memory::default());
    let hooks = PolicyHooks {
        rank: &PriceRank,
        consolidation: &DefaultConsolidation,
        budgets: &DeclaredBudgets,
    };
    for look in ["first", "changed", "unchanged"] {
        if look == "changed" {
            cluster.apply(now, Event::OfferingsChanged)?;
        }
        let options = Options {
            now,
            ..Options::default()
        };
        let input = DisruptionInput {
            snapshot: cluster.snapshot(),
            types: types_by_pool.clone(),
            pools: pools.to_vec(),
            queued: BTreeSet::new(),
            history: History::default(),
            memory: memory.clone(),
            options,
            scheduler: Arc::default(),
            gates: Gates::default(),
            repair: None,
            tables: Arc::clone(&tables),
        };
        let started = Instant::now();
        let decision = decide(&input, hooks, &Interrupt::never());
        println!(
            "{look} look at {nodes} nodes: {} commands, {} in {:.1} ms",
            decision.commands.len(),
            decision
                .outcomes
                .first()
                .map_or(String::new(), |it| format!("{:?}", it.outcome)),
            started.elapsed().as_secs_f64() * 1000.0
        );
        memory = decision.memory;
    }
    Ok(())
}

fn instance_type(family: u32, cpus: u32) -> InstanceType {
    let single = |key: &str, value: &str| Requirement::new(key, Operator::In, [value]);
    let name = format!("f{family:02}.{cpus}");
    let price = f64::from(cpus) * (0.048 + f64::from(family) * 0.001);
    let sold = |zone: &str, capacity_type: &str, share: f64| Offering {
        on_demand_price_per_hour: Some(price),
        ..Offering::new(
            [
                single("topology.kubernetes.io/zone", zone),
                single("karpenter.sh/capacity-type", capacity_type),
            ]
            .into_iter()
            .collect(),
            price * share,
        )
    };
    let requirements: Requirements = [
        single("node.kubernetes.io/instance-type", &name),
        single("kubernetes.io/arch", "amd64"),
        single("kubernetes.io/os", "linux"),
        Requirement::new("topology.kubernetes.io/zone", Operator::In, ZONES),
        single(
            "karpenter.k8s.aws/instance-family",
            &format!("f{family:02}"),
        ),
    ]
    .into_iter()
    .collect();
    let cpus = i64::from(cpus);
    InstanceType {
        name,
        requirements,
        offerings: ZONES
            .iter()
            .flat_map(|zone| [sold(zone, "on-demand", 1.0), sold(zone, "spot", 0.4)])
            .collect(),
        capacity: Resources::new()
            .with("cpu", cpus * 1000)
            .with("memory", cpus * 4 * 1000 * (1 << 30))
            .with("pods", 110_000),
        overhead: Overhead::default(),
        volume_attachment_limits: std::collections::BTreeMap::new(),
    }
}

fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "web", "uid": "web"},
        "spec": {"template": {"spec": {
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "expireAfter": "Never"}},
            "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "", "message": "",
            "lastTransitionTime": "2026-11-20T00:00:00Z"}]}
    })
}

fn node(number: u32, is_spread: bool) -> Result<Vec<Event>, Failure> {
    let zone = ZONES[number as usize % ZONES.len()];
    let name = format!("n{number:05}");
    let provider_id = format!("aws:///{zone}/{name}");
    let list = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
    let labels = json!({
        "karpenter.sh/nodepool": "web", "node.kubernetes.io/instance-type": "f00.4",
        "karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": zone,
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"});
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-11-20T10:00:00Z"});
    let conditions = ["Launched", "Registered", "Initialized", "Consolidatable"].map(condition);
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": format!("{name}-claim"), "uid": name, "labels": labels, "creationTimestamp": "2026-11-20T10:00:00Z"},
        "spec": {"requirements": [], "expireAfter": "Never",
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
        "status": {"providerID": provider_id, "nodeName": name, "capacity": list, "allocatable": list, "conditions": conditions}});
    let object = json!({
        "metadata": {"name": name, "uid": name, "labels": labels}, "spec": {"providerID": provider_id},
        "status": {"capacity": list, "allocatable": list, "conditions": [{"type": "Ready", "status": "True"}]}});
    let mut events = vec![
        Event::applied::<NodeClaim>(Arc::new(serde_json::from_value(claim)?)),
        Event::applied::<v1::Node>(Arc::new(serde_json::from_value(object)?)),
    ];
    for (position, cpu) in PODS.iter().enumerate() {
        let app = format!("app-{position}");
        let mut pod = json!({
            "metadata": {"namespace": "default", "name": format!("{name}-{position}"), "uid": format!("{name}-{position}"),
                "labels": {"app": app},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": true}]},
            "spec": {"nodeName": name, "containers": [{"name": "c", "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": "1Gi"}}}]},
            "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}});
        if is_spread {
            pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": app}}}]);
        }
        events.push(Event::applied::<v1::Pod>(Arc::new(serde_json::from_value(
            pod,
        )?)));
    }
    Ok(events)
}
