//! Settings of the provider, parsed once by the operator.
//!
//! Plain values with Karpenter's defaults; nothing here reads flags or the environment. Answers to
//! Karpenter's `pkg/operator/options/options.go` of the AWS provider.

use std::net::IpAddr;

use jiff::SignedDuration;

/// What the provider needs to know about its cluster and account.
#[derive(Debug, Clone, PartialEq)]
pub struct AwsOptions {
    /// Name of the EKS (or other) cluster; goes into tags and user data.
    pub cluster_name: String,
    /// URL of the API server, for user data.
    pub cluster_endpoint: String,
    /// Whether EKS is to say the endpoint, because no setting does.
    pub discovers_endpoint: bool,
    /// Whether EKS is to say the Kubernetes version, instead of the API server.
    pub eks_control_plane: bool,
    /// CA of the API server, base64, for user data; `None` leaves it out.
    pub cluster_ca_bundle: Option<String>,
    /// Service CIDR of the cluster; AL2023 cannot boot without it.
    pub cluster_cidr: Option<String>,
    /// Minor-precise Kubernetes version such as `1.33`, for image parameters.
    pub kubernetes_version: String,
    /// Address of the cluster's DNS service. An IPv6 address makes the cluster an IPv6 one.
    pub kube_dns_ip: Option<IpAddr>,
    /// Region of the cluster.
    pub region: String,
    /// Whether permissions are taken for granted instead of being tried by dry runs.
    pub disable_dry_run: bool,
    /// Whether the VPC has no way out: no Pricing calls, no profile clean-up.
    pub isolated_vpc: bool,
    /// Share of memory that the hypervisor keeps, until a node tells the truth.
    pub vm_memory_overhead_percent: f64,
    /// Network interfaces that pods may not count on.
    pub reserved_enis: u32,
    /// How long resolved images are believed.
    pub ami_refresh_interval: SignedDuration,
    /// How long resolved subnets are believed.
    pub subnet_refresh_interval: SignedDuration,
    /// Whether capacity reservations may be used.
    pub reserved_capacity: bool,
    /// Whether minValues may be relaxed instead of refusing to launch.
    pub min_values_best_effort: bool,
}

impl AwsOptions {
    /// Karpenter's defaults for a cluster.
    pub fn new(cluster_name: impl Into<String>, region: impl Into<String>) -> Self {
        Self {
            cluster_name: cluster_name.into(),
            cluster_endpoint: String::new(),
            discovers_endpoint: false,
            eks_control_plane: false,
            cluster_ca_bundle: None,
            cluster_cidr: None,
            kubernetes_version: "1.33".to_owned(),
            kube_dns_ip: None,
            region: region.into(),
            disable_dry_run: false,
            isolated_vpc: false,
            vm_memory_overhead_percent: 0.075,
            reserved_enis: 0,
            ami_refresh_interval: SignedDuration::from_mins(1),
            subnet_refresh_interval: SignedDuration::from_mins(1),
            reserved_capacity: true,
            min_values_best_effort: false,
        }
    }

    /// Whether nodes and pods have IPv6 addresses.
    pub fn is_ipv6(&self) -> bool {
        self.kube_dns_ip.is_some_and(|address| address.is_ipv6())
    }

    /// Minor number of the Kubernetes version, 0 if it cannot be read.
    pub fn kubernetes_minor(&self) -> u32 {
        let minor = self.kubernetes_version.split('.').nth(1);
        minor
            .and_then(|minor| minor.trim_end_matches('+').parse().ok())
            .unwrap_or(0)
    }
}
