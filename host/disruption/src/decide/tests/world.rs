//! A cluster told in lines, and a catalogue of four types.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::duration::GoDuration;
use apis::resources::Resources;
use apis::{NodeClaim, NodePool, NodeRef, ObjectKey, RepairAction, RepairPolicy};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use planning::provisioning::PoolTypes;
use scheduling::Interrupt;
use scheduling::TableCache;
use scheduling::instance_type::{InstanceType, Offering, Overhead};
use scheduling::pod::PodKey;
use scheduling::problem::{Options, ReservedMode};
use scheduling::requirements::{Operator, Requirement, Requirements};
use serde_json::{Value, json};
use state::{Cluster, Event};

use super::natively;
use crate::candidate::TypesByPool;
use crate::decide::{Decision, DisruptionInput, PolicyHooks, decide};
use crate::end_state::{EndState, EndStateInput, until_stable};
use crate::history::History;
use crate::input::Gates;
use crate::memory::Memory;
use crate::method::Method;
use crate::repair::RepairPolicies;

const GIB_MILLIS: i64 = 1 << 30;
/// Name, CPUs, USD an hour on demand; spot costs 0.4 of it.
pub(super) const TYPES: [(&str, i64, f64); 4] = [
    ("nano", 1, 0.05),
    ("small", 2, 0.1),
    ("medium", 4, 0.2),
    ("large", 8, 0.4),
];

pub(super) fn now() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

pub(super) fn instance_type(name: &str, cpus: i64, price: f64) -> Arc<InstanceType> {
    let single = |key: &str, value: &str| Requirement::new(key, Operator::In, [value]);
    let mut offerings = Vec::new();
    for zone in ["a", "b"] {
        for (capacity_type, factor) in [("on-demand", 1.0), ("spot", 0.4)] {
            let requirements: Requirements = [
                single("topology.kubernetes.io/zone", zone),
                single("karpenter.sh/capacity-type", capacity_type),
            ]
            .into_iter()
            .collect();
            offerings.push(Offering {
                on_demand_price_per_hour: Some(price),
                ..Offering::new(requirements, price * factor)
            });
        }
    }
    let requirements: Requirements = [
        single("node.kubernetes.io/instance-type", name),
        single("kubernetes.io/arch", "amd64"),
        single("kubernetes.io/os", "linux"),
        Requirement::new("topology.kubernetes.io/zone", Operator::In, ["a", "b"]),
        Requirement::new(
            "karpenter.sh/capacity-type",
            Operator::In,
            ["on-demand", "spot"],
        ),
    ]
    .into_iter()
    .collect();
    let capacity = Resources::new()
        .with("cpu", cpus * 1000)
        .with("memory", cpus * 4 * GIB_MILLIS * 1000)
        .with("pods", 110_000);
    Arc::new(InstanceType {
        name: name.to_owned(),
        requirements,
        offerings,
        capacity,
        overhead: Overhead::default(),
        volume_attachment_limits: std::collections::BTreeMap::new(),
    })
}

/// A cluster told in lines: `pool NAME key=value..`, `node NAME TYPE CAPACITY-TYPE ZONE [POOL] flag..`,
/// `pod NAME NODE CPU-MILLIS flag..`, `pdb NAME ALLOWED [APP]`,
/// `reservation ID TYPE ZONE SLOTS`, `rebooted NODE TIME`, `failed NODE TIME` (its replacement did not come). In values
/// `_` stands for a blank.
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) types: TypesByPool,
    pub(super) pools: Vec<PoolTypes>,
    pub(super) queued: BTreeSet<String>,
    pub(super) memory: Memory,
    pub(super) gates: Gates,
    pub(super) tables: Arc<TableCache>,
    pub(super) now: Timestamp,
    pub(super) threads: usize,
    pub(super) reserved: ReservedMode,
    pub(super) repair: Option<Arc<RepairPolicies>>,
    /// Reboots of nodes in the last day.
    pub(super) history: History,
}

pub(super) fn catalogue() -> Arc<[Arc<InstanceType>]> {
    TYPES
        .iter()
        .map(|&(name, cpus, price)| instance_type(name, cpus, price))
        .collect()
}

impl World {
    pub(super) fn new(text: &str) -> Self {
        Self::with_types(text, &catalogue())
    }

