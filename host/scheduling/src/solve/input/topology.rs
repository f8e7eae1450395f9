//! Topology groups and their counts: spread, affinity, anti-affinity in both directions.
//!
//! A group is shared by all pods that declare the same term. What its counts allow and how they change is in
//! `counting.rs`. Answers to Karpenter's `scheduling/topology.go`, `topologygroup.go` and `topologynodefilter.go`.

mod counting;

use std::collections::{BTreeMap, BTreeSet};

use apis::labels;

use super::vocabulary::SetId;
use crate::error::TopologyKind;
use crate::pod::{AffinityTerm, SelectorOperator, Toleration, TopologySpread};
use crate::pod_selection::PodSelection;

pub(crate) use counting::{GroupCounts, NodePlace, counts_of};

/// Number of a topology group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TopologyGroupId(usize);

/// Number of a topology key; [`HOSTNAME_KEY`] is the host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyId(usize);

/// Number of a domain of a key, and its place in the columns of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DomainId(usize);

/// The first of all keys.
pub(crate) const HOSTNAME_KEY: KeyId = KeyId(0);

impl DomainId {
    /// The first of a key.
    pub(crate) const FIRST: Self = Self(0);
}

/// A topology key with the domain assigned to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pin {
    pub(crate) key: KeyId,
    pub(crate) domain: DomainId,
}

/// Use that a group makes of its counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TopologyRule {
    Spread {
        max_skew: i64,
    },
    Affinity,
    /// Only required terms keep others out of the owners' domains.
    AntiAffinity {
        is_required: bool,
    },
}

/// Which nodes a spread counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeFilter {
    /// The node must satisfy one of these, if there are any.
    pub(crate) requirements: Vec<SetId>,
    /// The node's taints must be tolerated by these, if given.
    pub(crate) tolerations: Option<Vec<Toleration>>,
}

/// What makes a group the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Identity {
    rule: TopologyRule,
    key: KeyId,
    selection: PodSelection,
    filter: NodeFilter,
}

/// A term shared by the pods that declare it, with its counts.
#[derive(Debug, Clone)]
pub(crate) struct TopologyGroup {
    pub(crate) rule: TopologyRule,
    pub(crate) key: KeyId,
    pub(crate) filter: NodeFilter,
    pub(super) selection: PodSelection,
    /// Selected pods by domain; unused for the host name.
    pub(crate) selected: Vec<i64>,
    /// Pods that declare the term, by domain; unused for the host name.
    pub(crate) owners: Vec<i64>,
    /// Selected pods over all domains.
    pub(crate) total: i64,
}

/// A term that a pod declares, as a member of the group of all that declare it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OwnedTerm {
    pub(crate) group: TopologyGroupId,
    pub(crate) is_self_selecting: bool,
    pub(super) min_domains: Option<i64>,
}

/// The terms that a pod declares and those that count it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Membership {
    pub(crate) owned: Vec<OwnedTerm>,
    /// Groups that count the pod.
    pub(crate) selected: Vec<TopologyGroupId>,
}

/// All groups of a solve.
#[derive(Debug, Clone)]
pub(crate) struct Topology {
    keys: Vec<String>,
    domains: Vec<Vec<String>>,
    groups: Vec<TopologyGroup>,
    by_identity: BTreeMap<Identity, TopologyGroupId>,
    /// Groups by a label value they insist on.
    by_label: BTreeMap<(String, String), Vec<TopologyGroupId>>,
    unindexed: Vec<TopologyGroupId>,
}

impl TopologyGroup {
    /// Selected pods in a domain.
    pub(crate) fn selected_in(&self, domain: DomainId) -> i64 {
        self.selected[domain.0]
    }
}

impl Topology {
    pub(crate) fn new() -> Self {
        Self {
            keys: vec![labels::HOSTNAME.to_owned()],
            domains: vec![Vec::new()],
            groups: Vec::new(),
            by_identity: BTreeMap::new(),
            by_label: BTreeMap::new(),
            unindexed: Vec::new(),
        }
    }

    /// All groups, in the order in which they were met.
    pub(super) fn ids(&self) -> impl Iterator<Item = TopologyGroupId> + use<> {
        (0..self.groups.len()).map(TopologyGroupId)
    }

    pub(crate) fn group(&self, id: TopologyGroupId) -> &TopologyGroup {
        &self.groups[id.0]
    }

