//! What must not change an answer, and what must not make it worse.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use scheduling::pod::PodKey;
use scheduling::problem::{Packing, ReservedMode};
use scheduling::{Problem, Solution};
use serde_json::json;
use solution_checker::can_stand_alone;

use crate::properties::{config, solve_by};
use crate::world::{GIB_MILLIS, worlds};

const PACKINGS: [Packing; 2] = [Packing::Cost, Packing::Karpenter];

fn shuffled(problem: &Problem, turn: usize) -> Problem {
    fn turned<T>(list: &mut [T], turn: usize) {
        list.reverse();
        if !list.is_empty() {
            let turn = turn % list.len();
            list.rotate_left(turn);
        }
    }
    let mut other = problem.clone();
    turned(&mut other.pods, turn);
    turned(&mut other.nodes, turn);
    turned(&mut other.pools, turn);
    turned(&mut other.daemons, turn);
    for pool in &mut other.pools {
        let mut types: Vec<_> = pool.instance_types.to_vec();
        turned(&mut types, turn);
        pool.instance_types = types.into();
    }
    other.options.threads = 1 + turn % 8;
    other
}

fn placed(problem: &Problem, solution: &Solution) -> BTreeSet<PodKey> {
    let keys = problem.pods.iter().map(|pod| pod.key.clone());
    keys.filter(|key| !solution.pod_errors.contains_key(key))
        .collect()
}

proptest! {
    #![proptest_config(config(25))]

    #[test]
    fn order_of_input_and_threads_do_not_matter(world in worlds(), turn in 0_usize..50) {
        let problem = world.build().problem;
        let other = shuffled(&problem, turn);
        for packing in PACKINGS {
            let first = format!("{:#?}", solve_by(&problem, packing));
            let second = format!("{:#?}", solve_by(&other, packing));
            prop_assert_eq!(first, second);
        }
    }

    #[test]
    fn a_useless_pool_unplaces_nobody(world in worlds()) {
        let problem = world.build().problem;
        let mut other = problem.clone();
        let mut useless = problem.pools[0].clone();
        let node_pool = Arc::make_mut(&mut useless.node_pool);
        node_pool.metadata.name = Some("useless".to_owned());
        node_pool.spec.weight = Some(100);
        let none = json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["s390x"]});
        node_pool.spec.template.spec.requirements.push(serde_json::from_value(none).unwrap());
        other.pools.push(useless);
        for packing in PACKINGS {
            let before = placed(&problem, &solve_by(&problem, packing));
            prop_assert_eq!(before, placed(&other, &solve_by(&other, packing)));
        }
    }

    #[test]
    fn a_useless_type_unplaces_nobody(world in worlds()) {
        let problem = world.build().problem;
        let mut other = problem.clone();
        for pool in &mut other.pools {
            let mut types: Vec<_> = pool.instance_types.to_vec();
            let Some(first) = types.first() else { continue };
            let mut useless = (**first).clone();
            useless.name = "useless.1x1".to_owned();
            useless.capacity = [("cpu", 1000), ("memory", GIB_MILLIS)].into_iter().collect();
            types.push(Arc::new(useless));
            pool.instance_types = types.into();
        }
        for packing in PACKINGS {
            let before = placed(&problem, &solve_by(&problem, packing));
            prop_assert_eq!(before, placed(&other, &solve_by(&other, packing)));
        }
    }

    /// Where nothing runs out, what can be placed is a matter of rules and not of packing: no limits, no scarce
    /// reservations, no `minValues`, no nodes whose room goes to the first comer, and no terms about pods of other
    /// services, spreads included, for which the order of placements decides who opens a domain.
    #[test]
    fn both_packings_place_the_same_pods(mut world in worlds()) {
        world.nodes.clear();
        for pool in &mut world.pools {
            (pool.limits, pool.min_values) = (0, 0);
        }
        world.options.2 = 0;
        world.services.retain(|s| s.friends == 0 && s.foes == 0);
        for (app, service) in (0..).zip(&mut world.services) {
            service.app = app;
        }
        let problem = world.build().problem;
        // Replicas are alike, so which of them is left over means nothing.
        let [cost, classic] = PACKINGS.map(|packing| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for key in placed(&problem, &solve_by(&problem, packing)) {
                let service = key.name.split('-').next().unwrap_or_default();
                *counts.entry(service.to_owned()).or_default() += 1;
            }
            counts
        });
        prop_assert_eq!(cost, classic);
    }

    /// A pod without others is placed if and only if the rules know an offering for it.
    #[test]
    fn a_lone_pod_is_placed_where_the_rules_say(mut world in worlds()) {
        world.nodes.clear();
        world.pools.iter_mut().for_each(|pool| pool.min_values = 0);
        // Without friends a pod that needs some waits; domains of a label that no node has are none.
        world.services.retain(|s| s.friends == 0 && s.foes != 5);
        let mut problem = world.build().problem;
        problem.options.reserved = ReservedMode::Off;
        for pod in std::mem::take(&mut problem.pods) {
            problem.pods = vec![Arc::clone(&pod)];
            for packing in PACKINGS {
                let solution = solve_by(&problem, packing);
                prop_assert_eq!(
                    solution.pod_errors.is_empty(),
                    can_stand_alone(&problem, &pod),
                    "{}: {:?} {:#?}", pod.key, solution.pod_errors, pod.shape
                );
            }
        }
    }
}
