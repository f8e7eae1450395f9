//! The cluster model. [`Cluster::apply`] is its only mutation.
//!
//! Collections are shared with snapshots and copied only when written while a snapshot lives. Answers to
//! Karpenter's `pkg/controllers/state/cluster.go`.

mod capacity_buffers;
pub(crate) mod change;
mod daemon_sets;
mod devices;
mod event;
pub(crate) mod model;
mod namespaces;
mod node_claims;
mod node_index;
mod nodes;
mod pod_disruption_budgets;
mod pods;
mod pools;
mod recent_claims;
mod seen_node;
mod sync_gate;
mod volumes;
pub(crate) mod watched;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeClaim;
use jiff::Timestamp;
use scheduling::pod::{PodKey, ShapeTable};

use crate::snapshot::Snapshot;
use model::Data;
use recent_claims::RecentClaims;

pub use change::{Change, Changes, NodeSight, Refused, StateError, Versions};
pub use event::{Event, ObjectEvent};
pub use model::ConsolidationState;
pub use sync_gate::SyncGate;
pub use watched::Watched;

/// The model of one cluster.
#[derive(Debug, Default)]
pub struct Cluster {
    pub(crate) data: Data,
    pub(crate) shapes: ShapeTable,
    /// Live pods of each DaemonSet's UID, newest last.
    daemon_pods: BTreeMap<String, BTreeSet<(Option<Timestamp>, PodKey)>>,
    recent_claims: RecentClaims,
    applied: u64,
}

impl Cluster {
    /// An empty model.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one fact, and tells what it changed. `now` is when it was learned.
    pub fn apply(&mut self, now: Timestamp, event: Event) -> Result<Changes, Refused> {
        self.applied += 1;
        // Shapes of long gone pods go now and then, not with each pod.
        if self.applied.is_multiple_of(65_536) {
            self.shapes.shrink();
        }
        match event {
            Event::Object(ObjectEvent(said)) => return said.apply(self, now),
            Event::Nominated { name, until } => self.nominated(&name, until),
            Event::Placed { name, pods } => self.placed(&name, pods),
            Event::PodMoved { pod, node } => self.pod_moved(now, &pod, node),
            Event::MarkedForDeletion(names) => self.marked(now, &names, true),
            Event::UnmarkedForDeletion(names) => self.marked(now, &names, false),
            Event::OfferingsChanged => self.bump(now),
        }
        // Whoever sets a mark knows whom to wake.
        Ok(Changes::new())
    }

    /// Notes a change of what consolidation depends on; nothing else does.
    pub(crate) fn bump(&mut self, now: Timestamp) {
        let state = &mut self.data.consolidation_state;
        state.sequence += 1;
        state.changed_at = now;
    }

    /// A claim, whole, if it changed lately.
    pub fn recent_claim(&self, name: &str) -> Option<Arc<NodeClaim>> {
        self.recent_claims.get(name)
    }

    /// Forgets the copy of a claim: a write showed that it is old.
    pub fn forget_recent_claim(&mut self, name: &str) {
        self.recent_claims.forget(name);
    }

    /// Forgets the copies of claims that were there at the last call already: their claims are at rest.
    pub fn forget_claims_at_rest(&mut self) {
        self.recent_claims.rest();
    }

    /// The model as it is now; later changes do not show in it.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.data.clone())
    }

    /// Distinct pod shapes, for a gauge.
    pub fn shapes(&self) -> usize {
        self.shapes.len()
    }
}

impl Snapshot {
    /// What would be if some nodes were marked for deletion and pods were expected on others until then; by the names
    /// of Nodes or NodeClaims. The cluster learns nothing of it.
    #[must_use]
    pub fn supposing(
        &self,
        now: Timestamp,
        leaving: Vec<String>,
        expecting: Vec<String>,
        until: Timestamp,
    ) -> Self {
        let mut model = Cluster {
            data: self.data.clone(),
            ..Cluster::default()
        };
        let nominated = |name| Event::Nominated { name, until };
        let events = expecting.into_iter().map(nominated);
        for event in events.chain([Event::MarkedForDeletion(leaving)]) {
            // Marks are never refused: what they name and is gone stays gone.
            model.apply(now, event).ok();
        }
        model.snapshot()
    }
}

#[cfg(test)]
mod tests;
