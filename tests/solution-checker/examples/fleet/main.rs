//! Fleets of the problem families as Deployments in the demo's world: does the cluster come to what one solve plans?
//!
//! `cargo run --release -p solution-checker --example fleet -- MORTISE [FAMILY]... [pods=N] [seeds=N] [until=SPAN]
//! [-- MORE OF THE DEMO'S OPTIONS]`, where MORTISE is the binary. Each line holds one fleet: nodes and bill of the first plan,
//! which has all pods and the prices of the world, the same when the last pod runs and after `until` (22m), both beside
//! the plan's, launches, terminations, and what went elsewhere than planned. GPUs are left out: their nodes are the same either way.

#![expect(clippy::print_stdout, reason = "printing is what this program is for")]

#[path = "../../../../host/scheduling/tests/support/families.rs"]
mod families;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use families::Family;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const FAMILIES: [&str; 3] = ["fleet", "diverse", "plain"];

struct Asked {
    mortise: String,
    families: Vec<String>,
    pods: usize,
    seeds: u64,
    until: String,
    more: Vec<String>,
}

fn main() -> Result<()> {
    let asked = asked(std::env::args().skip(1))?;
    println!(
        "family    pods seed | plan: nodes USD/h | all run: s nodes USD/h ratio launches | end: nodes USD/h ratio | launches ends off-plan opened"
    );
    for family in &asked.families {
        for seed in 1..=asked.seeds {
            line(&asked, family, seed)?;
        }
    }
    Ok(())
}

fn asked(mut arguments: impl Iterator<Item = String>) -> Result<Asked> {
    let mortise = arguments.next().ok_or("name the binary")?;
    let mut asked = Asked {
        mortise,
        families: Vec::new(),
        pods: 2000,
        seeds: 1,
        until: "22m".to_owned(),
        more: Vec::new(),
    };
    while let Some(word) = arguments.next() {
        match word.split_once('=') {
            None if word == "--" => asked.more.extend(arguments.by_ref()),
            None if FAMILIES.contains(&word.as_str()) => asked.families.push(word),
            Some(("pods", number)) => asked.pods = number.parse()?,
            Some(("seeds", number)) => asked.seeds = number.parse()?,
            Some(("until", span)) => span.clone_into(&mut asked.until),
            _ => return Err(format!("what is {word}?").into()),
        }
    }
    if asked.families.is_empty() {
        asked.families = FAMILIES.map(str::to_owned).to_vec();
    }
    Ok(asked)
}

fn line(asked: &Asked, family: &str, seed: u64) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("mortise-fleet-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{family}-{seed}.json"));
    fs::write(&file, manifests(family, seed, asked.pods)?)?;
    let more: Vec<&str> = asked.more.iter().map(String::as_str).collect();
    let seeded = seed.to_string();
    let demo = [
        "demo",
        "-o",
        "json",
        "--speed",
        "max",
        "--seed",
        &seeded,
        "--until",
        &asked.until,
    ];
    let lived = run(asked, &[&demo[..], &more].concat(), &file)?;
    fs::remove_dir_all(&folder)?;
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap_or(f64::NAN);
    let plan = &lived["firstPlan"];
    let bill = number(plan, "pricePerHour");
    let nodes = |of: &Value| of["nodes"].as_array().map_or(0, Vec::len);
    let full = &lived["allRunning"];
    let (full_bill, end_bill) = (number(full, "pricePerHour"), number(&lived, "pricePerHour"));
    println!(
        "{family:<8} {:>5} {seed:>4} | {:>5} {bill:>8.2} | {:>6.1} {:>5} {full_bill:>8.2} {:>5.3} {:>5} | {:>5} {end_bill:>8.2} {:>5.3} | {:>5} {:>4} {:>5} {:>4}",
        asked.pods,
        plan["nodes"],
        number(full, "seconds"),
        full["nodes"],
        full_bill / bill,
        full["launches"],
        nodes(&lived),
        end_bill / bill,
        lived["launches"],
        lived["terminations"],
        lived["podsOffPlan"],
        lived["claimsOffPlan"],
    );
    Ok(())
}

fn run(asked: &Asked, words: &[&str], file: &Path) -> Result<Value> {
    let output = Command::new(&asked.mortise)
        .args(words)
        .arg("-f")
        .arg(file)
        .output()?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let told = String::from_utf8_lossy(&output.stderr);
        format!("{words:?}: {error}: {told}").into()
    })
}

/// One NodePool that consolidates as fast as it may, the namespaces, and the Deployments.
fn manifests(family: &str, seed: u64, pods: usize) -> Result<String> {
    let family = Family::parse(family).ok_or("no such family")?;
    let needs_gpu = |it: &Value| it.to_string().contains("nvidia.com/gpu");
    let all = families::deployments(family, seed, pods);
    let deployments: Vec<Value> = all.into_iter().filter(|it| !needs_gpu(it)).collect();
    let mut pool = serde_json::to_value(&families::node_pools(family)[0])?;
    pool["metadata"] = json!({"name": "default"});
    pool["spec"]["disruption"] = json!({
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "15s",
        "budgets": [{"nodes": "100%"}],
    });
    let mut namespaces: Vec<&str> = deployments
        .iter()
        .filter_map(|it| it["metadata"]["namespace"].as_str())
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let namespace =
        |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let others = namespaces.into_iter().filter(|it| *it != "default");
    let mut items: Vec<Value> = others.map(namespace).collect();
    items.push(pool);
    items.extend(deployments.iter().cloned());
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
}
