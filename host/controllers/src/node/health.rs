//! Node repair the way it was before it became a disruption method; behind `--legacy-node-repair`.
//!
//! Sick nodes are taken away by force, without budgets and whatever their pods ask, unless too many are sick at
//! once. Answers to `pkg/controllers/node/health/controller.go`.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apis::GoDuration;
use disruption::repair::{RepairPolicies, trips_breaker};
use jiff::{SignedDuration, Timestamp};
use state::Snapshot;
use tracing::error;

use crate::node_claim::entries::end::ClaimRepaired;
use crate::node_claim::with_drain_within;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::KubernetesEvent;
use crate::shell::runtime::periodic::{self, PastRound, Periodic};
use crate::voluntary_disruption::repair_blocked;

const PERIOD: Duration = Duration::from_secs(10);
/// What was held back is not looked at again before this time is over.
const BLOCKED_PERIOD: SignedDuration = SignedDuration::from_mins(5);

/// Controller of the legacy node repair.
pub(crate) struct NodeHealth {
    pub(crate) shell: Arc<Shell>,
    pub(crate) policies: Arc<RepairPolicies>,
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
struct HeldBack(BTreeMap<Sickness, Timestamp>);

/// A condition of a node since its time was up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sickness {
    node: String,
    condition: String,
    since: Timestamp,
}

impl HeldBack {
    fn key(sick: &Sick) -> Sickness {
        Sickness {
            node: sick.node.clone(),
            condition: sick.condition.clone(),
            since: sick.since,
        }
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
        trips_breaker(self.sick, self.total)
    }
}

/// The rounds of it, which remember what was held back.
struct HealthRounds<'a> {
    health: &'a NodeHealth,
    held_back: HeldBack,
}

impl Periodic for HealthRounds<'_> {
    const NAME: &'static str = NodeHealth::NAME;
    const BEGINS_AT_ONCE: bool = false;
    type Error = ReconcileError;

    fn is_due(&self) -> bool {
        self.health.shell.model.is_synced()
    }

    /// A node that cannot be repaired keeps nobody else waiting.
    async fn round(&mut self) -> Result<(), ReconcileError> {
        let (shell, now) = (&self.health.shell, self.health.shell.now());
        self.held_back.forget_past(now);
        let mut nodes = decide(&shell.model.snapshot(), &self.health.policies, now);
        nodes.retain(|it| !self.held_back.has(it));
        let mut outcome = Ok(());
        for sick in nodes {
            if let Some(why) = sick.blocked {
                self.held_back.add(&sick, now);
                let entry = RepairBlocked { sick: &sick, why };
                shell.journal.write(&shell.model.snapshot(), &entry);
            } else if let Err(error) = self.health.repair(&sick).await {
                error!(NodeClaim = %sick.claim, %error, "repairing a node");
                outcome = Err(error);
            }
        }
        outcome
    }

    fn pause(&self, _: PastRound) -> Duration {
        PERIOD
    }
}

impl NodeHealth {
    /// Karpenter's name of it, as metrics show it.
    pub(crate) const NAME: &'static str = "node.health";

    pub(crate) async fn run(&self) {
        let rounds = HealthRounds {
            health: self,
            held_back: HeldBack::default(),
        };
        periodic::run(&self.shell.metrics, rounds).await;
    }

    async fn repair(&self, sick: &Sick) -> Result<(), ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(&sick.claim).await? else {
            return Ok(());
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let after = with_drain_within(&claim, GoDuration::ZERO, self.shell.now());
        let claim = self.shell.writer.write_claim(&claim, &after).await?;
        ignore_not_found(self.shell.writer.delete(&claim).await)?;
        let entry = ClaimRepaired {
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

    fn events(&self, snapshot: &Snapshot) -> Vec<KubernetesEvent> {
        let Sick { node, claim, .. } = self.sick;
        let pool = snapshot.node(node).and_then(|it| it.node_pool());
        repair_blocked(snapshot, node, claim, pool, self.why)
    }
}

/// Nodes that have been sick for longer than is tolerated.
fn decide(snapshot: &Snapshot, policies: &RepairPolicies, now: Timestamp) -> Vec<Sick> {
    let mut cluster = Share::default();
    let mut pools: BTreeMap<&str, Share> = BTreeMap::new();
    for node in snapshot.nodes().filter(|it| it.node().is_some()) {
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
