//! Small worlds with every feature in them, told in a few small numbers so that a failing one shrinks well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodePool, NodeRef, labels};
use k8s_openapi::api::core::v1 as core;
use proptest::collection::vec;
use proptest::prelude::*;
use scheduling::Problem;
use scheduling::instance_type::{Availability, InstanceType, Offering, Overhead};
use scheduling::pod::{Pod, PodKey, PodShape, ShapeTable};
use scheduling::problem::{
    DaemonPod, ExistingNode, MinValuesPolicy, Options, PodVolumes, Pool, PreferencePolicy,
    ReservedMode,
};
use scheduling::requirements::{Operator, Requirement, Requirements};
use serde_json::{Value, json};

use crate::service::Service;

pub(crate) const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
pub(crate) const GIB_MILLIS: i64 = 1024 * 1024 * 1024 * 1000;
pub(crate) const EBS: &str = "ebs.csi.aws.com";

/// Usually nothing, now and then one of the special cases.
pub(crate) fn rare(cases: u8, usual: u32) -> BoxedStrategy<u8> {
    prop_oneof![usual => Just(0_u8), 1 => 0..cases].boxed()
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) types: Vec<TypeSpec>,
    pub(crate) pools: Vec<PoolSpec>,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) daemons: Vec<DaemonSpec>,
    pub(crate) services: Vec<Service>,
    /// Preference policy, `minValues` policy, reserved mode.
    pub(crate) options: (bool, bool, u8),
}

#[derive(Debug, Clone)]
pub(crate) struct TypeSpec {
    cpu: u8,
    memory: u8,
    arm: u8,
    zones: u8,
    sold: u8,
    special: u8,
    price: u8,
}

#[derive(Debug, Clone)]
pub(crate) struct PoolSpec {
    pub(crate) weight: u8,
    pub(crate) zones: u8,
    pub(crate) sold: u8,
    pub(crate) taint: u8,
    pub(crate) limits: u8,
    pub(crate) min_values: u8,
    pub(crate) team: u8,
    pub(crate) types: u8,
}

#[derive(Debug, Clone)]
pub(crate) struct NodeSpec {
    pub(crate) zone: u8,
    pub(crate) cpu: u8,
    pub(crate) arm: u8,
    pub(crate) taint: u8,
    pub(crate) state: u8,
    pub(crate) team: u8,
    pub(crate) volumes: u8,
    pub(crate) bound: Vec<(u8, u8)>,
}

#[derive(Debug, Clone)]
pub(crate) struct DaemonSpec {
    pub(crate) cpu: u8,
    pub(crate) selector: u8,
    pub(crate) port: u8,
    pub(crate) tolerates: u8,
}

pub(crate) fn worlds() -> impl Strategy<Value = World> {
    let types = vec(type_specs(), 5..24);
    let options = (any::<bool>(), any::<bool>(), 0_u8..3);
    (
        types,
        vec(pool_specs(), 1..5),
        vec(node_specs(), 0..5),
        vec(daemon_specs(), 0..3),
        vec(crate::service::services(), 1..12),
        options,
    )
        .prop_map(|(types, pools, nodes, daemons, services, options)| World {
            types,
            pools,
            nodes,
            daemons,
            services,
            options,
        })
}

fn type_specs() -> impl Strategy<Value = TypeSpec> {
    (
        0_u8..6,
        0_u8..3,
        rare(2, 3),
        rare(8, 2),
        rare(4, 2),
        rare(6, 5),
        0_u8..20,
    )
        .prop_map(|(cpu, memory, arm, zones, sold, special, price)| TypeSpec {
            cpu,
            memory,
            arm,
            zones,
            sold,
            special,
            price,
        })
}

fn pool_specs() -> impl Strategy<Value = PoolSpec> {
    (
        0_u8..3,
        rare(8, 3),
        rare(4, 3),
        rare(5, 3),
        rare(5, 4),
        rare(4, 5),
        rare(5, 3),
        rare(3, 3),
    )
        .prop_map(
            |(weight, zones, sold, taint, limits, min_values, team, types)| PoolSpec {
                weight,
                zones,
                sold,
                taint,
                limits,
                min_values,
                team,
                types,
            },
        )
}

