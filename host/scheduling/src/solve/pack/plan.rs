//! Which nodes to open for items: one by one, the node whose pods are worth most for its price.
//!
//! Hard pods come first, each time as the seed of a node; the candidates for the node are the offerings that are cheap
//! for that seed's class, in all sizes. A plan changes nothing, so that plans can be compared and made side by side.

mod candidates;

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::fill::{FillTarget, fill};
use super::item_columns::{ItemColumns, Unpacked};
use super::open_sets::OpenSets;
use super::plan_context::PlanContext;
use super::planned_node::{ItemCount, PlannedNode};
use crate::interrupt::Interrupt;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pool_table::{PoolId, RowId};

/// How many offerings are kept in mind for a seed's next node.
const SHORTLIST_MAX: usize = 4;
/// How much worse than the first the next node may be before all offerings are tried again.
const SHORTLIST_TOLERANCE: f64 = 1.01;
/// How much of a node is used where a full one would leave too little choice of types.
const SHARES: [f64; 5] = [1.0, 0.75, 0.5, 0.25, 0.1];
/// Other ways to fill a chosen node.
const OTHER_SIZE_WEIGHTS: [f64; 4] = [0.0, 0.75, 2.0, 12.0];
/// What trying a node costs at least, in kinds scored.
const SCORED_MIN: usize = 64;

/// How a plan is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heuristic {
    /// How much more a pod that takes up the whole rest of a node counts than a tiny one.
    pub(super) size_weight: f64,
    /// What a node costs beyond its price, in dollars an hour: the greater, the fewer nodes.
    pub(super) charge: f64,
    /// Whether the chosen node is filled in other ways too, to take the best.
    pub(super) is_careful: bool,
}

/// The item that a node is planned for, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeSeed {
    pub(super) item: usize,
    pub(super) heuristic: Heuristic,
}

/// The offerings that did well for a seed, so that its next node need not try all of them again.
#[derive(Debug, Default)]
pub(super) struct Shortlist {
    pub(super) rows: SmallVec<[RowId; SHORTLIST_MAX]>,
    ratio: f64,
}

