//! Karpenter's API types: NodePool, NodeClaim, EC2NodeClass, NodeOverlay, CapacityBuffer; labels, conditions,
//! validation, hashes, quantities.
//!
//! The vocabulary of all other crates. Without the feature `objects` it is that of names and texts alone, for who has
//! no business with objects of the API. No client, no clock, no I/O. Answers to Karpenter's `pkg/apis` and the AWS
//! provider's `pkg/apis`.

mod budget_nodes;
mod capacity_type;
#[cfg(feature = "objects")]
pub mod capacitybuffer;
#[cfg(feature = "objects")]
pub mod conditions;
#[cfg(feature = "objects")]
pub mod crd;
pub mod duration;
#[cfg(feature = "objects")]
pub mod ec2nodeclass;
pub mod flag_text;
pub mod fnv;
#[cfg(feature = "objects")]
pub mod hash;
pub mod labels;
pub mod manifest;
pub mod names;
mod node_ref;
#[cfg(feature = "objects")]
pub mod nodeclaim;
#[cfg(feature = "objects")]
pub mod nodeoverlay;
#[cfg(feature = "objects")]
pub mod nodepool;
mod object_key;
mod provider_id;
pub mod quantity;
mod repair;
#[cfg(feature = "objects")]
pub mod requirement;
#[cfg(feature = "objects")]
pub mod resources;
#[cfg(feature = "objects")]
mod schema;
pub mod selector;
#[cfg(feature = "objects")]
pub mod validation;

pub use budget_nodes::{BudgetError, BudgetNodes};
pub use capacity_type::CapacityType;
#[cfg(feature = "objects")]
pub use capacitybuffer::{CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus};
pub use duration::{GoDuration, NillableDuration};
#[cfg(feature = "objects")]
pub use ec2nodeclass::{AmiFamily, Ec2NodeClass, Ec2NodeClassSpec, Ec2NodeClassStatus};
pub use node_ref::NodeRef;
#[cfg(feature = "objects")]
pub use nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus, ResourceRequirements};
#[cfg(feature = "objects")]
pub use nodeoverlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus};
#[cfg(feature = "objects")]
pub use nodepool::{
    Budget, ConsolidationPolicy, Disruption, DisruptionReason, NodeClaimTemplate,
    NodeClaimTemplateMetadata, NodeClaimTemplateSpec, NodePool, NodePoolSpec, NodePoolStatus,
};
pub use object_key::ObjectKey;
pub use provider_id::{InstanceName, ProviderId};
pub use repair::{RepairAction, RepairPolicy};
#[cfg(feature = "objects")]
pub use requirement::{
    NodeClassReference, NodeSelectorRequirement, NodeSelectorRequirementWithMinValues, Operator,
};

#[cfg(test)]
#[cfg(feature = "objects")]
mod tests;
