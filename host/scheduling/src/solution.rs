//! Answer of a solve: claims to make, pods for existing nodes, reasons for the rest.
//!
//! Values only. Answers to Karpenter's `scheduling.Results`.

use std::collections::BTreeMap;

use apis::NodeRef;

use crate::error::PodError;
use crate::pod::PodKey;
use crate::ranking::{PolicyUse, PremiumMax};

mod new_claim;
mod node_claim_template;
mod of_template;

pub use new_claim::{BestOffering, NewClaim, RunnerUp, TypeNames};
pub use of_template::admitted_by_template;

/// Answer of a solve.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Solution {
    /// Claims that are to be created.
    pub claims: Vec<NewClaim>,
    /// Pods by existing node, in the order in which nodes were tried; nodes without new pods are absent.
    pub existing: Vec<PodsOnNode>,
    /// Pods without a place.
    pub pod_errors: BTreeMap<PodKey, PodError>,
    /// Pools dropped before packing, with the reason in words.
    pub pool_errors: BTreeMap<String, String>,
    /// Policies that were asked, and how it went.
    pub uses: Vec<PolicyUse>,
    /// Notes of the ranking policy, by pool.
    pub notes: BTreeMap<String, String>,
    /// Whether an interrupt ended the solve early.
    pub is_interrupted: bool,
    /// Price of the ranking policy's plan beside the default's, where both were made.
    pub premium: Option<PlanPremium>,
}

/// Pods that go to a node that there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodsOnNode {
    pub node: NodeRef,
    pub pods: Vec<PodKey>,
}

/// Price of following a ranking policy in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanPremium {
    /// The policy's plan, USD an hour by list price.
    pub price_per_hour: f64,
    /// The plan of list prices under the same exclusions, USD an hour.
    pub list_plan_per_hour: f64,
    /// How much more the policy's may cost.
    pub bound: PremiumMax,
    /// It costs more, so that the other is used.
    pub is_refused: bool,
}

impl std::fmt::Display for PlanPremium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "its plan costs {:.4} USD an hour by list price, {:.4} without it, and {} more is the bound",
            self.price_per_hour, self.list_plan_per_hour, self.bound
        )
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
        let existing: usize = self.existing.iter().map(|it| it.pods.len()).sum();
        new + existing
    }
}
