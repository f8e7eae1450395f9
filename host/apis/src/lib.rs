//! Karpenter's API types: NodePool, NodeClaim, EC2NodeClass, NodeOverlay, CapacityBuffer; labels, conditions,
//! validation, hashes, quantities.
//!
//! The vocabulary of all other crates. No client, no clock, no I/O. Answers to Karpenter's `pkg/apis` and the AWS
//! provider's `pkg/apis`.

pub mod capacitybuffer;
pub mod conditions;
pub mod crd;
pub mod duration;
pub mod ec2nodeclass;
pub mod hash;
pub mod labels;
pub mod nodeclaim;
pub mod nodeoverlay;
pub mod nodepool;
pub mod quantity;
pub mod requirement;
pub mod resources;
mod schema;
pub mod validation;

pub use capacitybuffer::{CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus};
pub use duration::{GoDuration, NillableDuration};
pub use ec2nodeclass::{AmiFamily, Ec2NodeClass, Ec2NodeClassSpec, Ec2NodeClassStatus};
pub use nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus, ResourceRequirements};
pub use nodeoverlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus};
pub use nodepool::{
    Budget, BudgetNodes, ConsolidationPolicy, Disruption, DisruptionReason, NodeClaimTemplate,
    NodeClaimTemplateMetadata, NodeClaimTemplateSpec, NodePool, NodePoolSpec, NodePoolStatus,
};
pub use requirement::{
    NodeClassReference, NodeSelectorRequirement, NodeSelectorRequirementWithMinValues, Operator,
};

#[cfg(test)]
mod tests;
