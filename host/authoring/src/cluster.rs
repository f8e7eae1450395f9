//! Access to a cluster, which a program that has a client hands in for the verbs that look at one; `mortise-policy` has
//! none.

use std::path::PathBuf;

use clap::Args;
use policy::BindingSource;

use crate::Output;

/// The ways to a cluster.
#[derive(Debug, Clone, Copy)]
pub struct ClusterAccess {
    /// Lists its policies: their ConfigMaps with labels and annotations.
    pub policies: fn(&StatusArguments) -> anyhow::Result<Vec<BindingSource>>,
    /// Reads so many bytes, at most, of the end of the recording that a running controller makes.
    pub recording: fn(&ControllerAddress, u32) -> anyhow::Result<Vec<u8>>,
}

/// Where a running controller is.
#[derive(Debug, Clone, Args)]
pub struct ControllerAddress {
    /// Address of the controller's metrics port, with https:// where that is secure
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub server: String,

    /// Token of who asks, where the port is secure
    #[arg(long, env = "MORTISE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Whose certificates to believe there, as PEM
    #[arg(long, value_name = "FILE")]
    pub certificate_authority: Option<PathBuf>,

    /// Believe any certificate there, such as one that the controller made for itself
    #[arg(long, conflicts_with = "certificate_authority")]
    pub insecure_skip_tls_verify: bool,

    /// Ask through the API server of this kubeconfig instead, at the controller's service
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace and name of the controller's service, and its metrics port
    #[arg(
        long,
        value_name = "NAMESPACE/NAME:PORT",
        default_value = "kube-system/karpenter:http-metrics"
    )]
    pub service: String,
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Kubeconfig to use. Default: $KUBECONFIG, ~/.kube/config, else the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace of the policies
    #[arg(
        short,
        long,
        env = "MORTISE_POLICY_NAMESPACE",
        default_value = crate::SYSTEM_NAMESPACE
    )]
    pub namespace: String,

    /// Show the ConfigMaps of a file instead, `-` for standard input (repeatable):
    /// kubectl get configmaps -A -l mortise.dev/policy -o json
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "all_namespaces"])]
    pub(crate) files: Vec<PathBuf>,

    /// Show those of all namespaces, which no controller may look at
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// What to print
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}
