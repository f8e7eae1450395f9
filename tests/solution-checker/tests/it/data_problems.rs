//! The shared benchmark problems, solved both ways and checked. They lie beside the repository in `../shared` and are
//! passed over where that is absent; a debug build would take minutes, so only a release build looks at them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodePool, labels};
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1 as core;
use scheduling::Problem;
use scheduling::instance_type::{InstanceType, Offering, Overhead};
use scheduling::pod::{Pod, ShapeTable};
use scheduling::problem::{Options, Packing, Pool};
use scheduling::requirements::{Operator, Requirement, Requirements};
use serde_json::Value;
use solution_checker::{check, effective_requests};

use crate::properties::solve_by;

const FOLDER: &str = "../../../shared/data/problems";
const MIB_MILLIS: i64 = 1024 * 1024 * 1000;

fn read(name: &str) -> Option<Value> {
    let file = File::open(Path::new(FOLDER).join(name)).ok()?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn strings(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn requirement(value: &Value) -> Requirement {
    let operator = Operator::parse(value["operator"].as_str().unwrap()).unwrap();
    Requirement::new(
        value["key"].as_str().unwrap(),
        operator,
        strings(&value["values"]),
    )
}

fn instance_type(value: &Value) -> InstanceType {
    let name = value["name"].as_str().unwrap();
    let sold = value["offerings"].as_array().unwrap();
    let offerings = sold.iter().map(|o| Offering {
        requirements: o["Requirements"]
            .as_array()
            .unwrap()
            .iter()
            .map(requirement)
            .collect(),
        price_per_hour: o["Price"].as_f64().unwrap(),
        on_demand_price_per_hour: None,
        available: o["Available"].as_bool().unwrap(),
        reservation_capacity: 0,
        ice_count: 0,
        ice_age_seconds: None,
    });
    let one = |key: &str, value: &str| Requirement::new(key, Operator::In, [value]);
    let systems = strings(&value["operatingSystems"]);
    let mut requirements: Requirements = [
        one(labels::INSTANCE_TYPE, name),
        one(labels::ARCH, value["architecture"].as_str().unwrap()),
        Requirement::new(labels::OS, Operator::In, systems),
    ]
    .into_iter()
    .collect();
    for (key, value) in value["labels"].as_object().into_iter().flatten() {
        requirements.add(one(key, value.as_str().unwrap()));
    }
    let capacity = serde_json::from_value(value["resources"].clone()).unwrap();
    InstanceType {
        name: name.to_owned(),
        requirements,
        offerings: offerings.collect(),
        capacity: Resources::parse(&capacity).unwrap(),
        overhead: Overhead {
            kube_reserved: [("cpu", 100), ("memory", 10 * MIB_MILLIS)]
                .into_iter()
                .collect(),
            ..Overhead::default()
        },
        volume_attachment_limits: std::collections::BTreeMap::new(),
    }
}

fn problem(name: &str, types: &Arc<[Arc<InstanceType>]>) -> Option<Problem> {
    let told = read(&format!("{name}.json.gz"))?;
    let mut problem = Problem::new(Options::default());
    for pool in told["nodePools"].as_array().unwrap() {
        let node_pool: NodePool = serde_json::from_value(pool.clone()).unwrap();
        problem.pools.push(Pool {
            node_pool: Arc::new(node_pool),
            instance_types: Arc::clone(types),
            in_use: Resources::new(),
        });
    }
    let mut shapes = ShapeTable::new();
    for pod in told["pods"].as_array().unwrap() {
        let object: core::Pod = serde_json::from_value(pod.clone()).unwrap();
        let pod = Pod::parse(&object, &mut shapes).unwrap();
        assert_eq!(
            pod.shape.requests.0,
            effective_requests(&object),
            "{}",
            pod.key
        );
        problem.pods.push(Arc::new(pod));
    }
    Some(problem)
}

#[test]
fn the_benchmark_problems_are_solved_within_the_rules() {
    if cfg!(debug_assertions) {
        return;
    }
    let Some(types) = read("types.json.gz") else {
        return;
    };
    let types: Arc<[Arc<InstanceType>]> = types
        .as_array()
        .unwrap()
        .iter()
        .map(|t| Arc::new(instance_type(t)))
        .collect();
    for name in [
        "plain-2000",
        "plain-5000",
        "fleet-2000",
        "fleet-5000",
        "diverse-2000",
        "prefs-500",
    ] {
        let Some(problem) = problem(name, &types) else {
            continue;
        };
        for packing in [Packing::Cost, Packing::Karpenter] {
            let solution = solve_by(&problem, packing);
            assert!(
                solution.pod_errors.is_empty(),
                "{name}: {:?}",
                solution.pod_errors
            );
            let faults = check(&problem, &solution);
            let first: Vec<String> = faults.iter().take(10).map(ToString::to_string).collect();
            assert!(
                faults.is_empty(),
                "{name} by {packing:?}: {} faults: {first:#?}",
                faults.len()
            );
        }
    }
}
