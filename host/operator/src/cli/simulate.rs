//! The arguments of `mortise simulate`.

use authoring::Output;
use clap::Args;
use controllers::{FeatureGates, SolverSettings};
use std::path::PathBuf;

use super::demo::parse_minor;

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

    /// Version of Kubernetes for which EC2NodeClasses find images; AL2 has some up to 1.32
    #[arg(long, value_name = "1.MINOR", default_value = "1.35", value_parser = parse_minor)]
    pub(crate) kubernetes_version: u32,

    /// A policy to ask: a module (.wasm, .wasm.gz, .wasm.zst), a manifest of a ConfigMap, a folder of
    /// `mortise policy new`, builtin:NAME, or the name of a ConfigMap in the manifests (repeatable)
    #[arg(long = "policy", value_name = "POLICY|CONFIGMAP")]
    pub(crate) policies: Vec<String>,

    #[command(flatten)]
    pub(crate) solving: SolverSettings,

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
