//! Nominations: the node that a pod's `status.nominatedNodeName` names is tried first, and others leave it its room.
//!
//! Answers to `evaluateNominatedNode` and `RunFilterPluginsWithNominatedPods` of kube-scheduler (KEP-1923), and to its
//! preemption, which takes the nomination away from a pod that it can help no further (`Evaluator::Preempt`, the same
//! from 1.30 to 1.36: KEP-5278 changed it only for pods that fail after a node was found).

use std::sync::Arc;

use api_server::{NamespacedName, Resource};

use super::filter;
use super::terms::TermStates;
use crate::cluster::SimulatedCluster;
use crate::cluster::amounts::MilliAmounts;
use crate::cluster::node::NodeRecord;
use crate::cluster::pod::PodRecord;
use crate::cluster::shape::SchedulingShape;

impl SimulatedCluster {
    /// Keeps the index of nominations.
    pub(crate) fn move_nomination(
        &mut self,
        key: &NamespacedName,
        old: Option<&PodRecord>,
        new: Option<&PodRecord>,
    ) {
        let nominated = |record: Option<&PodRecord>| {
            let record = record.filter(|record| record.waits_for_scheduler())?;
            Some((record.nominated.clone()?, Arc::clone(&record.shape)))
        };
        let (before, after) = (nominated(old), nominated(new));
        let id = |it: &Option<(String, Arc<SchedulingShape>)>| {
            it.as_ref().map(|(node, shape)| (node.clone(), shape.id))
        };
        if id(&before) == id(&after) {
            return;
        }
        if let Some((node, _)) = before {
            self.unnominate(key, &node);
            // Its room is anybody's again.
            self.news.add_node(&node);
        }
        if let Some((node, shape)) = after {
            let pods = self.nominated.entry(node).or_default();
            pods.insert(key.clone(), shape);
        }
    }

    /// The pod has a node: what it was nominated to is spoken for no more.
    pub(super) fn end_nomination(&mut self, key: &NamespacedName, bound_to: &str) {
        let Some(node) = self.pods.get(key).and_then(|pod| pod.nominated.clone()) else {
            return;
        };
        self.unnominate(key, &node);
        if node != bound_to {
            self.news.add_node(&node);
        }
    }

    fn unnominate(&mut self, key: &NamespacedName, node: &str) {
        if let Some(pods) = self.nominated.get_mut(node) {
            pods.remove(key);
            if pods.is_empty() {
                self.nominated.remove(node);
            }
        }
    }

    /// Places the pods that their nomination leads to a node. Returns how many were bound, and the others.
    pub(super) fn place_nominated(
        &mut self,
        shape: &Arc<SchedulingShape>,
        pods: Vec<NamespacedName>,
        terms: &mut TermStates,
    ) -> (usize, Vec<NamespacedName>) {
        let (mut bound, mut pods) = (0, pods);
        // One that is placed may open the nodes of others of its kind, which the scheduler then tries again.
        while !self.nominated.is_empty() {
            let (more, left) = self.place_nominated_once(shape, pods, terms);
            (bound, pods) = (bound + more, left);
            if more == 0 || shape.stands_alone() {
                break;
            }
        }
        (bound, pods)
    }

    fn place_nominated_once(
        &mut self,
        shape: &Arc<SchedulingShape>,
        pods: Vec<NamespacedName>,
        terms: &mut TermStates,
    ) -> (usize, Vec<NamespacedName>) {
        let mut bound = 0;
        let mut others = Vec::with_capacity(pods.len());
        for key in pods {
            let nominated = self.pods.get(&key).and_then(|pod| pod.nominated.clone());
            let node = nominated.filter(|node| self.admits(&key, shape, node, terms));
            let Some(node) = node.filter(|node| self.bind(&key, node, shape)) else {
                others.push(key);
                continue;
            };
            bound += 1;
            if let Some(node) = self.nodes.get(&node) {
                terms.place(node);
            }
        }
        (bound, others)
    }

    fn admits(
        &self,
        key: &NamespacedName,
        shape: &SchedulingShape,
        node: &str,
        terms: &TermStates,
    ) -> bool {
        // Volumes are bound with the node that is chosen: such pods take the long way.
        self.nodes.get(node).is_some_and(|node| {
            shape.claims.is_empty()
                && filter::static_rejection(shape, node).is_none()
                && filter::resource_rejection(shape, node).is_none()
                && terms.rejection(node).is_none()
                && !self.is_spoken_for_by_others(Some(key), shape, node, terms)
        })
    }

    /// Whether pods that are nominated to the node keep a pod of the shape off it.
    pub(super) fn is_spoken_for(
        &self,
        shape: &SchedulingShape,
        node: &NodeRecord,
        terms: &TermStates,
    ) -> bool {
        self.is_spoken_for_by_others(None, shape, node, terms)
    }

    /// The filters, once more, with the others as if they ran on the node: their requests, and their part in spreads
    /// and (anti-)affinity.
    fn is_spoken_for_by_others(
        &self,
        own: Option<&NamespacedName>,
        shape: &SchedulingShape,
        node: &NodeRecord,
        terms: &TermStates,
    ) -> bool {
        let Some(nominated) = self.nominated.get(&node.name) else {
            return false;
        };
        let others = nominated.iter().filter(|(key, _)| Some(*key) != own);
        let others = others.filter(|(_, other)| other.priority >= shape.priority);
        let others: Vec<&SchedulingShape> = others.map(|(_, other)| &**other).collect();
        let mut free: MilliAmounts = node.free.clone();
        for other in &others {
            free.subtract(&other.requests);
        }
        !shape.requests.fits(&free) || terms.is_kept_off_by(&others, shape, node)
    }

    /// What the scheduler does to the nominations of pods that it could not place.
    pub(super) fn forget_nominations(&mut self, shape: &SchedulingShape) {
        let nominated = self.nominated.values().flatten();
        let failed = nominated.filter(|(_, of)| of.id == shape.id);
        let failed: Vec<NamespacedName> = failed.map(|(key, _)| key.clone()).collect();
        for key in failed {
            let cleared = self.api.modify_status(&Resource::PODS, &key, |pod| {
                if let Some(status) = pod["status"].as_object_mut() {
                    status.remove("nominatedNodeName");
                }
            });
            self.note_refusal(cleared);
        }
    }
}
