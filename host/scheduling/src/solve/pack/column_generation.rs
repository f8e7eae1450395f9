//! Plans by column generation: nodes are made for the prices that the linear program puts on pods until none lowers its
//! optimum; its whole nodes are taken, or else the one it has most of; then again for the pods that are left.
//!
//! That is cutting stock after Gilmore and Gomory (1961), with a dive to whole numbers. It finds what pods of few kinds
//! are best packed in, where greedy plans never come upon; of many kinds there is no time for it.

use super::item_columns::Unpacked;
use super::linear_program::{LinearProgram, Optimum};
use super::plan::{Heuristic, NodeSeed, Planner, Shortlist};
use super::planned_node::PlannedNode;
use crate::interrupt::Interrupt;

/// Work up to which nodes are made for prices, in kinds scored: some milliseconds.
const EFFORT_MAX: usize = 300_000;
/// By what share a new node must undercut what its pods cost so far.
const GAIN_MIN: f64 = 1e-6;
/// How nodes are made for prices.
const FOR_PRICES: Heuristic = Heuristic {
    size_weight: 4.0,
    charge: 0.0,
    is_careful: true,
};

/// Nodes made so far, and where to look for more.
struct Generation<'p, 'a> {
    planner: &'p mut Planner<'a>,
    program: LinearProgram,
    /// The offerings that did best for each kind.
    shortlists: Vec<Shortlist>,
}

impl Planner<'_> {
    /// A plan for everything that is not packed yet, from the nodes of other plans and new ones; none where it would
    /// take too long.
    pub(super) fn dive(
        &mut self,
        unpacked: &mut Unpacked,
        plans: &[Vec<PlannedNode>],
        interrupt: &Interrupt,
    ) -> Option<Vec<PlannedNode>> {
        if self.effort >= EFFORT_MAX {
            return None;
        }
        let mut generation = Generation::new(self, plans);
        let mut plan = Vec::new();
        while !interrupt.is_tripped() {
            let taken = generation.take(unpacked)?;
            if taken.is_empty() {
                break;
            }
            plan.extend(taken);
        }
        plan.extend(self.plan_rest(unpacked, self.average_cost(&plan), interrupt));
        Some(plan)
    }
}

impl<'p, 'a> Generation<'p, 'a> {
    fn new(planner: &'p mut Planner<'a>, plans: &[Vec<PlannedNode>]) -> Self {
        let kinds = planner.columns.kinds.iter();
        Self {
            shortlists: kinds.map(|_| Shortlist::default()).collect(),
            planner,
            program: LinearProgram::of(plans),
        }
    }

    /// Takes the whole nodes of the optimum for the pods that are left, or else the one it has most of.
    fn take(&mut self, unpacked: &mut Unpacked) -> Option<Vec<PlannedNode>> {
        self.program.retain_within(&unpacked.remaining);
        let optimum = self.optimum(unpacked)?;
        let whole = self.planner.take_whole(&self.program, &optimum, unpacked);
        if !whole.is_empty() {
            return Some(whole);
        }
        let most = self.planner.take_most(&self.program, &optimum, unpacked);
        Some(most.into_iter().collect())
    }

    /// The optimum, once no node that is made for its prices lowers it or the time is up.
    fn optimum(&mut self, unpacked: &mut Unpacked) -> Option<Optimum> {
        loop {
            let planner = &mut *self.planner;
            let optimum = planner.optimum(&self.program, &unpacked.remaining)?;
            let (context, columns) = (planner.context, planner.columns);
            columns.reprice(context, unpacked, &optimum.times);
            let has_time = planner.effort < EFFORT_MAX;
            if !has_time
                || !(self.grow(&optimum, unpacked, false) || self.grow(&optimum, unpacked, true))
            {
                return Some(optimum);
            }
        }
    }

    /// Adds the best node for each kind where it undercuts the prices, of the offerings that did best before or of
    /// all; whether there was any.
    fn grow(&mut self, optimum: &Optimum, unpacked: &mut Unpacked, tries_all: bool) -> bool {
        let known = self.program.len();
        for (kind, shortlist) in self.shortlists.iter_mut().enumerate() {
            let columns = self.planner.columns;
            let items = &columns.items[columns.kinds[kind].items.clone()];
            let left = items.iter().find(|item| unpacked.remaining[**item] > 0);
            let Some(item) = left.copied() else {
                continue;
            };
            let heuristic = FOR_PRICES;
            let seed = NodeSeed { item, heuristic };
            let found = if tries_all {
                let found = self.planner.best_of_all(unpacked, seed);
                found.map(|(node, rows)| {
                    *shortlist = rows;
                    node
                })
            } else {
                let found = self.planner.best_of(unpacked, seed, &shortlist.rows);
                found.map(|(node, _)| node)
            };
            let gains =
                |node: &PlannedNode| !optimum.is_covered[kind] || node.ratio < 1.0 - GAIN_MIN;
            self.program.add(found.filter(gains).as_slice());
        }
        self.program.len() > known
    }
}
