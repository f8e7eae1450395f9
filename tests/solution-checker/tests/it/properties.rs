//! Random worlds are solved within the rules, whichever way nodes are packed.

use apis::resources::Resources;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use scheduling::problem::Packing;
use scheduling::ranking::PriceRank;
use scheduling::solution::NewClaim;
use scheduling::{Interrupt, Problem, Solution, solve};
use solution_checker::{check, effective_requests};

use crate::world::worlds;

pub(crate) const SEED: u64 = 20_260_101;

/// The same worlds every time; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` ask for more and for others.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let is_told = |name: &str| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if is_told("PROPTEST_CASES") {
            default.cases
        } else {
            cases
        },
        rng_seed: if is_told("PROPTEST_RNG_SEED") {
            default.rng_seed
        } else {
            RngSeed::Fixed(SEED)
        },
        failure_persistence: None,
        ..default
    }
}

pub(crate) fn solve_by(problem: &Problem, packing: Packing) -> Solution {
    let mut problem = problem.clone();
    problem.options.packing = packing;
    solve(&problem, &PriceRank, &Interrupt::never())
}

/// Who is where, in a line a claim.
fn told(solution: &Solution) -> Vec<String> {
    let claims = solution.claims.iter().enumerate();
    let line = |(index, claim): (usize, &NewClaim)| {
        let pods: Vec<String> = claim.pods.iter().map(ToString::to_string).collect();
        let asked = &claim.requirements;
        format!(
            "claim {index} of {}: {} under {asked}",
            claim.pool,
            pods.join(" ")
        )
    };
    let nodes = solution.existing.iter().map(|it| format!("{it:?}"));
    claims.map(line).chain(nodes).collect()
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn answers_keep_every_rule(world in worlds()) {
        let built = world.build();
        for packing in [Packing::Cost, Packing::Karpenter] {
            let solution = solve_by(&built.problem, packing);
            let faults: Vec<String> =
                check(&built.problem, &solution).iter().map(ToString::to_string).collect();
            prop_assert!(faults.is_empty(), "{packing:?}: {faults:#?} in {:#?}", told(&solution));
        }
    }

    #[test]
    fn requests_are_counted_as_kubernetes_counts_them(world in worlds()) {
        let built = world.build();
        for pod in &built.problem.pods {
            let ours = effective_requests(&built.objects[&pod.key]);
            let ours: Resources = ours.iter().map(|(name, millis)| (&**name, *millis)).collect();
            prop_assert_eq!(&pod.shape.requests, &ours);
        }
    }
}
