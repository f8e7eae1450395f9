//! Several new nodes in place of those that go: two for three, or some small ones for a big one.
//!
//! Karpenter gives up where one new node is not enough or not cheaper. Here the cheapest set of nodes is bought in
//! the simulation and judged by the cost after the move; it must save a share worth the trouble, whatever offering
//! each launch gets.

use apis::labels;
use scheduling::requirements::{Operator, Requirement};
use scheduling::solution::NewClaim;
use state::ledger::OutcomeId;

use super::cheaper::pin_to_preferred;
use super::price::Types;
use super::removal::Removal;
use super::savings::{SAVINGS_SHARE_PER_NODE, most_after};
use crate::candidate::Candidate;
use crate::command::{Cost, Proposal};
use crate::obstacle::Obstacle;
use crate::simulation::Purpose;

/// Most new nodes of one move.
const NODES_MAX: usize = 50;

/// The cheapest set of nodes for the pods of those that go.
pub(super) fn compute<'s>(it: Removal<'_, 's, '_>) -> Result<Proposal<'s>, Obstacle> {
    let what_if = it.scene.what_if();
    let simulated = { what_if.simulator }.without(it.removed, Purpose::Repacking);
    simulated.sound()?;
    let destinations = simulated.destinations();
    let mut claims = simulated.claims;
    let no_cheaper = || Obstacle::new(OutcomeId::NodeNoCheaperReplacement, "");
    if claims.len() > NODES_MAX {
        return Err(no_cheaper());
    }
    let is_spot = |it: &Candidate| it.capacity_type() == labels::CAPACITY_TYPE_SPOT;
    let may_not_be_spot =
        { it.removed.iter().copied() }.all(is_spot) && !it.scene.input.gates.spot_to_spot;
    for claim in &mut claims {
        let types = what_if.types(&claim.pool);
        if types.may_be_spot_or_on_demand(claim) {
            pin_to_preferred(claim, &types);
        }
        types.refresh_summary(claim);
        if may_not_be_spot && claim.best.capacity_type == labels::CAPACITY_TYPE_SPOT {
            return Err(Obstacle::new(OutcomeId::NodeSpotToSpotDisabled, ""));
        }
    }
    let before = it.cost().effective_per_hour;
    let after = Cost::of_claims(&claims).effective_per_hour;
    let risk = SAVINGS_SHARE_PER_NODE * claims.len() as f64;
    if after > most_after(before) - before * risk {
        return Err(no_cheaper());
    }
    // Together the claims may cost what goes and no more, whichever of their types are launched.
    let slack = if after > 0.0 {
        before / after
    } else {
        f64::MAX
    };
    for claim in &mut claims {
        let types = what_if.types(&claim.pool);
        let most = claim.best.effective_cost_per_hour * slack;
        if !leave_cheaper(claim, &types, most) {
            return Err(no_cheaper());
        }
        if types.needed_for_min_values(claim).is_none() {
            return Err(Obstacle::new(OutcomeId::NodeMinValues, ""));
        }
        types.refresh_summary(claim);
    }
    Ok(it.proposal(claims, destinations))
}

/// Leaves only the types that cost less wherever they are launched; where none does, those that do in the zone of the
/// best offering. False where there is none at all.
fn leave_cheaper(claim: &mut NewClaim, types: &Types, most_per_hour: f64) -> bool {
    let cheaper = |claim: &NewClaim| {
        let choice = types.choice(claim);
        let mut kept = claim.instance_types.clone();
        kept.retain(|name| choice.worst(name) < most_per_hour);
        kept
    };
    let mut kept = cheaper(claim);
    if kept.is_empty() {
        pin_to_zone(claim);
        kept = cheaper(claim);
    }
    claim.instance_types = kept;
    !claim.instance_types.is_empty()
}

fn pin_to_zone(claim: &mut NewClaim) {
    let zone = claim.best.zone.as_str();
    let mut pinned = Requirement::new(labels::TOPOLOGY_ZONE, Operator::In, [zone]);
    pinned.min_values = claim.requirements.get(labels::TOPOLOGY_ZONE).min_values;
    claim.requirements.replace(pinned);
}
