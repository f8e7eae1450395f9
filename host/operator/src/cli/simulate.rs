//! The arguments of `mortise simulate`.

use authoring::Output;
use clap::Args;
use clap::builder::BoolishValueParser;
use controllers::{
    FeatureGates, MinValuesPolicy, Packing, PreferencePolicy, parse_scheduler_config,
};
use scheduling::pod::TopologySpread;
use scheduling::ranking::PremiumMax;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// A problem file: JSON lists of pods, nodePools, nodes, daemonSets and more; may be gzipped
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub(crate) problem: Option<PathBuf>,

    /// Manifests: a YAML or JSON file, a folder of them, or `-` for standard input (repeatable).
    /// Without a NodePool among them, those of `mortise demo` stand in
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// Instance types in the format of Karpenter's kwok provider. Default: the built-in EC2 catalogue
    #[arg(long, value_name = "FILE")]
    pub(crate) instance_types: Option<PathBuf>,

    /// Seed of the spot prices in that catalogue: those of `mortise demo --seed N`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// A policy to ask: a module (.wasm, .wasm.gz, .wasm.zst), a manifest of a ConfigMap, a folder of
    /// `mortise policy new`, builtin:NAME, or the name of a ConfigMap in the manifests (repeatable)
    #[arg(long = "policy", value_name = "POLICY|CONFIGMAP")]
    pub(crate) policies: Vec<String>,

    /// Whether preferences of pods count
    #[arg(long, env = "PREFERENCE_POLICY", value_enum, ignore_case = true, default_value_t = PreferencePolicy::default())]
    pub(crate) preference_policy: PreferencePolicy,

    /// Whether minValues of a requirement must be met
    #[arg(long, env = "MIN_VALUES_POLICY", value_enum, ignore_case = true, default_value_t = MinValuesPolicy::default())]
    pub(crate) min_values_policy: MinValuesPolicy,

    /// How pods are packed: by cost, or in Karpenter's order
    #[arg(long, env = "MORTISE_PACKING", value_enum, default_value_t = Packing::default())]
    pub(crate) packing: Packing,

    /// How much dearer than it need be a ranking policy may make a plan or a move: a share such as 50%, or off
    #[arg(long, env = "MORTISE_POLICY_MAX_PREMIUM", default_value_t = PremiumMax::default())]
    pub(crate) policy_max_premium: PremiumMax,

    /// Simulate disruption instead: one loop over a running cluster, all methods in their order
    #[arg(long)]
    pub(crate) disruption: bool,

    /// Simulate disruption, apply what is decided and repeat until a loop finds nothing
    #[arg(long)]
    pub(crate) until_stable: bool,

    /// Comma list of Name=bool; of Karpenter's gates, SpotToSpotConsolidation, NodeOverlay and
    /// CapacityBuffer matter here
    #[arg(
        long,
        env = "FEATURE_GATES",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) feature_gates: FeatureGates,

    /// Whether pods that claim devices are left out
    #[arg(long, env = "IGNORE_DRA_REQUESTS", default_value_t = true, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set)]
    pub(crate) ignore_dra_requests: bool,

    /// Configuration of the cluster's scheduler, in YAML or JSON: podTopologySpread.defaultConstraints
    #[arg(long = "scheduler-config", env = "SCHEDULER_CONFIG", default_value = "", hide_default_value = true, value_parser = parse_scheduler_config)]
    pub(crate) default_spread: Arc<[TopologySpread]>,

    /// Say for each pod without a place and each pool what excluded what, and the nearest miss
    #[arg(long)]
    pub(crate) explain: bool,

    /// Say where the time went (JSON always does)
    #[arg(long)]
    pub(crate) timing: bool,

    /// What to print
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}
