//! The best combination of the nodes that several plans came up with: how many of each would cover all pods for least
//! if nodes could be bought in parts, and what each kind of pod is worth by that.
//!
//! The linear program of cutting stock, whose patterns are planned nodes. It is solved by the simplex method on its
//! dual, where buying nothing is a place to start from. Answers depend on the order of patterns and on nothing else.

use std::collections::BTreeSet;

use super::best_plan::WORTH_FACTORS;
use super::item_columns::{ItemColumns, Unpacked};
use super::plan::{Heuristic, Planner};
use super::plan_context::PlanContext;
use super::planned_node::{ItemCount, PatternKey, PlannedNode};
use crate::interrupt::Interrupt;

/// Cells of a table at most: greater ones cost more time than they save money.
const CELLS_MAX: usize = 32 << 10;
/// What counts as nothing.
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
struct LinearProgram {
    patterns: Vec<PlannedNode>,
    known: BTreeSet<PatternKey>,
}

/// The answer.
#[derive(Debug)]
struct Optimum {
    /// How many nodes of each pattern.
    counts: Vec<f64>,
    /// What a pod of each kind is worth, as a share of its first worth.
    times: Vec<f64>,
    /// Cells computed.
    effort: usize,
}

impl LinearProgram {
    /// Adds the nodes of a plan that are new.
    fn add(&mut self, plan: &[PlannedNode]) {
        for node in plan {
            if self.known.insert(node.pattern_key()) {
                self.patterns.push(node.clone());
            }
        }
    }

    /// The optimum over all patterns; `None` where there are too many of them, or kinds, for the time.
    fn optimum(&self, context: &PlanContext<'_>, columns: &ItemColumns) -> Option<Optimum> {
        let (height, width) = (self.patterns.len(), columns.kinds.len());
        if (height + 1) * (width + 1) > CELLS_MAX {
            return None;
        }
        let mut table = SimplexTable::new(height, width);
        for item in &columns.items {
            let of_item = &context.items[*item];
            *table.cell(height, columns.kind_of(*item)?) -= of_item.worth * of_item.count as f64;
        }
        for (row, node) in self.patterns.iter().enumerate() {
            for ItemCount { item, count } in &node.contents.picks {
                let worth = context.items[*item].worth * *count as f64;
                *table.cell(row, columns.kind_of(*item)?) += worth;
            }
            *table.cell(row, width) = context.cost(node);
        }
        table.solve().then(|| table.answer())
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
        let mut program = LinearProgram::default();
        for plan in plans {
            program.add(plan);
        }
        let optimum = program.optimum(self.context, self.columns)?;
        self.approach(&optimum, times);
        self.columns.reprice(self.context, unpacked, times);
        let mut order: Vec<usize> = (0..optimum.counts.len()).collect();
        order.sort_by(|a, b| {
            optimum.counts[*b]
                .total_cmp(&optimum.counts[*a])
                .then(a.cmp(b))
        });
        let mut plan = Vec::new();
        for at in order {
            let chosen = &program.patterns[at];
            let picks = &chosen.contents.picks;
            let most = picks
                .iter()
                .map(|pick| unpacked.remaining[pick.item] / pick.count);
            let times = whole(optimum.counts[at] + 1e-6).min(most.min().unwrap_or(0));
            for ItemCount { item, count } in picks {
                self.columns.take(unpacked, *item, count * times);
            }
            plan.extend(std::iter::repeat_n(chosen.clone(), times));
        }
        let (share, size_weight) = REST;
        let heuristic = Heuristic {
            size_weight,
            charge: plans.first().map_or(0.0, |plan| self.average_cost(plan)) * share,
            is_careful: true,
        };
        plan.extend(self.plan(unpacked, heuristic, interrupt));
        Some(plan)
    }

    /// Goes half the way to what pods are worth by the optimum.
    fn approach(&mut self, optimum: &Optimum, times: &mut [f64]) {
        self.effort += optimum.effort / CELLS_PER_SCORED;
        for (times, of_optimum) in times.iter_mut().zip(&optimum.times) {
            *times = f64::midpoint(*times, *of_optimum).clamp(WORTH_FACTORS.0, WORTH_FACTORS.1);
        }
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

    fn answer(&self) -> Optimum {
        let mut counts = vec![0.0; self.height];
        let mut times = vec![0.0; self.width];
        for (row, stands_for) in self.rows.iter().enumerate() {
            if let Some(kind) = stands_for.checked_sub(self.height) {
                times[kind] = self.at(row, self.width);
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
            effort: self.effort,
        }
    }
}
