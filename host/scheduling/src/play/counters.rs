//! Pods of a play counted where terms look at them: topology spread and pod (anti-)affinity, required and preferred.
//!
//! Each term is one counter whoever has it, and is asked once for each set of labels.

use std::collections::BTreeMap;

use apis::labels;

use super::kinds::{PlayKind, PlayKindId, PlayKinds};
use super::profile::SchedulerProfile;
use crate::existing_node::ExistingNode;
use crate::pod::{AffinityTerm, PodShape, TopologySpread};
use crate::pod_selection::PodSelection;
use crate::problem::Problem;

/// Greatest difference of the scheduler's own spread over hosts, and over zones.
const DEFAULT_SKEWS: [(&str, i32); 2] = [(labels::HOSTNAME, 3), (labels::TOPOLOGY_ZONE, 5)];

/// Effect of a term on its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlayRule {
    Spread {
        max_skew: i64,
        min_domains: usize,
    },
    /// A spread that only scores.
    SoftSpread {
        max_skew: i32,
    },
    Affinity,
    AntiAffinity,
    /// Weight of a preferred term, less than nothing for one that keeps away.
    Preferred(i64),
}

/// A term of a kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlayTerm {
    /// Number of its counter.
    pub(super) counter: usize,
    pub(super) rule: PlayRule,
    pub(super) selects_self: bool,
}

/// A term that must be met, and what a spread measures from at the moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequiredTerm {
    term: PlayTerm,
    least: i64,
}

/// Whom a counter counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Selected(PodSelection),
    /// Those of a controller, by its uid.
    Owned(String),
}

/// What makes a counter another one: where it counts, whom, and on which nodes (a [`super::kinds::NodeDemand`] and
/// whether its selector and its tolerations matter).
type CounterKey = (usize, Counted, Option<(usize, bool, bool)>);

/// Pods counted by domain of one topology key.
#[derive(Debug, Clone)]
pub(super) struct DomainCounter {
    /// Number of the key.
    pub(super) key: usize,
    pub(super) selected: Vec<i64>,
    pub(super) total: i64,
    /// Owners of a required anti-affinity term.
    pub(super) repelling: Vec<i64>,
    /// What preferred terms of pods that are there say to those that the term selects.
    pub(super) pull: Vec<i64>,
    /// Domains that count towards the emptiest.
    pub(super) is_domain: Vec<bool>,
    /// Nodes on which pods are not counted.
    is_left_out: Vec<bool>,
}

/// What the terms of kinds come to.
#[derive(Debug, Clone, Default)]
pub(super) struct PodCounters {
    pub(super) all: Vec<DomainCounter>,
    /// Domain of each node by key.
    pub(super) domains: Vec<Vec<Option<usize>>>,
    /// Terms of each kind.
    pub(super) terms: Vec<Vec<PlayTerm>>,
    /// Counters that count each kind.
    pub(super) counted_by: Vec<Vec<usize>>,
    /// Whether a kind must be asked for more than its resources.
    pub(super) is_bound: Vec<bool>,
}

/// Counters while terms are being told apart.
struct TermRegistry<'a> {
    problem: &'a Problem,
    keys: Vec<String>,
    numbers: BTreeMap<CounterKey, usize>,
    known: Vec<CounterKey>,
}

impl Counted {
    fn counts(&self, shape: &PodShape) -> bool {
        match self {
            Self::Selected(selection) => selection.selects(&shape.namespace, &shape.labels),
            Self::Owned(uid) => shape.owner.as_ref().is_some_and(|it| it.uid == *uid),
        }
    }
}

