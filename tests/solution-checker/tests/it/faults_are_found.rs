//! The checker itself: each rule, broken on purpose in a sound answer, is noticed.

use scheduling::error::PodError;
use scheduling::problem::Packing;
use scheduling::requirements::{Operator, Requirement};
use scheduling::{Problem, Solution};
use serde_json::json;
use solution_checker::{Rule, check};
use std::sync::Arc;

use apis::{CapacityType, labels};

use crate::properties::solve_by;
use crate::service::Service;
use crate::world::{World, plain_pool, plain_types};

pub(crate) const PLAIN: Service = Service {
    replicas: 6,
    size: (7, 3),
    app: 0,
    selector: 0,
    affinity: 0,
    preferred: 0,
    spread: 0,
    friends: 0,
    foes: 0,
    tolerates: 0,
    node_needs: 0,
    containers: 0,
};

fn solved(service: Service) -> (Problem, Solution) {
    let world = World {
        types: plain_types(),
        pools: vec![plain_pool()],
        nodes: Vec::new(),
        daemons: Vec::new(),
        services: vec![service],
        options: (true, true, 1),
    };
    let problem = world.build().problem;
    let solution = solve_by(&problem, Packing::Cost);
    assert_eq!(check(&problem, &solution), []);
    assert!(solution.pod_errors.is_empty(), "{:?}", solution.pod_errors);
    (problem, solution)
}

fn assert_found(problem: &Problem, solution: &Solution, rule: Rule) {
    let faults = check(problem, solution);
    assert!(
        faults.iter().any(|f| f.rule == rule),
        "{rule:?} is not among {faults:?}"
    );
}

fn repin(solution: &mut Solution, claim: usize, key: &str, value: &str) {
    let pin = Requirement::new(key, Operator::In, [value]);
    solution.claims[claim].requirements.replace(pin);
}

/// Puts everybody on the first claim.
fn crowd(solution: &mut Solution) {
    let others = solution.claims.split_off(1);
    assert!(!others.is_empty(), "there must be something to join");
    solution.claims[0]
        .pods
        .extend(others.into_iter().flat_map(|c| c.pods));
}

#[test]
fn a_pod_in_two_places_or_in_none() {
    let (problem, mut solution) = solved(PLAIN);
    let pod = solution.claims[0].pods.pop().unwrap();
    assert_found(&problem, &solution, Rule::OnePlace);
    solution.claims[0].pods.extend([pod.clone(), pod]);
    assert_found(&problem, &solution, Rule::OnePlace);
}

#[test]
fn a_reason_where_nothing_stands_in_the_way() {
    let (problem, mut solution) = solved(PLAIN);
    let pod = solution.claims[0].pods.pop().unwrap();
    solution.pod_errors.insert(pod, PodError::Pools(Vec::new()));
    assert_found(&problem, &solution, Rule::Reason);
}

#[test]
fn a_type_that_is_too_small_or_unknown_or_listed_twice() {
    let (problem, solution) = solved(Service {
        size: (9, 5),
        ..PLAIN
    });
    let small = problem.pools[0].instance_types[0].name.clone();
    let mut broken = solution.clone();
    let others = solution.claims[0].instance_types.iter().map(str::to_owned);
    broken.claims[0].instance_types = [small].into_iter().chain(others).collect();
    assert_found(&problem, &broken, Rule::Resources);
    let twice = solution.claims[0]
        .instance_types
        .first()
        .unwrap()
        .to_owned();
    for name in ["unheard.of".to_owned(), twice] {
        let mut broken = solution.clone();
        let others = solution.claims[0].instance_types.iter().map(str::to_owned);
        broken.claims[0].instance_types = others.chain([name]).collect();
        assert_found(&problem, &broken, Rule::InstanceTypes);
    }
}

#[test]
fn daemons_and_init_containers_count() {
    let (mut problem, solution) = solved(Service {
        containers: 1,
        ..PLAIN
    });
    let mut daemon = (*problem.pods[0].shape).clone();
    daemon.requests.set(labels::RESOURCE_CPU, 60_000);
    problem.daemons.push(scheduling::problem::DaemonPod {
        key: scheduling::pod::PodKey::new("kube-system", "greedy"),
        shape: Arc::new(daemon),
    });
    assert_found(&problem, &solution, Rule::Resources);
}

#[test]
fn a_node_of_the_wrong_kind() {
    let (problem, mut solution) = solved(Service {
        selector: 2,
        ..PLAIN
    });
    solution.claims[0].requirements.remove(labels::ARCH);
    let amd = problem.pools[0].instance_types.iter().find(|t| {
        let arch = t.requirements.find(labels::ARCH);
        arch.is_some_and(|r| r.values().any(|v| v == "amd64"))
    });
    solution.claims[0].instance_types = [amd.unwrap().name.clone()].into_iter().collect();
    assert_found(&problem, &solution, Rule::NodeAffinity);
}

#[test]
fn a_taint_that_is_not_tolerated() {
    let (mut problem, solution) = solved(PLAIN);
    let pool = Arc::make_mut(&mut problem.pools[0].node_pool);
    let taint = json!({"key": "k", "effect": "NoExecute"});
    pool.spec.template.spec.taints = vec![serde_json::from_value(taint).unwrap()];
    assert_found(&problem, &solution, Rule::Taints);
}

