//! Repair policies of a cloud provider: conditions of Nodes that are worth repairing, and what helps.
//!
//! Plain data that a provider tells and disruption compiles; nothing here judges a node. Answers to `RepairPolicy` of
//! Karpenter's `pkg/cloudprovider/types.go`.

use crate::GoDuration;

/// A node condition that a provider deems worth repairing after a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPolicy {
    /// Type of the Node's condition.
    pub condition_type: String,
    /// Status of the condition that is unhealthy.
    pub condition_status: String,
    /// Matches anywhere in the condition's reason. Exactly one policy has none: it is the fallback of all.
    pub reason_regex: String,
    /// How long the status must last.
    pub toleration: GoDuration,
    /// How long the drain may take: `None` as the claim says, zero by force.
    pub termination_grace_period: Option<GoDuration>,
    /// 0 to 100; greater first.
    pub priority: u32,
    /// Repair that helps.
    pub action: RepairAction,
}

/// Repair of a sick node, the mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairAction {
    /// It reboots in place.
    Reboot,
    /// Another one comes in its place.
    Replace,
}
