//! Why a pod was not placed, as data; the wording is in `Display` only.
//!
//! Nothing here decides anything. Answers to the error texts of Karpenter's
//! `pkg/controllers/provisioning/scheduling`.

use apis::CapacityType;
use apis::resources::Resources;

use crate::ranking::Exclusions;
use crate::requirements::Incompatible;

/// Why a pod has no place.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PodError {
    /// No pool may open nodes, and no node has enough available.
    #[error("no nodepools found")]
    NoPools,
    /// Every pool was tried.
    #[error("{}", join(.0))]
    Pools(Vec<PoolFailure>),
    /// Its volumes cannot be used.
    #[error("resolving volumes, {0}")]
    Volumes(String),
    /// It asks for devices by ResourceClaims, and the settings leave such pods alone.
    #[error(
        "pod uses dynamic resource allocation, which IGNORE_DRA_REQUESTS=true leaves alone; set it to false"
    )]
    ResourceClaims,
    /// Its claims cannot be satisfied.
    #[error("allocating devices, {0}")]
    Devices(String),
    /// Only reserved capacity would do, and it is spoken for in this pass.
    #[error("waiting for reserved capacity in nodepool \"{pool}\"")]
    ReservedCapacityPending { pool: String },
    /// Time ran out before its turn.
    #[error("scheduling was interrupted before this pod was tried")]
    Interrupted,
}

impl PodError {
    /// Why each pool could not take the pod, where pools were tried.
    pub fn pool_failures(&self) -> &[PoolFailure] {
        match self {
            Self::Pools(failures) => failures,
            Self::NoPools
            | Self::Volumes(_)
            | Self::ResourceClaims
            | Self::Devices(_)
            | Self::ReservedCapacityPending { .. }
            | Self::Interrupted => &[],
        }
    }
}

/// Why a pool could not take a pod.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("incompatible with nodepool \"{pool}\", {cause}{}", nearest(.nearest_miss.as_ref()))]
pub struct PoolFailure {
    pub pool: String,
    pub cause: PoolCause,
    /// The smallest single change that would have helped, when one would.
    pub nearest_miss: Option<NearestMiss>,
}

/// Rule by which a pool was ruled out for a pod.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PoolCause {
    /// A taint is not tolerated.
    #[error("did not tolerate taint (taint={key}{}:{effect})", equals(.value))]
    Taint {
        key: String,
        /// Empty where the taint has none.
        value: String,
        effect: String,
    },
    /// The pool's labels and requirements rule the pod out.
    #[error("incompatible requirements, {0}")]
    Requirements(Incompatible),
    /// The pool has used up a limit.
    #[error("all available instance types exceed limits for nodepool (limit on {resource})")]
    Limit {
        /// As in the pool's `spec.limits`.
        resource: String,
    },
    /// The pool has used up its number of nodes.
    #[error("node limit reached for nodepool")]
    NodeLimit,
    /// No instance type passes all rules.
    #[error("{0}")]
    NoInstanceType(TypeCounts),
    /// Spreading, affinity or anti-affinity leaves no domain.
    #[error("unsatisfiable topology constraint for {kind}, key={key} (counts = {counts})")]
    Topology {
        kind: TopologyKind,
        /// Node label whose values are the domains.
        key: String,
        /// Pods by domain, in words.
        counts: String,
    },
    /// DaemonSets of the pool hold a host port.
    #[error("host port {port} is taken by a daemonset")]
    HostPort { port: i32 },
    /// Not enough distinct values are left.
    #[error(
        "minValues requirement is not met for label(s) (label(s)={key}, needed {needed}, have {have})"
    )]
    MinValues {
        /// Label whose values are counted.
        key: String,
        /// Distinct values that the pool asks for.
        needed: u32,
        /// Distinct values that are left.
        have: u32,
    },
    /// No alternative of its volumes agrees with the pool.
    #[error("incompatible volume requirements, {0}")]
    Volumes(Incompatible),
    /// The policy ruled out every offering that is left.
    #[error("ranking policy excluded every offering left ({}): {}", .0.total(), .0)]
    Excluded(Exclusions),
}

/// Kind of topology constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopologyKind {
    Spread,
    Affinity,
    /// Anti-affinity, inverse anti-affinity included.
    AntiAffinity,
}

impl std::fmt::Display for TopologyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Spread => "topology spread",
            Self::Affinity => "pod affinity",
            Self::AntiAffinity => "pod anti-affinity",
        })
    }
}

/// How many types each rule left out. A type counts under the first rule it fails.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TypeCounts {
    /// Types of the pool.
    pub considered: usize,
    /// Left out by requirements.
    pub by_requirements: usize,
    /// Left out by resources.
    pub by_resources: usize,
    /// Left out because no offering is available and compatible.
    pub by_offerings: usize,
    /// Left out by the pool's limits.
    pub by_limits: usize,
    /// Requests that had to fit, daemons included.
    pub requests: Resources,
}

