//! Fewer nodes for the same pods: two nodes joined to one, the least dear joins first, as far as the bill allows.

use std::collections::BTreeMap;

use super::fill::holds;
use super::ground::Ground;
use super::mix::{Pattern, pattern, whole};
use super::plan::Planner;
use super::planned_node::{Choice, Filling};
use crate::solve::input::bitset::BitSet;
use crate::solve::input::vocabulary::{Amounts, add_times};

/// What a join that is tried costs, in looks at a kind.
const LOOKS_PER_JOIN: usize = 32;

/// A join that is possible.
struct Join {
    gain: f64,
    parts: (usize, usize),
    choice: Choice,
}

impl Planner<'_> {
    /// Joins nodes in pairs, the cheapest joins first, as long as the bill grows by no more than the slack. Nodes of
    /// one pattern are looked at once, and the budget is in looks at a kind.
    pub(crate) fn join_nodes(
        &mut self,
        plan: Vec<Choice>,
        mut slack: f64,
        budget: usize,
    ) -> Vec<Choice> {
        let mut known = Patterns::new(self.ground, plan);
        let mut fresh = 0;
        let end = self.effort + budget;
        while fresh < known.nodes.len() {
            // Joined nodes can be joined again, so no round may use up what is left.
            let half = self.effort + end.saturating_sub(self.effort) / 2;
            let mut joins = self.joins(&known, fresh, slack, half);
            joins.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.parts.cmp(&b.parts)));
            fresh = known.nodes.len();
            for Join {
                gain,
                parts: (a, b),
                choice,
            } in joins
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
                    known.add(self.ground, choice, times);
                }
            }
        }
        known.plan()
    }

    /// The joins of fresh patterns with all others, worst nodes first, while the budget lasts.
    fn joins(&mut self, known: &Patterns, fresh: usize, slack: f64, end: usize) -> Vec<Join> {
        let alive = |at: &usize| known.counts[*at] > 0;
        let mut order: Vec<usize> = (0..known.nodes.len()).filter(alive).collect();
        let ratio = |at: usize| known.nodes[at].choice.ratio;
        order.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)).then(a.cmp(b)));
        let mut joins = Vec::new();
        for (rank, a) in order.iter().enumerate() {
            for b in &order[rank..] {
                let is_new = *a >= fresh || *b >= fresh;
                if !is_new || (a == b && known.counts[*a] < 2) {
                    continue;
                }
                if self.effort >= end {
                    return joins;
                }
                self.effort += 1;
                let (a, b) = (*a.min(b), *a.max(b));
                if let Some((choice, gain)) = self.joined(&known.nodes[a], &known.nodes[b], -slack)
                {
                    joins.push(Join {
                        gain,
                        parts: (a, b),
                        choice,
                    });
                }
            }
        }
        joins
    }

    /// The cheapest node for the pods of both, and what it saves; `None` if that is less than wanted.
    fn joined(&mut self, a: &Node, b: &Node, least: f64) -> Option<(Choice, f64)> {
        let pool = a.choice.pool;
        let ground = self.ground;
        let table = &ground.pools[pool];
        if pool != b.choice.pool {
            return None;
        }
        let before = a.cost + b.cost;
        let most = before - least + 1e-9;
        let start = a.first.max(b.first);
        if table.rows[start].cost > most {
            return None;
        }
        let mut requests = a.requests.clone();
        add_times(&mut requests, &b.requests, 1);
        let known = [&a.rows, &b.rows].into_iter();
        let known = known.chain(&ground.buyable[pool]);
        self.effort += LOOKS_PER_JOIN;
        let row = table.first_fitting(known, &requests, (start, most))?;
        let cost = table.rows[row].cost;
        let gain = before - cost;
        let (of_a, of_b) = (&a.choice.filling, &b.choice.filling);
        let mut picks: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, count) in of_a.picks.iter().chain(&of_b.picks) {
            *picks.entry(*index).or_insert(0) += count;
        }
        let picks: Vec<(usize, usize)> = picks.into_iter().collect();
        let mut rows = a.rows.clone();
        rows.intersect(&b.rows);
        table.retain_fitting(&mut rows, &requests);
        if let Some(buyable) = &ground.buyable[pool] {
            rows.intersect(buyable);
        }
        if !ground.is_flexible((pool, row), &picks, &rows)
            || !holds(ground, (pool, row), &picks, self.sets())
        {
            return None;
        }
        let worth = of_a.worth + of_b.worth;
        let choice = Choice {
            pool,
            row,
            ratio: cost.max(1e-9) / worth.max(1e-12),
            filling: Filling { picks, worth },
        };
        Some((choice, gain))
    }
}

/// A plan's distinct nodes and how many there are of each.
#[derive(Default)]
struct Patterns {
    nodes: Vec<Node>,
    counts: Vec<usize>,
    positions: BTreeMap<Pattern, usize>,
}

impl Patterns {
    fn new(ground: &Ground<'_>, plan: Vec<Choice>) -> Self {
        let mut patterns = Self::default();
        for choice in plan {
            patterns.add(ground, choice, 1);
        }
        patterns
    }

    fn add(&mut self, ground: &Ground<'_>, choice: Choice, times: usize) {
        let next = self.nodes.len();
        let at = *self.positions.entry(pattern(&choice)).or_insert(next);
        if at == next {
            self.nodes.push(Node::new(ground, choice));
            self.counts.push(0);
        }
        self.counts[at] += times;
    }

    fn plan(self) -> Vec<Choice> {
        let nodes = self.nodes.into_iter().zip(self.counts);
        nodes
            .flat_map(|(node, count)| std::iter::repeat_n(node.choice, count))
            .collect()
    }
}

/// A planned node, and what is asked of it again and again.
struct Node {
    choice: Choice,
    cost: f64,
    requests: Amounts,
    /// The rows that hold its pods.
    rows: BitSet,
    /// The cheapest of them.
    first: usize,
}

impl Node {
    fn new(ground: &Ground<'_>, choice: Choice) -> Self {
        let (rows, requests) = ground.rows_left(choice.pool, &choice.filling.picks);
        Self {
            cost: ground.cost(&choice),
            first: rows.first().unwrap_or(0),
            requests,
            rows,
            choice,
        }
    }
}

/// How often a join may be made for what is to spare.
fn affordable(slack: f64, gain: f64) -> usize {
    if gain < 0.0 {
        whole(slack / -gain)
    } else {
        usize::MAX
    }
}
