//! Solves a problem file and prints nodes, bill and time: the yardstick of the packer.
//!
//! `cargo run --release -p scheduling --example solve -- problem.json types.json [Karpenter|Ignore] [repeats]`

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use apis::resources::Resources;
use apis::{NodePool, labels};
use scheduling::instance_type::{InstanceType, Offering, Overhead};
use scheduling::pod::{Pod, ShapeTable};
use scheduling::problem::{Options, Packing, Pool, PreferencePolicy, Problem};
use scheduling::ranking::PriceRank;
use scheduling::requirements::{Operator, Requirement, Requirements};
use scheduling::{Interrupt, solve};
use serde_json::Value;

type Failure = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
#[expect(clippy::disallowed_methods, reason = "a yardstick needs a clock")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [problem_path, types_path, flags @ ..] = arguments.as_slice() else {
        return Err("usage: solve problem.json types.json [Karpenter] [Ignore] [repeats]".into());
    };
    let types = read_types(&serde_json::from_slice(&std::fs::read(types_path)?)?)?;
    let mut problem = read_problem(
        &serde_json::from_slice(&std::fs::read(problem_path)?)?,
        &types,
    )?;
    if flags.iter().any(|f| f == "Karpenter") {
        problem.options.packing = Packing::Karpenter;
    }
    if flags.iter().any(|f| f == "Ignore") {
        problem.options.preference_policy = PreferencePolicy::Ignore;
    }
    let repeats: usize = flags.iter().find_map(|f| f.parse().ok()).unwrap_or(1);
    for _ in 0..repeats {
        let start = Instant::now();
        let solution = solve(&problem, &PriceRank, &Interrupt::never());
        let elapsed = start.elapsed();
        println!(
            "nodes {} placed {} errors {} price {:.3} in {:.1} ms",
            solution.claims.len(),
            solution.placed(),
            solution.pod_errors.len(),
            solution.price_per_hour(),
            elapsed.as_secs_f64() * 1000.0
        );
        if repeats == 1 {
            for (pod, error) in solution.pod_errors.iter().take(5) {
                println!("  {pod}: {error}");
            }
            let mut kinds: BTreeMap<(String, String), (usize, f64)> = BTreeMap::new();
            for claim in &solution.claims {
                let key = (
                    claim.best.instance_type.clone(),
                    claim.best.capacity_type.clone(),
                );
                let entry = kinds.entry(key).or_default();
                entry.0 += 1;
                entry.1 += claim.best.price_per_hour;
            }
            for ((name, capacity_type), (count, price)) in kinds {
                println!("  {count:4} {name} {capacity_type} {price:.3}");
            }
        }
    }
    Ok(())
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
