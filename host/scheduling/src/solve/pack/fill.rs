//! Filling one planned node of a given offering with the pods that make the most of it.
//!
//! Nothing is recorded here: the packer compares many contents and commits one. Pods count by what they are worth to
//! their own class, so those that need this kind of node come first and others only fill what would be wasted.

use smallvec::SmallVec;

use super::host_terms::{HostTerm, HostTermKind};
use super::item_columns::{Company, ItemColumns, Unpacked};
use super::items::Item;
use super::open_sets::OpenSets;
use super::plan_context::PlanContext;
use super::planned_node::{Contents, ItemCount};
use crate::pod::HostPort;
use crate::solve::input::pool_rows::TypeRow;
use crate::solve::input::pool_table::RowId;
use crate::solve::input::topology::{GroupCounts, TopologyGroupId, counts_of};
use crate::solve::input::vocabulary::{Amounts, SetId, add_times, times_fitting};
use crate::solve::input::volumes::{AttachedVolumes, attach, attaches};

/// Node that is to be filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct FillTarget {
    pub(super) row: RowId,
    /// The item that must be on the node.
    pub(super) seed: usize,
    /// How much of the node may be used, for nodes that must stay flexible.
    pub(super) share: f64,
    /// How much more a pod that takes up the whole rest of the node counts than a tiny one.
    pub(super) size_weight: f64,
    /// Whether pods are exchanged at the end for others that are worth more.
    pub(super) is_careful: bool,
}

/// A node being filled.
pub(super) struct Filler<'a> {
    context: &'a PlanContext<'a>,
    of_type: &'a TypeRow,
    target: FillTarget,
    available: Amounts,
    hosted: SmallVec<[(TopologyGroupId, GroupCounts); 8]>,
    ports: Vec<HostPort>,
    open: SetId,
    volumes: AttachedVolumes,
    contents: Contents,
}

/// Fills a node of the target's row from what is not packed yet.
pub(super) fn fill(
    context: &PlanContext<'_>,
    columns: &ItemColumns,
    unpacked: &mut Unpacked,
    target: FillTarget,
    sets: &mut OpenSets,
) -> Option<Contents> {
    let mut filler = Filler::new(context, target);
    if target.share < 1.0 {
        for amount in &mut filler.available {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a share of an i64 is in range"
            )]
            let part = (*amount as f64 * target.share) as i64;
            *amount = part;
        }
    }
    let seeds = if context.items[target.seed].shares_one_host {
        usize::MAX
    } else {
        1
    };
    let seeds = filler.times(target.seed, unpacked).min(seeds);
    if seeds == 0 {
        return None;
    }
    filler.put(target.seed, seeds);
    filler.run(columns, unpacked, sets);
    let mut contents = filler.contents;
    let picks = contents.picks.iter();
    contents.worth = picks
        .map(|pick| unpacked.worths[pick.item] * pick.count as f64)
        .sum();
    Some(contents)
}

/// Whether these pods may all share a node of the row.
pub(super) fn holds(
    context: &PlanContext<'_>,
    row: RowId,
    picks: &[ItemCount],
    sets: &mut OpenSets,
) -> bool {
    let Some(ItemCount { item: seed, .. }) = picks.first() else {
        return true;
    };
    let mut filler = Filler::new(
        context,
        FillTarget {
            row,
            seed: *seed,
            share: 1.0,
            size_weight: 0.0,
            is_careful: false,
        },
    );
    picks.iter().all(|ItemCount { item, count }| {
        let open = context.classes[context.items[*item].class].open[row.pool];
        let Some(open) = sets.merge(context.vocabulary, filler.open, open) else {
            return false;
        };
        filler.open = open;
        let is_held = filler.pods_max(*item) >= *count;
        filler.put(*item, *count);
        is_held
    })
}

impl<'a> Filler<'a> {
    fn new(context: &'a PlanContext<'a>, target: FillTarget) -> Self {
        let RowId { pool, row } = target.row;
        let of_type = context.pools[pool].type_of(row);
        Self {
            context,
            of_type,
            target,
            available: of_type.allocatable.clone(),
            hosted: SmallVec::new(),
            ports: Vec::new(),
            open: context.classes[context.items[target.seed].class].open[pool],
            volumes: AttachedVolumes::new(),
            contents: Contents::default(),
        }
    }

    fn run(&mut self, columns: &ItemColumns, unpacked: &mut Unpacked, sets: &mut OpenSets) {
        // Pods of a heavier pool only fill what those of this one leave over: no node is bought here for them.
        for company in [Company::OfPool, Company::All] {
            let has_others = columns.start(self.context, unpacked, self.target.row, company);
            self.add(columns, unpacked, sets);
            if self.target.is_careful && self.exchange(columns, unpacked, sets, company) {
                columns.start(self.context, unpacked, self.target.row, company);
                self.add(columns, unpacked, sets);
            }
            if !has_others {
                break;
            }
        }
    }

    /// Adds pods as long as any fits.
    fn add(&mut self, columns: &ItemColumns, unpacked: &mut Unpacked, sets: &mut OpenSets) {
        let pool = self.target.row.pool;
        while let Some(kind) = columns.best(unpacked, &self.available, self.target.size_weight) {
            let of_kind = &columns.kinds[kind];
            let open = self.context.classes[of_kind.class].open[pool];
            let merged = sets.merge(self.context.vocabulary, self.open, open);
            let put = merged.and_then(|merged| {
                let item = of_kind.items.clone().map(|at| columns.items[at]);
                let (item, times) = item
                    .map(|item| (item, self.times(item, unpacked)))
                    .find(|(_, times)| *times > 0)?;
                Some((merged, item, times))
            });
            let Some((merged, item, times)) = put else {
                columns.drop_kind(unpacked, kind);
                continue;
            };
            self.open = merged;
            // A quarter at a time keeps CPU and memory in balance without a step for every pod.
            let fitting = times_fitting(&self.available, &of_kind.requests);
            self.put(item, times.min(fitting.div_ceil(4)));
        }
    }

