//! Input of a solve: pools with their types, nodes, pending pods, DaemonSets, options.
//!
//! Values only, shared through `Arc` so that a simulation costs little. Answers to the arguments of Karpenter's
//! `scheduling.NewScheduler`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodePool, ObjectKey};
use hooks::ranking::PremiumMax;
use jiff::Timestamp;

use crate::device::Devices;
use crate::instance_type::InstanceType;
use crate::pod::{Pod, PodKey, PodShape, TopologySpread};
use crate::ranking::{FactsByOwner, Usage, UsageKey};
use crate::requirements::Requirements;

pub use crate::existing_node::ExistingNode;
pub use crate::instance_type::OfferingKey;

/// Everything a solve looks at.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Pools that may open nodes, in any order; weight and name decide.
    pub pools: Vec<Pool>,
    /// Nodes that exist or are on their way.
    pub nodes: Vec<Arc<ExistingNode>>,
    /// Pods that are to get a place.
    pub pods: Vec<Arc<Pod>>,
    /// One pod a DaemonSet.
    pub daemons: Vec<DaemonPod>,
    /// Labels of the namespaces, for namespace selectors.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Resolved volumes of the pods to place; pods without volumes are absent.
    pub volumes: BTreeMap<PodKey, PodVolumes>,
    /// Devices and who claims them, if pods that claim any take part.
    pub devices: Option<Arc<Devices>>,
    /// Nodes by pool and offering, for the ranking policy.
    pub usage: BTreeMap<UsageKey, Usage>,
    /// Facts about the pods' owners, for the ranking policy.
    pub owners: FactsByOwner,
    /// Pods that leave a node voluntarily: they may not go to a node whose `is_within_consolidate_after` is set.
    pub candidates: BTreeSet<PodKey>,
    /// Options of the solve.
    pub options: Options,
}

/// A pool that may open nodes.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The NodePool as the API has it.
    pub node_pool: Arc<NodePool>,
    /// Instance types that it may buy.
    pub instance_types: Arc<[Arc<InstanceType>]>,
    /// Free addresses of its class's subnets by zone, for the ranking policy.
    pub free_addresses: BTreeMap<String, u32>,
    /// Capacity of its nodes, deleting ones excluded, with the pseudo resource `nodes`; counts against the limits.
    pub in_use: Resources,
}

/// A DaemonSet, represented by one pod.
#[derive(Debug, Clone)]
pub struct DaemonPod {
    /// Namespace and name of the DaemonSet.
    pub key: ObjectKey,
    /// The pod it would start.
    pub shape: Arc<PodShape>,
}

/// Volumes of a pod, resolved by the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodVolumes {
    /// The node must satisfy one of these, tried in order; empty means anything goes.
    pub alternatives: Vec<Requirements>,
    /// Volumes by CSI driver.
    pub attachments: BTreeMap<String, BTreeSet<String>>,
    /// Why the volumes cannot be used, when they cannot.
    pub error: Option<String>,
}

/// Whether preferences count as requirements until they cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "clap",
    derive(clap::ValueEnum),
    value(rename_all = "PascalCase")
)]
pub enum PreferencePolicy {
    /// They do
    #[default]
    Respect,
    /// They are not looked at
    Ignore,
}

/// What happens when `minValues` cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "clap",
    derive(clap::ValueEnum),
    value(rename_all = "PascalCase")
)]
pub enum MinValuesPolicy {
    /// The claim is not made
    #[default]
    Strict,
    /// The number is lowered
    BestEffort,
}

/// Rule for pods when reserved capacity runs out within a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReservedMode {
    /// Reserved offerings are not considered (gate off).
    Off,
    /// Pods that can only use reserved capacity wait for the next pass (provisioning).
    #[default]
    Strict,
    /// Proceed without (disruption simulations).
    Fallback,
}

/// How claims are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Packing {
    /// First fit, few large nodes, as Karpenter does
    Karpenter,
    /// The cheapest bill
    #[default]
    Cost,
}

