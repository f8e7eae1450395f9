//! The nodes of a play and what is on them: which of them one more pod of a kind may go to, and which it goes to.
//!
//! Answers to `findNodesThatFitPod`, `prioritizeNodes` and `selectHost` of kube-scheduler, which draws lots where nodes
//! score the same; here the first of them is taken. It looks at every node, where kube-scheduler contents itself with
//! some of a hundred and more.

use std::sync::Arc;

use super::counters::{PlayRule, PlayTerm, PodCounters};
use super::kinds::{
    Columns, DaemonDemand, NodeDemand, PlayKind, PlayKindId, PlayKinds, are_free, unasked,
};
use super::profile::SchedulerProfile;
use super::scores::{
    ResourceUse, affinity_score, balanced_allocation, evenness, normalized, normalized_reverse,
    spread_cost, spread_score, spread_weight,
};
use crate::existing_node::ExistingNode;
use crate::pod::HostPort;
use crate::problem::Problem;

/// Says that a node is out of the question.
const OUT: i64 = -1;

#[derive(Debug)]
struct PlayNode {
    is_open: bool,
    allocatable: Vec<i64>,
    free: Vec<i64>,
    /// What pods that asked for nothing count for.
    unasked: Vec<i64>,
    ports: Vec<HostPort>,
}

/// Judgement of all nodes by a demand, whatever is on them.
#[derive(Debug)]
struct Standing {
    admits: Vec<bool>,
    preference: Vec<i64>,
    shuns: Vec<i64>,
    /// Whether the last two say more of one node than of another.
    is_choosy: bool,
}

/// Scores by resources of a kind, up to date with the first so many changes.
#[derive(Debug, Default)]
struct ResourceScores {
    of_node: Vec<i64>,
    seen: usize,
}

/// The nodes of a play, what is on them so far, and how they score for each kind of pod.
#[derive(Debug)]
pub(super) struct Field<'a> {
    profile: &'a SchedulerProfile,
    /// Numbers of the resources that are scored, with their weights.
    fit: Vec<(usize, i64)>,
    balanced: Vec<usize>,
    nodes: Vec<PlayNode>,
    kinds: &'a PlayKinds,
    counters: PodCounters,
    standings: Vec<Standing>,
    scores: Vec<ResourceScores>,
    /// Nodes in the order in which they changed.
    changes: Vec<usize>,
    /// Nodes scored so far.
    pub(super) effort: usize,
}

impl<'a> Field<'a> {
    /// The nodes as they are, all closed.
    pub(super) fn new(
        problem: &'a Problem,
        kinds: &'a PlayKinds,
        nodes: &'a [Arc<ExistingNode>],
        running: &[Vec<PlayKindId>],
        profile: &'a SchedulerProfile,
    ) -> Self {
        let plain: Vec<&ExistingNode> = nodes.iter().map(|it| &**it).collect();
        let mut counters = PodCounters::new(problem, kinds, &plain, profile);
        for (node, of_node) in running.iter().enumerate() {
            for kind in of_node {
                counters.count(*kind, node);
            }
        }
        let columns = &kinds.columns;
        let daemons = DaemonDemand::all(&problem.daemons);
        let scored = |(name, weight): &(String, i64)| Some((columns.of(name)?, *weight));
        let standing = |demand: &NodeDemand| Standing::new(demand, &plain);
        Self {
            profile,
            fit: profile.fit_resources.iter().filter_map(scored).collect(),
            balanced: profile
                .balanced_resources
                .iter()
                .filter_map(|it| columns.of(it))
                .collect(),
            nodes: plain
                .iter()
                .map(|it| PlayNode::new(it, &daemons, columns))
                .collect(),
            standings: kinds.demands.iter().map(standing).collect(),
            scores: kinds
                .all
                .iter()
                .map(|_| ResourceScores::default())
                .collect(),
            kinds,
            counters,
            changes: Vec::new(),
            effort: 0,
        }
    }

    pub(super) fn open(&mut self, node: usize) {
        self.nodes[node].is_open = true;
        self.changes.push(node);
    }

    /// Whether what keeps a pod of the kind off nodes is nothing but what these nodes have left.
    pub(super) fn stands_alone(&self, kind: PlayKindId) -> bool {
        !self.counters.is_bound[kind]
    }

    /// Binds a pod of the kind to the node that the scheduler chooses.
    pub(super) fn bind(&mut self, kind: PlayKindId) -> Option<usize> {
        let node = self.choose(kind)?;
        self.put(kind, node);
        Some(node)
    }

