//! The seam over HTTP: each method hands the input's fields to the SDK's own client.
//!
//! Only translation lives here. Every field of an input is listed, so that none gets lost on the way.
//! Answers to the client construction in Karpenter's `pkg/operator/operator.go`.

use std::time::Duration;

use async_trait::async_trait;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider as TlsProvider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

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
use aws_sdk_ec2::operation::terminate_instances::{
    TerminateInstancesInput, TerminateInstancesOutput,
};
use aws_sdk_eks::operation::describe_cluster::{DescribeClusterInput, DescribeClusterOutput};
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

use crate::pricing::pricing_endpoint_region;
use crate::seam::{
    ApiError, ApiResult, CODE_TRANSPORT, Ec2Api, EksApi, Fault, IamApi, PricingApi, QueueMessage,
    SqsApi, SsmApi,
};

/// How long an operation may take with its repetitions; CreateFleet can be slow.
const OPERATION_TIMEOUT: Duration = Duration::from_mins(4);
/// How long one exchange may take, so that one that hangs leaves time for the next.
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(1);

/// What requests say of who sends them, where AWS logs them.
const APP_NAME: &str = concat!("mortise-", env!("CARGO_PKG_VERSION"));

/// The clients of all services in use, behind the seam.
#[derive(Debug, Clone)]
pub struct SdkClients {
    ec2: aws_sdk_ec2::Client,
    eks: aws_sdk_eks::Client,
    iam: aws_sdk_iam::Client,
    ssm: aws_sdk_ssm::Client,
    pricing: aws_sdk_pricing::Client,
    sqs: aws_sdk_sqs::Client,
    region: Option<String>,
}

impl SdkClients {
    /// Connects with the SDK's default chains of credentials, region and endpoints.
    pub async fn connect() -> Self {
        Self::of(&Self::loader().load().await)
    }

    /// How every client talks, for those who know region, endpoint or credentials themselves.
    pub fn loader() -> ConfigLoader {
        // Only connectors can be told of the proxies that HTTPS_PROXY and NO_PROXY name.
        let http_client =
            aws_smithy_http_client::Builder::new().build_with_connector_fn(|settings, runtime| {
                let mut connector = Connector::builder().proxy_config(ProxyConfig::from_env());
                connector.set_connector_settings(settings.cloned());
                connector.set_sleep_impl(runtime.and_then(RuntimeComponents::sleep_impl));
                connector
                    .tls_provider(TlsProvider::Rustls(CryptoMode::Ring))
                    .build()
            });
        let timeouts = TimeoutConfig::builder()
            .operation_timeout(OPERATION_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .build();
        let loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http_client)
            .retry_config(RetryConfig::standard())
            .timeout_config(timeouts);
        match AppName::new(APP_NAME) {
            Ok(name) => loader.app_name(name),
            Err(_) => loader,
        }
    }

    /// The clients of a configuration that [`Self::loader`] led to.
    pub fn of(config: &SdkConfig) -> Self {
        let region = config.region().map(ToString::to_string);
        let pricing_region = pricing_endpoint_region(region.as_deref().unwrap_or_default());
        let pricing = aws_sdk_pricing::config::Builder::from(config)
            .region(Region::new(pricing_region))
            .build();
        Self {
            ec2: aws_sdk_ec2::Client::new(config),
            eks: aws_sdk_eks::Client::new(config),
            iam: aws_sdk_iam::Client::new(config),
            ssm: aws_sdk_ssm::Client::new(config),
            pricing: aws_sdk_pricing::Client::from_conf(pricing),
            sqs: aws_sdk_sqs::Client::new(config),
            region,
        }
    }

    /// The region in use, if any was configured or discovered.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }
}

fn api_error<E>(error: &SdkError<E, HttpResponse>) -> ApiError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let Some(service) = error.as_service_error() else {
        return ApiError {
            code: CODE_TRANSPORT.to_owned(),
            message: aws_smithy_types::error::display::DisplayErrorContext(error).to_string(),
            fault: Fault::Transport,
        };
    };
    let is_server = error
        .raw_response()
        .is_some_and(|response| response.status().is_server_error());
    ApiError {
        code: service.code().unwrap_or("Unknown").to_owned(),
        message: service.message().unwrap_or_default().to_owned(),
        fault: if is_server {
            Fault::Server
        } else {
            Fault::Client
        },
    }
}

