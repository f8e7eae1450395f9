//! Whether the controller's role may ask what it will have to ask, before anything depends on it.
//!
//! Dry runs alone: nothing is changed, and no other answer than a refusal counts. Answers to Karpenter's
//! `CheckEC2Connectivity` of `pkg/operator/operator.go`, which asks for the first of these.

use aws_sdk_ec2::operation::describe_images::DescribeImagesInput;
use aws_sdk_ec2::operation::describe_instance_status::DescribeInstanceStatusInput;
use aws_sdk_ec2::operation::describe_instance_type_offerings::DescribeInstanceTypeOfferingsInput;
use aws_sdk_ec2::operation::describe_instance_types::DescribeInstanceTypesInput;
use aws_sdk_ec2::operation::describe_instances::DescribeInstancesInput;
use aws_sdk_ec2::operation::describe_launch_templates::DescribeLaunchTemplatesInput;
use aws_sdk_ec2::operation::describe_security_groups::DescribeSecurityGroupsInput;
use aws_sdk_ec2::operation::describe_spot_price_history::DescribeSpotPriceHistoryInput;
use aws_sdk_ec2::operation::describe_subnets::DescribeSubnetsInput;
use aws_sdk_ec2::operation::{
    describe_capacity_reservations::DescribeCapacityReservationsInput,
    describe_placement_groups::DescribePlacementGroupsInput,
};
use cloudprovider::CloudProviderError;
use futures::future::{BoxFuture, FutureExt as _, join_all};

use crate::error::{call_failure, is_denied, is_dry_run};
use crate::seam::{ApiError, Ec2Api};

/// Something that the role may not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPermission {
    /// As IAM names it.
    pub action: &'static str,
    /// Function that fails without it.
    pub consequence: &'static str,
    /// Message with which EC2 refused.
    pub refusal: String,
}

/// A dry run of an operation: what EC2 said against it.
macro_rules! dry_run {
    ($ec2:expr, $operation:ident, $input:ident) => {
        async move {
            match $input::builder().dry_run(true).build() {
                Ok(input) => $ec2.$operation(input).await.err(),
                Err(_) => None,
            }
        }
        .boxed()
    };
}

/// Whether EC2 answers this controller at all. An error says whom AWS does not know or what it may not do.
pub async fn check_connectivity(ec2: &dyn Ec2Api) -> Result<(), CloudProviderError> {
    let error = dry_run!(ec2, describe_instance_types, DescribeInstanceTypesInput).await;
    match error.filter(|error| !is_dry_run(error)) {
        None => Ok(()),
        Some(error) => Err(call_failure(
            "EC2 does not let this controller in (ec2:DescribeInstanceTypes)",
            &error,
        )),
    }
}

/// Further permissions on EC2 that the role lacks.
pub async fn missing_permissions(ec2: &dyn Ec2Api) -> Vec<MissingPermission> {
    let checks = join_all(
        checks(ec2)
            .into_iter()
            .map(|(action, consequence, asked)| async move {
                let refusal = asked.await.filter(is_denied)?;
                Some(MissingPermission {
                    action,
                    consequence,
                    refusal: refusal.to_string(),
                })
            }),
    );
    checks.await.into_iter().flatten().collect()
}

/// An action, what does not work without it, and what EC2 says against a dry run of it.
type PermissionCheck<'a> = (&'static str, &'static str, BoxFuture<'a, Option<ApiError>>);

macro_rules! checks {
    ($ec2:expr, $($operation:ident($input:ident), $action:literal => $consequence:literal;)+) => {
        vec![$(($action, $consequence, dry_run!($ec2, $operation, $input))),+]
    };
}

fn checks(ec2: &dyn Ec2Api) -> Vec<PermissionCheck<'_>> {
    checks!(ec2,
        describe_instance_type_offerings(DescribeInstanceTypeOfferingsInput), "ec2:DescribeInstanceTypeOfferings"
            => "there are no instance types, and nothing is launched";
        describe_subnets(DescribeSubnetsInput), "ec2:DescribeSubnets"
            => "EC2NodeClasses find no subnets and do not get ready";
        describe_security_groups(DescribeSecurityGroupsInput), "ec2:DescribeSecurityGroups"
            => "EC2NodeClasses find no security groups and do not get ready";
        describe_images(DescribeImagesInput), "ec2:DescribeImages"
            => "EC2NodeClasses find no images and do not get ready";
        describe_launch_templates(DescribeLaunchTemplatesInput), "ec2:DescribeLaunchTemplates"
            => "launch templates are neither found again nor cleaned up";
        describe_instances(DescribeInstancesInput), "ec2:DescribeInstances"
            => "no instance is told from one that is gone";
        describe_instance_status(DescribeInstanceStatusInput), "ec2:DescribeInstanceStatus"
            => "instances that EC2 finds sick are not replaced";
        describe_spot_price_history(DescribeSpotPriceHistoryInput), "ec2:DescribeSpotPriceHistory"
            => "spot instances are taken to cost what on-demand ones do";
        describe_capacity_reservations(DescribeCapacityReservationsInput), "ec2:DescribeCapacityReservations"
            => "capacity reservations are not used";
        describe_placement_groups(DescribePlacementGroupsInput), "ec2:DescribePlacementGroups"
            => "EC2NodeClasses with a placement group do not get ready";
    )
}
