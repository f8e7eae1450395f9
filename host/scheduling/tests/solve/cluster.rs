//! A small cluster to solve in, built from JSON as users write it.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodePool, labels};
use scheduling::instance_type::{InstanceType, Offering, Overhead};
use scheduling::pod::{Pod, PodKey, PodShape, ShapeTable};
use scheduling::problem::{DaemonPod, ExistingNode, Options, Pool, Problem};
use scheduling::ranking::PriceRank;
use scheduling::requirements::{Operator, Requirement, Requirements};
use scheduling::{Interrupt, Solution, solve};
use serde_json::{Value, json};

use crate::checker;

pub(crate) const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
const GIB_MILLIS: i64 = 1024 * 1024 * 1024 * 1000;

/// Types of one to 32 CPUs in two shapes and two architectures; on-demand everywhere, spot at 40 %.
pub(crate) fn types() -> Vec<InstanceType> {
    let mut types = Vec::new();
    for (family, arch, gib_per_cpu, factor) in [
        ("c5", "amd64", 2, 1.0),
        ("r5", "amd64", 8, 1.4),
        ("c6g", "arm64", 2, 0.8),
    ] {
        for (size, cpu) in [
            ("medium", 1),
            ("large", 2),
            ("xlarge", 4),
            ("4xlarge", 16),
            ("8xlarge", 32),
        ] {
            let price = 0.04 * f64::from(cpu) * factor;
            types.push(instance_type(
                &format!("{family}.{size}"),
                arch,
                (i64::from(cpu), gib_per_cpu),
                price,
            ));
        }
    }
    types
}

pub(crate) fn instance_type(
    name: &str,
    arch: &str,
    (cpu, gib_per_cpu): (i64, i64),
    price: f64,
) -> InstanceType {
    let (family, size) = name.split_once('.').unwrap_or((name, ""));
    let mut requirements = Requirements::new();
    for (key, value) in [
        (labels::INSTANCE_TYPE, name),
        (labels::ARCH, arch),
        (labels::OS, "linux"),
        (labels::INSTANCE_FAMILY, family),
        (labels::INSTANCE_SIZE, size),
        (labels::INSTANCE_CPU, &cpu.to_string()),
    ] {
        requirements.add(Requirement::new(key, Operator::In, [value]));
    }
    let offerings = ZONES.iter().flat_map(|zone| {
        [
            offering(zone, "on-demand", price),
            offering(zone, "spot", price * 0.4),
        ]
    });
    InstanceType {
        name: name.to_owned(),
        requirements,
        offerings: offerings.collect(),
        capacity: [
            ("cpu", cpu * 1000),
            ("memory", cpu * gib_per_cpu * GIB_MILLIS),
            ("pods", 110_000),
        ]
        .into_iter()
        .collect(),
        overhead: Overhead {
            kube_reserved: [("cpu", 100)].into_iter().collect(),
            ..Overhead::default()
        },
        volume_attachment_limits: BTreeMap::new(),
    }
}

pub(crate) fn offering(zone: &str, capacity_type: &str, price: f64) -> Offering {
    Offering::new(
        [
            Requirement::new(labels::TOPOLOGY_ZONE, Operator::In, [zone]),
            Requirement::new(labels::CAPACITY_TYPE, Operator::In, [capacity_type]),
        ]
        .into_iter()
        .collect(),
        price,
    )
}

/// A problem under construction.
pub(crate) struct Cluster {
    pub(crate) problem: Problem,
    pub(crate) shapes: ShapeTable,
    pub(crate) types: Arc<[Arc<InstanceType>]>,
}

impl Cluster {
    /// One pool `default` that may buy everything.
    pub(crate) fn new() -> Self {
        let mut cluster = Self::without_pools(types());
        cluster.pool("default", json!({}));
        cluster
    }

    pub(crate) fn without_pools(types: Vec<InstanceType>) -> Self {
        Self {
            problem: Problem::new(Options::default()),
            shapes: ShapeTable::new(),
            types: types.into_iter().map(Arc::new).collect(),
        }
    }

