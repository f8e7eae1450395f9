//! Results of dry runs of a class, remembered for as long as it looks the same.
//!
//! Asks nobody. Answers to the cache and the conditions of Karpenter's `pkg/controllers/nodeclass/validation.go`.

use std::time::Duration;

use apis::Ec2NodeClass;
use apis::conditions::reason;
use jiff::{SignedDuration, Timestamp};

use super::{Outcome, PartCondition};
use crate::cache::{TtlCache, fingerprint};
use crate::hash::is_hash_annotation;
use crate::launch::DryRun;

/// How long EC2 is believed that it would launch.
const PASSED_TTL: SignedDuration = SignedDuration::from_mins(30);
/// How long a refusal stands, which somebody may be mending.
const REFUSED_TTL: SignedDuration = SignedDuration::from_mins(9);
/// Classes are looked at again so soon.
const LOOK: Duration = Duration::from_mins(10);
/// IAM takes some seconds to tell EC2 of a profile.
const PROFILE_DELAY: Duration = Duration::from_secs(5);

/// Remembers what EC2 said.
pub(crate) struct DryRuns {
    answers: TtlCache<String, DryRunAnswer>,
}

/// Answer of EC2 that is certain.
#[derive(Debug, Clone)]
enum DryRunAnswer {
    Passed,
    Refused {
        reason: &'static str,
        message: String,
    },
}

impl Default for DryRuns {
    fn default() -> Self {
        Self {
            answers: TtlCache::new(PASSED_TTL),
        }
    }
}

impl DryRuns {
    /// What was said of a class that looks like this.
    pub(crate) fn remembered(&self, node_class: &Ec2NodeClass, now: Timestamp) -> Option<Outcome> {
        let answer = self.answers.get(&key(node_class), now)?;
        Some(answer.outcome())
    }

    /// Takes in what EC2 says.
    pub(crate) fn outcome(
        &self,
        node_class: &Ec2NodeClass,
        dry_run: DryRun,
        now: Timestamp,
    ) -> Outcome {
        let (answer, ttl) = match dry_run {
            DryRun::Passed => (DryRunAnswer::Passed, PASSED_TTL),
            DryRun::Refused { reason, message } => {
                (DryRunAnswer::Refused { reason, message }, REFUSED_TTL)
            }
            DryRun::ProfileUnknown => return unknown_profile(node_class),
            DryRun::Unasked(error) => return Outcome::unasked(error),
        };
        let outcome = answer.outcome();
        self.answers.insert_for(key(node_class), answer, now, ttl);
        outcome
    }
}

impl DryRunAnswer {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Passed => Outcome::ready(LOOK),
            Self::Refused { reason, message } => Outcome::not_ready(reason, message.clone(), LOOK),
        }
    }
}

/// A profile that was made for the class will come; one that the class names may be misspelt.
fn unknown_profile(node_class: &Ec2NodeClass) -> Outcome {
    let named = node_class.spec.instance_profile.as_ref();
    let verdict = match named {
        Some(name) => PartCondition::False {
            reason: reason::INSTANCE_PROFILE_NOT_FOUND,
            message: format!(
                "EC2 does not know the instance profile {name:?} of spec.instanceProfile"
            ),
        },
        None => PartCondition::Unknown {
            reason: reason::INSTANCE_PROFILE_NOT_FOUND,
            message: "IAM has not told EC2 of the instance profile yet".to_owned(),
        },
    };
    Outcome {
        verdict,
        requeue_after: Some(PROFILE_DELAY),
    }
}

/// A key that classes share of which launches would look alike, in whatever order things were found.
fn key(node_class: &Ec2NodeClass) -> String {
    let name = node_class.metadata.name.as_deref().unwrap_or_default();
    let status = node_class.status.clone().unwrap_or_default();
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids.join(" ")
    };
    let annotations = node_class.metadata.annotations.iter().flatten();
    let annotations = annotations.filter(|(key, _)| !is_hash_annotation(key));
    let parts = [
        sorted(status.subnets.into_iter().map(|it| it.id).collect()),
        sorted(status.security_groups.into_iter().map(|it| it.id).collect()),
        sorted(status.amis.into_iter().map(|it| it.id).collect()),
        status.instance_profile.unwrap_or_default(),
        format!("{:?}", node_class.spec),
        sorted(
            annotations
                .map(|(key, value)| format!("{key}={value}"))
                .collect(),
        ),
    ];
    format!("{name}:{}", fingerprint(parts.iter().map(String::as_str)))
}
