//! The settings the controllers obey, with Karpenter's defaults. The operator fills them from flags and
//! environment; nothing here reads either. Answers to `pkg/operator/options/options.go`.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use scheduling::pod::TopologySpread;
pub use scheduling::problem::{MinValuesPolicy, Packing, PreferencePolicy};
use scheduling::problem::{Options, ReservedMode};
use scheduling::ranking::PremiumMax;

/// Where the solver runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SolvePlacement {
    /// On the controllers' own thread: deterministic, for simulated time.
    #[default]
    Inline,
    /// On a thread for blocking work, so that watches and drains go on meanwhile. Needs a multi-thread runtime
    /// to be of use, and gives the one-minute deadline something to interrupt.
    Blocking,
}

/// Features that can be switched, with the defaults of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureGates {
    /// Replace unhealthy nodes.
    pub node_repair: bool,
    /// Use capacity reservations.
    pub reserved_capacity: bool,
    /// Replace spot nodes by cheaper spot nodes.
    pub spot_to_spot_consolidation: bool,
    /// Apply NodeOverlays.
    pub node_overlay: bool,
    /// Keep NodePools with replicas at their count.
    pub static_capacity: bool,
    /// Keep room for CapacityBuffers.
    pub capacity_buffer: bool,
    /// Drifted nodes may go before their replacement comes where it could not come before.
    pub terminate_first_drift: bool,
    /// Sick nodes may.
    pub terminate_first_repair: bool,
    /// Write which pods are to go first onto the pods.
    pub pod_deletion_cost_management: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            node_repair: false,
            reserved_capacity: true,
            spot_to_spot_consolidation: false,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
            terminate_first_drift: false,
            terminate_first_repair: false,
            pod_deletion_cost_management: false,
        }
    }
}

/// All settings of the controllers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A batch of pods ends when no new pod came for this long.
    pub batch_idle: Duration,
    /// A batch of pods ends after this long, whatever comes.
    pub batch_max: Duration,
    /// How long the disruption loop rests when it found nothing to do.
    pub disruption_poll: Duration,
    /// How long a consolidation command waits before it is checked again and carried out.
    pub consolidation_validation: Duration,
    /// CPU given to the process; concurrency scales with it.
    pub cpu_requests_millis: u32,
    /// What becomes of preferences.
    pub preference_policy: PreferencePolicy,
    /// What becomes of `minValues`.
    pub min_values_policy: MinValuesPolicy,
    /// Whether pods that ask for dynamic resources are left alone.
    pub ignore_dra_requests: bool,
    /// Spread constraints of pods that declare none.
    pub default_spread: Arc<[TopologySpread]>,
    /// Switches.
    pub feature_gates: FeatureGates,
    /// Repair nodes the way it was done before repair was a disruption method.
    pub legacy_node_repair: bool,
    /// How pods are packed.
    pub packing: Packing,
    /// Where the policy ConfigMaps live.
    pub policy_namespace: String,
    /// Name of the cluster, as policies see it.
    pub cluster_name: String,
    /// Where the solver runs.
    pub solve_placement: SolvePlacement,
    /// Longest time a provisioning pass may take; then what was decided so far is kept.
    pub solve_timeout: Duration,
    /// First seed of the policies' decisions; equal seeds give equal decisions.
    pub seed: u64,
    /// Whether pods are nominated to the nodes planned for them.
    pub nominates_planned_pods: bool,
    /// Whether pods that controllers are about to create are planned with those that are there.
    pub plans_coming_pods: bool,
    /// Whether nodes stay closed for a moment where that lets their plan come true.
    pub holds_nodes_closed: bool,
    /// Whether consolidation puts moves off that save little of the bill.
    pub waits_for_small_gains: bool,
    /// How much dearer than it need be a ranking policy may make a node, where a NodePool says nothing else.
    pub policy_premium_max: PremiumMax,
    /// Whether metrics tell of single nodes, pods, NodePools and conditions.
    pub observes_cluster_state: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
            disruption_poll: Duration::from_secs(10),
            consolidation_validation: Duration::from_secs(15),
            cpu_requests_millis: 1000,
            preference_policy: PreferencePolicy::default(),
            min_values_policy: MinValuesPolicy::default(),
            ignore_dra_requests: true,
            default_spread: Arc::default(),
            feature_gates: FeatureGates::default(),
            legacy_node_repair: false,
            packing: Packing::default(),
            policy_namespace: "kube-system".to_owned(),
            cluster_name: String::new(),
            solve_placement: SolvePlacement::default(),
            solve_timeout: Duration::from_mins(1),
            seed: 0,
            nominates_planned_pods: true,
            plans_coming_pods: true,
            holds_nodes_closed: true,
            waits_for_small_gains: true,
            policy_premium_max: PremiumMax::default(),
            observes_cluster_state: true,
        }
    }
}

/// What one decision is about, for the solver.
pub(crate) struct SolverRun {
    pub(crate) id: String,
    pub(crate) now: Timestamp,
    pub(crate) seed: u64,
    /// With the gate on.
    pub(crate) reserved: ReservedMode,
}

impl Settings {
    /// How the solver is to go about a decision; what has no setting keeps the solver's default.
    pub(crate) fn solver(&self, run: SolverRun) -> Options {
        let Options {
            instance_types_max,
            plans_max,
            nodes_tolerance,
            exchange_share,
            ..
        } = Options::default();
        let SolverRun {
            id,
            now,
            seed,
            reserved,
        } = run;
        Options {
            preference_policy: self.preference_policy,
            min_values_policy: self.min_values_policy,
            reserved: if self.feature_gates.reserved_capacity {
                reserved
            } else {
                ReservedMode::Off
            },
            packing: self.packing,
            now,
            cluster: self.cluster_name.clone(),
            decision_id: id,
            seed,
            threads: self.solver_threads(),
            instance_types_max,
            ignores_devices: self.ignore_dra_requests,
            default_spread: Arc::clone(&self.default_spread),
            plans_max,
            nodes_tolerance,
            exchange_share,
            premium_max: self.policy_premium_max,
            plans_coming_pods: self.plans_coming_pods,
        }
    }

    /// Concurrency between `min` (one core) and `max` (sixty cores), linear in the cores asked for.
    pub fn concurrency(&self, min: usize, max: usize) -> usize {
        let millis = if self.cpu_requests_millis == 0 {
            1000
        } else {
            self.cpu_requests_millis
        };
        let cores = millis.div_ceil(1000).clamp(1, 60) as usize;
        max.saturating_sub(min) * (cores - 1) / 59 + min
    }

    /// Threads for one solve: the cores asked for, rounded up.
    pub fn solver_threads(&self) -> usize {
        self.cpu_requests_millis.div_ceil(1000).max(1) as usize
    }

    /// A pending pod's nomination holds its node for this long.
    pub fn nomination_window(&self) -> Duration {
        (self.batch_max * 2).max(Duration::from_secs(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_linear_between_one_and_sixty_cores() {
        let cases = [
            (1000, 100),
            (2000, 183),
            (0, 100),
            (60_000, 5000),
            (90_000, 5000),
        ];
        for (cpu_requests_millis, expected) in cases {
            let settings = Settings {
                cpu_requests_millis,
                ..Settings::default()
            };
            assert_eq!(
                settings.concurrency(100, 5000),
                expected,
                "{cpu_requests_millis}m"
            );
        }
    }
}
