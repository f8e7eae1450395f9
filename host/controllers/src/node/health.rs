//! Node repair the way it was before it became a disruption method; behind `--legacy-node-repair`.
//!
//! Sick nodes are taken away by force, without budgets and whatever their pods ask, unless too many are sick at
//! once. Answers to `pkg/controllers/node/health/controller.go`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apis::GoDuration;
use cloudprovider::CloudProvider;
use disruption::repair::RepairPolicies;
use jiff::{SignedDuration, Timestamp};
use state::Snapshot;
use tracing::error;

use crate::node_claim::entries::ClaimEntry;
use crate::node_claim::{NodeClaimExt, with_deadline};
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::journal::JournalEntry;
use crate::shell::recorder::Notice;
use crate::voluntary_disruption::{compiled, repair_blocked};

const PERIOD: Duration = Duration::from_secs(10);
const BREAKER_PERCENT: usize = 20;
/// What was held back is not looked at again before this time is over.
const BLOCKED_PERIOD: SignedDuration = SignedDuration::from_mins(5);

/// The controller.
pub(crate) struct NodeHealth {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

/// A sick node whose time is up.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sick {
    node: String,
    claim: String,
    condition: String,
    /// How long the drain may take by the policy that found it; `None` as the claim says.
    bound: Option<GoDuration>,
    /// When its time was up.
    since: Timestamp,
    /// Too many are sick beside it: says among which.
    blocked: Option<&'static str>,
}

/// Sick nodes that were held back, with the time until which they are let alone. A condition that begins anew is
/// another matter.
#[derive(Debug, Default)]
struct HeldBack(BTreeMap<(String, String, Timestamp), Timestamp>);

impl HeldBack {
    fn key(sick: &Sick) -> (String, String, Timestamp) {
        (sick.node.clone(), sick.condition.clone(), sick.since)
    }

    fn forget_past(&mut self, now: Timestamp) {
        self.0.retain(|_, until| *until > now);
    }

    fn has(&self, sick: &Sick) -> bool {
        self.0.contains_key(&Self::key(sick))
    }

    fn add(&mut self, sick: &Sick, now: Timestamp) {
        let until = now.checked_add(BLOCKED_PERIOD).unwrap_or(Timestamp::MAX);
        self.0.insert(Self::key(sick), until);
    }
}

/// Nodes that are looked at together.
#[derive(Debug, Default, Clone, Copy)]
struct Share {
    total: usize,
    sick: usize,
}

impl Share {
    fn count(&mut self, is_sick: bool) {
        self.total += 1;
        self.sick += usize::from(is_sick);
    }

    fn is_too_sick(self) -> bool {
        self.sick > (self.total * BREAKER_PERCENT).div_ceil(100)
    }
}

impl NodeHealth {
    pub(crate) async fn run(&self) {
        let policies = match compiled(self.provider.repair_policies()) {
            Ok(policies) => policies,
            Err(faults) => {
                error!(faults, "no node is repaired");
                return std::future::pending().await;
            }
        };
        let mut held_back = HeldBack::default();
        loop {
            tokio::time::sleep(PERIOD).await;
            if !self.shell.model.is_synced() {
                continue;
            }
            let mut round = self.shell.metrics.round("node.health");
            let now = self.shell.now();
            held_back.forget_past(now);
            let mut sick = sick(&self.shell.model.snapshot(), &policies, now);
            sick.retain(|it| !held_back.has(it));
            for it in sick {
                if let Some(why) = it.blocked {
                    held_back.add(&it, now);
                    let entry = RepairBlocked { sick: &it, why };
                    let snapshot = self.shell.model.snapshot();
                    self.shell.journal.write(&snapshot, &entry);
                } else if let Err(error) = self.repair(&it).await {
                    error!(NodeClaim = %it.claim, %error, "repairing a node");
                    round.failed(error);
                }
            }
        }
    }

    async fn repair(&self, sick: &Sick) -> Result<(), ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(&sick.claim).await? else {
            return Ok(());
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let now = self.shell.now();
        let deadline = claim.termination_deadline().map_or(now, |at| at.min(now));
        let after = with_deadline(&claim, deadline);
        let claim = self.shell.writer.write_claim(&claim, &after).await?;
        ignore_not_found(self.shell.writer.delete(&claim).await)?;
        let entry = ClaimEntry::Repaired {
            node: &sick.node,
            condition: &sick.condition,
            bound: sick.bound,
        };
        self.shell.journal.write(&claim, &entry);
        Ok(())
    }
}

/// Too many are sick for this one to be repaired.
struct RepairBlocked<'a> {
    sick: &'a Sick,
    why: &'static str,
}

