//! The cluster as EKS describes it, and an upgrade of its control plane.

use async_trait::async_trait;
use aws::AwsOptions;
use aws::seam::{ApiError, ApiResult, EksApi};
use aws_sdk_eks::operation::describe_cluster::{DescribeClusterInput, DescribeClusterOutput};
use aws_sdk_eks::types::{Cluster, KubernetesNetworkConfigResponse};

use super::network::ACCOUNT;
use super::{AccountState, SimulatedEc2};

const SERVICE_CIDR: &str = "10.100.0.0/16";

#[async_trait]
impl EksApi for SimulatedEc2 {
    async fn describe_cluster(
        &self,
        input: DescribeClusterInput,
    ) -> ApiResult<DescribeClusterOutput> {
        self.call("DescribeCluster", move |state| {
            state.describe_cluster(&input)
        })
        .await
    }
}

impl SimulatedEc2 {
    /// Settings of a provider for a cluster in this account, whose API server is the simulated one.
    pub fn provider_options(&self, cluster_name: &str) -> AwsOptions {
        AwsOptions {
            cluster_endpoint: "https://kubernetes.default.svc".to_owned(),
            cluster_cidr: Some(SERVICE_CIDR.to_owned()),
            ..AwsOptions::new(cluster_name, self.region())
        }
    }

    /// Upgrades the control plane to a version such as `1.37`, for which images are published.
    pub fn upgrade_cluster(&self, kubernetes_version: &str) {
        let mut state = self.state();
        kubernetes_version.clone_into(&mut state.config.kubernetes_version);
        state.publish_images();
    }
}

impl AccountState {
    fn describe_cluster(&self, input: &DescribeClusterInput) -> ApiResult<DescribeClusterOutput> {
        let name = input.name().unwrap_or_default();
        if name != self.config.cluster_name {
            let message = format!("No cluster found for name: {name}.");
            return Err(ApiError::client("ResourceNotFoundException", message));
        }
        let region = &self.config.region;
        let network = KubernetesNetworkConfigResponse::builder().service_ipv4_cidr(SERVICE_CIDR);
        let cluster = Cluster::builder()
            .name(name)
            .arn(format!("arn:aws:eks:{region}:{ACCOUNT}:cluster/{name}"))
            .endpoint(format!("https://{name}.{region}.eks.amazonaws.com"))
            .version(&self.config.kubernetes_version)
            .kubernetes_network_config(network.build());
        Ok(DescribeClusterOutput::builder()
            .cluster(cluster.build())
            .build())
    }
}
