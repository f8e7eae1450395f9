//! A claim to make, as a solve answers it.
//!
//! Values only. Answers to what Karpenter's `scheduling.Results` says of a new NodeClaim.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::CapacityType;
use apis::resources::Resources;

use crate::pod::PodKey;
use crate::requirements::{Operator, Requirement, Requirements};

/// A claim that is to be created.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewClaim {
    /// Name of the pool.
    pub pool: String,
    /// Final requirements, without instance types; zone, capacity type and others as far as they are narrowed.
    pub requirements: Requirements,
    /// Names of the types it may become, best first by effective cost.
    pub instance_types: TypeNames,
    /// Capacity types of the offerings of those types.
    pub capacity_types: BTreeSet<CapacityType>,
    /// Requests of pods and daemons.
    pub requests: Resources,
    pub pods: Vec<PodKey>,
    /// Offering that the claim is expected to become.
    pub best: BestOffering,
    /// Whether `minValues` was lowered.
    pub are_min_values_relaxed: bool,
}

impl NewClaim {
    /// Leaves one value of a key; `minValues` of it is asked for as before.
    pub fn pin_to(&mut self, key: &str, value: &str) {
        let mut pinned = Requirement::new(key, Operator::In, [value]);
        pinned.min_values = self.requirements.get(key).min_values;
        self.requirements.replace(pinned);
    }
}

/// The offering that a claim is expected to become.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BestOffering {
    /// Name of the instance type.
    pub instance_type: String,
    pub zone: Option<String>,
    /// None where its word is one that nobody knows.
    pub capacity_type: Option<CapacityType>,
    /// List price, USD an hour.
    pub price_per_hour: f64,
    /// Cost as the ranking policy reckons, effective USD an hour.
    pub effective_cost_per_hour: f64,
    /// The next best of another type, when there is one: how close the choice was.
    pub runner_up: Option<RunnerUp>,
}

/// Offering of another type that was nearly chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerUp {
    /// Name of the instance type.
    pub instance_type: String,
    /// Cost as the ranking policy reckons, effective USD an hour.
    pub effective_cost_per_hour: f64,
}

/// Names of instance types in an order, as positions in a list that all claims of a pool share.
#[derive(Clone, Default)]
pub struct TypeNames {
    known: Arc<[String]>,
    picks: Arc<Vec<u32>>,
}

impl TypeNames {
    /// Some of the names, by position.
    pub(crate) fn new(known: &Arc<[String]>, picks: Vec<u32>) -> Self {
        Self {
            known: Arc::clone(known),
            picks: Arc::new(picks),
        }
    }

    /// The names in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.picks
            .iter()
            .map(|at| self.known[*at as usize].as_str())
    }

    /// The first name; `None` where there is none.
    pub fn first(&self) -> Option<&str> {
        self.iter().next()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.picks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.picks.is_empty()
    }

    /// Whether the name is among them.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|own| own == name)
    }

    /// Keeps the first so many.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            Arc::make_mut(&mut self.picks).truncate(len);
        }
    }

    /// Keeps those that the judge likes.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str) -> bool) {
        let known = &self.known;
        Arc::make_mut(&mut self.picks).retain(|at| is_kept(&known[*at as usize]));
    }
}

impl PartialEq for TypeNames {
    fn eq(&self, other: &Self) -> bool {
        let is_same_list = Arc::ptr_eq(&self.known, &other.known);
        (is_same_list && self.picks == other.picks)
            || (!is_same_list && self.iter().eq(other.iter()))
    }
}

impl Eq for TypeNames {}

impl std::fmt::Debug for TypeNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<String> for TypeNames {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        let known: Arc<[String]> = names.into_iter().collect();
        let picks = (0_u32..).zip(known.iter()).map(|(at, _)| at).collect();
        Self::new(&known, picks)
    }
}

impl<const N: usize> PartialEq<[&str; N]> for TypeNames {
    fn eq(&self, other: &[&str; N]) -> bool {
        self.iter().eq(other.iter().copied())
    }
}
