//! The gates that a node passes in a scan of disruption, in the order in which they are asked, and at which of them
//! each outcome leaves it.
//!
//! Answers to the order of `disruption`'s methods: eligibility, pods, the policy's order, budgets, the move, its
//! guards, the verdict, the gain. Where two methods ask in another order, consolidation's stands.

use crate::ledger::outcome::OutcomeId;

/// A stage of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeGate {
    Managed,
    NoCommand,
    Ready,
    Undisturbed,
    Pool,
    Eligible,
    Pods,
    Turn,
    Order,
    PoolAsAWhole,
    Budgets,
    Place,
    Guards,
    Verdict,
    Gain,
}

impl NodeGate {
    /// In the order in which a scan asks.
    pub(super) const ALL: [Self; 15] = [
        Self::Managed,
        Self::NoCommand,
        Self::Ready,
        Self::Undisturbed,
        Self::Pool,
        Self::Eligible,
        Self::Pods,
        Self::Turn,
        Self::Order,
        Self::PoolAsAWhole,
        Self::Budgets,
        Self::Place,
        Self::Guards,
        Self::Verdict,
        Self::Gain,
    ];

    /// What it asks.
    pub(super) fn question(self) -> &'static str {
        match self {
            Self::Managed => "is a node of ours",
            Self::NoCommand => "is in no command already",
            Self::Ready => "is ready, and neither going nor rebooting",
            Self::Undisturbed => "is not about to take pods, and carries no do-not-disrupt",
            Self::Pool => "belongs to a NodePool with known types",
            Self::Eligible => "is eligible: empty, drifted, sick, or consolidatable",
            Self::Pods => "has no pod that must stay",
            Self::Turn => "is not behind another command",
            Self::Order => "is not skipped by the policy",
            Self::PoolAsAWhole => "its NodePool is neither sick as a whole nor above its replicas",
            Self::Budgets => "is within the budgets",
            Self::Place => "its pods find a better place",
            Self::Guards => "the move undoes no other, and a preference pays for itself",
            Self::Verdict => "the policy approves of the move",
            Self::Gain => "saves enough, and did so when it was looked at again",
        }
    }

    /// Where the outcome leaves a node; nowhere if the node goes, or if it is no outcome of a scan.
    #[expect(clippy::too_many_lines, reason = "a flat table: an outcome a line")]
    pub(super) fn of(outcome: OutcomeId) -> Option<Self> {
        use OutcomeId as Id;
        let gate = match outcome {
            Id::NodeNotManaged => Self::Managed,
            Id::NodeInQueue => Self::NoCommand,
            Id::NodeMissing
            | Id::NodeNotInitialized
            | Id::NodeMarkedForDeletion
            | Id::NodeRebooting => Self::Ready,
            Id::NodeNominated | Id::NodeDoNotDisrupt => Self::Undisturbed,
            Id::NodeWithoutNodePool | Id::NodePoolNotFound | Id::NodePoolWithoutTypes => Self::Pool,
            Id::NodeDoNotRepair
            | Id::NodeStaticPool
            | Id::NodeConsolidationNever
            | Id::NodeNotConsolidatable
            | Id::NodePolicyWhenEmpty
            | Id::NodeTypeUnknown
            | Id::NodeWithoutCapacityType
            | Id::NodeWithoutZone
            | Id::NodeHoldsBuffer
            | Id::NodeWithoutReason => Self::Eligible,
            Id::NodePodDoNotDisrupt
            | Id::NodePodManyPdbs
            | Id::NodePodPdbBlocked
            | Id::NodeRepairUnbounded => Self::Pods,
            Id::NodeOutranked => Self::Turn,
            Id::NodePolicySkipped => Self::Order,
            Id::NodeRepairBreaker | Id::NodeStaticSurplus => Self::PoolAsAWhole,
            Id::NodeBudgetExhausted => Self::Budgets,
            Id::NodeStaticAtLimit
            | Id::NodeReservationsFull
            | Id::NodePodsDoNotFit
            | Id::NodeNeedsManyNodes
            | Id::NodeNoCheaperReplacement
            | Id::NodeSpotToSpotDisabled
            | Id::NodeSpotToSpotFewTypes
            | Id::NodeMinValues
            | Id::NodeUninitializedDestination
            | Id::NodeNotReached
            | Id::NodeReplacementFailed => Self::Place,
            Id::NodePreferenceTooYoung | Id::NodePremiumExceeded | Id::NodeLoopGuard => {
                Self::Guards
            }
            Id::NodePolicyRejected | Id::NodePolicyHeld => Self::Verdict,
            Id::NodeGainTooSmall
            | Id::NodeInvalidatedChurn
            | Id::NodeInvalidatedBudget
            | Id::NodeInvalidatedScheduling => Self::Gain,
            Id::PodOnExistingNode
            | Id::PodOnNewClaim
            | Id::PodUnschedulable
            | Id::PodIgnored
            | Id::PodDeferred
            | Id::PodNoNodePools
            | Id::PodNotReached
            | Id::PodOffPlan
            | Id::PoolUsed
            | Id::PoolNotReady
            | Id::PoolNoInstanceTypes
            | Id::PoolLimitReached
            | Id::PoolStatic
            | Id::PoolPremiumExceeded
            | Id::ClaimCreated
            | Id::ClaimCreateFailed
            | Id::ClaimLimitExceeded
            | Id::ClaimLaunched
            | Id::ClaimInsufficientCapacity
            | Id::ClaimNodeClassNotReady
            | Id::ClaimLaunchFailed
            | Id::ClaimRegistered
            | Id::ClaimInitialized
            | Id::ClaimLaunchTimeout
            | Id::ClaimRegistrationTimeout
            | Id::ClaimGarbageCollected
            | Id::ClaimExpired
            | Id::InstanceGarbageCollected
            | Id::ClaimSurplus
            | Id::ClaimInterrupted
            | Id::ClaimRepaired
            | Id::ClaimRebooted
            | Id::ClaimRebootFailed
            | Id::NodeChosenEmpty
            | Id::NodeChosenDrifted
            | Id::NodeChosenMulti
            | Id::NodeChosenSingle
            | Id::NodeChosenUnhealthy
            | Id::NodeChosenReboot
            | Id::NodeChosenExpiring
            | Id::CommandStarted
            | Id::CommandWaiting
            | Id::CommandSucceeded
            | Id::CommandFailed
            | Id::CommandRejected
            | Id::TerminationStarted
            | Id::TerminationDrained
            | Id::TerminationVolumesDetached
            | Id::TerminationGracePeriodElapsed
            | Id::TerminationFinished
            | Id::PodEvicted
            | Id::PodEvictionBlocked
            | Id::PodForceDeleted => return None,
        };
        Some(gate)
    }
}
