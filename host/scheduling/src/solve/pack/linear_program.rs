//! The best combination of the nodes that several plans came up with: how many of each would cover all pods for least
//! if nodes could be bought in parts, and what each kind of pod is worth by that.
//!
//! The linear program of cutting stock, whose patterns are planned nodes. It is solved by the simplex method on its
//! dual, where buying nothing is a place to start from. Answers depend on the order of patterns and on nothing else.

use std::collections::BTreeSet;

use super::best_plan::bounded_worth;
use super::item_columns::{ItemColumns, Unpacked};
use super::plan::{Heuristic, Planner};
use super::plan_context::PlanContext;
use super::planned_node::{ItemCount, PatternKey, PlannedNode};
use crate::interrupt::Interrupt;

/// Cells of a table at most: greater ones cost more time than they save money.
const CELLS_MAX: usize = 32 << 10;
/// Absolute value up to which a number counts as zero.
const NOTHING: f64 = 1e-9;
/// The heuristic for what whole nodes of the optimum leave over: what a node costs beyond its price, as a share of the
/// first plan's average node, and the weight of size.
const REST: (f64, f64) = (0.03, 4.0);
/// How many cells of a table make as much work as scoring a kind.
const CELLS_PER_SCORED: usize = 8;

/// How many whole nodes there are in a number of nodes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of nodes is small, and a negative one is none"
)]
pub(super) fn whole(nodes: f64) -> usize {
    nodes as usize
}

/// Distinct nodes of the plans made so far.
#[derive(Debug, Default)]
pub(super) struct LinearProgram {
    patterns: Vec<PlannedNode>,
    known: BTreeSet<PatternKey>,
}

/// Solution of the linear program.
#[derive(Debug)]
pub(super) struct Optimum {
    /// How many nodes of each pattern.
    counts: Vec<f64>,
    /// What a pod of each kind is worth, as a share of its first worth; those that no pattern has keep that.
    pub(super) times: Vec<f64>,
    /// Whether any pattern has pods of a kind.
    pub(super) is_covered: Vec<bool>,
    /// Cells computed.
    effort: usize,
}

impl Optimum {
    /// Patterns, those that it has most of first.
    fn most_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.counts.len()).collect();
        order.sort_by(|a, b| {
            let by_count = self.counts[*b].total_cmp(&self.counts[*a]);
            by_count.then(a.cmp(b))
        });
        order
    }
}

impl LinearProgram {
    /// With the distinct nodes of these plans.
    pub(super) fn of(plans: &[Vec<PlannedNode>]) -> Self {
        let mut program = Self::default();
        for plan in plans {
            program.add(plan);
        }
        program
    }

    /// Adds the nodes of a plan that are new.
    pub(super) fn add(&mut self, plan: &[PlannedNode]) {
        for node in plan {
            if self.known.insert(node.pattern_key()) {
                self.patterns.push(node.clone());
            }
        }
    }

    /// How many patterns there are.
    pub(super) fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Forgets patterns of more pods than remain of an item.
    pub(super) fn retain_within(&mut self, remaining: &[usize]) {
        let is_within = |pick: &ItemCount| pick.count <= remaining[pick.item];
        self.patterns
            .retain(|it| it.contents.picks.iter().all(is_within));
        self.known = self.patterns.iter().map(PlannedNode::pattern_key).collect();
    }

    /// The optimum over all patterns for so many pods of each item; `None` where there are too many of them, or kinds,
    /// for the time.
    fn optimum(
        &self,
        context: &PlanContext<'_>,
        columns: &ItemColumns,
        remaining: &[usize],
    ) -> Option<Optimum> {
        let (height, width) = (self.patterns.len(), columns.kinds.len());
        if (height + 1) * (width + 1) > CELLS_MAX {
            return None;
        }
        let mut table = SimplexTable::new(height, width);
        let mut is_covered = vec![false; width];
        for (row, node) in self.patterns.iter().enumerate() {
            for ItemCount { item, count } in &node.contents.picks {
                let worth = context.items[*item].worth * *count as f64;
                let kind = columns.kind_of(*item)?;
                *table.cell(row, kind) += worth;
                is_covered[kind] = true;
            }
            *table.cell(row, width) = context.cost(node);
        }
        for item in &columns.items {
            let kind = columns.kind_of(*item)?;
            if is_covered[kind] {
                let worth = context.items[*item].worth * remaining[*item] as f64;
                *table.cell(height, kind) -= worth;
            }
        }
        table.solve().then(|| table.answer(is_covered))
    }
}

