//! The state of a solve, which every phase reads and changes.
//!
//! Holds no rule: what is done with it is told by the phases, each in files of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::input::counts::TermCounts;
use super::input::nodes::Nodes;
use super::input::pod_groups::{GroupView, PodGroup};
use super::input::pool_table::PoolTable;
use super::input::topology::{DomainId, GroupId, KeyId, Pin, Topology};
use super::input::unit_price::{UnitPrice, unit_price};
use super::input::vocabulary::{Amounts, Dimensions, SetId, Vocabulary, add_times};
use super::place::claim::OpenClaim;
use crate::device::Allocator;
use crate::error::PodError;
use crate::problem::Problem;

/// What decides which domains have rows: requirements, key, requests, the pools whose taints are tolerated, and the
/// group where its host ports or volumes matter.
pub(super) type FeasibleKey = (SetId, KeyId, Amounts, Vec<bool>, Option<usize>);

/// Domains that have rows for a pod, with a price to break ties.
pub(super) type FeasibleDomains = Arc<[(DomainId, f64)]>;

/// How many more pods of a group a domain may be given; domains that are not listed take any number.
pub(super) type DomainCaps = BTreeMap<(usize, KeyId, DomainId), usize>;

/// Domains that pods of a group keep out of.
pub(super) type ClosedDomains = BTreeSet<(usize, KeyId, DomainId)>;

/// Domains that pods of a group keep out of until a slot there is free or known to be gone, and whose slot that is: the
/// pool's.
pub(super) type DeferredDomains = BTreeMap<(usize, KeyId, DomainId), String>;

/// A step of relaxation of a group's pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct ViewId {
    pub(super) group: usize,
    pub(super) view: usize,
}

/// Pods of a group that still need a place, at one step of relaxation.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) group: usize,
    pub(super) view: usize,
    pub(super) members: Vec<usize>,
}

/// Pods of a group with their domains assigned, ready for a claim.
#[derive(Debug, Clone)]
pub(super) struct PodBatch {
    pub(super) group: usize,
    pub(super) view: usize,
    /// Requirements, volume alternative and pins merged.
    pub(super) set: SetId,
    pub(super) pins: Vec<Pin>,
    pub(super) members: Vec<usize>,
}

/// The state of a solve.
pub(super) struct Solver<'a> {
    pub(super) problem: &'a Problem,
    pub(super) vocabulary: Vocabulary,
    pub(super) dims: Dimensions,
    pub(super) topology: Topology,
    /// By weight, then name, both descending.
    pub(super) pools: Vec<PoolTable>,
    pub(super) groups: Vec<PodGroup>,
    pub(super) nodes: Nodes<'a>,
    /// Running pods of each topology group.
    pub(super) term_counts: Vec<Arc<TermCounts>>,
    /// Gives devices to pods that claim any.
    pub(super) devices: Option<Allocator<'a>>,
    pub(super) claims: Vec<OpenClaim>,
    pub(super) placed: usize,
    /// For spreads that honour taints, the domains that their pods can reach.
    pub(super) reachable: BTreeMap<GroupId, Vec<bool>>,
    /// Unit prices by pool and requirement set.
    pub(super) unit_prices: BTreeMap<(usize, SetId), UnitPrice>,
    /// What domains may still be given in this round.
    pub(super) domain_caps: DomainCaps,
    /// Domains with rows, by what decides about them.
    pub(super) feasible_domains: BTreeMap<FeasibleKey, FeasibleDomains>,
    pub(super) refused: BTreeMap<usize, PodError>,
    pub(super) deferred: DeferredDomains,
    /// Domains in which no node could be had.
    pub(super) closed_domains: ClosedDomains,
    /// The same of the present pass, in which others may still open a node there.
    pub(super) failed_domains: ClosedDomains,
}

impl Pending {
    pub(super) fn view_id(&self) -> ViewId {
        ViewId {
            group: self.group,
            view: self.view,
        }
    }
}

impl PodBatch {
    pub(super) fn view_id(&self) -> ViewId {
        ViewId {
            group: self.group,
            view: self.view,
        }
    }
}

impl Solver<'_> {
    pub(super) fn view_of(&self, group: usize, view: usize) -> &GroupView {
        &self.groups[group].views[view]
    }

    /// The unit price of a requirement set in a pool, for the mix of all pods of the problem.
    pub(super) fn unit_price(&mut self, pool: usize, set: SetId) -> UnitPrice {
        if let Some(known) = self.unit_prices.get(&(pool, set)) {
            return *known;
        }
        let rows = self.pools[pool].rows_of(set, &self.vocabulary);
        let mut demand = self.dims.zero();
        for group in &self.groups {
            let count = i64::try_from(group.members.len()).unwrap_or(i64::MAX);
            add_times(&mut demand, &group.requests, count);
        }
        let price = unit_price(&self.pools[pool], &rows, &demand);
        self.unit_prices.insert((pool, set), price);
        price
    }
}
