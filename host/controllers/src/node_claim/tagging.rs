//! Tags a registered claim's instance with the names of claim and node, once.
//!
//! One instance a second, in the order in which they came: what tags draws on the same allowance of the account as what
//! launches. Answers to the AWS provider's `pkg/controllers/nodeclaim/tagging/controller.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apis::ObjectKey;
use apis::labels;
use cloudprovider::{CloudProvider, CloudProviderError};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use crate::node_claim::NodeClaimExt;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::{Action, Reconciler};
use crate::shell::sync::lock;

/// Between two instances.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// What says that the instance of a claim bears its tags.
const TAGGED: [&str; 2] = [
    labels::INSTANCE_TAGGED_ANNOTATION,
    labels::CLUSTER_NAME_TAGGED_ANNOTATION,
];

/// The controller.
pub(crate) struct Tagging {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    line: Mutex<TagTurns>,
}

/// Whose turn it is when.
#[derive(Debug, Default)]
struct TagTurns {
    /// The next that nobody has.
    free_at: Timestamp,
    turns: BTreeMap<ObjectKey, Timestamp>,
}

impl TagTurns {
    /// How long the claim still waits; nothing when it is its turn.
    fn wait(&mut self, key: &ObjectKey, now: Timestamp) -> Option<Duration> {
        let Self { free_at, turns } = self;
        let turn = *turns.entry(key.clone()).or_insert_with(|| {
            let turn = now.max(*free_at);
            *free_at = turn.saturating_add(PAUSE).unwrap_or(turn);
            turn
        });
        if turn > now {
            return Some(turn.duration_since(now).unsigned_abs());
        }
        turns.remove(key);
        None
    }
}

impl Tagging {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self {
            shell,
            provider,
            line: Mutex::default(),
        }
    }

    fn line<T>(&self, ask: impl FnOnce(&mut TagTurns) -> T) -> T {
        ask(&mut lock(&self.line))
    }
}

#[async_trait::async_trait]
impl Reconciler for Tagging {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let facts = self.shell.model.claim_facts(&key.name);
        let is_due = facts.is_some_and(|claim| {
            claim.deleted_at.is_none()
                && !claim.node_name.is_empty()
                && !TAGGED.iter().all(|it| claim.annotations.contains_key(*it))
        });
        if !is_due {
            self.line(|it| it.turns.remove(key));
            return Ok(Action::Await);
        }
        if let Some(wait) = self.line(|it| it.wait(key, self.shell.now())) {
            return Ok(Action::RequeueAfter(wait));
        }
        let observed = self.shell.model.node_claim(&key.name).await?;
        let Some(claim) = observed.filter(|claim| claim.provider_id().is_some()) else {
            return Ok(Action::Await);
        };
        match self.provider.tag(&claim).await {
            Ok(()) => {}
            Err(CloudProviderError::NotFound(_)) => return Ok(Action::Await),
            Err(error) => return Err(error.into()),
        }
        let mut after = claim.as_ref().clone();
        let annotations = after.annotations_mut();
        for annotation in TAGGED {
            annotations.insert(annotation.to_owned(), "true".to_owned());
        }
        self.shell.writer.write_claim(&claim, &after).await?;
        Ok(Action::Await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_has_its_second_and_keeps_its_place() {
        let key = |name: &str| ObjectKey::new("", name);
        let after = |seconds: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let mut line = TagTurns::default();
        let seconds = |wait: Option<Duration>| wait.map(|it| it.as_secs());
        assert_eq!(seconds(line.wait(&key("a"), after(0))), None);
        assert_eq!(seconds(line.wait(&key("b"), after(0))), Some(1));
        assert_eq!(seconds(line.wait(&key("c"), after(0))), Some(2));
        assert_eq!(seconds(line.wait(&key("b"), after(0))), Some(1));
        assert_eq!(seconds(line.wait(&key("c"), after(2))), None);
        assert_eq!(seconds(line.wait(&key("b"), after(2))), None);
        assert_eq!(seconds(line.wait(&key("c"), after(2))), Some(1));
        assert_eq!(seconds(line.wait(&key("d"), after(60))), None);
    }
}
