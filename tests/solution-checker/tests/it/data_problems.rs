//! The shared benchmark problems, solved both ways and checked. They lie beside the repository in `../shared` and are
//! passed over where that is absent; a debug build would take minutes, so only a release build looks at them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use apis::resources::Resources;
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1 as core;
use problem_file::{FileWorld, InstanceTypes};
use scheduling::Problem;
use scheduling::pod::PodKey;
use scheduling::problem::{Options, Packing};
use serde::Deserialize;
use solution_checker::{check, effective_requests};

use crate::properties::solve_by;

const FOLDER: &str = "../../../shared/data/problems";

fn read(name: &str) -> Option<String> {
    let file = File::open(Path::new(FOLDER).join(name)).ok()?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(text)
}

/// The part of a problem file that is read a second time here.
#[derive(Deserialize)]
struct Told {
    pods: Vec<core::Pod>,
}

fn problem(name: &str, types: &InstanceTypes) -> Option<Problem> {
    let text = read(&format!("{name}.json.gz"))?;
    let world = FileWorld::read(&text).unwrap();
    assert!(world.faults.is_empty(), "{name}: {:?}", world.faults);
    let problem = world.question(types, Options::default()).problem;
    let told: Told = serde_json::from_str(&text).unwrap();
    let told: BTreeMap<PodKey, core::Pod> = (told.pods.into_iter())
        .map(|pod| {
            let metadata = &pod.metadata;
            let namespace = metadata.namespace.as_deref().unwrap_or("default");
            (
                PodKey::new(namespace, metadata.name.as_deref().unwrap()),
                pod,
            )
        })
        .collect();
    assert_eq!(problem.pods.len(), told.len(), "{name}");
    for pod in &problem.pods {
        let requests = effective_requests(&told[&pod.key]);
        let requests = requests.iter().map(|(name, millis)| (&**name, *millis));
        let requests: Resources = requests.collect();
        assert_eq!(pod.shape.requests, requests, "{}", pod.key);
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
    let types = &InstanceTypes::read(&types).unwrap();
    std::thread::scope(|scope| {
        for name in [
            "plain-2000",
            "plain-5000",
            "fleet-2000",
            "fleet-5000",
            "diverse-2000",
            "prefs-500",
        ] {
            scope.spawn(move || check_both_ways(name, types));
        }
    });
}

fn check_both_ways(name: &str, types: &InstanceTypes) {
    let Some(problem) = problem(name, types) else {
        return;
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
