//! Loops told as a few lines of text: what the cluster is, what must come of it.

use std::sync::Arc;

use apis::NodePool;
use apis::resources::Resources;
use jiff::Timestamp;
use scheduling::instance_type::{InstanceType, Offering, Overhead};
use scheduling::ranking::PriceRank;
use scheduling::requirements::{Operator, Requirement, Requirements};
use serde_json::{Value, json};
use state::{Cluster, Event};

use super::*;
use crate::hooks::{
    AllowAnswer, BudgetRound, ConsolidationRound, DeclaredBudgets, DefaultConsolidation,
    JudgeAnswer, Move, OrderAnswer, Verdict, VerdictDecision,
};
use crate::validation::{Rejection, validate};

const GIB_MILLIS: i64 = 1 << 30;
/// Name, CPUs, USD an hour on demand; spot costs 0.4 of it.
const TYPES: [(&str, i64, f64); 4] = [
    ("nano", 1, 0.05),
    ("small", 2, 0.1),
    ("medium", 4, 0.2),
    ("large", 8, 0.4),
];

fn now() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

fn instance_type(name: &str, cpus: i64, price: f64) -> Arc<InstanceType> {
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
                requirements,
                price_per_hour: price * factor,
                on_demand_price_per_hour: Some(price),
                available: true,
                reservation_capacity: 0,
                ice_count: 0,
                ice_age_seconds: None,
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
/// `pod NAME NODE CPU-MILLIS flag..`, `pdb NAME ALLOWED`.
struct World {
    cluster: Cluster,
    types: TypesByPool,
    pools: Vec<PoolTypes>,
    queued: BTreeSet<String>,
    memory: Memory,
    gates: Gates,
}

impl World {
    fn new(text: &str) -> Self {
        let types: Arc<[Arc<InstanceType>]> = TYPES
            .iter()
            .map(|&(name, cpus, price)| instance_type(name, cpus, price))
            .collect();
        Self::with_types(text, types)
    }

    fn with_types(text: &str, types: Arc<[Arc<InstanceType>]>) -> Self {
        let mut world = Self {
            cluster: Cluster::new(),
            types: TypesByPool::new(),
            pools: Vec::new(),
            queued: BTreeSet::new(),
            memory: Memory::default(),
            gates: Gates::default(),
        };
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        if !lines().any(|line| line.starts_with("pool ")) {
            world.pool("web", &[], &types);
        }
        for line in lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["pool", name, rest @ ..] => world.pool(name, rest, &types),
                ["node", name, rest @ ..] => world.node(name, rest),
                ["pod", name, node, cpu, flags @ ..] => world.pod(name, node, cpu, flags),
                ["pdb", name, allowed] => world.pdb(name, allowed),
                other => panic!("{other:?}"),
            }
        }
        world
    }

    fn apply(&mut self, event: Event) {
        self.cluster.apply(now(), event).unwrap();
    }

    fn pool(&mut self, name: &str, settings: &[&str], types: &Arc<[Arc<InstanceType>]>) {
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
        });
        self.apply(Event::NodePoolApplied(object));
    }

    fn node(&mut self, name: &str, words: &[&str]) {
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
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-11-20T10:00:00Z"});
        let mut conditions = vec![
            condition("Launched"),
            condition("Registered"),
            condition("Initialized"),
        ];
        if !has("young") {
            conditions.push(condition("Consolidatable"));
        }
        if has("drifted") {
            conditions.push(condition("Drifted"));
        }
        let list =
            json!({"cpu": cpus.to_string(), "memory": format!("{}Gi", cpus * 4), "pods": "110"});
        let labels = json!({
            "karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": instance_type,
            "karpenter.sh/capacity-type": capacity_type, "topology.kubernetes.io/zone": zone,
            "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": if has("uninitialized") { "false" } else { "true" },
            "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"});
        let annotations = if has("do-not-disrupt") {
            json!({"karpenter.sh/do-not-disrupt": "true"})
        } else {
            json!({})
        };
        let mut object = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": claim, "uid": claim, "labels": labels, "creationTimestamp": "2026-11-20T10:00:00Z"},
            "spec": {"requirements": [], "expireAfter": "Never",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
            "status": {"providerID": provider_id, "nodeName": name, "capacity": list, "allocatable": list, "conditions": conditions}});
        if has("bounded") {
            object["spec"]["terminationGracePeriod"] = json!("1h");
        }
        if has("settling") {
            object["status"]["lastPodEventTime"] = json!("2026-11-20T11:59:30Z");
        }
        self.apply(Event::NodeClaimApplied(Arc::new(
            serde_json::from_value(object).unwrap(),
        )));
        if has("claim-only") {
            return;
        }
        let ready = if has("not-ready") { "False" } else { "True" };
        let object = json!({
            "metadata": {"name": name, "uid": name, "labels": labels, "annotations": annotations},
            "spec": {"providerID": provider_id},
            "status": {"capacity": list, "allocatable": list, "conditions": [{"type": "Ready", "status": ready}]}});
        self.apply(Event::NodeApplied(Arc::new(
            serde_json::from_value(object).unwrap(),
        )));
        if has("marked") {
            self.apply(Event::MarkedForDeletion(vec![name.to_owned()]));
        }
        if has("nominated") {
            let until = now() + jiff::SignedDuration::from_secs(5);
            self.apply(Event::Nominated {
                name: name.to_owned(),
                until,
            });
        }
        if has("queued") {
            self.queued.insert(claim);
        }
    }

    fn pod(&mut self, name: &str, node: &str, cpu: &str, flags: &[&str]) {
        let daemon = flags.contains(&"daemon");
        let kind = if daemon { "DaemonSet" } else { "ReplicaSet" };
        let mut annotations = json!({});
        for flag in flags {
            if let Some((key, value)) = flag.split_once('=') {
                let key = match key {
                    "do-not-disrupt" => "karpenter.sh/do-not-disrupt",
                    "cost" => "controller.kubernetes.io/pod-deletion-cost",
                    other => panic!("{other}"),
                };
                annotations[key] = json!(value);
            }
        }
        let mut object = json!({
            "metadata": {"namespace": "default", "name": name, "uid": name, "labels": {"app": "web"}, "annotations": annotations,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "w", "uid": kind, "controller": true}]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": format!("{cpu}m")}}}]},
            "status": {"phase": "Running", "startTime": "2026-11-20T11:00:00Z"}});
        if node == "-" {
            object["spec"]["nodeName"] = Value::Null;
            object["status"] = json!({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
        }
        self.apply(Event::PodApplied(Arc::new(
            serde_json::from_value(object).unwrap(),
        )));
    }

    fn pdb(&mut self, name: &str, allowed: &str) {
        let object = json!({"metadata": {"namespace": "default", "name": name},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
            "status": {"disruptionsAllowed": allowed.parse::<i32>().unwrap(), "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
        self.apply(Event::PdbApplied(Arc::new(
            serde_json::from_value(object).unwrap(),
        )));
    }

    fn run<T>(&self, hooks: Hooks<'_>, f: impl FnOnce(Input<'_>, Hooks<'_>) -> T) -> T {
        let snapshot = self.cluster.snapshot();
        let options = Options {
            now: now(),
            ..Options::default()
        };
        let history = History::default();
        let input = Input {
            snapshot: &snapshot,
            types: &self.types,
            pools: &self.pools,
            queued: &self.queued,
            buffer_nodes: &BTreeSet::new(),
            history: &history,
            memory: &self.memory,
            options: &options,
            gates: self.gates,
        };
        f(input, hooks)
    }

    fn decide(&self) -> Decision {
        self.run(natively(), |input, hooks| {
            decide(input, hooks, &Interrupt::never())
        })
    }
}

fn natively() -> Hooks<'static> {
    Hooks {
        rank: &PriceRank,
        consolidation: &DefaultConsolidation,
        budgets: &DeclaredBudgets,
    }
}

fn told(decision: &Decision) -> String {
    let commands: Vec<String> = decision
        .commands
        .iter()
        .map(|it| {
            let mut nodes: Vec<&str> = it.candidates.iter().map(|it| it.node.as_str()).collect();
            nodes.sort_unstable();
            let comes: Vec<&str> = it
                .replacements
                .iter()
                .map(|it| it.best.instance_type.as_str())
                .collect();
            let kind = it.method.consolidation_type();
            let kind = if kind.is_empty() { "drift" } else { kind };
            let arrow = if comes.is_empty() {
                String::new()
            } else {
                format!(" -> {}", comes.join(" "))
            };
            format!("{kind}: {}{arrow}", nodes.join(" "))
        })
        .collect();
    commands.join("; ")
}

fn outcome(decision: &Decision, node: &str) -> &'static str {
    decision
        .outcomes
        .iter()
        .find(|it| it.node == node)
        .map_or("absent", |it| it.outcome.name())
}

#[test]
fn a_loop_decides_what_it_should() {
    for (story, world, expected) in [
        (
            "nothing to do",
            "node n1 small on-demand a\npod p n1 1900",
            "",
        ),
        (
            "empty nodes go together",
            "node n1 small on-demand a\nnode n2 small on-demand b",
            "empty: n1 n2",
        ),
        (
            "daemons do not keep a node",
            "node n1 small on-demand a\npod d n1 100 daemon",
            "empty: n1",
        ),
        (
            "pods worth nothing do not either",
            "node n1 small on-demand a\npod p n1 100 cost=-134217728",
            "empty: n1",
        ),
        ("a young node stays", "node n1 small on-demand a young", ""),
        (
            "within the budget",
            "pool web budget=1\nnode n1 small on-demand a\nnode n2 medium on-demand a",
            "empty: n2",
        ),
        (
            "NotReady nodes use it up",
            "pool web budget=1\nnode n1 small on-demand a\nnode n2 small on-demand a not-ready\npod p n2 1900",
            "",
        ),
        (
            "never",
            "pool web after=Never\nnode n1 small on-demand a",
            "",
        ),
        (
            "static",
            "pool web replicas=1\nnode n1 small on-demand a",
            "",
        ),
        (
            "pods fit elsewhere",
            "node n1 small on-demand a\nnode n2 small on-demand a\npod p n1 500\npod q n2 1200",
            "single: n1",
        ),
        (
            "two nodes whose pods fit a third",
            "node n1 small on-demand a\nnode n2 small on-demand a\nnode n3 large on-demand a\npod p n1 500\npod q n2 500\npod r1 n3 1700\npod r2 n3 1700\npod r3 n3 1700\npod r4 n3 1700\npod r5 n3 10\npod r6 n3 10\npod r7 n3 10\npod r8 n3 10",
            "multi: n1 n2",
        ),
        (
            "two nodes become one cheaper",
            "node n1 large on-demand a\nnode n2 large on-demand a\npod p n1 1600\npod q n2 1700",
            "multi: n1 n2 -> medium",
        ),
        (
            "a cheaper node does",
            "node n1 large on-demand a\npod p n1 900",
            "single: n1 -> nano",
        ),
        (
            "no cheaper node does",
            "node n1 nano on-demand a\npod p n1 900",
            "",
        ),
        (
            "a smaller node would not hold it",
            "node n1 medium on-demand a\npod p n1 2500",
            "",
        ),
        (
            "when empty only",
            "pool web policy=WhenEmpty\nnode n1 large on-demand a\npod p n1 900",
            "",
        ),
        (
            "on-demand to spot",
            "pool web capacity=spot,on-demand\nnode n1 small on-demand a\npod p n1 1900",
            "single: n1 -> small",
        ),
        (
            "spot to spot is off",
            "pool web capacity=spot\nnode n1 large spot a\npod p n1 900",
            "",
        ),
        (
            "drift comes before consolidation",
            "node n1 small on-demand a drifted\npod p n1 1900",
            "drift: n1 -> small",
        ),
        (
            "drift ignores consolidateAfter",
            "pool web after=Never\nnode n1 small on-demand a drifted young\npod p n1 1900",
            "drift: n1 -> small",
        ),
        (
            "one drifted node at a time",
            "node n1 small on-demand a drifted\nnode n2 small on-demand a drifted\npod p n1 1900\npod q n2 1900",
            "drift: n1 -> small",
        ),
        (
            "a bounded drain tolerates blocking pods",
            "node n1 small on-demand a drifted bounded\npod p n1 1900 do-not-disrupt=true",
            "drift: n1",
        ),
        (
            "an unbounded one does not",
            "node n1 small on-demand a drifted\npod p n1 1900 do-not-disrupt=true",
            "",
        ),
        (
            "a node pods just came to takes no others",
            "pool web after=1m\nnode n1 small on-demand a\nnode n2 small on-demand a young settling\npod p n1 1500\npod q n2 100",
            "",
        ),
        (
            "a pod that waits anyway is no obstacle",
            "node n1 small on-demand a\nnode n2 small on-demand a\npod p n1 500\npod q n2 1200\npod huge - 900000",
            "single: n1",
        ),
    ] {
        let decision = World::new(world).decide();
        assert_eq!(
            told(&decision),
            expected,
            "{story}: {:#?}",
            decision.outcomes
        );
    }
}

#[test]
fn every_node_has_exactly_one_outcome() {
    let world = "
        node claim-only nano on-demand a claim-only
        node uninitialized nano on-demand a uninitialized
        node marked nano on-demand a marked
        node nominated nano on-demand a nominated
        node annotated nano on-demand a do-not-disrupt
        node strayed nano on-demand a pool=gone
        node queued nano on-demand a queued
        node protected small on-demand a
        pod p protected 1900 do-not-disrupt=true
        node briefly small on-demand a
        pod q briefly 1900 do-not-disrupt=2h
        node young small on-demand a young
        pod r young 1900
        node full small on-demand a
        pod s full 1900
        node elapsed small on-demand a
        pod t elapsed 1900 do-not-disrupt=30m
    ";
    let decision = World::new(world).decide();
    for (node, expected) in [
        ("claim-only-claim", "node-missing"),
        ("uninitialized", "node-not-initialized"),
        ("marked", "node-marked-for-deletion"),
        ("nominated", "node-nominated"),
        ("annotated", "node-do-not-disrupt"),
        ("strayed", "node-pool-not-found"),
        ("queued", "node-in-queue"),
        ("protected", "node-pod-do-not-disrupt"),
        ("briefly", "node-pod-do-not-disrupt"),
        ("young", "node-not-consolidatable"),
        ("full", "node-no-cheaper-replacement"),
        ("elapsed", "node-no-cheaper-replacement"),
    ] {
        assert_eq!(outcome(&decision, node), expected, "{node}");
    }
    assert_eq!(decision.outcomes.len(), 12);
    let silent: Vec<_> = decision
        .blocked
        .iter()
        .filter(|it| it.message.is_none())
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(silent, ["queued"], "every other block is told");
}

#[test]
fn a_pdb_blocks_graceful_methods() {
    for (pdbs, expected) in [
        ("pdb one 0", "node-pod-pdb-blocked"),
        ("pdb one 1\npdb two 1", "node-pod-many-pdbs"),
        ("pdb one 1", "node-chosen-single"),
    ] {
        let decision =
            World::new(&format!("node n1 large on-demand a\npod p n1 900\n{pdbs}")).decide();
        assert_eq!(outcome(&decision, "n1"), expected, "{pdbs}");
    }
}

#[test]
fn spot_to_spot_needs_fifteen_cheaper_types() {
    for (cheaper, expected) in [
        (14, ""),
        (15, "single: n1 -> t00"),
        (40, "single: n1 -> t00"),
    ] {
        let mut types: Vec<_> = (0..cheaper)
            .map(|it| instance_type(&format!("t{it:02}"), 2, 0.1 + 0.001 * f64::from(it)))
            .collect();
        types.push(instance_type("large", 8, 0.4));
        let text = "pool web capacity=spot\nnode n1 large spot a\npod p n1 900";
        let mut world = World::with_types(text, types.into());
        world.gates.spot_to_spot = true;
        let decision = world.decide();
        assert_eq!(told(&decision), expected, "{cheaper}");
        if let Some(command) = decision.commands.first() {
            assert_eq!(command.replacements[0].instance_types.len(), 15);
        } else {
            assert_eq!(outcome(&decision, "n1"), "node-spot-to-spot-few-types");
        }
    }
}

#[test]
fn what_found_nothing_does_not_look_again_until_something_changes() {
    let mut world = World::new("node n1 small on-demand a\npod p n1 1900");
    let first = world.decide();
    assert_eq!(outcome(&first, "n1"), "node-no-cheaper-replacement");
    world.memory = first.memory.clone();
    let second = world.decide();
    assert_eq!(second.outcomes, first.outcomes, "the finding is repeated");
    assert!(second.record(now()).same_findings(&first.record(now())));
    let mut freed = World::new("node n1 small on-demand a\npod p n1 900\npdb one 0");
    freed.memory = freed.decide().memory;
    freed.pdb("one", "1");
    assert_eq!(
        told(&freed.decide()),
        "single: n1 -> nano",
        "what opened since is looked at"
    );
    world.pod("q", "n1", "10", &[]);
    world.apply(Event::PodDeleted(scheduling::pod::PodKey::new(
        "default", "p",
    )));
    assert_eq!(told(&world.decide()), "single: n1 -> nano");
}

/// Says what its fields say.
struct Opinion(VerdictDecision, f64);

impl ConsolidationHook for Opinion {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        OrderAnswer {
            keys: vec![self.1; round.nodes.len()],
            uses: Vec::new(),
        }
    }

    fn judge(&self, _: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        let verdict = Verdict {
            decision: self.0,
            score: 1.0,
            reason: "because".into(),
            retry_after_seconds: 60,
        };
        JudgeAnswer {
            verdicts: vec![verdict; moves.len()],
            uses: Vec::new(),
        }
    }
}

