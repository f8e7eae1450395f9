//! Solves a problem and prints nodes, bill, time and memory: the yardstick of the packer.
//!
//! `cargo run --release -p scheduling --example solve -- problem.json types.json [Karpenter|Ignore] [repeats]` solves a
//! file, `-- plain|fleet|diverse|prefs|groups SEED PODS [types.json] [...]` a problem of the tests' own, and
//! `-- table [DIRECTORY]` prints a line for each of the usual ones, with the problems of the directory where it is given.

#[path = "../tests/support/families.rs"]
mod families;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use apis::resources::Resources;
use apis::{NodePool, labels};
use families::Family;
use scheduling::instance_type::{InstanceType, Offering, Overhead};
use scheduling::pod::{Pod, ShapeTable};
use scheduling::problem::{Options, Packing, Pool, PreferencePolicy, Problem};
use scheduling::ranking::PriceRank;
use scheduling::requirements::{Operator, Requirement, Requirements};
use scheduling::{Interrupt, Solution, solve};
use serde_json::Value;

type Failure = Box<dyn std::error::Error>;

/// Types of the tests' own when no file is given: as many as EC2 has.
const TYPES: usize = 1199;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["table", rest @ ..] => table(rest.first().copied()),
        [family, seed, pods, flags @ ..] if Family::parse(family).is_some() => {
            let family = Family::parse(family).ok_or("no such family")?;
            let file = flags.iter().find(|flag| Path::new(flag).is_file());
            let types = match file {
                Some(file) => read_types(&serde_json::from_slice(&std::fs::read(file)?)?)?,
                None => families::catalogue(1, TYPES),
            };
            let problem = families::problem(family, seed.parse()?, pods.parse()?, &types);
            run(problem, flags);
            Ok(())
        }
        [problem, types, flags @ ..] => {
            let types = read_types(&serde_json::from_slice(&std::fs::read(types)?)?)?;
            let json = serde_json::from_slice(&std::fs::read(problem)?)?;
            run(read_problem(&json, &types)?, flags);
            Ok(())
        }
        _ => Err("usage: solve problem.json types.json | FAMILY SEED PODS | table".into()),
    }
}

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
#[expect(clippy::disallowed_methods, reason = "a yardstick needs a clock")]
fn run(mut problem: Problem, flags: &[&str]) {
    if flags.contains(&"Karpenter") {
        problem.options.packing = Packing::Karpenter;
    }
    if flags.contains(&"Ignore") {
        problem.options.preference_policy = PreferencePolicy::Ignore;
    }
    for flag in flags {
        if let Some(threads) = flag.strip_prefix("threads=") {
            problem.options.threads = threads.parse().unwrap_or(1);
        }
    }
    let repeats: usize = flags.iter().find_map(|f| f.parse().ok()).unwrap_or(1);
    for _ in 0..repeats {
        let start = Instant::now();
        let solution = solve(&problem, &PriceRank, &Interrupt::never());
        let elapsed = start.elapsed();
        println!(
            "nodes {} placed {} errors {} price {:.3} in {:.1} ms, {} MB at most",
            solution.claims.len(),
            solution.placed(),
            solution.pod_errors.len(),
            solution.price_per_hour(),
            elapsed.as_secs_f64() * 1000.0,
            peak_mebibytes()
        );
        if repeats == 1 && !flags.contains(&"quiet") {
            describe(&solution);
        }
    }
}

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn describe(solution: &Solution) {
    for (pod, error) in solution.pod_errors.iter().take(5) {
        println!("  {pod}: {error}");
    }
    let mut kinds: BTreeMap<(&str, &str), (usize, f64)> = BTreeMap::new();
    for claim in &solution.claims {
        let key = (
            claim.best.instance_type.as_str(),
            claim.best.capacity_type.as_str(),
        );
        let entry = kinds.entry(key).or_default();
        entry.0 += 1;
        entry.1 += claim.best.price_per_hour;
    }
    for ((name, capacity_type), (count, price)) in kinds {
        println!("  {count:4} {name} {capacity_type} {price:.3}");
    }
    let is_spot = |claim: &&scheduling::solution::NewClaim| claim.best.capacity_type == "spot";
    let options = solution.claims.iter().filter(is_spot);
    let fewest = options.map(|claim| claim.instance_types.len()).min();
    println!("  fewest types of a Spot claim: {}", fewest.unwrap_or(0));
}

