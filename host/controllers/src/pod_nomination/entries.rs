//! Journal entries about plans: that pods were nominated, and where one went that was planned elsewhere.
//!
//! Metrics and the ledger alone hear of them. Karpenter, which leaves placement to chance, has nothing like it.

use jiff::Timestamp;
use scheduling::pod::PodKey;
use state::ledger::{OutcomeId, PlacementRecord, Record};

use crate::shell::journal::JournalEntry;
use crate::shell::metrics::Metrics;

/// End of a plan for a pod.
pub(super) enum PlanEntry<'a> {
    /// So many pods were nominated to the nodes planned for them.
    Nominated(u64),
    /// The scheduler bound a pod to another node than the one planned for it.
    PodElsewhere {
        pod: &'a PodKey,
        node: &'a str,
        planned: String,
    },
}

impl JournalEntry for PlanEntry<'_> {
    type Subject = ();

    fn measure(&self, (): &(), metrics: &Metrics) {
        match self {
            Self::Nominated(pods) => {
                metrics.pods_nominated.inc_by(*pods);
            }
            Self::PodElsewhere { .. } => {}
        }
    }

    fn record(&self, (): &(), at: Timestamp) -> Option<Record> {
        let Self::PodElsewhere { pod, node, planned } = self else {
            return None;
        };
        Some(Record::Placement(PlacementRecord {
            at,
            pod: pod.to_string(),
            outcome: OutcomeId::PodOffPlan,
            planned: planned.clone(),
            node: (*node).to_owned(),
        }))
    }
}
