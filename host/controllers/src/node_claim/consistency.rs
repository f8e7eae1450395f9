//! Checks that an initialized node is about as large as its claim was told it would be.
//!
//! It says so on the claim and does nothing about it. Answers to `pkg/controllers/nodeclaim/consistency/controller.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::conditions::{self, ConditionUpdate, Conditioned, Status, reason};
use apis::{NodeClaim, ObjectKey};
use jiff::Timestamp;
use state::StateNode;

use crate::node_claim::entries::running::NodeInconsistent;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

const PERIOD: Action = Action::RequeueAfter(Duration::from_mins(10));
/// A node that has less than this share of what was expected is inconsistent.
const SHARE_MIN: f64 = 0.9;

/// Controller that compares Nodes with their claims: one claim a reconcile.
pub(crate) struct Consistency {
    pub(crate) shell: Arc<Shell>,
}

/// Whether the node of a claim is there and as large as it should be.
pub(crate) fn is_consistent(node: &StateNode) -> bool {
    node.claim().is_some() && node.node().is_some() && decide(node).is_empty()
}

/// One sentence for each resource of which the node has too little.
fn decide(node: &StateNode) -> Vec<String> {
    let Some((claim, facts)) = node.claim().zip(node.node()) else {
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
            node.is_initialized() && node.node().is_some() && !node.is_marked_for_deletion()
        }) else {
            return Ok(Action::Await);
        };
        let issues = decide(&node);
        let Some(claim) = self.shell.model.node_claim(&key.name).await? else {
            return Ok(Action::Await);
        };
        self.apply(&claim, &issues).await?;
        Ok(PERIOD)
    }
}

impl Consistency {
    /// Tells of the issues, each time, and writes the condition where it is another.
    async fn apply(&self, claim: &NodeClaim, issues: &[String]) -> Result<(), ReconcileError> {
        for issue in issues {
            let entry = NodeInconsistent { issue };
            self.shell.journal.write(claim, &entry);
        }
        let after = judged(claim, issues, self.shell.now());
        if claim.conditions() != after.conditions() {
            self.shell.writer.write_claim_status(claim, &after).await?;
        }
        Ok(())
    }
}

/// The claim with what the issues come to.
fn judged(claim: &NodeClaim, issues: &[String], now: Timestamp) -> NodeClaim {
    let condition_type = conditions::CONSISTENT_STATE_FOUND;
    if issues.is_empty() {
        return claim.with_condition_true(condition_type, now);
    }
    let message = issues.join(", ");
    let failed = ConditionUpdate {
        condition_type,
        status: Status::False,
        reason: reason::CONSISTENCY_CHECK_FAILED,
        message: &message,
    };
    claim.with_condition(failed, now)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use serde_json::{Value, json};
    use state::{Cluster, Event};

    use super::*;
    use crate::node_claim::tests::claim_with;

    /// What is wrong with a node of a claim that pods request CPU of.
    fn issues(expected: &Value, found: &Value) -> Vec<String> {
        let claim = claim_with(&json!({
            "/spec/resources": {"requests": {"cpu": "1"}}, "/status/capacity": expected,
        }));
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "spec": {"providerID": "aws:///a/i-1"},
            "status": {"capacity": found},
        }))
        .unwrap();
        let (mut cluster, now) = (Cluster::new(), Timestamp::UNIX_EPOCH);
        cluster.apply(now, Event::applied(Arc::new(claim))).unwrap();
        cluster.apply(now, Event::applied(Arc::new(node))).unwrap();
        decide(cluster.snapshot().node_of_claim("c").unwrap())
    }

    #[test]
    fn a_node_may_have_a_tenth_less_of_what_is_requested() {
        let short = "expected 4 of resource cpu, but found 3 (75.0% of expected)";
        let nothing = "expected 4 of resource cpu, but found 0 (0.0% of expected)";
        let cases = [
            (json!({"cpu": "4"}), json!({"cpu": "4"}), vec![]),
            (json!({"cpu": "4"}), json!({"cpu": "8"}), vec![]),
            (json!({"cpu": "4"}), json!({"cpu": "3600m"}), vec![]),
            (json!({"cpu": "4"}), json!({"cpu": "3"}), vec![short]),
            (json!({"cpu": "4"}), json!({}), vec![nothing]),
            // Nobody was told how much to expect, or nobody asks for it.
            (json!({}), json!({"cpu": "3"}), vec![]),
            (
                json!({"cpu": "4", "memory": "16Gi"}),
                json!({"cpu": "4", "memory": "1Gi"}),
                vec![],
            ),
        ];
        for (expected, found, condition) in cases {
            assert_eq!(issues(&expected, &found), condition, "{expected} {found}");
        }
    }

    #[test]
    fn all_issues_are_told_in_one_condition_until_there_are_none() {
        let claim = claim_with(&json!({}));
        let condition = |issues: &[&str]| {
            let issues: Vec<String> = issues.iter().map(|it| (*it).to_owned()).collect();
            let after = judged(&claim, &issues, Timestamp::UNIX_EPOCH);
            let condition = after.condition(conditions::CONSISTENT_STATE_FOUND);
            let condition = condition.unwrap();
            format!(
                "{} {}: {}",
                condition.status, condition.reason, condition.message
            )
        };
        assert_eq!(condition(&[]), "True ConsistentStateFound: ");
        let failed = "False ConsistencyCheckFailed: little CPU, no memory";
        assert_eq!(condition(&["little CPU", "no memory"]), failed);
    }
}
