//! What the process may ask of the API server: one table, from which the roles of the chart are written.
//!
//! A right that is missing would be found out by a user, and one that is of no use by who took the service account
//! over; so tests compare the table with what is asked (`tests/it/rbac.rs`) and with the chart. Answers to
//! `charts/karpenter/templates/clusterrole-core.yaml`, `clusterrole.yaml` and `role.yaml`.

mod template;

use crate::settings::Settings;

pub use template::template;

/// Where a rule is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The ClusterRole of what does not depend on the cloud.
    Core,
    /// The ClusterRole of what EC2 needs.
    Aws,
    /// The ClusterRole of instances that are simulated on a real API server.
    Practice,
    /// The Role in the namespace of the release.
    LeaderElection,
    /// The Role in the namespace of the policies.
    Policies,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Core,
        Self::Aws,
        Self::Practice,
        Self::LeaderElection,
        Self::Policies,
    ];

    /// The end of the name of the chart's template with its rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Aws => "aws",
            Self::Practice => "practice",
            Self::LeaderElection => "leaderElection",
            Self::Policies => "policies",
        }
    }
}

/// What must be switched on for a rule to be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Nothing.
    Always,
    /// The gate of CapacityBuffers.
    CapacityBuffers,
    /// The gate of NodeOverlays.
    NodeOverlays,
    /// The gate by which pods carry their deletion cost.
    PodDeletionCosts,
    /// Constraints in the scheduler's configuration.
    DefaultSpread,
    /// Planning of pods that are about to be created.
    ComingPods,
    /// Whatever looks at how many pods a workload wants.
    Workloads,
    /// Dynamic resource allocation.
    Devices,
    /// Telling the scheduler where pods are planned to go.
    Nominations,
}

impl When {
    /// Whether the settings ask for it.
    pub fn holds(self, settings: &Settings) -> bool {
        match self {
            Self::Always => true,
            Self::CapacityBuffers => settings.feature_gates.capacity_buffer,
            Self::NodeOverlays => settings.feature_gates.node_overlay,
            Self::PodDeletionCosts => settings.feature_gates.pod_deletion_cost_management,
            Self::DefaultSpread => !settings.default_spread.is_empty(),
            Self::ComingPods => settings.plans_coming_pods(),
            Self::Workloads => {
                let asks = [Self::CapacityBuffers, Self::DefaultSpread, Self::ComingPods];
                asks.into_iter().any(|it| it.holds(settings))
            }
            Self::Devices => !settings.ignore_dra_requests,
            Self::Nominations => settings.nominates_planned_pods(),
        }
    }
}

/// Verbs on resources of one group.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Where it is granted.
    pub role: Role,
    /// Empty for the core group.
    pub group: &'static str,
    /// Plurals, with a subresource after a slash.
    pub resources: &'static [&'static str],
    /// Objects to which it is confined; all when empty.
    pub names: &'static [&'static str],
    /// As roles write them.
    pub verbs: &'static [&'static str],
    /// Without it the rule is left out.
    pub when: When,
    /// What it is for.
    pub why: &'static str,
}

/// A request that a rule may allow.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// As roles write it.
    pub verb: &'a str,
    /// Empty for the core group.
    pub group: &'a str,
    /// The plural, with the subresource after a slash.
    pub resource: &'a str,
    /// Empty for the collection.
    pub name: &'a str,
}

impl Rule {
    const fn new(
        role: Role,
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self {
            role,
            group,
            resources,
            names: &[],
            verbs,
            when: When::Always,
            why,
        }
    }

