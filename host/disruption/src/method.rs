//! The disruption methods, in the order in which they are tried.
//!
//! A closed set: what a method does is in the file of its name. Answers to Karpenter's
//! `disruption/controller.go` (`NewMethods`).

use apis::nodepool::DisruptionReason;

use crate::hooks::BudgetReason;

/// A way to find nodes to take away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Nodes that hold nothing worth moving.
    Emptiness,
    /// Nodes that no longer match their definition.
    Drift,
    /// Several nodes at once, for nothing or for fewer or cheaper ones.
    MultiNodeConsolidation,
    /// One node, for nothing or for cheaper ones.
    SingleNodeConsolidation,
}

/// Whether pods that block disruption exclude their node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisruptionClass {
    /// They do.
    Graceful,
    /// They do not, if the claim bounds its drain.
    Eventual,
}

impl Method {
    /// Every method, in order; the first that finds something ends the loop.
    pub const ORDER: [Self; 4] = [
        Self::Emptiness,
        Self::Drift,
        Self::MultiNodeConsolidation,
        Self::SingleNodeConsolidation,
    ];

    /// The reason written on nodes, budgets and metrics.
    pub fn reason(self) -> DisruptionReason {
        match self {
            Self::Emptiness => DisruptionReason::Empty,
            Self::Drift => DisruptionReason::Drifted,
            Self::MultiNodeConsolidation | Self::SingleNodeConsolidation => {
                DisruptionReason::Underutilized
            }
        }
    }

    /// The budget it draws on.
    pub fn budget_reason(self) -> BudgetReason {
        match self {
            Self::Emptiness => BudgetReason::Empty,
            Self::Drift => BudgetReason::Drifted,
            Self::MultiNodeConsolidation | Self::SingleNodeConsolidation => {
                BudgetReason::Underutilized
            }
        }
    }

    /// Whether pods that block disruption exclude their node.
    pub fn class(self) -> DisruptionClass {
        match self {
            Self::Drift => DisruptionClass::Eventual,
            Self::Emptiness | Self::MultiNodeConsolidation | Self::SingleNodeConsolidation => {
                DisruptionClass::Graceful
            }
        }
    }

    /// Whether it acts to save cost.
    pub fn is_consolidation(self) -> bool {
        match self {
            Self::MultiNodeConsolidation | Self::SingleNodeConsolidation => true,
            Self::Emptiness | Self::Drift => false,
        }
    }

    /// Value of the metrics label `consolidation_type`.
    pub fn consolidation_type(self) -> &'static str {
        match self {
            Self::Emptiness => "empty",
            Self::Drift => "",
            Self::MultiNodeConsolidation => "multi",
            Self::SingleNodeConsolidation => "single",
        }
    }

    /// Whether its commands wait and are checked again before they start.
    pub fn needs_validation(self) -> bool {
        match self {
            Self::Emptiness | Self::MultiNodeConsolidation | Self::SingleNodeConsolidation => true,
            Self::Drift => false,
        }
    }
}
