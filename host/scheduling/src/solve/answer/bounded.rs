//! A plan held against the plan of list prices, where a ranking policy reckons otherwise.
//!
//! A policy that misjudges may pack onto nodes that are dear for what they hold, and no look at single offerings shows
//! that. So the round is solved a second time by list prices, under the same exclusions, and a plan that is dearer than
//! the bound allows is not used.

use crate::problem::Problem;
use crate::ranking::PremiumMax;
use crate::solution::PlanPremium;
use crate::solve::input::prepared::{Prepared, TableCache};
use crate::solve::{Interrupt, Solution, solve_prepared};

/// Solves, and takes the plan of list prices where the policy's is too dear.
pub fn solve_within_premium(
    problem: &Problem,
    prepared: &Prepared,
    cache: &TableCache,
    interrupt: &Interrupt,
) -> Solution {
    let solution = solve_prepared(problem, prepared, interrupt);
    let names = solution.claims.iter().map(|it| it.pool.as_str());
    let bounds = names.map(|pool| prepared.premium_max(pool));
    let bound = bounds.fold(PremiumMax::OFF, PremiumMax::tighter);
    let Some(list_prices) = prepared.list_prices().filter(|_| bound.is_on()) else {
        return solution;
    };
    let listed = Prepared::new(problem, &list_prices, cache);
    let listed = solve_prepared(problem, &listed, interrupt);
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