    /// Adds a pool; `spec` is merged over the template's spec, except for `weight`, `limits` and `labels`.
    pub(crate) fn pool(&mut self, name: &str, spec: Value) {
        let mut template = json!({
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": labels::CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]}],
        });
        let mut outer = json!({});
        let mut metadata = json!({});
        for (key, value) in spec.as_object().unwrap() {
            match key.as_str() {
                "weight" | "limits" => outer[key] = value.clone(),
                "labels" => metadata["labels"] = value.clone(),
                _ => template[key] = value.clone(),
            }
        }
        outer["template"] = json!({"metadata": metadata, "spec": template});
        let node_pool: NodePool = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": outer,
        }))
        .unwrap();
        self.problem.pools.push(Pool {
            node_pool: Arc::new(node_pool),
            instance_types: Arc::clone(&self.types),
            free_addresses: std::collections::BTreeMap::new(),
            in_use: Resources::new(),
        });
    }

    /// Adds pods `name-0` and so on; `spec` is merged over a spec of one container.
    pub(crate) fn pods(
        &mut self,
        name: &str,
        count: usize,
        (cpu, memory): (&str, &str),
        spec: Value,
    ) {
        for index in 0..count {
            let pod = self.parse(&format!("{name}-{index}"), name, (cpu, memory), &spec);
            self.problem.pods.push(pod);
        }
    }

    pub(crate) fn parse(
        &mut self,
        name: &str,
        app: &str,
        (cpu, memory): (&str, &str),
        spec: &Value,
    ) -> Arc<Pod> {
        let mut full = json!({"containers": [
            {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        ]});
        for (key, value) in spec.as_object().unwrap() {
            if key == "ports" {
                full["containers"][0]["ports"] = value.clone();
            } else {
                full[key] = value.clone();
            }
        }
        let pod = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "labels": {"app": app}},
            "spec": full,
        }))
        .unwrap();
        Arc::new(Pod::parse(&pod, &mut self.shapes).unwrap())
    }

    /// Adds a node of 4 CPUs and 16 GiB with bound pods.
    pub(crate) fn node(&mut self, name: &str, zone: &str, bound: Vec<Arc<Pod>>) {
        let labels: BTreeMap<String, String> = [
            (labels::TOPOLOGY_ZONE, zone),
            (labels::HOSTNAME, name),
            (labels::NODEPOOL, "default"),
            (labels::CAPACITY_TYPE, "spot"),
            (labels::ARCH, "amd64"),
            (labels::OS, "linux"),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
        let amounts: Resources = [
            ("cpu", 4000),
            ("memory", 16 * GIB_MILLIS),
            ("pods", 110_000),
        ]
        .into_iter()
        .collect();
        self.problem.nodes.push(Arc::new(ExistingNode {
            pool: Some("default".to_owned()),
            node_claim: Some(format!("claim-{name}")),
            labels,
            requests: bound.iter().map(|p| &p.shape.requests).sum(),
            pods: bound,
            ..ExistingNode::empty(name, amounts)
        }));
    }

    pub(crate) fn edit_node(&mut self, index: usize, edit: impl FnOnce(&mut ExistingNode)) {
        edit(Arc::make_mut(&mut self.problem.nodes[index]));
    }

    pub(crate) fn daemon(&mut self, name: &str, cpu: &str, spec: Value) {
        let mut full =
            json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]});
        for (key, value) in spec.as_object().unwrap() {
            full[key] = value.clone();
        }
        let template =
            serde_json::from_value(json!({"metadata": {"labels": {"app": name}}, "spec": full}))
                .unwrap();
        let shape = PodShape::parse_template(&template, "kube-system", name).unwrap();
        self.problem.daemons.push(DaemonPod {
            key: PodKey::new("kube-system", name),
            shape: self.shapes.intern(shape),
        });
    }

    /// Solves and verifies the answer.
    pub(crate) fn solve(&self) -> Solution {
        let solution = solve(&self.problem, &PriceRank, &Interrupt::never());
        checker::verify(&self.problem, &solution);
        solution
    }
}

pub(crate) fn zones_of(solution: &Solution) -> BTreeMap<String, usize> {
    let mut zones = BTreeMap::new();
    for claim in &solution.claims {
        let zone = claim.best.zone.clone().expect("sold in a zone");
        *zones.entry(zone).or_insert(0) += claim.pods.len();
    }
    zones
}

pub(crate) fn spread(key: &str, max_skew: i32, app: &str) -> Value {
    json!({"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
           "labelSelector": {"matchLabels": {"app": app}}})
}

pub(crate) fn term(key: &str, app: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}