impl TermRegistry<'_> {
    fn counter(
        &mut self,
        key: &str,
        counted: Counted,
        of_nodes: Option<(usize, bool, bool)>,
    ) -> usize {
        let at = self
            .keys
            .iter()
            .position(|it| it == key)
            .unwrap_or_else(|| {
                self.keys.push(key.to_owned());
                self.keys.len() - 1
            });
        let key = (at, counted, of_nodes);
        let next = self.known.len();
        let number = *self.numbers.entry(key.clone()).or_insert(next);
        if number == next {
            self.known.push(key);
        }
        number
    }

    fn spread(&mut self, kind: &PlayKind, spread: &TopologySpread) -> PlayTerm {
        let selection = PodSelection::of_spread(spread, &kind.shape.namespace);
        let counted = Counted::Selected(selection);
        let selects_self = counted.counts(&kind.shape);
        let of_nodes = (
            kind.demand,
            spread.honors_node_affinity,
            spread.honors_node_taints,
        );
        let max_skew = spread.max_skew;
        PlayTerm {
            counter: self.counter(&spread.topology_key, counted, Some(of_nodes)),
            rule: if spread.is_required {
                PlayRule::Spread {
                    max_skew: i64::from(max_skew),
                    min_domains: usize::try_from(spread.min_domains.unwrap_or(1)).unwrap_or(1),
                }
            } else {
                PlayRule::SoftSpread { max_skew }
            },
            selects_self,
        }
    }

    fn affinity(&mut self, shape: &PodShape, term: &AffinityTerm, rule: PlayRule) -> PlayTerm {
        let all = &self.problem.namespaces;
        let selection = PodSelection::of_affinity(term, &shape.namespace, all);
        let counted = Counted::Selected(selection);
        PlayTerm {
            selects_self: counted.counts(shape),
            counter: self.counter(&term.topology_key, counted, None),
            rule,
        }
    }

    fn terms(&mut self, kind: &PlayKind, profile: &SchedulerProfile) -> Vec<PlayTerm> {
        let shape = &kind.shape;
        let spread = shape.topology_spread.iter();
        let mut terms: Vec<PlayTerm> = spread.map(|it| self.spread(kind, it)).collect();
        let owner = shape.owner.as_ref().filter(|it| !it.uid.is_empty());
        if let Some(owner) = owner
            && profile.spreads_by_default
            && terms.is_empty()
        {
            let of_nodes = Some((kind.demand, true, false));
            terms.extend(DEFAULT_SKEWS.map(|(key, max_skew)| PlayTerm {
                counter: self.counter(key, Counted::Owned(owner.uid.clone()), of_nodes),
                rule: PlayRule::SoftSpread { max_skew },
                selects_self: true,
            }));
        }
        for term in &shape.pod_affinity {
            terms.push(self.affinity(shape, term, PlayRule::Affinity));
        }
        for term in &shape.pod_anti_affinity {
            terms.push(self.affinity(shape, term, PlayRule::AntiAffinity));
        }
        for it in &shape.preferred_pod_affinity {
            let weight = PlayRule::Preferred(i64::from(it.weight));
            terms.push(self.affinity(shape, &it.value, weight));
        }
        for it in &shape.preferred_pod_anti_affinity {
            let weight = PlayRule::Preferred(-i64::from(it.weight));
            terms.push(self.affinity(shape, &it.value, weight));
        }
        terms
    }
}

impl PodCounters {
    /// The counters of all terms of these kinds, with nobody counted.
    pub(super) fn new(
        problem: &Problem,
        kinds: &PlayKinds,
        nodes: &[&ExistingNode],
        profile: &SchedulerProfile,
    ) -> Self {
        let mut registry = TermRegistry {
            problem,
            keys: Vec::new(),
            numbers: BTreeMap::new(),
            known: Vec::new(),
        };
        let terms = kinds.all.iter().map(|kind| registry.terms(kind, profile));
        let terms: Vec<Vec<PlayTerm>> = terms.collect();
        let domains: Vec<Vec<Option<usize>>> = registry
            .keys
            .iter()
            .map(|key| domains(key, nodes))
            .collect();
        let known = registry.known.iter();
        let all = known.map(|key| DomainCounter::new(key, &domains[key.0], kinds, nodes));
        // Kinds of equal labels are asked once.
        let mut asked: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let mut counted_by = Vec::with_capacity(kinds.all.len());
        for kind in &kinds.all {
            let shape = &kind.shape;
            let uid = shape.owner.as_ref().map(|it| it.uid.as_str());
            let counters = asked.entry((&shape.namespace, &shape.labels, uid));
            let counters = counters.or_insert_with(|| {
                let known = registry.known.iter().enumerate();
                let known = known.filter(|(_, key)| key.1.counts(shape));
                known.map(|(at, _)| at).collect()
            });
            counted_by.push(counters.clone());
        }
        let mut counters = Self {
            all: all.collect(),
            domains,
            is_bound: Vec::new(),
            terms,
            counted_by,
        };
        let mut speaks = vec![false; counters.all.len()];
        for term in counters.terms.iter().flatten() {
            speaks[term.counter] |= match term.rule {
                PlayRule::Affinity | PlayRule::AntiAffinity | PlayRule::Preferred(_) => true,
                PlayRule::Spread { .. } | PlayRule::SoftSpread { .. } => false,
            };
        }
        counters.is_bound = PlayKindId::all(kinds.all.len())
            .map(|kind| {
                !counters.terms[kind].is_empty()
                    || counters.counted_by[kind].iter().any(|at| speaks[*at])
            })
            .collect();
        counters
    }

