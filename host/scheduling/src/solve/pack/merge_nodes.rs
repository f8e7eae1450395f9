//! Fewer nodes for the same pods: two nodes merged into one, the cheapest merges first, as far as the bill allows.

use std::collections::BTreeMap;

use super::fill::holds;
use super::linear_program::whole;
use super::plan::Planner;
use super::plan_context::PlanContext;
use super::planned_node::{Contents, ItemCount, PatternKey, PlannedNode};
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pool_table::RowId;
use crate::solve::input::vocabulary::{Amounts, add_times};

/// What a merge that is tried costs, in kinds scored.
const SCORED_PER_MERGE: usize = 32;

/// A merge that is possible.
struct Merge {
    gain: f64,
    parts: (usize, usize),
    node: PlannedNode,
}

impl Planner<'_> {
    /// Merges nodes in pairs, the cheapest merges first, as long as the bill grows by no more than the slack. Nodes of
    /// one pattern are looked at once, and the budget is in kinds scored.
    pub(super) fn merge_nodes(
        &mut self,
        plan: Vec<PlannedNode>,
        mut slack: f64,
        budget: usize,
    ) -> Vec<PlannedNode> {
        let mut known = NodePatterns::new(self.context, plan);
        let mut fresh = 0;
        let end = self.effort + budget;
        while fresh < known.patterns.len() {
            // Merged nodes can be merged again, so no round may use up what is left.
            let half = self.effort + end.saturating_sub(self.effort) / 2;
            let mut merges = self.merges(&known, fresh, slack, half);
            merges.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.parts.cmp(&b.parts)));
            fresh = known.patterns.len();
            for Merge {
                gain,
                parts: (a, b),
                node,
            } in merges
            {
                let most = if a == b {
                    known.counts[a] / 2
                } else {
                    known.counts[a].min(known.counts[b])
                };
                let times = most.min(affordable(slack, gain));
                if times > 0 {
                    slack += gain * times as f64;
                    known.counts[a] -= times;
                    known.counts[b] -= times;
                    known.add(self.context, node, times);
                }
            }
        }
        known.plan()
    }

    /// The merges of fresh patterns with all others, worst nodes first, while the budget lasts.
    fn merges(&mut self, known: &NodePatterns, fresh: usize, slack: f64, end: usize) -> Vec<Merge> {
        let alive = |at: &usize| known.counts[*at] > 0;
        let mut order: Vec<usize> = (0..known.patterns.len()).filter(alive).collect();
        let ratio = |at: usize| known.patterns[at].node.ratio;
        order.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)).then(a.cmp(b)));
        let mut merges = Vec::new();
        for (rank, a) in order.iter().enumerate() {
            for b in &order[rank..] {
                let is_new = *a >= fresh || *b >= fresh;
                if !is_new || (a == b && known.counts[*a] < 2) {
                    continue;
                }
                if self.effort >= end {
                    return merges;
                }
                self.effort += 1;
                let (a, b) = (*a.min(b), *a.max(b));
                if let Some((node, gain)) =
                    self.merged(&known.patterns[a], &known.patterns[b], -slack)
                {
                    merges.push(Merge {
                        gain,
                        parts: (a, b),
                        node,
                    });
                }
            }
        }
        merges
    }

    /// The cheapest node for the pods of both, and what it saves; `None` if that is less than wanted.
    fn merged(
        &mut self,
        a: &NodePattern,
        b: &NodePattern,
        least: f64,
    ) -> Option<(PlannedNode, f64)> {
        let pool = a.node.pool;
        let context = self.context;
        let table = &context.pools[pool];
        if pool != b.node.pool {
            return None;
        }
        let before = a.cost + b.cost;
        let most = before - least + 1e-9;
        let start = a.first.max(b.first);
        if table.rows[start].effective_cost_per_hour > most {
            return None;
        }
        let mut requests = a.requests.clone();
        add_times(&mut requests, &b.requests, 1);
        let known = [&a.rows, &b.rows].into_iter();
        let known = known.chain(&context.buyable[pool]);
        self.effort += SCORED_PER_MERGE;
        let row = table.first_fitting(known, &requests, start, most)?;
        let cost = table.rows[row].effective_cost_per_hour;
        let gain = before - cost;
        let (of_a, of_b) = (&a.node.contents, &b.node.contents);
        let mut picks: BTreeMap<usize, usize> = BTreeMap::new();
        for ItemCount { item, count } in of_a.picks.iter().chain(&of_b.picks) {
            *picks.entry(*item).or_insert(0) += count;
        }
        let picks = picks.into_iter();
        let picks: Vec<ItemCount> = picks
            .map(|(item, count)| ItemCount { item, count })
            .collect();
        let mut rows = a.rows.clone();
        rows.intersect(&b.rows);
        table.retain_fitting(&mut rows, &requests);
        if let Some(buyable) = &context.buyable[pool] {
            rows.intersect(buyable);
        }
        let row_id = RowId { pool, row };
        if !context.is_flexible(row_id, &picks, &rows)
            || !holds(context, row_id, &picks, self.sets())
        {
            return None;
        }
        let worth = of_a.worth + of_b.worth;
        let node = PlannedNode {
            pool,
            row,
            ratio: cost.max(1e-9) / worth.max(1e-12),
            contents: Contents { picks, worth },
        };
        Some((node, gain))
    }
}

/// A plan's distinct nodes and how many there are of each.
#[derive(Default)]
struct NodePatterns {
    patterns: Vec<NodePattern>,
    counts: Vec<usize>,
    positions: BTreeMap<PatternKey, usize>,
}

impl NodePatterns {
    fn new(context: &PlanContext<'_>, plan: Vec<PlannedNode>) -> Self {
        let mut patterns = Self::default();
        for node in plan {
            patterns.add(context, node, 1);
        }
        patterns
    }

    fn add(&mut self, context: &PlanContext<'_>, node: PlannedNode, times: usize) {
        let next = self.patterns.len();
        let at = *self.positions.entry(node.pattern_key()).or_insert(next);
        if at == next {
            self.patterns.push(NodePattern::new(context, node));
            self.counts.push(0);
        }
        self.counts[at] += times;
    }

    fn plan(self) -> Vec<PlannedNode> {
        let patterns = self.patterns.into_iter().zip(self.counts);
        patterns
            .flat_map(|(pattern, count)| std::iter::repeat_n(pattern.node, count))
            .collect()
    }
}

/// A planned node, and what is asked of it again and again.
struct NodePattern {
    node: PlannedNode,
    cost: f64,
    requests: Amounts,
    /// The rows that hold its pods.
    rows: BitSet,
    /// The cheapest of them.
    first: usize,
}

impl NodePattern {
    fn new(context: &PlanContext<'_>, node: PlannedNode) -> Self {
        let (rows, requests) = context.rows_left(node.pool, &node.contents.picks);
        Self {
            cost: context.cost(&node),
            first: rows.first().unwrap_or(0),
            requests,
            rows,
            node,
        }
    }
}

/// How often a merge may be made for what is to spare.
fn affordable(slack: f64, gain: f64) -> usize {
    if gain < 0.0 {
        whole(slack / -gain)
    } else {
        usize::MAX
    }
}
