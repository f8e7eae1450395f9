//! Every right that the process needs beside those to watch, and what it is for.
//!
//! A table, no decisions.

use super::rule::{RbacRule, Role, When};

const KARPENTER: &str = "karpenter.sh";
const AWS: &str = "karpenter.k8s.aws";
const PATCHED: &[&str] = &["patch"];

/// Rights to write, and to ask for objects once.
pub(super) const WRITTEN: &[RbacRule] = &[
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
        Role::Metrics,
        "authentication.k8s.io",
        &["tokenreviews"],
        &["create"],
        "whose token it is that comes with a request for metrics",
    ),
    RbacRule::new(
        Role::Metrics,
        "authorization.k8s.io",
        &["subjectaccessreviews"],
        &["create"],
        "and whether that one may read them",
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
        PATCHED,
        "the annotation that says what became of a policy",
    ),
];
