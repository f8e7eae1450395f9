//! Names that Kubernetes and its drivers gave and that several crates go by.
//!
//! Names are wire format: they must never change.

/// The scheduler of pods that name none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// The CSI driver of EBS volumes.
pub const EBS_DRIVER: &str = "ebs.csi.aws.com";
