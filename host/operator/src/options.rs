//! The controller's settings: Karpenter's flags and environment variables, one row each, byte for byte.
//!
//! A flag wins over its variable, the variable over the default. Mortise's own settings begin with
//! `MORTISE_` and are all optional. Answers to Karpenter's `pkg/operator/options/options.go` and the AWS
//! provider's file of the same name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apis::duration::GoDuration;
use clap::{Args, ValueEnum};
use controllers::{FeatureGates, MinValuesPolicy, Packing, PreferencePolicy};
use jiff::SignedDuration;
use scheduling::pod::TopologySpread;
use scheduling::ranking::PremiumMax;

use crate::policy_recorder;

/// What `mortise controller` can be told. Each group is taken apart whole where it is used, so that a flag that nobody reads
/// does not compile.
#[derive(Debug, Clone, Args)]
pub(crate) struct ControllerOptions {
    #[command(flatten)]
    pub(crate) cloud: CloudOptions,
    #[command(flatten)]
    pub(crate) decisions: DecisionOptions,
    #[command(flatten)]
    pub(crate) process: ProcessOptions,
    #[command(flatten)]
    pub(crate) policies: PolicyOptions,
    /// Karpenter settings that are accepted, so that its Deployment starts, and that change nothing here
    #[command(flatten)]
    pub(crate) accepted: AcceptedOptions,
}

/// What the cloud must know.
#[derive(Debug, Clone, Args)]
pub(crate) struct CloudOptions {
    /// Name of the cluster; tags and launch templates carry it
    #[arg(
        long,
        env = "CLUSTER_NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cluster_name: String,
    /// URL of the cluster's API server, as nodes reach it. Default: what EKS says
    #[arg(
        long,
        env = "CLUSTER_ENDPOINT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cluster_endpoint: String,
    /// Certificate authority of the API server, in base64, for node user data. Default: the one this controller trusts
    #[arg(
        long,
        env = "CLUSTER_CA_BUNDLE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cluster_ca_bundle: String,
    /// EKS says the Kubernetes version by which images are chosen, instead of the API server
    #[arg(long, env = "EKS_CONTROL_PLANE", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) eks_control_plane: bool,
    /// Do not try permissions by dry runs, neither at the start nor for each EC2NodeClass
    #[arg(long, env = "DISABLE_DRY_RUN", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) disable_dry_run: bool,
    /// The VPC has no way to AWS's public endpoints: no price look-ups
    #[arg(long, env = "ISOLATED_VPC", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) isolated_vpc: bool,
    /// Share of an instance's memory that the hypervisor and the OS take
    #[arg(long, env = "VM_MEMORY_OVERHEAD_PERCENT", default_value_t = 0.075, value_parser = parse_share)]
    pub(crate) vm_memory_overhead_percent: f64,
    /// Network interfaces kept from the pods-per-node formula
    #[arg(long, env = "RESERVED_ENIS", default_value_t = 0)]
    pub(crate) reserved_enis: u32,
    /// Name of the SQS queue with EC2's interruption notices; empty: do not listen
    #[arg(
        long,
        env = "INTERRUPTION_QUEUE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) interruption_queue: String,
    /// How long resolved images are believed, a minute at least
    #[arg(long, env = "AMI_REFRESH_INTERVAL", default_value = "1m", value_parser = parse_refresh_interval)]
    pub(crate) ami_refresh_interval: SignedDuration,
    /// How long resolved subnets are believed, a minute at least
    #[arg(long, env = "SUBNET_REFRESH_INTERVAL", default_value = "1m", value_parser = parse_refresh_interval)]
    pub(crate) subnet_refresh_interval: SignedDuration,
}

