//! What both kinds of consolidation share: who is eligible, and what a set of nodes could become.
//!
//! Moves are found and weighed by effective cost, which is the list price where no ranking policy says otherwise; what
//! that policy excludes does not come. A proposal is worth its cost natively before a policy sees it. Answers to Karpenter's
//! `disruption/consolidation.go`.

mod many;
mod price;

use std::collections::BTreeSet;
use std::rc::Rc;

use apis::ConsolidationPolicy;
use apis::labels;
use apis::resources::Resources;
use scheduling::requirements::{Operator, Requirement};
use scheduling::solution::NewClaim;
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::{Cost, Manner, Proposal};
use crate::method::Method;
use crate::simulation::{Purpose, Simulated, Simulator};

pub use many::SAVINGS_SHARE_MIN;
pub use price::{Floor, Prices};
use price::{Types, truncate};

/// A single spot node is only replaced by a claim with this many cheaper types to choose from, so that
/// the replacement is not the one type about to be interrupted.
const SPOT_TO_SPOT_TYPES_MIN: usize = 15;

/// What stands in the way of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Which rule.
    pub outcome: OutcomeId,
    /// What exactly.
    pub reason: String,
}

impl Obstacle {
    pub(crate) fn new(outcome: OutcomeId, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
        }
    }
}

/// Why a candidate is no matter for consolidation, apart from being empty.
pub fn eligibility(candidate: &Candidate) -> Result<(), Obstacle> {
    let disruption = &candidate.node_pool.spec.disruption;
    let blocked = |outcome, reason: &str| Err(Obstacle::new(outcome, reason));
    if candidate.node_pool.is_static() {
        return blocked(OutcomeId::NodeStaticPool, "");
    }
    if candidate.instance_type.is_none() {
        return blocked(OutcomeId::NodeTypeUnknown, candidate.instance_type_name());
    }
    if candidate.capacity_type().is_empty() {
        return blocked(OutcomeId::NodeWithoutCapacityType, "");
    }
    if candidate.zone().is_empty() {
        return blocked(OutcomeId::NodeWithoutZone, "");
    }
    if disruption.consolidate_after.is_never() {
        return blocked(OutcomeId::NodeConsolidationNever, "");
    }
    match disruption.consolidation_policy {
        ConsolidationPolicy::WhenEmpty if !candidate.is_empty() => {
            return blocked(OutcomeId::NodePolicyWhenEmpty, "");
        }
        ConsolidationPolicy::WhenEmpty
        | ConsolidationPolicy::WhenEmptyOrUnderutilized
        | ConsolidationPolicy::Balanced => {}
    }
    if !candidate.is_consolidatable() {
        return blocked(
            OutcomeId::NodeNotConsolidatable,
            disruption.consolidate_after.raw(),
        );
    }
    Ok(())
}

/// How consolidation may behave.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gates {
    /// Spot nodes may be replaced by cheaper spot nodes.
    pub spot_to_spot: bool,
    /// Drifted nodes may go before their replacement comes where it could not come before.
    pub terminate_first_drift: bool,
    /// Sick nodes may.
    pub terminate_first_repair: bool,
    /// Moves that save little of the bill wait until what they would have saved meanwhile covers the pods they disturb.
    pub waits_for_small_gains: bool,
}

/// What a consolidation works with.
pub struct Bench<'a, 's> {
    /// Tells what would happen.
    pub simulator: &'a Simulator<'s>,
    /// All candidates; moves name their positions.
    pub candidates: &'a [Candidate],
    /// Prices of what could come.
    pub prices: &'a Prices,
    /// The least that resources cost anywhere.
    pub floor: &'a Floor,
    /// What is switched on.
    pub gates: Gates,
}

/// How many nodes may come in place of those that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacements {
    /// One, or none.
    One,
    /// Several, where one does not do.
    SeveralIfNeeded,
    /// Several, where they are cheaper.
    Several,
}

/// Simulates the removal of some candidates and makes the cheapest sound proposal of it.
pub fn compute(
    bench: &Bench<'_, '_>,
    rows: &[usize],
    method: Method,
    replacements: Replacements,
) -> Result<Proposal, Obstacle> {
    let removed = bench.rows(rows);
    let simulated = bench.simulator.without(&removed, Purpose::Consolidation);
    propose(bench, rows, simulated, (method, replacements))
}

