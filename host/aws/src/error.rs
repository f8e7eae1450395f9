//! Meaning of AWS' error codes to the provider.
//!
//! Decides reactions from codes and texts; calls nothing. Answers to Karpenter's `pkg/errors/errors.go`
//! and `pkg/cloudprovider/cloudprovider.go` (reasons of failed launches).

use apis::conditions::reason;
use aws_smithy_types::error::operation::BuildError;
use cloudprovider::{CloudProviderError, RebootError};

use crate::seam::{ApiError, ErrorFault};

const NOT_FOUND: [&str; 7] = [
    "InvalidCapacityReservationId.NotFound",
    "InvalidInstanceID.NotFound",
    "InvalidLaunchTemplateName.NotFoundException",
    "InvalidLaunchTemplateId.NotFound",
    "QueueDoesNotExist",
    "NoSuchEntity",
    "ParameterNotFound",
];

/// So many calls were made that this one was not looked at.
const THROTTLED: [&str; 2] = ["RequestLimitExceeded", "Throttling"];

/// The account may not do it.
const FORBIDDEN: [&str; 4] = [
    "UnauthorizedOperation",
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
];

/// EC2's word for a dry run that would have been done.
const DRY_RUN: &str = "DryRunOperation";

const UNFULFILLABLE: [&str; 8] = [
    "InsufficientInstanceCapacity",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
    "UnfulfillableCapacity",
    "Unsupported",
    SUBNET_FULL,
    "MaxFleetCountExceeded",
    "ReservationCapacityExceeded",
];

/// The subnet of the launch has no free address left.
pub(crate) const SUBNET_FULL: &str = "InsufficientFreeAddressesInSubnet";
/// The account lacks the service-linked role of spot.
pub(crate) const SPOT_ROLE_MISSING: &str = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";
/// The fleet named a launch template that is gone.
pub(crate) const LAUNCH_TEMPLATE_NAME_NOT_FOUND: &str =
    "InvalidLaunchTemplateName.NotFoundException";
/// The token was used before with another request.
pub(crate) const TOKEN_REUSED: &str = "IdempotentParameterMismatch";

/// What a piece of a failed launch's text means: text, reason, sentence.
const RULES: [(&str, &str, &str); 13] = [
    (
        "iamInstanceProfile.name is invalid",
        "InstanceProfileNameInvalid",
        "the instance profile name is invalid",
    ),
    (
        "InvalidLaunchTemplateId.NotFound",
        "LaunchTemplateNotFound",
        "the launch template is gone",
    ),
    (
        "User data is limited to",
        "UserDataSizeLimitExceeded",
        "the user data is too large",
    ),
    (
        "InvalidAMIID.Malformed",
        "InvalidAMIID",
        "the image id is malformed",
    ),
    (
        "InvalidAMIID.NotFound",
        reason::AMI_NOT_FOUND,
        "the image does not exist",
    ),
    (
        "RequestLimitExceeded",
        "RequestLimitExceeded",
        "EC2 throttles requests",
    ),
    ("InternalError", "InternalError", "EC2 failed internally"),
    (
        "not eligible for Free Tier",
        "FreeTierIneligible",
        "the type is not eligible for the free tier",
    ),
    (
        "MaxFleetCountExceeded",
        "FleetQuotaExceeded",
        "the quota of fleets is used up",
    ),
    (
        "PendingVerification",
        "AccountPendingVerification",
        "the account awaits verification",
    ),
    (
        "MaxSpotInstanceCountExceeded",
        "SpotQuotaExceeded",
        "the quota of spot instances is used up",
    ),
    (
        "VcpuLimitExceeded",
        "VCPULimitExceeded",
        "the quota of vCPUs is used up",
    ),
    (SUBNET_FULL, SUBNET_FULL, "the subnet has no free addresses"),
];

/// Whether the call itself failed, whatever it asked for: each part of it would fail alike.
pub(crate) fn is_of_the_call(error: &ApiError) -> bool {
    error.fault == ErrorFault::Cloud || THROTTLED.contains(&error.code.as_str())
}

