//! Names of resources: which table of the store a request means.
//!
//! A [`Resource`] is group and plural, as in `deployments.apps`; versions are a matter of the HTTP face.

use std::borrow::Cow;
use std::fmt;

/// Group and plural name of a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: Cow<'static, str>,
    /// Plural name in lower case.
    pub plural: Cow<'static, str>,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.plural)
        } else {
            write!(f, "{}.{}", self.plural, self.group)
        }
    }
}

impl Resource {
    /// A resource whose names are known at compile time.
    pub const fn fixed(group: &'static str, plural: &'static str) -> Self {
        Self {
            group: Cow::Borrowed(group),
            plural: Cow::Borrowed(plural),
        }
    }

    /// A resource whose names come from data.
    pub fn new(group: impl Into<String>, plural: impl Into<String>) -> Self {
        Self {
            group: Cow::Owned(group.into()),
            plural: Cow::Owned(plural.into()),
        }
    }

    /// core/v1 pods.
    pub const PODS: Self = Self::fixed("", "pods");
    /// core/v1 nodes.
    pub const NODES: Self = Self::fixed("", "nodes");
    /// core/v1 namespaces.
    pub const NAMESPACES: Self = Self::fixed("", "namespaces");
    /// core/v1 config maps.
    pub const CONFIG_MAPS: Self = Self::fixed("", "configmaps");
    /// core/v1 services.
    pub const SERVICES: Self = Self::fixed("", "services");
    /// core/v1 service accounts.
    pub const SERVICE_ACCOUNTS: Self = Self::fixed("", "serviceaccounts");
    /// Events of both groups; one table serves the two.
    pub const EVENTS: Self = Self::fixed("", "events");
    /// core/v1 persistent volumes.
    pub const PERSISTENT_VOLUMES: Self = Self::fixed("", "persistentvolumes");
    /// core/v1 persistent volume claims.
    pub const PERSISTENT_VOLUME_CLAIMS: Self = Self::fixed("", "persistentvolumeclaims");
    /// core/v1 replication controllers.
    pub const REPLICATION_CONTROLLERS: Self = Self::fixed("", "replicationcontrollers");
    /// core/v1 pod templates.
    pub const POD_TEMPLATES: Self = Self::fixed("", "podtemplates");
    /// apps/v1 deployments.
    pub const DEPLOYMENTS: Self = Self::fixed("apps", "deployments");
    /// apps/v1 replica sets.
    pub const REPLICA_SETS: Self = Self::fixed("apps", "replicasets");
    /// apps/v1 stateful sets.
    pub const STATEFUL_SETS: Self = Self::fixed("apps", "statefulsets");
    /// apps/v1 daemon sets.
    pub const DAEMON_SETS: Self = Self::fixed("apps", "daemonsets");
    /// batch/v1 jobs.
    pub const JOBS: Self = Self::fixed("batch", "jobs");
    /// batch/v1 cron jobs.
    pub const CRON_JOBS: Self = Self::fixed("batch", "cronjobs");
    /// policy/v1 pod disruption budgets.
    pub const POD_DISRUPTION_BUDGETS: Self = Self::fixed("policy", "poddisruptionbudgets");
    /// coordination.k8s.io/v1 leases.
    pub const LEASES: Self = Self::fixed("coordination.k8s.io", "leases");
    /// storage.k8s.io/v1 storage classes.
    pub const STORAGE_CLASSES: Self = Self::fixed("storage.k8s.io", "storageclasses");
    /// storage.k8s.io/v1 CSI nodes.
    pub const CSI_NODES: Self = Self::fixed("storage.k8s.io", "csinodes");
    /// storage.k8s.io/v1 volume attachments.
    pub const VOLUME_ATTACHMENTS: Self = Self::fixed("storage.k8s.io", "volumeattachments");
    /// scheduling.k8s.io/v1 priority classes.
    pub const PRIORITY_CLASSES: Self = Self::fixed("scheduling.k8s.io", "priorityclasses");
    /// Custom resource definitions.
    pub const CUSTOM_RESOURCE_DEFINITIONS: Self =
        Self::fixed("apiextensions.k8s.io", "customresourcedefinitions");
    /// karpenter.sh node pools.
    pub const NODE_POOLS: Self = Self::fixed("karpenter.sh", "nodepools");
    /// karpenter.sh node claims.
    pub const NODE_CLAIMS: Self = Self::fixed("karpenter.sh", "nodeclaims");
    /// karpenter.k8s.aws EC2 node classes.
    pub const EC2_NODE_CLASSES: Self = Self::fixed("karpenter.k8s.aws", "ec2nodeclasses");
}