    fn put(&mut self, kind: PlayKindId, node: usize) {
        let it = &self.kinds.all[kind];
        let on = &mut self.nodes[node];
        for ((free, unasked), (more, more_unasked)) in on
            .free
            .iter_mut()
            .zip(&mut on.unasked)
            .zip(it.requests.iter().zip(&it.unasked))
        {
            *free -= more;
            *unasked += more_unasked;
        }
        on.ports.extend(it.shape.host_ports.iter().cloned());
        self.counters.count(kind, node);
        self.changes.push(node);
    }

    fn choose(&mut self, kind: PlayKindId) -> Option<usize> {
        self.refresh(kind);
        let standing = &self.standings[self.kinds.all[kind].demand];
        let scores = &self.scores[kind].of_node;
        if self.stands_alone(kind) && !standing.is_choosy {
            return best(scores.iter().copied().enumerate().filter(|it| it.1 > OUT));
        }
        let terms = self.counters.required(kind);
        let open: Vec<usize> = (0..scores.len())
            .filter(|node| scores[*node] > OUT && self.counters.let_in(kind, &terms, *node))
            .collect();
        self.effort += scores.len();
        let mut totals: Vec<i64> = open.iter().map(|node| scores[*node]).collect();
        self.add_standing(standing, &open, &mut totals);
        self.add_spread(kind, &open, &mut totals);
        self.add_affinity(kind, &open, &mut totals);
        best(open.iter().copied().zip(totals))
    }

    /// Scores anew what changed since the last time.
    fn refresh(&mut self, kind: PlayKindId) {
        let mut known = std::mem::take(&mut self.scores[kind]);
        let news = &self.changes[known.seen..];
        if known.of_node.is_empty() || news.len() >= self.nodes.len() {
            let all = 0..self.nodes.len();
            known.of_node = all.map(|node| self.resource_score(kind, node)).collect();
            self.effort += self.nodes.len();
        } else {
            for node in news {
                known.of_node[*node] = self.resource_score(kind, *node);
            }
            self.effort += news.len();
        }
        known.seen = self.changes.len();
        self.scores[kind] = known;
    }

    fn resource_score(&self, kind: PlayKindId, node: usize) -> i64 {
        let PlayKind {
            requests,
            unasked,
            demand,
            shape,
        } = &self.kinds.all[kind];
        let on = &self.nodes[node];
        let is_short = || {
            on.free
                .iter()
                .zip(requests)
                .any(|(free, want)| *want > 0 && want > free)
        };
        if !on.is_open
            || !self.standings[*demand].admits[node]
            || is_short()
            || !are_free(&shape.host_ports, &on.ports)
        {
            return OUT;
        }
        let used = |at: usize| on.allocatable[at] - on.free[at];
        let fit = self.fit.iter().map(|(at, weight)| ResourceUse {
            asked: used(*at) + on.unasked[*at] + requests[*at] + unasked[*at],
            allocatable: on.allocatable[*at],
            weight: *weight,
        });
        let fit = self.profile.fit.score(fit);
        // Pods that ask for nothing would all go to one node.
        let asks = self.balanced.iter().any(|at| requests[*at] > 0);
        let balance = if asks && self.profile.weights.balance != 0 {
            let all = |at: &usize| on.allocatable[*at];
            let with = evenness(
                self.balanced
                    .iter()
                    .map(|at| (used(*at) + requests[*at], all(at))),
            );
            let without = evenness(self.balanced.iter().map(|at| (used(*at), all(at))));
            balanced_allocation(with, without)
        } else {
            0
        };
        let weights = &self.profile.weights;
        weights.fit * fit + weights.balance * balance
    }

    fn add_standing(&self, standing: &Standing, open: &[usize], totals: &mut [i64]) {
        if !standing.is_choosy {
            return;
        }
        let most = |of: &[i64]| open.iter().map(|node| of[*node]).max().unwrap_or(0);
        let (preference, shuns) = (most(&standing.preference), most(&standing.shuns));
        let weights = &self.profile.weights;
        for (node, total) in open.iter().zip(totals) {
            let affinity = normalized(standing.preference[*node], preference);
            let taints = normalized_reverse(standing.shuns[*node], shuns);
            *total += weights.node_affinity * affinity + weights.taints * taints;
        }
    }