/// What decisions depend on.
#[derive(Debug, Clone, Args)]
pub(crate) struct DecisionOptions {
    /// Longest time pods are gathered before they are scheduled together
    #[arg(long, env = "BATCH_MAX_DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(crate) batch_max_duration: Duration,
    /// Time without a new pod that ends the gathering
    #[arg(long, env = "BATCH_IDLE_DURATION", default_value = "1s", value_parser = parse_duration)]
    pub(crate) batch_idle_duration: Duration,
    /// Whether preferences of pods count
    #[arg(long, env = "PREFERENCE_POLICY", value_enum, ignore_case = true, default_value_t = PreferencePolicy::default())]
    pub(crate) preference_policy: PreferencePolicy,
    /// Whether minValues of a requirement must be met
    #[arg(long, env = "MIN_VALUES_POLICY", value_enum, ignore_case = true, default_value_t = MinValuesPolicy::default())]
    pub(crate) min_values_policy: MinValuesPolicy,
    /// Whether pods that claim devices (dynamic resource allocation) are left alone
    #[arg(long, env = "IGNORE_DRA_REQUESTS", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) ignore_dra_requests: bool,
    /// Configuration of the cluster's scheduler, in YAML or JSON, as far as it matters to placement:
    /// podTopologySpread.defaultConstraints
    #[arg(long, env = "SCHEDULER_CONFIG", default_value = "", hide_default_value = true, value_parser = parse_scheduler_config)]
    pub(crate) scheduler_config: SchedulerDefaults,
    /// Comma list of Name=bool: NodeRepair, ReservedCapacity, SpotToSpotConsolidation, NodeOverlay,
    /// StaticCapacity, CapacityBuffer, TerminateFirstDrift, TerminateFirstRepair, PodDeletionCostManagement
    #[arg(long, env = "FEATURE_GATES", default_value = "", hide_default_value = true, value_parser = parse_gates)]
    pub(crate) feature_gates: FeatureGates,
    /// With the gate NodeRepair: repair as before it was a disruption method, without budgets
    #[arg(long, env = "LEGACY_NODE_REPAIR", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) legacy_node_repair: bool,
    /// Millicores the controller may use; scales its concurrency
    #[arg(long, env = "CPU_REQUESTS", default_value_t = 1000)]
    pub(crate) cpu_requests: i64,
    /// How pods are packed: by cost, or in Karpenter's order
    #[arg(long, env = "MORTISE_PACKING", value_enum, default_value_t = Packing::default())]
    pub(crate) packing: Packing,
    /// Whether the scheduler is told where pods are planned to go, by status.nominatedNodeName just before a node takes
    /// pods; auto: from Kubernetes 1.24 on, whose scheduler tries that node first. Not with --packing karpenter
    #[arg(long, env = "MORTISE_NOMINATE_PLANNED_PODS", value_enum, default_value_t = NominatePlannedPods::Auto)]
    pub(crate) nominate_planned_pods: NominatePlannedPods,
    /// Whether pods that ReplicaSets, Jobs and the like are about to create are planned with those that are there, so that
    /// the first nodes suit them all: worth it where pods come faster than nodes boot. Not with --packing karpenter
    #[arg(long, env = "MORTISE_PLAN_COMING_PODS", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) plan_coming_pods: bool,
    /// How much dearer than it need be a ranking policy may make a node, a plan or a move: a share such as 50%, or off.
    /// A NodePool's annotation mortise.dev/max-premium goes before it
    #[arg(long, env = "MORTISE_POLICY_MAX_PREMIUM", default_value_t = PremiumMax::default())]
    pub(crate) policy_max_premium: PremiumMax,
}

/// What the process is in the cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProcessOptions {
    /// Port of /metrics; 0 turns it off
    #[arg(long, env = "METRICS_PORT", default_value_t = 8080)]
    pub(crate) metrics_port: u16,
    /// Port of /healthz and /readyz; 0 turns it off
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value_t = 8081)]
    pub(crate) health_probe_port: u16,
    /// Run without a leader-election lease
    #[arg(long, env = "DISABLE_LEADER_ELECTION", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) disable_leader_election: bool,
    /// Name of the lease
    #[arg(
        long,
        env = "LEADER_ELECTION_NAME",
        default_value = "karpenter-leader-election"
    )]
    pub(crate) leader_election_name: String,
    /// Namespace of the lease. Default: the controller's own
    #[arg(
        long,
        env = "LEADER_ELECTION_NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) leader_election_namespace: String,
    /// Requests a second to the API server, watches and the lease aside; negative for no limit
    #[arg(
        long,
        env = "KUBE_CLIENT_QPS",
        default_value_t = 200,
        allow_hyphen_values = true
    )]
    pub(crate) kube_client_qps: i32,
    /// Requests that may go at once before that counts
    #[arg(long, env = "KUBE_CLIENT_BURST", default_value_t = 300)]
    pub(crate) kube_client_burst: i32,
    /// Show no metrics of single nodes, pods, NodePools, offerings and conditions, and no events of conditions
    #[arg(long, env = "DISABLE_CLUSTER_STATE_OBSERVABILITY", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) disable_cluster_state_observability: bool,
    /// debug, info or error
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// Where the log goes: a comma list of stdout, stderr and files
    #[arg(long, env = "LOG_OUTPUT_PATHS", default_value = "stdout")]
    pub(crate) log_output_paths: String,
    /// Namespace of the controller
    #[arg(long, env = "SYSTEM_NAMESPACE", default_value = "mortise")]
    pub(crate) system_namespace: String,
    /// Namespace of the ConfigMaps that bind policies. Default: the controller's own
    #[arg(
        long,
        env = "MORTISE_POLICY_NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) policy_namespace: String,
}