    pub(super) fn with_types(text: &str, types: &Arc<[Arc<InstanceType>]>) -> Self {
        let mut world = Self {
            cluster: Cluster::new(),
            types: TypesByPool::new(),
            pools: Vec::new(),
            queued: BTreeSet::new(),
            memory: Memory::default(),
            gates: Gates::default(),
            tables: Arc::default(),
            now: now(),
            threads: 1,
            reserved: Options::default().reserved,
            repair: None,
            history: History::default(),
        };
        let types = &with_reservations(text, types);
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        if !lines().any(|line| line.starts_with("pool ")) {
            world.pool("web", &[], types);
        }
        for line in lines() {
            world.line(line, types);
        }
        world
    }

    pub(super) fn line(&mut self, line: &str, types: &Arc<[Arc<InstanceType>]>) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["pool", name, rest @ ..] => self.pool(name, rest, types),
            ["node", name, rest @ ..] => self.node(name, rest),
            ["reservation", ..] => {}
            ["rebooted", node, at] => self
                .history
                .note_reboot(&format!("{node}-uid"), at.parse().unwrap()),
            ["failed", node, at] => {
                self.fail(Method::SingleNodeConsolidation, node, at.parse().unwrap());
            }
            ["failed-drift", node, at] => self.fail(Method::Drift, node, at.parse().unwrap()),
            ["pod", name, node, cpu, flags @ ..] => self.pod(name, node, cpu, flags),
            ["pdb", name, allowed] => self.pdb(name, allowed, "web"),
            ["pdb", name, allowed, app] => self.pdb(name, allowed, app),
            ["gone", "pod", name] => {
                self.apply(Event::deleted::<v1::Pod>(PodKey::new("default", name)));
            }
            ["gone", "node", name] => {
                self.apply(Event::deleted::<v1::Node>(ObjectKey::cluster(*name)));
            }
            ["gone", "pool", name] => {
                self.apply(Event::deleted::<NodePool>(ObjectKey::cluster(*name)));
            }
            ["gone", "pdb", name] => {
                self.apply(Event::deleted::<PodDisruptionBudget>(ObjectKey::new(
                    "default", name,
                )));
            }
            other => panic!("{other:?}"),
        }
    }

    /// A command about the node was given up.
    fn fail(&mut self, method: Method, node: &str, at: Timestamp) {
        let it = crate::command::CommandCandidate {
            node: node.to_owned(),
            claim: format!("{node}-claim"),
            pool: "web".to_owned(),
            ..Default::default()
        };
        let command = crate::Command {
            method,
            candidates: vec![it],
            ..World::new("node x large on-demand a")
                .decide()
                .commands
                .remove(0)
        };
        self.history.note_failure(&command, at);
    }

    /// A volume that is in one zone, and the claim of a pod for it.
    fn volume(&mut self, pod: &str, zone: &str) {
        let claim = json!({"metadata": {"namespace": "default", "name": pod, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": pod}});
        let term = json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]});
        let volume = json!({"metadata": {"name": pod}, "spec": {
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": pod}}});
        let claim = Arc::new(serde_json::from_value(claim).unwrap());
        self.apply(Event::applied::<v1::PersistentVolumeClaim>(claim));
        let volume = Arc::new(serde_json::from_value(volume).unwrap());
        self.apply(Event::applied::<v1::PersistentVolume>(volume));
    }

    pub(super) fn apply(&mut self, event: Event) {
        self.cluster.apply(now(), event).unwrap();
    }

    pub(super) fn pool(&mut self, name: &str, settings: &[&str], types: &Arc<[Arc<InstanceType>]>) {
        let mut object = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "uid": name},
            "spec": {"template": {"spec": {
                "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "expireAfter": "Never"}},
                "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "", "message": "",
                "lastTransitionTime": "2026-11-20T00:00:00Z"}]}
        });
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap();
            let spec = &mut object["spec"];
            match key {
                "policy" => spec["disruption"]["consolidationPolicy"] = json!(value),
                "after" => spec["disruption"]["consolidateAfter"] = json!(value),
                "budget" => spec["disruption"]["budgets"] = json!([{"nodes": value}]),
                "budgets" => {
                    let budgets: Value = serde_json::from_str(&value.replace('_', " ")).unwrap();
                    spec["disruption"]["budgets"] = budgets;
                }
                "premium" => {
                    object["metadata"]["annotations"]["mortise.dev/max-premium"] = json!(value);
                }
                "limit" => spec["limits"] = json!({"nodes": value}),
                "ready" => object["status"]["conditions"][0]["status"] = json!(value),
                "weight" => spec["weight"] = json!(value.parse::<i64>().unwrap()),
                "replicas" => spec["replicas"] = json!(value.parse::<i64>().unwrap()),
                "capacity" => {
                    let types: Vec<&str> = value.split(',').collect();
                    spec["template"]["spec"]["requirements"][0]["values"] = json!(types);
                }
                other => panic!("{other}"),
            }
        }
        let object: Arc<NodePool> = Arc::new(serde_json::from_value(object).unwrap());
        self.types.insert(name.to_owned(), Arc::clone(types));
        self.pools.push(PoolTypes {
            node_pool: Arc::clone(&object),
            instance_types: Arc::clone(types),
            free_addresses: std::collections::BTreeMap::new(),
        });
        self.apply(Event::applied::<NodePool>(object));
    }

    pub(super) fn node(&mut self, name: &str, words: &[&str]) {
        let [instance_type, capacity_type, zone, flags @ ..] = words else {
            panic!("{words:?}")
        };
        let has = |flag: &str| flags.contains(&flag);
        let pool = flags
            .iter()
            .find_map(|it| it.strip_prefix("pool="))
            .unwrap_or("web");
        let cpus = TYPES
            .iter()
            .find(|it| it.0 == *instance_type)
            .map_or(4, |it| it.1);
        let provider_id = format!("aws:///{zone}/{name}");
        let claim = format!("{name}-claim");
        let conditions = conditions(flags);
        let list =
            json!({"cpu": cpus.to_string(), "memory": format!("{}Gi", cpus * 4), "pods": "110"});
        let labels = json!({
            "karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": instance_type,
            "karpenter.sh/capacity-type": capacity_type, "topology.kubernetes.io/zone": zone,
            "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": if has("uninitialized") { "false" } else { "true" },
            "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"});
        let mut labels = labels;
        if let Some(id) = flags.iter().find_map(|it| it.strip_prefix("reservation=")) {
            labels["karpenter.k8s.aws/capacity-reservation-id"] = json!(id);
        }
        let mut annotations = json!({});
        for flag in ["do-not-disrupt", "do-not-repair"] {
            if has(flag) {
                annotations[format!("karpenter.sh/{flag}")] = json!("true");
            }
        }
        let mut object = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": claim, "uid": format!("{name}-uid"), "labels": labels, "creationTimestamp": "2026-11-20T10:00:00Z"},
            "spec": {"requirements": [], "expireAfter": "Never",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
            "status": {"providerID": provider_id, "nodeName": name, "capacity": list, "allocatable": list, "conditions": conditions}});
        limit_life(&mut object, flags);
        self.apply(Event::applied::<NodeClaim>(Arc::new(
            serde_json::from_value(object).unwrap(),
        )));
        if has("claim-only") {
            return;
        }
        let ready = if has("not-ready") { "False" } else { "True" };
        let mut object = json!({
            "metadata": {"name": name, "uid": name, "labels": labels, "annotations": annotations},
            "spec": {"providerID": provider_id},
            "status": {"capacity": list, "allocatable": list, "conditions": [{"type": "Ready", "status": ready}]}});
        for sick in flags.iter().filter_map(|it| it.strip_prefix("sick=")) {
            be_sick(&mut object, sick);
        }
        self.apply(Event::applied::<v1::Node>(Arc::new(
            serde_json::from_value(object).unwrap(),
        )));
        if has("marked") {
            self.apply(Event::MarkedForDeletion(vec![NodeRef::node(name)]));
        }
        if has("nominated") {
            let until = now() + jiff::SignedDuration::from_secs(5);
            self.apply(Event::Nominated {
                node: NodeRef::node(name),
                until,
            });
        }
        if has("queued") {
            self.queued.insert(claim);
        }
    }

    pub(super) fn pod(&mut self, name: &str, node: &str, cpu: &str, flags: &[&str]) {
        let daemon = flags.contains(&"daemon");
        let kind = if daemon { "DaemonSet" } else { "ReplicaSet" };
        let mut annotations = json!({});
        let (mut app, mut spec, mut placed) = ("web", json!({}), None);
        for flag in flags {
            let Some((key, value)) = flag.split_once('=') else {
                continue;
            };
            match key {
                "do-not-disrupt" => annotations["karpenter.sh/do-not-disrupt"] = json!(value),
                "cost" => {
                    annotations["controller.kubernetes.io/pod-deletion-cost"] = json!(value);
                }
                "app" => app = value,
                "placed" => placed = Some(value),
                "zone" => spec["nodeSelector"] = json!({"topology.kubernetes.io/zone": value}),
                "volume" => {
                    self.volume(name, value);
                    spec["volumes"] =
                        json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
                }
                "priority" => spec["priority"] = json!(value.parse::<i64>().unwrap()),
                other => panic!("{other}"),
            }
        }
        let selector = json!({"matchLabels": {"app": app}});
        if flags.contains(&"apart") {
            let term = json!({"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"});
            let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
            spec["affinity"] = json!({"podAntiAffinity": terms});
        }
        if flags.contains(&"spread") {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "labelSelector": selector,
                "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}]);
        }
        spec["containers"] =
            json!([{"name": "c", "resources": {"requests": {"cpu": format!("{cpu}m")}}}]);
        spec["nodeName"] = json!(node);
        let mut object = json!({
            "metadata": {"namespace": "default", "name": name, "uid": name, "labels": {"app": app}, "annotations": annotations,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": app, "uid": format!("{kind}-{app}"), "controller": true}]},
            "spec": spec,
            "status": {"phase": "Running", "startTime": "2026-11-20T11:00:00Z"}});
        if node == "-" {
            object["spec"]["nodeName"] = Value::Null;
            object["status"] = json!({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
        }
        self.apply(Event::applied::<v1::Pod>(Arc::new(
            serde_json::from_value(object).unwrap(),
        )));
        if let Some(node) = placed {
            self.apply(Event::Placed {
                node: NodeRef::node(node),
                pods: vec![PodKey::new("default", name)],
            });
        }
    }

    pub(super) fn pdb(&mut self, name: &str, allowed: &str, app: &str) {
        let object = json!({"metadata": {"namespace": "default", "name": name},
            "spec": {"selector": {"matchLabels": {"app": app}}, "maxUnavailable": 1},
            "status": {"disruptionsAllowed": allowed.parse::<i32>().unwrap(), "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
        self.apply(Event::applied::<PodDisruptionBudget>(Arc::new(
            serde_json::from_value(object).unwrap(),
        )));
    }

    pub(super) fn run<T>(
        &self,
        hooks: PolicyHooks<'_>,
        f: impl FnOnce(&DisruptionInput, PolicyHooks<'_>) -> T,
    ) -> T {
        let options = Options {
            now: self.now,
            threads: self.threads,
            reserved: self.reserved,
            ..Options::default()
        };
        let input = DisruptionInput {
            snapshot: self.cluster.snapshot(),
            types: self.types.clone(),
            pools: self.pools.clone(),
            queued: self.queued.clone(),
            history: self.history.clone(),
            memory: self.memory.clone(),
            options,
            scheduler: Arc::default(),
            gates: self.gates,
            repair: self.repair.clone(),
            tables: Arc::clone(&self.tables),
        };
        f(&input, hooks)
    }

    /// Acts on what loops find until they find nothing, for so many loops at most.
    pub(super) fn settle(&mut self, hooks: PolicyHooks<'_>, loops_max: usize) -> EndState {
        let options = Options {
            now: self.now,
            ..Options::default()
        };
        let stage = EndStateInput {
            types: &self.types,
            pools: &self.pools,
            options: &options,
            scheduler: &Arc::default(),
            gates: self.gates,
            repair: self.repair.as_ref(),
            hooks,
        };
        until_stable(&mut self.cluster, &stage, loops_max, &Interrupt::never())
    }

    pub(super) fn decide(&self) -> Decision {
        self.decide_by(natively())
    }

    pub(super) fn decide_by(&self, hooks: PolicyHooks<'_>) -> Decision {
        self.decide_until(hooks, &Interrupt::never())
    }

    pub(super) fn decide_until(&self, hooks: PolicyHooks<'_>, interrupt: &Interrupt) -> Decision {
        self.run(hooks, |input, hooks| decide(input, hooks, interrupt))
    }
}

/// `TYPE:STATUS:REASON:MINUTES`, since so many minutes.
fn be_sick(node: &mut Value, words: &str) {
    let words: Vec<&str> = words.split(':').collect();
    let [kind, status, reason, minutes] = words[..] else {
        panic!("{words:?}")
    };
    let since = now() - jiff::SignedDuration::from_mins(minutes.parse().unwrap());
    let condition = json!({"type": kind, "status": status, "reason": reason, "lastTransitionTime": since.to_string()});
    let conditions = node["status"]["conditions"].as_array_mut().unwrap();
    conditions.retain(|it| it["type"] != kind);
    conditions.push(condition);
}

/// Adds the offerings of lines `reservation ID TYPE ZONE SLOTS`.
fn with_reservations(text: &str, types: &Arc<[Arc<InstanceType>]>) -> Arc<[Arc<InstanceType>]> {
    let mut types: Vec<InstanceType> = types.iter().map(|it| (**it).clone()).collect();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["reservation", id, name, zone, slots] = words[..] else {
            continue;
        };
        let single = |key: &str, value: &str| Requirement::new(key, Operator::In, [value]);
        let of = types.iter_mut().find(|it| it.name == name).unwrap();
        of.requirements.replace(Requirement::new(
            "karpenter.sh/capacity-type",
            Operator::In,
            ["on-demand", "spot", "reserved"],
        ));
        of.offerings.push(Offering {
            requirements: [
                single("topology.kubernetes.io/zone", zone),
                single("karpenter.sh/capacity-type", "reserved"),
                single("karpenter.k8s.aws/capacity-reservation-id", id),
            ]
            .into_iter()
            .collect(),
            price_per_hour: 0.000_001,
            reservation_capacity: slots.parse().unwrap(),
            ..of.offerings[0].clone()
        });
    }
    types.into_iter().map(Arc::new).collect()
}

/// What counts as sick in these tests: a node that is not ready for ten minutes, one whose disk fails for as long,
/// and one whose devices hang, which a reboot helps against.
pub(super) fn repair_policies() -> RepairPolicies {
    let policy = |kind: &str, status: &str, reason: &str| RepairPolicy {
        condition_type: kind.to_owned(),
        condition_status: status.to_owned(),
        reason_regex: reason.to_owned(),
        toleration: GoDuration::from_seconds(600),
        termination_grace_period: None,
        priority: 0,
        action: RepairAction::Replace,
    };
    let bounded = RepairPolicy {
        termination_grace_period: Some(GoDuration::from_seconds(60)),
        priority: 50,
        ..policy("DiskFailed", "True", ".*")
    };
    let reboots = RepairPolicy {
        action: RepairAction::Reboot,
        ..policy("DevicesReady", "False", "^Hung")
    };
    let gone = policy("Ready", "Unknown", ".*");
    RepairPolicies::new(vec![policy("Ready", "False", ""), gone, bounded, reboots]).unwrap()
}

fn limit_life(object: &mut Value, flags: &[&str]) {
    let has = |flag: &str| flags.contains(&flag);
    let created = flags.iter().find_map(|it| it.strip_prefix("created="));
    if let Some(created) = created {
        object["metadata"]["creationTimestamp"] = json!(created);
    }
    if let Some(life) = flags.iter().find_map(|it| it.strip_prefix("expires=")) {
        object["spec"]["expireAfter"] = json!(life);
    }
    if has("bounded") {
        object["spec"]["terminationGracePeriod"] = json!("1h");
    }
    if has("settling") {
        object["status"]["lastPodEventTime"] = json!("2026-11-20T11:59:30Z");
    }
}

fn conditions(flags: &[&str]) -> Vec<Value> {
    let has = |flag: &str| flags.contains(&flag);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-11-20T10:00:00Z"});
    let since = |kind: &str, at: &str| {
        let mut condition = condition(kind);
        condition["lastTransitionTime"] = json!(at);
        condition
    };
    let initialized = if has("fresh") {
        since("Initialized", "2026-11-20T11:59:50Z")
    } else {
        condition("Initialized")
    };
    let mut conditions = vec![condition("Launched"), condition("Registered"), initialized];
    if !has("young") {
        conditions.push(condition("Consolidatable"));
    }
    if has("drifted") {
        conditions.push(condition("Drifted"));
    }
    if let Some(at) = flags.iter().find_map(|it| it.strip_prefix("drifted=")) {
        conditions.push(since("Drifted", at));
    }
    conditions
}
