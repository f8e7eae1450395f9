//! A plan held against the plan of list prices, where a ranking policy reckons otherwise.
//!
//! A policy that misjudges may pack onto nodes that are expensive for what they hold, and no look at single offerings
//! shows that. So the round is solved a second time by list prices, under the same exclusions, and a plan that costs
//! more than the bound allows is not used.

use crate::ranking::PremiumMax;
use crate::solution::{PlanPremium, Solution};
use crate::solve::input::prepared::Prepared;

/// The tightest bound among the pools that a plan buys from.
pub(crate) fn bound(solution: &Solution, prepared: &Prepared) -> PremiumMax {
    let names = solution.claims.iter().map(|it| it.pool.as_str());
    let bounds = names.map(|pool| prepared.premium_max(pool));
    bounds.fold(PremiumMax::OFF, PremiumMax::tighter)
}

/// The policy's plan, or that of list prices where the policy's costs too much.
pub(crate) fn within(bound: PremiumMax, solution: Solution, listed: Solution) -> Solution {
    if listed.is_interrupted || listed.placed() < solution.placed() {
        return solution;
    }
    let premium = PlanPremium {
        price_per_hour: solution.price_per_hour(),
        list_plan_per_hour: listed.price_per_hour(),
        bound,
        is_refused: solution.price_per_hour() > bound.most(listed.price_per_hour()),
    };
    let taken = if premium.is_refused { listed } else { solution };
    Solution {
        premium: Some(premium),
        ..taken
    }
}
