//! Journal entry of a scan for nodes to disrupt: how long it took, what it found, what kept nodes from going.
//!
//! Nothing is decided here. Answers to `pkg/controllers/disruption/metrics.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use apis::{DisruptionReason, labels};
use disruption::budgets::BudgetDetail;
use disruption::scored::{MoveResult, ScoredMove};
use disruption::{Decision, Method};
use hooks::disruption::{BalancedScore, BudgetReason};
use jiff::Timestamp;
use state::Snapshot;
use state::ledger::{OutcomeId, Record};

use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::KubernetesEvent;
use crate::shell::journal::references;
use crate::shell::metrics::labels::{
    ControllerLabel, DecisionLabel, NodePoolLabel, PolicyLabel, ReasonLabel, Series,
    consolidation_type_label, reason_label, snake_case,
};
use crate::shell::metrics::{Metrics, replace};
use crate::voluntary_disruption::{VoluntaryDisruption, events, method_labels};

/// A scan that is over.
pub(super) struct ScanEntry<'a> {
    pub(super) decision: &'a Decision,
    /// How long each method took that was run.
    pub(super) method_durations: &'a [(Method, Duration)],
    /// Moment at which the scan began.
    pub(super) now: Timestamp,
    /// Whether sick nodes are repaired.
    pub(super) repairs_nodes: bool,
}

impl JournalEntry for ScanEntry<'_> {
    type Subject = Snapshot;

    fn events(&self, snapshot: &Snapshot) -> Vec<KubernetesEvent> {
        let mut notices = blocked(self.decision, snapshot);
        notices.extend(self.blocked_pools(snapshot));
        notices.extend(unconsolidatable(self.decision, snapshot));
        notices.extend(approved(self.decision, snapshot));
        notices.extend(self.protection(snapshot));
        notices
    }

    fn measure(&self, snapshot: &Snapshot, metrics: &Metrics) {
        let decision = self.decision;
        for (method, took) in self.method_durations {
            metrics
                .disruption_evaluation_seconds
                .get_or_create(&Series(method_labels(*method)))
                .observe(took.as_secs_f64());
        }
        measure_eligible(metrics, decision);
        if let Some(method) = decision.cut_short {
            metrics
                .consolidation_timeouts
                .get_or_create(&Series(consolidation_type_label(method)))
                .inc();
        }
        let took: Duration = self.method_durations.iter().map(|it| it.1).sum();
        let series = Series(ControllerLabel(VoluntaryDisruption::NAME));
        let seconds = metrics.scheduling_seconds.get_or_create(&series);
        seconds.observe(took.as_secs_f64());
        drop(seconds);
        let budgets = |number: fn(&BudgetDetail) -> u32| {
            decision.budgets.details.iter().map(move |it| {
                let pool = NodePoolLabel(it.pool.clone());
                let reason = ReasonLabel(snake_case(it.reason.as_str()));
                ((pool, reason), f64::from(number(it)))
            })
        };
        replace(&metrics.allowed_disruptions, budgets(|it| it.allowed));
        replace(&metrics.nodes_consuming_budgets, budgets(|it| it.consuming));
        replace(&metrics.policy_premium, premiums(snapshot));
        for scored in &decision.scored {
            measure_move(metrics, scored);
        }
    }

    fn record(&self, _: &Snapshot, _: Timestamp) -> Option<Record> {
        // A cluster without nodes has nothing to tell.
        let is_empty = self.decision.outcomes.is_empty();
        (!is_empty).then(|| Record::DisruptionRound(self.decision.record(self.now)))
    }
}

impl ScanEntry<'_> {
    fn blocked_pools(&self, snapshot: &Snapshot) -> impl Iterator<Item = KubernetesEvent> {
        // A budget for what nobody does is no news.
        let is_asked =
            |it: &&BudgetDetail| it.reason != BudgetReason::Unhealthy || self.repairs_nodes;
        let details = self.decision.budgets.details.iter().filter(is_asked);
        let blocking = details.filter(|it| it.allowed == 0 && it.total > 0);
        blocking.map(|it| events::pool_blocked(snapshot, &it.pool, it.reason.as_str()))
    }

    /// Until when do-not-disrupt protects the pods of our nodes, or that it does not any more, or never did.
    fn protection(&self, snapshot: &Snapshot) -> Vec<KubernetesEvent> {
        let nodes = snapshot.nodes();
        let staying = nodes.filter(|it| it.is_managed() && !it.is_marked_for_deletion());
        let pods = staying.flat_map(|node| snapshot.bound(node).pods());
        pods.filter(|pod| pod.is_active())
            .filter_map(|pod| events::protection(pod, self.now))
            .collect()
    }
}

/// Events of nodes that something kept from being looked at.
fn blocked(decision: &Decision, snapshot: &Snapshot) -> Vec<KubernetesEvent> {
    let mut notices = Vec::new();
    for blocked in &decision.blocked {
        let Some(message) = blocked.event_message() else {
            continue;
        };
        if blocked.obstacle.outcome == OutcomeId::NodeRepairBreaker
            && let (Some(node), Some(claim)) = (&blocked.node, &blocked.claim)
        {
            let pool = blocked.pool.as_deref();
            notices.extend(events::repair_blocked(snapshot, node, claim, pool, message));
        } else {
            notices.extend(events::blocked(snapshot, blocked, message));
        }
    }
    notices
}