    /// All keys, the host name first.
    pub(super) fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.keys.len()).map(KeyId)
    }

    /// The label that a key is.
    pub(crate) fn label(&self, key: KeyId) -> &str {
        &self.keys[key.0]
    }

    /// The values of a key, in order.
    pub(crate) fn domains(&self, key: KeyId) -> &[String] {
        &self.domains[key.0]
    }

    /// The value that a domain is.
    pub(crate) fn value(&self, Pin { key, domain }: Pin) -> &str {
        &self.domains[key.0][domain.0]
    }

    pub(crate) fn domain(&self, key: KeyId, value: &str) -> Option<DomainId> {
        let found = self.domains[key.0].binary_search_by(|known| known.as_str().cmp(value));
        found.ok().map(DomainId)
    }

    pub(super) fn spread(
        &mut self,
        constraint: &TopologySpread,
        namespace: &str,
        filter: NodeFilter,
    ) -> TopologyGroupId {
        let identity = Identity {
            rule: TopologyRule::Spread {
                max_skew: i64::from(constraint.max_skew),
            },
            key: self.key(&constraint.topology_key),
            selection: PodSelection::of_spread(constraint, namespace),
            filter,
        };
        self.intern(identity)
    }

    /// The group of an affinity term; `all_namespaces` serves namespace selectors.
    pub(super) fn affinity(
        &mut self,
        rule: TopologyRule,
        term: &AffinityTerm,
        namespace: &str,
        all_namespaces: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> TopologyGroupId {
        let identity = Identity {
            rule,
            key: self.key(&term.topology_key),
            selection: PodSelection::of_affinity(term, namespace, all_namespaces),
            filter: NodeFilter::default(),
        };
        self.intern(identity)
    }

    fn key(&mut self, key: &str) -> KeyId {
        if let Some(known) = self.keys.iter().position(|k| k == key) {
            return KeyId(known);
        }
        self.keys.push(key.to_owned());
        self.domains.push(Vec::new());
        KeyId(self.keys.len() - 1)
    }

    fn intern(&mut self, identity: Identity) -> TopologyGroupId {
        if let Some(known) = self.by_identity.get(&identity) {
            return *known;
        }
        let id = TopologyGroupId(self.groups.len());
        let selector = identity.selection.selector();
        let insisted = selector.and_then(|selector| {
            selector
                .requirements
                .iter()
                .find(|r| r.operator == SelectorOperator::In)
        });
        match (insisted, selector) {
            (Some(requirement), _) => {
                for value in &requirement.values {
                    let label = (requirement.key.clone(), value.clone());
                    self.by_label.entry(label).or_default().push(id);
                }
            }
            (None, Some(_)) => self.unindexed.push(id),
            // A term without selector matches nothing.
            (None, None) => {}
        }
        let Identity {
            rule,
            key,
            selection,
            filter,
        } = identity.clone();
        self.groups.push(TopologyGroup {
            rule,
            key,
            filter,
            selection,
            selected: Vec::new(),
            owners: Vec::new(),
            total: 0,
        });
        self.by_identity.insert(identity, id);
        id
    }

    /// The groups that count a pod with these labels, ascending.
    pub(crate) fn selecting(
        &self,
        namespace: &str,
        pod_labels: &BTreeMap<String, String>,
    ) -> Vec<TopologyGroupId> {
        if self.groups.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<TopologyGroupId> = self.unindexed.clone();
        if !self.by_label.is_empty() {
            for (key, value) in pod_labels {
                if let Some(ids) = self.by_label.get(&(key.clone(), value.clone())) {
                    found.extend(ids);
                }
            }
        }
        found.retain(|id| {
            let selection = &self.groups[id.0].selection;
            selection.selects(namespace, pod_labels)
        });
        found.sort_unstable();
        found
    }

    /// Fixes the domains of a key and makes room for counts.
    pub(super) fn set_domains(&mut self, key: KeyId, values: BTreeSet<String>) {
        let domains = &mut self.domains[key.0];
        *domains = values.into_iter().collect();
        let len = domains.len();
        for group in self.groups.iter_mut().filter(|g| g.key == key) {
            group.selected = vec![0; len];
            group.owners = vec![0; len];
        }
    }

    /// The keys other than the host name that a pod's terms look at.
    pub(crate) fn keys_of(&self, membership: &Membership) -> Vec<KeyId> {
        let owned = membership.owned.iter().map(|o| o.group);
        let keys: BTreeSet<KeyId> = owned
            .chain(membership.selected.iter().copied())
            .map(|id| self.group(id).key)
            .filter(|key| *key != HOSTNAME_KEY)
            .collect();
        keys.into_iter().collect()
    }

    /// Whether a pod declares a term over the key, rather than only being looked at.
    pub(crate) fn owns(&self, membership: &Membership, key: KeyId) -> bool {
        let mut owned = membership.owned.iter();
        owned.any(|o| self.group(o.group).key == key)
    }

    /// Counts by domain, in words.
    pub(crate) fn describe(&self, id: TopologyGroupId) -> (TopologyKind, String, String) {
        let group = self.group(id);
        let kind = match group.rule {
            TopologyRule::Spread { .. } => TopologyKind::Spread,
            TopologyRule::Affinity => TopologyKind::Affinity,
            TopologyRule::AntiAffinity { .. } => TopologyKind::AntiAffinity,
        };
        let counts = if group.key == HOSTNAME_KEY {
            format!("{} in total", group.total)
        } else {
            let names = self.domains(group.key).iter();
            let pairs: Vec<String> = names
                .zip(&group.selected)
                .map(|(name, count)| format!("{name}:{count}"))
                .collect();
            pairs.join(", ")
        };
        (kind, self.label(group.key).to_owned(), counts)
    }
}
