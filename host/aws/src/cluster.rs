//! Facts of the cluster from EKS: endpoint, service addresses, version.
//!
//! Asks and reads; what is done with it is decided in [`AwsOptions::learn`]. Answers to Karpenter's
//! `pkg/providers/version`, `ResolveClusterEndpoint` of `pkg/operator/operator.go` and `ResolveClusterCIDR` of
//! `pkg/providers/launchtemplate`.

use aws_sdk_eks::operation::describe_cluster::DescribeClusterInput;
use cloudprovider::CloudProviderError;

use crate::error::{call_failure, invalid};
use crate::options::AwsOptions;
use crate::seam::EksApi;

/// A cluster as EKS describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DescribedCluster {
    /// ARN of the cluster; none where EKS leaves it out.
    pub arn: Option<String>,
    /// URL of the API server.
    pub endpoint: Option<String>,
    /// Minor-precise, such as `1.33`.
    pub version: Option<String>,
    /// Range of the addresses of Services; that of IPv4 where there are two.
    pub service_cidr: Option<String>,
}

/// Asks EKS for the cluster of that name.
pub async fn describe_cluster(
    eks: &dyn EksApi,
    name: &str,
) -> Result<DescribedCluster, CloudProviderError> {
    let input = DescribeClusterInput::builder().name(name).build();
    let answer = eks.describe_cluster(input.map_err(invalid)?).await;
    let context = format!("asking EKS for cluster {name:?} (eks:DescribeCluster)");
    let cluster = answer
        .map_err(|error| call_failure(&context, &error))?
        .cluster;
    let described = cluster.map(|cluster| {
        let network = cluster.kubernetes_network_config;
        DescribedCluster {
            arn: cluster.arn,
            endpoint: cluster.endpoint,
            version: cluster.version,
            service_cidr: network.and_then(|it| it.service_ipv4_cidr.or(it.service_ipv6_cidr)),
        }
    });
    Ok(described.unwrap_or_default())
}

impl AwsOptions {
    /// Takes over what EKS said, save for what a setting says. What EKS leaves out stays as it was.
    pub fn learn(&mut self, cluster: DescribedCluster) {
        let DescribedCluster {
            arn,
            endpoint,
            version,
            service_cidr,
        } = cluster;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(endpoint) = given(endpoint).filter(|_| self.discovers_endpoint) {
            self.cluster_endpoint = endpoint;
        }
        if let Some(version) = given(version).filter(|_| self.eks_control_plane) {
            self.kubernetes_version = version;
        }
        if let Some(range) = given(service_cidr) {
            self.cluster_cidr = Some(range);
        }
        if let Some(arn) = given(arn) {
            self.cluster_arn = Some(arn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_win_over_what_eks_says_and_silence_changes_nothing() {
        let told = DescribedCluster {
            arn: Some("arn:aws:eks:us-east-1:123456789012:cluster/demo".to_owned()),
            endpoint: Some("https://eks.example".to_owned()),
            version: Some("1.34".to_owned()),
            service_cidr: Some("fd00::/108".to_owned()),
        };
        let cases = [
            // endpoint and version are EKS's to say -> endpoint, version
            ((true, true), ("https://eks.example", "1.34")),
            ((true, false), ("https://eks.example", "1.33")),
            ((false, true), ("https://set.example", "1.34")),
            ((false, false), ("https://set.example", "1.33")),
        ];
        for ((discovers_endpoint, eks_control_plane), want) in cases {
            let mut options = AwsOptions {
                cluster_endpoint: "https://set.example".to_owned(),
                discovers_endpoint,
                eks_control_plane,
                ..AwsOptions::new("demo", "us-east-1")
            };
            options.learn(told.clone());
            let known = options.clone();
            let got = (known.cluster_endpoint, known.kubernetes_version);
            assert_eq!((got.0.as_str(), got.1.as_str()), want);
            assert_eq!(options.cluster_cidr.as_deref(), Some("fd00::/108"));
            assert_eq!(options.cluster_arn, told.arn);
            let before = options.clone();
            options.learn(DescribedCluster::default());
            assert_eq!(options, before);
        }
    }
}