/// As [`compute`], for each row alone.
pub fn compute_each(
    bench: &Bench<'_, '_>,
    rows: &[usize],
    method: Method,
) -> Vec<Result<Proposal, Obstacle>> {
    let removed = bench.rows(rows);
    let simulated = bench
        .simulator
        .without_each(&removed, Purpose::Consolidation);
    let how = (method, Replacements::SeveralIfNeeded);
    rows.iter()
        .zip(simulated)
        .map(|(row, simulated)| propose(bench, &[*row], simulated, how))
        .collect()
}

fn propose(
    bench: &Bench<'_, '_>,
    rows: &[usize],
    simulated: Simulated,
    (method, replacements): (Method, Replacements),
) -> Result<Proposal, Obstacle> {
    let removed = bench.rows(rows);
    sound(&simulated)?;
    let mut needed = Resources::new();
    for claim in &simulated.claims {
        needed.add_assign(&claim.requests);
    }
    let one = one(bench, simulated, (rows, &removed), method);
    let is_enough = match replacements {
        Replacements::One => true,
        Replacements::SeveralIfNeeded => one.is_ok(),
        Replacements::Several => false,
    };
    if is_enough {
        return one;
    }
    let to_beat = match &one {
        Ok(proposal) if proposal.replacements.is_empty() => return one,
        Ok(proposal) => proposal.after.effective_per_hour,
        Err(_) => Cost::of_nodes(removed).effective_per_hour,
    };
    let may_be_several = one.as_ref().err().is_none_or(|it| {
        matches!(
            it.outcome,
            OutcomeId::NodeNeedsManyNodes | OutcomeId::NodeNoCheaperReplacement
        )
    });
    let most = many::most_after(to_beat);
    // Not worth a simulation where not even full nodes would cost so little.
    let is_within_reach = bench.floor.cost_per_hour(&needed) <= most;
    if !may_be_several || !is_within_reach {
        return one;
    }
    let several = many::compute(bench, rows, method).ok();
    several
        .filter(|it| it.after.effective_per_hour <= most)
        .map_or(one, Ok)
}

impl Bench<'_, '_> {
    fn rows(&self, rows: &[usize]) -> Vec<&Candidate> {
        let candidates = rows.iter();
        candidates
            .filter_map(|&row| self.candidates.get(row))
            .collect()
    }

    /// What a pool may buy.
    fn types(&self, pool: &str) -> Rc<Types> {
        self.prices.pool(self.simulator.prepared(), pool)
    }
}

/// At most one node comes.
fn one(
    bench: &Bench<'_, '_>,
    simulated: Simulated,
    (rows, removed): (&[usize], &[&Candidate]),
    method: Method,
) -> Result<Proposal, Obstacle> {
    let destinations = simulated.destinations();
    let mut claims = simulated.claims;
    let proposal = |replacements: Vec<NewClaim>| Proposal {
        manner: Manner::default(),
        method,
        rows: rows.to_vec(),
        before: Cost::of_nodes(removed.iter().copied()),
        after: Cost::of_claims(&replacements),
        replacements,
        destinations,
    };
    if claims.len() > 1 {
        return Err(Obstacle::new(
            OutcomeId::NodeNeedsManyNodes,
            format!("{} new nodes would be needed", claims.len()),
        ));
    }
    let Some(mut claim) = claims.pop() else {
        return Ok(proposal(Vec::new()));
    };
    let types = bench.types(&claim.pool);
    cheapen(&mut claim, removed, &types, (method, bench.gates))?;
    if method == Method::MultiNodeConsolidation {
        drop_types_being_removed(&mut claim, removed, &types)?;
    }
    types.settle(&mut claim);
    Ok(proposal(vec![claim]))
}

/// Every pod that has a place today must have one afterwards.
fn sound(simulated: &Simulated) -> Result<(), Obstacle> {
    if simulated.is_interrupted {
        return Err(Obstacle::new(
            OutcomeId::NodeNotReached,
            "the simulation was cut off",
        ));
    }
    if let Some((pod, error)) = &simulated.stranded {
        return Err(Obstacle::new(
            OutcomeId::NodePodsDoNotFit,
            format!("pod {pod}: {error}"),
        ));
    }
    if let Some((pod, node)) = &simulated.uninitialized {
        return Err(Obstacle::new(
            OutcomeId::NodeUninitializedDestination,
            format!("pod {pod} would go to {node}"),
        ));
    }
    Ok(())
}

