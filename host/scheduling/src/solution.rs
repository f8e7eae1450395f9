//! What a solve answers: claims to make, pods for existing nodes, reasons for the rest.
//!
//! Values only. Answers to Karpenter's `scheduling.Results`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use apis::resources::Resources;

use crate::error::PodError;
use crate::pod::PodKey;
use crate::ranking::PolicyUse;
use crate::requirements::Requirements;

mod bare;
mod node_claim_template;

pub use bare::admitted_by_template;

/// The answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Solution {
    /// Claims to make.
    pub claims: Vec<NewClaim>,
    /// Pods by existing node, in the order in which nodes were tried; nodes without new pods are absent.
    pub existing: Vec<(String, Vec<PodKey>)>,
    /// Pods without a place.
    pub pod_errors: BTreeMap<PodKey, PodError>,
    /// Pools dropped before packing, with the reason in words.
    pub pool_errors: BTreeMap<String, String>,
    /// Policies asked.
    pub uses: Vec<PolicyUse>,
    /// What the policy noted for each pool.
    pub notes: BTreeMap<String, String>,
    /// Whether an interrupt ended the solve early.
    pub is_interrupted: bool,
}

/// A claim to make.
#[derive(Debug, Clone, PartialEq)]
pub struct NewClaim {
    /// Name of the pool.
    pub pool: String,
    /// Final requirements, without instance types; zone, capacity type and others as far as they are narrowed.
    pub requirements: Requirements,
    /// Names of the types it may become, best first by effective cost.
    pub instance_types: TypeNames,
    /// Capacity types of the offerings of those types.
    pub capacity_types: BTreeSet<String>,
    /// Requests of pods and daemons.
    pub requests: Resources,
    /// The pods.
    pub pods: Vec<PodKey>,
    /// The best offering.
    pub best: BestOffering,
    /// Whether `minValues` was lowered.
    pub are_min_values_relaxed: bool,
}

/// The offering that a claim is expected to become.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BestOffering {
    /// Type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Capacity type.
    pub capacity_type: String,
    /// Price.
    pub price_per_hour: f64,
    /// What the policy says it costs.
    pub effective_cost_per_hour: f64,
    /// The next best of another type, when there is one: how close the choice was.
    pub runner_up: Option<(String, f64)>,
}

/// Names of instance types, shared by the claims that may become the same ones until someone changes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeNames(Arc<Vec<String>>);

impl Deref for TypeNames {
    type Target = Vec<String>;

    fn deref(&self) -> &Vec<String> {
        &self.0
    }
}

impl DerefMut for TypeNames {
    fn deref_mut(&mut self) -> &mut Vec<String> {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Vec<String>> for TypeNames {
    fn from(names: Vec<String>) -> Self {
        Self(Arc::new(names))
    }
}

impl FromIterator<String> for TypeNames {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(Arc::new(names.into_iter().collect()))
    }
}

impl<'a> IntoIterator for &'a TypeNames {
    type Item = &'a String;
    type IntoIter = std::slice::Iter<'a, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<const N: usize> PartialEq<[&str; N]> for TypeNames {
    fn eq(&self, other: &[&str; N]) -> bool {
        *self.0 == *other
    }
}

impl Solution {
    /// Price an hour of all new claims.
    pub fn price_per_hour(&self) -> f64 {
        self.claims.iter().map(|c| c.best.price_per_hour).sum()
    }

    /// Number of pods placed.
    pub fn placed(&self) -> usize {
        let new: usize = self.claims.iter().map(|c| c.pods.len()).sum();
        let existing: usize = self.existing.iter().map(|(_, pods)| pods.len()).sum();
        new + existing
    }
}
