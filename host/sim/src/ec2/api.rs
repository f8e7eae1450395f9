//! The seam's traits: each method names its operation and hands the input to the state.
//!
//! Decides nothing; what a call costs in time and requests is the gate's (`gate.rs`).

use async_trait::async_trait;
use aws::seam::{ApiResult, Ec2Api, IamApi, PricingApi, SsmApi, ZonalShift, ZonalShiftApi};
use aws_sdk_ec2::operation::create_fleet::{CreateFleetInput, CreateFleetOutput};
use aws_sdk_ec2::operation::create_launch_template::{
    CreateLaunchTemplateInput, CreateLaunchTemplateOutput,
};
use aws_sdk_ec2::operation::create_tags::{CreateTagsInput, CreateTagsOutput};
use aws_sdk_ec2::operation::delete_launch_template::{
    DeleteLaunchTemplateInput, DeleteLaunchTemplateOutput,
};
use aws_sdk_ec2::operation::describe_capacity_reservations::{
    DescribeCapacityReservationsInput, DescribeCapacityReservationsOutput,
};
use aws_sdk_ec2::operation::describe_images::{DescribeImagesInput, DescribeImagesOutput};
use aws_sdk_ec2::operation::describe_instance_status::{
    DescribeInstanceStatusInput, DescribeInstanceStatusOutput,
};
use aws_sdk_ec2::operation::describe_instance_type_offerings::{
    DescribeInstanceTypeOfferingsInput, DescribeInstanceTypeOfferingsOutput,
};
use aws_sdk_ec2::operation::describe_instance_types::{
    DescribeInstanceTypesInput, DescribeInstanceTypesOutput,
};
use aws_sdk_ec2::operation::describe_instances::{DescribeInstancesInput, DescribeInstancesOutput};
use aws_sdk_ec2::operation::describe_launch_templates::{
    DescribeLaunchTemplatesInput, DescribeLaunchTemplatesOutput,
};
use aws_sdk_ec2::operation::describe_placement_groups::{
    DescribePlacementGroupsInput, DescribePlacementGroupsOutput,
};
use aws_sdk_ec2::operation::describe_security_groups::{
    DescribeSecurityGroupsInput, DescribeSecurityGroupsOutput,
};
use aws_sdk_ec2::operation::describe_spot_price_history::{
    DescribeSpotPriceHistoryInput, DescribeSpotPriceHistoryOutput,
};
use aws_sdk_ec2::operation::describe_subnets::{DescribeSubnetsInput, DescribeSubnetsOutput};
use aws_sdk_ec2::operation::reboot_instances::{RebootInstancesInput, RebootInstancesOutput};
use aws_sdk_ec2::operation::run_instances::{RunInstancesInput, RunInstancesOutput};
use aws_sdk_ec2::operation::terminate_instances::{
    TerminateInstancesInput, TerminateInstancesOutput,
};
use aws_sdk_iam::operation::add_role_to_instance_profile::{
    AddRoleToInstanceProfileInput, AddRoleToInstanceProfileOutput,
};
use aws_sdk_iam::operation::create_instance_profile::{
    CreateInstanceProfileInput, CreateInstanceProfileOutput,
};
use aws_sdk_iam::operation::delete_instance_profile::{
    DeleteInstanceProfileInput, DeleteInstanceProfileOutput,
};
use aws_sdk_iam::operation::get_instance_profile::{
    GetInstanceProfileInput, GetInstanceProfileOutput,
};
use aws_sdk_iam::operation::list_instance_profiles::{
    ListInstanceProfilesInput, ListInstanceProfilesOutput,
};
use aws_sdk_iam::operation::remove_role_from_instance_profile::{
    RemoveRoleFromInstanceProfileInput, RemoveRoleFromInstanceProfileOutput,
};
use aws_sdk_pricing::operation::get_products::{GetProductsInput, GetProductsOutput};
use aws_sdk_ssm::operation::get_parameter::{GetParameterInput, GetParameterOutput};

