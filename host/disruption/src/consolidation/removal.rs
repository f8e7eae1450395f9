//! Nodes that would go, and what they cost.
//!
//! Chooses nothing that comes in their place.

use apis::NodeRef;
use scheduling::solution::NewClaim;

use crate::candidate::Candidate;
use crate::command::{Cost, Execution, Proposal};
use crate::method::ConsolidationMethod;
use crate::scene::PricedSimulator;

/// Nodes that would go.
#[derive(Clone, Copy)]
pub(super) struct Removal<'m, 's, 'a> {
    pub(super) priced: PricedSimulator<'m, 'a>,
    pub(super) removed: &'m [&'s Candidate],
    pub(super) method: ConsolidationMethod,
}

impl<'s> Removal<'_, 's, '_> {
    /// The proposal that these claims make of it.
    pub(super) fn proposal(
        self,
        replacements: Vec<NewClaim>,
        destinations: Vec<NodeRef>,
    ) -> Proposal<'s> {
        Proposal {
            method: self.method.into(),
            candidates: self.removed.to_vec(),
            before: self.cost(),
            after: Cost::of_claims(&replacements),
            execution: Execution::ReplaceFirst(replacements),
            destinations,
        }
    }

    /// Cost of the nodes that go.
    pub(super) fn cost(self) -> Cost {
        self.priced.cost_of(self.removed)
    }
}
