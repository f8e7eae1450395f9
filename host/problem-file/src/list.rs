//! The keys of a problem file that hold lists of objects.

use state::devices::DeviceKind;

/// A list of a problem file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    /// Pods that wait for a node.
    Pods,
    /// Pods that have one.
    BoundPods,
    /// NodePools.
    NodePools,
    /// EC2NodeClasses.
    NodeClasses,
    /// NodeOverlays.
    NodeOverlays,
    /// NodeClaims.
    NodeClaims,
    Nodes,
    /// DaemonSets.
    DaemonSets,
    /// PersistentVolumes.
    PersistentVolumes,
    /// PersistentVolumeClaims.
    PersistentVolumeClaims,
    /// StorageClasses.
    StorageClasses,
    /// CSINodes.
    CsiNodes,
    Namespaces,
    /// PodDisruptionBudgets.
    PodDisruptionBudgets,
    Services,
    /// Deployments; their pods are given apart.
    Deployments,
    /// ReplicaSets; their pods are given apart.
    ReplicaSets,
    /// StatefulSets; their pods are given apart.
    StatefulSets,
    /// ReplicationControllers; their pods are given apart.
    ReplicationControllers,
    /// PodTemplates.
    PodTemplates,
    /// CapacityBuffers.
    CapacityBuffers,
    /// ResourceSlices.
    ResourceSlices,
    /// DeviceClasses.
    DeviceClasses,
    /// ResourceClaims.
    ResourceClaims,
    /// ResourceClaimTemplates.
    ResourceClaimTemplates,
}

impl List {
    /// Every list that a file may have.
    pub const ALL: [Self; 25] = [
        Self::Pods,
        Self::BoundPods,
        Self::NodePools,
        Self::NodeClasses,
        Self::NodeOverlays,
        Self::NodeClaims,
        Self::Nodes,
        Self::DaemonSets,
        Self::PersistentVolumes,
        Self::PersistentVolumeClaims,
        Self::StorageClasses,
        Self::CsiNodes,
        Self::Namespaces,
        Self::PodDisruptionBudgets,
        Self::Services,
        Self::Deployments,
        Self::ReplicaSets,
        Self::StatefulSets,
        Self::ReplicationControllers,
        Self::PodTemplates,
        Self::CapacityBuffers,
        Self::ResourceSlices,
        Self::DeviceClasses,
        Self::ResourceClaims,
        Self::ResourceClaimTemplates,
    ];

    /// Key of the list in the file.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::BoundPods => "boundPods",
            Self::NodePools => "nodePools",
            Self::NodeClasses => "nodeClasses",
            Self::NodeOverlays => "nodeOverlays",
            Self::NodeClaims => "nodeClaims",
            Self::Nodes => "nodes",
            Self::DaemonSets => "daemonSets",
            Self::PersistentVolumes => "persistentVolumes",
            Self::PersistentVolumeClaims => "persistentVolumeClaims",
            Self::StorageClasses => "storageClasses",
            Self::CsiNodes => "csiNodes",
            Self::Namespaces => "namespaces",
            Self::PodDisruptionBudgets => "podDisruptionBudgets",
            Self::Services => "services",
            Self::Deployments => "deployments",
            Self::ReplicaSets => "replicaSets",
            Self::StatefulSets => "statefulSets",
            Self::ReplicationControllers => "replicationControllers",
            Self::PodTemplates => "podTemplates",
            Self::CapacityBuffers => "capacityBuffers",
            Self::ResourceSlices => "resourceSlices",
            Self::DeviceClasses => "deviceClasses",
            Self::ResourceClaims => "resourceClaims",
            Self::ResourceClaimTemplates => "resourceClaimTemplates",
        }
    }

    /// The list of a key.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.key() == key)
    }

    /// The list that objects of a kind belong to; workloads that make pods have none.
    pub fn of_kind(api_version: &str, kind: &str) -> Option<Self> {
        if api_version.starts_with("resource.k8s.io/") {
            return DeviceKind::of(kind).map(Self::of_devices);
        }
        Some(match (api_version, kind) {
            ("v1", "Pod") => Self::Pods,
            ("karpenter.sh/v1", "NodePool") => Self::NodePools,
            ("karpenter.sh/v1", "NodeClaim") => Self::NodeClaims,
            ("karpenter.k8s.aws/v1", "EC2NodeClass") => Self::NodeClasses,
            ("karpenter.sh/v1alpha1", "NodeOverlay") => Self::NodeOverlays,
            ("v1", "Node") => Self::Nodes,
            ("apps/v1", "DaemonSet") => Self::DaemonSets,
            ("v1", "PersistentVolume") => Self::PersistentVolumes,
            ("v1", "PersistentVolumeClaim") => Self::PersistentVolumeClaims,
            ("storage.k8s.io/v1", "StorageClass") => Self::StorageClasses,
            ("storage.k8s.io/v1", "CSINode") => Self::CsiNodes,
            ("v1", "Namespace") => Self::Namespaces,
            ("policy/v1", "PodDisruptionBudget") => Self::PodDisruptionBudgets,
            ("v1", "Service") => Self::Services,
            ("v1", "PodTemplate") => Self::PodTemplates,
            ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer") => Self::CapacityBuffers,
            _ => return None,
        })
    }

    /// The list of a kind that tells of devices.
    pub const fn of_devices(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Slice => Self::ResourceSlices,
            DeviceKind::Class => Self::DeviceClasses,
            DeviceKind::Claim => Self::ResourceClaims,
            DeviceKind::Template => Self::ResourceClaimTemplates,
        }
    }
}
