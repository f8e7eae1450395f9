//! Every right that the process needs, and what it is for.
//!
//! A table, no decisions.

use super::{RbacRule, Role, When};

const KARPENTER: &str = "karpenter.sh";
const AWS: &str = "karpenter.k8s.aws";
const WATCHED: &[&str] = &["list", "watch"];
/// Watched, and asked for one by one before something is done about them.
const LOOKED_AT: &[&str] = &["get", "list", "watch"];
const PATCHED: &[&str] = &["patch"];

/// Every rule of every role, in the order in which the chart has them.
pub const RULES: &[RbacRule] = &[
    // Read.
    RbacRule::new(
        Role::Core,
        KARPENTER,
        &["nodepools", "nodeclaims"],
        LOOKED_AT,
        "what may be bought, and what was",
    ),
    RbacRule::new(
        Role::Core,
        "",
        &["nodes"],
        LOOKED_AT,
        "what pods can run on",
    ),
    RbacRule::new(
        Role::Core,
        "",
        &["pods", "namespaces"],
        WATCHED,
        "what runs and what waits, and the labels by which affinity selects namespaces",
    ),
    RbacRule::new(
        Role::Core,
        "",
        &["persistentvolumes", "persistentvolumeclaims"],
        WATCHED,
        "where volumes bind pods to a zone",
    ),
    RbacRule::new(
        Role::Core,
        "storage.k8s.io",
        &["storageclasses", "csinodes", "volumeattachments"],
        WATCHED,
        "how many volumes a node takes, and which one that goes has yet to let go of",
    ),
    RbacRule::new(
        Role::Core,
        "apps",
        &["daemonsets"],
        WATCHED,
        "what comes onto every new node",
    ),
    RbacRule::new(
        Role::Core,
        "policy",
        &["poddisruptionbudgets"],
        WATCHED,
        "whom a drain may not evict",
    ),
    RbacRule::new(
        Role::Core,
        "apps",
        &["replicasets", "statefulsets"],
        WATCHED,
        "how many pods are wanted, and how they are selected",
    )
    .when(When::Workloads),
    RbacRule::new(
        Role::Core,
        "batch",
        &["jobs"],
        WATCHED,
        "how many pods are about to come",
    )
    .when(When::ComingPods),
    RbacRule::new(
        Role::Core,
        "",
        &["services", "replicationcontrollers"],
        WATCHED,
        "which pods the scheduler's default constraints count together",
    )
    .when(When::DefaultSpread),
    RbacRule::new(
        Role::Core,
        "autoscaling.x-k8s.io",
        &["capacitybuffers"],
        LOOKED_AT,
        "room that is kept",
    )
    .when(When::CapacityBuffers),
    RbacRule::new(
        Role::Core,
        "apps",
        &["deployments"],
        WATCHED,
        "the pods for which a buffer keeps room",
    )
    .when(When::CapacityBuffers),
    RbacRule::new(
        Role::Core,
        "",
        &["podtemplates"],
        WATCHED,
        "the same, as templates",
    )
    .when(When::CapacityBuffers),
    RbacRule::new(
        Role::Core,
        KARPENTER,
        &["nodeoverlays"],
        WATCHED,
        "prices and capacity that are other than the cloud says",
    )
    .when(When::NodeOverlays),
    RbacRule::new(
        Role::Core,
        "resource.k8s.io",
        &[
            "deviceclasses",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
        ],
        WATCHED,
        "devices that pods claim",
    )
    .when(When::Devices),
    // Write.
    RbacRule::new(
        Role::Core,
        KARPENTER,
        &["nodeclaims"],
        &["create", "delete", "patch"],
        "nodes are bought, marked and given back by their claims",
    ),
    RbacRule::new(
        Role::Core,
        KARPENTER,
        &["nodeclaims/status"],
        PATCHED,
        "how far a node has come",
    ),
    RbacRule::new(
        Role::Core,
        KARPENTER,
        &["nodepools", "nodepools/status"],
        PATCHED,
        "hashes by which drift is found, and what a pool has used",
    ),
    RbacRule::new(
        Role::Core,
        "",
        &["nodes"],
        &["delete", "patch"],
        "labels, taints and finalizers; a node goes by being deleted",
    ),
    RbacRule::new(
        Role::Core,
        "",
        &["pods/eviction"],
        &["create"],
        "nodes are drained within disruption budgets",
    ),
    RbacRule::new(
        Role::Core,
        "",
        &["pods"],
        &["delete"],
        "a drain that is at its end leaves nobody behind",
    ),
    RbacRule::new(
        Role::Core,
        "",
        &["pods"],
        &["get", "patch"],
        "each pod carries its deletion cost. This reaches every field of a pod that may change, its images too",
    )
    .when(When::PodDeletionCosts),
    RbacRule::new(
        Role::Core,
        "",
        &["pods/status"],
        PATCHED,
        "the scheduler is told where pods are planned to go (status.nominatedNodeName)",
    )
    .when(When::Nominations),
    RbacRule::new(
        Role::Core,
        "autoscaling.x-k8s.io",
        &["capacitybuffers/status"],
        PATCHED,
        "whether the room is there",
    )
    .when(When::CapacityBuffers),
    RbacRule::new(
        Role::Core,
        KARPENTER,
        &["nodeoverlays/status"],
        PATCHED,
        "whether the overlay can be applied",
    )
    .when(When::NodeOverlays),
    RbacRule::new(
        Role::Core,
        "",
        &["events"],
        &["create", "patch"],
        "what people are told",
    ),
    RbacRule::new(
        Role::Aws,
        AWS,
        &["ec2nodeclasses"],
        LOOKED_AT,
        "what instances are made of",
    ),
    RbacRule::new(
        Role::Aws,
        AWS,
        &["ec2nodeclasses", "ec2nodeclasses/status"],
        PATCHED,
        "hashes, finalizers, and what the names in it came to",
    ),
    RbacRule::new(
        Role::Aws,
        "networking.k8s.io",
        &["servicecidrs"],
        &["get"],
        "the range of service addresses, which goes into the user data of AL2023",
    )
    .of(&["kubernetes"]),
    RbacRule::new(
        Role::Aws,
        "",
        &["services"],
        &["get"],
        "the address of the cluster's DNS, which goes into the user data",
    )
    .of(&["kube-dns"]),
    RbacRule::new(
        Role::Practice,
        "",
        &["nodes"],
        &["create"],
        "no kubelet registers what is simulated",
    ),
    RbacRule::new(
        Role::Practice,
        "",
        &["nodes/status"],
        PATCHED,
        "nor says that it is ready",
    ),
    RbacRule::new(
        Role::LeaderElection,
        "coordination.k8s.io",
        &["leases"],
        &["get", "update"],
        "one of the replicas leads",
    )
    .of(&["karpenter-leader-election"]),
    RbacRule::new(
        Role::LeaderElection,
        "coordination.k8s.io",
        &["leases"],
        &["create"],
        "creation cannot be confined to a name",
    ),
    RbacRule::new(
        Role::Policies,
        "",
        &["configmaps"],
        &["get", "list", "watch", "patch"],
        "policies, what they name, and the annotation that says what became of them",
    ),
];
