//! The pod that keeps its node from being disrupted: do-not-disrupt, or a PodDisruptionBudget that has nothing left.
//!
//! What counts as do-not-disrupt is [`Pod::is_protected`]'s; what it stops is for the methods to say.

use jiff::Timestamp;
use scheduling::pod::Pod;
use state::Snapshot;
use state::ledger::OutcomeId;
use state::pod_disruption_budget::PdbVerdict;

use crate::obstacle::Obstacle;

/// Obstacle that a pod is to the graceful disruption of its node, if it is one.
pub(super) fn pod_block(snapshot: &Snapshot, pod: &Pod, now: Timestamp) -> Option<Obstacle> {
    if pod.is_active() && pod.is_protected(now) {
        let key = pod.key.to_string();
        let message = format!("Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod={key})");
        return Some(Obstacle::new(OutcomeId::NodePodDoNotDisrupt, message).about(key));
    }
    if !pod.is_evictable(now) {
        return None;
    }
    match snapshot.pdbs().verdict(pod) {
        PdbVerdict::Free => None,
        PdbVerdict::Many(names) => {
            let names = names.join(" ");
            let message =
                format!("Eviction does not support multiple PDBs (PodDisruptionBudget=[{names}])");
            Some(Obstacle::new(OutcomeId::NodePodManyPdbs, message).about(names))
        }
        PdbVerdict::Blocked(name) => {
            let message = format!("PDB prevents pod evictions (PodDisruptionBudget=[{name}])");
            Some(Obstacle::new(OutcomeId::NodePodPdbBlocked, message).about(name))
        }
    }
}