impl std::fmt::Display for TypeCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const CPU_MILLIS_SUSPICIOUS: i64 = 1_000_000_000;
        let rules = [
            (
                self.by_requirements,
                "which met the scheduling requirements",
            ),
            (self.by_resources, "which had enough resources"),
            (self.by_offerings, "which had a required offering"),
            (self.by_limits, "which stayed within the nodepool's limits"),
        ];
        write!(f, "no instance type was found")?;
        let failed: Vec<&str> = rules
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(_, words)| *words)
            .collect();
        if !failed.is_empty() {
            write!(f, " {}", failed.join(" and "))?;
        }
        write!(
            f,
            " (of {} types, {} left out by requirements, {} by resources, {} by offerings, {} by limits)",
            self.considered,
            self.by_requirements,
            self.by_resources,
            self.by_offerings,
            self.by_limits
        )?;
        if self.requests.cpu_millis() >= CPU_MILLIS_SUSPICIOUS {
            write!(f, ", cpu request is 1M cores or more: is the unit missing?")?;
        }
        Ok(())
    }
}

/// The smallest single change that would have let the pod in.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NearestMiss {
    /// The pod would have to tolerate a taint.
    #[error("it would fit if it tolerated {key}{}:{effect}", equals(.value))]
    Tolerate {
        key: String,
        /// Empty where the taint has none.
        value: String,
        effect: String,
    },
    /// The pod would have to drop a requirement.
    #[error("it would fit without the requirement {0}")]
    DropRequirement(String),
    /// The pod would have to ask for less of a resource.
    #[error("{instance_type} is the closest, short of {resource} by {short}")]
    Resource {
        /// Name of the type that comes closest.
        instance_type: String,
        /// Name of the resource that is short.
        resource: String,
        /// By how much, as a quantity.
        short: String,
    },
    /// A limit of the pool would have to be raised.
    #[error("it would fit if the limit on {resource} were {short} higher")]
    RaiseLimit {
        /// As in the pool's `spec.limits`.
        resource: String,
        /// By how much, as a quantity.
        short: String,
    },
    /// An offering that is unavailable would have to come back.
    #[error("{instance_type} in {zone} ({capacity_type}) would fit but is unavailable")]
    Unavailable {
        /// Name of the instance type.
        instance_type: String,
        zone: String,
        capacity_type: CapacityType,
    },
}

impl PodError {
    /// A stable word for the reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoPools => "NoNodePools",
            Self::Pools(failures) => match failures.first().map(|f| &f.cause) {
                Some(PoolCause::Taint { .. }) => "Taints",
                Some(PoolCause::Requirements(_)) => "Requirements",
                Some(PoolCause::Limit { .. } | PoolCause::NodeLimit) => "Limits",
                Some(PoolCause::NoInstanceType(counts)) => counts.reason(),
                Some(PoolCause::Topology { .. }) => "Topology",
                Some(PoolCause::HostPort { .. }) => "HostPorts",
                Some(PoolCause::MinValues { .. }) => "MinValues",
                Some(PoolCause::Volumes(_)) => "Volumes",
                Some(PoolCause::Excluded(_)) => "Policy",
                None => "NoNodePools",
            },
            Self::Volumes(_) => "Volumes",
            Self::ResourceClaims | Self::Devices(_) => "ResourceClaims",
            Self::ReservedCapacityPending { .. } => "ReservedCapacity",
            Self::Interrupted => "Interrupted",
        }
    }

    /// The nearest miss over all pools: the first pool that has one.
    pub fn nearest_miss(&self) -> Option<&NearestMiss> {
        match self {
            Self::Pools(failures) => failures.iter().find_map(|f| f.nearest_miss.as_ref()),
            Self::NoPools
            | Self::Volumes(_)
            | Self::ResourceClaims
            | Self::Devices(_)
            | Self::ReservedCapacityPending { .. }
            | Self::Interrupted => None,
        }
    }

    /// Whether the pod only waits for the next pass: no event, not counted as unschedulable.
    pub fn is_deferral(&self) -> bool {
        matches!(
            self,
            Self::ReservedCapacityPending { .. } | Self::Interrupted
        )
    }
}

impl TypeCounts {
    fn reason(&self) -> &'static str {
        let most = [
            (self.by_resources, "Resources"),
            (self.by_offerings, "Offerings"),
            (self.by_limits, "Limits"),
            (self.by_requirements, "Requirements"),
        ];
        most.iter()
            .find(|(n, _)| *n > 0)
            .map_or("Requirements", |(_, word)| *word)
    }
}

fn equals(value: &str) -> String {
    if value.is_empty() {
        String::new()
    } else {
        format!("={value}")
    }
}

fn nearest(miss: Option<&NearestMiss>) -> String {
    miss.map(|miss| format!(", {miss}")).unwrap_or_default()
}

fn join(failures: &[PoolFailure]) -> String {
    failures
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