fn node_specs() -> impl Strategy<Value = NodeSpec> {
    (
        0_u8..3,
        0_u8..4,
        rare(2, 4),
        rare(5, 5),
        rare(4, 5),
        rare(3, 4),
        rare(3, 3),
        vec((0_u8..6, rare(5, 2)), 0..4),
    )
        .prop_map(
            |(zone, cpu, arm, taint, state, team, volumes, bound)| NodeSpec {
                zone,
                cpu,
                arm,
                taint,
                state,
                team,
                volumes,
                bound,
            },
        )
}

fn daemon_specs() -> impl Strategy<Value = DaemonSpec> {
    (0_u8..5, rare(5, 2), rare(2, 4), rare(2, 1)).prop_map(|(cpu, selector, port, tolerates)| {
        DaemonSpec {
            cpu,
            selector,
            port,
            tolerates,
        }
    })
}

/// Types of 1 to 32 CPUs of both architectures, sold everywhere.
pub(crate) fn plain_types() -> Vec<TypeSpec> {
    let sizes = (0_u8..6).flat_map(|cpu| [(cpu, 0), (cpu, 1)]);
    sizes
        .map(|(cpu, arm)| TypeSpec {
            cpu,
            memory: 1,
            arm,
            zones: 0,
            sold: 0,
            special: 0,
            price: 10 + arm,
        })
        .collect()
}

/// A pool that buys whatever there is.
pub(crate) fn plain_pool() -> PoolSpec {
    PoolSpec {
        weight: 0,
        zones: 0,
        sold: 0,
        taint: 0,
        limits: 0,
        min_values: 0,
        team: 0,
        types: 0,
    }
}

/// A world as the solver takes it, with the pods also as the user wrote them.
pub(crate) struct Built {
    pub(crate) problem: Problem,
    pub(crate) objects: BTreeMap<PodKey, core::Pod>,
}

impl World {
    pub(crate) fn build(&self) -> Built {
        let mut shapes = ShapeTable::new();
        let types: Vec<Arc<InstanceType>> = self
            .types
            .iter()
            .enumerate()
            .map(|(index, spec)| Arc::new(spec.build(index)))
            .collect();
        let (respects, is_strict, reserved) = self.options;
        let mut problem = Problem::new(Options {
            preference_policy: if respects {
                PreferencePolicy::Respect
            } else {
                PreferencePolicy::Ignore
            },
            min_values_policy: if is_strict {
                MinValuesPolicy::Strict
            } else {
                MinValuesPolicy::BestEffort
            },
            reserved: match reserved {
                0 => ReservedMode::Off,
                1 => ReservedMode::Strict,
                _ => ReservedMode::Fallback,
            },
            ..Options::default()
        });
        for (index, spec) in self.pools.iter().enumerate() {
            problem.pools.push(spec.build(index, &types));
        }
        for (index, spec) in self.nodes.iter().enumerate() {
            problem.nodes.push(spec.build(index, &mut shapes));
        }
        for (index, spec) in self.daemons.iter().enumerate() {
            problem.daemons.push(spec.build(index, &mut shapes));
        }
        for (index, namespace) in ["default", "other"].into_iter().enumerate() {
            let of_namespace = BTreeMap::from([("tier".to_owned(), index.to_string())]);
            problem
                .namespaces
                .insert(namespace.to_owned(), of_namespace);
        }
        let mut objects = BTreeMap::new();
        for (index, service) in self.services.iter().enumerate() {
            for (object, volumes) in service.build(index) {
                let pod = Arc::new(Pod::parse(&object, &mut shapes).unwrap());
                if let Some(volumes) = volumes {
                    problem.volumes.insert(pod.key.clone(), volumes);
                }
                if service.is_candidate() {
                    problem.candidates.insert(pod.key.clone());
                }
                objects.insert(pod.key.clone(), object);
                problem.pods.push(pod);
            }
        }
        Built { problem, objects }
    }
}

impl TypeSpec {
    /// Powers of two of CPUs, memory by CPU, architecture, zones left out, how it is sold, special cases, price.
    pub(crate) fn of([cpu, memory, arm, zones, sold, special, price]: [u8; 7]) -> Self {
        Self {
            cpu,
            memory,
            arm,
            zones,
            sold,
            special,
            price,
        }
    }

    /// The same, also sold out of reservations with free slots.
    pub(crate) fn reserved(self) -> Self {
        Self { special: 5, ..self }
    }

