//! Pods that are equal for scheduling, placed together.
//!
//! Pods that differ only in name, or in labels nobody selects by, fall into one group. Order is total: CPU, memory,
//! creation time, UID.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use super::topology::{
    HOSTNAME_KEY, Membership, NodeFilter, OwnedTerm, Topology, TopologyGroupId, TopologyRule,
};
use super::views::{self, PodView, RepellingTerm};
use super::vocabulary::{Amounts, Dimensions, EMPTY_SET, SetId, Vocabulary};
use crate::pod::{HostPort, Pod, PodKey, PodShape, Toleration};
use crate::problem::{PodVolumes, Problem};

/// Which of the groups of a solve; the greatest pods come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodGroupId(usize);

/// Demands of a group at one step of relaxation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupView {
    pub(crate) set: SetId,
    pub(crate) strict: SetId,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) membership: Membership,
}

/// Equal pods.
#[derive(Debug, Clone)]
pub(crate) struct PodGroup {
    pub(crate) requests: Amounts,
    /// Strictest first; never empty.
    pub(crate) views: Vec<GroupView>,
    pub(crate) host_ports: Vec<HostPort>,
    pub(crate) volumes: Option<Arc<PodVolumes>>,
    /// Requirement sets of the volume alternatives; empty means anything goes.
    pub(crate) alternatives: Vec<SetId>,
    pub(super) is_candidate: bool,
    /// The only pod, when it claims devices.
    pub(crate) claimant: Option<PodKey>,
    /// Positions in the problem's pods.
    pub(crate) members: Vec<usize>,
}

impl PodGroup {
    /// Whether host ports or volumes rule out types that are large enough.
    pub(crate) fn has_extras(&self) -> bool {
        !self.host_ports.is_empty() || self.volumes.is_some()
    }
}

impl PodGroupId {
    /// Of so many groups.
    pub(crate) fn all(groups: usize) -> impl Iterator<Item = Self> {
        (0..groups).map(Self)
    }

    /// The one after it, where a range of keys ends.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Index<PodGroupId> for Vec<PodGroup> {
    type Output = PodGroup;

    fn index(&self, id: PodGroupId) -> &PodGroup {
        &self[id.0]
    }
}

impl IndexMut<PodGroupId> for Vec<PodGroup> {
    fn index_mut(&mut self, id: PodGroupId) -> &mut PodGroup {
        &mut self[id.0]
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    requests: Amounts,
    views: Vec<GroupView>,
    host_ports: Vec<HostPort>,
    volumes: Option<PodVolumes>,
    is_candidate: bool,
    claimant: Option<PodKey>,
}

/// Interns what shapes demand and gathers pods.
pub(super) struct Grouper<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) vocabulary: &'a mut Vocabulary,
    pub(crate) topology: &'a mut Topology,
    pub(crate) dims: &'a Dimensions,
    pub(super) has_preference_taints: bool,
}

/// A view's demands before it is known which groups select it; terms come with their `minDomains`.
struct ViewDemands {
    set: SetId,
    strict: SetId,
    tolerations: Vec<Toleration>,
    owned: Vec<(TopologyGroupId, Option<i64>)>,
}

/// A shape's demands before it is known which groups select it.
struct Demands {
    requests: Amounts,
    views: Vec<ViewDemands>,
}

