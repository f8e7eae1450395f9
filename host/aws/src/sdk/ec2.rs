//! EC2 over the SDK: one flat table of operations, each with all fields of its input. Decides nothing.

use crate::sdk::SdkClients;
use crate::sdk::change_fence::CallEffect;
use crate::sdk::request::{send, send_change};
use crate::seam::{ApiResult, Ec2Api};
use async_trait::async_trait;
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

#[async_trait]
impl Ec2Api for SdkClients {
    async fn describe_instance_types(
        &self,
        input: DescribeInstanceTypesInput,
    ) -> ApiResult<DescribeInstanceTypesOutput> {
        send!(
            self.ec2,
            describe_instance_types,
            input,
            [
                set_dry_run = dry_run,
                set_instance_types = instance_types,
                set_filters = filters,
                set_max_results = max_results,
                set_next_token = next_token,
                set_include_unsupported_in_region = include_unsupported_in_region
            ]
        )
    }

    async fn describe_instance_type_offerings(
        &self,
        input: DescribeInstanceTypeOfferingsInput,
    ) -> ApiResult<DescribeInstanceTypeOfferingsOutput> {
        send!(
            self.ec2,
            describe_instance_type_offerings,
            input,
            [
                set_dry_run = dry_run,
                set_location_type = location_type,
                set_filters = filters,
                set_max_results = max_results,
                set_next_token = next_token
            ]
        )
    }

    async fn describe_spot_price_history(
        &self,
        input: DescribeSpotPriceHistoryInput,
    ) -> ApiResult<DescribeSpotPriceHistoryOutput> {
        send!(
            self.ec2,
            describe_spot_price_history,
            input,
            [
                set_availability_zone_id = availability_zone_id,
                set_dry_run = dry_run,
                set_start_time = start_time,
                set_end_time = end_time,
                set_instance_types = instance_types,
                set_product_descriptions = product_descriptions,
                set_filters = filters,
                set_availability_zone = availability_zone,
                set_max_results = max_results,
                set_next_token = next_token
            ]
        )
    }

    async fn describe_subnets(
        &self,
        input: DescribeSubnetsInput,
    ) -> ApiResult<DescribeSubnetsOutput> {
        send!(
            self.ec2,
            describe_subnets,
            input,
            [
                set_filters = filters,
                set_subnet_ids = subnet_ids,
                set_next_token = next_token,
                set_max_results = max_results,
                set_dry_run = dry_run
            ]
        )
    }

    async fn describe_security_groups(
        &self,
        input: DescribeSecurityGroupsInput,
    ) -> ApiResult<DescribeSecurityGroupsOutput> {
        send!(
            self.ec2,
            describe_security_groups,
            input,
            [
                set_group_ids = group_ids,
                set_group_names = group_names,
                set_next_token = next_token,
                set_max_results = max_results,
                set_dry_run = dry_run,
                set_filters = filters
            ]
        )
    }

    async fn describe_images(&self, input: DescribeImagesInput) -> ApiResult<DescribeImagesOutput> {
        send!(
            self.ec2,
            describe_images,
            input,
            [
                set_executable_users = executable_users,
                set_image_ids = image_ids,
                set_owners = owners,
                set_include_deprecated = include_deprecated,
                set_include_disabled = include_disabled,
                set_max_results = max_results,
                set_next_token = next_token,
                set_dry_run = dry_run,
                set_filters = filters
            ]
        )
    }

    async fn describe_launch_templates(
        &self,
        input: DescribeLaunchTemplatesInput,
    ) -> ApiResult<DescribeLaunchTemplatesOutput> {
        send!(
            self.ec2,
            describe_launch_templates,
            input,
            [
                set_dry_run = dry_run,
                set_launch_template_ids = launch_template_ids,
                set_launch_template_names = launch_template_names,
                set_filters = filters,
                set_next_token = next_token,
                set_max_results = max_results,
                set_include_managed_resources = include_managed_resources
            ]
        )
    }

    async fn create_launch_template(
        &self,
        input: CreateLaunchTemplateInput,
    ) -> ApiResult<CreateLaunchTemplateOutput> {
        send_change!(
            self.change_fence,
            CallEffect::of(input.dry_run),
            self.ec2,
            create_launch_template,
            input,
            [
                set_dry_run = dry_run,
                set_client_token = client_token,
                set_launch_template_name = launch_template_name,
                set_version_description = version_description,
                set_launch_template_data = launch_template_data,
                set_operator = operator,
                set_tag_specifications = tag_specifications
            ]
        )
    }

    async fn delete_launch_template(
        &self,
        input: DeleteLaunchTemplateInput,
    ) -> ApiResult<DeleteLaunchTemplateOutput> {
        send_change!(
            self.change_fence,
            CallEffect::of(input.dry_run),
            self.ec2,
            delete_launch_template,
            input,
            [
                set_dry_run = dry_run,
                set_launch_template_id = launch_template_id,
                set_launch_template_name = launch_template_name
            ]
        )
    }

    async fn create_fleet(&self, input: CreateFleetInput) -> ApiResult<CreateFleetOutput> {
        send_change!(
            self.change_fence,
            CallEffect::of(input.dry_run),
            self.ec2_for(input.dry_run),
            create_fleet,
            input,
            [
                set_dry_run = dry_run,
                set_client_token = client_token,
                set_spot_options = spot_options,
                set_on_demand_options = on_demand_options,
                set_reserved_capacity_options = reserved_capacity_options,
                set_excess_capacity_termination_policy = excess_capacity_termination_policy,
                set_launch_template_configs = launch_template_configs,
                set_target_capacity_specification = target_capacity_specification,
                set_terminate_instances_with_expiration = terminate_instances_with_expiration,
                set_type = r#type,
                set_valid_from = valid_from,
                set_valid_until = valid_until,
                set_replace_unhealthy_instances = replace_unhealthy_instances,
                set_tag_specifications = tag_specifications,
                set_context = context
            ]
        )
    }