/// Leaves only the types that cannot cost more than what goes.
fn cheapen(
    claim: &mut NewClaim,
    removed: &[&Candidate],
    types: &Types,
    (method, gates): (Method, Gates),
) -> Result<(), Obstacle> {
    let cost_before = Cost::of_nodes(removed.iter().copied()).effective_per_hour;
    let are_all_spot = removed
        .iter()
        .all(|it| it.capacity_type() == labels::CAPACITY_TYPE_SPOT);
    let is_spot_to_spot =
        are_all_spot && types.preferred_capacity_type(claim) == Some(labels::CAPACITY_TYPE_SPOT);
    if is_spot_to_spot {
        if !gates.spot_to_spot {
            return Err(Obstacle::new(OutcomeId::NodeSpotToSpotDisabled, ""));
        }
        pin_to(claim, labels::CAPACITY_TYPE_SPOT);
        let choice = types.choice(claim);
        claim
            .instance_types
            .retain(|name| choice.cheapest(name).is_some());
    }
    leave_cheaper(claim, types, cost_before)?;
    let Some(needed) = types.needed_for_min_values(claim) else {
        return Err(Obstacle::new(OutcomeId::NodeMinValues, ""));
    };
    if is_spot_to_spot && method == Method::SingleNodeConsolidation {
        let cheaper = claim.instance_types.len();
        if cheaper < SPOT_TO_SPOT_TYPES_MIN {
            return Err(Obstacle::new(
                OutcomeId::NodeSpotToSpotFewTypes,
                format!("{cheaper} cheaper instance types, {SPOT_TO_SPOT_TYPES_MIN} needed"),
            ));
        }
        truncate(claim, SPOT_TO_SPOT_TYPES_MIN.max(needed));
    }
    // The other would be launched when the preferred one has no capacity, and might cost more than what goes.
    if types.may_be_spot_or_on_demand(claim) && pin_to_preferred(claim, types) {
        leave_cheaper(claim, types, cost_before)?;
    }
    Ok(())
}

/// Leaves the types that cost less wherever they are launched.
fn leave_cheaper(claim: &mut NewClaim, types: &Types, cost_before: f64) -> Result<(), Obstacle> {
    let choice = types.choice(claim);
    let cheapest_before = claim.instance_types.first().map(|name| choice.worst(name));
    claim
        .instance_types
        .retain(|name| choice.worst(name) < cost_before);
    if claim.instance_types.is_empty() {
        let best = cheapest_before.unwrap_or(f64::INFINITY);
        return Err(Obstacle::new(
            OutcomeId::NodeNoCheaperReplacement,
            format!("now {cost_before:.4} USD an hour, the replacement {best:.4}"),
        ));
    }
    Ok(())
}

/// Pins a claim to the capacity type that costs least; whether that is another than spot, which types were chosen by.
fn pin_to_preferred(claim: &mut NewClaim, types: &Types) -> bool {
    let preferred = types.preferred_capacity_type(claim);
    let preferred = preferred.unwrap_or(labels::CAPACITY_TYPE_SPOT).to_owned();
    pin_to(claim, &preferred);
    preferred != labels::CAPACITY_TYPE_SPOT
}

fn pin_to(claim: &mut NewClaim, capacity_type: &str) {
    let mut pinned = Requirement::new(labels::CAPACITY_TYPE, Operator::In, [capacity_type]);
    pinned.min_values = claim.requirements.get(labels::CAPACITY_TYPE).min_values;
    claim.requirements.replace(pinned);
    claim.capacity_types = BTreeSet::from([capacity_type.to_owned()]);
}

/// Replacing `[2xl, 2xl, small]` by a `small` is deleting two nodes the hard way: when a type that goes
/// could also come, only strictly cheaper ones may.
fn drop_types_being_removed(
    claim: &mut NewClaim,
    removed: &[&Candidate],
    types: &Types,
) -> Result<(), Obstacle> {
    let shared = removed
        .iter()
        .filter(|it| {
            claim
                .instance_types
                .iter()
                .any(|name| name == it.instance_type_name())
        })
        .map(|it| it.cost.effective_per_hour)
        .min_by(f64::total_cmp);
    let Some(cost_max) = shared else {
        return Ok(());
    };
    let choice = types.choice(claim);
    claim
        .instance_types
        .retain(|name| choice.worst(name) < cost_max);
    if claim.instance_types.is_empty() {
        return Err(Obstacle::new(
            OutcomeId::NodeNoCheaperReplacement,
            "a node of the same type would come back",
        ));
    }
    match types.needed_for_min_values(claim) {
        Some(_) => Ok(()),
        None => Err(Obstacle::new(OutcomeId::NodeMinValues, "")),
    }
}