/// What becomes of policies.
#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyOptions {
    /// Let policies of budgets allow more than NodePools declare, where their binding says
    /// `mortise.dev/authority: replace`
    #[arg(long, env = "MORTISE_ALLOW_POLICY_AUTHORITY_REPLACE", default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) allow_policy_authority_replace: bool,
    /// Write every call of a policy to this file, for `mortise policy run`, `cases`, `replay` and `diff --records`; the
    /// metrics port serves it under /debug/policy-records
    #[arg(long, env = "MORTISE_POLICY_RECORDS", value_name = "FILE")]
    pub(crate) policy_records: Option<PathBuf>,
    /// Room for that: what was written first goes, half of it at a time, to FILE.old and away
    #[arg(long, env = "MORTISE_POLICY_RECORDS_SIZE", value_name = "QUANTITY", default_value = "256Mi", value_parser = policy_recorder::parse_bytes)]
    pub(crate) policy_records_size: u64,
}

impl ProcessOptions {
    /// Where policies are bound.
    pub(crate) fn policy_namespace(&self) -> &str {
        if self.policy_namespace.is_empty() {
            &self.system_namespace
        } else {
            &self.policy_namespace
        }
    }
}

/// Karpenter's settings that have no effect in Mortise; kept so that a Deployment made for Karpenter starts.
#[derive(Debug, Clone, Args)]
pub(crate) struct AcceptedOptions {
    #[arg(long, env = "KARPENTER_SERVICE", default_value = "", hide = true)]
    karpenter_service: String,
    #[arg(long, env = "ENABLE_ZONAL_SHIFT", default_value = "", hide = true, num_args = 0..=1, default_missing_value = "true", value_parser = refuse_zonal_shift)]
    enable_zonal_shift: String,
    #[arg(long, env = "AWS_FEATURE_GATES", default_value = "", hide = true, value_parser = refuse_aws_gates)]
    aws_feature_gates: String,
    #[arg(long, env = "ENABLE_PROFILING", default_value = "", hide = true, num_args = 0..=1)]
    enable_profiling: String,
    #[arg(long, env = "DISABLE_CONTROLLER_WARMUP", default_value = "", hide = true, num_args = 0..=1)]
    disable_controller_warmup: String,
    #[arg(
        long,
        env = "MEMORY_LIMIT",
        default_value = "-1",
        hide = true,
        allow_hyphen_values = true
    )]
    memory_limit: String,
    #[arg(
        long,
        env = "LOG_ERROR_OUTPUT_PATHS",
        default_value = "stderr",
        hide = true
    )]
    log_error_output_paths: String,
}

/// When pods are nominated to the nodes planned for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NominatePlannedPods {
    Auto,
    On,
    Off,
}

/// KEP-1923: the nominated node is tried before others. That others than the scheduler may write the field is said since
/// 1.35 (KEP-5278); what the scheduler makes of it is the same before.
const NOMINATIONS_SINCE_MINOR: u32 = 24;

impl NominatePlannedPods {
    /// What it comes to at an API server of this minor version.
    pub(crate) fn is_on(self, kubernetes_minor: u32) -> bool {
        match self {
            Self::Auto => kubernetes_minor >= NOMINATIONS_SINCE_MINOR,
            Self::On => true,
            Self::Off => false,
        }
    }
}

