//! What a program that has a client of clusters hands in for the verbs that look at one; `mortise-policy` has none.

use std::path::PathBuf;

use clap::Args;
use policy::BindingSource;

use crate::arguments::StatusArguments;

/// The ways to a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Cluster {
    /// Lists its policies: their ConfigMaps with labels and annotations.
    pub policies: fn(&StatusArguments) -> anyhow::Result<Vec<BindingSource>>,
    /// Reads so many bytes, at most, of the end of the recording that a running controller makes.
    pub recording: fn(&ControllerAddress, u32) -> anyhow::Result<Vec<u8>>,
}

/// Where a running controller is.
#[derive(Debug, Clone, Args)]
pub struct ControllerAddress {
    /// Address of the controller's metrics port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub server: String,

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
