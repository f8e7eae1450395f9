//! Problems of the usual families: the answer depends on the problem alone, and Spot claims are left a choice.

use std::sync::Arc;

use apis::CapacityType;
use scheduling::ranking::PriceRank;
use scheduling::{
    Interrupt, Prepared, Solution, TableCache, lower_bound_per_hour, solve, solve_prepared,
};

use crate::checker;
use crate::deep::deep;

#[path = "../support/families.rs"]
mod generator;

use generator::{Dice, Family};

const SPOT_TYPES_MIN: usize = 15;

fn solved(problem: &scheduling::problem::Problem) -> Solution {
    let solution = solve(problem, &PriceRank, &Interrupt::never());
    checker::verify(problem, &solution);
    assert!(solution.pod_errors.is_empty(), "{:?}", solution.pod_errors);
    solution
}

#[test]
fn threads_and_order_of_input_do_not_matter() {
    let types = generator::catalogue(1, 400);
    for (family, count) in [
        (Family::Plain, 300),
        (Family::Diverse, 300),
        (Family::Prefs, 40),
        // Enough services for several parts that are planned side by side.
        (Family::Fleet, deep(4000, 400)),
    ] {
        let mut problem = generator::problem(family, 7, count, &types);
        let first = solved(&problem);
        for threads in [2, 8] {
            problem.options.threads = threads;
            let mut dice = Dice::new(threads as u64);
            for at in (1..problem.pods.len()).rev() {
                problem.pods.swap(at, dice.roll(at + 1));
            }
            problem.pools.reverse();
            for pool in &mut problem.pools {
                pool.instance_types = types.iter().rev().map(Arc::clone).collect();
            }
            assert!(solved(&problem) == first, "{family:?}, {threads} threads");
        }
    }
}

#[test]
fn spot_claims_are_left_a_choice_of_types() {
    let types = generator::catalogue(2, 400);
    for family in [Family::Plain, Family::Fleet, Family::Diverse] {
        let problem = generator::problem(family, 3, deep(600, 100), &types);
        for claim in solved(&problem).claims {
            assert!(
                claim.best.capacity_type != Some(CapacityType::Spot)
                    || claim.instance_types.len() >= SPOT_TYPES_MIN,
                "{family:?}: {} of {} types",
                claim.best.instance_type,
                claim.instance_types.len()
            );
        }
    }
}

/// Nothing of it shows in fewer pods, so that it is not for every day.
#[cfg(not(debug_assertions))]
#[test]
fn nodes_are_joined_as_far_as_the_bill_may_grow() {
    let types = generator::catalogue(1, 400);
    let mut problem = generator::problem(Family::Fleet, 5, 1000, &types);
    let mut of = |tolerance, exchange_share| {
        problem.options.tuning.nodes_tolerance = tolerance;
        problem.options.tuning.exchange_share = exchange_share;
        let solution = solved(&problem);
        (solution.claims.len(), solution.price_per_hour())
    };
    let (_, least_bill) = of(0.0, 0.0);
    let chosen = of(0.03, 0.0);
    let joined = of(0.03, 0.2);
    assert!(joined.0 < chosen.0, "{joined:?} after {chosen:?}");
    assert!(
        joined.1 <= least_bill * 1.03 + 1e-6,
        "{joined:?} for {least_bill}"
    );
}

#[test]
fn no_plan_undercuts_the_lower_bound() {
    let types = generator::catalogue(1, 400);
    // What has no constraints comes near; a fleet pays for its GPUs and Diverse for a host a pod.
    for (family, gap_max) in [
        (Family::Plain, 1.10),
        (Family::Fleet, f64::INFINITY),
        (Family::Diverse, f64::INFINITY),
    ] {
        let problem = generator::problem(family, 9, 1000, &types);
        let prepared = Prepared::new(&problem, &PriceRank, &TableCache::default());
        let bound = lower_bound_per_hour(&problem, &prepared).unwrap();
        let solution = solve_prepared(&problem, &prepared, &Interrupt::never());
        let gap = solution.price_per_hour() / bound;
        assert!(gap >= 1.0 && gap <= gap_max, "{family:?}: {gap}");
        let mut settled = problem;
        generator::add_nodes(&mut settled, 1);
        let prepared = Prepared::new(&settled, &PriceRank, &TableCache::default());
        assert_eq!(lower_bound_per_hour(&settled, &prepared), None);
    }
}
