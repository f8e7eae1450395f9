//! What is only looked up over the SDK: the cluster at EKS, parameters at SSM, products of the price list.

use crate::sdk::SdkClients;
use crate::sdk::request::send;
use crate::seam::{ApiResult, PricingApi, SsmApi};
use async_trait::async_trait;
use aws_sdk_eks::operation::describe_cluster::{DescribeClusterInput, DescribeClusterOutput};
use aws_sdk_pricing::operation::get_products::{GetProductsInput, GetProductsOutput};
use aws_sdk_ssm::operation::get_parameter::{GetParameterInput, GetParameterOutput};

impl SdkClients {
    /// One cluster. Behind no trait: whoever runs without AWS knows its cluster, and asks nobody.
    pub(crate) async fn describe_cluster(
        &self,
        input: DescribeClusterInput,
    ) -> ApiResult<DescribeClusterOutput> {
        send!(self.eks, describe_cluster, input, [set_name = name])
    }
}

#[async_trait]
impl SsmApi for SdkClients {
    async fn get_parameter(&self, input: GetParameterInput) -> ApiResult<GetParameterOutput> {
        send!(
            self.ssm,
            get_parameter,
            input,
            [set_name = name, set_with_decryption = with_decryption]
        )
    }
}

#[async_trait]
impl PricingApi for SdkClients {
    async fn get_products(&self, input: GetProductsInput) -> ApiResult<GetProductsOutput> {
        send!(
            self.pricing,
            get_products,
            input,
            [
                set_service_code = service_code,
                set_filters = filters,
                set_format_version = format_version,
                set_next_token = next_token,
                set_max_results = max_results
            ]
        )
    }
}
