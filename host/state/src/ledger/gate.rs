//! The gates that a node passes in a scan of disruption, in the order in which they are asked. At which of them an
//! outcome leaves it stands in the outcome's row.
//!
//! Answers to the order of `disruption`'s methods: eligibility, pods, the policy's order, budgets, the move, its
//! guards, the verdict, the gain. Where two methods ask in another order, consolidation's stands.

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

    /// Condition that a node meets when it passes the gate.
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
}
