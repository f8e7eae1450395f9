//! The settings the controllers obey: Karpenter's flags, variables and defaults, and our own, which begin with
//! `MORTISE_`.
//!
//! A row is the flag, its variable, its default, its help and the setting that is obeyed. The operator's command takes
//! them over whole; nothing here reads the command line or the environment. A row that nobody obeys fails
//! `tests/it/flags.rs`. Answers to `pkg/operator/options/options.go`.

mod feature_gates;

use std::sync::Arc;
use std::time::Duration;

use apis::duration::GoDuration;
use apis::flag_text;
use clap::builder::{BoolishValueParser, Resettable};
use clap::{ArgAction, Args, Command, FromArgMatches as _, ValueEnum};
use jiff::Timestamp;
use planning::scheduler_config::SchedulerConfig;
use scheduling::problem::{
    MinValuesPolicy, Options, Packing, PreferencePolicy, ReservedMode, SolverTuning,
};
use scheduling::ranking::PremiumMax;

pub use feature_gates::FeatureGates;

/// Where the solver runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SolvePlacement {
    /// On the controllers' own thread: deterministic, for simulated time.
    #[default]
    Inline,
    /// On a thread for blocking work, so that watches and drains go on meanwhile, and the one-minute deadline has
    /// something to interrupt.
    Blocking,
}

/// When pods are nominated to the nodes planned for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NominatePlannedPods {
    /// Where the scheduler makes something of it
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

/// Since this version the scheduler tries the nominated node before others (KEP-1923). Only since 1.35 the API says
/// that others than the scheduler may write the field (KEP-5278); the scheduler has heeded it before.
const NOMINATIONS_SINCE_MINOR: u32 = 24;

/// Flags that the solver obeys, in the controllers and in a simulation.
#[derive(Debug, Clone, Args)]
pub struct SolverSettings {
    /// Whether preferences of pods (preferred affinity, ScheduleAnyway) count
    #[arg(long, env = "PREFERENCE_POLICY", value_enum, ignore_case = true, default_value_t = PreferencePolicy::default())]
    pub preference_policy: PreferencePolicy,
    /// Whether minValues of a requirement must be met
    #[arg(long, env = "MIN_VALUES_POLICY", value_enum, ignore_case = true, default_value_t = MinValuesPolicy::default())]
    pub min_values_policy: MinValuesPolicy,
    /// Whether pods that claim devices (dynamic resource allocation) are left alone
    #[arg(long, env = "IGNORE_DRA_REQUESTS", default_value_t = true, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub ignore_dra_requests: bool,
    /// Configuration of the cluster's scheduler, in YAML or JSON, as far as it matters to placement: as Karpenter takes
    /// it, podTopologySpread.defaultConstraints; or kube-scheduler's own KubeSchedulerConfiguration, whose scores
    /// matter where pods cannot be told their nodes
    #[arg(long = "scheduler-config", env = "SCHEDULER_CONFIG", default_value = "", hide_default_value = true, value_parser = parse_scheduler_config)]
    pub scheduler: SchedulerConfig,
    /// How pods are packed: by cost, or in Karpenter's order
    #[arg(long, env = "MORTISE_PACKING", value_enum, default_value_t = Packing::default())]
    pub packing: Packing,
    /// How much dearer than it need be a ranking policy may make a node, a plan or a move: a share such as 50%, or off.
    /// A NodePool's annotation mortise.dev/max-premium goes before it
    #[arg(long, env = "MORTISE_POLICY_MAX_PREMIUM", default_value_t = PremiumMax::default())]
    pub policy_max_premium: PremiumMax,
}

