//! Filling one imagined node of a given offering with the pods that make the most of it.
//!
//! Nothing is recorded here: the packer compares many fillings and commits one. Pods count by what they are worth to
//! their own class, so those that need this kind of node come first and others only fill what would be wasted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::bitset::BitSet;
use super::pool_rows::TypeRow;
use super::pool_table::PoolTable;
use super::topology::{GroupId, HOSTNAME_KEY, Membership, Rule, Topology};
use super::unit_price::UnitPrice;
use super::vocabulary::{Amounts, SetId, times_fitting};
use crate::pod::HostPort;
use crate::problem::PodVolumes;

/// A batch as the filler sees it.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) requests: Amounts,
    /// Dollars an hour that one pod is worth.
    pub(super) worth: f64,
    /// Unit prices of its class.
    pub(super) price: UnitPrice,
    /// Requirement set of its class.
    pub(super) set: SetId,
    pub(super) remaining: usize,
    /// Rows that take one pod, by pool; `None` where the pool is closed to it.
    pub(super) rows: Vec<Option<BitSet>>,
    /// The requirements that choosing a row does not settle, by pool.
    pub(super) open: Vec<SetId>,
    pub(super) hosts: SmallVec<[HostStake; 2]>,
    pub(super) ports: Vec<HostPort>,
    pub(super) volumes: Option<Arc<PodVolumes>>,
    pub(super) shares_one_host: bool,
}

/// A batch's stake in a group whose domains are hosts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HostStake {
    group: GroupId,
    kind: HostKind,
    is_counted: bool,
    is_owner: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum HostKind {
    Spread(i64),
    AntiAffinity {
        keeps_out: bool,
    },
    /// Whether a pod that it looks for exists nowhere yet.
    Affinity {
        may_open: bool,
    },
}

/// The stakes of a pod in groups whose domains are hosts.
pub(super) fn host_stakes(
    topology: &Topology,
    membership: &Membership,
) -> SmallVec<[HostStake; 2]> {
    let owned: BTreeMap<GroupId, bool> = membership
        .owned
        .iter()
        .map(|o| (o.group, o.is_self_selecting))
        .collect();
    let all: BTreeSet<GroupId> = owned
        .keys()
        .copied()
        .chain(membership.selected.iter().copied())
        .collect();
    all.into_iter()
        .filter(|id| topology.group(*id).key == HOSTNAME_KEY)
        .map(|id| {
            let group = topology.group(id);
            let is_self_selecting = owned.get(&id).copied().unwrap_or(false);
            let kind = match group.rule {
                Rule::Spread { max_skew } => HostKind::Spread(max_skew),
                Rule::AntiAffinity { is_required } => HostKind::AntiAffinity {
                    keeps_out: is_required,
                },
                Rule::Affinity => HostKind::Affinity {
                    may_open: is_self_selecting && group.total == 0,
                },
            };
            HostStake {
                group: id,
                kind,
                is_counted: membership.selected.contains(&id),
                is_owner: owned.contains_key(&id),
            }
        })
        .collect()
}

/// A filling: how many pods of which items, and what they are worth.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Filling {
    pub(super) picks: Vec<(usize, usize)>,
    pub(super) worth: f64,
}

/// What to fill.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) pool: usize,
    pub(super) row: usize,
    /// The item that must be on the node.
    pub(super) seed: usize,
    /// How much of the node may be used, for pools that must stay flexible.
    pub(super) share: f64,
    /// How much more a pod that takes up the whole rest of the node counts than a tiny one.
    pub(super) size_weight: f64,
}

/// A node being filled.
struct Filler<'a> {
    items: &'a [Item],
    of_type: &'a TypeRow,
    target: Target,
    room: Amounts,
    hosted: SmallVec<[(GroupId, i64, i64); 8]>,
    ports: Vec<HostPort>,
    open: SetId,
    volumes: BTreeMap<String, BTreeSet<String>>,
    filling: Filling,
}

