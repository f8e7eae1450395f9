//! Notes on a claim when a pod last came to its node or left it; `consolidateAfter` counts from there.
//!
//! What follows from it is decided elsewhere. Answers to `pkg/controllers/nodeclaim/podevents/controller.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::conditions;
use apis::{NodeClaim, NodePool, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::node_claim::disruption::mark_consolidatable;
use crate::node_claim::remaining;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

/// A time noted this lately is good enough.
const DEDUPE: Duration = Duration::from_secs(10);

/// Controller of the time of the last pod event: one claim a reconcile.
pub(crate) struct PodEvents {
    pub(crate) shell: Arc<Shell>,
}

/// Whether what was noted last is good enough.
fn is_recent(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_some_and(|last| !remaining(last, DEDUPE, now).is_zero())
}

/// The claim with the time noted, unless that was done lately, and without a mark that the event takes away.
fn decide(claim: &NodeClaim, pool: Option<&NodePool>, now: Timestamp) -> Option<NodeClaim> {
    let status = claim.status.as_ref();
    let last = status.and_then(|status| status.last_pod_event_time.as_ref());
    if is_recent(last.map(|time| time.0), now) {
        return None;
    }
    let mut after = claim.clone();
    let event_at = conditions::whole_seconds(now);
    after.status.get_or_insert_default().last_pod_event_time = Some(Time(event_at));
    // Told by this write, it needs none of its own.
    let after = match pool {
        Some(pool) if !pool.is_static() => mark_consolidatable(&after, pool, now).0,
        Some(_) | None => after,
    };
    Some(after)
}

impl Reconciler for PodEvents {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let facts = self.shell.model.claim_facts(&key.name);
        let last = facts.and_then(|it| it.last_pod_event_at);
        if is_recent(last, self.shell.now()) {
            return Ok(Action::Await);
        }
        let observed = self.shell.model.node_claim(&key.name).await?;
        let Some(claim) = observed else {
            return Ok(Action::Await);
        };
        let pool = claim.pool_name();
        let pool = pool.and_then(|it| self.shell.model.node_pool(it));
        if let Some(after) = decide(&claim, pool.as_deref(), self.shell.now()) {
            self.shell.writer.write_claim_status(&claim, &after).await?;
        }
        Ok(Action::Await)
    }
}

#[cfg(test)]
mod tests {
    use apis::conditions::{self, Conditioned as _};
    use serde_json::json;

    use super::*;
    use crate::node_claim::tests::{claim_with, condition};

    #[test]
    fn the_time_is_noted_in_whole_seconds_and_not_again_for_ten_of_them() {
        let now: Timestamp = "2026-01-01T01:00:00.7Z".parse().unwrap();
        let noted = Some("2026-01-01T01:00:00Z".parse::<Timestamp>().unwrap());
        let cases = [
            (json!(null), noted),
            (json!("2026-01-01T00:00:00Z"), noted),
            (json!("2026-01-01T00:59:50Z"), noted),
            (json!("2026-01-01T00:59:51Z"), None),
            (json!("2026-01-01T01:00:00Z"), None),
        ];
        for (last, expected) in cases {
            let claim = claim_with(&json!({"/status/lastPodEventTime": last}));
            let after = decide(&claim, None, now);
            let written = after.map(|it| it.status.unwrap().last_pod_event_time.unwrap().0);
            assert_eq!(written, expected, "{last}");
        }
    }

    #[test]
    fn an_event_takes_the_mark_of_quiet_away_unless_none_is_waited_for() {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let claim = claim_with(&json!({"/status/conditions": [
            condition("Initialized", "True", "00:10"),
            condition("Consolidatable", "True", "00:20"),
        ]}));
        let class =
            json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
        let cases = [("30s", false), ("0s", true), ("Never", false)];
        for (consolidate_after, expected) in cases {
            let pool = serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
                "spec": {
                    "template": {"spec": {"requirements": [], "nodeClassRef": class}},
                    "disruption": {"consolidateAfter": consolidate_after},
                },
            }));
            let after = decide(&claim, Some(&pool.unwrap()), now).unwrap();
            let is_marked = after.is_condition_true(conditions::CONSOLIDATABLE);
            assert_eq!(is_marked, expected, "{consolidate_after}");
        }
    }
}