impl JournalEntry for RepairBlocked<'_> {
    type Subject = Snapshot;

    fn events(&self, snapshot: &Snapshot) -> Vec<Notice> {
        let Sick { node, claim, .. } = self.sick;
        let pool = snapshot.node(node).and_then(|it| it.node_pool());
        repair_blocked(snapshot, node, claim, pool, self.why)
    }
}

/// Nodes that have been sick for longer than is tolerated.
fn sick(snapshot: &Snapshot, policies: &RepairPolicies, now: Timestamp) -> Vec<Sick> {
    let mut cluster = Share::default();
    let mut pools: BTreeMap<&str, Share> = BTreeMap::new();
    for node in snapshot.nodes().filter(|it| it.node.is_some()) {
        let is_sick = policies.replacements(node).next().is_some();
        cluster.count(is_sick);
        if let Some(pool) = node.node_pool() {
            pools.entry(pool).or_default().count(is_sick);
        }
    }
    let blocked = |pool: Option<&str>| {
        let (share, why) = match pool {
            Some(pool) => (
                pools.get(pool).copied().unwrap_or_default(),
                "more than 20% of its nodepool is unhealthy",
            ),
            None => (cluster, "more than 20% of the cluster is unhealthy"),
        };
        share.is_too_sick().then_some(why)
    };
    let nodes = snapshot.nodes().filter(|it| !it.is_deleted());
    nodes
        .filter_map(|node| {
            let overdue = policies.replacements(node).filter(|it| it.since <= now);
            let overdue = overdue.min_by_key(|it| it.since)?;
            Some(Sick {
                node: node.node_name()?.to_owned(),
                claim: node.claim_name()?.to_owned(),
                condition: overdue.condition.to_owned(),
                bound: overdue.bound,
                since: overdue.since,
                blocked: blocked(node.node_pool()),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use apis::{RepairAction, RepairPolicy};
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;
    use state::{Cluster, Event};

    use super::*;
    use crate::node_claim::tests::claim_with;

    /// Half an hour for whatever reason, ten minutes where the kubelet stopped.
    fn policies() -> RepairPolicies {
        let policy = |reason: &str, minutes: i64| RepairPolicy {
            condition_type: "Ready".to_owned(),
            condition_status: "False".to_owned(),
            reason_regex: reason.to_owned(),
            toleration: GoDuration::from_seconds(60 * minutes),
            termination_grace_period: None,
            priority: 0,
            action: RepairAction::Replace,
        };
        compiled(vec![policy("", 30), policy("^Kubelet", 10)]).unwrap()
    }

    /// The sick of five nodes of a pool, so many of which are not Ready since midnight, at minutes past it.
    fn told(not_ready: usize, reason: &str, minutes: i64) -> Vec<String> {
        let midnight: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut cluster = Cluster::new();
        for number in 0..5 {
            let (id, pool) = (
                format!("aws:///a/i-{number}"),
                json!({"karpenter.sh/nodepool": "p"}),
            );
            let claim = claim_with(&json!({
                "/metadata/name": format!("c{number}"), "/metadata/labels": pool,
                "/metadata/deletionTimestamp": null, "/status/providerID": id,
            }));
            let status = if number < not_ready { "False" } else { "True" };
            let node: Node = serde_json::from_value(json!({
                "metadata": {"name": format!("n{number}"), "labels": pool},
                "spec": {"providerID": id},
                "status": {"conditions": [
                    {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": midnight},
                ]},
            }))
            .unwrap();
            cluster
                .apply(midnight, Event::applied(Arc::new(claim)))
                .unwrap();
            cluster
                .apply(midnight, Event::applied(Arc::new(node)))
                .unwrap();
        }
        let now = midnight + SignedDuration::from_mins(minutes);
        let sick = sick(&cluster.snapshot(), &policies(), now).into_iter();
        sick.map(|it| format!("{} {}", it.node, it.blocked.unwrap_or("goes")))
            .collect()
    }

    #[test]
    fn a_node_goes_once_it_was_tolerated_for_long_enough_unless_a_fifth_is_sick() {
        let blocked = "more than 20% of its nodepool is unhealthy";
        let both = vec![format!("n0 {blocked}"), format!("n1 {blocked}")];
        let one = vec!["n0 goes".to_owned()];
        let cases = [
            (0, "", 60, vec![]),
            (1, "Unknown", 29, vec![]),
            (1, "Unknown", 30, one.clone()),
            (1, "KubeletStopped", 9, vec![]),
            (1, "KubeletStopped", 10, one),
            (2, "KubeletStopped", 10, both),
        ];
        for (not_ready, reason, minutes, expected) in cases {
            let sick = told(not_ready, reason, minutes);
            assert_eq!(sick, expected, "{not_ready} {reason} {minutes}");
        }
    }
}
