//! Knowledge that one disruption loop leaves to the next, which need not look again at what stayed as it was.
//!
//! A process that starts has none of it: it may spare work and put moves off, and must never be what makes a move safe.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use state::ConsolidationState;

use crate::appraisal::EffectiveCosts;
use crate::budgets::pools::Targets;
use crate::method::Method;
use crate::obstacle::Obstacle;
use crate::preferred::Preferred;

/// Knowledge that one loop leaves to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// When a method found nothing, so that it need not look again.
    pub nothing_found: BTreeMap<Method, NothingFound>,
    /// What kept each claim's node when it was last looked at, said again while nothing changes.
    pub kept: BTreeMap<String, Obstacle>,
    /// Claims that a policy holds back until then.
    pub holds: BTreeMap<String, Timestamp>,
    /// Effective costs that the ranking policy gave the nodes when it was last asked.
    pub costs: EffectiveCosts,
    /// Policies that judged, by name and digest: once others do, all that was held back or found nothing in is looked
    /// at again.
    pub judges: String,
    /// Moves that must pay first for the pods they disturb, as they cost more by list price or save little, by claim,
    /// and since when.
    pub preferred: Preferred,
    /// Definition that a new node of each pool would have, and since when.
    pub targets: Targets,
    /// Since when consolidation has met many nodes whose pods came or left just now.
    pub unsettled_since: Option<Timestamp>,
    /// Claims that the last single-node run did not reach: the next one starts with them.
    pub unseen: BTreeSet<String>,
}

/// A look of a method that came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct NothingFound {
    /// How the cluster was.
    pub state: ConsolidationState,
    /// The claims it was about. Any other claim, such as one whose PodDisruptionBudget opened since, is
    /// reason to look again.
    pub claims: BTreeSet<String>,
    /// Those of them whose replacements did not come lately: once that is over they may be moved in more ways.
    pub in_backoff: BTreeSet<String>,
    /// Those of them that the budgets left room for. As long as they leave room for no other, another look
    /// would find what this one found.
    pub tried: BTreeSet<String>,
}
