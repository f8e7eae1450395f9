//! Several new nodes in place of those that go: two for three, or some small ones for a big one.
//!
//! Karpenter gives up where one new node is not enough or not cheaper. Here the cheapest set of nodes is bought in
//! the simulation and judged by the cost after the move; it must save a share worth the trouble, whatever offering
//! each launch gets.

use apis::labels;
use apis::resources::Resources;
use state::ledger::OutcomeId;

use super::{Bench, Obstacle, pin_to_spot, sound};
use crate::candidate::Candidate;
use crate::command::{Manner, Proposal};
use crate::method::Method;
use crate::simulation::Purpose;

/// What several new nodes must save at least, of the cost of what goes: each launch is a risk of its own.
pub const SAVINGS_SHARE_MIN: f64 = 0.05;
/// Most new nodes of one move.
const NODES_MAX: usize = 50;

fn most_after(removed: &[&Candidate]) -> f64 {
    let before: f64 = removed.iter().map(|it| it.price_per_hour).sum();
    before * (1.0 - SAVINGS_SHARE_MIN)
}

/// Whether what new nodes must offer could be had for so little at all, were every node full.
pub(super) fn is_worth_trying(
    bench: &Bench<'_, '_>,
    removed: &[&Candidate],
    needed: &Resources,
) -> bool {
    bench.floor.price_per_hour(needed) <= most_after(removed)
}

/// The cheapest set of nodes for the pods of those that go.
pub(super) fn compute(
    bench: &Bench<'_, '_>,
    rows: &[usize],
    method: Method,
) -> Result<Proposal, Obstacle> {
    let removed = bench.rows(rows);
    let simulated = bench.simulator.without(&removed, Purpose::Repacking);
    sound(&simulated)?;
    let destinations = simulated.destinations();
    let mut claims = simulated.claims;
    let dearer = || Obstacle::new(OutcomeId::NodeNoCheaperReplacement, "");
    if claims.len() > NODES_MAX {
        return Err(dearer());
    }
    let is_spot = |it: &&Candidate| it.capacity_type() == labels::CAPACITY_TYPE_SPOT;
    let may_not_be_spot = removed.iter().all(is_spot) && !bench.gates.spot_to_spot;
    for claim in &mut claims {
        let types = bench.prices.pool(&claim.pool);
        if types.may_be_spot_or_on_demand(claim) {
            pin_to_spot(claim);
        }
        types.settle(claim);
        if may_not_be_spot && claim.best.capacity_type == labels::CAPACITY_TYPE_SPOT {
            return Err(Obstacle::new(OutcomeId::NodeSpotToSpotDisabled, ""));
        }
    }
    let before: f64 = removed.iter().map(|it| it.price_per_hour).sum();
    let after: f64 = claims.iter().map(|it| it.best.price_per_hour).sum();
    if after > most_after(&removed) {
        return Err(dearer());
    }
    // Together the claims may cost what goes and no more, whichever of their types are launched.
    let slack = if after > 0.0 {
        before / after
    } else {
        f64::MAX
    };
    for claim in &mut claims {
        let types = bench.prices.pool(&claim.pool);
        let most = claim.best.price_per_hour * slack;
        let choice = types.under(&claim.requirements);
        claim
            .instance_types
            .retain(|name| choice.worst(name) < most);
        if claim.instance_types.is_empty() {
            return Err(dearer());
        }
        if types.needed_for_min_values(claim).is_none() {
            return Err(Obstacle::new(OutcomeId::NodeMinValues, ""));
        }
        types.settle(claim);
    }
    Ok(Proposal {
        manner: Manner::default(),
        method,
        rows: rows.to_vec(),
        cost_after_per_hour: claims.iter().map(|it| it.best.price_per_hour).sum(),
        replacements: claims,
        destinations,
        cost_before_per_hour: before,
    })
}