    const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    const fn of(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    /// Whether the rule allows it, where it is granted.
    pub fn allows(&self, request: Request<'_>) -> bool {
        self.group == request.group
            && self.resources.contains(&request.resource)
            && self.verbs.contains(&request.verb)
            && (self.names.is_empty() || self.names.contains(&request.name))
    }
}

const KARPENTER: &str = "karpenter.sh";
const AWS: &str = "karpenter.k8s.aws";
const WATCHED: &[&str] = &["list", "watch"];
/// Watched, and asked for one by one before something is done about them.
const LOOKED_AT: &[&str] = &["get", "list", "watch"];
const PATCHED: &[&str] = &["patch"];

/// Every rule of every role, in the order in which the chart has them.
pub const RULES: &[Rule] = &[
    // Read.
    Rule::new(
        Role::Core,
        KARPENTER,
        &["nodepools", "nodeclaims"],
        LOOKED_AT,
        "what may be bought, and what was",
    ),
    Rule::new(
        Role::Core,
        "",
        &["nodes"],
        LOOKED_AT,
        "what pods can run on",
    ),
    Rule::new(
        Role::Core,
        "",
        &["pods", "namespaces"],
        WATCHED,
        "what runs and what waits, and the labels by which affinity selects namespaces",
    ),
    Rule::new(
        Role::Core,
        "",
        &["persistentvolumes", "persistentvolumeclaims"],
        WATCHED,
        "where volumes bind pods to a zone",
    ),
    Rule::new(
        Role::Core,
        "storage.k8s.io",
        &["storageclasses", "csinodes", "volumeattachments"],
        WATCHED,
        "how many volumes a node takes, and which one that goes has yet to let go of",
    ),
    Rule::new(
        Role::Core,
        "apps",
        &["daemonsets"],
        WATCHED,
        "what comes onto every new node",
    ),
    Rule::new(
        Role::Core,
        "policy",
        &["poddisruptionbudgets"],
        WATCHED,
        "whom a drain may not evict",
    ),
    Rule::new(
        Role::Core,
        "apps",
        &["replicasets", "statefulsets"],
        WATCHED,
        "how many pods are wanted, and how they are selected",
    )
    .when(When::Workloads),
    Rule::new(
        Role::Core,
        "batch",
        &["jobs"],
        WATCHED,
        "how many pods are about to come",
    )
    .when(When::ComingPods),
    Rule::new(
        Role::Core,
        "",
        &["services", "replicationcontrollers"],
        WATCHED,
        "which pods the scheduler's default constraints count together",
    )
    .when(When::DefaultSpread),
    Rule::new(
        Role::Core,
        "autoscaling.x-k8s.io",
        &["capacitybuffers"],
        LOOKED_AT,
        "room that is kept",
    )
    .when(When::CapacityBuffers),
    Rule::new(
        Role::Core,
        "apps",
        &["deployments"],
        WATCHED,
        "the pods for which a buffer keeps room",
    )
    .when(When::CapacityBuffers),
    Rule::new(
        Role::Core,
        "",
        &["podtemplates"],
        WATCHED,
        "the same, as templates",
    )
    .when(When::CapacityBuffers),
    Rule::new(
        Role::Core,
        KARPENTER,
        &["nodeoverlays"],
        WATCHED,
        "prices and capacity that are other than the cloud says",
    )
    .when(When::NodeOverlays),
    Rule::new(
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
    Rule::new(
        Role::Core,
        KARPENTER,
        &["nodeclaims"],
        &["create", "delete", "patch"],
        "nodes are bought, marked and given back by their claims",
    ),
    Rule::new(
        Role::Core,
        KARPENTER,
        &["nodeclaims/status"],
        PATCHED,
        "how far a node has come",
    ),
    Rule::new(
        Role::Core,
        KARPENTER,
        &["nodepools", "nodepools/status"],
        PATCHED,
        "hashes by which drift is found, and what a pool has used",
    ),
    Rule::new(
        Role::Core,
        "",
        &["nodes"],
        &["delete", "patch"],
        "labels, taints and finalizers; a node goes by being deleted",
    ),
    Rule::new(
        Role::Core,
        "",
        &["pods/eviction"],
        &["create"],
        "nodes are drained within disruption budgets",
    ),
    Rule::new(
        Role::Core,
        "",
        &["pods"],
        &["delete"],
        "a drain that is at its end leaves nobody behind",
    ),
    Rule::new(
        Role::Core,
        "",
        &["pods"],
        &["get", "patch"],
        "each pod carries its deletion cost. This reaches every field of a pod that may change, its images too",
    )
    .when(When::PodDeletionCosts),
    Rule::new(
        Role::Core,
        "",
        &["pods/status"],
        PATCHED,
        "the scheduler is told where pods are planned to go (status.nominatedNodeName)",
    )
    .when(When::Nominations),
    Rule::new(
        Role::Core,
        "autoscaling.x-k8s.io",
        &["capacitybuffers/status"],
        PATCHED,
        "whether the room is there",
    )
    .when(When::CapacityBuffers),
    Rule::new(
        Role::Core,
        KARPENTER,
        &["nodeoverlays/status"],
        PATCHED,
        "whether the overlay can be applied",
    )
    .when(When::NodeOverlays),
    Rule::new(
        Role::Core,
        "",
        &["events"],
        &["create", "patch"],
        "what people are told",
    ),
    Rule::new(
        Role::Aws,
        AWS,
        &["ec2nodeclasses"],
        LOOKED_AT,
        "what instances are made of",
    ),
    Rule::new(
        Role::Aws,
        AWS,
        &["ec2nodeclasses", "ec2nodeclasses/status"],
        PATCHED,
        "hashes, finalizers, and what the names in it came to",
    ),
    Rule::new(
        Role::Aws,
        "networking.k8s.io",
        &["servicecidrs"],
        &["get"],
        "the range of service addresses, which goes into the user data of AL2023",
    )
    .of(&["kubernetes"]),
    Rule::new(
        Role::Aws,
        "",
        &["services"],
        &["get"],
        "the address of the cluster's DNS, which goes into the user data",
    )
    .of(&["kube-dns"]),
    Rule::new(
        Role::Practice,
        "",
        &["nodes"],
        &["create"],
        "no kubelet registers what is simulated",
    ),
    Rule::new(
        Role::Practice,
        "",
        &["nodes/status"],
        PATCHED,
        "nor says that it is ready",
    ),
    Rule::new(
        Role::LeaderElection,
        "coordination.k8s.io",
        &["leases"],
        &["get", "update"],
        "one of the replicas leads",
    )
    .of(&["karpenter-leader-election"]),
    Rule::new(
        Role::LeaderElection,
        "coordination.k8s.io",
        &["leases"],
        &["create"],
        "creation cannot be confined to a name",
    ),
    Rule::new(
        Role::Policies,
        "",
        &["configmaps"],
        &["get", "list", "watch", "patch"],
        "policies, what they name, and the annotation that says what became of them",
    ),
];