#[test]
fn two_pods_on_one_port() {
    let (problem, mut solution) = solved(Service {
        node_needs: 1,
        ..PLAIN
    });
    crowd(&mut solution);
    assert_found(&problem, &solution, Rule::HostPorts);
}

#[test]
fn a_volume_in_another_zone() {
    let (problem, mut solution) = solved(Service {
        node_needs: 5,
        ..PLAIN
    });
    repin(&mut solution, 0, labels::TOPOLOGY_ZONE, "zone-c");
    assert_found(&problem, &solution, Rule::Volumes);
}

#[test]
fn a_skew_over_zones_and_over_hosts() {
    let (problem, mut solution) = solved(Service { spread: 1, ..PLAIN });
    for claim in 0..solution.claims.len() {
        repin(&mut solution, claim, labels::TOPOLOGY_ZONE, "zone-a");
    }
    assert_found(&problem, &solution, Rule::Spread);
    for claim in &mut solution.claims {
        claim.requirements.remove(labels::TOPOLOGY_ZONE);
    }
    assert_found(&problem, &solution, Rule::Spread);
    let (problem, mut solution) = solved(Service { spread: 4, ..PLAIN });
    crowd(&mut solution);
    assert_found(&problem, &solution, Rule::Spread);
}

#[test]
fn friends_that_are_apart() {
    let (problem, mut solution) = solved(Service {
        friends: 1,
        size: (9, 5),
        replicas: 12,
        ..PLAIN
    });
    let last = solution.claims.len() - 1;
    assert!(last > 0, "two nodes, or nobody can be apart");
    let first = solution.claims[0]
        .requirements
        .find(labels::TOPOLOGY_ZONE)
        .cloned()
        .unwrap();
    let other = crate::world::ZONES
        .into_iter()
        .find(|z| !first.values().any(|v| v == *z));
    repin(&mut solution, last, labels::TOPOLOGY_ZONE, other.unwrap());
    assert_found(&problem, &solution, Rule::Affinity);
}

#[test]
fn foes_that_meet() {
    let (problem, mut solution) = solved(Service { foes: 1, ..PLAIN });
    crowd(&mut solution);
    assert_found(&problem, &solution, Rule::AntiAffinity);
    let (problem, mut solution) = solved(Service {
        foes: 2,
        replicas: 2,
        ..PLAIN
    });
    for claim in 0..2 {
        repin(&mut solution, claim, labels::TOPOLOGY_ZONE, "zone-a");
    }
    assert_found(&problem, &solution, Rule::AntiAffinity);
}

#[test]
fn limits_and_min_values() {
    let (problem, mut solution) = solved(PLAIN);
    for limits in [json!({"cpu": "1"}), json!({"nodes": "0"})] {
        let mut problem = problem.clone();
        let pool = Arc::make_mut(&mut problem.pools[0].node_pool);
        pool.spec.limits = serde_json::from_value(limits).unwrap();
        assert_found(&problem, &solution, Rule::Limits);
    }
    let mut problem = problem;
    let pool = Arc::make_mut(&mut problem.pools[0].node_pool);
    let asked = json!({"key": labels::INSTANCE_TYPE, "operator": "Exists", "minValues": 2});
    pool.spec
        .template
        .spec
        .requirements
        .push(serde_json::from_value(asked).unwrap());
    solution.claims[0].instance_types.truncate(1);
    assert_found(&problem, &solution, Rule::MinValues);
}

#[test]
fn more_claims_than_slots() {
    let mut types = plain_types();
    types.truncate(3);
    let reserved = types
        .into_iter()
        .map(crate::world::TypeSpec::reserved)
        .collect();
    let world = World {
        types: reserved,
        pools: vec![plain_pool()],
        nodes: Vec::new(),
        daemons: Vec::new(),
        services: vec![Service {
            foes: 1,
            replicas: 2,
            ..PLAIN
        }],
        options: (true, true, 1),
    };
    let mut problem = world.build().problem;
    let solution = solve_by(&problem, Packing::Cost);
    assert_eq!(check(&problem, &solution), []);
    assert!(
        solution
            .claims
            .iter()
            .all(|c| c.best.capacity_type == Some(CapacityType::Reserved))
    );
    let fewer = problem.pools[0].instance_types.iter().map(|of_type| {
        let mut of_type = (**of_type).clone();
        for offering in &mut of_type.offerings {
            offering.reservation_capacity = offering.reservation_capacity.min(1);
        }
        Arc::new(of_type)
    });
    problem.pools[0].instance_types = fewer.collect();
    let mut one_slot = solution.clone();
    let twin = solution.claims[0].clone();
    one_slot.claims[1].requirements = twin.requirements;
    one_slot.claims[1].instance_types = twin.instance_types;
    assert_found(&problem, &one_slot, Rule::Reservations);
}

#[test]
fn a_price_that_is_not_the_cheapest_and_types_out_of_order() {
    let (problem, solution) = solved(PLAIN);
    let mut dear = solution.clone();
    dear.claims[0].best.price_per_hour *= 2.0;
    assert_found(&problem, &dear, Rule::Summary);
    let mut turned = solution;
    let names: Vec<&str> = turned.claims[0].instance_types.iter().collect();
    let names = names.into_iter().rev().map(str::to_owned).collect();
    turned.claims[0].instance_types = names;
    assert_found(&problem, &turned, Rule::Summary);
}