/// Hands every listed field of `$input` to the setter of the same name and sends the request.
macro_rules! send {
    ($client:expr, $operation:ident, $input:ident, [$($setter:ident = $field:ident),+ $(,)?]) => {
        $client
            .$operation()
            $(.$setter($input.$field))+
            .send()
            .await
            .map_err(|error| api_error(&error))
    };
}

/// Messages taken at a time, seconds waited for them, and seconds for which nobody else gets them.
const QUEUE_BATCH: i32 = 10;
const QUEUE_WAIT_SECONDS: i32 = 20;
const QUEUE_HIDDEN_SECONDS: i32 = 20;

#[async_trait]
impl SqsApi for SdkClients {
    async fn queue_url(&self, name: &str) -> ApiResult<String> {
        let answer = self.sqs.get_queue_url().queue_name(name).send().await;
        let answer = answer.map_err(|error| api_error(&error))?;
        Ok(answer.queue_url.unwrap_or_default())
    }

    async fn receive(&self, queue_url: &str) -> ApiResult<Vec<QueueMessage>> {
        let answer = self
            .sqs
            .receive_message()
            .queue_url(queue_url)
            .max_number_of_messages(QUEUE_BATCH)
            .wait_time_seconds(QUEUE_WAIT_SECONDS)
            .visibility_timeout(QUEUE_HIDDEN_SECONDS)
            .send()
            .await;
        let answer = answer.map_err(|error| api_error(&error))?;
        let messages = answer.messages.unwrap_or_default().into_iter();
        Ok(messages
            .map(|it| QueueMessage {
                receipt: it.receipt_handle.unwrap_or_default(),
                body: it.body.unwrap_or_default(),
            })
            .collect())
    }

    async fn delete(&self, queue_url: &str, receipt: &str) -> ApiResult<()> {
        let deleted = self
            .sqs
            .delete_message()
            .queue_url(queue_url)
            .receipt_handle(receipt)
            .send()
            .await;
        deleted.map(drop).map_err(|error| api_error(&error))
    }
}

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
        send!(
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
        send!(
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
        send!(
            self.ec2,
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
        send!(
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
        send!(
            self.ec2,
            reboot_instances,
            input,
            [set_instance_ids = instance_ids, set_dry_run = dry_run]
        )
    }

    async fn create_tags(&self, input: CreateTagsInput) -> ApiResult<CreateTagsOutput> {
        send!(
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

#[async_trait]
impl IamApi for SdkClients {
    async fn get_instance_profile(
        &self,
        input: GetInstanceProfileInput,
    ) -> ApiResult<GetInstanceProfileOutput> {
        send!(
            self.iam,
            get_instance_profile,
            input,
            [set_instance_profile_name = instance_profile_name]
        )
    }

    async fn create_instance_profile(
        &self,
        input: CreateInstanceProfileInput,
    ) -> ApiResult<CreateInstanceProfileOutput> {
        send!(
            self.iam,
            create_instance_profile,
            input,
            [
                set_instance_profile_name = instance_profile_name,
                set_path = path,
                set_tags = tags
            ]
        )
    }

    async fn add_role_to_instance_profile(
        &self,
        input: AddRoleToInstanceProfileInput,
    ) -> ApiResult<AddRoleToInstanceProfileOutput> {
        send!(
            self.iam,
            add_role_to_instance_profile,
            input,
            [
                set_instance_profile_name = instance_profile_name,
                set_role_name = role_name
            ]
        )
    }

    async fn remove_role_from_instance_profile(
        &self,
        input: RemoveRoleFromInstanceProfileInput,
    ) -> ApiResult<RemoveRoleFromInstanceProfileOutput> {
        send!(
            self.iam,
            remove_role_from_instance_profile,
            input,
            [
                set_instance_profile_name = instance_profile_name,
                set_role_name = role_name
            ]
        )
    }

    async fn delete_instance_profile(
        &self,
        input: DeleteInstanceProfileInput,
    ) -> ApiResult<DeleteInstanceProfileOutput> {
        send!(
            self.iam,
            delete_instance_profile,
            input,
            [set_instance_profile_name = instance_profile_name]
        )
    }

    async fn list_instance_profiles(
        &self,
        input: ListInstanceProfilesInput,
    ) -> ApiResult<ListInstanceProfilesOutput> {
        send!(
            self.iam,
            list_instance_profiles,
            input,
            [
                set_path_prefix = path_prefix,
                set_marker = marker,
                set_max_items = max_items
            ]
        )
    }
}

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
