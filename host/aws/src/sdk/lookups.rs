//! Look-ups over the SDK: the cluster at EKS, zonal shifts at ARC, parameters at SSM, products of the price list.
//! Decides nothing.

use crate::sdk::SdkClients;
use crate::sdk::request::{api_error, send};
use crate::seam::{ApiResult, EksApi, PricingApi, SsmApi, ZonalShift, ZonalShiftApi};
use async_trait::async_trait;
use aws_sdk_arczonalshift::operation::get_managed_resource::GetManagedResourceOutput;
use aws_sdk_arczonalshift::types::{AppliedStatus, AutoshiftAppliedStatus};
use aws_sdk_eks::operation::describe_cluster::{DescribeClusterInput, DescribeClusterOutput};
use aws_sdk_pricing::operation::get_products::{GetProductsInput, GetProductsOutput};
use aws_sdk_ssm::operation::get_parameter::{GetParameterInput, GetParameterOutput};
use jiff::Timestamp;

#[async_trait]
impl EksApi for SdkClients {
    async fn describe_cluster(
        &self,
        input: DescribeClusterInput,
    ) -> ApiResult<DescribeClusterOutput> {
        send!(self.eks, describe_cluster, input, [set_name = name])
    }
}

#[async_trait]
impl ZonalShiftApi for SdkClients {
    async fn zonal_shifts(&self, cluster_arn: &str) -> ApiResult<Vec<ZonalShift>> {
        let request = self.zonal_shift.get_managed_resource();
        let answer = request.resource_identifier(cluster_arn).send().await;
        answer
            .map(|resource| applied(&resource))
            .map_err(|error| api_error(&error))
    }
}

/// Shifts that a person, a practice run or AWS itself began, as far as they are in force.
fn applied(resource: &GetManagedResourceOutput) -> Vec<ZonalShift> {
    let manual = resource.zonal_shifts().iter();
    let manual = manual.filter(|it| *it.applied_status() == AppliedStatus::Applied);
    let manual = manual.map(|it| ZonalShift {
        away_from: it.away_from().to_owned(),
        expires_at: Timestamp::from_second(it.expiry_time().secs()).ok(),
    });
    let automatic = resource.autoshifts().iter();
    let automatic = automatic.filter(|it| *it.applied_status() == AutoshiftAppliedStatus::Applied);
    let automatic = automatic.map(|it| ZonalShift {
        away_from: it.away_from().to_owned(),
        expires_at: None,
    });
    manual.chain(automatic).collect()
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

#[cfg(test)]
mod tests {
    use aws_sdk_arczonalshift::types::{AutoshiftInResource, ZonalShiftInResource};
    use aws_smithy_types::DateTime;

    use super::*;

    #[test]
    fn what_is_not_applied_shifts_nothing() {
        let manual = |zone: &str, status: AppliedStatus| {
            ZonalShiftInResource::builder()
                .applied_status(status)
                .zonal_shift_id("shift")
                .resource_identifier("arn")
                .away_from(zone)
                .expiry_time(DateTime::from_secs(60))
                .start_time(DateTime::from_secs(0))
                .comment("")
                .build()
                .unwrap()
        };
        let automatic = |zone: &str, status: AutoshiftAppliedStatus| {
            AutoshiftInResource::builder()
                .applied_status(status)
                .away_from(zone)
                .start_time(DateTime::from_secs(0))
                .build()
                .unwrap()
        };
        let resource = GetManagedResourceOutput::builder()
            .set_applied_weights(Some([("use1-az1".to_owned(), 0.0)].into()))
            .zonal_shifts(manual("use1-az1", AppliedStatus::Applied))
            .zonal_shifts(manual("use1-az2", AppliedStatus::NotApplied))
            .autoshifts(automatic("use1-az4", AutoshiftAppliedStatus::Applied))
            .autoshifts(automatic("use1-az6", AutoshiftAppliedStatus::NotApplied))
            .build()
            .unwrap();
        let until = Timestamp::from_second(60).unwrap();
        let want = [("use1-az1", Some(until)), ("use1-az4", None)];
        let want = want.map(|(zone, expires_at)| ZonalShift {
            away_from: zone.to_owned(),
            expires_at,
        });
        assert_eq!(applied(&resource), want);
    }
}