    fn build(&self, index: usize) -> InstanceType {
        let cpu = 1_i64 << self.cpu;
        let memory = cpu * [2, 4, 8][usize::from(self.memory)];
        let arch = if self.arm == 1 { "arm64" } else { "amd64" };
        let name = format!("t{index}.{cpu}x{memory}");
        let mut requirements = Requirements::new();
        for (key, value) in [
            (labels::INSTANCE_TYPE, name.as_str()),
            (labels::ARCH, arch),
            (labels::OS, "linux"),
            (labels::INSTANCE_CPU, &cpu.to_string()),
            (labels::INSTANCE_FAMILY, &format!("t{}", index % 4)),
            (labels::INSTANCE_GENERATION, &(1 + index % 3).to_string()),
        ] {
            requirements.add(Requirement::new(key, Operator::In, [value]));
        }
        let gpus = if self.special == 1 { 2 } else { 0 };
        let gpu = Requirement::new(
            labels::INSTANCE_GPU_NAME,
            if gpus > 0 {
                Operator::In
            } else {
                Operator::DoesNotExist
            },
            if gpus > 0 { vec!["l4"] } else { vec![] },
        );
        requirements.add(gpu);
        let mut capacity: Resources = [
            ("cpu", cpu * 1000),
            ("memory", memory * GIB_MILLIS),
            ("pods", if self.special == 2 { 4_000 } else { 58_000 }),
        ]
        .into_iter()
        .collect();
        if gpus > 0 {
            capacity.set(labels::RESOURCE_NVIDIA_GPU, gpus * 1000);
        }
        let limits = if self.special == 3 {
            vec![(EBS.to_owned(), 1)]
        } else {
            vec![]
        };
        InstanceType {
            name,
            requirements,
            offerings: self.offerings(index, cpu, memory),
            capacity,
            overhead: Overhead {
                kube_reserved: [("cpu", 80), ("memory", GIB_MILLIS / 8)]
                    .into_iter()
                    .collect(),
                ..Overhead::default()
            },
            volume_attachment_limits: limits.into_iter().collect(),
        }
    }

    fn offerings(&self, index: usize, cpu: i64, memory: i64) -> Vec<Offering> {
        let base =
            (cpu as f64 * 0.03 + memory as f64 * 0.004) * (0.8 + f64::from(self.price) / 50.0);
        let mut offerings = Vec::new();
        for (at, zone) in ZONES.iter().enumerate() {
            if self.zones & (1 << at) != 0 {
                continue;
            }
            if self.sold != 1 {
                offerings.push(offering(zone, labels::CAPACITY_TYPE_ON_DEMAND, base));
            }
            if self.sold != 2 {
                let price = base * (0.3 + 0.05 * at as f64);
                offerings.push(offering(zone, labels::CAPACITY_TYPE_SPOT, price));
            }
            if self.special >= 4 {
                let mut reserved = offering(zone, labels::CAPACITY_TYPE_RESERVED, base / 1e6);
                let id = format!("cr-{zone}-{index}");
                let id =
                    Requirement::new(labels::CAPACITY_RESERVATION_ID, Operator::In, [id.as_str()]);
                reserved.requirements.add(id);
                reserved.reservation_capacity = u32::from(self.special - 4) * 2;
                offerings.push(reserved);
            }
        }
        if self.sold == 3 {
            offerings
                .iter_mut()
                .step_by(2)
                .for_each(|o| o.availability = Availability::Unavailable);
        }
        offerings
    }
}

pub(crate) fn offering(zone: &str, capacity_type: &str, price_per_hour: f64) -> Offering {
    let requirements = [
        Requirement::new(labels::TOPOLOGY_ZONE, Operator::In, [zone]),
        Requirement::new(labels::CAPACITY_TYPE, Operator::In, [capacity_type]),
    ];
    Offering::new(requirements.into_iter().collect(), price_per_hour)
}

fn taint(kind: u8) -> Option<Value> {
    let taint = match kind {
        1 => json!({"key": "dedicated", "value": "red", "effect": "NoSchedule"}),
        2 => json!({"key": "dedicated", "value": "red", "effect": "PreferNoSchedule"}),
        3 => json!({"key": "level", "value": "5", "effect": "NoExecute"}),
        4 => json!({"key": "scarce", "effect": "NoSchedule"}),
        _ => return None,
    };
    Some(taint)
}

