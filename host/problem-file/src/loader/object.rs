//! An object of any list of a problem file, read as the kind that the list holds.

use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
use k8s_openapi::api::apps::v1::{self as apps, DaemonSet};
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use serde_json::Value;
use state::devices::{DeviceKind, DeviceObject};
use state::workloads::Workload;

use crate::list::List;
use crate::typed::{Misread, typed};

/// An object of a list.
#[derive(Debug)]
pub(crate) enum Object {
    Pod(Box<v1::Pod>),
    BoundPod(Box<v1::Pod>),
    NodePool(Box<NodePool>),
    NodeClass(Box<Ec2NodeClass>),
    NodeOverlay(Box<NodeOverlay>),
    NodeClaim(Box<NodeClaim>),
    Node(Box<v1::Node>),
    DaemonSet(Box<DaemonSet>),
    Volume(Box<v1::PersistentVolume>),
    VolumeClaim(Box<v1::PersistentVolumeClaim>),
    StorageClass(Box<StorageClass>),
    CsiNode(Box<CSINode>),
    Namespace(Box<v1::Namespace>),
    Pdb(Box<PodDisruptionBudget>),
    Service(Box<v1::Service>),
    Workload(List, Box<Workload>),
    CapacityBuffer(Box<CapacityBuffer>),
    Device(Box<DeviceObject>),
}

impl Object {
    /// Reads an object of a list; with `unread`, also finds the fields that nobody reads.
    pub(super) fn read(
        list: List,
        value: &Value,
        unread: Option<&mut Vec<String>>,
    ) -> Result<Self, Misread> {
        Ok(match list {
            List::Pods => Self::Pod(typed(value, unread)?),
            List::BoundPods => Self::BoundPod(typed(value, unread)?),
            List::NodePools => Self::NodePool(typed(value, unread)?),
            List::NodeClasses => Self::NodeClass(typed(value, unread)?),
            List::NodeOverlays => Self::NodeOverlay(typed(value, unread)?),
            List::NodeClaims => Self::NodeClaim(typed(value, unread)?),
            List::Nodes => Self::Node(typed(value, unread)?),
            List::DaemonSets => Self::DaemonSet(typed(value, unread)?),
            List::PersistentVolumes => Self::Volume(typed(value, unread)?),
            List::PersistentVolumeClaims => Self::VolumeClaim(typed(value, unread)?),
            List::StorageClasses => Self::StorageClass(typed(value, unread)?),
            List::CsiNodes => Self::CsiNode(typed(value, unread)?),
            List::Namespaces => Self::Namespace(typed(value, unread)?),
            List::PodDisruptionBudgets => Self::Pdb(typed(value, unread)?),
            List::Services => Self::Service(typed(value, unread)?),
            List::Deployments => Self::workload(list, *typed::<apps::Deployment>(value, unread)?),
            List::ReplicaSets => Self::workload(list, *typed::<apps::ReplicaSet>(value, unread)?),
            List::StatefulSets => Self::workload(list, *typed::<apps::StatefulSet>(value, unread)?),
            List::ReplicationControllers => {
                Self::workload(list, *typed::<v1::ReplicationController>(value, unread)?)
            }
            List::PodTemplates => Self::workload(list, *typed::<v1::PodTemplate>(value, unread)?),
            List::CapacityBuffers => Self::CapacityBuffer(typed(value, unread)?),
            List::ResourceSlices => Self::device(DeviceKind::Slice, value)?,
            List::DeviceClasses => Self::device(DeviceKind::Class, value)?,
            List::ResourceClaims => Self::device(DeviceKind::Claim, value)?,
            List::ResourceClaimTemplates => Self::device(DeviceKind::Template, value)?,
        })
    }

    fn device(kind: DeviceKind, value: &Value) -> Result<Self, Misread> {
        let object = DeviceObject::read(kind, value).map_err(|error| Misread {
            field: "spec".to_owned(),
            message: error.to_string(),
        })?;
        Ok(Self::Device(Box::new(object)))
    }

    fn workload(list: List, workload: impl Into<Workload>) -> Self {
        Self::Workload(list, Box::new(workload.into()))
    }
}