    /// Gives single pods up for others that are worth more and fit in their stead.
    fn exchange(
        &mut self,
        columns: &ItemColumns,
        unpacked: &mut Unpacked,
        sets: &mut OpenSets,
        company: Company,
    ) -> bool {
        let pool = self.target.row.pool;
        columns.start(self.context, unpacked, self.target.row, company);
        let mut has_changed = false;
        for at in 0..self.contents.picks.len() {
            let ItemCount { item: out, count } = self.contents.picks[at];
            let item = &self.context.items[out];
            let is_free =
                item.host_terms.is_empty() && item.ports.is_empty() && item.volumes.is_none();
            let least = if out == self.target.seed { 2 } else { 1 };
            let first_pool = self.context.classes[item.class].first_pool;
            let may_leave = company == Company::OfPool || first_pool < pool;
            if !is_free || !may_leave || count < least {
                continue;
            }
            add_times(&mut self.available, &item.requests, 1);
            let better = columns
                .greatest(unpacked, &self.available, unpacked.worths[out])
                .and_then(|kind| {
                    let of_kind = &columns.kinds[kind];
                    let open = self.context.classes[of_kind.class].open[pool];
                    let merged = sets.merge(self.context.vocabulary, self.open, open)?;
                    let item = of_kind.items.clone().map(|at| columns.items[at]);
                    let item = item
                        .into_iter()
                        .find(|item| self.times(*item, unpacked) > 0)?;
                    Some((merged, item))
                });
            add_times(&mut self.available, &item.requests, -1);
            if let Some((merged, into)) = better
                && into != out
            {
                self.open = merged;
                self.put_back(at);
                self.put(into, 1);
                has_changed = true;
            }
        }
        self.contents.picks.retain(|pick| pick.count > 0);
        has_changed
    }

    /// Takes one pod of a pick off again; only for pods that leave no other trace than the resources they take.
    fn put_back(&mut self, at: usize) {
        let pick = &mut self.contents.picks[at];
        let item = &self.context.items[pick.item];
        pick.count -= 1;
        add_times(&mut self.available, &item.requests, 1);
    }

    /// How many of an item's remaining pods may still come.
    fn times(&self, item: usize, unpacked: &Unpacked) -> usize {
        let remaining = unpacked.remaining[item];
        if remaining == 0 {
            return 0;
        }
        let picks = &self.contents.picks;
        let picked = picks.iter().find(|pick| pick.item == item);
        let remaining = remaining - picked.map_or(0, |pick| pick.count).min(remaining);
        self.pods_max(item).min(remaining)
    }

    /// How many pods of an item the node can still take.
    fn pods_max(&self, index: usize) -> usize {
        let item: &Item = &self.context.items[index];
        let mut times = times_fitting(&self.available, &item.requests);
        for term in &item.host_terms {
            times =
                times.min(usize::try_from(self.host_pods_max(term).max(0)).unwrap_or(usize::MAX));
        }
        if times > 0 && !item.ports.is_empty() {
            let held = || self.ports.iter().chain(self.of_type.daemon_ports.iter());
            let conflicts = |port: &HostPort| held().any(|p| p.conflicts_with(port));
            times = usize::from(!item.ports.iter().any(conflicts));
        }
        if times > 0
            && let Some(volumes) = &item.volumes
        {
            let limits = &self.of_type.instance_type.volume_attachment_limits;
            times = usize::from(attaches(limits, &self.volumes, &volumes.attachments));
        }
        times
    }

    fn host_pods_max(&self, term: &HostTerm) -> i64 {
        let GroupCounts {
            selected: counted,
            owners,
        } = counts_of(&self.hosted, term.group);
        match &term.kind {
            HostTermKind::Spread(max_skew) => match (term.is_owner, term.is_counted) {
                (true, true) => max_skew - counted,
                (true, false) if counted > *max_skew => 0,
                (false, true) if owners > 0 => max_skew - counted,
                _ => i64::MAX,
            },
            HostTermKind::AntiAffinity { keeps_out } => {
                let is_blocked =
                    (term.is_owner && counted > 0) || (term.is_counted && *keeps_out && owners > 0);
                match (is_blocked, term.is_owner && term.is_counted) {
                    (true, _) => 0,
                    (false, true) => 1,
                    (false, false) => i64::MAX,
                }
            }
            HostTermKind::Affinity { may_open } => {
                if !term.is_owner || counted > 0 || *may_open {
                    i64::MAX
                } else {
                    0
                }
            }
        }
    }

    fn put(&mut self, index: usize, times: usize) {
        let item = &self.context.items[index];
        let count = i64::try_from(times).unwrap_or(0);
        add_times(&mut self.available, &item.requests, -count);
        for term in &item.host_terms {
            let more = GroupCounts {
                selected: if term.is_counted { count } else { 0 },
                owners: if term.is_owner { count } else { 0 },
            };
            if let Some((_, counts)) = self.hosted.iter_mut().find(|(id, _)| *id == term.group) {
                counts.selected += more.selected;
                counts.owners += more.owners;
            } else {
                self.hosted.push((term.group, more));
            }
        }
        self.ports.extend(item.ports.iter().cloned());
        if let Some(volumes) = &item.volumes {
            attach(&mut self.volumes, &volumes.attachments);
        }
        let picks = &mut self.contents.picks;
        if let Some(pick) = picks.iter_mut().find(|pick| pick.item == index) {
            pick.count += times;
        } else {
            picks.push(ItemCount {
                item: index,
                count: times,
            });
        }
    }
}
