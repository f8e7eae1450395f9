//! Changes that an event made, by which controllers know what to look at again, and faults that an object may have.

use std::sync::Arc;

use apis::NodeRef;
use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool, ObjectKey, ProviderId};
use scheduling::pod::{InvalidPod, Pod, PodKey};

/// Changes that an event made. Of an event that changed nothing that anybody looks at there is none.
pub type Changes = Vec<Change>;

/// Something to look at again. `before` and `after` are the object as the model had it and has it. There is none of a
/// kind that is looked at only together with others (volumes, DaemonSets, ...).
#[derive(Debug, Clone)]
pub enum Change {
    /// A Pod is new or changed.
    Pod {
        /// The pod before; none when it is new.
        before: Option<Arc<Pod>>,
        after: Arc<Pod>,
        /// The node that it was planned for until it was bound now.
        planned: Option<NodeRef>,
    },
    /// A Pod is kept no longer.
    PodGone { before: Arc<Pod>, end: PodEnd },
    /// A pod lost the place planned for it to another of its kind.
    PodDisplaced(PodKey),
    /// A Node; heartbeats are no change.
    Node {
        name: String,
        /// Provider id from `spec.providerID`; none while the Node has none.
        provider_id: Option<ProviderId>,
        /// Summary of the Node as it is now; none when it is gone.
        after: Option<NodeSummary>,
    },
    /// A NodeClaim was told of, whether or not the model keeps anything that changed.
    NodeClaim {
        name: String,
        /// Name of its Node, where it has one.
        node: Option<String>,
        /// Name of its NodePool.
        pool: Option<String>,
        /// The claim now; none when it is gone.
        after: Option<Arc<NodeClaim>>,
    },
    /// A NodePool is new, changed or gone.
    NodePool(Versions<NodePool>),
    /// An EC2NodeClass is new, changed or gone.
    NodeClass(Versions<Ec2NodeClass>),
    /// A NodeOverlay is new, changed or gone.
    NodeOverlay(Versions<NodeOverlay>),
    /// A CapacityBuffer is new, changed or gone.
    CapacityBuffer(Versions<CapacityBuffer>),
    /// A workload or PodTemplate.
    Workload(ObjectKey),
}

/// Why a pod is not kept any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodEnd {
    /// The API has it no more.
    Deleted,
    /// It has run to its end, or cannot be read.
    Over,
}

/// An object before and after.
#[derive(Debug, Clone)]
pub struct Versions<K> {
    pub key: ObjectKey,
    pub change: ChangedObject<K>,
}

/// What became of an object.
#[derive(Debug, Clone)]
pub enum ChangedObject<K> {
    New(Arc<K>),
    Changed { before: Arc<K>, after: Arc<K> },
    Gone(Arc<K>),
}

impl<K> Versions<K> {
    /// Of an object that is there.
    pub(crate) fn applied(key: ObjectKey, before: Option<Arc<K>>, after: Arc<K>) -> Self {
        let change = match before {
            None => ChangedObject::New(after),
            Some(before) => ChangedObject::Changed { before, after },
        };
        Self { key, change }
    }

    /// Of an object that is there no more; nothing where there was nothing.
    pub(crate) fn gone(key: &ObjectKey, before: Option<Arc<K>>) -> Option<Self> {
        before.map(|before| Self {
            key: key.clone(),
            change: ChangedObject::Gone(before),
        })
    }

    /// The object now; none when it is gone.
    pub fn after(&self) -> Option<&K> {
        match &self.change {
            ChangedObject::New(after) | ChangedObject::Changed { after, .. } => Some(after),
            ChangedObject::Gone(_) => None,
        }
    }

    /// Whether a property is another than before; of an object that is new or gone each is.
    pub fn differ<T: PartialEq>(&self, property: impl Fn(&K) -> T) -> bool {
        match &self.change {
            ChangedObject::New(_) | ChangedObject::Gone(_) => true,
            ChangedObject::Changed { before, after } => property(before) != property(after),
        }
    }
}

/// Marks of a Node that controllers look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeSummary {
    /// It has a deletion timestamp.
    pub is_deleting: bool,
    /// It carries the taint of disruption.
    pub is_disrupted: bool,
}

/// An object that the model did not take in.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub struct Refused {
    /// Fault of the object.
    pub error: Box<StateError>,
    /// Changes made nevertheless: of a pod nothing is kept that is no longer so.
    pub changes: Changes,
}

/// A fault of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A pod that does not parse.
    #[error(transparent)]
    Pod(#[from] InvalidPod),
    /// A DaemonSet whose template does not parse.
    #[error("daemonset {key}: template: {source}")]
    DaemonSet {
        /// Namespace and name of the DaemonSet.
        key: ObjectKey,
        /// Fault of the template.
        source: Box<InvalidPod>,
    },
}
