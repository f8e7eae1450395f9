//! A right: verbs on resources, where it is granted and when.
//!
//! Which there are, the tables say.

use crate::settings::Settings;

/// Verbs of whoever watches a kind.
pub(crate) const WATCHED: &[&str] = &["list", "watch"];
/// Verbs of whoever watches a kind, and asks for its objects one by one before something is done about them.
pub(crate) const LOOKED_AT: &[&str] = &["get", "list", "watch"];

/// Where a rule is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The ClusterRole of what does not depend on the cloud.
    Core,
    /// The ClusterRole of what EC2 needs.
    Aws,
    /// The ClusterRole of instances that are simulated on a real API server.
    Practice,
    /// The ClusterRole of a metrics port that asks who may read it.
    Metrics,
    /// The Role in the namespace of the release.
    LeaderElection,
    /// The Role in the namespace of the policies.
    Policies,
}

impl Role {
    /// Every role, in the order of the chart.
    pub const ALL: [Self; 6] = [
        Self::Core,
        Self::Aws,
        Self::Practice,
        Self::Metrics,
        Self::LeaderElection,
        Self::Policies,
    ];

    /// The end of the name of the chart's template with its rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Aws => "aws",
            Self::Practice => "practice",
            Self::Metrics => "metrics",
            Self::LeaderElection => "leaderElection",
            Self::Policies => "policies",
        }
    }
}

/// Feature that must be switched on for a rule to be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// No feature: the rule is always granted.
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
    /// Dynamic resource allocation, by which pods claim devices.
    Devices,
    /// Telling the scheduler where pods are planned to go.
    Nominations,
}

impl When {
    /// Condition on the values of the chart; none for what is always granted.
    pub(super) fn value(self) -> Option<&'static str> {
        match self {
            Self::Always => None,
            Self::CapacityBuffers => Some("settings.featureGates.capacityBuffer is true"),
            Self::NodeOverlays => Some("settings.featureGates.nodeOverlay is true"),
            Self::PodDeletionCosts => {
                Some("settings.featureGates.podDeletionCostManagement is true")
            }
            Self::DefaultSpread => Some("settings.schedulerConfig is set"),
            Self::ComingPods => Some("settings.planComingPods is true"),
            Self::Workloads => Some(
                "settings.planComingPods, settings.schedulerConfig or settings.featureGates.capacityBuffer is on",
            ),
            Self::Devices => Some("settings.ignoreDRARequests is false"),
            Self::Nominations => Some("settings.nominatePlannedPods is not off"),
        }
    }

    /// Whether the settings ask for it.
    pub fn holds(self, settings: &Settings) -> bool {
        match self {
            Self::Always => true,
            Self::CapacityBuffers => settings.feature_gates.capacity_buffer,
            Self::NodeOverlays => settings.feature_gates.node_overlay,
            Self::PodDeletionCosts => settings.feature_gates.pod_deletion_cost_management,
            Self::DefaultSpread => !settings.solving.scheduler.default_spread.is_empty(),
            Self::ComingPods => settings.plans_coming_pods(),
            Self::Workloads => {
                let asks = [Self::CapacityBuffers, Self::DefaultSpread, Self::ComingPods];
                asks.into_iter().any(|it| it.holds(settings))
            }
            Self::Devices => !settings.solving.ignore_dra_requests,
            Self::Nominations => settings.nominates_planned_pods(),
        }
    }
}

/// Verbs on resources of one group.
#[derive(Debug, Clone, Copy)]
pub struct RbacRule {
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
    /// Purpose of the right, in words.
    pub why: &'static str,
}

/// A request that a rule may allow.
#[derive(Debug, Clone, Copy)]
pub struct ResourceAttributes<'a> {
    /// As roles write it.
    pub verb: &'a str,
    /// Empty for the core group.
    pub group: &'a str,
    /// The plural, with the subresource after a slash.
    pub resource: &'a str,
    /// Empty for the collection.
    pub name: &'a str,
}

impl RbacRule {
    pub(crate) const fn new(
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

    pub(crate) const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    pub(crate) const fn of(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    /// Whether the rule allows it, where it is granted.
    pub fn allows(&self, request: ResourceAttributes<'_>) -> bool {
        self.group == request.group
            && self.resources.contains(&request.resource)
            && self.verbs.contains(&request.verb)
            && (self.names.is_empty() || self.names.contains(&request.name))
    }
}