/// Whether the account may not do what was asked.
pub(crate) fn is_denied(error: &ApiError) -> bool {
    FORBIDDEN.contains(&error.code.as_str())
}

/// Whether it would have been done, had it not been a dry run.
pub(crate) fn is_dry_run(error: &ApiError) -> bool {
    error.code == DRY_RUN
}

/// Whether the role lacks the permission for what was asked.
pub(crate) fn is_unauthorized(error: &ApiError) -> bool {
    error.code == "UnauthorizedOperation"
}

/// Whether EC2 does not know the instance profile of the launch; it hears of new ones late.
pub(crate) fn is_profile_unknown(error: &ApiError) -> bool {
    error.code == "InvalidParameterValue"
        && error.message.contains("Invalid IAM Instance Profile name")
}

/// Whether the user data of the launch are too large.
pub(crate) fn is_user_data_too_large(error: &ApiError) -> bool {
    error.code == "InvalidUserData.Malformed" && error.message.contains("User data is limited to")
}

/// What an error means for launches, and its own words.
pub(crate) fn explained(error: &ApiError) -> String {
    let text = error.to_string();
    format!("{}, {text}", classify(&text).1)
}

/// Whether the object asked for does not exist.
pub(crate) fn is_not_found(error: &ApiError) -> bool {
    NOT_FOUND.contains(&error.code.as_str())
}

/// Whether the object to be made exists already.
pub(crate) fn is_already_exists(error: &ApiError) -> bool {
    error.code == "EntityAlreadyExists"
}

/// Whether a fleet error says that this offering cannot be had now.
pub(crate) fn is_unfulfillable(code: &str) -> bool {
    UNFULFILLABLE.contains(&code)
}

/// The failure of a reboot: what asking again cannot change is an end of it.
pub(crate) fn reboot_error(context: &str, error: &ApiError) -> RebootError {
    let is_final = is_not_found(error) || is_denied(error);
    let text = format!("{context}: {error}");
    if is_final {
        RebootError::Terminal(text)
    } else {
        RebootError::Other(text)
    }
}

/// The failure of a call of AWS, but for launches and reboots: their callers have more to tell apart.
pub(crate) fn call_failure(context: &str, error: &ApiError) -> CloudProviderError {
    if is_not_found(error) {
        CloudProviderError::NotFound(format!("{context}, {error}"))
    } else if is_denied(error) {
        CloudProviderError::Other(format!(
            "{context}, which the controller's role may not (`mortise iam` prints what it must be allowed), {error}"
        ))
    } else {
        CloudProviderError::Other(format!("{context}, {error}"))
    }
}

/// The text of a refusal without what IAM has to say in secret, which is another with every request.
pub(crate) fn without_encoded_part(text: &str) -> &str {
    let end = text.find(" Encoded authorization failure message");
    &text[..end.unwrap_or(text.len())]
}

/// A request that the SDK refuses to build.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
pub(crate) fn invalid(error: BuildError) -> CloudProviderError {
    CloudProviderError::Other(error.to_string())
}

/// A request that the SDK refuses to build, where the caller has to tell kinds of errors apart.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
pub(crate) fn unbuilt(error: BuildError) -> ApiError {
    ApiError::client("ValidationError", error.to_string())
}

/// The failure of a launch, with the reason that its condition shows.
pub(crate) fn launch_failure(text: &str) -> CloudProviderError {
    let (reason, message) = classify(text);
    CloudProviderError::Create {
        reason: reason.to_owned(),
        message: format!("{message}, {text}"),
    }
}