/// Fills a node of the target's row. `merge` tells whether two open requirement sets go together.
pub(super) fn fill(
    table: &PoolTable,
    items: &[Item],
    target: Target,
    merge: &mut dyn FnMut(SetId, SetId) -> Option<SetId>,
) -> Option<Filling> {
    let of_type = table.type_of(target.row);
    let mut filler = Filler::new(items, of_type, target);
    if target.share < 1.0 {
        for amount in &mut filler.room {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a share of an i64 is in range"
            )]
            let part = (*amount as f64 * target.share) as i64;
            *amount = part;
        }
    }
    let seeds = if items[target.seed].shares_one_host {
        usize::MAX
    } else {
        1
    };
    let seeds = filler.times(target.seed).min(seeds);
    if seeds == 0 {
        return None;
    }
    filler.put(target.seed, seeds);
    filler.run(merge);
    Some(filler.filling)
}

/// Whether these pods may all share a node of the row.
pub(super) fn holds(
    table: &PoolTable,
    items: &[Item],
    (pool, row): (usize, usize),
    picks: &[(usize, usize)],
    merge: &mut dyn FnMut(SetId, SetId) -> Option<SetId>,
) -> bool {
    let Some((seed, _)) = picks.first() else {
        return true;
    };
    let target = Target {
        pool,
        row,
        seed: *seed,
        share: 1.0,
        size_weight: 0.0,
    };
    let of_type = table.type_of(row);
    let mut filler = Filler::new(items, of_type, target);
    picks.iter().all(|(index, count)| {
        let Some(open) = merge(filler.open, items[*index].open[pool]) else {
            return false;
        };
        filler.open = open;
        let has_room = filler.room_for(*index) >= *count;
        filler.put(*index, *count);
        has_room
    })
}

impl<'a> Filler<'a> {
    fn new(items: &'a [Item], of_type: &'a TypeRow, target: Target) -> Self {
        Self {
            items,
            of_type,
            target,
            room: of_type.allocatable.clone(),
            hosted: SmallVec::new(),
            ports: Vec::new(),
            open: items[target.seed].open[target.pool],
            volumes: BTreeMap::new(),
            filling: Filling::default(),
        }
    }

    fn run(&mut self, merge: &mut dyn FnMut(SetId, SetId) -> Option<SetId>) {
        let (pool, row) = (self.target.pool, self.target.row);
        let takes = |item: &Item| {
            item.remaining > 0
                && item.rows[pool]
                    .as_ref()
                    .is_some_and(|rows| rows.contains(row))
        };
        let mut active: Vec<usize> = (0..self.items.len())
            .filter(|index| takes(&self.items[*index]))
            .collect();
        while let Some(best) = self.best(&mut active) {
            let times = self.times(best);
            let merged = if times > 0 {
                merge(self.open, self.items[best].open[pool])
            } else {
                None
            };
            let Some(merged) = merged else {
                active.retain(|index| *index != best);
                continue;
            };
            self.open = merged;
            // A quarter at a time keeps CPU and memory in balance without a step for every pod.
            let fitting = times_fitting(&self.room, &self.items[best].requests);
            self.put(best, times.min(fitting.div_ceil(4)));
        }
    }

    /// The item that is worth most for what it takes of the scarce resources; greater pods first. Drops from the list
    /// what no longer fits, in the same pass.
    fn best(&self, active: &mut Vec<usize>) -> Option<usize> {
        let scarcity: SmallVec<[f64; 8]> = self
            .room
            .iter()
            .map(|room| 1.0 / (*room).max(1) as f64)
            .collect();
        let mut best: Option<(f64, usize)> = None;
        active.retain(|index| {
            let item = &self.items[*index];
            let mut taken = 0.0;
            let mut greatest = 0.0_f64;
            for ((ask, room), scarcity) in item.requests.iter().zip(&self.room).zip(&scarcity) {
                if ask > room || *room < 0 {
                    return false;
                }
                let share = *ask as f64 * scarcity;
                taken += share;
                greatest = greatest.max(share);
            }
            let score = item.worth / taken.max(1e-12) * (1.0 + self.target.size_weight * greatest);
            if best.is_none_or(|(known, _)| score > known) {
                best = Some((score, *index));
            }
            true
        });
        best.map(|(_, index)| index)
    }