use super::SimulatedEc2;
use super::fleet::check_type;

#[async_trait]
impl Ec2Api for SimulatedEc2 {
    async fn describe_instance_types(
        &self,
        input: DescribeInstanceTypesInput,
    ) -> ApiResult<DescribeInstanceTypesOutput> {
        self.call("DescribeInstanceTypes", move |state| {
            state.describe_instance_types(&input)
        })
        .await
    }

    async fn describe_instance_type_offerings(
        &self,
        input: DescribeInstanceTypeOfferingsInput,
    ) -> ApiResult<DescribeInstanceTypeOfferingsOutput> {
        self.call("DescribeInstanceTypeOfferings", move |state| {
            state.describe_instance_type_offerings(&input)
        })
        .await
    }

    async fn describe_spot_price_history(
        &self,
        input: DescribeSpotPriceHistoryInput,
    ) -> ApiResult<DescribeSpotPriceHistoryOutput> {
        self.call("DescribeSpotPriceHistory", move |state| {
            state.describe_spot_price_history(&input)
        })
        .await
    }

    async fn describe_subnets(
        &self,
        input: DescribeSubnetsInput,
    ) -> ApiResult<DescribeSubnetsOutput> {
        self.call("DescribeSubnets", move |state| {
            state.describe_subnets(&input)
        })
        .await
    }

    async fn describe_security_groups(
        &self,
        input: DescribeSecurityGroupsInput,
    ) -> ApiResult<DescribeSecurityGroupsOutput> {
        self.call("DescribeSecurityGroups", move |state| {
            state.describe_security_groups(&input)
        })
        .await
    }

    async fn describe_images(&self, input: DescribeImagesInput) -> ApiResult<DescribeImagesOutput> {
        self.call("DescribeImages", move |state| state.describe_images(&input))
            .await
    }

    async fn describe_launch_templates(
        &self,
        input: DescribeLaunchTemplatesInput,
    ) -> ApiResult<DescribeLaunchTemplatesOutput> {
        self.call("DescribeLaunchTemplates", move |state| {
            state.describe_launch_templates(&input)
        })
        .await
    }

    async fn create_launch_template(
        &self,
        input: CreateLaunchTemplateInput,
    ) -> ApiResult<CreateLaunchTemplateOutput> {
        self.call("CreateLaunchTemplate", move |state| {
            state.create_launch_template(input)
        })
        .await
    }

    async fn delete_launch_template(
        &self,
        input: DeleteLaunchTemplateInput,
    ) -> ApiResult<DeleteLaunchTemplateOutput> {
        self.call("DeleteLaunchTemplate", move |state| {
            state.delete_launch_template(&input)
        })
        .await
    }

    async fn create_fleet(&self, input: CreateFleetInput) -> ApiResult<CreateFleetOutput> {
        check_type(&input)?;
        let operation = match input.dry_run {
            Some(true) => "CreateFleet DryRun",
            Some(false) | None => "CreateFleet",
        };
        self.call(operation, move |state| state.create_fleet(&input))
            .await
    }

    async fn run_instances(&self, input: RunInstancesInput) -> ApiResult<RunInstancesOutput> {
        self.call("RunInstances DryRun", move |state| {
            state.run_instances(&input)
        })
        .await
    }

    async fn describe_instances(
        &self,
        input: DescribeInstancesInput,
    ) -> ApiResult<DescribeInstancesOutput> {
        self.call("DescribeInstances", move |state| {
            state.describe_instances(&input)
        })
        .await
    }

    async fn describe_instance_status(
        &self,
        input: DescribeInstanceStatusInput,
    ) -> ApiResult<DescribeInstanceStatusOutput> {
        self.call("DescribeInstanceStatus", move |state| {
            state.describe_instance_status(&input)
        })
        .await
    }