/// Events of nodes that are no matter for consolidation. A node that something blocks altogether is told of that.
fn unconsolidatable(decision: &Decision, snapshot: &Snapshot) -> Vec<KubernetesEvent> {
    let blocked: BTreeSet<&str> = decision.blocked.iter().map(|it| it.name.as_str()).collect();
    let outcomes = decision.outcomes.iter();
    let outcomes = outcomes
        .filter(|it| is_unconsolidatable(it.outcome) && !blocked.contains(it.node.as_str()));
    let notices = outcomes.filter_map(|outcome| {
        let claim = snapshot.node(&outcome.node)?.claim_name()?;
        let regarding = references::node_and_claim(snapshot, &outcome.node, claim);
        Some(events::unconsolidatable(regarding, outcome))
    });
    notices.flatten().collect()
}

/// The score of a single node is told on the node, that of several on their pools.
fn approved(decision: &Decision, snapshot: &Snapshot) -> Vec<KubernetesEvent> {
    let mut notices = Vec::new();
    for scored in decision
        .scored
        .iter()
        .filter(|it| it.result == MoveResult::Chosen)
    {
        for pool in &scored.pools {
            // Another policy may approve what this score does not.
            let Some(balanced) = pool.balanced.filter(BalancedScore::passes) else {
                continue;
            };
            let mut claims = scored.claims.iter();
            let single = claims.next().filter(|_| scored.claims.len() == 1);
            let node = single.and_then(|it| Some((snapshot.node_of_claim(it)?.node_name()?, it)));
            let regarding = match node {
                Some((node, claim)) => references::node_and_claim(snapshot, node, claim).to_vec(),
                None => vec![references::node_pool(snapshot, &pool.name)],
            };
            notices.extend(events::approved(regarding, &balanced));
        }
    }
    notices
}

/// The outcomes that Karpenter tells as `Unconsolidatable`.
fn is_unconsolidatable(outcome: OutcomeId) -> bool {
    matches!(
        outcome,
        OutcomeId::NodeConsolidationNever
            | OutcomeId::NodePolicyWhenEmpty
            | OutcomeId::NodeTypeUnknown
            | OutcomeId::NodeWithoutCapacityType
            | OutcomeId::NodeWithoutZone
            | OutcomeId::NodeHoldsBuffer
            | OutcomeId::NodePodsDoNotFit
            | OutcomeId::NodeNeedsManyNodes
            | OutcomeId::NodeNoCheaperReplacement
            | OutcomeId::NodeSpotToSpotDisabled
            | OutcomeId::NodeSpotToSpotFewTypes
            | OutcomeId::NodeMinValues
            | OutcomeId::NodeLoopGuard
    )
}

/// Premiums of ranking policies, USD an hour, by pool and policy, as the claims say of themselves.
fn premiums(snapshot: &Snapshot) -> impl Iterator<Item = ((NodePoolLabel, PolicyLabel), f64)> {
    let mut premiums: BTreeMap<(String, String), f64> = BTreeMap::new();
    for claim in snapshot.nodes().filter_map(|it| it.claim()) {
        let annotation = |key: &str| claim.annotations.get(key);
        let premium = annotation(labels::PREMIUM_ANNOTATION);
        let premium = premium.and_then(|it| it.parse::<f64>().ok());
        let Some(policies) = annotation(labels::RANKED_BY_ANNOTATION) else {
            continue;
        };
        let names = policies
            .split(',')
            .map(|it| it.split('@').next().unwrap_or(it));
        let names: Vec<&str> = names.collect();
        let pool = claim.node_pool().unwrap_or_default().to_owned();
        *premiums.entry((pool, names.join(","))).or_default() += premium.unwrap_or_default();
    }
    premiums
        .into_iter()
        .map(|((pool, policy), premium)| ((NodePoolLabel(pool), PolicyLabel(policy)), premium))
}

fn measure_eligible(metrics: &Metrics, decision: &Decision) {
    let mut eligible_by_reason = BTreeMap::<DisruptionReason, u32>::new();
    for (method, eligible) in &decision.eligible {
        let known = eligible_by_reason.entry(method.reason()).or_default();
        // The two kinds of consolidation look at the same nodes, the two kinds of drift at different ones.
        *known = if method.is_consolidation() {
            (*known).max(*eligible)
        } else {
            *known + eligible
        };
    }
    for (reason, eligible) in eligible_by_reason {
        metrics
            .disruption_eligible_nodes
            .get_or_create(&Series(reason_label(reason)))
            .set(f64::from(eligible));
    }
}

fn measure_move(metrics: &Metrics, scored: &ScoredMove) {
    let decision = match scored.result {
        MoveResult::Approved | MoveResult::Chosen => "approved",
        MoveResult::Refused => "rejected",
    };
    for pool in &scored.pools {
        let series = Series((
            DecisionLabel(decision),
            NodePoolLabel(pool.name.clone()),
            PolicyLabel(pool.policy.to_string()),
        ));
        metrics.consolidation_moves.get_or_create(&series).inc();
        if let Some(balanced) = pool.balanced {
            let scores = &metrics.consolidation_score;
            scores.get_or_create(&series).observe(balanced.score);
        }
    }
}
