//! One currency: with a policy in force a cluster settles and then stays, buys nothing that is excluded, and goes back
//! to the default's choice once the policy is taken away.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use tests::{run, workspace_root};

/// Simulated minutes of a run, and how many of them at the end nothing may move.
const MINUTES: u32 = 42;
const STILL_MINUTES: u32 = 30;
const PODS: u32 = 40;

#[derive(Deserialize)]
struct Policy {
    name: String,
    kind: String,
    data: Value,
    #[serde(default)]
    never: Nodes,
    #[serde(default)]
    prefers: Nodes,
}

/// What nodes are, as far as it is said.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Nodes {
    arch: Option<String>,
    capacity_type: Option<String>,
}

impl Nodes {
    fn count(&self, summary: &Value) -> usize {
        let is = |node: &&Value| {
            let text = |key: &str| node[key].as_str().unwrap_or_default().to_owned();
            let wanted = [
                (&self.arch, arch(&text("instanceType")).to_owned()),
                (&self.capacity_type, text("capacityType")),
            ];
            let mut said = wanted
                .iter()
                .filter_map(|(it, own)| Some((it.as_ref()?, own)));
            said.clone().count() > 0 && said.all(|(it, own)| it == own)
        };
        let nodes = summary["nodes"].as_array().unwrap();
        nodes.iter().filter(is).count()
    }
}

/// Families with a `g` behind their generation are Graviton's, such as `m7g` and `c6gn`.
fn arch(instance_type: &str) -> &'static str {
    let family = instance_type.split('.').next().unwrap_or_default();
    let digits = |it: char| it.is_ascii_digit();
    let behind = family
        .trim_start_matches(|it| !digits(it))
        .trim_start_matches(digits);
    if behind.starts_with('g') {
        "arm64"
    } else {
        "amd64"
    }
}

fn policies() -> Vec<Policy> {
    let text = fs::read_to_string(workspace_root().join("tests/currency/policies.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// Manifests in a folder that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("mortise-currency-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// The binding of a policy, in one of its modes.
    fn binding(&self, policy: &Policy, mode: &str) -> String {
        let object = serde_json::json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "tried",
                "namespace": "mortise",
                "labels": {"mortise.dev/policy": policy.kind},
                "annotations": {"mortise.dev/mode": mode},
            },
            "data": policy.data,
        });
        let path = self.0.join(format!("{mode}.json"));
        fs::write(&path, object.to_string()).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// What the one NodePool may buy. Spot nodes are not traded for other spot nodes, on-demand ones for whatever costs
/// less.
const POOLS: [&str; 2] = ["spot-and-on-demand", "on-demand"];

fn demo(pool: &str, seed: u32, more: &[&str]) -> Value {
    let pool = workspace_root().join(format!("tests/currency/{pool}.yaml"));
    let (pool, seed) = (pool.display().to_string(), seed.to_string());
    let pods = PODS.to_string();
    let mut arguments = vec!["demo", "-f", &pool, "--pods", &pods, "--seed", &seed];
    arguments.extend(["--speed", "max", "-o", "json"]);
    arguments.extend(more);
    run(arguments).summary()
}

/// A share of the policies, each in worlds of its own.
fn settle(share: usize) {
    let folder = Folder::new(&share.to_string());
    for (number, policy) in policies().iter().enumerate() {
        if number % SHARES != share {
            continue;
        }
        for (kind, pool) in POOLS.into_iter().enumerate() {
            let seed = u32::try_from(1 + POOLS.len() * number + kind).unwrap();
            let binding = folder.binding(policy, "enforce");
            let until = format!("{MINUTES}m");
            let summary = demo(pool, seed, &["-f", &binding, "--until", &until]);
            check(
                policy,
                &summary,
                &format!("{}, {pool}, seed {seed}", policy.name),
            );
            if policy.prefers.arch.is_some() {
                let without = policy
                    .prefers
                    .count(&demo(pool, seed, &["--until", &until]));
                let preferred = policy.prefers.count(&summary);
                assert!(
                    preferred > without,
                    "{preferred} nodes, {without} without it"
                );
            }
        }
    }
}

fn check(policy: &Policy, summary: &Value, world: &str) {
    assert_eq!(summary["pods"]["running"], PODS, "{world}: {summary}");
    let last = summary["lastTurnoverSeconds"].as_f64().unwrap();
    let still = f64::from(60 * (MINUTES - STILL_MINUTES));
    assert!(last <= still, "{world}: a node moved at {last} s");
    assert_eq!(summary["launchesWithoutCapacity"], 0, "{world}");
    assert_eq!(policy.never.count(summary), 0, "{world}: {summary}");
    let asked = summary["policies"].as_array().unwrap();
    let mut asked = asked.iter().filter(|it| it["name"] == "tried");
    let is_asked = asked.any(|it| it["calls"].as_u64() > Some(0));
    assert!(is_asked, "{world}: never asked");
}

/// The policies are tried side by side.
const SHARES: usize = 3;

#[test]
fn with_a_policy_in_force_the_world_settles_and_nothing_moves_first_share() {
    settle(0);
}

#[test]
fn with_a_policy_in_force_the_world_settles_and_nothing_moves_second_share() {
    settle(1);
}

#[test]
fn with_a_policy_in_force_the_world_settles_and_nothing_moves_third_share() {
    settle(2);
}

#[test]
fn a_policy_taken_away_leaves_the_cluster_to_the_default() {
    let folder = Folder::new("away");
    for (seed, name) in (101..).zip(["amd64 at half price", "ordered", "amd64 at half price"]) {
        let policies = policies();
        let policy = policies.iter().find(|it| it.name == name).unwrap();
        let enforced = folder.binding(policy, "enforce");
        let off = folder.binding(policy, "off");
        let summary = demo("on-demand", seed, &["-f", &enforced, "--then", &off]);
        let stages = summary["stages"].as_array().unwrap();
        let bills = stages.iter().filter_map(|it| it["pricePerHour"].as_f64());
        let [with, after] = bills.collect::<Vec<f64>>()[..] else {
            panic!("{name}: {summary}")
        };
        let without = demo("on-demand", seed, &[])["pricePerHour"]
            .as_f64()
            .unwrap();
        let told = format!("{name}: {with} with it, {after} after it, {without} without");
        assert!(with > without && after <= without * 1.05 + 1e-9, "{told}");
    }
}
