//! Random worlds that once got a wrong answer, kept as they were found.

use scheduling::problem::Packing;
use solution_checker::check;

use crate::faults_are_found::PLAIN;
use crate::properties::solve_by;
use crate::service::Service;
use crate::world::{PoolSpec, TypeSpec, World, plain_pool};

fn service(replicas: u8, size: (u8, u8), app: u8) -> Service {
    Service {
        replicas,
        size,
        app,
        ..PLAIN
    }
}

fn of_cpu(cpu: u8) -> [u8; 7] {
    [cpu, 0, 0, 0, 0, 0, 0]
}

fn assert_sound(types: &[[u8; 7]], pools: Vec<PoolSpec>, services: Vec<Service>) {
    let world = World {
        types: types.iter().map(|spec| TypeSpec::of(*spec)).collect(),
        pools,
        nodes: Vec::new(),
        daemons: Vec::new(),
        services,
        options: (false, true, 1),
    };
    let problem = world.build().problem;
    for packing in [Packing::Cost, Packing::Karpenter] {
        assert_eq!(check(&problem, &solve_by(&problem, packing)), []);
    }
}

/// Pods that share one host, and a friend of theirs that looks for them by zone and capacity type: only one of the two
/// may be the first of its kind.
#[test]
fn pods_that_share_a_host_come_before_their_friends() {
    let together = Service {
        spread: 5,
        friends: 2,
        ..service(2, (0, 5), 3)
    };
    let friend = Service {
        friends: 5,
        ..service(1, (0, 0), 3)
    };
    let types = [[0; 7], [1, 1, 0, 0, 0, 0, 0]];
    assert_sound(&types, vec![plain_pool()], vec![together, friend]);
}

/// Pods that look for their own kind were drawn to three zones by others of that kind, which then found no nodes.
#[test]
fn friends_that_did_not_come_open_no_second_zone() {
    let types = [
        [1, 0, 0, 0, 0, 2, 2],
        [3, 2, 0, 0, 0, 0, 14],
        [5, 2, 0, 0, 0, 0, 12],
        [4, 1, 0, 0, 0, 3, 1],
        [5, 2, 0, 0, 0, 0, 2],
        [0, 0, 0, 1, 0, 0, 16],
        [2, 0, 0, 0, 0, 0, 8],
        [1, 1, 0, 0, 0, 0, 1],
    ];
    let varied = PoolSpec {
        zones: 2,
        min_values: 1,
        ..plain_pool()
    };
    let small = PoolSpec {
        weight: 1,
        limits: 2,
        ..plain_pool()
    };
    let services = services_drawn_to_three_zones();
    assert_sound(&types, vec![varied, plain_pool(), small], services);
}

/// Nodes of a pool were planned that its limits held to fewer types than `minValues` asks for; they were given up in the
/// end, and with them pods that another node had room for.
#[test]
fn no_node_is_planned_that_limits_leave_too_few_types() {
    let spread_out = Service {
        spread: 6,
        ..service(1, (0, 0), 4)
    };
    let counted = service(2, (0, 0), 4);
    let varied = PoolSpec {
        limits: 1,
        min_values: 1,
        ..plain_pool()
    };
    let one_zone = PoolSpec {
        zones: 1,
        ..plain_pool()
    };
    let types = [0, 2, 3, 0, 2].map(of_cpu);
    assert_sound(&types, vec![varied, one_zone], vec![spread_out, counted]);
}

/// The heavier pool could open no node within its limits, and the lighter one was never asked.
#[test]
fn a_pool_that_can_open_no_node_leaves_its_pods_to_the_next() {
    let alone = service(1, (0, 0), 0);
    let varied = PoolSpec {
        weight: 2,
        limits: 1,
        min_values: 1,
        ..plain_pool()
    };
    let types = [0, 3, 3, 0, 4].map(of_cpu);
    assert_sound(&types, vec![varied, plain_pool()], vec![alone]);
}

fn services_drawn_to_three_zones() -> Vec<Service> {
    vec![
        Service {
            spread: 2,
            foes: 4,
            node_needs: 2,
            ..service(4, (0, 5), 4)
        },
        Service {
            selector: 10,
            affinity: 5,
            ..service(3, (6, 0), 0)
        },
        Service {
            containers: 3,
            ..service(2, (5, 7), 4)
        },
        Service {
            affinity: 5,
            spread: 7,
            friends: 3,
            ..service(6, (5, 6), 3)
        },
        Service {
            preferred: 4,
            node_needs: 2,
            ..service(3, (5, 0), 4)
        },
        Service {
            spread: 6,
            tolerates: 4,
            ..service(4, (5, 6), 4)
        },
        Service {
            friends: 5,
            foes: 6,
            tolerates: 1,
            ..service(5, (0, 5), 3)
        },
        Service {
            selector: 8,
            preferred: 3,
            foes: 5,
            tolerates: 1,
            node_needs: 10,
            ..service(5, (7, 6), 3)
        },
    ]
}