/// Karpenter's feature gates with its defaults; unknown names are ignored, as it does.
pub(crate) fn parse_gates(text: &str) -> Result<FeatureGates, String> {
    let mut given = BTreeMap::new();
    for entry in text
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        let parsed = entry
            .split_once('=')
            .and_then(|(name, value)| Some((name.trim(), value.trim().parse::<bool>().ok()?)));
        let (name, value) = parsed
            .ok_or_else(|| format!("`{entry}` is not of the form Name=true or Name=false"))?;
        given.insert(name, value);
    }
    let gate = |name: &str, default: bool| given.get(name).copied().unwrap_or(default);
    let default = FeatureGates::default();
    Ok(FeatureGates {
        node_repair: gate("NodeRepair", default.node_repair),
        reserved_capacity: gate("ReservedCapacity", default.reserved_capacity),
        spot_to_spot_consolidation: gate(
            "SpotToSpotConsolidation",
            default.spot_to_spot_consolidation,
        ),
        node_overlay: gate("NodeOverlay", default.node_overlay),
        static_capacity: gate("StaticCapacity", default.static_capacity),
        capacity_buffer: gate("CapacityBuffer", default.capacity_buffer),
        terminate_first_drift: gate("TerminateFirstDrift", default.terminate_first_drift),
        terminate_first_repair: gate("TerminateFirstRepair", default.terminate_first_repair),
        pod_deletion_cost_management: gate(
            "PodDeletionCostManagement",
            default.pod_deletion_cost_management,
        ),
    })
}

/// What of a scheduler's configuration matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SchedulerDefaults {
    pub(crate) default_spread: Arc<[TopologySpread]>,
}

pub(crate) fn parse_scheduler_config(text: &str) -> Result<SchedulerDefaults, String> {
    if text.trim().is_empty() {
        return Ok(SchedulerDefaults::default());
    }
    let config = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let spread = state::default_spread::parse(config).map_err(|error| error.to_string())?;
    Ok(SchedulerDefaults {
        default_spread: spread.into(),
    })
}

/// Some time, and not none.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let span = text.parse::<GoDuration>().map(GoDuration::to_std);
    match span {
        // A rotation without a pause would leave the world no time.
        Ok(span) if !span.is_zero() => Ok(span),
        _ => Err(format!("`{text}` is no duration such as `10s` or `2m`")),
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    text.parse::<GoDuration>()
        .map(GoDuration::to_std)
        .map_err(|_| format!("`{text}` is not a duration such as `500ms`, `10s` or `1m30s`"))
}

/// Karpenter's bound: each look-up is a call of EC2.
fn parse_refresh_interval(text: &str) -> Result<SignedDuration, String> {
    let interval = SignedDuration::try_from(parse_duration(text)?).map_err(|it| it.to_string())?;
    if interval < SignedDuration::from_mins(1) {
        return Err(format!("`{text}` is less than a minute"));
    }
    Ok(interval)
}

/// Whoever shifts traffic out of a zone counts on nothing being launched there.
fn refuse_zonal_shift(text: &str) -> Result<String, String> {
    match text {
        "" | "false" => Ok(text.to_owned()),
        _ => Err("zones under a zonal shift are not left out yet; leave it false".to_owned()),
    }
}

/// A class with expressions would not get ready, and its nodes would be what nobody asked for.
fn refuse_aws_gates(text: &str) -> Result<String, String> {
    let mut gates = text.split(',').map(str::trim);
    if gates.any(|it| it == "NodeClassCEL=true") {
        return Err(
            "NodeClassCEL: expressions in spec.kubelet are not evaluated yet; leave it false"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share.is_finite() && share >= 0.0 => Ok(share),
        _ => Err(format!(
            "`{text}` is not a share of 0 or more, such as 0.075"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_gates_are_ignored_and_unset_gates_keep_their_default() {
        let gates = parse_gates("NodeRepair=true, Whatever=false").unwrap();
        assert!(gates.node_repair && gates.reserved_capacity && !gates.node_overlay);
    }

    #[test]
    fn a_scheduler_configuration_is_yaml_or_json_and_strict() {
        let yaml = "podTopologySpread:\n  defaultConstraints:\n  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}";
        assert_eq!(
            parse_scheduler_config(yaml).unwrap().default_spread.len(),
            1
        );
        let json = r#"{"podTopologySpread": {"defaultConstraints": []}}"#;
        assert_eq!(
            parse_scheduler_config(json).unwrap(),
            SchedulerDefaults::default()
        );
        let error = parse_scheduler_config("profiles: []").unwrap_err();
        assert!(error.contains("profiles"), "{error}");
    }

    #[test]
    fn a_gate_without_a_value_is_an_error_that_names_it() {
        assert!(
            parse_gates("NodeRepair")
                .unwrap_err()
                .contains("`NodeRepair`")
        );
    }
}
