//! The actions of AWS that the controller needs: one table, from which the documents of [`super`] are made.
//!
//! A row is the action as IAM names it, whether a call of [`crate::sdk`] is it or AWS asks for it on the way, when it
//! is needed, the statements that allow it, and what it is for. A test fails where a call has no row, or a row no call.

use super::needs::ActionNeed;
use super::scopes::{
    ActionScope, CHANGE_OUR_PROFILES, CLUSTER, END_WHAT_IS_OURS, LAUNCH_BY_OUR_TEMPLATES,
    LAUNCH_FROM, LOOK, LOOK_AT_PROFILES, LOOK_ELSEWHERE, MAKE_PROFILES, MAKE_WHAT_CARRIES_THE_TAG,
    PARAMETERS, QUEUE, ROLE_OF_THE_NODES, TAG_INSTANCES_LATER, TAG_WHAT_IS_MADE, ZONAL_SHIFTS,
};

/// How an action comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionOrigin {
    /// The controller calls it.
    Called,
    /// AWS wants it allowed for another one.
    Implied,
}

/// An action with what it is needed for.
#[derive(Debug)]
pub(super) struct AwsAction {
    /// Service and operation, such as `ec2:CreateFleet`.
    pub(super) name: &'static str,
    pub(super) origin: ActionOrigin,
    pub(super) need: ActionNeed,
    /// Statements that allow it, each on what it is scoped to.
    pub(super) scopes: &'static [&'static ActionScope],
    /// What the controller does with it.
    pub(super) purpose: &'static str,
}

macro_rules! actions {
    ($($name:literal $origin:ident $need:ident [$($scope:ident),+] => $purpose:literal;)+) => {
        &[$(AwsAction {
            name: $name,
            origin: ActionOrigin::$origin,
            need: ActionNeed::$need,
            scopes: &[$(&$scope),+],
            purpose: $purpose,
        }),+]
    };
}

/// All of them, in the order in which their statements are printed.
pub(super) static ACTIONS: &[AwsAction] = actions![
    "ec2:DescribeCapacityReservations" Called Always [LOOK] => "finds the capacity reservations of EC2NodeClasses";
    "ec2:DescribeImages" Called Always [LOOK] => "finds the images of EC2NodeClasses";
    "ec2:DescribeInstances" Called Always [LOOK] => "tells instances that run from those that are gone";
    "ec2:DescribeInstanceStatus" Called Always [LOOK] => "finds instances that EC2 holds to be sick";
    "ec2:DescribeInstanceTypeOfferings" Called Always [LOOK] => "tells which types a zone has";
    "ec2:DescribeInstanceTypes" Called Always [LOOK] => "tells what types are like; without it nothing starts";
    "ec2:DescribeLaunchTemplates" Called Always [LOOK] => "finds launch templates again, and those to clean up";
    "ec2:DescribePlacementGroups" Called Always [LOOK] => "finds the placement groups of EC2NodeClasses";
    "ec2:DescribeSecurityGroups" Called Always [LOOK] => "finds the security groups of EC2NodeClasses";
    "ec2:DescribeSpotPriceHistory" Called Always [LOOK] => "tells what spot instances cost";
    "ec2:DescribeSubnets" Called Always [LOOK] => "finds the subnets of EC2NodeClasses";
    "pricing:GetProducts" Called PriceList [LOOK_ELSEWHERE] => "tells what on-demand instances cost";
    "iam:ListInstanceProfiles" Called Profiles [LOOK_ELSEWHERE] => "finds instance profiles that nothing uses any more";
    "ssm:GetParameter" Called Always [PARAMETERS] => "tells the images behind an alias";
    "eks:DescribeCluster" Called Always [CLUSTER] => "tells what nodes need to join, where there is an EKS cluster";
    "arc-zonal-shift:GetManagedResource" Called Always [ZONAL_SHIFTS]
        => "tells zones that traffic was shifted away from, with settings.enableZonalShift";
    "ec2:RunInstances" Called Always [LAUNCH_FROM, LAUNCH_BY_OUR_TEMPLATES, MAKE_WHAT_CARRIES_THE_TAG]
        => "launches instances by a fleet, and tries by a dry run whether an EC2NodeClass can";
    "ec2:CreateFleet" Called Always [LAUNCH_FROM, LAUNCH_BY_OUR_TEMPLATES, MAKE_WHAT_CARRIES_THE_TAG]
        => "launches instances";
    "ec2:CreateLaunchTemplate" Called Always [MAKE_WHAT_CARRIES_THE_TAG] => "makes what a fleet launches instances by";
    "ec2:CreateTags" Called Always [TAG_WHAT_IS_MADE, TAG_INSTANCES_LATER]
        => "tags what is made, and instances with their NodeClaim once they are there";
    "ec2:TerminateInstances" Called Always [END_WHAT_IS_OURS] => "ends instances of nodes that go";
    "ec2:DeleteLaunchTemplate" Called Always [END_WHAT_IS_OURS] => "deletes launch templates that nothing uses any more";
    "ec2:RebootInstances" Called Reboots [END_WHAT_IS_OURS] => "reboots instances of sick nodes";
    "iam:PassRole" Implied Always [ROLE_OF_THE_NODES] => "gives instances the role of the nodes";
    "iam:GetInstanceProfile" Called Profiles [LOOK_AT_PROFILES] => "finds the instance profile of a role again";
    "iam:CreateInstanceProfile" Called Profiles [MAKE_PROFILES] => "makes an instance profile for a role";
    "iam:TagInstanceProfile" Implied Profiles [MAKE_PROFILES] => "tags instance profiles as they are made";
    "iam:AddRoleToInstanceProfile" Called Profiles [CHANGE_OUR_PROFILES] => "puts the role into its instance profile";
    "iam:RemoveRoleFromInstanceProfile" Called Profiles [CHANGE_OUR_PROFILES]
        => "empties an instance profile before it is deleted, or filled otherwise";
    "iam:DeleteInstanceProfile" Called Profiles [CHANGE_OUR_PROFILES]
        => "deletes instance profiles that nothing uses any more";
    "sqs:GetQueueUrl" Called Queue [QUEUE] => "finds the queue";
    "sqs:GetQueueAttributes" Called Queue [QUEUE] => "tells who may send to the queue";
    "sqs:ReceiveMessage" Called Queue [QUEUE] => "hears of interruptions";
    "sqs:DeleteMessage" Called Queue [QUEUE] => "takes what was heard off the queue";
];