    async fn terminate_instances(
        &self,
        input: TerminateInstancesInput,
    ) -> ApiResult<TerminateInstancesOutput> {
        self.call("TerminateInstances", move |state| {
            state.terminate_instances(&input)
        })
        .await
    }

    async fn reboot_instances(
        &self,
        input: RebootInstancesInput,
    ) -> ApiResult<RebootInstancesOutput> {
        self.call("RebootInstances", move |state| {
            state.reboot_instances(&input)
        })
        .await
    }

    async fn create_tags(&self, input: CreateTagsInput) -> ApiResult<CreateTagsOutput> {
        self.call("CreateTags", move |state| state.create_tags(&input))
            .await
    }

    async fn describe_capacity_reservations(
        &self,
        input: DescribeCapacityReservationsInput,
    ) -> ApiResult<DescribeCapacityReservationsOutput> {
        self.call("DescribeCapacityReservations", move |state| {
            state.describe_capacity_reservations(&input)
        })
        .await
    }

    async fn describe_placement_groups(
        &self,
        input: DescribePlacementGroupsInput,
    ) -> ApiResult<DescribePlacementGroupsOutput> {
        self.call("DescribePlacementGroups", move |state| {
            state.describe_placement_groups(&input)
        })
        .await
    }
}

#[async_trait]
impl IamApi for SimulatedEc2 {
    async fn get_instance_profile(
        &self,
        input: GetInstanceProfileInput,
    ) -> ApiResult<GetInstanceProfileOutput> {
        self.call("GetInstanceProfile", move |state| {
            state.get_instance_profile(&input)
        })
        .await
    }

    async fn create_instance_profile(
        &self,
        input: CreateInstanceProfileInput,
    ) -> ApiResult<CreateInstanceProfileOutput> {
        self.call("CreateInstanceProfile", move |state| {
            state.create_instance_profile(input)
        })
        .await
    }

    async fn add_role_to_instance_profile(
        &self,
        input: AddRoleToInstanceProfileInput,
    ) -> ApiResult<AddRoleToInstanceProfileOutput> {
        self.call("AddRoleToInstanceProfile", move |state| {
            state.add_role_to_instance_profile(&input)
        })
        .await
    }

    async fn remove_role_from_instance_profile(
        &self,
        input: RemoveRoleFromInstanceProfileInput,
    ) -> ApiResult<RemoveRoleFromInstanceProfileOutput> {
        self.call("RemoveRoleFromInstanceProfile", move |state| {
            state.remove_role_from_instance_profile(&input)
        })
        .await
    }

    async fn delete_instance_profile(
        &self,
        input: DeleteInstanceProfileInput,
    ) -> ApiResult<DeleteInstanceProfileOutput> {
        self.call("DeleteInstanceProfile", move |state| {
            state.delete_instance_profile(&input)
        })
        .await
    }

    async fn list_instance_profiles(
        &self,
        input: ListInstanceProfilesInput,
    ) -> ApiResult<ListInstanceProfilesOutput> {
        self.call("ListInstanceProfiles", move |state| {
            state.list_instance_profiles(&input)
        })
        .await
    }
}

#[async_trait]
impl SsmApi for SimulatedEc2 {
    async fn get_parameter(&self, input: GetParameterInput) -> ApiResult<GetParameterOutput> {
        self.call("GetParameter", move |state| state.get_parameter(&input))
            .await
    }
}

#[async_trait]
impl ZonalShiftApi for SimulatedEc2 {
    async fn zonal_shifts(&self, _: &str) -> ApiResult<Vec<ZonalShift>> {
        self.call("GetManagedResource", |state| Ok(state.zonal_shifts()))
            .await
    }
}

#[async_trait]
impl PricingApi for SimulatedEc2 {
    async fn get_products(&self, input: GetProductsInput) -> ApiResult<GetProductsOutput> {
        self.call("GetProducts", move |state| state.get_products(&input))
            .await
    }
}
