//! The instance types of every NodePool as disruption saw them last, and what nodes cost by them.
//!
//! The lists are those that decisions share; nothing is asked for its own sake. Answers to Karpenter's
//! `pkg/state/cost`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use disruption::candidate::{TypesByPool, list_price_by};
use locks::lock;
use scheduling::instance_type::InstanceType;
use state::{Snapshot, StateNode};

/// Shared by disruption, which looks at them, and by the gauges.
#[derive(Debug, Default)]
pub(crate) struct SoldTypes {
    types: Mutex<TypesByPool>,
    /// Claims of which it was told that their price is not known.
    unpriced: Mutex<BTreeSet<String>>,
}

impl SoldTypes {
    /// These are the types now.
    pub(crate) fn set(&self, types: TypesByPool) {
        *lock(&self.types) = types;
    }

    /// Types that each pool may buy, as last observed.
    pub(crate) fn get(&self) -> TypesByPool {
        lock(&self.types).clone()
    }

    /// Price of the nodes of each NodePool, USD an hour.
    pub(crate) fn costs(&self, snapshot: &Snapshot) -> BTreeMap<String, f64> {
        let types = self.get();
        let types: BTreeMap<&str, ByName<'_>> = by_name(&types);
        let mut costs = BTreeMap::new();
        for (pool, node) in nodes_of_pools(snapshot) {
            let price = types.get(pool).and_then(|it| price(it, node));
            *costs.entry(pool.to_owned()).or_default() += price.unwrap_or_default();
        }
        costs
    }

    /// NodePools of nodes whose price turns out not to be known, once for each node.
    pub(crate) fn newly_unpriced(&self, snapshot: &Snapshot) -> Vec<String> {
        let types = self.get();
        let types = by_name(&types);
        let known = |pool: &str, node| types.get(pool).is_none_or(|it| price(it, node).is_some());
        let unpriced = nodes_of_pools(snapshot).filter(|(pool, node)| !known(pool, node));
        let unpriced: BTreeMap<&str, &str> = unpriced
            .filter_map(|(pool, node)| Some((node.claim_name()?, pool)))
            .collect();
        let mut told = lock(&self.unpriced);
        let new = unpriced.iter().filter(|(claim, _)| !told.contains(**claim));
        let new = new.map(|(_, pool)| (*pool).to_owned()).collect();
        *told = unpriced.into_keys().map(str::to_owned).collect();
        new
    }
}

type ByName<'a> = BTreeMap<&'a str, &'a InstanceType>;

fn by_name(types: &TypesByPool) -> BTreeMap<&str, ByName<'_>> {
    let mut named = BTreeMap::new();
    for (pool, types) in types {
        let types = types.iter().map(|it| (it.name.as_str(), it.as_ref()));
        named.insert(pool.as_str(), types.collect());
    }
    named
}

fn nodes_of_pools(snapshot: &Snapshot) -> impl Iterator<Item = (&str, &StateNode)> {
    let managed = snapshot.nodes().filter(|it| it.is_managed());
    managed.filter_map(|node| Some((node.node_pool()?, node.as_ref())))
}

/// The list price of the offering that the node was bought by.
fn price(types: &ByName<'_>, node: &StateNode) -> Option<f64> {
    let bought = types.get(node.instance_type()?)?;
    list_price_by(bought, node)
}