/// Fewest types that a spot claim of a plan is left with, where its pods allow as many, and fewest cheaper ones before
/// a spot node is replaced by spot: one number, so that a node that was planned may move away again.
pub const SPOT_TYPES_MIN: usize = 15;

/// Options of a solve.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether preferences of pods count.
    pub preference_policy: PreferencePolicy,
    /// Rule for a claim that cannot keep `minValues`.
    pub min_values_policy: MinValuesPolicy,
    /// Rule for pods when reserved capacity runs out.
    pub reserved: ReservedMode,
    /// How claims are filled.
    pub packing: Packing,
    /// The present moment, for the policy.
    pub now: Timestamp,
    /// Name of the cluster, for the policy.
    pub cluster: String,
    /// Stable id of the decision, for logs and records.
    pub decision_id: String,
    /// Seed for policies that want a spread; also picks values of open requirements.
    pub seed: u64,
    /// Worker threads; the answer does not depend on it.
    pub threads: usize,
    /// Whether pods that claim devices are left out.
    pub ignores_devices: bool,
    /// Spread constraints, without selectors, of pods that declare none.
    pub default_spread: Arc<[TopologySpread]>,
    /// The greatest premium that a ranking policy may put on a node, where a pool says nothing else.
    pub premium_max: PremiumMax,
    /// Whether pods that controllers are about to create are planned with those that are there.
    pub plans_coming_pods: bool,
    /// Numbers that no setting changes.
    pub tuning: SolverTuning,
}

/// Numbers that suit all clusters, so that they are no settings: tests and harnesses alone vary them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolverTuning {
    /// Most instance types a claim keeps.
    pub instance_types_max: usize,
    /// Most plans that are made and compared where packing goes for the bill; fewer where one takes long.
    pub plans_max: usize,
    /// How much more than the cheapest plan found one of fewer nodes may cost, as a share of the bill.
    pub nodes_tolerance: f64,
    /// Most work that goes into exchange moves on the chosen plan, as a share of the work of planning. It stands for
    /// time, which must not decide.
    pub exchange_share: f64,
}

impl Default for SolverTuning {
    fn default() -> Self {
        Self {
            instance_types_max: 600,
            plans_max: 8,
            nodes_tolerance: 0.025,
            exchange_share: 0.2,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            preference_policy: PreferencePolicy::default(),
            min_values_policy: MinValuesPolicy::default(),
            reserved: ReservedMode::default(),
            packing: Packing::default(),
            now: Timestamp::UNIX_EPOCH,
            cluster: String::new(),
            decision_id: String::new(),
            seed: 0,
            threads: 1,
            ignores_devices: true,
            default_spread: Arc::default(),
            premium_max: PremiumMax::default(),
            plans_coming_pods: false,
            tuning: SolverTuning::default(),
        }
    }
}

impl Problem {
    /// The pool of that name.
    pub(crate) fn pool(&self, name: &str) -> Option<&Pool> {
        let mut pools = self.pools.iter();
        pools.find(|it| it.node_pool.metadata.name.as_deref() == Some(name))
    }

    /// A problem without pools, nodes and pods.
    pub fn new(options: Options) -> Self {
        Self {
            pools: Vec::new(),
            nodes: Vec::new(),
            pods: Vec::new(),
            daemons: Vec::new(),
            namespaces: BTreeMap::new(),
            volumes: BTreeMap::new(),
            devices: None,
            usage: BTreeMap::new(),
            owners: FactsByOwner::new(),
            candidates: BTreeSet::new(),
            options,
        }
    }
}

/// The order of pools: the heaviest first; of equal weights the greater name goes first, as in Karpenter.
pub fn by_weight(a: &NodePool, b: &NodePool) -> Ordering {
    (b.weight(), &b.metadata.name).cmp(&(a.weight(), &a.metadata.name))
}
