//! Random worlds that once got a wrong answer, kept as they were found.

use scheduling::problem::Packing;
use scheduling::{Problem, Solution};
use solution_checker::check;

use crate::faults_are_found::PLAIN;
use crate::properties::solve_by;
use crate::service::Service;
use crate::world::{DaemonSpec, NodeSpec, PoolSpec, TypeSpec, World, plain_pool};

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

fn world(types: &[[u8; 7]], pools: Vec<PoolSpec>, services: Vec<Service>) -> World {
    World {
        types: types.iter().map(|spec| TypeSpec::of(*spec)).collect(),
        pools,
        nodes: Vec::new(),
        daemons: Vec::new(),
        services,
        options: (false, true, 1),
    }
}

fn node(zone: u8, cpu: u8) -> NodeSpec {
    NodeSpec {
        zone,
        cpu,
        arm: 0,
        taint: 0,
        state: 0,
        team: 0,
        volumes: 0,
        bound: Vec::new(),
    }
}

impl World {
    fn with_node(self, node: NodeSpec) -> Self {
        Self {
            nodes: vec![node],
            ..self
        }
    }

    fn assert_sound(&self) {
        let problem = self.build().problem;
        for packing in [Packing::Cost, Packing::Karpenter] {
            sound(&problem, packing);
        }
    }

    /// Sound, and so many pods are left over.
    fn assert_left(&self, pods: usize) {
        let problem = self.build().problem;
        for packing in [Packing::Cost, Packing::Karpenter] {
            let errors = sound(&problem, packing).pod_errors;
            assert_eq!(errors.len(), pods, "by {packing:?}: {errors:?}");
        }
    }
}

fn sound(problem: &Problem, packing: Packing) -> Solution {
    let solution = solve_by(problem, packing);
    assert_eq!(check(problem, &solution), [], "by {packing:?}");
    solution
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
    world(&types, vec![plain_pool()], vec![together, friend]).assert_sound();
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
    world(&types, vec![varied, plain_pool(), small], services).assert_sound();
}

/// Nodes of a pool were planned that its limits held to fewer types than `minValues` asks for; they were given up in
/// the end, and with them pods that another node had room for.
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
    world(&types, vec![varied, one_zone], vec![spread_out, counted]).assert_sound();
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
    world(&types, vec![varied, plain_pool()], vec![alone]).assert_sound();
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

const FOUR_SMALL: [[u8; 7]; 4] = [[0; 7]; 4];

fn four_small_and(one: [u8; 7]) -> Vec<[u8; 7]> {
    [&FOUR_SMALL[..], &[one]].concat()
}

/// A spread sent its pods to three zones; those of one zone then had to wait for a reservation, and the others were out
/// of balance.
#[test]
fn pods_that_wait_for_a_slot_leave_no_skew_behind() {
    let reserved = [2, 0, 0, 0, 0, 5, 0];
    let spread = Service {
        spread: 5,
        ..service(5, (0, 0), 1)
    };
    let slots = Service {
        spread: 10,
        foes: 6,
        ..service(4, (0, 0), 0)
    };
    let types = [[0; 7], [0; 7], [1, 0, 0, 0, 0, 5, 0], [0; 7], [0; 7]];
    let mut both = world(&types, vec![plain_pool()], vec![slots, spread.clone()]);
    both.options.1 = false;
    both.assert_sound();
    // Here they could also ride along on a node that others opened in the zone.
    let (shunning, riding) = (
        Service {
            foes: 6,
            ..service(4, (0, 0), 0)
        },
        Service {
            spread: 11,
            ..service(5, (4, 0), 0)
        },
    );
    let pools = vec![
        PoolSpec {
            weight: 2,
            zones: 1,
            ..plain_pool()
        },
        plain_pool(),
    ];
    let types = [[0; 7], of_cpu(4), reserved, [0; 7], [0; 7]];
    let services = vec![service(2, (9, 0), 2), shunning, riding];
    let mut other = world(&types, pools, services).with_node(node(0, 2));
    other.options.1 = false;
    other.assert_sound();
}

/// The pool that comes first may buy nothing, and only it sells in the zone that was cheapest.
#[test]
fn no_zone_is_chosen_where_limits_leave_nothing_to_buy() {
    let pools = vec![
        PoolSpec {
            zones: 2,
            ..plain_pool()
        },
        PoolSpec {
            limits: 4,
            ..plain_pool()
        },
    ];
    let spread = Service {
        spread: 1,
        ..service(1, (0, 0), 0)
    };
    let types = four_small_and([0, 2, 0, 0, 0, 0, 0]);
    world(&types, pools.clone(), vec![spread]).assert_left(0);
    let with_volume = Service {
        node_needs: 6,
        ..service(1, (0, 0), 0)
    };
    let types = four_small_and(of_cpu(4));
    let mut pools = pools;
    pools[0].zones = 4;
    world(&types, pools, vec![with_volume]).assert_left(0);
}

/// On nodes of the pool without taint a daemon holds the pod's port; the other pool sells in one zone.
#[test]
fn no_zone_is_chosen_where_daemons_hold_the_port() {
    let tainted = PoolSpec {
        zones: 2,
        taint: 1,
        ..plain_pool()
    };
    let listening = Service {
        spread: 5,
        node_needs: 1,
        tolerates: 1,
        ..service(1, (0, 0), 0)
    };
    let types = four_small_and(of_cpu(4));
    let mut one = world(&types, vec![plain_pool(), tainted], vec![listening]);
    one.daemons = vec![DaemonSpec {
        cpu: 0,
        selector: 0,
        port: 1,
        tolerates: 0,
    }];
    one.assert_left(0);
}

