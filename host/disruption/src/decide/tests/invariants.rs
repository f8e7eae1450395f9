//! What no loop may do, whatever the story and whatever a policy says: judged on the story's own lines.
//!
//! One loop decides and touches nothing, so what needs a running world (instances, finalizers, restarts, messages,
//! the fence of a lease) is judged where there is one, in the tests of the controllers.

mod told;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use scheduling::solution::NewClaim;

use super::*;
use crate::end_state::price_per_hour;
use crate::method::DisruptionClass;
pub(super) use told::Told;
use told::{cpus, price};

const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
const ZONE: &str = "topology.kubernetes.io/zone";

/// What is wrong with what a loop decided; each begins with the number of the invariant.
pub(super) fn violations(told: &Told, world: &World, commands: &[Command]) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(over_limits(told, commands));
    found.extend(over_budgets(told, world, commands));
    for command in commands {
        found.extend(against_protection(told, world.now, command));
        found.extend(before_replacements(told, world, command));
        found.extend(dearer(told, command));
    }
    found.extend(homeless(told, world, commands));
    found
}

/// I03: what there is and what comes stays within the limits. What goes is still there when its replacement comes.
fn over_limits(told: &Told, commands: &[Command]) -> Vec<String> {
    let comes: Vec<&NewClaim> = commands.iter().flat_map(Command::replacements).collect();
    let over = told.pools.keys().filter_map(|pool| {
        let limit: usize = told.setting(pool, "limit")?.parse().unwrap();
        let there = told.nodes.values().filter(|it| it.pool() == pool).count();
        let more = comes.iter().filter(|it| it.pool == *pool).count();
        (more > 0 && there + more > limit)
            .then(|| format!("I03: {pool}: {there} and {more} of {limit} nodes"))
    });
    over.collect()
}

/// I04: with what goes already, no more go than a budget allows.
fn over_budgets(told: &Told, world: &World, commands: &[Command]) -> Vec<String> {
    let mut found = Vec::new();
    let mut begun: BTreeMap<&str, u32> = BTreeMap::new();
    for command in commands {
        let reason = command.reason().to_string();
        for it in &command.candidates {
            let node = &told.nodes[&it.node];
            // A node that was never of use is not one of those that a budget protects.
            if node.has("uninitialized") && command.method == Method::Repair {
                continue;
            }
            *begun.entry(node.pool()).or_default() += 1;
        }
        for (pool, begun) in &begun {
            let going = told.consuming(pool, &reason) + begun;
            let allowed = told.allowed(pool, &reason, world.now);
            if allowed.is_some_and(|allowed| going > allowed) {
                found.push(format!("I04: {pool}: {going} of {allowed:?} go, {reason}"));
            }
        }
    }
    found
}

/// I05 and I06: nothing that is protected is asked to go.
fn against_protection(told: &Told, now: Timestamp, command: &Command) -> Vec<String> {
    let mut found = Vec::new();
    let class = command.method.class();
    for it in &command.candidates {
        let node = &told.nodes[&it.node];
        if class == DisruptionClass::Repair {
            if node.has("do-not-repair") {
                found.push(format!("I06: node {} is not to be repaired", it.node));
            }
        } else if node.has("do-not-disrupt") {
            found.push(format!("I06: node {} is protected", it.node));
        }
        if node.has("marked") || node.has("queued") {
            found.push(format!("I04: node {} goes already", it.node));
        }
        let is_bounded = match class {
            DisruptionClass::Graceful => false,
            DisruptionClass::Eventual => node.has("bounded"),
            DisruptionClass::Repair => {
                let bound = command.repair_reason.as_ref().and_then(|it| it.drain_bound);
                node.has("bounded") || bound.is_some()
            }
        };
        if !is_bounded {
            let pods = told.on(&it.node).filter(|(_, pod)| !pod.has("daemon"));
            found.extend(pods.filter_map(|(name, pod)| told.protection(name, pod, now)));
        }
    }
    found
}

