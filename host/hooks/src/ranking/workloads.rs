//! Pods by their owner, as policies see them. Mirrors the record `workloads` of the policy package.

use serde::{Deserialize, Serialize};

/// In [`WorkloadTable::of`]: of pods that wait for every claim, before packing.
pub const EVERY_CLAIM: u32 = u32::MAX;

/// Pods by owner; columns have equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTable {
    /// Position of the claim or node, or [`EVERY_CLAIM`].
    pub of: Vec<u32>,
    /// Symbol of the namespace.
    pub namespace: Vec<u32>,
    /// Symbol of the owner's kind.
    pub owner_kind: Vec<u32>,
    /// Symbol of the owner's name.
    pub owner_name: Vec<u32>,
    /// Symbol of the priority class.
    pub priority_class: Vec<u32>,
    /// Highest priority among the pods.
    pub priority: Vec<i32>,
    /// Labels of the first pod, as pairs of symbols; the host hands on those that the binding asks for.
    pub labels: Vec<Vec<(u32, u32)>>,
    /// Pods of the owner there.
    pub pods: Vec<u32>,
    /// Those of them that carry do-not-disrupt.
    pub do_not_disrupt: Vec<u32>,
    /// Sum of the CPU requests of these pods, milli-CPU.
    pub cpu_milli: Vec<u32>,
    /// Sum of the memory requests of these pods, MiB.
    pub memory_mib: Vec<u32>,
    /// Sum of the accelerators that these pods request.
    pub gpus: Vec<u32>,
    /// Pods of the owner in the whole cluster.
    pub replicas: Vec<u32>,
    /// How many of them PodDisruptionBudgets let go now.
    pub disruptions_allowed: Vec<u32>,
    /// Seconds that the longest waiting of them has been without a node; 0 when none waits.
    pub oldest_wait: Vec<u32>,
}

impl WorkloadTable {
    /// Number of rows, one per owner and claim or node.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}
