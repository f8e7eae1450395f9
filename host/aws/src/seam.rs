//! The one seam to AWS: a thin trait per service, an operation a method. Types in and out are the SDK's own, but for
//! SQS and ARC, whose types are many and of which little is read.
//!
//! [`crate::sdk`] answers over HTTP, the simulator answers from its world; everything above runs alike on
//! both. No decision, default, retry or paging may live here. Answers to Karpenter's `pkg/aws/sdk.go`.

use async_trait::async_trait;
use jiff::Timestamp;

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

/// An operation that AWS refused, or that never got an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// The service's error code, such as `InvalidInstanceID.NotFound`. Where no service answered, or its answer makes
    /// no sense, a code of ours, such as `RequestError`.
    pub code: String,
    /// Message of the service.
    pub message: String,
    /// Whose fault the service says it is.
    pub fault: ErrorFault,
}

/// Who has to change something before an operation can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorFault {
    /// The caller: the request has to change, and repeating it does not help.
    Client,
    /// The service, or the way to it (time-out, connection, no credentials): nobody knows whether it was done, and the
    /// same request may succeed later.
    Cloud,
}

/// Code where no service answered.
pub(crate) const CODE_TRANSPORT: &str = "RequestError";

impl ApiError {
    /// A refusal of the request, as the service words it.
    pub fn client(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            fault: ErrorFault::Client,
        }
    }

    /// A failure of the service.
    pub fn server(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            fault: ErrorFault::Cloud,
        }
    }

    /// No service answered.
    pub fn unanswered(message: impl Into<String>) -> Self {
        Self::server(CODE_TRANSPORT, message)
    }
}

/// Answer of every operation.
pub type ApiResult<T> = Result<T, ApiError>;

/// A message on a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMessage {
    /// With which it is deleted.
    pub receipt: String,
    /// Text that was sent.
    pub body: String,
}

/// The SQS operations in use. The SDK's own types would bring nothing but their names.
#[async_trait]
pub trait SqsApi: Send + Sync {
    /// Address of the queue of a name.
    async fn queue_url(&self, name: &str) -> ApiResult<String>;

    /// The policy of the queue, where it has one: who may send to it.
    async fn queue_policy(&self, queue_url: &str) -> ApiResult<Option<String>>;

    /// Up to ten messages, waited for up to twenty seconds, and hidden from others for as long.
    async fn receive(&self, queue_url: &str) -> ApiResult<Vec<QueueMessage>>;

    /// Takes a message off the queue.
    async fn delete(&self, queue_url: &str, receipt: &str) -> ApiResult<()>;
}

/// Traffic is shifted away from a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZonalShift {
    /// Id of the zone, such as `use1-az4`.
    pub away_from: String,
    /// Until then at most; one that AWS itself began has no end of its own.
    pub expires_at: Option<Timestamp>,
}

/// The one operation of ARC in use. The SDK's own types would bring much that nobody reads.
#[async_trait]
pub trait ZonalShiftApi: Send + Sync {
    /// The shifts that are applied to a cluster (arc-zonal-shift:GetManagedResource).
    async fn zonal_shifts(&self, cluster_arn: &str) -> ApiResult<Vec<ZonalShift>>;
}

/// The EC2 operations in use.
#[async_trait]
pub trait Ec2Api: Send + Sync {
    /// Pages of instance types.
    async fn describe_instance_types(
        &self,
        input: DescribeInstanceTypesInput,
    ) -> ApiResult<DescribeInstanceTypesOutput>;

    /// Pages of (type, zone) pairs.
    async fn describe_instance_type_offerings(
        &self,
        input: DescribeInstanceTypeOfferingsInput,
    ) -> ApiResult<DescribeInstanceTypeOfferingsOutput>;

    /// Pages of spot prices per type and zone.
    async fn describe_spot_price_history(
        &self,
        input: DescribeSpotPriceHistoryInput,
    ) -> ApiResult<DescribeSpotPriceHistoryOutput>;

    /// Pages of subnets.
    async fn describe_subnets(
        &self,
        input: DescribeSubnetsInput,
    ) -> ApiResult<DescribeSubnetsOutput>;

    /// Pages of security groups.
    async fn describe_security_groups(
        &self,
        input: DescribeSecurityGroupsInput,
    ) -> ApiResult<DescribeSecurityGroupsOutput>;