/// The first required term agrees with the volume, the preference does not; the original gives up the term first.
#[test]
fn a_term_given_up_early_is_tried_without_preferences() {
    let pod = Service {
        affinity: 1,
        preferred: 1,
        node_needs: 5,
        ..service(1, (0, 0), 0)
    };
    let mut one = world(&[[0; 7]; 5], vec![plain_pool()], vec![pod]);
    one.options.0 = true;
    one.assert_left(0);
}

/// Terms over a label of which the pool leaves the value open.
#[test]
fn terms_over_a_label_without_known_values() {
    let of_team = |team: u8| PoolSpec {
        team,
        ..plain_pool()
    };
    let shunning = |app: u8| Service {
        foes: 5,
        ..service(1, (0, 0), app)
    };
    let types = four_small_and(of_cpu(1));
    let services = vec![service(1, (0, 0), 5), shunning(5)];
    world(&types, vec![of_team(2)], services).assert_left(1);
    let in_pool_1 = Service {
        selector: 10,
        ..service(3, (0, 1), 0)
    };
    let types = [[2, 1, 0, 0, 0, 0, 0], [0; 7], [0; 7]];
    let pools = vec![of_team(0), of_team(2), of_team(1)];
    world(&types, pools, vec![shunning(0), in_pool_1]).assert_sound();
    let red = PoolSpec {
        limits: 1,
        ..of_team(1)
    };
    let services = vec![
        Service {
            containers: 1,
            size: (3, 0),
            ..shunning(0)
        },
        service(3, (9, 7), 0),
        service(1, (0, 7), 0),
    ];
    let types = four_small_and([2, 2, 0, 0, 0, 0, 0]);
    world(&types, vec![of_team(4), red], services).assert_sound();
}

/// The cheapest zone and the cheapest capacity type are not sold together.
#[test]
fn domains_of_two_keys_are_chosen_together() {
    let friendly = Service {
        friends: 5,
        ..service(1, (0, 0), 3)
    };
    let with_volume = Service {
        node_needs: 8,
        ..service(1, (0, 0), 3)
    };
    let types = [[2, 0, 0, 1, 3, 5, 0], [0; 7], [0; 7], of_cpu(4), [0; 7]];
    let services = vec![friendly, with_volume];
    let one = world(&types, vec![plain_pool()], services).with_node(node(0, 2));
    one.assert_left(0);
}

/// Pods that must join a host were counted in zones without one, and drew others there.
#[test]
fn pods_that_follow_to_a_host_open_no_zone() {
    let spread = Service {
        spread: 5,
        friends: 5,
        ..service(3, (8, 0), 2)
    };
    let following = Service {
        friends: 2,
        containers: 2,
        ..service(4, (0, 0), 2)
    };
    let types = [[0; 7], [0; 7], [0; 7], [3, 0, 0, 0, 0, 3, 0], [0; 7]];
    let services = vec![service(2, (0, 0), 2), spread, following];
    let one = world(&types, vec![plain_pool()], services).with_node(node(0, 3));
    one.assert_sound();
}

/// Five pods at once left a node with fewer families than its pool asks for, and all of them without a place.
#[test]
fn pods_are_not_added_at_once_beyond_min_values() {
    let varied = PoolSpec {
        weight: 2,
        min_values: 2,
        ..plain_pool()
    };
    let mut types = vec![[3, 2, 0, 0, 0, 0, 0]];
    types.extend([[0; 7]; 8]);
    types.push(of_cpu(4));
    let pods = service(5, (0, 6), 0);
    world(&types, vec![varied, plain_pool()], vec![pods]).assert_left(0);
}

/// The Kubernetes scheduler counts zones whose nodes only ask to be avoided.
#[test]
fn taints_of_preference_hide_no_zone_from_a_spread() {
    let spread = Service {
        spread: 8,
        ..service(3, (0, 0), 0)
    };
    let avoided = PoolSpec {
        taint: 2,
        ..plain_pool()
    };
    let two_zones = PoolSpec {
        zones: 5,
        ..plain_pool()
    };
    let types = [[0; 7], [0; 7], of_cpu(2), [0; 7], [0; 7]];
    world(&types, vec![two_zones, avoided], vec![spread]).assert_left(0);
}

/// Two pods with a volume each share a node; types that take one volume stayed among its types until pods that only
/// they had room for had joined.
#[test]
fn types_that_cannot_attach_all_volumes_go_at_once() {
    let spread = Service {
        spread: 5,
        containers: 2,
        ..service(5, (9, 1), 1)
    };
    let hashed = Service {
        spread: 11,
        ..service(1, (9, 0), 2)
    };
    let services = vec![
        service(3, (9, 0), 2),
        spread,
        Service {
            node_needs: 8,
            ..service(4, (0, 0), 0)
        },
        hashed,
        service(3, (5, 0), 2),
        Service {
            spread: 5,
            ..service(1, (9, 1), 0)
        },
    ];
    let small = PoolSpec {
        limits: 2,
        ..plain_pool()
    };
    let types = [
        [0, 0, 0, 0, 0, 0, 6],
        [0; 7],
        [0; 7],
        [4, 1, 0, 0, 0, 0, 0],
        [5, 0, 0, 0, 0, 3, 0],
    ];
    let mut one = world(&types, vec![small], services).with_node(node(0, 3));
    one.options = (false, false, 0);
    one.assert_sound();
}
