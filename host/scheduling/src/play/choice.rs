//! Of several plans the one that costs least once the scheduler has had its way with it.
//!
//! The plan as it is, mended, and in Karpenter's order, whose few large nodes leave a scheduler less to do wrong. What
//! strands needs nodes all the same, so a plan's bill is its own and theirs; it is taken over several orders in which
//! nodes may come ready. Effort is counted in plans and plays, never by a clock.

use super::mend::{PlayStage, mend, solve_rest};
use super::play;
use crate::problem::{Packing, Problem};
use crate::solution::Solution;
use crate::solve::solve_prepared;

/// In how many waves the nodes of a plan come, once for each play.
const WAVES: [usize; 2] = [1, 3];
/// Work for each pod, in nodes scored, after which nothing further is tried. It stands for the time of the solve, which
/// must not decide.
const SCORES_PER_POD: usize = 500;
/// How much more a plan may cost on which no pod has to wait for a second boot.
const WORTH_A_BOOT: f64 = 1.02;

/// Result of the choice.
#[derive(Debug, Clone, Default)]
pub struct PlanChoice {
    /// The plan to follow.
    pub solution: Solution,
    /// Bills that were compared; `None` where there was nothing to choose.
    pub bills: Option<PlanBills>,
}

/// Costs that all nodes of two plans are expected to have in the end, USD an hour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanBills {
    /// Of the plan that was there first.
    pub first_per_hour: f64,
    /// Of the plan to follow.
    pub chosen_per_hour: f64,
}

/// Plays a plan; where pods strand, looks for a better one.
pub fn choose(stage: PlayStage<'_>, plan: Solution) -> PlanChoice {
    let is_by_cost = stage.problem.options.packing == Packing::Cost;
    if !is_by_cost || !is_known(stage, &plan) {
        return PlanChoice {
            solution: plan,
            bills: None,
        };
    }
    let mut effort = 0;
    let effort_max = stage.problem.pods.len() * SCORES_PER_POD;
    let first = bill_after(stage, &plan, &mut effort);
    let mut best = (first, plan);
    if first <= bill(&best.1) {
        return PlanChoice::of(first, best);
    }
    if effort < effort_max {
        let karpenter = in_karpenters_order(stage);
        if karpenter.placed() >= best.1.placed() {
            let after = bill_after(stage, &karpenter, &mut effort);
            if after < best.0 {
                best = (after, karpenter);
            }
        }
    }
    if effort < effort_max {
        let mended = mend(stage, best.1.clone());
        let after = bill_after(stage, &mended.solution, &mut effort);
        if mended.stranded == 0 && after <= best.0 * WORTH_A_BOOT {
            best = (after, mended.solution);
        }
    }
    PlanChoice::of(first, best)
}

impl PlanChoice {
    fn of(first_per_hour: f64, (chosen_per_hour, solution): (f64, Solution)) -> Self {
        Self {
            solution,
            bills: Some(PlanBills {
                first_per_hour,
                chosen_per_hour,
            }),
        }
    }
}

/// Whether the play knows enough of the plan: what becomes of devices and reservations it does not.
fn is_known(stage: PlayStage<'_>, plan: &Solution) -> bool {
    let PlayStage {
        problem, interrupt, ..
    } = stage;
    let is_refused = plan.premium.is_some_and(|it| it.is_refused);
    let mut pools = problem.pools.iter();
    let reserves = pools.any(|pool| {
        let mut types = pool.instance_types.iter();
        types.any(|it| {
            it.offerings
                .iter()
                .any(|it| it.is_reserved() && it.is_launchable())
        })
    });
    problem.devices.is_none() && !reserves && !is_refused && !interrupt.is_tripped()
}

fn bill(plan: &Solution) -> f64 {
    plan.claims
        .iter()
        .map(|it| it.best.effective_cost_per_hour)
        .sum()
}

/// Cost of the plan's nodes with those for pods that strand, on average over the orders in which nodes come.
fn bill_after(stage: PlayStage<'_>, plan: &Solution, effort: &mut usize) -> f64 {
    let of_stranded = WAVES.map(|waves| {
        let played = play(stage.problem, plan, stage.profile, waves);
        *effort += played.effort;
        if played.stranded.is_empty() {
            0.0
        } else {
            bill(&solve_rest(stage, plan, &played))
        }
    });
    bill(plan) + of_stranded.iter().sum::<f64>() / of_stranded.len() as f64
}

fn in_karpenters_order(stage: PlayStage<'_>) -> Solution {
    let mut problem: Problem = stage.problem.clone();
    problem.options.packing = Packing::Karpenter;
    let solution = solve_prepared(&problem, stage.prepared, stage.interrupt);
    Solution {
        uses: stage.prepared.uses().to_vec(),
        ..solution
    }
}
