//! Whether nodes may be made from a class now, by what its conditions say.
//!
//! The controllers ask before they look for offerings, a provider before it launches. Answers to how the AWS provider's
//! `pkg/cloudprovider/cloudprovider.go` (Create) reads the class's Ready.

use apis::Ec2NodeClass;
use apis::conditions::{self, READY, Status, reason};

use crate::CloudProviderError;

/// A class that is faulty ends the claim; for one that nobody has looked at yet, or not since it changed, the claim
/// waits.
pub fn check_ready(node_class: &Ec2NodeClass) -> Result<(), CloudProviderError> {
    let name = node_class.metadata.name.as_deref().unwrap_or_default();
    let conditions = node_class
        .status
        .as_ref()
        .map(|it| it.conditions.as_slice());
    let ready = conditions::get(conditions.unwrap_or_default(), READY).filter(|ready| {
        ready
            .observed_generation
            .is_none_or(|seen| Some(seen) == node_class.metadata.generation)
    });
    match ready {
        Some(ready) if ready.status == Status::True.as_str() => Ok(()),
        Some(ready) if ready.status == Status::False.as_str() => {
            Err(CloudProviderError::NodeClassNotReady(format!(
                "{name} is not ready: {}",
                ready.message
            )))
        }
        Some(_) | None => Err(CloudProviderError::NotYet {
            reason: reason::NODE_CLASS_READINESS_UNKNOWN.to_owned(),
            message: format!("whether {name} is ready is not known yet"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use apis::Ec2NodeClassStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

    use super::*;

    /// A class of the second generation whose Ready was written of the generation given.
    fn class(status: Status, generation: Option<i64>) -> Ec2NodeClass {
        let ready = Condition {
            type_: READY.to_owned(),
            status: status.as_str().to_owned(),
            reason: "SubnetsNotFound".to_owned(),
            message: "no subnets".to_owned(),
            observed_generation: generation,
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        };
        let mut class = Ec2NodeClass::default();
        class.metadata.generation = Some(2);
        class.status = Some(Ec2NodeClassStatus {
            conditions: vec![ready],
            ..Ec2NodeClassStatus::default()
        });
        class
    }

    #[test]
    fn only_what_was_said_of_the_class_as_it_is_now_ends_a_claim() {
        let cases = [
            (class(Status::True, Some(2)), "ready"),
            (class(Status::True, None), "ready"),
            (class(Status::True, Some(1)), "waits"),
            (class(Status::False, Some(2)), "ends"),
            (class(Status::False, Some(1)), "waits"),
            (class(Status::Unknown, Some(2)), "waits"),
            (Ec2NodeClass::default(), "waits"),
        ];
        for (class, want) in cases {
            let came = match check_ready(&class) {
                Ok(()) => "ready",
                Err(CloudProviderError::NodeClassNotReady(_)) => "ends",
                Err(CloudProviderError::NotYet { .. }) => "waits",
                Err(error) => panic!("{error:?}"),
            };
            assert_eq!(came, want, "{:?}", class.status);
        }
    }
}
