//! The arguments of `mortise shadow`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use controllers::Settings;

use crate::options::parse_span;

/// Name of the cluster in the simulated account.
pub(super) const CLUSTER_NAME: &str = "mortise-shadow";

#[derive(Debug, Args)]
pub(crate) struct ShadowArguments {
    /// Kubeconfig of the cluster. Default: $KUBECONFIG, ~/.kube/config, else the pod's service account
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// How long to watch; without it until Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_span)]
    pub(crate) duration: Option<Duration>,

    /// Time between two lines that tell how both stand
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_span)]
    pub(crate) every: Duration,

    /// What to print at the end
    #[arg(short = 'o', long, value_enum, default_value_t = ReportOutput::Text)]
    pub(crate) output: ReportOutput,

    /// Manifests for the shadow alone: other NodePools, policies. A file, a folder of them, or `-` (repeatable)
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// An EC2NodeClass for NodePools whose class is of another provider. Default: one of the demo
    #[arg(long = "nodeclass", value_name = "FILE")]
    pub(crate) node_class: Option<PathBuf>,

    /// Prices of types that EC2 does not have, in the format of Karpenter's kwok provider
    #[arg(long, value_name = "FILE")]
    pub(crate) instance_types: Option<PathBuf>,

    /// Seed of everything the simulated world leaves to chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Print the ClusterRole that reading takes and its binding to the group mortise-shadow, for `kubectl apply -f -`,
    /// and do nothing else
    #[arg(long)]
    pub(crate) rbac: bool,

    #[command(flatten)]
    pub(crate) settings: Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportOutput {
    /// A table, and lines meanwhile
    Text,
    /// One JSON object
    Json,
    /// The same as YAML
    Yaml,
}
