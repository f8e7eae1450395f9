//! The AWS provider: EC2NodeClass resolution, offerings, pricing and launches through one seam.
//!
//! Everything above [`seam`] runs alike on AWS and on the simulator. No Kubernetes client, no clock source:
//! objects are handed in, and the time of day comes from the injected clock. Answers to the provider packages
//! of Karpenter's AWS repository.

mod ami;
mod ami_family;
mod batcher;
mod cache;
mod capacity_reservation;
mod cluster;
mod drift;
mod error;
#[cfg(test)]
mod fake;
mod hash;
mod instance;
mod instance_profile;
mod instance_status;
mod instance_type;
mod interruption;
mod interruption_history;
mod kubelet;
mod launch;
mod launch_template;
mod metrics;
mod node_class;
mod offering;
mod options;
mod pages;
mod permissions;
mod placement_group;
mod pricing;
mod provider;
mod repair;
mod security_group;
mod seed;
mod subnet;
mod tags;
#[cfg(test)]
mod tests;
mod unavailable_offerings;

pub mod account;
pub mod sdk;
pub mod seam;

pub use cluster::{DescribedCluster, describe_cluster};
pub use interruption::SqsInterruptionQueue;
pub use metrics::AwsMetrics;
pub use options::{AwsFeatureGates, AwsOptions};
pub use permissions::{MissingPermission, check_connectivity, missing_permissions};
pub use provider::{AwsApis, AwsProvider};
pub use repair::repair_policies;
pub use tags::launch_tags;
