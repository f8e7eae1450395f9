//! The kube-scheduler of the world: filters that matter, LeastAllocated scoring, binding.
//!
//! Pods of equal shape are taken together: what a shape asks of nodes is judged once, and only what placing
//! a pod changes is judged again. Answers to kube-scheduler's default profile without preemption.

mod filter;
mod report;
mod score;
mod terms;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api_server::ObjectKey;
use crate::cluster::{Cluster, PodShape};
use crate::volumes::ClaimZones;

use filter::Rejection;
pub(crate) use filter::{matches_node, matches_selector};
use terms::TermStates;

/// Reasons for which nodes were turned down, with counts, as kube-scheduler reports them.
pub(crate) type Rejections = BTreeMap<String, usize>;

/// Pods of one shape.
type Group = (Arc<PodShape>, Vec<ObjectKey>);

impl Cluster {
    /// Tries to place every pod in the queue. Returns how many were bound.
    pub(crate) fn schedule(&mut self) -> usize {
        let queue = std::mem::take(&mut self.queue);
        // Highest priority first, then in the order in which shapes were first seen.
        let mut groups: BTreeMap<(Reverse<i32>, usize), Group> = BTreeMap::new();
        for key in queue {
            let Some(pod) = self.pods.get(&key).filter(|pod| pod.waits_for_scheduler()) else {
                continue;
            };
            let at = (Reverse(pod.shape.priority), pod.shape.id);
            let entry = groups.entry(at);
            entry
                .or_insert_with(|| (Arc::clone(&pod.shape), Vec::new()))
                .1
                .push(key);
        }
        let mut bound = 0;
        for (shape, pods) in groups.into_values() {
            bound += self.schedule_group(&shape, pods);
        }
        bound
    }

    fn schedule_group(&mut self, shape: &PodShape, pods: Vec<ObjectKey>) -> usize {
        let mut bound = 0;
        let mut rejections = Rejections::new();
        let zones = match self.claim_zones(shape) {
            Ok(zones) => zones,
            Err(message) => {
                self.report_unschedulable(&pods, &message);
                self.unschedulable.extend(pods);
                return 0;
            }
        };
        let candidates = self.candidates(shape, &zones, &mut rejections);
        // Counting other pods is dear, and moot where no node has room; most looks at a full cluster end here.
        let mut nodes = candidates.iter().filter_map(|name| self.nodes.get(name));
        let mut terms = if nodes.any(|node| filter::resource_rejection(shape, node).is_none()) {
            TermStates::new(self, shape, &candidates)
        } else {
            TermStates::default()
        };
        let mut rest = pods.into_iter();
        let mut failed: Vec<ObjectKey> = Vec::new();
        for key in rest.by_ref() {
            let mut here = rejections.clone();
            let Some(node) = self.choose(shape, &candidates, &terms, &mut here) else {
                // What one pod of a shape cannot find, the next cannot either.
                failed.push(key);
                failed.extend(rest);
                let message = report::message(self.nodes.len(), &here);
                self.report_unschedulable(&failed, &message);
                break;
            };
            if !self.bind(&key, &node, shape) {
                failed.push(key);
                continue;
            }
            bound += 1;
            terms.placed(self, &node);
            if !shape.claims.is_empty() {
                // The volume now has a zone: the next pod that shares it is judged anew.
                self.queue.extend(rest);
                break;
            }
        }
        self.unschedulable.extend(failed);
        bound
    }

    /// Nodes on which the shape may run as far as that does not depend on other pods.
    fn candidates(
        &self,
        shape: &PodShape,
        zones: &ClaimZones,
        rejections: &mut Rejections,
    ) -> BTreeSet<String> {
        let mut candidates = BTreeSet::new();
        let mut judge =
            |node: &crate::cluster::NodeRecord| match filter::static_rejection(shape, node)
                .or_else(|| zones.rejection(node))
            {
                None => drop(candidates.insert(node.name.clone())),
                Some(reason) => *rejections.entry(reason).or_default() += 1,
            };
        if let Some(name) = shape.pinned_node() {
            let others = self.nodes.len().saturating_sub(1);
            if let Some(node) = self.nodes.get(name) {
                judge(node);
            }
            if others > 0 {
                *rejections
                    .entry(Rejection::Affinity.to_string())
                    .or_default() += others;
            }
        } else {
            self.nodes.values().for_each(judge);
        }
        candidates
    }

    fn choose(
        &self,
        shape: &PodShape,
        candidates: &BTreeSet<String>,
        terms: &TermStates,
        rejections: &mut Rejections,
    ) -> Option<String> {
        let mut best: Option<(i64, &str)> = None;
        for name in candidates {
            let Some(node) = self.nodes.get(name) else {
                continue;
            };
            let rejection =
                filter::resource_rejection(shape, node).or_else(|| terms.rejection(node));
            if let Some(reason) = rejection {
                *rejections.entry(reason).or_default() += 1;
                continue;
            }
            let score = score::score(shape, node) + terms.score(node);
            if best.is_none_or(|(other, _)| score > other) {
                best = Some((score, name));
            }
        }
        best.map(|(_, name)| name.to_owned())
    }

    fn bind(&mut self, key: &ObjectKey, node: &str, shape: &PodShape) -> bool {
        self.provision_claims(shape, node);
        if let Err(status) = self.api.bind(&key.namespace, &key.name, node) {
            tracing::debug!(pod = %key.name, %status, "a pod was not bound");
            return false;
        }
        // Reserve at once: the watch tells of the binding only after this round.
        if let Some(record) = self.nodes.get_mut(node) {
            record.add(key, shape);
        }
        true
    }
}
