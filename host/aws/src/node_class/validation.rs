//! Whether a class makes sense, beyond what its schema checks.
//!
//! Pure: judges the object and the conditions of its parts. Answers to Karpenter's
//! `pkg/controllers/nodeclass/validation.go`.

use std::time::Duration;

use apis::conditions::{
    AMIS_READY, INSTANCE_PROFILE_READY, SECURITY_GROUPS_READY, SUBNETS_READY, is_false, is_true,
    reason,
};
use apis::{AmiFamily, Ec2NodeClass, Ec2NodeClassSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Outcome, PartCondition};
use crate::ami_family::features::features;
use crate::kubelet::Kubelet;
use crate::kubelet::expressions::KubeletExpressions;
use crate::options::AwsOptions;
use crate::tags::restricted_tag;

/// Reason when AL2023 nodes cannot be told the service CIDR.
const CLUSTER_CIDR_RESOLUTION_FAILED: &str = "ClusterCIDRResolutionFailed";
/// Reason when an expression makes no sense on any machine.
const KUBELET_EXPRESSION_INVALID: &str = "KubeletExpressionInvalid";
/// Reason when kubelet values are expressions and those are switched off.
const KUBELET_EXPRESSIONS_DISABLED: &str = "KubeletExpressionsDisabled";
/// A class is looked at again so soon where what is missing lies outside it.
const DEPENDENCIES_POLL: Duration = Duration::from_mins(10);
/// Parts without which a validation says nothing.
const DEPENDENCIES: [&str; 4] = [
    AMIS_READY,
    INSTANCE_PROFILE_READY,
    SECURITY_GROUPS_READY,
    SUBNETS_READY,
];

/// The first thing that is wrong, if anything is.
pub(super) fn fault(
    node_class: &Ec2NodeClass,
    conditions: &[Condition],
    options: &AwsOptions,
) -> Option<Outcome> {
    let family = node_class.ami_family();
    if family == AmiFamily::Al2023 && options.cluster_cidr.is_none() {
        let message = "the range of service addresses is not known, and AL2023 needs it: let the controller's role do \
                       eks:DescribeCluster, or its service account get servicecidrs";
        return Some(Outcome::not_ready(
            CLUSTER_CIDR_RESOLUTION_FAILED,
            message,
            DEPENDENCIES_POLL,
        ));
    }
    if let Some(outcome) = kubelet(&node_class.spec, family, options) {
        return Some(outcome);
    }
    if let Some(message) = block_devices(&node_class.spec) {
        return Some(Outcome::wrong("InvalidBlockDeviceMapping", message));
    }
    if let Some(outcome) = dependencies(conditions) {
        return Some(outcome);
    }
    let key = restricted_tag(&node_class.spec.tags)?;
    let message = format!("spec.tags: the key {key:?} is reserved");
    Some(Outcome::wrong(reason::TAG_VALIDATION_FAILED, message))
}

fn kubelet(spec: &Ec2NodeClassSpec, family: AmiFamily, options: &AwsOptions) -> Option<Outcome> {
    let (kubelet, errors) = Kubelet::parse(&spec.kubelet);
    if !errors.is_empty() {
        let message = errors.join("; ");
        return Some(Outcome::wrong(
            reason::INVALID_KUBELET_CONFIGURATION,
            message,
        ));
    }
    if !kubelet.expressions.is_empty() && !options.aws_feature_gates.node_class_cel {
        let paths = kubelet.expressions.iter().map(|it| it.path.as_str());
        let message = format!(
            "spec.kubelet: {} hold expressions, which need the feature gate NodeClassCEL",
            paths.collect::<Vec<_>>().join(", ")
        );
        return Some(Outcome::wrong(KUBELET_EXPRESSIONS_DISABLED, message));
    }
    if let Err(message) = KubeletExpressions::read(&kubelet.expressions) {
        return Some(Outcome::wrong(KUBELET_EXPRESSION_INVALID, message));
    }
    let unsupported = kubelet.unsupported(features(family));
    if unsupported.is_empty() {
        return None;
    }
    let message = format!(
        "spec.kubelet: {} cannot apply {}",
        family.as_str(),
        unsupported.join(", ")
    );
    Some(Outcome::wrong(
        reason::UNSUPPORTED_KUBELET_CONFIGURATION,
        message,
    ))
}

/// The schema lets mappings through that no launch template can carry.
fn block_devices(spec: &Ec2NodeClassSpec) -> Option<String> {
    spec.block_device_mappings
        .iter()
        .enumerate()
        .find_map(|(index, mapping)| {
            let missing = match (&mapping.device_name, &mapping.ebs) {
                (None, _) => "deviceName",
                (Some(_), None) => "ebs",
                (Some(_), Some(_)) => return None,
            };
            Some(format!(
                "spec.blockDeviceMappings[{index}]: {missing} is missing"
            ))
        })
}

fn dependencies(conditions: &[Condition]) -> Option<Outcome> {
    let not_ready: Vec<&str> = DEPENDENCIES
        .into_iter()
        .filter(|dependency| !is_true(conditions, dependency))
        .collect();
    if not_ready.is_empty() {
        return None;
    }
    let message = format!("awaiting {}", not_ready.join(", "));
    let reason = reason::DEPENDENCIES_NOT_READY;
    let has_failed = not_ready
        .iter()
        .any(|dependency| is_false(conditions, dependency));
    let verdict = if has_failed {
        PartCondition::False { reason, message }
    } else {
        PartCondition::Unknown { reason, message }
    };
    Some(Outcome {
        verdict,
        requeue_after: Some(DEPENDENCIES_POLL),
    })
}