/// I07: nothing goes before its replacement unless that is allowed, and pods are sent only to nodes that stay.
fn before_replacements(told: &Told, world: &World, command: &Command) -> Vec<String> {
    let mut found = Vec::new();
    let may_go_first = match command.method {
        Method::Repair => world.gates.terminate_first_repair,
        Method::StaticDrift | Method::Drift => world.gates.terminate_first_drift,
        Method::Emptiness
        | Method::Expiry
        | Method::MultiNodeConsolidation
        | Method::SingleNodeConsolidation => false,
    };
    if matches!(command.execution, Execution::TerminateFirst(_)) && !may_go_first {
        found.push("I07: goes first without leave".to_owned());
    }
    let goes = |name: &str| command.candidates.iter().any(|it| it.node == name);
    for node in &command.destinations {
        let stays = told.nodes.get(node.name()).is_some_and(is_a_place);
        if goes(node.name()) || !stays {
            found.push(format!("I07: pods are sent to {node}"));
        }
    }
    found
}

/// Whether pods may be sent to the node.
fn is_a_place(node: &told::Node) -> bool {
    let is_not = ["marked", "uninitialized", "claim-only", "queued"];
    !is_not.iter().any(|it| node.has(it))
}

/// I09: consolidation saves, whatever of its types the launches turn out to be.
fn dearer(told: &Told, command: &Command) -> Option<String> {
    if !command.method.is_consolidation() {
        return None;
    }
    let goes = command.candidates.iter().map(|it| &told.nodes[&it.node]);
    let before: f64 = goes.map(told::Node::price_per_hour).sum();
    let after: f64 = command.replacements().iter().map(dearest).sum();
    let is_honest = (command.before.price_per_hour - before).abs() < 1e-9;
    (after >= before - 1e-9 || !is_honest).then(|| {
        let said = command.before.price_per_hour;
        format!("I09: from {before} (said: {said}) to {after} USD an hour")
    })
}

/// What a claim costs at most. Launches prefer spot where they may buy it.
fn dearest(claim: &NewClaim) -> f64 {
    let capacity = claim.requirements.get(CAPACITY_TYPE);
    let order = ["reserved", "spot", "on-demand"];
    let bought = order.iter().find(|it| capacity.has(it)).unwrap();
    let prices = claim.instance_types.iter().map(|it| price(it, bought));
    prices.fold(0.0, f64::max)
}

/// A node as a place for pods: what is free, where it is, and whose pods it holds.
struct Place {
    free_millis: i64,
    /// Nothing where the launch decides.
    zone: Option<String>,
    apps: Vec<String>,
}

/// I08: every pod of what goes has a place on what stays and what comes, tried one by one.
fn homeless(told: &Told, world: &World, commands: &[Command]) -> Vec<String> {
    let of_simulations = commands.iter().filter(|it| {
        let is_static = it.candidates.iter().any(|it| {
            let node = &told.nodes[&it.node];
            told.setting(node.pool(), "replicas").is_some()
        });
        matches!(it.execution, Execution::ReplaceFirst(_)) && !is_static
    });
    let commands: Vec<&Command> = of_simulations.collect();
    let goes: BTreeSet<&String> = commands
        .iter()
        .flat_map(|it| it.candidates.iter().map(|it| &it.node))
        .collect();
    let mut places: Vec<Place> = Vec::new();
    for (name, node) in &told.nodes {
        if !goes.contains(name) && is_a_place(node) {
            let used: i64 = told.on(name).map(|(_, pod)| pod.cpu_millis).sum();
            places.push(Place {
                free_millis: node.cpu_millis() - used,
                zone: Some(node.zone.clone()),
                apps: told.on(name).map(|(_, it)| it.app().to_owned()).collect(),
            });
        }
    }
    for claim in commands.iter().flat_map(|it| it.replacements()) {
        let smallest = claim.instance_types.iter().map(cpus).min().unwrap();
        let zones = claim.requirements.get(ZONE);
        let mut may_be = ["a", "b", "c"].iter().filter(|it| zones.has(it));
        places.push(Place {
            free_millis: smallest * 1000,
            zone: may_be
                .next()
                .filter(|_| may_be.next().is_none())
                .map(|it| (*it).to_owned()),
            apps: Vec::new(),
        });
    }
    let is_held = |command: &Command, name: &str, pod: &told::Pod| {
        let all_go = command.method.class() == DisruptionClass::Repair;
        let is_worthless = command.method == Method::Emptiness && pod.is_worthless();
        is_worthless || (!all_go && told.protection(name, pod, world.now).is_some())
    };
    let mut pods = Vec::new();
    for command in &commands {
        for it in &command.candidates {
            let of_node = told.on(&it.node).filter(|(_, pod)| !pod.has("daemon"));
            // Held pods stay until the drain's bound is over, and worthless ones just go; nobody plans for them.
            pods.extend(of_node.filter(|(name, pod)| !is_held(command, name, pod)));
        }
    }
    pods.sort_by_key(|(_, pod)| -pod.cpu_millis);
    let all: Vec<&told::Pod> = pods.iter().map(|it| it.1).collect();
    if find_places(&all, &mut places) {
        return Vec::new();
    }
    let names: Vec<&str> = pods.iter().map(|it| it.0.as_str()).collect();
    vec![format!("I08: no place for all of {}", names.join(", "))]
}

