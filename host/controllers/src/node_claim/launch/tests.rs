//! What the answer of the cloud means for a claim, case by case.

use super::*;

#[test]
fn a_claim_goes_where_it_can_never_be_launched_and_waits_otherwise() {
    let given_up = |cause| LaunchVerdict::Delete {
        cause,
        message: "m".to_owned(),
    };
    let retry = |reason: &str, message: &str, error: &CloudProviderError| LaunchVerdict::Retry {
        reason: reason.to_owned(),
        message: message.to_owned(),
        error: error.clone(),
    };
    let m = || "m".to_owned();
    let create = CloudProviderError::Create {
        reason: "SubnetsFull".to_owned(),
        message: m(),
    };
    let early = CloudProviderError::NotYet {
        reason: reason::NODE_CLASS_READINESS_UNKNOWN.to_owned(),
        message: m(),
    };
    let (gone, other) = (
        CloudProviderError::NotFound(m()),
        CloudProviderError::Other(m()),
    );
    let cases = [
        (
            CloudProviderError::InsufficientCapacity(m()),
            given_up(LaunchFailure::InsufficientCapacity),
        ),
        (
            CloudProviderError::NodeClassNotReady(m()),
            given_up(LaunchFailure::NodeClassNotReady),
        ),
        (create.clone(), retry("SubnetsFull", "m", &create)),
        (
            early.clone(),
            retry(reason::NODE_CLASS_READINESS_UNKNOWN, "m", &early),
        ),
        (
            gone.clone(),
            retry(reason::LAUNCH_FAILED, "nodeclaim not found, m", &gone),
        ),
        (other.clone(), retry(reason::LAUNCH_FAILED, "m", &other)),
        (CloudProviderError::Lost("m"), LaunchVerdict::Drop("m")),
    ];
    for (error, expected) in cases {
        assert_eq!(decide(Err(error)), expected);
    }
}

#[test]
fn what_the_cloud_says_at_length_is_cut_in_the_condition() {
    let error = CloudProviderError::Other("x".repeat(2 * MESSAGE_BYTES_MAX));
    let LaunchVerdict::Retry { message, .. } = decide(Err(error)) else {
        panic!("a launch that failed is tried again");
    };
    assert!(
        message.starts_with("xxx") && message.len() <= MESSAGE_BYTES_MAX + 3,
        "{message}"
    );
}
