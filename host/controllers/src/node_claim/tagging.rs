//! Tags a registered claim's instance with the names of claim and node, once.
//!
//! One instance a second, in the order in which they came: what tags draws on the same allowance of the account as what
//! launches. Answers to the AWS provider's `pkg/controllers/nodeclaim/tagging/controller.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apis::{NodeClaim, ObjectKey, labels};
use cloudprovider::{CloudProvider, CloudProviderError};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use locks::lock;
use state::facts::ClaimFacts;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

/// Pause between two instances.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// Annotations which say that the instance of a claim bears its tags.
const TAGGED: [&str; 2] = [
    labels::INSTANCE_TAGGED_ANNOTATION,
    labels::CLUSTER_NAME_TAGGED_ANNOTATION,
];

/// Controller of the tags of instances: one claim a reconcile.
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

impl Reconciler for Tagging {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let facts = self.shell.model.claim_facts(&key.name);
        if !facts.is_some_and(|claim| is_due(&claim)) {
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
        let after = tagged(&claim);
        self.shell.writer.write_claim(&claim, &after).await?;
        Ok(Action::Await)
    }
}

/// Whether the claim has a node, and its instance lacks tags.
fn is_due(claim: &ClaimFacts) -> bool {
    claim.deleted_at.is_none()
        && claim.node_name.is_some()
        && !TAGGED.iter().all(|it| claim.annotations.contains_key(*it))
}

/// The claim, which says that its instance has all tags.
fn tagged(claim: &NodeClaim) -> NodeClaim {
    let mut after = claim.clone();
    let annotations = after.annotations_mut();
    for annotation in TAGGED {
        annotations.insert(annotation.to_owned(), "true".to_owned());
    }
    after
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::node_claim::tests::claim_with;

    #[test]
    fn a_claim_with_a_node_is_tagged_once() {
        let claim = |deleted_at: Value, node: &str, annotations: Value| {
            claim_with(&json!({
                "/metadata/deletionTimestamp": deleted_at, "/status/nodeName": node,
                "/metadata/annotations": annotations,
            }))
        };
        let is_due = |claim: &NodeClaim| is_due(&ClaimFacts::parse(claim));
        let half = json!({"karpenter.k8s.aws/tagged": "true"});
        let cases = [
            (claim(json!(null), "n", json!({})), true),
            (claim(json!(null), "n", half), true),
            (claim(json!(null), "", json!({})), false),
            (claim(json!("2026-01-01T00:00:00Z"), "n", json!({})), false),
        ];
        for (claim, expected) in cases {
            assert_eq!(is_due(&claim), expected, "{:?}", claim.metadata);
            assert!(!is_due(&tagged(&claim)));
        }
    }

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