impl PoolSpec {
    fn build(&self, index: usize, types: &[Arc<InstanceType>]) -> Pool {
        let name = format!("pool-{index}");
        let sold = [
            &["spot", "on-demand", "reserved"][..],
            &["spot"],
            &["on-demand"],
            &["on-demand", "reserved"],
        ][usize::from(self.sold)];
        // A reservation is of one type, so a pool that asks for many cannot mean it.
        let sold = if self.min_values > 0 {
            &["spot", "on-demand"]
        } else {
            sold
        };
        let mut requirements =
            vec![json!({"key": labels::CAPACITY_TYPE, "operator": "In", "values": sold})];
        if !self.zones.is_multiple_of(7) {
            let zones = ZONES.iter().enumerate();
            let zones: Vec<_> = zones
                .filter(|(at, _)| self.zones & (1 << at) != 0)
                .collect();
            let zones: Vec<_> = zones.into_iter().map(|(_, zone)| zone).collect();
            requirements
                .push(json!({"key": labels::TOPOLOGY_ZONE, "operator": "In", "values": zones}));
        }
        match self.min_values {
            1 => requirements.push(json!({"key": labels::INSTANCE_TYPE, "operator": "Exists", "minValues": 3})),
            2 => requirements.push(json!({"key": labels::INSTANCE_FAMILY, "operator": "Exists", "minValues": 2})),
            3 => requirements.push(json!({"key": labels::INSTANCE_GENERATION, "operator": "Gt", "values": ["1"], "minValues": 2})),
            _ => {}
        }
        let mut own = json!({});
        match self.team {
            1 => own["team"] = json!("red"),
            2 => requirements.push(json!({"key": "team", "operator": "Exists"})),
            3 => requirements
                .push(json!({"key": "team", "operator": "In", "values": ["red", "blue"]})),
            4 => requirements.push(json!({"key": "team", "operator": "NotIn", "values": ["red"]})),
            _ => {}
        }
        let limits = self.limits();
        let mut spec = json!({"template": {"metadata": {"labels": own}, "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": requirements,
            "taints": taint(self.taint).into_iter().collect::<Vec<_>>(),
        }}});
        if self.weight > 0 {
            spec["weight"] = json!(self.weight);
        }
        if !limits.is_null() {
            spec["limits"] = limits;
        }
        let node_pool: NodePool = serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": spec,
        }))
        .unwrap();
        let skipped = usize::from(self.types);
        let own = types.iter().enumerate();
        let own = own.filter(|(at, _)| skipped == 0 || at % (skipped + 1) != index % 2);
        Pool {
            node_pool: Arc::new(node_pool),
            instance_types: own.map(|(_, t)| Arc::clone(t)).collect(),
            free_addresses: std::collections::BTreeMap::new(),
            in_use: if self.weight == 2 {
                [("cpu", 4000), ("nodes", 1000)].into_iter().collect()
            } else {
                Resources::new()
            },
        }
    }
}

impl PoolSpec {
    fn limits(&self) -> Value {
        match self.limits {
            1 => json!({"cpu": "12"}),
            2 => json!({"nodes": "2"}),
            3 => json!({"memory": "40Gi", "cpu": "100"}),
            4 => json!({"cpu": "0"}),
            _ => Value::Null,
        }
    }
}