    fn add_spread(&self, kind: PlayKindId, open: &[usize], totals: &mut [i64]) {
        let terms = self.counters.terms[kind].iter();
        let soft: Vec<(&PlayTerm, i32, f64)> = terms
            .filter_map(|term| match term.rule {
                PlayRule::SoftSpread { max_skew } => {
                    let domains = self.domains_among(term.counter, open);
                    Some((term, max_skew, spread_weight(domains)))
                }
                PlayRule::Spread { .. }
                | PlayRule::Affinity
                | PlayRule::AntiAffinity
                | PlayRule::Preferred(_) => None,
            })
            .collect();
        if soft.is_empty() {
            return;
        }
        let cost = |node: &usize| {
            let parts = soft.iter().filter_map(|(term, max_skew, weight)| {
                let domain = self.counters.domain(term.counter, *node)?;
                let pods = self.counters.all[term.counter].selected[domain];
                Some(spread_cost(pods, *max_skew, *weight))
            });
            rounded(parts.sum())
        };
        let costs: Vec<i64> = open.iter().map(cost).collect();
        let least = costs.iter().copied().min().unwrap_or(0);
        let most = costs.iter().copied().max().unwrap_or(0);
        for (cost, total) in costs.into_iter().zip(totals) {
            *total += self.profile.weights.spread * spread_score(cost, least, most);
        }
    }

    /// How many domains of a counter the nodes are in.
    fn domains_among(&self, counter: usize, open: &[usize]) -> usize {
        let mut is_seen = vec![false; self.counters.all[counter].selected.len()];
        for domain in open
            .iter()
            .filter_map(|node| self.counters.domain(counter, *node))
        {
            is_seen[domain] = true;
        }
        is_seen.into_iter().filter(|it| *it).count()
    }

    fn add_affinity(&self, kind: PlayKindId, open: &[usize], totals: &mut [i64]) {
        let sum = |node: &usize| {
            let own = self.counters.terms[kind]
                .iter()
                .map(|term| match term.rule {
                    PlayRule::Preferred(weight) => {
                        let domain = self.counters.domain(term.counter, *node);
                        domain.map_or(0, |it| {
                            weight * self.counters.all[term.counter].selected[it]
                        })
                    }
                    PlayRule::Spread { .. }
                    | PlayRule::SoftSpread { .. }
                    | PlayRule::Affinity
                    | PlayRule::AntiAffinity => 0,
                });
            let of_others = self.counters.counted_by[kind].iter().map(|at| {
                let domain = self.counters.domain(*at, *node);
                domain.map_or(0, |it| self.counters.all[*at].pull[it])
            });
            own.sum::<i64>() + of_others.sum::<i64>()
        };
        let sums: Vec<i64> = open.iter().map(sum).collect();
        let least = sums.iter().copied().min().unwrap_or(0);
        let most = sums.iter().copied().max().unwrap_or(0);
        for (sum, total) in sums.into_iter().zip(totals) {
            *total += self.profile.weights.pod_affinity * affinity_score(sum, least, most);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "counts of pods by small factors"
)]
fn rounded(cost: f64) -> i64 {
    cost.round() as i64
}

/// The first of the best.
fn best(scores: impl Iterator<Item = (usize, i64)>) -> Option<usize> {
    let better = |best: Option<(usize, i64)>, next: (usize, i64)| match best {
        Some(best) if best.1 >= next.1 => Some(best),
        _ => Some(next),
    };
    scores.fold(None, better).map(|it| it.0)
}

impl PlayNode {
    fn new(node: &ExistingNode, daemons: &[DaemonDemand<'_>], columns: &Columns) -> Self {
        let allocatable = columns.amounts(&node.allocatable);
        let free = DaemonDemand::free(daemons, node, columns);
        let mut more = vec![0; free.len()];
        for pod in &node.pods {
            let of_pod = unasked(columns, &columns.amounts(&pod.shape.requests));
            more.iter_mut().zip(of_pod).for_each(|(sum, it)| *sum += it);
        }
        let ports = node
            .pods
            .iter()
            .flat_map(|it| it.shape.host_ports.iter().cloned());
        Self {
            is_open: false,
            allocatable,
            free,
            unasked: more,
            ports: ports.collect(),
        }
    }
}

impl Standing {
    fn new(demand: &NodeDemand, nodes: &[&ExistingNode]) -> Self {
        let preference: Vec<i64> = nodes.iter().map(|it| demand.preference(it)).collect();
        let shuns: Vec<i64> = nodes.iter().map(|it| demand.shuns(it)).collect();
        Self {
            admits: nodes
                .iter()
                .map(|it| it.is_schedulable && demand.admits(it))
                .collect(),
            is_choosy: preference.iter().chain(&shuns).any(|it| *it != 0),
            preference,
            shuns,
        }
    }
}