/// All settings of the controllers.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Longest time pods are gathered before they are scheduled together
    #[arg(long, env = "BATCH_MAX_DURATION", default_value = "10s", value_parser = parse_duration)]
    pub batch_max_duration: Duration,
    /// Time without a new pod that ends the gathering
    #[arg(long, env = "BATCH_IDLE_DURATION", default_value = "1s", value_parser = parse_duration)]
    pub batch_idle_duration: Duration,
    /// What the solver goes by.
    #[command(flatten)]
    pub solving: SolverSettings,
    /// Features that can be switched.
    #[arg(
        long,
        help = FeatureGates::HELP,
        env = "FEATURE_GATES",
        default_value = "",
        hide_default_value = true
    )]
    pub feature_gates: FeatureGates,
    /// With the gate NodeRepair: repair as before it was a disruption method, without budgets
    #[arg(long, env = "LEGACY_NODE_REPAIR", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub legacy_node_repair: bool,
    /// Millicores the controller may use; scales its concurrency. The chart fills it in
    #[arg(long, env = "CPU_REQUESTS", default_value = "1000", value_parser = parse_millicores)]
    pub cpu_requests: u32,
    /// Whether the scheduler is told where pods are planned to go, by status.nominatedNodeName just before a node takes
    /// pods; auto: from Kubernetes 1.24 on, whose scheduler tries that node first. Not with --packing karpenter
    #[arg(long, env = "MORTISE_NOMINATE_PLANNED_PODS", value_enum, default_value_t = NominatePlannedPods::Auto)]
    pub nominate_planned_pods: NominatePlannedPods,
    /// Whether pods that ReplicaSets, Jobs and the like are about to create, and those that the scheduler has not come
    /// to yet, are planned with those that it could not place, so that the first nodes suit them all: worth it where
    /// pods come faster than nodes boot. Not with --packing karpenter
    #[arg(long, env = "MORTISE_PLAN_COMING_PODS", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub plan_coming_pods: bool,
    /// Show no metrics of single nodes, pods, NodePools, offerings and conditions, and no events of conditions
    #[arg(long, env = "DISABLE_CLUSTER_STATE_OBSERVABILITY", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub disable_cluster_state_observability: bool,

    // What follows has no flag here: the operator knows it, or nobody has asked to change it.
    /// Where the policy ConfigMaps live.
    #[arg(skip = "kube-system")]
    pub policy_namespace: String,
    /// Name of the cluster, as policies see it.
    #[arg(skip)]
    pub cluster_name: String,
    /// Minor version of the API server: some things are done from one on.
    #[arg(skip = u32::MAX)]
    pub kubernetes_minor: u32,
    /// Where the solver runs.
    #[arg(skip)]
    pub solve_placement: SolvePlacement,
    /// First seed of the policies' decisions; equal seeds give equal decisions.
    #[arg(skip)]
    pub seed: u64,
}

impl Default for Settings {
    /// Settings of the flags' defaults, whatever is in the environment.
    fn default() -> Self {
        let flags = Self::augment_args(Command::new("defaults").no_binary_name(true));
        let flags = flags.mut_args(|flag| flag.env(Resettable::Reset));
        let parsed = flags.try_get_matches_from([""; 0]);
        let settings = parsed.and_then(|it| Self::from_arg_matches(&it));
        #[expect(
            clippy::expect_used,
            reason = "defaults are constants; a test parses them"
        )]
        settings.expect("defaults are valid values")
    }
}

/// Decision that the solver is run for.
#[derive(Debug, Clone)]
pub struct SolverRun {
    /// Stable id of the decision.
    pub id: String,
    /// Moment of the decision.
    pub now: Timestamp,
    /// Seed of the policies that are asked.
    pub seed: u64,
    /// Rule for pods when reserved capacity runs out.
    pub reserved: ReservedMode,
}

/// Where the solver runs, and what it plans with.
#[derive(Debug, Clone)]
pub struct SolverPlace {
    /// Name of the cluster, as policies see it.
    pub cluster: String,
    /// Number of worker threads of the solver.
    pub threads: usize,
    /// Whether pods that controllers are about to create are planned with those that are there.
    pub plans_coming_pods: bool,
}

impl SolverSettings {
    /// How the solver is to go about a decision; what has no setting keeps the solver's default.
    pub fn options(&self, run: SolverRun, place: SolverPlace) -> Options {
        let SolverRun {
            id,
            now,
            seed,
            reserved,
        } = run;
        let SolverPlace {
            cluster,
            threads,
            plans_coming_pods,
        } = place;
        Options {
            preference_policy: self.preference_policy,
            min_values_policy: self.min_values_policy,
            reserved,
            packing: self.packing,
            now,
            cluster,
            decision_id: id,
            seed,
            threads,
            ignores_devices: self.ignore_dra_requests,
            default_spread: Arc::clone(&self.scheduler.default_spread),
            premium_max: self.policy_max_premium,
            plans_coming_pods,
            tuning: SolverTuning::default(),
        }
    }
}

impl Settings {
    /// How the solver is to go about a decision; the run says what becomes of reserved capacity with the gate on.
    pub(crate) fn solver(&self, run: SolverRun) -> Options {
        let place = SolverPlace {
            cluster: self.cluster_name.clone(),
            threads: self.solver_threads(),
            plans_coming_pods: self.plans_coming_pods(),
        };
        let reserved = if self.feature_gates.reserved_capacity {
            run.reserved
        } else {
            ReservedMode::Off
        };
        self.solving.options(SolverRun { reserved, ..run }, place)
    }

    /// Concurrency between `min` (one core) and `max` (sixty cores), linear in the cores asked for.
    pub(crate) fn concurrency(&self, min: usize, max: usize) -> usize {
        let millis = if self.cpu_requests == 0 {
            1000
        } else {
            self.cpu_requests
        };
        let cores = millis.div_ceil(1000).clamp(1, 60) as usize;
        max.saturating_sub(min) * (cores - 1) / 59 + min
    }