impl NodeSpec {
    fn build(&self, index: usize, shapes: &mut ShapeTable) -> Arc<ExistingNode> {
        let name = format!("node-{index}");
        let cpu = 1_i64 << self.cpu;
        let zone = ZONES[usize::from(self.zone)];
        let arch = if self.arm == 1 { "arm64" } else { "amd64" };
        let mut own: BTreeMap<String, String> = [
            (labels::TOPOLOGY_ZONE, zone),
            (labels::HOSTNAME, name.as_str()),
            (labels::NODEPOOL, "pool-0"),
            (labels::CAPACITY_TYPE, "on-demand"),
            (labels::ARCH, arch),
            (labels::OS, "linux"),
            (labels::INSTANCE_CPU, &cpu.to_string()),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
        if self.team > 0 {
            own.insert(
                "team".to_owned(),
                ["red", "blue"][usize::from(self.team - 1)].to_owned(),
            );
        }
        let allocatable: Resources = [
            ("cpu", cpu * 1000),
            ("memory", cpu * 4 * GIB_MILLIS),
            ("pods", 20_000),
        ]
        .into_iter()
        .collect();
        let bound = self.bound.iter().enumerate();
        let pods: Vec<Arc<Pod>> = bound
            .map(|(at, (app, term))| bound_pod(&name, at, *app, *term, shapes))
            .collect();
        let taints = taint(self.taint).into_iter();
        let volumes =
            BTreeMap::from([(EBS.to_owned(), BTreeSet::from(["default/old".to_owned()]))]);
        Arc::new(ExistingNode {
            hostname: name.clone(),
            pool: Some("pool-0".to_owned()),
            node_claim: Some(format!("claim-{name}")),
            labels: own,
            taints: taints.map(|t| serde_json::from_value(t).unwrap()).collect(),
            capacity: allocatable.clone(),
            allocatable,
            requests: pods.iter().map(|p| &p.shape.requests).sum(),
            pods,
            daemon_requests: if self.state == 0 {
                Resources::new()
            } else {
                [("cpu", 50)].into_iter().collect()
            },
            is_initialized: self.state != 1,
            is_schedulable: self.state != 2,
            is_within_consolidate_after: self.state == 3,
            volume_limits: if self.volumes > 0 {
                BTreeMap::from([(EBS.to_owned(), u32::from(self.volumes))])
            } else {
                BTreeMap::new()
            },
            volumes: if self.volumes > 0 {
                volumes
            } else {
                BTreeMap::new()
            },
            node_ref: NodeRef::node(name),
        })
    }
}

fn bound_pod(node: &str, at: usize, app: u8, term: u8, shapes: &mut ShapeTable) -> Arc<Pod> {
    let key = if term.is_multiple_of(2) {
        labels::HOSTNAME
    } else {
        labels::TOPOLOGY_ZONE
    };
    let mut spec = json!({"nodeName": node, "containers": [
        {"name": "c", "resources": {"requests": {"cpu": "200m", "memory": "128Mi"}}}]});
    if term > 2 {
        spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": key, "labelSelector": {"matchLabels": {"app": format!("app-{}", (app + 1) % 6)}}}]}});
    }
    let name = format!("bound-{node}-{at}");
    let mut object = json!({"metadata": {"name": name, "namespace": "default", "uid": name,
        "labels": {"app": format!("app-{app}")}}, "spec": spec, "status": {"phase": "Running"}});
    if term == 1 {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    let object = serde_json::from_value(object).unwrap();
    Arc::new(Pod::parse(&object, shapes).unwrap())
}

impl DaemonSpec {
    fn build(&self, index: usize, shapes: &mut ShapeTable) -> DaemonPod {
        let name = format!("daemon-{index}");
        let mut spec = json!({"containers": [{"name": "c", "resources": {
            "requests": {"cpu": format!("{}m", 50 * u32::from(self.cpu)), "memory": "64Mi"}}}]});
        match self.selector {
            1 => spec["nodeSelector"] = json!({labels::ARCH: "arm64"}),
            2 => spec["nodeSelector"] = json!({"team": "red"}),
            3 => spec["nodeSelector"] = json!({labels::INITIALIZED: "true"}),
            4 => {
                spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": labels::INSTANCE_CPU, "operator": "Gt", "values": ["4"]}]},
                        {"matchExpressions": [{"key": labels::TOPOLOGY_ZONE, "operator": "In", "values": ["zone-b"]}]}]}}});
            }
            _ => {}
        }
        if self.port == 1 {
            spec["containers"][0]["ports"] = json!([{"containerPort": 8080, "hostPort": 8080}]);
        }
        if self.tolerates == 1 {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
        }
        let template = json!({"metadata": {"labels": {"app": name}}, "spec": spec});
        let template = serde_json::from_value(template).unwrap();
        let shape = PodShape::parse_template(&template, "kube-system", &name).unwrap();
        DaemonPod {
            key: PodKey::new("kube-system", &name),
            shape: shapes.intern(shape),
        }
    }
}

/// Volumes that only some zones reach.
pub(crate) fn volumes(kind: u8, pod: &str, service: usize) -> Option<PodVolumes> {
    let zone = |zones: &[&str]| -> Requirements {
        let zones = Requirement::new(labels::TOPOLOGY_ZONE, Operator::In, zones.iter().copied());
        [zones].into_iter().collect()
    };
    let (alternatives, name) = match kind {
        1 => (vec![zone(&["zone-a"])], format!("default/{pod}")),
        2 => (
            vec![zone(&["zone-b"]), zone(&["zone-c"])],
            format!("default/{pod}"),
        ),
        3 => (vec![], format!("default/shared-{service}")),
        4 => (vec![zone(&["zone-b", "zone-c"])], format!("default/{pod}")),
        _ => return None,
    };
    Some(PodVolumes {
        alternatives,
        attachments: BTreeMap::from([(EBS.to_owned(), BTreeSet::from([name]))]),
        error: None,
    })
}
