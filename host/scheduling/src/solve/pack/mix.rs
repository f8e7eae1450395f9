//! The best mix of the nodes that several plans came up with: how many of each would cover all pods for least if nodes
//! could be bought in parts, and what each kind of pod is worth by that.
//!
//! A linear program, solved by the simplex method on its dual, where buying nothing is a place to start from. Answers
//! depend on the order of patterns and on nothing else.

use std::collections::BTreeSet;

use super::board::{Board, Left};
use super::ground::Ground;
use super::improve::TIMES;
use super::plan::{Manner, Planner};
use super::planned_node::Choice;
use crate::interrupt::Interrupt;

/// Cells of a table at most: greater ones cost more time than they save money.
const CELLS_MAX: usize = 32 << 10;
/// What counts as nothing.
const NOTHING: f64 = 1e-9;
/// The manner for what a mix of whole nodes leaves over: what a node costs beyond its price, as a share of the first
/// plan's average node, and the weight of size.
const REST: (f64, f64) = (0.03, 4.0);
/// How many cells of a table make as much work as a look at a kind.
const CELLS_PER_LOOK: usize = 8;

/// Pool, row and picks of a node: what makes two nodes of one pattern.
pub(crate) type Pattern = (usize, usize, Vec<(usize, usize)>);

/// The pattern of a node.
pub(crate) fn pattern(choice: &Choice) -> Pattern {
    (choice.pool, choice.row, choice.filling.picks.clone())
}

/// How many whole nodes there are in a number of nodes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of nodes is small, and a negative one is none"
)]
pub(crate) fn whole(nodes: f64) -> usize {
    nodes as usize
}

/// Distinct nodes of the plans made so far.
#[derive(Debug, Default)]
struct Mix {
    patterns: Vec<Choice>,
    known: BTreeSet<Pattern>,
}

/// The answer.
#[derive(Debug)]
struct Mixed {
    /// How many nodes of each pattern.
    counts: Vec<f64>,
    /// What a pod of each kind is worth, as a share of its first worth.
    times: Vec<f64>,
    /// Looks at a cell.
    effort: usize,
}

impl Mix {
    /// Adds the nodes of a plan that are new.
    fn add(&mut self, plan: &[Choice]) {
        for choice in plan {
            if self.known.insert(pattern(choice)) {
                self.patterns.push(choice.clone());
            }
        }
    }

    /// The best mix of all patterns; `None` where there are too many of them, or kinds, for the time.
    fn best(&self, ground: &Ground<'_>, board: &Board) -> Option<Mixed> {
        let (height, width) = (self.patterns.len(), board.kinds.len());
        if (height + 1) * (width + 1) > CELLS_MAX {
            return None;
        }
        let mut table = Table::new(height, width);
        for item in &board.items {
            let of_item = &ground.items[*item];
            *table.cell(height, board.kind_of(*item)?) -= of_item.worth * of_item.count as f64;
        }
        for (row, choice) in self.patterns.iter().enumerate() {
            for (item, count) in &choice.filling.picks {
                let worth = ground.items[*item].worth * *count as f64;
                *table.cell(row, board.kind_of(*item)?) += worth;
            }
            *table.cell(row, width) = ground.cost(choice);
        }
        table.solve().then(|| table.answer())
    }
}

impl Planner<'_> {
    /// A plan of whole nodes of the best mix, and of others for the pods left over.
    pub(crate) fn mixed(
        &mut self,
        left: &mut Left,
        plans: &[Vec<Choice>],
        (average, times): (f64, &mut [f64]),
        interrupt: &Interrupt,
    ) -> Option<Vec<Choice>> {
        // A mix takes about as many patterns as there are kinds.
        if self.board.kinds.len().pow(2) > CELLS_MAX {
            return None;
        }
        let mut mix = Mix::default();
        for plan in plans {
            mix.add(plan);
        }
        let mixed = mix.best(self.ground, self.board)?;
        self.approach(&mixed, times);
        self.board.reprice(self.ground, left, times);
        let mut order: Vec<usize> = (0..mixed.counts.len()).collect();
        order.sort_by(|a, b| mixed.counts[*b].total_cmp(&mixed.counts[*a]).then(a.cmp(b)));
        let mut plan = Vec::new();
        for at in order {
            let chosen = &mix.patterns[at];
            let picks = &chosen.filling.picks;
            let most = picks
                .iter()
                .map(|(item, count)| left.remaining[*item] / count);
            let times = whole(mixed.counts[at] + 1e-6).min(most.min().unwrap_or(0));
            for (item, count) in picks {
                self.board.take(left, *item, count * times);
            }
            plan.extend(std::iter::repeat_n(chosen.clone(), times));
        }
        let (share, size_weight) = REST;
        let manner = Manner {
            size_weight,
            charge: average * share,
            is_careful: true,
        };
        plan.extend(self.plan(left, manner, interrupt));
        Some(plan)
    }

    /// Goes half the way to what pods are worth by the best mix.
    fn approach(&mut self, mixed: &Mixed, times: &mut [f64]) {
        self.effort += mixed.effort / CELLS_PER_LOOK;
        for (times, of_mix) in times.iter_mut().zip(&mixed.times) {
            *times = f64::midpoint(*times, *of_mix).clamp(TIMES.0, TIMES.1);
        }
    }
}

/// A condensed simplex table. Rows stand for patterns and columns for kinds until they are exchanged; the last row is
/// the objective, the last column the bounds.
struct Table {
    height: usize,
    width: usize,
    cells: Vec<f64>,
    /// What a row stands for: a pattern, or from `height` on a kind.
    rows: Vec<usize>,
    columns: Vec<usize>,
    effort: usize,
}

impl Table {
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

    fn answer(&self) -> Mixed {
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
        Mixed {
            counts,
            times,
            effort: self.effort,
        }
    }
}
