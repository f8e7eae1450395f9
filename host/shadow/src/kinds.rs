//! Kinds that are read of a cluster: one table, from which the watches and the ClusterRole are made.
//!
//! No Secret and no ConfigMap may stand in it.

/// A kind that is read. The order is that in which objects are put into the shadow: owners before what they own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadKind {
    Namespaces,
    PriorityClasses,
    StorageClasses,
    PersistentVolumes,
    PersistentVolumeClaims,
    PodDisruptionBudgets,
    Ec2NodeClasses,
    NodePools,
    NodeOverlays,
    NodeClaims,
    Nodes,
    CsiNodes,
    ReplicaSets,
    StatefulSets,
    DaemonSets,
    Jobs,
    Pods,
}

/// How a kind is asked for.
#[derive(Debug)]
pub struct ReadRow {
    pub kind: ReadKind,
    /// API group, empty for the core.
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    /// Its name in objects.
    pub name: &'static str,
    /// Part of the report that is missing where the kind may not be listed.
    pub without: &'static str,
}

const fn row(kind: ReadKind, names: [&'static str; 4], without: &'static str) -> ReadRow {
    let [group, version, plural, name] = names;
    ReadRow {
        kind,
        group,
        version,
        plural,
        name,
        without,
    }
}

/// Every kind that is read.
pub const TABLE: [ReadRow; 17] = [
    row(
        ReadKind::Namespaces,
        ["", "v1", "namespaces", "Namespace"],
        "namespaces are those of the objects that are read; selectors of namespaces match nothing",
    ),
    row(
        ReadKind::PriorityClasses,
        [
            "scheduling.k8s.io",
            "v1",
            "priorityclasses",
            "PriorityClass",
        ],
        "new pods have the priority of pods that were there, or none",
    ),
    row(
        ReadKind::StorageClasses,
        ["storage.k8s.io", "v1", "storageclasses", "StorageClass"],
        "new volumes are of the default class",
    ),
    row(
        ReadKind::PersistentVolumes,
        ["", "v1", "persistentvolumes", "PersistentVolume"],
        "no pod is held to the zone of its volume",
    ),
    row(
        ReadKind::PersistentVolumeClaims,
        ["", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"],
        "pods with claims wait for ever in the shadow",
    ),
    row(
        ReadKind::PodDisruptionBudgets,
        [
            "policy",
            "v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
        ],
        "nothing holds up evictions in the shadow",
    ),
    row(
        ReadKind::Ec2NodeClasses,
        ["karpenter.k8s.aws", "v1", "ec2nodeclasses", "EC2NodeClass"],
        "a class of the simulated account stands in for all",
    ),
    row(
        ReadKind::NodePools,
        ["karpenter.sh", "v1", "nodepools", "NodePool"],
        "a NodePool of the demo stands in for all",
    ),
    row(
        ReadKind::NodeOverlays,
        ["karpenter.sh", "v1alpha1", "nodeoverlays", "NodeOverlay"],
        "prices and capacity are those of the catalogue",
    ),
    row(
        ReadKind::NodeClaims,
        ["karpenter.sh", "v1", "nodeclaims", "NodeClaim"],
        "nothing is known of what Karpenter launches, and the shadow starts without its nodes",
    ),
    row(
        ReadKind::Nodes,
        ["", "v1", "nodes", "Node"],
        "the shadow starts without nodes, and evictions of Karpenter are not counted",
    ),
    row(
        ReadKind::CsiNodes,
        ["storage.k8s.io", "v1", "csinodes", "CSINode"],
        "nodes take any number of volumes",
    ),
    row(
        ReadKind::ReplicaSets,
        ["apps", "v1", "replicasets", "ReplicaSet"],
        "their pods are taken for pods without a controller",
    ),
    row(
        ReadKind::StatefulSets,
        ["apps", "v1", "statefulsets", "StatefulSet"],
        "their pods are taken for pods without a controller",
    ),
    row(
        ReadKind::DaemonSets,
        ["apps", "v1", "daemonsets", "DaemonSet"],
        "nodes of the shadow have no daemons",
    ),
    row(
        ReadKind::Jobs,
        ["batch", "v1", "jobs", "Job"],
        "their pods are taken for pods without a controller",
    ),
    row(
        ReadKind::Pods,
        ["", "v1", "pods", "Pod"],
        "there is no load, and evictions of Karpenter are not counted",
    ),
];

/// Whether the rows stand in the order of the kinds, without a gap.
const fn is_in_order() -> bool {
    let mut at = 0;
    while at < TABLE.len() {
        if TABLE[at].kind as usize != at {
            return false;
        }
        at += 1;
    }
    at == ReadKind::Pods as usize + 1
}

const _: () = assert!(is_in_order(), "a kind has no row, or another one's");

impl ReadKind {
    /// Its row of the table.
    pub fn row(self) -> &'static ReadRow {
        const ROWS: &[ReadRow] = &TABLE;
        // Whoever compiles this has seen that every kind has its row, and which.
        &ROWS[self as usize]
    }

    /// Whether its pods are made by a controller that the shadow has, too.
    pub(crate) fn is_workload(self) -> bool {
        matches!(
            self,
            Self::ReplicaSets | Self::StatefulSets | Self::DaemonSets | Self::Jobs
        )
    }
}

impl ReadRow {
    /// As `kubectl` names it.
    pub fn resource(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// As objects and discovery write it.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Command by which somebody lets the kind be read.
    pub fn grant(&self) -> &'static str {
        "mortise shadow --rbac | kubectl apply -f -"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row_and_rows_are_in_the_order_of_the_kinds() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].kind < pair[1].kind, "{}", pair[1].plural);
        }
        for row in &TABLE {
            assert_eq!(row.kind.row().plural, row.plural);
        }
        assert_eq!(TABLE.len(), ReadKind::Pods as usize + 1);
    }
}