impl BudgetsHook for Opinion {
    fn allow(&self, round: &BudgetRound) -> AllowAnswer {
        let mut answer = DeclaredBudgets.allow(round);
        for item in &mut answer.items {
            item.allowed = 0;
        }
        answer
    }
}

#[test]
fn policies_have_a_say_and_not_the_last_word() {
    use VerdictDecision::{Approve, Hold, Reject};
    let could_go = "node n1 large on-demand a\npod p n1 900";
    let may_not = "node n1 large on-demand a\npod p n1 900 do-not-disrupt=true";
    let no_gain = "node n1 nano on-demand a\npod p n1 900";
    for (world, opinion, expected) in [
        (could_go, Opinion(Approve, 0.0), "node-chosen-single"),
        (could_go, Opinion(Reject, 0.0), "node-policy-rejected"),
        (could_go, Opinion(Hold, 0.0), "node-policy-held"),
        (could_go, Opinion(Approve, -1.0), "node-policy-skipped"),
        (may_not, Opinion(Approve, 0.0), "node-pod-do-not-disrupt"),
        (
            no_gain,
            Opinion(Approve, 0.0),
            "node-no-cheaper-replacement",
        ),
        (
            "node n1 large on-demand a",
            Opinion(Reject, 0.0),
            "node-policy-rejected",
        ),
    ] {
        let hooks = Hooks {
            consolidation: &opinion,
            ..natively()
        };
        let decision = World::new(world).run(hooks, |input, hooks| {
            decide(input, hooks, &Interrupt::never())
        });
        assert_eq!(outcome(&decision, "n1"), expected, "{world}");
        let held = decision.memory.holds.get("n1-claim").copied();
        assert_eq!(held.is_some(), opinion.0 == Hold, "{world}");
    }
    let hooks = Hooks {
        budgets: &Opinion(Approve, 0.0),
        ..natively()
    };
    let decision = World::new(could_go).run(hooks, |input, hooks| {
        decide(input, hooks, &Interrupt::never())
    });
    assert_eq!(outcome(&decision, "n1"), "node-budget-exhausted");
}

