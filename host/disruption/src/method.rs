//! The disruption methods, in the order in which they are tried.
//!
//! A closed set: what a method does is in the file of its name. Answers to Karpenter's
//! `disruption/controller.go` (`NewMethods`).

use apis::nodepool::DisruptionReason;
use hooks::disruption::BudgetReason;
use state::ledger::OutcomeId;

/// A way to find nodes to take away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Nodes that are sick by what their conditions say.
    Repair,
    /// Nodes that hold nothing worth moving.
    Emptiness,
    /// Nodes of pools with replicas that no longer match their definition.
    StaticDrift,
    /// Nodes that no longer match their definition.
    Drift,
    /// Nodes some time before they expire, where a policy asks for it.
    Expiry,
    /// Several nodes at once, for nothing or for fewer or cheaper ones.
    MultiNodeConsolidation,
    /// One node, for nothing or for cheaper ones.
    SingleNodeConsolidation,
}

/// A method that acts to save cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsolidationMethod {
    /// Several nodes at once.
    Multi,
    /// One node.
    Single,
}

/// A method whose commands wait and are checked again before they start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValidatedMethod {
    /// Nodes that hold nothing worth moving.
    Emptiness,
    /// Of several nodes or of one.
    Consolidation,
}

/// Whether pods that block disruption exclude their node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisruptionClass {
    /// Such pods exclude their node.
    Graceful,
    /// Such pods exclude their node unless the claim bounds its drain.
    Eventual,
    /// Such pods exclude their node unless the claim or the policy that found the node sick bounds its drain.
    Repair,
}

impl From<ConsolidationMethod> for Method {
    fn from(method: ConsolidationMethod) -> Self {
        match method {
            ConsolidationMethod::Multi => Self::MultiNodeConsolidation,
            ConsolidationMethod::Single => Self::SingleNodeConsolidation,
        }
    }
}

impl Method {
    /// Every method, in order; the first that finds something ends the loop.
    pub const ORDER: [Self; 7] = [
        Self::Repair,
        Self::Emptiness,
        Self::StaticDrift,
        Self::Drift,
        Self::Expiry,
        Self::MultiNodeConsolidation,
        Self::SingleNodeConsolidation,
    ];

    /// The reason written on nodes, budgets and metrics.
    pub fn reason(self) -> DisruptionReason {
        match self {
            Self::Repair => DisruptionReason::Unhealthy,
            Self::Emptiness => DisruptionReason::Empty,
            Self::StaticDrift | Self::Drift | Self::Expiry => DisruptionReason::Drifted,
            Self::MultiNodeConsolidation | Self::SingleNodeConsolidation => {
                DisruptionReason::Underutilized
            }
        }
    }

    /// The budget it draws on.
    pub fn budget_reason(self) -> BudgetReason {
        match self.reason() {
            DisruptionReason::Unhealthy => BudgetReason::Unhealthy,
            DisruptionReason::Empty => BudgetReason::Empty,
            DisruptionReason::Drifted => BudgetReason::Drifted,
            DisruptionReason::Underutilized => BudgetReason::Underutilized,
        }
    }

    /// Outcome of a node that the method chose.
    pub(crate) fn chosen(self) -> OutcomeId {
        match self {
            Self::Repair => OutcomeId::NodeChosenUnhealthy,
            Self::Emptiness => OutcomeId::NodeChosenEmpty,
            Self::StaticDrift | Self::Drift => OutcomeId::NodeChosenDrifted,
            Self::Expiry => OutcomeId::NodeChosenExpiring,
            Self::MultiNodeConsolidation => OutcomeId::NodeChosenMulti,
            Self::SingleNodeConsolidation => OutcomeId::NodeChosenSingle,
        }
    }

    /// Whether pods that block disruption exclude their node.
    pub fn class(self) -> DisruptionClass {
        match self {
            Self::Repair => DisruptionClass::Repair,
            Self::StaticDrift | Self::Drift => DisruptionClass::Eventual,
            Self::Emptiness
            | Self::Expiry
            | Self::MultiNodeConsolidation
            | Self::SingleNodeConsolidation => DisruptionClass::Graceful,
        }
    }

    /// Whether it acts to save cost.
    pub fn is_consolidation(self) -> bool {
        match self {
            Self::MultiNodeConsolidation | Self::SingleNodeConsolidation => true,
            Self::Repair | Self::Emptiness | Self::StaticDrift | Self::Drift | Self::Expiry => {
                false
            }
        }
    }

    /// Value of the metrics label `consolidation_type`.
    pub fn consolidation_type(self) -> &'static str {
        match self {
            Self::Emptiness => "empty",
            Self::Repair | Self::StaticDrift | Self::Drift | Self::Expiry => "",
            Self::MultiNodeConsolidation => "multi",
            Self::SingleNodeConsolidation => "single",
        }
    }

    /// Whether its commands wait and are checked again before they start.
    pub fn needs_validation(self) -> bool {
        self.validated().is_some()
    }

    /// How its commands are checked again; none where they start at once.
    pub(crate) fn validated(self) -> Option<ValidatedMethod> {
        match self {
            Self::Emptiness => Some(ValidatedMethod::Emptiness),
            Self::MultiNodeConsolidation | Self::SingleNodeConsolidation => {
                Some(ValidatedMethod::Consolidation)
            }
            Self::Repair | Self::StaticDrift | Self::Drift | Self::Expiry => None,
        }
    }
}
