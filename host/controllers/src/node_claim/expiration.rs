//! Deletes NodeClaims at the end of their life. Forceful: no budget is asked and nothing is launched beforehand.
//!
//! Answers to `pkg/controllers/nodeclaim/expiration/controller.go`.

use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use jiff::Timestamp;
use state::facts::ClaimFacts;

use crate::node_claim::entries::end::ClaimExpired;
use crate::node_claim::remaining;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;

/// Controller of lifetimes: one claim a reconcile.
pub(crate) struct Expiration {
    pub(crate) shell: Arc<Shell>,
}

/// How long the claim has left; nothing for those that live for ever or are going already.
fn decide(claim: &ClaimFacts, now: Timestamp) -> Option<Duration> {
    if claim.deleted_at.is_some() {
        return None;
    }
    Some(remaining(
        claim.created_at?,
        claim.expire_after?.to_std(),
        now,
    ))
}

impl Reconciler for Expiration {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let observed = self.shell.model.claim_facts(&key.name);
        let Some(facts) = observed else {
            return Ok(Action::Await);
        };
        match decide(&facts, self.shell.now()) {
            None => Ok(Action::Await),
            Some(left) if !left.is_zero() => Ok(Action::RequeueAfter(left)),
            Some(_) => self.apply(key).await,
        }
    }
}

impl Expiration {
    async fn apply(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(&key.name).await? else {
            return Ok(Action::Await);
        };
        ignore_not_found(self.shell.writer.delete(claim.as_ref()).await)?;
        self.shell.journal.write(claim.as_ref(), &ClaimExpired);
        Ok(Action::Await)
    }
}

#[cfg(test)]
mod tests {
    use apis::NodeClaim;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_lives_until_its_expiry_and_never_means_for_ever() {
        let claim = |expire_after: &str| {
            let object: NodeClaim = serde_json::from_value(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": "c", "creationTimestamp": "1970-01-01T00:00:00Z"},
                "spec": {"requirements": [], "expireAfter": expire_after,
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
            }))
            .unwrap();
            ClaimFacts::parse(&object)
        };
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(decide(&claim("1h"), at(600)), Some(Duration::from_mins(50)));
        assert_eq!(decide(&claim("1h"), at(3600)), Some(Duration::ZERO));
        assert_eq!(decide(&claim("Never"), at(1 << 37)), None);
    }
}