#[test]
fn a_command_is_checked_again_before_it_starts() {
    type Change = fn(&mut World);
    let cases: [(&str, &str, Change, &str); 6] = [
        (
            "unchanged",
            "node n1 large on-demand a\npod p n1 900",
            |_| {},
            "n1",
        ),
        (
            "filled meanwhile",
            "node n1 large on-demand a",
            |world| world.pod("p", "n1", "100", &[]),
            "churn",
        ),
        (
            "one of two filled",
            "node n1 large on-demand a\nnode n2 large on-demand a",
            |world| world.pod("p", "n1", "100", &[]),
            "n2",
        ),
        (
            "protected meanwhile",
            "node n1 large on-demand a\npod p n1 900",
            |world| world.pod("q", "n1", "100", &["do-not-disrupt=true"]),
            "churn",
        ),
        (
            "grew meanwhile",
            "node n1 large on-demand a\npod p n1 900",
            |world| world.pod("q", "n1", "5000", &[]),
            "scheduling",
        ),
        (
            "budget used up meanwhile",
            "pool web budget=1\nnode n1 large on-demand a\npod p n1 900",
            |world| {
                world.node("n2", &["small", "on-demand", "a", "not-ready"]);
                world.pod("q", "n2", "1900", &[]);
            },
            "budget",
        ),
    ];
    for (story, text, change, expected) in cases {
        let mut world = World::new(text);
        let command = world.decide().commands.remove(0);
        change(&mut world);
        let result = world.run(natively(), |input, hooks| {
            validate(input, hooks, &Interrupt::never(), command)
        });
        let told = match result {
            Ok(command) => command
                .candidates
                .iter()
                .map(|it| it.node.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            Err(Rejection::Churn(_)) => "churn".to_owned(),
            Err(Rejection::Budget(_)) => "budget".to_owned(),
            Err(Rejection::Scheduling(_)) => "scheduling".to_owned(),
        };
        assert_eq!(told, expected, "{story}");
    }
}
