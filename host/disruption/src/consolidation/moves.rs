//! What would come of it if a set of nodes went: the cheapest sound move.
//!
//! Asks no policy, and knows of no circles; those come after. Every pod that has a place keeps one.

use apis::resources::Resources;
use scheduling::solution::NewClaim;
use state::ledger::OutcomeId;

use super::{cheaper, several};
use crate::candidate::Candidate;
use crate::command::{Cost, Manner, Proposal};
use crate::findings::Obstacle;
use crate::method::Method;
use crate::scene::Scene;
use crate::simulation::{Purpose, Simulated};

/// How many nodes may come in place of those that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replacements {
    /// One, or none.
    One,
    /// Several, where one does not do.
    SeveralIfNeeded,
    /// Several, where they are cheaper.
    Several,
}

/// Simulates the removal of some candidates and makes the cheapest sound proposal of it.
pub(crate) fn compute<'s>(
    scene: &Scene<'_>,
    removed: &[&'s Candidate],
    method: Method,
    replacements: Replacements,
) -> Result<Proposal<'s>, Obstacle> {
    let what_if = scene.what_if();
    let simulated = what_if.simulator.without(removed, Purpose::Consolidation);
    Move {
        scene,
        removed,
        method,
    }
    .cheapest(simulated, replacements)
}

/// As [`compute`], for each candidate alone.
pub(crate) fn compute_each<'s>(
    scene: &Scene<'_>,
    candidates: &[&'s Candidate],
    method: Method,
) -> Vec<Result<Proposal<'s>, Obstacle>> {
    let what_if = scene.what_if();
    let simulated = { what_if.simulator }.without_each(candidates, Purpose::Consolidation);
    candidates
        .chunks(1)
        .zip(simulated)
        .map(|(removed, simulated)| {
            let it = Move {
                scene,
                removed,
                method,
            };
            it.cheapest(simulated, Replacements::SeveralIfNeeded)
        })
        .collect()
}

/// Nodes that would go.
#[derive(Clone, Copy)]
pub(super) struct Move<'m, 's, 'a> {
    pub(super) scene: &'m Scene<'a>,
    pub(super) removed: &'m [&'s Candidate],
    pub(super) method: Method,
}

impl<'s> Move<'_, 's, '_> {
    fn cheapest(
        self,
        simulated: Simulated,
        replacements: Replacements,
    ) -> Result<Proposal<'s>, Obstacle> {
        sound(&simulated)?;
        let mut needed = Resources::new();
        for claim in &simulated.claims {
            needed.add_assign(&claim.requests);
        }
        let one = self.one(simulated);
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
            Err(_) => self.cost().effective_per_hour,
        };
        let may_be_several = one.as_ref().err().is_none_or(|it| {
            matches!(
                it.outcome,
                OutcomeId::NodeNeedsManyNodes | OutcomeId::NodeNoCheaperReplacement
            )
        });
        let most = several::most_after(to_beat);
        // Not worth a simulation where not even full nodes would cost so little.
        let lower_bound = self.scene.what_if().lower_bound.cost_per_hour(&needed);
        if !may_be_several || lower_bound > most {
            return one;
        }
        let several = several::compute(self).ok();
        several
            .filter(|it| it.after.effective_per_hour <= most)
            .map_or(one, Ok)
    }

    /// At most one node comes.
    fn one(self, simulated: Simulated) -> Result<Proposal<'s>, Obstacle> {
        let destinations = simulated.destinations();
        let mut claims = simulated.claims;
        if claims.len() > 1 {
            return Err(Obstacle::new(
                OutcomeId::NodeNeedsManyNodes,
                format!("{} new nodes would be needed", claims.len()),
            ));
        }
        if let Some(claim) = claims.first_mut() {
            cheaper::leave_cheaper_types(claim, self)?;
        }
        Ok(self.proposal(claims, destinations))
    }

    /// The proposal that these claims make of it.
    pub(super) fn proposal(
        self,
        replacements: Vec<NewClaim>,
        destinations: Vec<String>,
    ) -> Proposal<'s> {
        Proposal {
            manner: Manner::default(),
            method: self.method,
            candidates: self.removed.to_vec(),
            before: self.cost(),
            after: Cost::of_claims(&replacements),
            replacements,
            destinations,
        }
    }

    /// What goes.
    pub(super) fn cost(self) -> Cost {
        self.scene.what_if().cost_of(self.removed)
    }
}

/// Every pod that has a place today must have one afterwards.
pub(super) fn sound(simulated: &Simulated) -> Result<(), Obstacle> {
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