fn find_places(pods: &[&told::Pod], places: &mut [Place]) -> bool {
    let Some((pod, rest)) = pods.split_first() else {
        return is_spread(places);
    };
    for at in 0..places.len() {
        let place = &mut places[at];
        let fits = place.free_millis >= pod.cpu_millis
            && pod
                .zone()
                .is_none_or(|it| place.zone.as_deref() == Some(it))
            && !(pod.has("apart") && place.apps.iter().any(|it| it == pod.app()));
        if !fits {
            continue;
        }
        place.free_millis -= pod.cpu_millis;
        let app = if pod.has("spread") {
            "spread"
        } else {
            pod.app()
        };
        place.apps.push(app.to_owned());
        if find_places(rest, places) {
            return true;
        }
        places[at].free_millis += pod.cpu_millis;
        places[at].apps.pop();
    }
    false
}

/// Of the pods that were moved and spread, no zone has two more than another.
fn is_spread(places: &[Place]) -> bool {
    let mut counts = BTreeMap::from([("a", 0), ("b", 0)]);
    for place in places {
        let spread = place.apps.iter().filter(|it| *it == "spread").count();
        match place.zone.as_deref() {
            Some(zone) if spread > 0 => *counts.entry(zone).or_default() += spread,
            Some(_) | None => {}
        }
    }
    let most = counts.values().max().unwrap();
    let least = counts.values().min().unwrap();
    most - least <= 1
}

/// Every node has exactly one outcome.
pub(super) fn each_node_once(world: &World, decision: &Decision) {
    let mut named: Vec<&str> = decision
        .outcomes
        .iter()
        .map(|it| it.node.as_str())
        .collect();
    named.sort_unstable();
    let snapshot = world.cluster.snapshot();
    let mut nodes: Vec<&str> = snapshot.nodes().map(|it| it.name()).collect();
    nodes.sort_unstable();
    assert_eq!(named, nodes);
}

/// A policy that approves of everything, turns every order round, allows all and answers nonsense besides.
pub(super) struct Hostile;

impl ConsolidationHook for Hostile {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        let rows = 0..round.nodes.len();
        let keys = rows
            .rev()
            .map(|it| if it == 1 { f64::NAN } else { it as f64 });
        OrderAnswer {
            keys: keys.chain([f64::INFINITY, 7.0]).collect(),
            uses: Vec::new(),
        }
    }

    fn judge(&self, _: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        let verdict = Verdict {
            decision: VerdictDecision::Approve,
            score: f64::INFINITY,
            reason: "why not".into(),
            retry_after_seconds: u32::MAX,
        };
        JudgeAnswer {
            verdicts: vec![verdict; moves.len() + 1],
            uses: Vec::new(),
        }
    }
}

impl BudgetsHook for Hostile {
    fn allow(&self, round: &BudgetRound) -> AllowAnswer {
        let mut answer = DeclaredBudgets.allow(round);
        for item in &mut answer.items {
            item.allowed = u32::MAX;
        }
        let stray = answer.items.first().cloned();
        answer
            .items
            .extend(stray.map(|it| hooks::disruption::Allowance { pool: 99, ..it }));
        answer
    }
}