impl Grouper<'_> {
    /// Groups the pods at these positions, greatest first.
    pub(crate) fn group(mut self, pods: &[usize]) -> Vec<PodGroup> {
        let mut shapes: Vec<Arc<PodShape>> = Vec::new();
        let mut known: BTreeMap<*const PodShape, usize> = BTreeMap::new();
        let shape_of: Vec<usize> = pods
            .iter()
            .map(|pod| {
                let shape = &self.problem.pods[*pod].shape;
                *known.entry(Arc::as_ptr(shape)).or_insert_with(|| {
                    shapes.push(Arc::clone(shape));
                    shapes.len() - 1
                })
            })
            .collect();
        let demands = self.demands_of(&shapes, pods, &shape_of);
        // Only now are all groups known, so only now can it be said which of them select a shape.
        let keys: Vec<GroupKey> = shapes
            .iter()
            .zip(demands)
            .map(|(shape, demands)| self.key(shape, demands))
            .collect();
        let mut groups: BTreeMap<GroupKey, Vec<usize>> = BTreeMap::new();
        let mut plain: Vec<Vec<usize>> = vec![Vec::new(); keys.len()];
        for (pod, shape) in pods.iter().zip(shape_of) {
            let key = &self.problem.pods[*pod].key;
            let volumes = self.problem.volumes.get(key);
            let is_candidate = self.problem.candidates.contains(key);
            let devices = self.problem.devices.as_ref();
            let claimant = devices
                .filter(|it| it.pods.contains_key(key))
                .map(|_| key.clone());
            if volumes.is_none() && !is_candidate && claimant.is_none() {
                plain[shape].push(*pod);
                continue;
            }
            let key = GroupKey {
                volumes: volumes.cloned(),
                is_candidate,
                claimant,
                ..keys[shape].clone()
            };
            groups.entry(key).or_default().push(*pod);
        }
        for (key, members) in keys.into_iter().zip(plain) {
            if !members.is_empty() {
                groups.entry(key).or_default().extend(members);
            }
        }
        let mut groups: Vec<PodGroup> = groups
            .into_iter()
            .map(|(key, members)| self.finish(key, members))
            .collect();
        groups.sort_by(|a, b| {
            let first = |g: &PodGroup| pod_order(&self.problem.pods[g.members[0]]);
            b.requests[..2]
                .cmp(&a.requests[..2])
                .then_with(|| first(a).cmp(&first(b)))
        });
        groups
    }

    /// Demands of each shape. Topology groups are numbered as they are met, so shapes go in the order of their first
    /// pods, whatever the order of the input.
    fn demands_of(
        &mut self,
        shapes: &[Arc<PodShape>],
        pods: &[usize],
        shape_of: &[usize],
    ) -> Vec<Demands> {
        let all = &self.problem.pods;
        let mut first: Vec<Option<usize>> = vec![None; shapes.len()];
        for (pod, shape) in pods.iter().zip(shape_of) {
            let known = &mut first[*shape];
            if known.is_none_or(|known| pod_order(&all[*pod]) < pod_order(&all[known])) {
                *known = Some(*pod);
            }
        }
        let mut order: Vec<usize> = (0..shapes.len()).collect();
        order.sort_by_key(|shape| first[*shape].map(|pod| pod_order(&all[pod])));
        let made = order.iter().map(|at| (*at, self.demands(&shapes[*at])));
        made.collect::<BTreeMap<_, _>>().into_values().collect()
    }

    fn finish(&mut self, key: GroupKey, mut members: Vec<usize>) -> PodGroup {
        sort_pods(&self.problem.pods, &mut members);
        let alternatives = key.volumes.iter().flat_map(|v| &v.alternatives);
        let alternatives = alternatives
            .map(|r| self.vocabulary.set(r.clone()))
            .collect();
        PodGroup {
            requests: key.requests,
            views: key.views,
            host_ports: key.host_ports,
            volumes: key.volumes.map(Arc::new),
            alternatives,
            is_candidate: key.is_candidate,
            claimant: key.claimant,
            members,
        }
    }

    fn demands(&mut self, shape: &PodShape) -> Demands {
        let policy = self.problem.options.preference_policy;
        let views = views::views(shape, policy, self.has_preference_taints);
        Demands {
            requests: self.dims.amounts(&shape.requests),
            views: views
                .into_iter()
                .map(|view| self.demands_of_view(shape, view))
                .collect(),
        }
    }

    fn demands_of_view(&mut self, shape: &PodShape, view: PodView) -> ViewDemands {
        let mut owned = Vec::new();
        let namespace = &shape.namespace;
        for constraint in &view.spread {
            let filter = NodeFilter {
                requirements: if constraint.honors_node_affinity {
                    let alternatives = views::strict_alternatives(shape).into_iter();
                    alternatives
                        .map(|r| self.vocabulary.set(r))
                        .filter(|id| *id != EMPTY_SET)
                        .collect()
                } else {
                    Vec::new()
                },
                // The Kubernetes scheduler counts nodes whose taints only ask for preference.
                tolerations: constraint.honors_node_taints.then(|| {
                    let own = shape.tolerations.iter().cloned();
                    own.chain([views::prefer_no_schedule_toleration()])
                        .collect()
                }),
            };
            let group = self.topology.spread(constraint, namespace, filter);
            owned.push((group, constraint.min_domains.map(i64::from)));
        }
        let all = &self.problem.namespaces;
        for term in &view.affinity {
            owned.push((
                self.topology
                    .affinity(TopologyRule::Affinity, term, namespace, all),
                None,
            ));
        }
        for RepellingTerm { term, is_required } in &view.anti_affinity {
            let rule = TopologyRule::AntiAffinity {
                is_required: *is_required,
            };
            owned.push((self.topology.affinity(rule, term, namespace, all), None));
        }
        owned.sort_unstable();
        owned.dedup();
        ViewDemands {
            strict: self.vocabulary.set(view.strict),
            set: self.vocabulary.set(view.requirements),
            tolerations: view.tolerations,
            owned,
        }
    }

    fn key(&self, shape: &PodShape, demands: Demands) -> GroupKey {
        let selected = self.topology.selecting(&shape.namespace, &shape.labels);
        let view = |view: ViewDemands| {
            let ViewDemands {
                set,
                strict,
                tolerations,
                owned,
            } = view;
            let owned = owned
                .into_iter()
                .map(|(group, min_domains)| OwnedTerm {
                    group,
                    is_self_selecting: selected.binary_search(&group).is_ok(),
                    min_domains,
                })
                .collect();
            let membership = Membership {
                owned,
                selected: selected.clone(),
            };
            GroupView {
                set,
                strict,
                tolerations,
                membership,
            }
        };
        GroupKey {
            requests: demands.requests,
            views: demands.views.into_iter().map(view).collect(),
            host_ports: shape.host_ports.clone(),
            volumes: None,
            is_candidate: false,
            claimant: None,
        }
    }
}

