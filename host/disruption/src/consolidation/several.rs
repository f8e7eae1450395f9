//! Several new nodes in place of those that go: two for three, or some small ones for a big one.
//!
//! Karpenter gives up where one new node is not enough or not cheaper. Here the cheapest set of nodes is bought in
//! the simulation and judged by the cost after the move; it must save a share worth the trouble, whatever offering
//! each launch gets, and wherever the scheduler puts the pods: nobody can tell it of the new nodes, which are open
//! before the pods leave, so that those take each other's room.

use apis::{CapacityType, labels};
use scheduling::solution::{NewClaim, Solution};
use state::ledger::OutcomeId;

use super::cheaper::{pin_to_preferred, retain_below};
use super::price::Types;
use super::removal::Removal;
use super::savings::{SAVINGS_SHARE_PER_NODE, most_after};
use crate::candidate::Candidate;
use crate::command::{Cost, Proposal};
use crate::obstacle::Obstacle;
use crate::simulation::Purpose;

/// Most new nodes of one move.
const COMING_MAX: usize = 50;

/// The cheapest set of nodes for the pods of those that go.
pub(super) fn compute<'s>(removal: Removal<'_, 's, '_>) -> Result<Proposal<'s>, Obstacle> {
    let priced = removal.priced;
    let simulator = priced.simulator;
    let simulated = simulator.without(removal.removed, Purpose::Repacking)?;
    let destinations = simulated.destinations();
    let mut plan = Solution {
        claims: simulated.claims,
        existing: simulated.placements,
        ..Solution::default()
    };
    let no_cheaper = || Obstacle::from(OutcomeId::NodeNoCheaperReplacement);
    if plan.claims.len() > COMING_MAX {
        return Err(no_cheaper());
    }
    let is_spot = |it: &Candidate| it.capacity_type() == Some(CapacityType::Spot);
    let may_not_be_spot =
        !priced.gates.spot_to_spot && removal.removed.iter().copied().all(is_spot);
    for claim in &mut plan.claims {
        let types = priced.types(&claim.pool);
        if types.may_be_spot_or_on_demand(claim) {
            pin_to_preferred(claim, &types);
        }
        types.refresh_summary(claim);
        if may_not_be_spot && claim.best.capacity_type == Some(CapacityType::Spot) {
            return Err(OutcomeId::NodeSpotToSpotDisabled.into());
        }
    }
    let before = removal.cost().effective_per_hour;
    let after = Cost::of_claims(&plan.claims).effective_per_hour;
    let risk = SAVINGS_SHARE_PER_NODE * plan.claims.len() as f64;
    let most = most_after(before) - before * risk;
    if after > most || simulator.bill_after_play(removal.removed, &plan) > most {
        return Err(no_cheaper());
    }
    // Together the claims may cost what goes and no more, whichever of their types are launched.
    let slack = if after > 0.0 {
        before / after
    } else {
        f64::MAX
    };
    for claim in &mut plan.claims {
        let types = priced.types(&claim.pool);
        let most = claim.best.effective_cost_per_hour * slack;
        if !retain_below_somewhere(claim, &types, most) {
            return Err(no_cheaper());
        }
        if types.needed_for_min_values(claim).is_none() {
            return Err(OutcomeId::NodeMinValues.into());
        }
        types.refresh_summary(claim);
    }
    Ok(removal.proposal(plan.claims, destinations))
}

/// Leaves the types that cost less than this wherever they are launched; where none does, those that do in the zone of
/// the best offering. Whether there is any.
fn retain_below_somewhere(claim: &mut NewClaim, types: &Types, cost_per_hour: f64) -> bool {
    let everywhere = claim.instance_types.clone();
    if retain_below(claim, types, cost_per_hour).is_ok() {
        return true;
    }
    claim.instance_types = everywhere;
    let Some(zone) = claim.best.zone.clone() else {
        return false;
    };
    claim.pin_to(labels::TOPOLOGY_ZONE, &zone);
    retain_below(claim, types, cost_per_hour).is_ok()
}