    /// The domain of a node for a counter.
    pub(super) fn domain(&self, counter: usize, node: usize) -> Option<usize> {
        self.domains[self.all[counter].key][node]
    }

    /// A pod of the kind came to the node.
    pub(super) fn count(&mut self, kind: PlayKindId, node: usize) {
        self.add(kind, node, 1);
    }

    /// A pod of the kind is not on the node after all.
    pub(super) fn uncount(&mut self, kind: PlayKindId, node: usize) {
        self.add(kind, node, -1);
    }

    fn add(&mut self, kind: PlayKindId, node: usize, pods: i64) {
        for at in &self.counted_by[kind] {
            let counter = &mut self.all[*at];
            if let Some(domain) =
                self.domains[counter.key][node].filter(|_| !counter.is_left_out[node])
            {
                counter.selected[domain] += pods;
                counter.total += pods;
            }
        }
        for term in &self.terms[kind] {
            let counter = &mut self.all[term.counter];
            let Some(domain) = self.domains[counter.key][node] else {
                continue;
            };
            match term.rule {
                PlayRule::AntiAffinity => counter.repelling[domain] += pods,
                // The weight that a required term has in others' scores.
                PlayRule::Affinity => counter.pull[domain] += pods,
                PlayRule::Preferred(weight) => counter.pull[domain] += weight * pods,
                PlayRule::Spread { .. } | PlayRule::SoftSpread { .. } => {}
            }
        }
    }

    /// Required terms of a kind, each with what a spread measures from.
    pub(super) fn required(&self, kind: PlayKindId) -> Vec<RequiredTerm> {
        let terms = self.terms[kind].iter();
        let required = terms.filter_map(|term| {
            let least = match term.rule {
                PlayRule::Spread { min_domains, .. } => self.all[term.counter].least(min_domains),
                PlayRule::Affinity | PlayRule::AntiAffinity => 0,
                PlayRule::SoftSpread { .. } | PlayRule::Preferred(_) => return None,
            };
            Some(RequiredTerm { term: *term, least })
        });
        required.collect()
    }

    /// Whether those that are counted let one more of the kind, of these terms, onto the node.
    pub(super) fn let_in(&self, kind: PlayKindId, terms: &[RequiredTerm], node: usize) -> bool {
        let mut counted_by = self.counted_by[kind].iter();
        let is_repelled = counted_by.any(|at| {
            let domain = self.domain(*at, node);
            domain.is_some_and(|it| self.all[*at].repelling[it] > 0)
        });
        let admits = |RequiredTerm { term, least }: &RequiredTerm| {
            let counter = &self.all[term.counter];
            let domain = self.domain(term.counter, node);
            let here = domain.map(|it| counter.selected[it]);
            let own = i64::from(term.selects_self);
            match (term.rule, here) {
                (PlayRule::Spread { max_skew, .. }, Some(here)) => here + own - least <= max_skew,
                // The first of a group that asks for its own company may start it anywhere.
                (PlayRule::Affinity, Some(here)) => {
                    here > 0 || (term.selects_self && counter.total == 0)
                }
                (PlayRule::AntiAffinity, here) => here.unwrap_or(0) == 0,
                (PlayRule::Spread { .. } | PlayRule::Affinity, None) => false,
                (PlayRule::SoftSpread { .. } | PlayRule::Preferred(_), _) => true,
            }
        };
        !is_repelled && terms.iter().all(admits)
    }

    /// Whether pods of the kind must spread, so that what keeps one off a node passes as others come.
    pub(super) fn must_spread(&self, kind: PlayKindId) -> bool {
        let mut terms = self.terms[kind].iter();
        terms.any(|it| matches!(it.rule, PlayRule::Spread { .. }))
    }

    /// How many pods there are too many where required spreads of the kind look, for one more on the node.
    pub(super) fn too_many(&self, kind: PlayKindId, node: usize) -> i64 {
        let over = |RequiredTerm { term, least }: RequiredTerm| {
            let PlayRule::Spread { max_skew, .. } = term.rule else {
                return 0;
            };
            let here = self.domain(term.counter, node);
            let here = here.map_or(0, |it| self.all[term.counter].selected[it]);
            (here + i64::from(term.selects_self) - least - max_skew).max(0)
        };
        self.required(kind).into_iter().map(over).sum()
    }

    /// Whether pods of both kinds must spread over the same domains, and count for each other there.
    pub(super) fn are_rivals(&self, a: PlayKindId, b: PlayKindId) -> bool {
        let counts = |kind: PlayKindId, at: usize| self.counted_by[kind].contains(&at);
        let spread = |kind: PlayKindId| {
            let terms = self.terms[kind].iter();
            terms.filter(|it| matches!(it.rule, PlayRule::Spread { .. }))
        };
        spread(a).any(|it| {
            let at = it.counter;
            counts(a, at) && counts(b, at) && spread(b).any(|it| it.counter == at)
        })
    }

