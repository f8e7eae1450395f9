//! The play of plans: what the model of the scheduler does with pods and nodes, and that a mended plan comes true.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot build its cluster has failed, and literals are passed as they come"
)]

mod follow;
mod model;

#[path = "../support/families.rs"]
mod generator;

use generator::Family;
use scheduling::play::{PlayStage, SchedulerProfile, choose, mend, play};
use scheduling::problem::{Packing, Problem};
use scheduling::ranking::PriceRank;
use scheduling::{Interrupt, Prepared, Solution, TableCache, solve_prepared};

/// Solves the problem and gives the plan to the judge.
fn with_plan<T>(problem: &Problem, judge: impl FnOnce(PlayStage<'_>, Solution) -> T) -> T {
    let prepared = Prepared::new(problem, &PriceRank, &TableCache::default());
    let interrupt = Interrupt::never();
    let plan = solve_prepared(problem, &prepared, &interrupt);
    let stage = PlayStage {
        problem,
        prepared: &prepared,
        profile: &SchedulerProfile::default(),
        interrupt: &interrupt,
    };
    judge(stage, plan)
}

#[test]
fn after_the_mend_every_planned_pod_binds() {
    let types = generator::catalogue(1, 300);
    let cases = (1..=3).flat_map(|seed| [(Family::Plain, seed, 200), (Family::Fleet, seed, 120)]);
    for (family, seed, count) in cases {
        let problem = generator::problem(family, seed, count, &types);
        with_plan(&problem, |stage, plan| {
            let placed = plan.placed();
            let mended = mend(stage, plan);
            assert_eq!(mended.stranded, 0, "{family:?} {seed}");
            assert_eq!(mended.solution.placed(), placed, "{family:?} {seed}");
            let again = play(&problem, &mended.solution, stage.profile, 1);
            assert!(again.stranded.is_empty(), "{family:?} {seed}");
            // What is written down is what came of the play.
            for (pod, claim) in &again.on_claims {
                let pods = &mended.solution.claims[*claim].pods;
                assert!(pods.contains(&problem.pods[*pod].key), "{family:?} {seed}");
            }
        });
    }
}

#[test]
fn the_chosen_plan_is_no_dearer_after_the_play_than_a_boot_is_worth() {
    let types = generator::catalogue(1, 300);
    for (family, seed) in [(Family::Plain, 1), (Family::Plain, 2), (Family::Diverse, 1)] {
        let problem = generator::problem(family, seed, 150, &types);
        let choices = [(); 2].map(|()| with_plan(&problem, choose));
        assert_eq!(
            choices[0].solution, choices[1].solution,
            "{family:?} {seed}"
        );
        let bills = choices[0].bills.unwrap();
        assert!(
            bills.chosen_per_hour <= bills.first_per_hour * 1.02 + 1e-9,
            "{family:?} {seed}: {bills:?}"
        );
    }
}

#[test]
fn plans_in_karpenters_order_are_left_alone() {
    let types = generator::catalogue(1, 300);
    let mut problem = generator::problem(Family::Plain, 2, 150, &types);
    problem.options.packing = Packing::Karpenter;
    with_plan(&problem, |stage, plan| {
        let choice = choose(stage, plan.clone());
        assert_eq!(choice.solution, plan);
        assert!(choice.bills.is_none());
    });
}
