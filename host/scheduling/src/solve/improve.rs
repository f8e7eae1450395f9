//! Better plans for the same pods: other manners of filling, single pods exchanged, nodes joined.
//!
//! A change is kept only if it serves the goal: the least bill, and about that the fewest nodes. Effort is counted in
//! plans, never by a clock, so everything is deterministic.

use std::collections::{BTreeMap, BTreeSet};

use super::bitset::BitSet;
use super::board::Left;
use super::fill::{Filling, holds};
use super::plan::{Choice, Manner, Planner};
use super::vocabulary::{Amounts, add_times};
use crate::interrupt::Interrupt;

/// The manner of a first plan: what a node costs beyond its price is told in cores.
const FIRST: (f64, f64) = (0.1, 2.0);
/// The manner of a further plan: what a node costs beyond its price, as a share of the first plan's average node, and
/// the weight of size.
const FURTHER: [(f64, f64); 4] = [(0.03, 4.0), (0.03, 0.75), (0.1, 4.0), (0.1, 0.75)];
/// How much dearer than the cheapest plan one of fewer nodes may be.
const NODES_TOLERANCE: f64 = 1.008;
/// How many nodes, worst first, are offered for joining with another.
const MERGED_MAX: usize = 64;

impl Planner<'_> {
    /// A plan for everything left on the board: of so many plans, the one with the fewest nodes among those that cost
    /// about as little as the cheapest.
    pub(super) fn best_plan(
        &mut self,
        left: &mut Left,
        plans_max: usize,
        interrupt: &Interrupt,
    ) -> Vec<Choice> {
        let all = left.clone();
        let manner = self.first_manner();
        let mut plans = vec![self.plan(left, manner, interrupt)];
        let unplaced = left.remaining.clone();
        let average = self.bill(&plans[0]) / plans[0].len().max(1) as f64;
        let others = FURTHER.iter().take(plans_max.saturating_sub(1));
        for (share, size_weight) in others {
            if interrupt.is_tripped() || plans[0].len() < 2 {
                break;
            }
            left.clone_from(&all);
            let manner = Manner {
                size_weight: *size_weight,
                charge: average * share,
                is_careful: true,
            };
            let plan = self.plan(left, manner, interrupt);
            if left.remaining == unplaced {
                plans.push(plan);
            }
        }
        let bills: Vec<f64> = plans.iter().map(|plan| self.bill(plan)).collect();
        let least = bills.iter().copied().fold(f64::INFINITY, f64::min);
        let within = least * NODES_TOLERANCE + 1e-9;
        let best = (0..plans.len())
            .filter(|at| bills[*at] <= within)
            .min_by(|a, b| {
                let nodes = |at: usize| plans[at].len();
                nodes(*a)
                    .cmp(&nodes(*b))
                    .then_with(|| bills[*a].total_cmp(&bills[*b]))
            })
            .unwrap_or(0);
        self.merge_pairs(plans.swap_remove(best), within - bills[best])
    }

    /// The manner of a first plan, and of nodes chosen one by one.
    pub(super) fn first_manner(&self) -> Manner {
        let (mut worth, mut cores) = (0.0, 0.0);
        for at in &self.board.items {
            let item = &self.ground.items[*at];
            worth += item.worth * item.count as f64;
            cores += item.requests[0] as f64 / 1000.0 * item.count as f64;
        }
        let (charge, size_weight) = FIRST;
        Manner {
            size_weight,
            charge: charge * worth / cores.max(0.001),
            is_careful: false,
        }
    }

    /// Joins nodes in pairs where one node costs no more than the two and what is to spare.
    fn merge_pairs(&mut self, plan: Vec<Choice>, mut slack: f64) -> Vec<Choice> {
        let mut nodes: Vec<Option<Choice>> = plan.into_iter().map(Some).collect();
        let ground = self.ground;
        let mut rows: Vec<BitSet> = nodes
            .iter()
            .flatten()
            .map(|c| ground.rows_left(c.pool, &c.filling.picks))
            .collect();
        let ratio = |at: usize| nodes[at].as_ref().map_or(0.0, |c| c.ratio);
        let mut worst: Vec<usize> = (0..nodes.len()).collect();
        worst.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)).then(a.cmp(b)));
        worst.truncate(MERGED_MAX);
        let patterns = patterns(&nodes);
        // Pairs of the same patterns need no second look.
        let mut hopeless: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut is_joined = vec![false; nodes.len()];
        for at in worst {
            let mut best: Option<(usize, Choice, f64)> = None;
            for other in 0..nodes.len() {
                let (Some(a), Some(b)) = (&nodes[at], &nodes[other]) else {
                    continue;
                };
                let pair = (patterns[at], patterns[other]);
                let is_new = is_joined[at] || is_joined[other];
                if at == other || a.pool != b.pool || (!is_new && hopeless.contains(&pair)) {
                    continue;
                }
                let least = best.as_ref().map_or(-slack, |(.., gain)| gain + 1e-9);
                let found = if rows[at].intersects(&rows[other]) {
                    self.joined(a, b, [&rows[at], &rows[other]], least)
                } else {
                    None
                };
                match found {
                    Some((joined, gain)) => best = Some((other, joined, gain)),
                    None if !is_new => {
                        hopeless.insert(pair);
                    }
                    None => {}
                }
            }
            if let Some((other, joined, gain)) = best {
                slack += gain;
                rows[at] = self.ground.rows_left(joined.pool, &joined.filling.picks);
                nodes[at] = Some(joined);
                nodes[other] = None;
                is_joined[at] = true;
            }
        }
        nodes.into_iter().flatten().collect()
    }

    /// The cheapest node for the pods of both, and what it saves; `None` if that is less than wanted.
    fn joined(
        &mut self,
        a: &Choice,
        b: &Choice,
        [rows_a, rows_b]: [&BitSet; 2],
        least: f64,
    ) -> Option<(Choice, f64)> {
        let pool = a.pool;
        let ground = self.ground;
        let table = &ground.pools[pool];
        let mut rows = rows_a.clone();
        rows.intersect(rows_b);
        let mut requests: Amounts = smallvec::SmallVec::from_elem(0, ground.dimensions);
        for (index, count) in a.filling.picks.iter().chain(&b.filling.picks) {
            let count = i64::try_from(*count).unwrap_or(0);
            add_times(&mut requests, &ground.items[*index].requests, count);
        }
        table.retain_fitting(&mut rows, &requests);
        if let Some(buyable) = &ground.buyable[pool] {
            rows.intersect(buyable);
        }
        let row = rows.first()?;
        let cost = table.rows[row].cost;
        let gain = ground.cost(a) + ground.cost(b) - cost;
        if gain < least - 1e-9 {
            return None;
        }
        let mut picks: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, count) in a.filling.picks.iter().chain(&b.filling.picks) {
            *picks.entry(*index).or_insert(0) += count;
        }
        let picks: Vec<(usize, usize)> = picks.into_iter().collect();
        if !ground.is_flexible((pool, row), &picks, &rows)
            || !holds(ground, (pool, row), &picks, self.sets())
        {
            return None;
        }
        let worth = a.filling.worth + b.filling.worth;
        let ratio = cost.max(1e-9) / worth.max(1e-12);
        Some((
            Choice {
                pool,
                row,
                filling: Filling { picks, worth },
                ratio,
            },
            gain,
        ))
    }

    fn bill(&self, plan: &[Choice]) -> f64 {
        plan.iter().map(|choice| self.ground.cost(choice)).sum()
    }
}

/// The number of each node's pattern; nodes of one pattern hold the same pods.
fn patterns(nodes: &[Option<Choice>]) -> Vec<usize> {
    let mut known = BTreeMap::new();
    nodes
        .iter()
        .map(|node| {
            let Some(node) = node else { return usize::MAX };
            let next = known.len();
            let pattern = (node.pool, node.row, node.filling.picks.as_slice());
            *known.entry(pattern).or_insert(next)
        })
        .collect()
}
