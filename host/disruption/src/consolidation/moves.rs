//! The cheapest sound move that removes a set of nodes, found by simulation.
//!
//! Asks no policy, and knows of no circles; those come after. Every pod that has a place keeps one.

use apis::resources::Resources;
use state::ledger::OutcomeId;

use super::cheaper::OneNodeError;
use super::removal::Removal;
use super::savings::most_after;
use super::{cheaper, several};
use crate::candidate::Candidate;
use crate::command::Proposal;
use crate::method::ConsolidationMethod;
use crate::obstacle::Obstacle;
use crate::scene::PricedSimulator;
use crate::simulation::{Purpose, Simulated};

/// How many nodes may come in place of those that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replacements {
    /// One new node at most.
    One,
    /// Several, where one does not do.
    SeveralIfNeeded,
    /// Several, where they are cheaper.
    Several,
}

/// Simulates the removal of some candidates and makes the cheapest sound proposal of it.
pub(crate) fn compute<'s>(
    priced: PricedSimulator<'_, '_>,
    removed: &[&'s Candidate],
    method: ConsolidationMethod,
    replacements: Replacements,
) -> Result<Proposal<'s>, Obstacle> {
    let simulated = priced.simulator.without(removed, Purpose::Consolidation)?;
    Removal {
        priced,
        removed,
        method,
    }
    .cheapest(simulated, replacements)
}

/// As [`compute`], for each candidate alone.
pub(crate) fn compute_each<'s>(
    priced: PricedSimulator<'_, '_>,
    candidates: &[&'s Candidate],
    method: ConsolidationMethod,
) -> Vec<Result<Proposal<'s>, Obstacle>> {
    let simulator = priced.simulator;
    let simulated = simulator.without_each(candidates, Purpose::Consolidation);
    candidates
        .chunks(1)
        .zip(simulated)
        .map(|(removed, simulated)| {
            let removal = Removal {
                priced,
                removed,
                method,
            };
            removal.cheapest(simulated?, Replacements::SeveralIfNeeded)
        })
        .collect()
}

impl<'s> Removal<'_, 's, '_> {
    fn cheapest(
        self,
        simulated: Simulated,
        replacements: Replacements,
    ) -> Result<Proposal<'s>, Obstacle> {
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
        let to_beat = match &one {
            Ok(proposal) if proposal.replacements().is_empty() => None,
            Ok(proposal) => Some(proposal.after.effective_per_hour),
            Err(OneNodeError::SeveralMightDo(_)) => Some(self.cost().effective_per_hour),
            Err(OneNodeError::NoneWillDo(_)) => None,
        };
        let one = one.map_err(Obstacle::from);
        let Some(to_beat) = to_beat.filter(|_| !is_enough) else {
            return one;
        };
        let most = most_after(to_beat);
        // Not worth a simulation where not even full nodes would cost so little.
        let lower_bound = self.priced.lower_bound.cost_per_hour(&needed);
        if lower_bound > most {
            return one;
        }
        let several = several::compute(self).ok();
        several
            .filter(|it| it.after.effective_per_hour <= most)
            .map_or(one, Ok)
    }

    /// At most one node comes.
    fn one(self, simulated: Simulated) -> Result<Proposal<'s>, OneNodeError> {
        let destinations = simulated.destinations();
        let mut claims = simulated.claims;
        if claims.len() > 1 {
            let message = format!("{} new nodes would be needed", claims.len());
            let obstacle = Obstacle::new(OutcomeId::NodeNeedsManyNodes, message);
            return Err(OneNodeError::SeveralMightDo(obstacle));
        }
        if let Some(claim) = claims.first_mut() {
            cheaper::narrow_to_savings(claim, self)?;
        }
        Ok(self.proposal(claims, destinations))
    }
}