/// Makes plans for items that are packed together.
pub(super) struct Planner<'a> {
    pub(super) context: &'a PlanContext<'a>,
    pub(super) columns: &'a ItemColumns,
    sets: OpenSets,
    /// Work done so far, in kinds scored for a node.
    pub(super) effort: usize,
    /// Rows that full nodes of leave too little choice.
    rigid: BTreeSet<RowId>,
    /// The worth that a row's node can have at most, by pool and row; negative when not known yet.
    most_worth: Vec<Vec<f64>>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(context: &'a PlanContext<'a>, columns: &'a ItemColumns) -> Self {
        Self {
            context,
            columns,
            sets: OpenSets::default(),
            effort: 0,
            rigid: BTreeSet::new(),
            most_worth: context
                .pools
                .iter()
                .map(|table| vec![-1.0; table.rows.len()])
                .collect(),
        }
    }

    pub(super) fn sets(&mut self) -> &mut OpenSets {
        &mut self.sets
    }

    /// Chooses nodes for everything that is not packed yet.
    pub(super) fn plan(
        &mut self,
        unpacked: &mut Unpacked,
        heuristic: Heuristic,
        interrupt: &Interrupt,
    ) -> Vec<PlannedNode> {
        let mut plan = Vec::new();
        let context = self.context;
        let mine = context.order.iter().copied();
        for item in mine.filter(|item| self.columns.items.binary_search(item).is_ok()) {
            let seed = NodeSeed { item, heuristic };
            let mut shortlist = Shortlist::default();
            while unpacked.remaining[item] > 0 && !interrupt.is_tripped() {
                let Some(node) = self.choose(unpacked, seed, &mut shortlist) else {
                    break;
                };
                let picks = &node.contents.picks;
                let repeats = picks
                    .iter()
                    .map(|pick| unpacked.remaining[pick.item] / pick.count);
                let repeats = (repeats.min().unwrap_or(0) / 2).max(1);
                for ItemCount { item, count } in picks {
                    self.columns.take(unpacked, *item, count * repeats);
                }
                plan.extend(std::iter::repeat_n(node, repeats));
            }
        }
        plan
    }

    /// The best node for one pod of an item, with what goes along.
    pub(super) fn next(&mut self, unpacked: &mut Unpacked, item: usize) -> Option<PlannedNode> {
        let seed = NodeSeed {
            item,
            heuristic: self.first_heuristic(),
        };
        self.choose(unpacked, seed, &mut Shortlist::default())
    }

    /// The best node for a seed, in the first pool that has one.
    fn choose(
        &mut self,
        unpacked: &mut Unpacked,
        seed: NodeSeed,
        shortlist: &mut Shortlist,
    ) -> Option<PlannedNode> {
        if !shortlist.rows.is_empty() {
            let rows = shortlist.rows.clone();
            let tried = self.best_of(unpacked, seed, &rows);
            if let Some((node, _)) = tried
                && node.ratio <= shortlist.ratio * SHORTLIST_TOLERANCE
            {
                return Some(node);
            }
        }
        let (node, found) = self.best_of_all(unpacked, seed)?;
        *shortlist = found;
        Some(node)
    }

    /// The best node for a seed among all offerings worth trying, in the first pool that has one.
    pub(super) fn best_of_all(
        &mut self,
        unpacked: &mut Unpacked,
        seed: NodeSeed,
    ) -> Option<(PlannedNode, Shortlist)> {
        for pool in PoolId::all(self.context.pools.len()) {
            if self.context.pools[pool].is_out_of_nodes() {
                continue;
            }
            let candidates = self.candidates(pool, seed.item).into_iter();
            let candidates: Vec<RowId> = candidates.map(|row| RowId { pool, row }).collect();
            if let Some((node, ratios)) = self.best_of(unpacked, seed, &candidates) {
                let rows = ratios.into_iter().take(SHORTLIST_MAX);
                let shortlist = Shortlist {
                    rows: rows.map(|(_, row)| row).collect(),
                    ratio: node.ratio,
                };
                return Some((node, shortlist));
            }
        }
        None
    }

    /// The best node among these rows of a pool, and the ratios of all that were tried, best first.
    pub(super) fn best_of(
        &mut self,
        unpacked: &mut Unpacked,
        seed: NodeSeed,
        rows: &[RowId],
    ) -> Option<(PlannedNode, Vec<(f64, RowId)>)> {
        loop {
            let mut best: Option<PlannedNode> = None;
            let mut ratios = Vec::new();
            let is_free = |row: &&RowId| !self.rigid.contains(row);
            let free: Vec<RowId> = rows.iter().filter(is_free).copied().collect();
            for row in &free {
                if let Some(known) = &best
                    && self.least_ratio(*row, seed.heuristic) >= known.ratio
                {
                    continue;
                }
                let Some(node) = self.evaluate(unpacked, seed, *row, 1.0) else {
                    continue;
                };
                ratios.push((node.ratio, *row));
                if best.as_ref().is_none_or(|known| node.ratio < known.ratio) {
                    best = Some(node);
                }
            }
            let Some(node) = best else {
                return rows
                    .iter()
                    .find_map(|row| self.rigid_node(unpacked, seed, *row))
                    .map(|node| (node, Vec::new()));
            };
            let node = self.refilled(unpacked, seed, node);
            let (rows_left, _) = self.context.rows_left(node.pool, &node.contents.picks);
            if !self.is_flexible(&node, &rows_left) {
                self.rigid.insert(node.row_id());
                continue;
            }
            ratios.sort_by(|(a, row_a), (b, row_b)| a.total_cmp(b).then(row_a.cmp(row_b)));
            return Some((node, ratios));
        }
    }

    fn is_flexible(&self, node: &PlannedNode, rows: &BitSet) -> bool {
        self.context
            .is_flexible(node.row_id(), &node.contents.picks, rows)
    }

    /// A node filled anew in the best of several ways.
    fn refilled(
        &mut self,
        unpacked: &mut Unpacked,
        seed: NodeSeed,
        node: PlannedNode,
    ) -> PlannedNode {
        let mut best = node;
        if seed.heuristic.is_careful {
            for size_weight in OTHER_SIZE_WEIGHTS {
                let heuristic = Heuristic {
                    size_weight,
                    ..seed.heuristic
                };
                let seed = NodeSeed { heuristic, ..seed };
                if let Some(other) = self.evaluate(unpacked, seed, best.row_id(), 1.0)
                    && other.ratio < best.ratio
                {
                    best = other;
                }
            }
        }
        best
    }

    /// A node of a row that may not be full; the greatest part of it that leaves enough choice.
    fn rigid_node(
        &mut self,
        unpacked: &mut Unpacked,
        seed: NodeSeed,
        row: RowId,
    ) -> Option<PlannedNode> {
        let mut last = None;
        for share in SHARES {
            let Some(node) = self.evaluate(unpacked, seed, row, share) else {
                break;
            };
            let (rows, _) = self.context.rows_left(row.pool, &node.contents.picks);
            if self.is_flexible(&node, &rows) {
                return Some(node);
            }
            last = Some((node, rows));
        }
        let (node, rows) = last?;
        // Few Spot types are better than none; minValues of a strict pool are not.
        let table = &self.context.pools[row.pool];
        let is_allowed = !self.context.keeps_min_values
            || table
                .missed_min_values(&rows, self.context.vocabulary)
                .is_none();
        is_allowed.then_some(node)
    }

    /// No node of the row can do better than this by what pods are worth at first; by what a plan has learned since,
    /// hardly any does.
    fn least_ratio(&mut self, RowId { pool, row }: RowId, heuristic: Heuristic) -> f64 {
        let value = self.context.pools[pool].value_of_row(row);
        if self.most_worth[pool][row] < 0.0 {
            let mut last = None;
            let mut most = 0.0_f64;
            let has = &self.context.pools[pool].type_of(row).allocatable;
            for kind in &self.columns.kinds {
                let class = &self.context.classes[kind.class];
                let rows = class.rows[pool].as_ref();
                if !rows.is_some_and(|rows| rows.contains(row)) {
                    continue;
                }
                if class.is_special {
                    // What a GPU is worth is not told by the unit prices.
                    let fits = kind.requests.iter().zip(has).all(|(ask, has)| ask <= has);
                    most = if fits { f64::INFINITY } else { most };
                } else if Some(kind.class) != last {
                    last = Some(kind.class);
                    most = most.max(class.price.of_value(value));
                }
            }
            self.most_worth[pool][row] = most;
        }
        let most = self.most_worth[pool][row];
        if most > 0.0 {
            (value.cost + heuristic.charge) / most
        } else {
            0.0
        }
    }

    fn evaluate(
        &mut self,
        unpacked: &mut Unpacked,
        NodeSeed { item, heuristic }: NodeSeed,
        row: RowId,
        share: f64,
    ) -> Option<PlannedNode> {
        let target = FillTarget {
            row,
            seed: item,
            share,
            size_weight: heuristic.size_weight,
            is_careful: heuristic.is_careful,
        };
        self.effort += SCORED_MIN + self.columns.kinds.len();
        let contents = fill(self.context, self.columns, unpacked, target, &mut self.sets)?;
        let RowId { pool, row } = row;
        let cost = self.context.pools[pool].rows[row].effective_cost_per_hour + heuristic.charge;
        let ratio = cost.max(1e-9) / contents.worth.max(1e-12);
        Some(PlannedNode {
            pool,
            row,
            contents,
            ratio,
        })
    }
}