/// A line for each problem, every one in a process of its own so that memory is its own too.
#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn table(directory: Option<&str>) -> Result<(), Failure> {
    const FILES: [(&str, &str); 6] = [
        ("fleet-5000", "<= 0.20 s, <= 70 USD/h, <= 60 MB"),
        ("fleet-2000", "<= 0.08 s, <= 22 USD/h"),
        ("plain-5000", "<= 0.03 s, <= 60 USD/h"),
        ("diverse-2000", "<= 0.08 s, <= 18 USD/h"),
        ("prefs-500", "<= 0.02 s, <= 6.28 USD/h"),
        ("plain-2000", "<= 0.015 s, <= 23 USD/h"),
    ];
    const OWN: [(&str, &str, &str); 8] = [
        ("diverse", "20000", "<= 0.6 s"),
        ("fleet", "5000", ""),
        ("fleet", "10000", ""),
        ("fleet", "20000", ""),
        ("fleet", "50000", ""),
        ("fleet", "100000", ""),
        ("plain", "100000", ""),
        ("groups", "1000000", "<= 10 s, <= 1500 MB"),
    ];
    let program = std::env::current_exe()?;
    let line = |arguments: &[&str]| -> Result<String, Failure> {
        let output = std::process::Command::new(&program)
            .args(arguments)
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().last().unwrap_or("failed").to_owned())
    };
    if let Some(directory) = directory {
        let path = |name: &str| Path::new(directory).join(name).display().to_string();
        for (name, goal) in FILES {
            let (problem, types) = (path(&format!("{name}.json")), path("types.json"));
            let result = line(&[&problem, &types, "quiet", "5"])?;
            println!("{name:14} {result} (goal {goal})");
        }
    }
    for (family, pods, goal) in OWN {
        let result = line(&[family, "1", pods, "quiet"])?;
        println!("{family:8}{pods:>8} {result} (goal {goal})");
    }
    Ok(())
}

/// The most memory the process ever held; zero where the system does not tell.
fn peak_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|l| l.trim().strip_suffix(" kB"));
    kibibytes.and_then(|k| k.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn read_problem(json: &Value, types: &Arc<[Arc<InstanceType>]>) -> Result<Problem, Failure> {
    let mut problem = Problem::new(Options::default());
    let mut shapes = ShapeTable::new();
    for pod in json["pods"].as_array().into_iter().flatten() {
        let pod = serde_json::from_value(pod.clone())?;
        problem.pods.push(Arc::new(Pod::parse(&pod, &mut shapes)?));
    }
    for pool in json["nodePools"].as_array().into_iter().flatten() {
        let node_pool: NodePool = serde_json::from_value(pool.clone())?;
        problem.pools.push(Pool {
            node_pool: Arc::new(node_pool),
            instance_types: Arc::clone(types),
            in_use: Resources::new(),
        });
    }
    Ok(problem)
}

fn read_types(json: &Value) -> Result<Arc<[Arc<InstanceType>]>, Failure> {
    let types = json.as_array().ok_or("types must be a list")?;
    types.iter().map(|t| read_type(t).map(Arc::new)).collect()
}

fn read_type(json: &Value) -> Result<InstanceType, Failure> {
    let name = json["name"].as_str().ok_or("type without name")?;
    let list = serde_json::from_value(json["resources"].clone())?;
    let mut requirements = Requirements::new();
    requirements.add(Requirement::new(
        labels::INSTANCE_TYPE,
        Operator::In,
        [name],
    ));
    let arch = json["architecture"].as_str().unwrap_or(labels::ARCH_AMD64);
    requirements.add(Requirement::new(labels::ARCH, Operator::In, [arch]));
    let systems = json["operatingSystems"].as_array().into_iter().flatten();
    requirements.add(Requirement::new(
        labels::OS,
        Operator::In,
        systems.filter_map(Value::as_str),
    ));
    for (key, value) in json["labels"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        requirements.add(Requirement::new(key, Operator::In, [value]));
    }
    let offerings = json["offerings"].as_array().into_iter().flatten();
    Ok(InstanceType {
        name: name.to_owned(),
        requirements,
        offerings: offerings.map(read_offering).collect(),
        capacity: Resources::parse(&list)?,
        overhead: Overhead {
            kube_reserved: [
                (labels::RESOURCE_CPU, 100),
                (labels::RESOURCE_MEMORY, 10 * 1024 * 1024 * 1000),
            ]
            .into_iter()
            .collect(),
            ..Overhead::default()
        },
        volume_attachment_limits: BTreeMap::new(),
    })
}

fn read_offering(json: &Value) -> Offering {
    let requirements = json["Requirements"].as_array().into_iter().flatten();
    Offering {
        requirements: requirements
            .map(|r| {
                let values = r["values"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str);
                let operator = r["operator"]
                    .as_str()
                    .and_then(Operator::parse)
                    .unwrap_or(Operator::In);
                Requirement::new(r["key"].as_str().unwrap_or_default(), operator, values)
            })
            .collect(),
        price_per_hour: json["Price"].as_f64().unwrap_or(f64::MAX),
        on_demand_price_per_hour: None,
        available: json["Available"].as_bool().unwrap_or(false),
        reservation_capacity: 0,
        ice_count: 0,
        ice_age_seconds: None,
    }
}
