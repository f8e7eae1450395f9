//! Problem files: a cluster, its pools and its pending pods as one JSON document, solved offline.
//!
//! Reads the document into a [`Cluster`] by the same events that watches send, and asks the [`Snapshot`] for the
//! same problem as a provisioning pass does, so that nothing is decided twice. No file is opened and no clock is
//! read here. What is wrong with an object is a [`ObjectFault`] that names place, field and value; the other objects go
//! on.

mod check;
mod disruption_budget;
mod explain;
mod fault;
mod instance_types;
mod list;
mod loader;
mod read;
mod report;
mod typed;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::{CapacityBuffer, Ec2NodeClass, NodeOverlay, NodePool, ObjectKey};
use jiff::Timestamp;
use planning::provisioning::{
    IgnoredReason, PoolTypes, TypesByPool, problem_for_provisioning, provisionable_pools,
    types_by_pool, usage,
};
use scheduling::instance_type::InstanceType;
use scheduling::node_overlay::{self, OverlayVerdict};
use scheduling::pod::PodKey;
use scheduling::problem::{Options, Problem};
use state::cluster::{Cluster, Event};
use state::ledger::{OutcomeId, PoolOutcome};
use state::snapshot::Snapshot;

pub use explain::{Explanation, FunnelStep, PoolExplanation, explain};
pub use fault::{FileError, ObjectFault};
pub use instance_types::InstanceTypes;
pub use list::List;
pub use loader::Loader;
pub use report::{
    AnswerReport, ClaimReport, ClaimRequirements, ExistingReport, PodErrorReport, Timing,
};

/// Instance types that a pool may buy.
pub type TypeList = Arc<[Arc<InstanceType>]>;

/// A problem file taken in.
#[derive(Debug)]
pub struct FileWorld {
    /// Model of the cluster.
    pub cluster: Cluster,
    /// The present moment, when the file names one.
    pub now: Option<Timestamp>,
    /// The EC2NodeClasses, as objects.
    pub node_classes: Vec<Arc<Ec2NodeClass>>,
    /// Pods that the API server would refuse or that can never be placed, with the reason.
    pub invalid_pods: BTreeMap<PodKey, String>,
    /// Faults of objects; those of `invalid_pods` included.
    pub faults: Vec<ObjectFault>,
    /// Fields that nobody reads, as an API server would warn.
    pub warnings: Vec<String>,
}

/// The problem of a world, and what was left out of it.
#[derive(Debug, Clone)]
pub struct WorldProblem {
    /// The problem that the solver is given.
    pub problem: Problem,
    /// Pods that wait for capacity but cannot be considered.
    pub ignored: Vec<(PodKey, IgnoredReason)>,
    /// Pools that take no part, with the reason.
    pub pool_errors: BTreeMap<String, String>,
}

impl FileWorld {
    /// Reads a problem file.
    pub fn read(text: &str) -> Result<Self, FileError> {
        read::read(text)
    }

    /// Reads a problem that is in memory already.
    pub fn from_value(value: serde_json::Value) -> Result<Self, FileError> {
        read::from_value(value)
    }

    /// The model as it is.
    pub fn snapshot(&self) -> Snapshot {
        self.cluster.snapshot()
    }

    /// Pools that may open nodes, each with what `types_of` says that it may buy, and why the others may not.
    pub fn pools(
        &self,
        types_of: &mut dyn FnMut(&NodePool) -> Result<TypeList, String>,
    ) -> (Vec<PoolTypes>, BTreeMap<String, String>) {
        let provisionable = provisionable_pools(&self.snapshot());
        let mut errors: BTreeMap<String, String> = provisionable
            .outcomes
            .into_iter()
            .filter(|it| it.outcome != OutcomeId::PoolUsed)
            .map(pool_error)
            .collect();
        let mut pools = Vec::new();
        for node_pool in provisionable.node_pools {
            let name = node_pool.metadata.name.clone().unwrap_or_default();
            match types_of(&node_pool) {
                Ok(instance_types) if !instance_types.is_empty() => pools.push(PoolTypes {
                    node_pool,
                    instance_types,
                    free_addresses: BTreeMap::new(),
                }),
                Ok(_) => {
                    errors.insert(name, "it has no instance types".to_owned());
                }
                Err(error) => {
                    errors.insert(name, error);
                }
            }
        }
        (pools, errors)
    }

