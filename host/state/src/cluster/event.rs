//! What may happen to the model, and what may be wrong with it.

use std::sync::Arc;

use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use scheduling::pod::{InvalidPod, PodKey};

use crate::devices::{DeviceKind, DeviceObject};
use crate::workloads::{Workload, WorkloadKind};

/// One fact for [`Cluster::apply`](super::Cluster::apply): an object as the API has it now, its absence, or a mark of our own.
#[derive(Debug, Clone)]
pub enum Event {
    /// A Pod was added or changed.
    PodApplied(Arc<v1::Pod>),
    /// A Pod is gone.
    PodDeleted(PodKey),
    /// A Node was added or changed.
    NodeApplied(Arc<v1::Node>),
    /// A Node is gone.
    NodeDeleted(String),
    /// A NodeClaim was added or changed. Its creator applies it too, before any watch tells.
    NodeClaimApplied(Arc<NodeClaim>),
    /// A NodeClaim is gone.
    NodeClaimDeleted(String),
    /// A NodePool was added or changed.
    NodePoolApplied(Arc<NodePool>),
    /// A NodePool is gone.
    NodePoolDeleted(String),
    /// An EC2NodeClass was added or changed.
    NodeClassApplied(Arc<Ec2NodeClass>),
    /// An EC2NodeClass is gone.
    NodeClassDeleted(String),
    /// A NodeOverlay was added or changed.
    NodeOverlayApplied(Arc<NodeOverlay>),
    /// A NodeOverlay is gone.
    NodeOverlayDeleted(String),
    /// A DaemonSet was added or changed.
    DaemonSetApplied(Arc<DaemonSet>),
    /// A DaemonSet is gone.
    DaemonSetDeleted(PodKey),
    /// A PodDisruptionBudget was added or changed.
    PdbApplied(Arc<PodDisruptionBudget>),
    /// A PodDisruptionBudget is gone; namespace and name.
    PdbDeleted(String, String),
    /// A PersistentVolumeClaim was added or changed.
    VolumeClaimApplied(Arc<v1::PersistentVolumeClaim>),
    /// A PersistentVolumeClaim is gone; namespace and name.
    VolumeClaimDeleted(String, String),
    /// A PersistentVolume was added or changed.
    VolumeApplied(Arc<v1::PersistentVolume>),
    /// A PersistentVolume is gone.
    VolumeDeleted(String),
    /// A StorageClass was added or changed.
    StorageClassApplied(Arc<StorageClass>),
    /// A StorageClass is gone.
    StorageClassDeleted(String),
    /// A CSINode was added or changed.
    CsiNodeApplied(Arc<CSINode>),
    /// A CSINode is gone.
    CsiNodeDeleted(String),
    /// A Service was added or changed.
    ServiceApplied(Arc<v1::Service>),
    /// A Service is gone.
    ServiceDeleted(PodKey),
    /// A workload or a PodTemplate was added or changed.
    WorkloadApplied(Box<Workload>),
    /// A workload or a PodTemplate is gone.
    WorkloadDeleted(WorkloadKind, PodKey),
    /// A CapacityBuffer was added or changed.
    CapacityBufferApplied(Arc<CapacityBuffer>),
    /// A CapacityBuffer is gone.
    CapacityBufferDeleted(PodKey),
    /// An object that tells of devices was added or changed.
    DeviceObjectApplied(Box<DeviceObject>),
    /// An object that tells of devices is gone.
    DeviceObjectDeleted(DeviceKind, PodKey),
    /// A Namespace was added or changed.
    NamespaceApplied(Arc<v1::Namespace>),
    /// A Namespace is gone.
    NamespaceDeleted(String),
    /// Pods are expected on a node (or on a claim's node, by the claim's name) until then.
    Nominated {
        /// Name of the Node or NodeClaim.
        name: String,
        /// End of the window; a later end extends it, an earlier one changes nothing.
        until: Timestamp,
    },
    /// These pods were given a place on a node (or on a claim's node, by the claim's name). While it is being
    /// made they wait for it and are not placed again.
    Placed {
        /// Name of the Node or NodeClaim.
        name: String,
        /// The pods.
        pods: Vec<PodKey>,
    },
    /// What would be if a known pod ran elsewhere, or nowhere yet. Only models of the future tell this.
    PodMoved {
        /// The pod.
        pod: PodKey,
        /// Name of the Node.
        node: Option<String>,
    },
    /// A command is about to delete these; names of Nodes or NodeClaims.
    MarkedForDeletion(Vec<String>),
    /// The command was given up.
    UnmarkedForDeletion(Vec<String>),
    /// Something else that consolidation depends on changed: overlays, prices.
    OfferingsChanged,
}

/// An object that the model cannot take in; the model keeps nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A pod that does not parse.
    #[error(transparent)]
    Pod(#[from] InvalidPod),
    /// A DaemonSet whose template does not parse.
    #[error("daemonset {key}: template: {source}")]
    DaemonSet {
        /// The DaemonSet.
        key: PodKey,
        /// What is wrong.
        source: Box<InvalidPod>,
    },
}
