//! The pod that keeps its node from being disrupted: do-not-disrupt, or a PodDisruptionBudget that has nothing left.
//!
//! What counts as do-not-disrupt is [`Pod::is_protected`]'s; what it stops is for the methods to say.

use jiff::Timestamp;
use scheduling::pod::Pod;
use state::Snapshot;
use state::ledger::OutcomeId;
use state::pod::PodLife;
use state::pod_disruption_budget::PdbVerdict;

/// A pod that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodBlock {
    /// Which rule.
    pub outcome: OutcomeId,
    /// The pod, or the PodDisruptionBudgets that hold it.
    pub about: String,
    /// For events.
    pub message: String,
}

/// What about a pod blocks the graceful disruption of its node.
pub(super) fn pod_block(snapshot: &Snapshot, pod: &Pod, now: Timestamp) -> Option<PodBlock> {
    if pod.is_active() && pod.is_protected(now) {
        return Some(PodBlock {
            outcome: OutcomeId::NodePodDoNotDisrupt,
            about: pod.key.to_string(),
            message: format!(
                "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod={})",
                pod.key
            ),
        });
    }
    if !pod.is_evictable(now) {
        return None;
    }
    match snapshot.pdbs().verdict(pod) {
        PdbVerdict::Free => None,
        PdbVerdict::Many(names) => Some(PodBlock {
            outcome: OutcomeId::NodePodManyPdbs,
            message: format!(
                "Eviction does not support multiple PDBs (PodDisruptionBudget=[{}])",
                names.join(" ")
            ),
            about: names.join(" "),
        }),
        PdbVerdict::Blocked(name) => Some(PodBlock {
            outcome: OutcomeId::NodePodPdbBlocked,
            message: format!("PDB prevents pod evictions (PodDisruptionBudget=[{name}])"),
            about: name,
        }),
    }
}