impl Planner<'_> {
    /// A plan of whole nodes of the optimum, and of others for the pods left over.
    pub(super) fn plan_by_patterns(
        &mut self,
        unpacked: &mut Unpacked,
        plans: &[Vec<PlannedNode>],
        times: &mut [f64],
        interrupt: &Interrupt,
    ) -> Option<Vec<PlannedNode>> {
        // An optimum takes about as many patterns as there are kinds.
        if self.columns.kinds.len().pow(2) > CELLS_MAX {
            return None;
        }
        let program = LinearProgram::of(plans);
        let optimum = self.optimum(&program, &unpacked.remaining)?;
        approach(&optimum, times);
        self.columns.reprice(self.context, unpacked, times);
        let mut plan = self.take_whole(&program, &optimum, unpacked);
        let average = plans.first().map_or(0.0, |plan| self.average_cost(plan));
        plan.extend(self.plan_rest(unpacked, average, interrupt));
        Some(plan)
    }

    /// Nodes for what whole nodes of an optimum leave over, where a node costs so much on average.
    pub(super) fn plan_rest(
        &mut self,
        unpacked: &mut Unpacked,
        average: f64,
        interrupt: &Interrupt,
    ) -> Vec<PlannedNode> {
        let (share, size_weight) = REST;
        let heuristic = Heuristic {
            size_weight,
            charge: average * share,
            is_careful: true,
        };
        self.plan(unpacked, heuristic, interrupt)
    }

    /// The whole nodes of an optimum, those first that it has most of, as far as there are pods for them.
    pub(super) fn take_whole(
        &self,
        program: &LinearProgram,
        optimum: &Optimum,
        unpacked: &mut Unpacked,
    ) -> Vec<PlannedNode> {
        let mut plan = Vec::new();
        for at in optimum.most_first() {
            let count = whole(optimum.counts[at] + 1e-6);
            let node = &program.patterns[at];
            let taken = self.take_up_to(node, count, unpacked);
            plan.extend(std::iter::repeat_n(node.clone(), taken));
        }
        plan
    }

    /// One node of the pattern that an optimum has most of.
    pub(super) fn take_most(
        &self,
        program: &LinearProgram,
        optimum: &Optimum,
        unpacked: &mut Unpacked,
    ) -> Option<PlannedNode> {
        let at = *optimum.most_first().first()?;
        let node = &program.patterns[at];
        (self.take_up_to(node, 1, unpacked) == 1).then(|| node.clone())
    }

    /// Takes the pods of so many equal nodes, as far as there are any; how many nodes that makes.
    fn take_up_to(&self, node: &PlannedNode, count: usize, unpacked: &mut Unpacked) -> usize {
        let picks = &node.contents.picks;
        let most = picks
            .iter()
            .map(|pick| unpacked.remaining[pick.item] / pick.count);
        let count = count.min(most.min().unwrap_or(0));
        for pick in picks {
            self.columns.take(unpacked, pick.item, pick.count * count);
        }
        count
    }

    /// The optimum of a program for so many pods of each item, charged as work.
    pub(super) fn optimum(
        &mut self,
        program: &LinearProgram,
        remaining: &[usize],
    ) -> Option<Optimum> {
        let optimum = program.optimum(self.context, self.columns, remaining)?;
        self.effort += optimum.effort / CELLS_PER_SCORED;
        Some(optimum)
    }
}

/// Goes half the way to what pods are worth by the optimum.
fn approach(optimum: &Optimum, times: &mut [f64]) {
    for (times, of_optimum) in times.iter_mut().zip(&optimum.times) {
        *times = bounded_worth(f64::midpoint(*times, *of_optimum));
    }
}

/// A condensed simplex table. Rows stand for patterns and columns for kinds until they are exchanged; the last row is
/// the objective, the last column the bounds.
struct SimplexTable {
    height: usize,
    width: usize,
    cells: Vec<f64>,
    /// What a row stands for: a pattern, or from `height` on a kind.
    rows: Vec<usize>,
    columns: Vec<usize>,
    effort: usize,
}

impl SimplexTable {
    fn new(height: usize, width: usize) -> Self {
        Self {
            height,
            width,
            cells: vec![0.0; (height + 1) * (width + 1)],
            rows: (0..height).collect(),
            columns: (height..height + width).collect(),
            effort: 0,
        }
    }

    fn cell(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.cells[row * (self.width + 1) + column]
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.cells[row * (self.width + 1) + column]
    }

    /// Whether the best was found.
    fn solve(&mut self) -> bool {
        for _ in 0..8 * (self.width + 8) {
            let objective = |column: usize| self.at(self.height, column);
            let steepest = (0..self.width).min_by(|a, b| objective(*a).total_cmp(&objective(*b)));
            let Some(column) = steepest.filter(|column| objective(*column) < -NOTHING) else {
                return true;
            };
            let bound = |row: usize| self.at(row, self.width) / self.at(row, column);
            let tightest = (0..self.height)
                .filter(|row| self.at(*row, column) > NOTHING)
                .min_by(|a, b| bound(*a).total_cmp(&bound(*b)));
            let Some(row) = tightest else {
                return false;
            };
            self.exchange(row, column);
        }
        false
    }

    fn exchange(&mut self, row: usize, column: usize) {
        let stride = self.width + 1;
        let pivot = self.at(row, column);
        let mut line: Vec<f64> = self.cells[row * stride..(row + 1) * stride].to_vec();
        for cell in &mut line {
            *cell /= pivot;
        }
        line[column] = 1.0 / pivot;
        for (other, cells) in self.cells.chunks_exact_mut(stride).enumerate() {
            let times = cells[column];
            if other == row || times == 0.0 {
                continue;
            }
            cells[column] = 0.0;
            for (cell, of_line) in cells.iter_mut().zip(&line) {
                *cell -= times * of_line;
            }
        }
        self.cells[row * stride..(row + 1) * stride].copy_from_slice(&line);
        std::mem::swap(&mut self.rows[row], &mut self.columns[column]);
        self.effort += self.cells.len();
    }

    fn answer(&self, is_covered: Vec<bool>) -> Optimum {
        let mut counts = vec![0.0; self.height];
        let mut times = vec![0.0; self.width];
        for (row, stands_for) in self.rows.iter().enumerate() {
            if let Some(kind) = stands_for.checked_sub(self.height) {
                times[kind] = self.at(row, self.width);
            }
        }
        for (times, is_covered) in times.iter_mut().zip(&is_covered) {
            if !is_covered {
                *times = 1.0;
            }
        }
        for (column, stands_for) in self.columns.iter().enumerate() {
            if *stands_for < self.height {
                counts[*stands_for] = self.at(self.height, column).max(0.0);
            }
        }
        Optimum {
            counts,
            times,
            is_covered,
            effort: self.effort,
        }
    }
}
