//! The same problem gives the same answer, in whatever order it is told; and random problems obey the rules.

use std::sync::Arc;

use apis::NodeRef;
use apis::labels::{ARCH, CAPACITY_TYPE, HOSTNAME, TOPOLOGY_ZONE};
use scheduling::problem::Packing;
use scheduling::ranking::PriceRank;
use scheduling::{Interrupt, Prepared, TableCache, solve, solve_prepared, solve_without};
use serde_json::{Value, json};

use crate::cluster::{Cluster, spread, term};
use crate::deep::deep;

/// A small generator of its own, so that a failing seed can be told.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

fn random_spec(dice: &mut Dice, app: &str) -> Value {
    let mut spec = json!({});
    match dice.roll(4) {
        0 => spec["nodeSelector"] = json!({ARCH: "amd64"}),
        1 => spec["nodeSelector"] = json!({CAPACITY_TYPE: "on-demand"}),
        _ => {}
    }
    match dice.roll(6) {
        0 => spec["topologySpreadConstraints"] = json!([spread(TOPOLOGY_ZONE, 1, app)]),
        1 => spec["topologySpreadConstraints"] = json!([spread(HOSTNAME, 2, app)]),
        2 => {
            spec["affinity"] = json!({"podAntiAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": [term(HOSTNAME, app)]}});
        }
        3 => {
            spec["affinity"] = json!({"podAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": [term(TOPOLOGY_ZONE, app)]}});
        }
        _ => {}
    }
    spec
}

fn random_cluster(seed: u64) -> Cluster {
    let mut dice = Dice(seed);
    let mut cluster = Cluster::new();
    for index in 0..dice.roll(3) {
        let zone = crate::cluster::ZONES[usize::try_from(index).unwrap()];
        cluster.node(&format!("node-{index}"), zone, Vec::new());
    }
    for service in 0..12 {
        let app = format!("svc-{service}");
        let spec = random_spec(&mut dice, &app);
        let cpu = format!("{}m", 50 + 150 * dice.roll(12));
        let memory = format!("{}Mi", 64 + 512 * dice.roll(10));
        let count = usize::try_from(1 + dice.roll(9)).unwrap();
        cluster.pods(&app, count, (&cpu, &memory), spec);
    }
    cluster
}

#[test]
fn random_problems_are_solved_within_the_rules() {
    for seed in 0..deep(25, 3) {
        for packing in [Packing::Cost, Packing::Karpenter] {
            let mut cluster = random_cluster(seed);
            cluster.problem.options.packing = packing;
            let solution = cluster.solve();
            assert!(
                solution.pod_errors.is_empty(),
                "seed {seed}: {:?}",
                solution.pod_errors
            );
        }
    }
}

#[test]
fn order_of_input_and_threads_do_not_matter() {
    for seed in 0..deep(6, 2) {
        let mut cluster = random_cluster(seed);
        let first = cluster.solve();
        cluster.problem.pods.reverse();
        cluster.problem.nodes.reverse();
        cluster.types = cluster.types.iter().rev().map(Arc::clone).collect();
        cluster.problem.pools[0].instance_types = Arc::clone(&cluster.types);
        cluster.problem.options.threads = 4;
        assert_eq!(cluster.solve(), first, "seed {seed}");
    }
}

#[test]
fn cost_packing_is_never_dearer_than_first_fit() {
    for seed in 0..deep(10, 3) {
        let mut cluster = random_cluster(seed);
        let cost = cluster.solve().price_per_hour();
        cluster.problem.options.packing = Packing::Karpenter;
        let first_fit = cluster.solve().price_per_hour();
        assert!(
            cost <= first_fit * 1.001,
            "seed {seed}: {cost} against {first_fit}"
        );
    }
}

#[test]
fn what_earlier_rounds_left_does_not_show() {
    let cache = TableCache::default();
    let different = deep(7, 2);
    for seed in 0..3 * different + 4 {
        let mut cluster = random_cluster(seed % different);
        if seed >= 2 * different {
            // The order in which nodes are told must not matter.
            cluster.problem.nodes.reverse();
        }
        let never = Interrupt::never();
        let fresh = solve(&cluster.problem, &PriceRank, &never);
        let prepared = Prepared::new(&cluster.problem, &PriceRank, &cache);
        assert_eq!(
            solve_prepared(&cluster.problem, &prepared, &never),
            fresh,
            "seed {seed}"
        );
        cluster.problem.options.packing = Packing::Karpenter;
        let gone = cluster.problem.nodes.pop();
        let gone: Vec<NodeRef> = gone.iter().map(|it| it.node_ref.clone()).collect();
        let fresh = solve(&cluster.problem, &PriceRank, &never);
        assert_eq!(
            solve_without(&cluster.problem, &prepared, &gone, &never),
            fresh,
            "seed {seed}, one node less"
        );
    }
}

#[test]
fn tables_of_types_that_were_replaced_are_let_go() {
    let cache = TableCache::default();
    let mut cluster = Cluster::new();
    let prepare = |cluster: &Cluster| Prepared::new(&cluster.problem, &PriceRank, &cache);
    let first = Arc::clone(&cluster.problem.pools[0].instance_types);
    let uses = || Arc::strong_count(&first);
    let without_tables = uses();
    drop(prepare(&cluster));
    let kept = uses();
    drop(prepare(&cluster));
    assert_eq!(uses(), kept, "the second round has the tables of the first");

    // As after any news of prices or of what is out of stock.
    let news: Vec<_> = first.iter().cloned().collect();
    cluster.problem.pools[0].instance_types = news.into();
    drop(prepare(&cluster));
    assert_eq!(uses(), without_tables - 1, "neither tables nor pool");
}