/// I10: loop after loop comes to an end where nothing is repaired, no pod is lost on the way, and no consolidation
/// costs more than before.
pub(super) fn settles(world: &mut World) {
    let bound = |world: &World| {
        let snapshot = world.cluster.snapshot();
        snapshot.pods().filter(|it| it.node_name.is_some()).count()
    };
    let pods = bound(world);
    let before = price_per_hour(&world.cluster.snapshot(), &world.types);
    world.repair = None;
    let settled = world.settle(natively(), 60);
    let last = settled.loops.last().unwrap();
    assert!(
        last.commands.is_empty(),
        "I10: it goes on and on: {}",
        super::told(last)
    );
    let only_saves = settled.commands().all(|it| it.method.is_consolidation());
    let after = price_per_hour(&world.cluster.snapshot(), &world.types);
    assert!(
        !only_saves || after <= before + 1e-9,
        "I09: {before} became {after}"
    );
    assert!(!only_saves || bound(world) == pods, "I08: pods were lost");
}

const ONE: &str = "node n1 large on-demand a\npod p n1 900";
const TWO: &str = "node n1 large on-demand a\nnode n2 large on-demand a";

/// A cluster, what is true of it but was not told to the loop, and the invariant that its command breaks so.
const UNTOLD: &[(&str, &str, &str)] = &[
    (ONE, "pool web limit=1", "I03"),
    (TWO, "pool web budget=1", "I04"),
    (
        ONE,
        r#"pool web budgets=[{"nodes":"0","schedule":"0_12_*_*_5","duration":"1m"}]"#,
        "I04",
    ),
    (
        ONE,
        r#"pool web budgets=[{"nodes":"9","schedule":"whenever"}]"#,
        "I04",
    ),
    (ONE, "node n1 large on-demand a marked", "I04"),
    (ONE, "pdb zero 0", "I05"),
    (ONE, "pdb a 1\npdb b 1", "I05"),
    (ONE, "pod p n1 900 do-not-disrupt=61m", "I06"),
    (ONE, "node n1 large on-demand a do-not-disrupt", "I06"),
    (
        "node n1 small on-demand a\npod p n1 500\nnode n2 small on-demand a\npod q n2 1200",
        "node n2 small on-demand a marked",
        "I07",
    ),
    (ONE, "pod p n1 900 zone=c", "I08"),
    (
        "node n1 small on-demand a\npod p n1 500 app=s\nnode n2 large on-demand a do-not-disrupt\npod q n2 500 app=s",
        "pod p n1 500 app=s apart",
        "I08",
    ),
    (ONE, "node n1 nano on-demand a", "I09"),
];

type Change = fn(&mut Command);

/// What the loop decided, changed, breaks an invariant too.
const CHANGES: &[(Change, &str)] = &[
    (
        |it| it.execution = Execution::TerminateFirst(crate::TerminateFirst::StaticAtLimit),
        "I07",
    ),
    (|it| it.execution = Execution::DELETE, "I08"),
    (
        |it| {
            let dear = vec![it.replacements()[0].clone(); 9];
            it.execution = Execution::ReplaceFirst(dear);
        },
        "I09",
    ),
];

#[test]
fn every_invariant_notices_when_it_is_broken() {
    let broken = |text: &str, untold: &str, change: Change, expected: &str| {
        let world = World::new(text);
        let mut commands = world.decide().commands;
        let mut told = Told::of(text);
        assert!(!commands.is_empty(), "{text}");
        assert!(violations(&told, &world, &commands).is_empty(), "{text}");
        untold.lines().for_each(|line| told.line(line));
        change(&mut commands[0]);
        let found = violations(&told, &world, &commands);
        assert!(
            found.iter().any(|it| it.starts_with(expected)),
            "{expected}: {found:?}\n{text}\n{untold}"
        );
    };
    for (text, untold, expected) in UNTOLD {
        broken(text, untold, |_| {}, expected);
    }
    for &(change, expected) in CHANGES {
        broken(ONE, "", change, expected);
    }
}