    /// How many of an item's remaining pods may still join.
    fn times(&self, index: usize) -> usize {
        let picked = self
            .filling
            .picks
            .iter()
            .find(|(i, _)| *i == index)
            .map_or(0, |(_, n)| *n);
        self.room_for(index)
            .min(self.items[index].remaining.saturating_sub(picked))
    }

    /// How many pods of an item the node can still take.
    fn room_for(&self, index: usize) -> usize {
        let item = &self.items[index];
        let mut times = times_fitting(&self.room, &item.requests);
        for stake in &item.hosts {
            times = times.min(usize::try_from(self.host_room(stake).max(0)).unwrap_or(usize::MAX));
        }
        if times > 0 && !item.ports.is_empty() {
            let held = || self.ports.iter().chain(self.of_type.daemon_ports.iter());
            let conflicts = |port: &HostPort| held().any(|p| p.conflicts_with(port));
            times = usize::from(!item.ports.iter().any(conflicts));
        }
        if times > 0
            && let Some(volumes) = &item.volumes
        {
            times = usize::from(self.attaches(volumes));
        }
        times
    }

    fn attaches(&self, volumes: &PodVolumes) -> bool {
        let limits = &self.of_type.instance_type.volume_attachment_limits;
        volumes.attachments.iter().all(|(driver, wanted)| {
            let there = self.volumes.get(driver);
            let others = there.map_or(0, |t| t.iter().filter(|v| !wanted.contains(*v)).count());
            limits
                .get(driver)
                .is_none_or(|limit| wanted.len() + others <= *limit as usize)
        })
    }

    fn hosted(&self, group: GroupId) -> (i64, i64) {
        self.hosted
            .iter()
            .find(|(id, ..)| *id == group)
            .map_or((0, 0), |(_, counted, owners)| (*counted, *owners))
    }

    fn host_room(&self, stake: &HostStake) -> i64 {
        let (counted, owners) = self.hosted(stake.group);
        match &stake.kind {
            HostKind::Spread(max_skew) => match (stake.is_owner, stake.is_counted) {
                (true, true) => max_skew - counted,
                (true, false) if counted > *max_skew => 0,
                (false, true) if owners > 0 => max_skew - counted,
                _ => i64::MAX,
            },
            HostKind::AntiAffinity { keeps_out } => {
                let is_blocked = (stake.is_owner && counted > 0)
                    || (stake.is_counted && *keeps_out && owners > 0);
                match (is_blocked, stake.is_owner && stake.is_counted) {
                    (true, _) => 0,
                    (false, true) => 1,
                    (false, false) => i64::MAX,
                }
            }
            HostKind::Affinity { may_open } => {
                if !stake.is_owner || counted > 0 || *may_open {
                    i64::MAX
                } else {
                    0
                }
            }
        }
    }

    fn put(&mut self, index: usize, times: usize) {
        let item = &self.items[index];
        let count = i64::try_from(times).unwrap_or(0);
        super::vocabulary::add_times(&mut self.room, &item.requests, -count);
        for stake in &item.hosts {
            let counted = if stake.is_counted { count } else { 0 };
            let owners = if stake.is_owner { count } else { 0 };
            if let Some(entry) = self.hosted.iter_mut().find(|(id, ..)| *id == stake.group) {
                entry.1 += counted;
                entry.2 += owners;
            } else {
                self.hosted.push((stake.group, counted, owners));
            }
        }
        self.ports.extend(item.ports.iter().cloned());
        for (driver, volumes) in item.volumes.iter().flat_map(|v| &v.attachments) {
            self.volumes
                .entry(driver.clone())
                .or_default()
                .extend(volumes.iter().cloned());
        }
        self.filling.worth += item.worth * times as f64;
        if let Some(pick) = self.filling.picks.iter_mut().find(|(i, _)| *i == index) {
            pick.1 += times;
        } else {
            self.filling.picks.push((index, times));
        }
    }
}
