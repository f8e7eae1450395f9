//! Better plans for the same pods: other heuristics, single pods exchanged, nodes merged.
//!
//! A change is kept only if it serves the goal: the least bill, and about that the fewest nodes. Effort is counted in
//! plans, never by a clock, so everything is deterministic.

use smallvec::SmallVec;

use super::item_columns::Unpacked;
use super::plan::{Heuristic, Planner};
use super::planned_node::PlannedNode;
use crate::interrupt::Interrupt;
use crate::problem::Options;
use crate::solve::input::pool_table::RowId;

/// The heuristic of a first plan, which no plan comes before: its charge is told in cores.
const FIRST: HeuristicWeights = HeuristicWeights::new(0.1, 2.0);
/// The heuristics of further plans, in the order in which they are tried; their charge is a share of the first plan's
/// average node. That there are seven instead of four brought 2,000 plain pods 180 nodes instead of 326 at about the
/// same bill.
const FURTHER: [HeuristicWeights; 7] = [
    HeuristicWeights::new(0.03, 0.75),
    HeuristicWeights::new(0.1, 8.0),
    HeuristicWeights::new(0.03, 4.0),
    HeuristicWeights::new(0.8, 8.0),
    HeuristicWeights::new(0.1, 4.0),
    HeuristicWeights::new(0.4, 8.0),
    HeuristicWeights::new(0.1, 0.75),
];
/// Work for each pod, in kinds scored for a node, after which no further plan is made. It stands for time, which must
/// not decide.
const EFFORT_PER_POD: usize = 150;
/// Fewer pods may take as much work as 2,000, some 8 ms of it: with all plans made, not the first two, few pods of many
/// kinds cost half a percent to one percent less on average, and plain pods take a sixth to a third fewer nodes.
const EFFORT_MIN: usize = 2000 * EFFORT_PER_POD;
/// The least that pods may come to be worth, as a share of what they are worth at first.
const WORTH_FACTOR_MIN: f64 = 0.5;
/// The most that they may come to be worth, likewise.
const WORTH_FACTOR_MAX: f64 = 2.0;

/// What makes one plan another than the next.
#[derive(Debug, Clone, Copy)]
struct HeuristicWeights {
    /// Charge on each node beyond its price.
    charge: f64,
    size_weight: f64,
}

impl HeuristicWeights {
    const fn new(charge: f64, size_weight: f64) -> Self {
        Self {
            charge,
            size_weight,
        }
    }
}

