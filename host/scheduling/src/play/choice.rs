//! Of several plans the one that costs least once the scheduler has had its way with it.
//!
//! The plan as it is, mended, and in Karpenter's order, whose few large nodes leave a scheduler less to do wrong. What
//! strands needs nodes all the same, so a plan's bill is its own and theirs; it is taken over several orders in which
//! nodes may come ready. Effort is counted in plans and plays, never by a clock.

use apis::NodeRef;

use super::mend::{PlayStage, mend, solve_rest};
use super::{Arrival, PlayOrder};
use crate::problem::{Packing, Problem};
use crate::solution::Solution;
use crate::solve::solve_prepared;

/// Plays of a plan for pods that wait.
const OF_WAITING: [PlayOrder; 2] = [order(1, Arrival::ByAge), order(3, Arrival::ByAge)];
/// Plays of a plan for pods that leave nodes, which they do once all is there that they are to go to.
const OF_LEAVING: [PlayOrder; 2] = [order(1, Arrival::NodeByNode), order(1, Arrival::BySize)];
/// Work for each pod, in nodes scored, after which nothing further is tried. It stands for the time of the solve, which
/// must not decide.
const SCORES_PER_POD: usize = 500;
/// How much more a plan may cost on which no pod has to wait for a second boot.
const WORTH_A_BOOT: f64 = 1.02;

const fn order(waves: usize, arrival: Arrival) -> PlayOrder {
    PlayOrder { waves, arrival }
}

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
    if !may_be_played(stage, &plan) {
        return PlanChoice {
            solution: plan,
            bills: None,
        };
    }
    let mut effort = 0;
    let effort_max = stage.problem.pods.len() * SCORES_PER_POD;
    let first = bill_after(stage, &plan, &OF_WAITING, &mut effort);
    let mut best = (first, plan);
    if first <= bill(&best.1) {
        return PlanChoice::of(first, best);
    }
    if effort < effort_max {
        let karpenter = in_karpenters_order(stage);
        if karpenter.placed() >= best.1.placed() {
            let after = bill_after(stage, &karpenter, &OF_WAITING, &mut effort);
            if after < best.0 {
                best = (after, karpenter);
            }
        }
    }
    if effort < effort_max {
        let mended = mend(stage, best.1.clone());
        let after = bill_after(stage, &mended.solution, &OF_WAITING, &mut effort);
        if mended.stranded == 0 && after <= best.0 * WORTH_A_BOOT {
            best = (after, mended.solution);
        }
    }
    PlanChoice::of(first, best)
}

/// What a plan for the pods of these nodes, once they are gone, is expected to cost, effective USD an hour: its own
/// nodes, and those for pods that the scheduler leaves without a place. The nodes that stay are those that all was
/// prepared with. As planned where the play does not know enough, or where packing does not go for the bill.
pub fn bill_without(stage: PlayStage<'_>, removed: &[NodeRef], plan: &Solution) -> f64 {
    let mut problem = stage.problem.clone();
    problem.nodes = stage.prepared.nodes_without(removed).cloned().collect();
    let stage = PlayStage {
        problem: &problem,
        ..stage
    };
    if may_be_played(stage, plan) {
        bill_after(stage, plan, &OF_LEAVING, &mut 0)
    } else {
        bill(plan)
    }
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

/// Whether packing goes for the bill, and the play knows enough of the plan: what becomes of devices and reservations
/// it does not.
fn may_be_played(stage: PlayStage<'_>, plan: &Solution) -> bool {
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
    let is_by_cost = problem.options.packing == Packing::Cost;
    let is_known = problem.devices.is_none() && !reserves && !is_refused;
    is_by_cost && is_known && !interrupt.is_tripped()
}

fn bill(plan: &Solution) -> f64 {
    plan.claims
        .iter()
        .map(|it| it.best.effective_cost_per_hour)
        .sum()
}

/// Cost of the plan's nodes with those for pods that strand, on average over the plays.
fn bill_after(
    stage: PlayStage<'_>,
    plan: &Solution,
    plays: &[PlayOrder],
    effort: &mut usize,
) -> f64 {
    let of_stranded = plays.iter().map(|order| {
        let played = stage.play(plan, *order);
        *effort += played.effort;
        if played.stranded.is_empty() {
            0.0
        } else {
            bill(&solve_rest(stage, plan, &played))
        }
    });
    bill(plan) + of_stranded.sum::<f64>() / plays.len() as f64
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
