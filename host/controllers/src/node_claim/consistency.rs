//! Checks that an initialized node is about as large as its claim was told it would be.
//!
//! Answers to `pkg/controllers/nodeclaim/consistency/controller.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned, Status, reason};
use state::StateNode;

use crate::node_claim::NodeClaimExt;
use crate::node_claim::entries::ClaimEntry;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::{Action, Reconciler};

const PERIOD: Action = Action::RequeueAfter(Duration::from_mins(10));
/// A node that has less than this share of what was expected is inconsistent.
const SHARE_MIN: f64 = 0.9;

/// The controller.
pub(crate) struct Consistency {
    pub(crate) shell: Arc<Shell>,
}

/// One sentence for each resource of which the node has too little.
fn decide(node: &StateNode) -> Vec<String> {
    let (Some(claim), Some(facts)) = (&node.claim, &node.node) else {
        return Vec::new();
    };
    let short = |(name, requested): (&str, i64)| {
        let (expected, found) = (claim.capacity.get(name), facts.capacity.get(name));
        if requested == 0 || expected == 0 {
            return None;
        }
        let share = found as f64 / expected as f64;
        (share < SHARE_MIN).then(|| {
            let expected = apis::quantity::format_millis(expected);
            let found = apis::quantity::format_millis(found);
            format!(
                "expected {expected} of resource {name}, but found {found} ({:.1}% of expected)",
                share * 100.0
            )
        })
    };
    claim.requests.iter().filter_map(short).collect()
}

#[async_trait::async_trait]
impl Reconciler for Consistency {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let observed = self
            .shell
            .model
            .snapshot()
            .node_of_claim(&key.name)
            .cloned();
        let Some(node) = observed.filter(|node| {
            node.is_initialized() && node.node.is_some() && !node.is_marked_for_deletion()
        }) else {
            return Ok(Action::Await);
        };
        let issues = decide(&node);
        let Some(claim) = self.shell.model.node_claim(&key.name).await? else {
            return Ok(Action::Await);
        };
        let now = self.shell.now();
        let after = if issues.is_empty() {
            claim.with_true(conditions::CONSISTENT_STATE_FOUND, now)
        } else {
            for issue in &issues {
                let entry = ClaimEntry::Inconsistent { issue };
                self.shell.journal.write(claim.as_ref(), &entry);
            }
            let message = issues.join(", ");
            let (kind, reason) = (
                conditions::CONSISTENT_STATE_FOUND,
                reason::CONSISTENCY_CHECK_FAILED,
            );
            claim.with_condition(kind, Status::False, reason, &message, now)
        };
        if claim.conditions() != after.conditions() {
            self.shell.writer.write_claim_status(&claim, &after).await?;
        }
        Ok(PERIOD)
    }
}