    /// Threads for one solve: the cores asked for, rounded up.
    pub(crate) fn solver_threads(&self) -> usize {
        self.cpu_requests.div_ceil(1000).max(1) as usize
    }

    /// Whether what comes is made to follow the plan: nodes stay closed for a moment where that lets their plan come
    /// true, and consolidation may put moves off that could go at once. Karpenter's order plans for nobody in
    /// particular.
    pub(crate) fn follows_plans(&self) -> bool {
        self.solving.packing == Packing::Cost
    }

    /// Whether pods are nominated to the nodes planned for them.
    pub(crate) fn nominates_planned_pods(&self) -> bool {
        let is_on = match self.nominate_planned_pods {
            NominatePlannedPods::Auto => self.kubernetes_minor >= NOMINATIONS_SINCE_MINOR,
            NominatePlannedPods::On => true,
            NominatePlannedPods::Off => false,
        };
        self.follows_plans() && is_on
    }

    /// Whether pods that controllers are about to create are planned with those that are there.
    pub fn plans_coming_pods(&self) -> bool {
        self.follows_plans() && self.plan_coming_pods
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    flag_text::parse_duration(text).map(GoDuration::to_std)
}

/// Less than nothing counts as nothing said.
fn parse_millicores(text: &str) -> Result<u32, String> {
    let millis = text.parse::<i64>().map_err(|error| error.to_string())?;
    Ok(u32::try_from(millis).unwrap_or(0))
}

fn parse_scheduler_config(text: &str) -> Result<SchedulerConfig, String> {
    if text.trim().is_empty() {
        return Ok(SchedulerConfig::default());
    }
    let config = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    SchedulerConfig::parse(config).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sets_is_as_karpenter_has_it() {
        let settings = Settings::default();
        assert_eq!(settings.batch_max_duration, Duration::from_secs(10));
        assert_eq!(settings.batch_idle_duration, Duration::from_secs(1));
        assert_eq!(settings.cpu_requests, 1000);
        assert!(settings.solving.ignore_dra_requests && !settings.legacy_node_repair);
        assert!(!settings.plan_coming_pods && settings.solving.scheduler.default_spread.is_empty());
        assert_eq!(settings.feature_gates, FeatureGates::default());
    }

    #[test]
    fn packing_as_karpenter_does_turns_off_what_follows_plans() {
        for (packing, expected) in [(Packing::Cost, true), (Packing::Karpenter, false)] {
            let mut settings = Settings {
                plan_coming_pods: true,
                ..Settings::default()
            };
            settings.solving.packing = packing;
            let follows = [
                settings.nominates_planned_pods(),
                settings.plans_coming_pods(),
                settings.follows_plans(),
            ];
            assert_eq!(follows, [expected; 3], "{packing:?}");
        }
    }

    #[test]
    fn nominations_are_written_where_the_scheduler_minds_them() {
        use NominatePlannedPods::{Auto, Off, On};
        let cases = [
            (Auto, 23, false),
            (Auto, 24, true),
            (On, 20, true),
            (Off, 36, false),
        ];
        for (nominate_planned_pods, kubernetes_minor, expected) in cases {
            let settings = Settings {
                nominate_planned_pods,
                kubernetes_minor,
                ..Settings::default()
            };
            let is_on = settings.nominates_planned_pods();
            assert_eq!(
                is_on, expected,
                "{nominate_planned_pods:?} 1.{kubernetes_minor}"
            );
        }
    }

    #[test]
    fn a_scheduler_configuration_is_yaml_or_json_and_strict() {
        let yaml = "podTopologySpread:\n  defaultConstraints:\n  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}";
        assert_eq!(
            parse_scheduler_config(yaml).unwrap().default_spread.len(),
            1
        );
        let json = r#"{"podTopologySpread": {"defaultConstraints": []}}"#;
        assert!(
            parse_scheduler_config(json)
                .unwrap()
                .default_spread
                .is_empty()
        );
        let error = parse_scheduler_config("profiles: []").unwrap_err();
        assert!(error.contains("profiles"), "{error}");
    }

    #[test]
    fn concurrency_is_linear_between_one_and_sixty_cores() {
        let cases = [
            (1000, 100),
            (2000, 183),
            (0, 100),
            (60_000, 5000),
            (90_000, 5000),
        ];
        for (cpu_requests, expected) in cases {
            let settings = Settings {
                cpu_requests,
                ..Settings::default()
            };
            assert_eq!(settings.concurrency(100, 5000), expected, "{cpu_requests}m");
        }
    }
}