    /// Whether pods of the other kind count where a required term of this one looks.
    pub(super) fn looks_at(&self, kind: PlayKindId, other: PlayKindId) -> bool {
        let mut required = self.required(kind).into_iter();
        required.any(|it| self.counted_by[other].contains(&it.term.counter))
    }

    /// The counters of required terms that pods of each kind have, or that count them.
    pub(super) fn seen_by(&self) -> Vec<Vec<usize>> {
        let is_required = |it: &&PlayTerm| match it.rule {
            PlayRule::Spread { .. } | PlayRule::Affinity | PlayRule::AntiAffinity => true,
            PlayRule::SoftSpread { .. } | PlayRule::Preferred(_) => false,
        };
        let mut asked = vec![false; self.all.len()];
        for term in self.terms.iter().flatten().filter(is_required) {
            asked[term.counter] = true;
        }
        let both = self.terms.iter().zip(&self.counted_by);
        let seen = both.map(|(own, counted_by)| {
            let own = own.iter().filter(is_required).map(|it| it.counter);
            let others = counted_by.iter().copied().filter(|it| asked[*it]);
            own.chain(others).collect()
        });
        seen.collect()
    }

    /// Whether both nodes are the same to a counter.
    pub(super) fn is_all_one(&self, counter: usize, a: usize, b: usize) -> bool {
        let left_out = &self.all[counter].is_left_out;
        self.domain(counter, a) == self.domain(counter, b) && left_out[a] == left_out[b]
    }

    /// Whether it is all the same to pods of the kind, and to others, where they are.
    pub(super) fn is_free(&self, kind: PlayKindId) -> bool {
        let is_soft = |term: &PlayTerm| matches!(term.rule, PlayRule::SoftSpread { .. });
        let terms = self.terms.iter().flatten();
        let mut speaking =
            terms.filter(|it| !matches!(it.rule, PlayRule::Spread { .. }) && !is_soft(it));
        self.terms[kind].iter().all(is_soft)
            && !speaking.any(|term| self.counted_by[kind].contains(&term.counter))
    }

    /// Whether pods of the kind may be what keeps others off, or lets them in, by affinity.
    pub(super) fn is_company(&self, kind: PlayKindId) -> bool {
        let terms = self.terms.iter().flatten();
        let mut affine = terms.filter(|it| it.rule == PlayRule::Affinity);
        affine.any(|term| self.counted_by[kind].contains(&term.counter))
    }
}

impl DomainCounter {
    fn new(
        (key, _, of_nodes): &CounterKey,
        domains: &[Option<usize>],
        kinds: &PlayKinds,
        nodes: &[&ExistingNode],
    ) -> Self {
        let count = domains.iter().flatten().max().map_or(0, |most| most + 1);
        let is_left_out = |node: &ExistingNode| {
            of_nodes.is_some_and(|(demand, honors_affinity, honors_taints)| {
                let demand = &kinds.demands[demand];
                (honors_affinity && !demand.selects(node))
                    || (honors_taints && !demand.tolerates(node))
            })
        };
        let is_left_out: Vec<bool> = nodes.iter().map(|it| is_left_out(it)).collect();
        let mut is_domain = vec![false; count];
        for (domain, _) in domains.iter().zip(&is_left_out).filter(|(_, out)| !**out) {
            if let Some(domain) = domain {
                is_domain[*domain] = true;
            }
        }
        Self {
            key: *key,
            selected: vec![0; count],
            total: 0,
            repelling: vec![0; count],
            pull: vec![0; count],
            is_domain,
            is_left_out,
        }
    }

    /// What a spread measures from.
    pub(super) fn least(&self, min_domains: usize) -> i64 {
        let counts = self.selected.iter().zip(&self.is_domain);
        let mut counts = counts.filter(|(_, is)| **is).map(|(count, _)| *count);
        let Some(first) = counts.next() else {
            return 0;
        };
        let (least, domains) = counts.fold((first, 1), |(least, domains), count| {
            (count.min(least), domains + 1)
        });
        if domains < min_domains { 0 } else { least }
    }
}

/// The domains of nodes, numbered as they come.
fn domains(key: &str, nodes: &[&ExistingNode]) -> Vec<Option<usize>> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    nodes
        .iter()
        .map(|node| {
            let value = node.label(key)?;
            let next = numbers.len();
            Some(*numbers.entry(value).or_insert(next))
        })
        .collect()
}
