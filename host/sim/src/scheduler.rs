//! The kube-scheduler of the world: filters that matter, LeastAllocated scoring, nominations, binding.
//!
//! Pods of equal shape are taken together: what a shape asks of nodes is judged once, and only what placing
//! a pod changes is judged again. Pods that found no node wait until a node changes, and are then tried on that
//! node alone where nothing else can have mattered. Answers to kube-scheduler's default profile without preemption,
//! and to its queueing hints.

pub(crate) mod filter;
mod nominated;
mod report;
mod score;
mod terms;
pub(crate) mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_server::NamespacedName;

use crate::cluster::SimulatedCluster;
use crate::cluster::node::NodeRecord;
use crate::cluster::shape::SchedulingShape;
use crate::cluster::work::SchedulerWake;
use crate::volumes::ClaimZones;

use filter::{FilterFailure, Rejections};
use terms::TermStates;
use waiting::{News, ShapeRank};

/// One look at the pods of a shape.
struct Look {
    shape: Arc<SchedulingShape>,
    /// Pods that were not judged before: they are judged on every node.
    fresh: Vec<NamespacedName>,
    /// Pods of the shape may wait for just what happened.
    is_woken: bool,
}

impl SimulatedCluster {
    /// Tries to place every pod in the queue, and those that waited for what happened since the last time.
    /// Returns how many were bound.
    pub(crate) fn schedule(&mut self) -> usize {
        let queue = std::mem::take(&mut self.queue);
        let news = if self.wake == SchedulerWake::Due {
            self.wake = SchedulerWake::Unset;
            std::mem::take(&mut self.news)
        } else {
            News::default()
        };
        let mut looks: BTreeMap<ShapeRank, Look> = BTreeMap::new();
        if !news.is_empty() {
            for (rank, shape) in self.unschedulable.shapes() {
                if !self.may_concern(&news, shape) {
                    continue;
                }
                let shape = Arc::clone(shape);
                looks.insert(rank, Look::woken(shape));
            }
        }
        for key in queue {
            let Some(pod) = self.pods.get(&key).filter(|pod| pod.waits_for_scheduler()) else {
                continue;
            };
            let look = looks.entry(ShapeRank::of(&pod.shape));
            let look = look.or_insert_with(|| Look::fresh(Arc::clone(&pod.shape)));
            look.fresh.push(key);
        }
        let looks = looks.into_values();
        looks.map(|look| self.schedule_shape(look, &news)).sum()
    }

    /// Whether what happened may help pods of the shape: what happens to nodes that their taints keep them off does
    /// not, as the hints of `TaintToleration` say.
    fn may_concern(&self, news: &News, shape: &SchedulingShape) -> bool {
        let News::Nodes(names) = news else {
            return true;
        };
        let mut nodes = names.iter().filter_map(|name| self.nodes.get(name));
        nodes.any(|node| {
            let rejection = filter::static_rejection(shape, node);
            !matches!(
                rejection,
                Some(FilterFailure::Unschedulable | FilterFailure::Taint(..))
            )
        })
    }

    fn schedule_shape(&mut self, look: Look, news: &News) -> usize {
        let shape = Arc::clone(&look.shape);
        let bound = self.try_shape(look, news);
        self.forget_nominations(&shape);
        bound
    }

    fn try_shape(&mut self, look: Look, news: &News) -> usize {
        let Look {
            shape,
            fresh,
            is_woken,
        } = look;
        let zones = match self.claim_zones(&shape) {
            Ok(zones) => zones,
            Err(message) => {
                self.report_unschedulable(&fresh, &message);
                self.unschedulable.extend(&shape, fresh);
                return 0;
            }
        };
        // What kept a shape that looks at nothing but its node off a node keeps it off until that node changes.
        let scope = match news {
            News::Nodes(names) if fresh.is_empty() && shape.stands_alone() => Some(names),
            News::Nodes(_) | News::Everything => None,
        };
        let places = self.places(&shape, &zones, scope);
        if places.is_empty() && fresh.is_empty() {
            return 0;
        }
        let mut pods = fresh;
        if is_woken {
            pods.extend(self.unschedulable.take(&shape));
            pods.sort_unstable();
        }
        // Counting other pods is dear, and moot where no node has room.
        let mut terms = if places.is_empty() {
            TermStates::default()
        } else {
            TermStates::new(self, &shape)
        };
        let (bound, failed) = self.place_all(&shape, pods, &places, &mut terms);
        self.report_failed(&shape, &failed, &zones, &terms);
        self.unschedulable.extend(&shape, failed);
        bound
    }

    /// Places pods of one shape while that works. Returns how many were bound, and those that were not.
    fn place_all(
        &mut self,
        shape: &Arc<SchedulingShape>,
        mut pods: Vec<NamespacedName>,
        places: &[String],
        terms: &mut TermStates,
    ) -> (usize, Vec<NamespacedName>) {
        let mut bound = 0;
        loop {
            let (on_nominated, rest) = self.place_nominated(shape, pods, terms);
            let (elsewhere, failed) = self.place_anywhere(shape, rest, places, terms);
            bound += on_nominated + elsewhere;
            // A pod that was placed may be what others, in zones that are even now, waited for.
            if elsewhere == 0 || failed.is_empty() || shape.stands_alone() {
                return (bound, failed);
            }
            pods = failed;
        }
    }

