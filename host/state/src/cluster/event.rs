//! Events: facts about objects, and marks of our own, that change the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::{NodeRef, ObjectKey};
use jiff::Timestamp;
use scheduling::pod::PodKey;

use super::watched::{AppliedObject, Deleted, Listed, Watched, WatchedEvent, WrittenObject};

/// One fact for [`Cluster::apply`](super::Cluster::apply): what the API has, or a mark of our own.
#[derive(Debug)]
pub enum Event {
    /// An object as the API has it now, its absence, or all there are of a kind; see [`applied`](Self::applied),
    /// [`deleted`](Self::deleted) and [`listed`](Self::listed).
    Object(ObjectEvent),
    /// Pods are expected on a node until then.
    Nominated {
        node: NodeRef,
        /// End of the window; a later end extends it, an earlier one changes nothing.
        until: Timestamp,
    },
    /// These pods were given a place on a node. While it is being made they wait for it and are not placed again.
    Placed { node: NodeRef, pods: Vec<PodKey> },
    /// A supposition that a known pod ran elsewhere, or nowhere yet. Only models of the future tell this.
    PodMoved {
        pod: PodKey,
        /// Name of the Node.
        node: Option<String>,
    },
    /// A command is about to delete these.
    MarkedForDeletion(Vec<NodeRef>),
    /// The command was given up.
    UnmarkedForDeletion(Vec<NodeRef>),
    /// Something else that consolidation depends on changed: overlays, prices.
    OfferingsChanged,
}

/// A fact about objects of one kind.
#[derive(Debug)]
pub struct ObjectEvent(pub(super) Box<dyn WatchedEvent>);

impl Event {
    /// An object was added or changed.
    pub fn applied<K: Watched>(object: Arc<K>) -> Self {
        Self::Object(ObjectEvent(Box::new(AppliedObject(object))))
    }

    /// We wrote an object ourselves: the model learns of it at once, as the watch may tell only after the next
    /// decision.
    pub fn written<K: Watched>(object: Arc<K>) -> Self {
        Self::Object(ObjectEvent(Box::new(WrittenObject(object))))
    }

    /// An object is gone.
    pub fn deleted<K: Watched<Kind = ()>>(key: ObjectKey) -> Self {
        Self::deleted_of::<K>((), key)
    }

    /// An object is gone, of one of the kinds that share a type.
    pub fn deleted_of<K: Watched>(kind: K::Kind, key: ObjectKey) -> Self {
        Self::Object(ObjectEvent(Box::new(Deleted::<K>(kind, key))))
    }

    /// These are all the objects that there are of a kind: what the model has beside them is gone.
    pub fn listed<K: Watched>(kind: K::Kind, keys: BTreeSet<ObjectKey>) -> Self {
        Self::Object(ObjectEvent(Box::new(Listed::<K>(kind, keys))))
    }
}
