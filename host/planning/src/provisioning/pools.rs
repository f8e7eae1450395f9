//! Pools that take part in provisioning, what each may buy, and why others do not take part.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::NodePool;
use apis::conditions::{self, Conditioned};
use scheduling::instance_type::InstanceType;
use scheduling::problem::by_weight;
use scheduling::ranking::{Usage, UsageKey};
use state::Snapshot;
use state::ledger::{OutcomeId, PoolOutcome};

/// Instance types by NodePool.
pub type TypesByPool = BTreeMap<String, Arc<[Arc<InstanceType>]>>;

/// A pool that takes part, with what it may buy now.
#[derive(Debug, Clone)]
pub struct PoolTypes {
    /// The NodePool as the API has it.
    pub node_pool: Arc<NodePool>,
    pub instance_types: Arc<[Arc<InstanceType>]>,
    /// Free addresses of its class's subnets by zone, where they are known.
    pub free_addresses: BTreeMap<String, u32>,
}

impl PoolTypes {
    /// The pool as if a capacity reservation had one more slot.
    #[must_use]
    pub fn with_slot(&self, reservation_id: &str) -> Self {
        let is_of = |offering: &scheduling::instance_type::Offering| {
            offering.reservation_id() == Some(reservation_id)
        };
        let with_slot = |it: &Arc<InstanceType>| {
            if !it.offerings.iter().any(is_of) {
                return Arc::clone(it);
            }
            let mut changed = (**it).clone();
            for offering in changed.offerings.iter_mut().filter(|it| is_of(it)) {
                offering.reservation_capacity += 1;
            }
            Arc::new(changed)
        };
        Self {
            node_pool: Arc::clone(&self.node_pool),
            instance_types: self.instance_types.iter().map(with_slot).collect(),
            free_addresses: self.free_addresses.clone(),
        }
    }
}

/// Which pools may open nodes for pending pods.
pub struct ProvisionablePools {
    /// Those that may, heaviest first.
    pub node_pools: Vec<Arc<NodePool>>,
    /// Of every pool whether it may, and why not.
    pub outcomes: Vec<PoolOutcome>,
}

/// Pools that may open nodes for pending pods, heaviest first, and why the others may not.
pub fn provisionable_pools(snapshot: &Snapshot) -> ProvisionablePools {
    let mut pools = Vec::new();
    let mut outcomes = Vec::new();
    for pool in snapshot.node_pools() {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let (outcome, reason) = if pool.is_static() {
            (OutcomeId::PoolStatic, String::new())
        } else if pool.metadata.deletion_timestamp.is_some() {
            (
                OutcomeId::PoolNotReady,
                "the NodePool is being deleted".to_owned(),
            )
        } else if !pool.is_ready() {
            let ready = pool.condition(conditions::READY);
            (
                OutcomeId::PoolNotReady,
                ready.map(|it| it.message.clone()).unwrap_or_default(),
            )
        } else {
            pools.push(Arc::clone(pool));
            (OutcomeId::PoolUsed, String::new())
        };
        outcomes.push(PoolOutcome {
            pool: name,
            outcome,
            reason,
        });
    }
    pools.sort_by(|a, b| by_weight(a, b));
    ProvisionablePools {
        node_pools: pools,
        outcomes,
    }
}

/// What pools that take part may buy, by their names.
pub fn types_by_pool(pools: &[PoolTypes]) -> TypesByPool {
    let named = |it: &PoolTypes| {
        let name = it.node_pool.metadata.name.clone().unwrap_or_default();
        (name, Arc::clone(&it.instance_types))
    };
    pools.iter().map(named).collect()
}

/// Nodes by pool and offering, with their prices as far as the types of their pools are given. Nodes of pools that may
/// not buy cost as much as any.
pub fn usage(snapshot: &Snapshot, types: &TypesByPool) -> BTreeMap<UsageKey, Usage> {
    let mut usage = snapshot.usage();
    for (key, count) in &mut usage {
        let mut types = types.get(&key.pool).into_iter().flat_map(|it| it.iter());
        let sold = &key.offering;
        let offering = types
            .find(|it| it.name == sold.instance_type)
            .and_then(|it| it.offering(sold.zone.as_deref()?, sold.capacity_type?));
        count.price_per_hour = offering.map(|it| it.price_per_hour);
    }
    usage
}
