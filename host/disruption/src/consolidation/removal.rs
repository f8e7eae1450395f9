//! Nodes that would go, what they cost, and whether their pods would be sound after it.
//!
//! Chooses nothing that comes in their place.

use scheduling::solution::NewClaim;
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::{Cost, Execution, Proposal};
use crate::method::Method;
use crate::obstacle::Obstacle;
use crate::scene::Scene;
use crate::simulation::Simulated;

/// Nodes that would go.
#[derive(Clone, Copy)]
pub(super) struct Removal<'m, 's, 'a> {
    pub(super) scene: &'m Scene<'a>,
    pub(super) removed: &'m [&'s Candidate],
    pub(super) method: Method,
}

impl<'s> Removal<'_, 's, '_> {
    /// The proposal that these claims make of it.
    pub(super) fn proposal(
        self,
        replacements: Vec<NewClaim>,
        destinations: Vec<String>,
    ) -> Proposal<'s> {
        Proposal {
            execution: Execution::default(),
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