    /// Pages of machine images.
    async fn describe_images(&self, input: DescribeImagesInput) -> ApiResult<DescribeImagesOutput>;

    /// Pages of launch templates.
    async fn describe_launch_templates(
        &self,
        input: DescribeLaunchTemplatesInput,
    ) -> ApiResult<DescribeLaunchTemplatesOutput>;

    /// Makes a launch template.
    async fn create_launch_template(
        &self,
        input: CreateLaunchTemplateInput,
    ) -> ApiResult<CreateLaunchTemplateOutput>;

    /// Deletes a launch template.
    async fn delete_launch_template(
        &self,
        input: DeleteLaunchTemplateInput,
    ) -> ApiResult<DeleteLaunchTemplateOutput>;

    /// Launches instances; only fleets of type `instant` are asked for.
    async fn create_fleet(&self, input: CreateFleetInput) -> ApiResult<CreateFleetOutput>;

    /// Whether instances could be launched so; only dry runs are asked for.
    async fn run_instances(&self, input: RunInstancesInput) -> ApiResult<RunInstancesOutput>;

    /// Pages of reservations with their instances.
    async fn describe_instances(
        &self,
        input: DescribeInstancesInput,
    ) -> ApiResult<DescribeInstancesOutput>;

    /// Status checks and scheduled events of running instances.
    async fn describe_instance_status(
        &self,
        input: DescribeInstanceStatusInput,
    ) -> ApiResult<DescribeInstanceStatusOutput>;

    /// Starts to terminate instances.
    async fn terminate_instances(
        &self,
        input: TerminateInstancesInput,
    ) -> ApiResult<TerminateInstancesOutput>;

    /// Asks instances to reboot.
    async fn reboot_instances(
        &self,
        input: RebootInstancesInput,
    ) -> ApiResult<RebootInstancesOutput>;

    /// Adds tags to resources.
    async fn create_tags(&self, input: CreateTagsInput) -> ApiResult<CreateTagsOutput>;

    /// Pages of capacity reservations.
    async fn describe_capacity_reservations(
        &self,
        input: DescribeCapacityReservationsInput,
    ) -> ApiResult<DescribeCapacityReservationsOutput>;

    /// Placement groups.
    async fn describe_placement_groups(
        &self,
        input: DescribePlacementGroupsInput,
    ) -> ApiResult<DescribePlacementGroupsOutput>;
}

/// The IAM operations in use.
#[async_trait]
pub trait IamApi: Send + Sync {
    /// One instance profile with its roles.
    async fn get_instance_profile(
        &self,
        input: GetInstanceProfileInput,
    ) -> ApiResult<GetInstanceProfileOutput>;

    /// Makes an empty instance profile.
    async fn create_instance_profile(
        &self,
        input: CreateInstanceProfileInput,
    ) -> ApiResult<CreateInstanceProfileOutput>;

    /// Attaches the role.
    async fn add_role_to_instance_profile(
        &self,
        input: AddRoleToInstanceProfileInput,
    ) -> ApiResult<AddRoleToInstanceProfileOutput>;

    /// Detaches the role.
    async fn remove_role_from_instance_profile(
        &self,
        input: RemoveRoleFromInstanceProfileInput,
    ) -> ApiResult<RemoveRoleFromInstanceProfileOutput>;

    /// Deletes a profile that has no role.
    async fn delete_instance_profile(
        &self,
        input: DeleteInstanceProfileInput,
    ) -> ApiResult<DeleteInstanceProfileOutput>;

    /// Pages of profiles under a path.
    async fn list_instance_profiles(
        &self,
        input: ListInstanceProfilesInput,
    ) -> ApiResult<ListInstanceProfilesOutput>;
}

/// The one operation of EKS in use.
#[async_trait]
pub trait EksApi: Send + Sync {
    /// One cluster.
    async fn describe_cluster(
        &self,
        input: DescribeClusterInput,
    ) -> ApiResult<DescribeClusterOutput>;
}

/// The SSM operations in use.
#[async_trait]
pub trait SsmApi: Send + Sync {
    /// One parameter.
    async fn get_parameter(&self, input: GetParameterInput) -> ApiResult<GetParameterOutput>;
}

/// The Pricing operations in use.
#[async_trait]
pub trait PricingApi: Send + Sync {
    /// Pages of price-list documents.
    async fn get_products(&self, input: GetProductsInput) -> ApiResult<GetProductsOutput>;
}