    /// Takes the CapacityBuffers out.
    pub fn forget_buffers(&mut self) {
        let snapshot = self.snapshot();
        let now = self.now.unwrap_or_default();
        for buffer in snapshot.capacity_buffers() {
            let key = ObjectKey::of(&buffer.metadata);
            self.cluster
                .apply(now, Event::deleted::<CapacityBuffer>(key))
                .ok();
        }
    }

    /// Lays the NodeOverlays on what pools may buy; tells of those that are not applied.
    pub fn overlay(
        &self,
        pools: &mut [PoolTypes],
        types: &mut BTreeMap<String, TypeList>,
    ) -> Vec<String> {
        let snapshot = self.snapshot();
        let overlays: Vec<NodeOverlay> =
            snapshot.node_overlays().map(|it| (**it).clone()).collect();
        if overlays.is_empty() {
            return Vec::new();
        }
        let with_pools = types.iter().filter_map(|(name, types)| {
            let pool = pools.iter().map(|it| &it.node_pool);
            let mut pool = pool.filter(|it| it.metadata.name.as_ref() == Some(name));
            let pool = pool.next().or_else(|| snapshot.node_pool(name))?;
            Some((Arc::clone(pool), Arc::clone(types)))
        });
        let with_pools: Vec<_> = with_pools.collect();
        let verdicts = node_overlay::judge(&overlays, &with_pools);
        let accepted = node_overlay::accepted(&overlays, &verdicts);
        let overlaid = node_overlay::apply(&accepted, &with_pools).instance_types;
        for pool in pools {
            let name = pool.node_pool.metadata.name.as_deref().unwrap_or_default();
            if let Some(types) = overlaid.get(name) {
                pool.instance_types = Arc::clone(types);
            }
        }
        types.extend(overlaid);
        let refused = verdicts.into_iter().filter_map(|(name, verdict)| {
            let reason = match verdict {
                OverlayVerdict::Applied => return None,
                OverlayVerdict::Conflict => {
                    "another of the same weight changes the same".to_owned()
                }
                OverlayVerdict::Invalid(message) => message,
            };
            Some(format!("nodeoverlay {name} is not applied: {reason}"))
        });
        refused.collect()
    }

    /// The problem with the same instance types for every pool.
    pub fn question(&self, types: &InstanceTypes, options: Options) -> WorldProblem {
        let (mut pools, pool_errors) = self.pools(&mut |_| Ok(Arc::clone(&types.types)));
        for pool in &mut pools {
            types.define_labels(&mut pool.node_pool);
        }
        self.question_of(&pools, &types_by_pool(&pools), pool_errors, options)
    }

    /// The problem with these pools; `types` has those of all that have nodes.
    pub fn question_of(
        &self,
        pools: &[PoolTypes],
        types: &TypesByPool,
        pool_errors: BTreeMap<String, String>,
        options: Options,
    ) -> WorldProblem {
        let snapshot = self.snapshot();
        let usage = usage(&snapshot, types);
        let input = problem_for_provisioning(&snapshot, pools, usage, options);
        WorldProblem {
            problem: input.problem,
            ignored: input.ignored,
            pool_errors,
        }
    }
}

fn pool_error(outcome: PoolOutcome) -> (String, String) {
    let reason = match (outcome.outcome, outcome.reason.is_empty()) {
        (OutcomeId::PoolStatic, _) => {
            "it is static: it keeps its number of nodes whatever the pods ask for".to_owned()
        }
        (_, true) => "it is not ready".to_owned(),
        (_, false) => outcome.reason,
    };
    (outcome.pool, reason)
}

#[cfg(test)]
mod tests;