    async fn run_instances(&self, input: RunInstancesInput) -> ApiResult<RunInstancesOutput> {
        send_change!(
            self.change_fence,
            CallEffect::of(input.dry_run),
            self.ec2_for(input.dry_run),
            run_instances,
            input,
            [
                set_block_device_mappings = block_device_mappings,
                set_image_id = image_id,
                set_instance_type = instance_type,
                set_ipv6_address_count = ipv6_address_count,
                set_ipv6_addresses = ipv6_addresses,
                set_kernel_id = kernel_id,
                set_key_name = key_name,
                set_max_count = max_count,
                set_min_count = min_count,
                set_monitoring = monitoring,
                set_placement = placement,
                set_ramdisk_id = ramdisk_id,
                set_security_group_ids = security_group_ids,
                set_security_groups = security_groups,
                set_subnet_id = subnet_id,
                set_user_data = user_data,
                set_tag_specifications = tag_specifications,
                set_launch_template = launch_template,
                set_instance_market_options = instance_market_options,
                set_credit_specification = credit_specification,
                set_cpu_options = cpu_options,
                set_capacity_reservation_specification = capacity_reservation_specification,
                set_hibernation_options = hibernation_options,
                set_license_specifications = license_specifications,
                set_metadata_options = metadata_options,
                set_enclave_options = enclave_options,
                set_private_dns_name_options = private_dns_name_options,
                set_maintenance_options = maintenance_options,
                set_disable_api_stop = disable_api_stop,
                set_enable_primary_ipv6 = enable_primary_ipv6,
                set_network_performance_options = network_performance_options,
                set_operator = operator,
                set_secondary_interfaces = secondary_interfaces,
                set_dry_run = dry_run,
                set_disable_api_termination = disable_api_termination,
                set_instance_initiated_shutdown_behavior = instance_initiated_shutdown_behavior,
                set_private_ip_address = private_ip_address,
                set_client_token = client_token,
                set_additional_info = additional_info,
                set_network_interfaces = network_interfaces,
                set_iam_instance_profile = iam_instance_profile,
                set_ebs_optimized = ebs_optimized
            ]
        )
    }

    async fn describe_instances(
        &self,
        input: DescribeInstancesInput,
    ) -> ApiResult<DescribeInstancesOutput> {
        send!(
            self.ec2,
            describe_instances,
            input,
            [
                set_instance_ids = instance_ids,
                set_include_managed_resources = include_managed_resources,
                set_dry_run = dry_run,
                set_filters = filters,
                set_next_token = next_token,
                set_max_results = max_results
            ]
        )
    }

    async fn describe_instance_status(
        &self,
        input: DescribeInstanceStatusInput,
    ) -> ApiResult<DescribeInstanceStatusOutput> {
        send!(
            self.ec2,
            describe_instance_status,
            input,
            [
                set_filters = filters,
                set_instance_ids = instance_ids,
                set_max_results = max_results,
                set_next_token = next_token,
                set_dry_run = dry_run,
                set_include_all_instances = include_all_instances
            ]
        )
    }

    async fn terminate_instances(
        &self,
        input: TerminateInstancesInput,
    ) -> ApiResult<TerminateInstancesOutput> {
        send_change!(
            self.change_fence,
            CallEffect::of(input.dry_run),
            self.ec2,
            terminate_instances,
            input,
            [
                set_instance_ids = instance_ids,
                set_force = force,
                set_skip_os_shutdown = skip_os_shutdown,
                set_dry_run = dry_run
            ]
        )
    }

    async fn reboot_instances(
        &self,
        input: RebootInstancesInput,
    ) -> ApiResult<RebootInstancesOutput> {
        send_change!(
            self.change_fence,
            CallEffect::of(input.dry_run),
            self.ec2,
            reboot_instances,
            input,
            [set_instance_ids = instance_ids, set_dry_run = dry_run]
        )
    }

    async fn create_tags(&self, input: CreateTagsInput) -> ApiResult<CreateTagsOutput> {
        send_change!(
            self.change_fence,
            CallEffect::of(input.dry_run),
            self.ec2,
            create_tags,
            input,
            [
                set_dry_run = dry_run,
                set_resources = resources,
                set_tags = tags
            ]
        )
    }

    async fn describe_capacity_reservations(
        &self,
        input: DescribeCapacityReservationsInput,
    ) -> ApiResult<DescribeCapacityReservationsOutput> {
        send!(
            self.ec2,
            describe_capacity_reservations,
            input,
            [
                set_capacity_reservation_ids = capacity_reservation_ids,
                set_next_token = next_token,
                set_max_results = max_results,
                set_filters = filters,
                set_dry_run = dry_run
            ]
        )
    }

    async fn describe_placement_groups(
        &self,
        input: DescribePlacementGroupsInput,
    ) -> ApiResult<DescribePlacementGroupsOutput> {
        send!(
            self.ec2,
            describe_placement_groups,
            input,
            [
                set_group_ids = group_ids,
                set_dry_run = dry_run,
                set_group_names = group_names,
                set_filters = filters
            ]
        )
    }
}
