//! Carries a decision out: creates the NodeClaims, nominates, and leaves the traces.
//!
//! Where pods go is decided before; limits alone are looked at once more, as others may have bought meanwhile.

use std::sync::Arc;
use std::time::Duration;

use apis::resources::Resources;
use apis::{NodeClaim, NodePool};
use futures::stream::{self, StreamExt};
use kube::ResourceExt;
use scheduling::Solution;
use scheduling::pod::PodKey;
use scheduling::solution::{NewClaim, PodsOnNode};
use state::Event;
use state::missing_pods::is_coming;

use crate::capacity_buffer;
use crate::node_claim::creation::{CreationCause, CreationReason};
use crate::node_claim::entries::launch::ClaimOffPlan;
use crate::pod_nomination::is_off_plan;
use crate::shell::error::PoolGone;

use super::creation::{Creation, CreationRefusal};
use super::entries::PassEntry;
use super::report::Pass;
use super::{Decided, Observed, Provisioner};

/// NodeClaims created at one time.
const CREATES_AT_ONCE: usize = 50;

impl Provisioner {
    pub(super) async fn apply(&self, observed: &Observed, decided: Decided, took: Duration) {
        let notes = &self.parts.notes;
        notes.launching.keep_prices(Arc::clone(&observed.prices));
        let Decided { solution, .. } = &decided;
        let entry = PassEntry::Decided {
            decided: &decided,
            took,
        };
        self.shell.journal.write(observed, &entry);
        self.nominate(observed, solution);
        let moved = solution.claims.iter().flat_map(|claim| &claim.pods);
        notes.pod_nominations.withdraw(moved).await;
        let creates: Vec<_> = solution
            .claims
            .iter()
            .map(|new| self.create(observed, new))
            .collect();
        let creations: Vec<Creation<'_>> = stream::iter(creates)
            .buffered(CREATES_AT_ONCE)
            .collect()
            .await;
        let mut pass = Pass::new(observed, &decided, &creations, took);
        pass.note_first_decisions(&notes.undecided_pods);
        pass.note_places(&notes.pod_starts);
        self.shell.journal.write(&(), &pass);
        // Pods need their nodes sooner than people need to read of the room.
        capacity_buffer::write_rooms(&self.shell, &observed.snapshot, solution).await;
    }

    fn nominate(&self, observed: &Observed, solution: &Solution) {
        for PodsOnNode { node, pods } in &solution.existing {
            let pods = awaited(observed, pods);
            if pods.is_empty() {
                continue;
            }
            let entry = PassEntry::NodeNominated {
                node,
                pods: pods.len(),
            };
            self.shell.journal.write(observed, &entry);
            self.shell.model.nominate(node.clone());
            let node = node.clone();
            self.shell.model.note(Event::Placed { node, pods });
        }
    }

    async fn create<'a>(&self, observed: &Observed, new: &'a NewClaim) -> Creation<'a> {
        let result = self.try_create(observed, new).await;
        if let Err(refusal) = &result {
            let pool = &new.pool;
            let entry = PassEntry::CreationRefused { pool, refusal };
            self.shell.journal.write(observed, &entry);
        }
        Creation { new, result }
    }

    async fn try_create(
        &self,
        observed: &Observed,
        new: &NewClaim,
    ) -> Result<NodeClaim, CreationRefusal> {
        let node_pool = self
            .shell
            .model
            .node_pool(&new.pool)
            .ok_or_else(|| PoolGone(new.pool.clone()))?;
        self.check_limits(&node_pool)?;
        let claims = &self.parts.claims;
        let cause = CreationCause {
            decision_id: &observed.decision_id,
            reason: CreationReason::Provisioned,
            record: None,
        };
        let created = claims.create(&node_pool, new, cause).await?;
        if is_off_plan(&observed.snapshot, new) {
            let price_per_hour = new.best.price_per_hour;
            let entry = ClaimOffPlan { price_per_hour };
            self.shell.journal.write(&created, &entry);
        }
        let (awaited, there) = (awaited(observed, &new.pods), real(observed, &new.pods));
        claims.note_pods(&created, awaited, there);
        Ok(created)
    }

    /// Equality is fine: the claim was decided within what remains, and this only catches what came in between.
    fn check_limits(&self, node_pool: &NodePool) -> Result<(), CreationRefusal> {
        let Some(limits) = &node_pool.spec.limits else {
            return Ok(());
        };
        let usage = self
            .shell
            .model
            .snapshot()
            .pool_resources(&node_pool.name_any());
        let limits = Resources::from_list(limits);
        let over = usage.exceeding(&limits);
        if over.is_empty() {
            return Ok(());
        }
        Err(CreationRefusal::OverLimits {
            pool: node_pool.name_any(),
            resources: over.join(", "),
        })
    }
}

/// The pods that are there or about to be; the room of buffers waits for nobody.
fn awaited(observed: &Observed, pods: &[PodKey]) -> Vec<PodKey> {
    let is_awaited = |key: &&PodKey| is_coming(key) || observed.snapshot.pod(key).is_some();
    pods.iter().filter(is_awaited).cloned().collect()
}

/// The pods that the API server knows.
fn real(observed: &Observed, pods: &[PodKey]) -> Vec<PodKey> {
    let is_real = |key: &&PodKey| observed.snapshot.pod(key).is_some();
    pods.iter().filter(is_real).cloned().collect()
}