impl Planner<'_> {
    /// A plan for everything that is not packed yet: of several plans, the one with the fewest nodes among those that
    /// cost about as little as the cheapest.
    pub(super) fn best_plan(
        &mut self,
        unpacked: &mut Unpacked,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Vec<PlannedNode> {
        let all = unpacked.clone();
        let heuristic = self.first_heuristic();
        let mut plans = vec![self.plan(unpacked, heuristic, interrupt)];
        let unplaced = unpacked.remaining.clone();
        let average = self.average_cost(&plans[0]);
        let mut times = vec![1.0; self.columns.kinds.len()];
        let others = FURTHER.iter();
        for weights in others.take(options.tuning.plans_max.saturating_sub(1)) {
            let is_enough = plans.len() > 1 && self.has_tried_enough();
            if interrupt.is_tripped() || plans[0].len() < 2 || is_enough {
                break;
            }
            if let Some(last) = plans.last() {
                self.learn(last, &mut times);
            }
            unpacked.clone_from(&all);
            self.columns.reprice(self.context, unpacked, &times);
            let heuristic = Heuristic {
                size_weight: weights.size_weight,
                charge: average * weights.charge,
                is_careful: true,
            };
            let plan = self.plan(unpacked, heuristic, interrupt);
            if unpacked.remaining == unplaced {
                plans.push(plan);
            }
        }
        if plans.len() > 1 && !interrupt.is_tripped() {
            unpacked.clone_from(&all);
            let by_patterns = self.plan_by_patterns(unpacked, &plans, &mut times, interrupt);
            plans.extend(by_patterns.filter(|_| unpacked.remaining == unplaced));
            unpacked.clone_from(&all);
            let dived = self.dive(unpacked, &plans, interrupt);
            plans.extend(dived.filter(|_| unpacked.remaining == unplaced));
        }
        for plan in &mut plans {
            self.use_cheapest_rows(plan);
        }
        let bills: Vec<f64> = plans.iter().map(|plan| self.bill(plan)).collect();
        let least = bills.iter().copied().fold(f64::INFINITY, f64::min);
        let within = least * (1.0 + options.tuning.nodes_tolerance) + 1e-9;
        let best = (0..plans.len())
            .filter(|at| bills[*at] <= within)
            .min_by(|a, b| {
                let nodes = |at: usize| plans[at].len();
                nodes(*a)
                    .cmp(&nodes(*b))
                    .then_with(|| bills[*a].total_cmp(&bills[*b]))
            })
            .unwrap_or(0);
        let budget = share_of(self.effort, options.tuning.exchange_share);
        self.merge_nodes(plans.swap_remove(best), within - bills[best], budget)
    }

    /// Lets the pods of a kind be worth more where they ended on nodes that cost much for what their pods are worth,
    /// and less on others: the next plan finds better company for them while there is a choice.
    fn learn(&self, plan: &[PlannedNode], times: &mut [f64]) {
        let context = self.context;
        let mut paid = vec![(0.0, 0.0); times.len()];
        let mut all = (0.0, 0.0);
        for node in plan {
            let picks = node.contents.picks.iter();
            let worths = picks.map(|pick| {
                (
                    pick.item,
                    context.items[pick.item].worth * pick.count as f64,
                )
            });
            let worths: SmallVec<[(usize, f64); 8]> = worths.collect();
            let worth: f64 = worths.iter().map(|(_, worth)| worth).sum();
            let cost = context.cost(node);
            all = (all.0 + cost, all.1 + worth);
            for (item, part) in worths {
                if let Some(kind) = self.columns.kind_of(item) {
                    let (cost_so_far, worth_so_far) = paid[kind];
                    paid[kind] = (
                        cost_so_far + cost * part / worth.max(1e-12),
                        worth_so_far + part,
                    );
                }
            }
        }
        let usual = all.0 / all.1.max(1e-12);
        for (times, (cost, worth)) in times.iter_mut().zip(paid) {
            if cost > 0.0 && worth > 0.0 && usual > 0.0 {
                *times = bounded_worth(*times * (cost / worth / usual).sqrt());
            }
        }
    }

    /// Whether the items have had their share of work.
    fn has_tried_enough(&self) -> bool {
        let items = self.columns.items.iter();
        let pods: usize = items.map(|at| self.context.items[*at].count).sum();
        self.effort > (pods * EFFORT_PER_POD).max(EFFORT_MIN)
    }

    /// Makes each node the cheapest that holds its pods and leaves enough choice.
    fn use_cheapest_rows(&self, plan: &mut [PlannedNode]) {
        let context = self.context;
        let mut last: Option<(PlannedNode, usize)> = None;
        for node in plan {
            let is_same = |known: &PlannedNode| {
                known.row_id() == node.row_id() && known.contents.picks == node.contents.picks
            };
            if let Some((_, row)) = last.as_ref().filter(|(known, _)| is_same(known)) {
                node.row = *row;
                continue;
            }
            let planned = node.clone();
            let picks = &node.contents.picks;
            let (mut rows, _) = context.rows_left(node.pool, picks);
            if let Some(buyable) = &context.buyable[node.pool] {
                rows.intersect(buyable);
            }
            if let Some(row) = rows.first()
                && row < node.row
                && context.is_flexible(
                    RowId {
                        row,
                        ..node.row_id()
                    },
                    picks,
                    &rows,
                )
            {
                node.row = row;
            }
            last = Some((planned, node.row));
        }
    }

    /// The heuristic of a first plan, and of nodes chosen one by one.
    pub(super) fn first_heuristic(&self) -> Heuristic {
        let (mut worth, mut cores) = (0.0, 0.0);
        for at in &self.columns.items {
            let item = &self.context.items[*at];
            worth += item.worth * item.count as f64;
            cores += item.requests[0] as f64 / 1000.0 * item.count as f64;
        }
        Heuristic {
            size_weight: FIRST.size_weight,
            charge: FIRST.charge * worth / cores.max(0.001),
            is_careful: false,
        }
    }

    /// Average cost of a node of the plan.
    pub(super) fn average_cost(&self, plan: &[PlannedNode]) -> f64 {
        self.bill(plan) / plan.len().max(1) as f64
    }

    fn bill(&self, plan: &[PlannedNode]) -> f64 {
        plan.iter().map(|node| self.context.cost(node)).sum()
    }
}

/// Holds what pods came to be worth, as a share of what they are worth at first, to bounds.
pub(super) fn bounded_worth(times: f64) -> f64 {
    times.clamp(WORTH_FACTOR_MIN, WORTH_FACTOR_MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count is a count"
)]
fn share_of(effort: usize, share: f64) -> usize {
    (effort as f64 * share) as usize
}