/// Reason and sentence for a failed launch. The order matters: the first rule that fits wins.
fn classify(text: &str) -> (&'static str, &'static str) {
    let has = |needle: &str| text.contains(needle);
    if has(SPOT_ROLE_MISSING) {
        return (
            "SpotSLRCreationFailed",
            "the account has no service-linked role for spot and may not create it",
        );
    }
    if has("UnauthorizedOperation") || has("AccessDenied") || has("AuthFailure") {
        return unauthorized(text);
    }
    if has("InvalidParameter") && has("belong to different networks") {
        return (
            "SecurityGroupSubnetVPCMismatch",
            "security groups and subnets lie in different VPCs",
        );
    }
    let rule = RULES.iter().find(|(needle, ..)| has(needle));
    rule.map_or(
        (reason::LAUNCH_FAILED, "the launch failed"),
        |(_, reason, message)| (*reason, *message),
    )
}

fn unauthorized(text: &str) -> (&'static str, &'static str) {
    if text.contains("Not authorized for images") {
        return (
            "AMIAuthorizationFailure",
            "the account may not use the image",
        );
    }
    if text.contains("permissions boundary") || text.contains("permission boundary") {
        return ("Unauthorized", "a permissions boundary forbids the launch");
    }
    if text.contains("service control policy") {
        return (
            "Unauthorized",
            "a service control policy forbids the launch",
        );
    }
    ("Unauthorized", "the controller is not allowed to launch")
}

#[cfg(test)]
mod tests {
    use super::*;

    type IsOfClass = fn(&ApiError) -> bool;

    /// Every word that a row of the table may have, with the function that it stands for.
    const CLASSES: [(&str, IsOfClass); 8] = [
        ("ice", |error| is_unfulfillable(&error.code)),
        ("missing", is_not_found),
        ("exists", is_already_exists),
        ("denied", is_denied),
        ("unauthorized", is_unauthorized),
        ("dry-run", is_dry_run),
        ("profile-unknown", is_profile_unknown),
        ("user-data-too-large", is_user_data_too_large),
    ];

    #[test]
    fn every_documented_code_is_what_the_table_says() {
        let table = include_str!("../testdata/error-codes.csv");
        let mut codes: Vec<&str> = Vec::new();
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split(';').collect();
            let [code, text, reason, classes] = fields[..] else {
                panic!("{line}");
            };
            let error = ApiError::client(code, text);
            assert_eq!(classify(&error.to_string()).0, reason, "{line}");
            let found = CLASSES.iter().filter(|(_, is_one)| is_one(&error));
            let found: Vec<&str> = found.map(|(class, _)| *class).collect();
            assert_eq!(found.join(" "), classes, "{line}");
            let is_final = found.contains(&"missing") || found.contains(&"denied");
            let reboot = reboot_error("rebooting", &error);
            assert_eq!(
                matches!(reboot, RebootError::Terminal(_)),
                is_final,
                "{line}"
            );
            codes.push(code);
        }
        let lists = [&NOT_FOUND[..], &FORBIDDEN, &UNFULFILLABLE].concat();
        let is_listed = |code: &&str| codes.contains(code);
        assert!(lists.iter().all(is_listed), "the table lacks a code");
    }

    #[test]
    fn a_refusal_names_the_way_out_and_is_the_same_with_every_request() {
        let refusal = |secret: &str| {
            let text = format!(
                "You are not authorized to perform: ec2:CreateFleet. Encoded authorization failure message: {secret}"
            );
            let error = ApiError::client("UnauthorizedOperation", text);
            let told = call_failure("launching", &error).to_string();
            without_encoded_part(&told).to_owned()
        };
        let told = refusal("abc");
        assert!(told.contains("mortise iam"), "{told}");
        assert!(told.ends_with("ec2:CreateFleet."), "{told}");
        assert_eq!(told, refusal("xyz"));
    }

    #[test]
    fn not_found_codes_are_told_from_other_refusals() {
        let gone = ApiError::client("InvalidInstanceID.NotFound", "i-1");
        assert!(call_failure("terminating", &gone).is_not_found());
        let refused = ApiError::client("UnauthorizedOperation", "no");
        assert!(!call_failure("terminating", &refused).is_not_found());
    }
}
