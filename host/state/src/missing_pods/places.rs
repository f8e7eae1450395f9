//! The places planned for pods about to be created, in the model: a pod that is born takes the place of one of its
//! kind, and what a controller asks for no longer has none.

use std::sync::Arc;

use apis::NodeRef;
use jiff::Timestamp;
use scheduling::pod::{Owner, Pod, PodKey};

use super::key::prefix;
use super::owned::{expected, missing};
use crate::cluster::Data;
use crate::workloads::WorkloadKind;

impl Data {
    /// A pod that was not there before: it goes where one of its kind was planned to go.
    pub(crate) fn note_birth(&mut self, now: Timestamp, pod: &Pod) {
        let Some(owner) = pod.shape.owner.as_ref() else {
            return;
        };
        if pod.node_name.is_none() && !pod.is_terminating() {
            self.take_place(pod, owner);
        }
        self.last_birth_at = Some(now);
        if let Some(owned) = Arc::make_mut(&mut self.owned).get_mut(&owner.uid) {
            owned.newest = Some((now, Arc::clone(&pod.shape)));
        }
    }

    /// The last of its pods is gone.
    pub(crate) fn forget_owner(&mut self, pod: &Pod) {
        let Some(owner) = &pod.shape.owner else {
            return;
        };
        let all = Arc::make_mut(&mut self.owned);
        if all.get(&owner.uid).is_some_and(|it| it.pods == 0) {
            all.remove(&owner.uid);
        }
    }

    /// A pod went to a node: if that was planned for another of its kind, that one has its place now, or none if it had
    /// none. Kept where it is, it would wait for room that is gone. Answers the pod that has no place any more.
    pub(crate) fn trade_places(&mut self, pod: &Pod) -> Option<PodKey> {
        let node = pod.node_name.as_ref()?;
        let tracked = self.node_keys.get(node).and_then(|it| self.nodes.get(it));
        let claim = tracked.and_then(|it| it.claim_name()).map(NodeRef::claim);
        let here: Vec<NodeRef> = [NodeRef::node(&**node)].into_iter().chain(claim).collect();
        let own = self.places.get(&pod.key).cloned();
        if own.as_ref().is_some_and(|it| here.contains(it)) {
            return None;
        }
        let planned = here.iter().flat_map(|it| self.places.at(it));
        let other = self.stands_in_for(pod, planned)?;
        let places = Arc::make_mut(&mut self.places);
        if let Some(place) = own {
            places.insert(other, place);
            return None;
        }
        places.remove(&other);
        self.pods.contains_key(&other).then_some(other)
    }

    /// Which of the pods that were planned for a node this one, which took the room there, stands in for: one about to
    /// be created by the same controller, or else one of its shape that waits.
    fn stands_in_for<'a>(
        &self,
        pod: &Pod,
        planned: impl Iterator<Item = &'a PodKey>,
    ) -> Option<PodKey> {
        let owner = pod.shape.owner.as_ref();
        let of_owner = owner.and_then(|it| controller(pod, it));
        let prefix = of_owner.map(|(kind, key)| prefix(kind.name(), &key));
        let is_to_come = |key: &PodKey| prefix.as_ref().is_some_and(|it| has_prefix(key, it));
        let is_alike = |key: &PodKey| {
            let waits = self.pods.get(key).filter(|it| it.node_name.is_none());
            waits.is_some_and(|it| Arc::ptr_eq(&it.shape, &pod.shape))
        };
        let mut alike = None;
        for key in planned {
            if is_to_come(key) {
                return Some(key.clone());
            }
            alike = alike.or_else(|| is_alike(key).then_some(key));
        }
        alike.cloned()
    }

    fn take_place(&mut self, pod: &Pod, owner: &Owner) {
        let Some((kind, key)) = controller(pod, owner) else {
            return;
        };
        let prefix = prefix(kind.name(), &key);
        let Some((planned, place)) = places(self, &prefix).next() else {
            return;
        };
        let (planned, place) = (planned.clone(), place.clone());
        let kept = self.workloads.find(kind, &key);
        let owned = self.owned.get(&owner.uid);
        let expected = kept.and_then(|kept| expected(kept, owned));
        if expected.is_some_and(|it| it.requests == pod.shape.requests) {
            let places = Arc::make_mut(&mut self.places);
            places.remove(&planned);
            places.insert(pod.key.clone(), place);
        } else {
            // It was planned as something else, and so were the others.
            self.forget_coming(kind, &key, 0);
        }
    }

    /// A controller asks for fewer pods than have places.
    pub(crate) fn forget_surplus(&mut self, kind: WorkloadKind, key: &PodKey) {
        let kept = self.workloads.find(kind, key);
        let missing = kept
            .filter(|it| it.creates_pods)
            .map_or(0, |it| missing(it, self.owned.get(&it.uid)));
        self.forget_coming(kind, key, missing);
    }

    fn forget_coming(&mut self, kind: WorkloadKind, key: &PodKey, keeping: usize) {
        let prefix = prefix(kind.name(), key);
        let surplus = places(self, &prefix).skip(keeping);
        let surplus: Vec<PodKey> = surplus.map(|(key, _)| key.clone()).collect();
        if !surplus.is_empty() {
            let places = Arc::make_mut(&mut self.places);
            for key in surplus {
                places.remove(&key);
            }
        }
    }
}

pub(super) fn places<'a>(
    data: &'a Data,
    prefix: &'a PodKey,
) -> impl Iterator<Item = (&'a PodKey, &'a NodeRef)> {
    let following = data.places.from(prefix.clone());
    following.take_while(|(key, _)| has_prefix(key, prefix))
}

fn has_prefix(key: &PodKey, prefix: &PodKey) -> bool {
    key.namespace == prefix.namespace && key.name.starts_with(&prefix.name)
}

pub(super) fn controller(pod: &Pod, owner: &Owner) -> Option<(WorkloadKind, PodKey)> {
    let kind = WorkloadKind::of_owner(&owner.api_version, &owner.kind)?;
    Some((kind, PodKey::new(&pod.key.namespace, &owner.name)))
}
