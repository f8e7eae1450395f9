//! What controllers lack of their pods, and where those are planned to go, as far as the model minds them: a pod that
//! is born takes the place of one of its kind.
//!
//! Counts what is not there. Which of these pods are about to be created is for `planning::coming` to decide.

mod key;
pub(crate) mod owned;
mod places;

use std::sync::Arc;

use apis::NodeRef;
use jiff::Timestamp;
use scheduling::pod::{Pod, PodKey, PodShape};

use crate::snapshot::Snapshot;
use key::{numbered, prefix};
use owned::{expected, missing};
use places::{controller, places};

pub use key::is_coming;

/// The pods that one controller lacks.
#[derive(Debug)]
pub struct MissingPods<'a> {
    /// How many they are; never none.
    pub count: usize,
    /// Shape of the next one; `None` where the controller's template cannot be read.
    pub shape: Option<&'a Arc<PodShape>>,
    /// When a pod of the controller was last seen for the first time, or the controller asked for another number.
    pub last_sign_at: Timestamp,
    snapshot: &'a Snapshot,
    prefix: PodKey,
}

impl MissingPods<'_> {
    /// The name by which one of them is planned: it is no pod's.
    pub fn key(&self, number: usize) -> PodKey {
        numbered(&self.prefix, number)
    }

    /// Those that a place is planned for, with that place, in order of their names.
    pub fn places(&self) -> impl Iterator<Item = (&PodKey, &NodeRef)> {
        places(&self.snapshot.data, &self.prefix)
    }
}

impl Snapshot {
    /// Pods that controllers lack and make up for, in order of the controllers' kinds and names.
    pub fn missing_pods(&self) -> impl Iterator<Item = MissingPods<'_>> {
        let workloads = self.data.workloads.all.iter();
        let creating = workloads.filter(|(_, kept)| kept.creates_pods);
        creating.filter_map(move |((kind, key), kept)| {
            let owned = self.data.owned.get(&kept.uid);
            let count = missing(kept, owned);
            let newest = owned.and_then(|it| it.newest.as_ref()).map(|(at, _)| *at);
            (count > 0).then(|| MissingPods {
                count,
                shape: expected(kept, owned),
                last_sign_at: newest.map_or(kept.changed_at, |at| at.max(kept.changed_at)),
                snapshot: self,
                prefix: prefix(kind.name(), key),
            })
        })
    }

    /// When the pod was asked for, if it is one that its controller makes up for: since then it was to be expected.
    pub fn asked_for_at(&self, pod: &Pod) -> Option<Timestamp> {
        let owner = pod.shape.owner.as_ref()?;
        let (kind, key) = controller(pod, owner)?;
        let kept = self.data.workloads.find(kind, &key)?;
        (kept.creates_pods && kept.uid == owner.uid).then_some(kept.changed_at)
    }

    /// When a pod with an owner was last seen for the first time.
    pub fn last_birth_at(&self) -> Option<Timestamp> {
        self.data.last_birth_at
    }
}