    fn place_anywhere(
        &mut self,
        shape: &Arc<SchedulingShape>,
        pods: Vec<NamespacedName>,
        places: &[String],
        terms: &mut TermStates,
    ) -> (usize, Vec<NamespacedName>) {
        let mut bound = 0;
        let mut failed: Vec<NamespacedName> = Vec::new();
        let mut rest = pods.into_iter();
        while let Some(key) = rest.next() {
            let Some(node) = self.choose(shape, places, terms) else {
                // What one pod of a shape cannot find, the next cannot either.
                failed.push(key);
                failed.extend(rest);
                break;
            };
            if !self.bind(&key, &node, shape) {
                failed.push(key);
                continue;
            }
            bound += 1;
            if let Some(node) = self.nodes.get(&node) {
                terms.place(node);
            }
            if !shape.claims.is_empty() {
                // The volume now has a zone: the next pod that shares it is judged anew.
                self.queue.extend(rest);
                break;
            }
        }
        (bound, failed)
    }

    /// Nodes with room on which the shape may run as far as that does not depend on other pods, by name.
    fn places(
        &self,
        shape: &SchedulingShape,
        zones: &ClaimZones,
        scope: Option<&BTreeSet<String>>,
    ) -> Vec<String> {
        let fits = |node: &&NodeRecord| {
            filter::resource_rejection(shape, node).is_none()
                && filter::static_rejection(shape, node).is_none()
                && zones.admit(node)
        };
        let named = |name: &str| self.nodes.get(name);
        let name = |node: &NodeRecord| node.name.clone();
        match (shape.pinned_node(), scope) {
            (Some(pinned), _) => named(pinned).filter(fits).map(name).into_iter().collect(),
            (None, Some(scope)) => {
                let nodes = scope.iter().filter_map(|node| named(node));
                nodes.filter(fits).map(name).collect()
            }
            (None, None) => self.nodes.values().filter(fits).map(name).collect(),
        }
    }

    fn choose(
        &self,
        shape: &SchedulingShape,
        places: &[String],
        terms: &TermStates,
    ) -> Option<String> {
        let mut best: Option<(i64, &str)> = None;
        for name in places {
            let Some(node) = self.nodes.get(name) else {
                continue;
            };
            let is_out = filter::resource_rejection(shape, node).is_some();
            let is_out = is_out || terms.rejection(node).is_some();
            if is_out || self.is_spoken_for(shape, node, terms) {
                continue;
            }
            let score = score::score(shape, node) + terms.score(node);
            if best.is_none_or(|(other, _)| score > other) {
                best = Some((score, name));
            }
        }
        best.map(|(_, name)| name.to_owned())
    }

    /// Why each node turned the shape down, with counts.
    fn rejections(
        &self,
        shape: &SchedulingShape,
        zones: &ClaimZones,
        terms: &TermStates,
    ) -> Rejections {
        let mut counts: BTreeMap<FilterFailure<'_>, usize> = BTreeMap::new();
        let mut judge = |node| {
            let reason = filter::static_rejection(shape, node)
                .or_else(|| (!zones.admit(node)).then_some(FilterFailure::Volume))
                .or_else(|| filter::resource_rejection(shape, node))
                .or_else(|| terms.rejection(node));
            if let Some(reason) = reason {
                *counts.entry(reason).or_default() += 1;
            }
        };
        if let Some(name) = shape.pinned_node() {
            let node = self.nodes.get(name);
            node.into_iter().for_each(&mut judge);
            let others = self.nodes.len().saturating_sub(1);
            if others > 0 {
                *counts.entry(FilterFailure::Affinity).or_default() += others;
            }
        } else {
            self.nodes.values().for_each(judge);
        }
        let counts = counts.into_iter();
        counts
            .map(|(reason, count)| (reason.to_string(), count))
            .collect()
    }

    /// Says why to those of the pods that were not told before.
    fn report_failed(
        &mut self,
        shape: &SchedulingShape,
        failed: &[NamespacedName],
        zones: &ClaimZones,
        terms: &TermStates,
    ) {
        let is_new = |key: &NamespacedName| {
            let pod = self.pods.get(key);
            pod.is_some_and(|pod| !pod.reported_unschedulable)
        };
        if failed.iter().any(is_new) {
            let rejections = self.rejections(shape, zones, terms);
            let message = report::message(self.nodes.len(), &rejections);
            self.report_unschedulable(failed, &message);
        }
    }

    fn bind(&mut self, key: &NamespacedName, node: &str, shape: &Arc<SchedulingShape>) -> bool {
        self.provision_claims(shape, node);
        let bound = self.api.bind(&key.namespace, &key.name, node);
        if self.note_refusal(bound).is_none() {
            return false;
        }
        // Reserve at once: the watch tells of the binding only after this round.
        if let Some(record) = self.nodes.get_mut(node) {
            record.add(key, shape);
        }
        self.end_nomination(key, node);
        if !shape.anti_affinity.is_empty() {
            self.anti_affine.insert(key.clone());
        }
        if let Some(pod) = self.pods.get_mut(key) {
            pod.assumed = Some(node.to_owned());
            if pod.is_live() {
                self.census.add(shape, node);
            }
        }
        true
    }
}

impl Look {
    fn fresh(shape: Arc<SchedulingShape>) -> Self {
        Self {
            shape,
            fresh: Vec::new(),
            is_woken: false,
        }
    }

    fn woken(shape: Arc<SchedulingShape>) -> Self {
        Self {
            is_woken: true,
            ..Self::fresh(shape)
        }
    }
}
