//! How far the launch of a claim's instance got, in words that outlive the process.
//!
//! The controllers keep them on the NodeClaim, the provider writes them at the instance: whoever comes after a crash
//! finds one by the other. Nothing here asks a cloud or an API server.

use std::fmt::Debug;
use std::sync::Mutex;

use apis::{NodeClaim, ProviderId, labels};
use jiff::SignedDuration;

use crate::AttemptError;
use locks::lock;

/// The cloud lists an instance this long after its launch at the latest: from then on "not found" means that it is
/// gone.
pub const LISTED_AFTER: SignedDuration = SignedDuration::from_mins(2);

/// One try to launch the instance of a claim; several claims may share the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchAttempt {
    /// Counts the tries of the claim, from zero.
    pub number: u32,
    /// Under which the cloud is asked, and by which what it launched is found again.
    pub token: String,
}

impl LaunchAttempt {
    /// The one that the claim bears, as far as it can be read.
    pub fn of(claim: &NodeClaim) -> Option<Self> {
        let annotations = claim.metadata.annotations.as_ref()?;
        let (number, token) = annotations
            .get(labels::LAUNCH_ANNOTATION)?
            .split_once('/')?;
        Some(Self {
            number: number.parse().ok()?,
            token: (!token.is_empty()).then(|| token.to_owned())?,
        })
    }

    /// The value of [`labels::LAUNCH_ANNOTATION`].
    pub fn to_annotation(&self) -> String {
        format!("{}/{}", self.number, self.token)
    }
}

/// The claim as the record of its own launch.
#[async_trait::async_trait]
pub trait AttemptRecord: Debug + Send + Sync {
    /// Writes an attempt on the claim. The provider asks the cloud for nothing before that is done, and for nothing at
    /// all when it fails.
    async fn begin(&self, attempt: &LaunchAttempt) -> Result<(), AttemptError>;

    /// Whether a claim, this or another, already says that the instance is its own.
    fn is_owned(&self, provider_id: &ProviderId) -> bool;
}

/// Keeps the attempt in memory only: for launches that nobody takes up after this process, as in tests.
#[derive(Debug, Default)]
pub struct FleetingRecord(Mutex<Option<LaunchAttempt>>);

impl FleetingRecord {
    /// The attempt that was begun last.
    pub fn attempt(&self) -> Option<LaunchAttempt> {
        lock(&self.0).clone()
    }
}

#[async_trait::async_trait]
impl AttemptRecord for FleetingRecord {
    async fn begin(&self, attempt: &LaunchAttempt) -> Result<(), AttemptError> {
        *lock(&self.0) = Some(attempt.clone());
        Ok(())
    }

    fn is_owned(&self, _provider_id: &ProviderId) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_read_as_it_was_written() {
        let attempt = LaunchAttempt {
            number: 3,
            token: "uid-1-0".to_owned(),
        };
        let mut claim = NodeClaim::default();
        assert_eq!(LaunchAttempt::of(&claim), None);
        let cases = [
            (attempt.to_annotation(), Some(attempt)),
            ("3/".to_owned(), None),
            ("uid-1-0".to_owned(), None),
            ("-1/uid".to_owned(), None),
        ];
        for (text, want) in cases {
            let annotations = [(labels::LAUNCH_ANNOTATION.to_owned(), text.clone())];
            claim.metadata.annotations = Some(annotations.into());
            assert_eq!(LaunchAttempt::of(&claim), want, "{text}");
        }
    }
}
