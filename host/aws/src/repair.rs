//! When a node on EC2 counts as sick.
//!
//! A table: no node is looked at here. Answers to `RepairPolicies` in `pkg/cloudprovider/cloudprovider.go` of the AWS
//! provider.

use apis::{GoDuration, RepairAction, RepairPolicy};

/// Repair policies: which conditions make a node sick, for how long, and what is done about it.
pub fn repair_policies() -> Vec<RepairPolicy> {
    let minutes = |condition_type: &str, status: &str, minutes: i64| RepairPolicy {
        condition_type: condition_type.to_owned(),
        condition_status: status.to_owned(),
        reason_regex: ".*".to_owned(),
        toleration: GoDuration::from_seconds(minutes * 60),
        // A node that is this sick for this long drains nothing.
        termination_grace_period: Some(GoDuration::from_seconds(0)),
        priority: 0,
        action: RepairAction::Replace,
    };
    vec![
        RepairPolicy {
            reason_regex: String::new(),
            ..minutes("Ready", "False", 30)
        },
        minutes("Ready", "Unknown", 30),
        minutes("AcceleratedHardwareReady", "False", 10),
        minutes("StorageReady", "False", 30),
        minutes("NetworkingReady", "False", 30),
        minutes("KernelReady", "False", 30),
        minutes("ContainerRuntimeReady", "False", 30),
    ]
}