/// Sorts positions of pods by [`pod_order`]. Most UIDs differ in their first bytes, so few pods are looked at twice.
pub(crate) fn sort_pods(pods: &[Arc<Pod>], members: &mut Vec<usize>) {
    let head = |pod: &Pod| {
        let mut head = [0; 8];
        let bytes = pod.uid.as_bytes();
        let len = bytes.len().min(head.len());
        head[..len].copy_from_slice(&bytes[..len]);
        (
            Reverse(pod.created_at.is_some()),
            pod.created_at,
            u64::from_be_bytes(head),
        )
    };
    let mut keyed: Vec<_> = members.iter().map(|at| (head(&pods[*at]), *at)).collect();
    keyed.sort_by(|(a, at_a), (b, at_b)| {
        let full = || pod_order(&pods[*at_a]).cmp(&pod_order(&pods[*at_b]));
        a.cmp(b).then_with(full)
    });
    members.clear();
    members.extend(keyed.into_iter().map(|(_, at)| at));
}

/// The order among pods of equal size.
pub(super) fn pod_order(
    pod: &Pod,
) -> (
    Reverse<bool>,
    Option<jiff::Timestamp>,
    &str,
    &crate::pod::PodKey,
) {
    (
        Reverse(pod.created_at.is_some()),
        pod.created_at,
        &pod.uid,
        &pod.key,
    )
}

/// How many pods of a group a node may hold because of host names; `None` when that does not limit it.
pub(crate) fn most_per_host(topology: &Topology, membership: &Membership) -> Option<i64> {
    membership
        .owned
        .iter()
        .filter(|o| o.is_self_selecting && topology.group(o.group).key == HOSTNAME_KEY)
        .filter_map(|o| match topology.group(o.group).rule {
            TopologyRule::Spread { max_skew } => Some(max_skew),
            TopologyRule::AntiAffinity { .. } => Some(1),
            TopologyRule::Affinity => None,
        })
        .min()
}

/// Whether every pod of the group must share one host.
pub(crate) fn shares_one_host(topology: &Topology, membership: &Membership) -> bool {
    membership.owned.iter().any(|o| {
        let group = topology.group(o.group);
        o.is_self_selecting && group.key == HOSTNAME_KEY && group.rule == TopologyRule::Affinity
    })
}
