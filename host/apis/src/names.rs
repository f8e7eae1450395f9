//! Names that Kubernetes and its drivers gave and that several crates go by.

/// The scheduler of pods that name none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// The CSI driver of EBS volumes.
pub const EBS_DRIVER: &str = "ebs.csi.aws.com";
