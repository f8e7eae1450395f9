//! Input of a look for nodes to disrupt: the model, what pools may buy, and what is remembered of commands.
//!
//! Reads, and changes nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use disruption::candidate::TypesByPool;
use disruption::{DisruptionInput, Gates};
use kube::ResourceExt;
use planning::provisioning::{PoolTypes, provisionable_pools};
use scheduling::problem::ReservedMode;

use super::VoluntaryDisruption;
use crate::node_pool::instance_types::types_of_all;
use crate::settings::SolverRun;

impl VoluntaryDisruption {
    /// The number of the next look, of whatever kind: the seed of what it decides depends on it.
    pub(super) fn next_number(&self) -> u64 {
        self.looks.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Input of the look of that number; a second look and the ranking of pods ask for the same as a scan.
    pub(super) async fn observe(&self, number: u64) -> DisruptionInput {
        let (settings, now) = (&self.shell.settings, self.shell.now());
        let snapshot = self.shell.model.snapshot();
        let provider = &*self.parts.provider;
        let types = types_of_all(provider, &snapshot, TypesByPool::new()).await;
        let ready = provisionable_pools(&snapshot).node_pools;
        let mut pools = Vec::with_capacity(ready.len());
        for node_pool in ready {
            let class = snapshot.class_of(&node_pool);
            if let (Some(class), Some(types)) = (class, types.get(&node_pool.name_any())) {
                pools.push(PoolTypes {
                    free_addresses: self.parts.provider.free_addresses(class).await,
                    instance_types: Arc::clone(types),
                    node_pool,
                });
            }
        }
        let decision_id = format!("disruption-{}-{number}", now.as_second());
        let options = settings.solver(SolverRun {
            seed: self.shell.seed_for(&decision_id),
            id: decision_id,
            now,
            reserved: ReservedMode::Fallback,
        });
        DisruptionInput {
            snapshot,
            types,
            pools,
            queued: self.orchestration.claims(),
            history: self.orchestration.history(),
            memory: self.memory().clone(),
            options,
            scheduler: Arc::clone(&settings.solving.scheduler.profile),
            gates: Gates {
                spot_to_spot: settings.feature_gates.spot_to_spot_consolidation,
                terminate_first_drift: settings.feature_gates.terminate_first_drift,
                terminate_first_repair: settings.feature_gates.terminate_first_repair,
                puts_moves_off: settings.follows_plans(),
            },
            repair: self.parts.repair.clone(),
            tables: Arc::clone(&self.parts.tables),
        }
    }
}
