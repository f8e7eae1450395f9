//! The traces of disruption: metrics, events, decision lines and the ledger's records.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use apis::{NodeClaim, labels};
use disruption::budgets::BudgetDetail;
use disruption::hooks::{BalancedScore, BudgetReason};
use disruption::scored::ScoredMove;
use disruption::validation::Rejection;
use disruption::{Command, CommandCandidate, Decision, Manner, Method, Sickness};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use state::Snapshot;
use state::ledger::{CommandRecord, CommandStep, DisruptionRound, NodeOutcome, OutcomeId, Record};
use state::pod::PodLife;
use tracing::info;

use crate::metrics::{Labels, Metrics, replace, snake_case};
use crate::node_claim::{NodeClaimExt, disrupted_with, unhealthy_disrupted};
use crate::recorder::Notice;
use crate::references;
use crate::shell::Shell;
use crate::voluntary_disruption::events;

fn method_labels(method: Method) -> Vec<(&'static str, String)> {
    vec![
        ("reason", method.reason().to_string().to_lowercase()),
        ("consolidation_type", method.consolidation_type().to_owned()),
    ]
}

/// `laps` holds how long each method took that was run.
pub(super) fn measure(shell: &Shell, decision: &Decision, laps: &[(Method, Duration)]) {
    let metrics = &shell.metrics;
    for (method, took) in laps {
        metrics
            .disruption_evaluation_seconds
            .get_or_create(&method_labels(*method))
            .observe(took.as_secs_f64());
    }
    measure_eligible(shell, decision);
    if decision.is_interrupted {
        let last = decision.commands.first();
        let last = last.map_or(Method::SingleNodeConsolidation, |it| it.method);
        let kind = last.consolidation_type().to_owned();
        metrics
            .consolidation_timeouts
            .get_or_create(&vec![("consolidation_type", kind)])
            .inc();
    }
    let budgets = |number: fn(&BudgetDetail) -> u32| {
        decision.budgets.details.iter().map(move |it| {
            let labels = vec![
                ("nodepool", it.pool.clone()),
                ("reason", it.reason.as_str().to_lowercase()),
            ];
            (labels, f64::from(number(it)))
        })
    };
    replace(&metrics.allowed_disruptions, budgets(|it| it.allowed));
    replace(&metrics.nodes_consuming_budgets, budgets(|it| it.consuming));
    replace(&metrics.policy_premium, premiums(&shell.model.snapshot()));
    for scored in &decision.scored {
        measure_move(metrics, scored);
    }
}

/// What following ranking policies costs an hour, by pool and policy, as the claims say of themselves.
fn premiums(snapshot: &Snapshot) -> impl Iterator<Item = (Labels, f64)> {
    let mut premiums: BTreeMap<(String, String), f64> = BTreeMap::new();
    for claim in snapshot.nodes().filter_map(|it| it.claim.as_ref()) {
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
        .map(|((pool, policy), premium)| (vec![("nodepool", pool), ("policy", policy)], premium))
}

fn measure_eligible(shell: &Shell, decision: &Decision) {
    let mut eligible_by_reason = BTreeMap::<String, u32>::new();
    for (method, eligible) in &decision.eligible {
        let reason = method.reason().to_string().to_lowercase();
        let known = eligible_by_reason.entry(reason).or_default();
        // The two kinds of consolidation look at the same nodes, the two kinds of drift at different ones.
        *known = if method.is_consolidation() {
            (*known).max(*eligible)
        } else {
            *known + eligible
        };
    }
    for (reason, eligible) in eligible_by_reason {
        shell
            .metrics
            .disruption_eligible_nodes
            .get_or_create(&vec![("reason", reason)])
            .set(f64::from(eligible));
    }
}

fn measure_move(metrics: &Metrics, scored: &ScoredMove) {
    let decision = if scored.is_approved {
        "approved"
    } else {
        "rejected"
    };
    for pool in &scored.pools {
        let labels = vec![
            ("decision", decision.to_owned()),
            ("nodepool", pool.name.clone()),
            ("policy", pool.policy.to_string()),
        ];
        metrics.consolidation_moves.get_or_create(&labels).inc();
        if let Some(balanced) = pool.balanced {
            let scores = &metrics.consolidation_score;
            scores.get_or_create(&labels).observe(balanced.score);
        }
    }
}

pub(super) fn publish(shell: &Shell, decision: &Decision) {
    let snapshot = shell.model.snapshot();
    for blocked in &decision.blocked {
        let Some(message) = &blocked.message else {
            continue;
        };
        if blocked.outcome == OutcomeId::NodeRepairBreaker
            && let (Some(node), Some(claim)) = (&blocked.node, &blocked.claim)
        {
            let pool = Some(blocked.pool.as_str());
            tell(
                shell,
                events::repair_blocked(&snapshot, (node, claim, pool), message),
            );
            continue;
        }
        tell(shell, events::blocked(&snapshot, blocked, message));
    }
    for detail in &decision.budgets.details {
        // A budget for what nobody does is no news.
        let is_asked =
            detail.reason != BudgetReason::Unhealthy || shell.settings.feature_gates.node_repair;
        if detail.allowed == 0 && detail.total > 0 && is_asked {
            let reason = detail.reason.as_str();
            tell(
                shell,
                [events::pool_blocked(&snapshot, &detail.pool, reason)],
            );
        }
    }
    // A node that something blocks altogether is no matter for consolidation.
    let blocked: BTreeSet<&str> = decision.blocked.iter().map(|it| it.name.as_str()).collect();
    let unconsolidatable = decision
        .outcomes
        .iter()
        .filter(|it| is_unconsolidatable(it.outcome) && !blocked.contains(it.node.as_str()));
    for outcome in unconsolidatable {
        let node = snapshot.node(&outcome.node);
        let Some(claim) = node.and_then(|it| it.claim_name()) else {
            continue;
        };
        let regarding = references::node_and_claim(&snapshot, &outcome.node, claim);
        tell(shell, events::unconsolidatable(regarding, outcome));
    }
    publish_approved(shell, &snapshot, decision);
    publish_protection(shell, &snapshot);
}

/// The score of a single node is told on the node, that of several on their pools.
fn publish_approved(shell: &Shell, snapshot: &Snapshot, decision: &Decision) {
    for scored in decision.scored.iter().filter(|it| it.is_chosen) {
        for pool in &scored.pools {
            // Another policy may approve what this score does not.
            let Some(balanced) = pool.balanced.filter(BalancedScore::passes) else {
                continue;
            };
            let mut claims = scored.claims.iter();
            let single = claims.next().filter(|_| scored.claims.len() == 1);
            let node = single.and_then(|it| snapshot.node_of_claim(it)?.node_name());
            let regarding = match (node, single) {
                (Some(node), Some(claim)) => {
                    references::node_and_claim(snapshot, node, claim).to_vec()
                }
                _ => vec![references::node_pool(snapshot, &pool.name)],
            };
            tell(shell, events::approved(regarding, &balanced));
        }
    }
}

/// Until when do-not-disrupt protects the pods of our nodes, or that it does not any more, or never did.
fn publish_protection(shell: &Shell, snapshot: &Snapshot) {
    let now = shell.now();
    let nodes = snapshot
        .nodes()
        .filter(|it| it.is_managed() && !it.is_marked_for_deletion());
    for node in nodes {
        let pods = snapshot.bound(node).pods().filter(|pod| pod.is_active());
        tell(shell, pods.filter_map(|pod| events::protection(pod, now)));
    }
}

fn tell(shell: &Shell, notices: impl IntoIterator<Item = Notice>) {
    for notice in notices {
        shell.journal.publish(notice);
    }
}

/// The Node and the NodeClaim of a candidate.
fn both(shell: &Shell, candidate: &CommandCandidate) -> [ObjectReference; 2] {
    references::node_and_claim(&shell.model.snapshot(), &candidate.node, &candidate.claim)
}

/// The outcomes that the reference tells as `Unconsolidatable`.
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

pub(super) fn record(shell: &Shell, decision: &Decision, at: Timestamp) {
    // A cluster without nodes has nothing to tell.
    if !decision.outcomes.is_empty() {
        shell
            .journal
            .record(Record::DisruptionRound(decision.record(at)));
    }
}

/// The command in one line, as logs, events and the decision feed show it.
fn text(command: &Command) -> String {
    let nodes: Vec<String> = command
        .candidates
        .iter()
        .map(|it| {
            format!(
                "{} ({} {} {})",
                it.node, it.instance_type, it.capacity_type, it.zone
            )
        })
        .collect();
    let replacements = match command.replacements.len() {
        0 => String::new(),
        count => format!(", replaced by {count} new"),
    };
    let savings = command.before.price_per_hour - command.after.price_per_hour;
    let effective = command.before.effective_per_hour - command.after.effective_per_hour;
    // Told where a ranking policy reckons otherwise than the price list.
    let reckoned = if (effective - savings).abs() < 0.005 {
        String::new()
    } else {
        format!(" (${effective:.2}/h as the ranking policy reckons)")
    };
    format!(
        "{}/{}: {} {}{replacements}, savings ${savings:.2}/h{reckoned}",
        command.reason(),
        command.id,
        command.decision(),
        nodes.join(", "),
    )
}

/// Before a command starts.
pub(super) fn announce(shell: &Shell, command: &Command) {
    let text = text(command);
    for candidate in &command.candidates {
        tell(shell, events::candidate(both(shell, candidate), &text));
    }
    info!(
        command = %text,
        reason = %command.reason(),
        decision = command.decision(),
        disrupted_node_count = command.candidates.len(),
        replacement_node_count = command.replacements.len(),
        pod_count = command.candidates.iter().map(|it| it.pods).sum::<u32>(),
        "disrupting node(s)"
    );
    let reason = if command.policy_reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", command.policy_reason)
    };
    shell.journal.say(format!("{text}{reason}"));
}

/// Candidates are marked and replacements exist.
pub(super) fn started(shell: &Shell, command: &Command, replacements: &[NodeClaim]) {
    let reason = command.reason().to_string();
    for claim in replacements {
        shell.journal.publish(events::launching(claim, &reason));
    }
    let mut labels = method_labels(command.method);
    labels.insert(0, ("decision", command.decision().to_owned()));
    shell
        .metrics
        .disruption_decisions
        .get_or_create(&labels)
        .inc();
    let mut pools: Vec<&str> = command
        .candidates
        .iter()
        .map(|it| it.pool.as_str())
        .collect();
    pools.sort_unstable();
    pools.dedup();
    for pool in pools {
        let mut labels = labels.clone();
        labels.insert(0, ("nodepool", pool.to_owned()));
        shell
            .metrics
            .disruption_decisions_by_node_pool
            .get_or_create(&labels)
            .inc();
    }
    if let Manner::TerminateFirst(why) = command.manner {
        for candidate in &command.candidates {
            let labels = vec![
                ("nodepool", candidate.pool.clone()),
                ("reason", command.reason().to_string().to_lowercase()),
                ("terminate_first_reason", why.as_str().to_owned()),
            ];
            let counter = &shell.metrics.terminate_first_decisions;
            counter.get_or_create(&labels).inc();
        }
    }
    if let (Manner::Reboot, Some(sickness)) = (command.manner, &command.sickness) {
        let claims = command.candidates.iter();
        // What was just written is at hand.
        for claim in claims.filter_map(|it| shell.model.recent_node_claim(&it.claim)) {
            sick(shell, sickness, &claim);
        }
    }
    let names: Vec<String> = replacements.iter().map(ResourceExt::name_any).collect();
    step(
        shell,
        command,
        CommandStep::Started,
        OutcomeId::CommandStarted,
        (&names, &command.policy_reason),
    );
}

/// A candidate's claim was deleted.
pub(super) fn deleted(
    shell: &Shell,
    command: &Command,
    candidate: &CommandCandidate,
    claim: &NodeClaim,
) {
    let reason = command.reason().to_string();
    tell(shell, events::terminating(both(shell, candidate), &reason));
    let policy = shell
        .model
        .node_pool(&candidate.pool)
        .map(|pool| snake_case(&pool.spec.disruption.consolidation_policy.to_string()))
        .filter(|_| command.method.is_consolidation() || command.method == Method::Emptiness)
        .unwrap_or_default();
    disrupted_with(&shell.metrics, claim, &reason.to_lowercase(), &policy);
    if let Some(sickness) = &command.sickness {
        sick(shell, sickness, claim);
    }
    let initiated = vec![
        ("reason", reason.to_lowercase()),
        ("nodepool", candidate.pool.clone()),
        (
            "capacity_type",
            claim.label(labels::CAPACITY_TYPE).to_owned(),
        ),
        ("consolidation_policy", policy),
        (
            "termination_mode",
            crate::node_claim::termination_mode(claim).to_owned(),
        ),
    ];
    shell
        .metrics
        .pods_disruption_initiated
        .get_or_create(&initiated)
        .inc_by(u64::from(candidate.pods));
    info!(NodeClaim = %candidate.claim, Node = %candidate.node, reason, "deleted nodeclaim");
}

/// A claim was taken away, or told to reboot, as its node is sick.
fn sick(shell: &Shell, sickness: &Sickness, claim: &NodeClaim) {
    let found = (sickness.condition.as_str(), sickness.policy_bound);
    unhealthy_disrupted(&shell.metrics, claim, found);
}

/// A command was given up after it had started.
pub(super) fn failed(shell: &Shell, command: &Command, replacements: &[String], why: &str) {
    let mut labels = method_labels(command.method);
    labels.insert(0, ("decision", command.decision().to_owned()));
    let snapshot = shell.model.snapshot();
    let is_missing = |name: &&String| {
        let node = snapshot.node_of_claim(name);
        node.is_none_or(|it| !it.is_initialized())
    };
    shell
        .metrics
        .disruption_queue_failures
        .get_or_create(&labels)
        .inc_by(replacements.iter().filter(is_missing).count() as u64);
    shell.journal.say(format!("gave up {}: {why}", command.id));
    step(
        shell,
        command,
        CommandStep::Finished,
        OutcomeId::CommandFailed,
        (replacements, why),
    );
}

/// A node stays although others of its command have gone.
pub(super) fn left_out(shell: &Shell, command: &Command, candidate: &CommandCandidate, why: &str) {
    shell.journal.say(format!(
        "left {} out of {}: {why}",
        candidate.node, command.id
    ));
    let alone = Command {
        candidates: vec![candidate.clone()],
        ..command.clone()
    };
    let (finished, failed) = (CommandStep::Finished, OutcomeId::CommandFailed);
    step(shell, &alone, finished, failed, (&[], why));
}

/// Nodes of a command that did not survive its validation. The ledger has them as a scan of their own: the second look.
pub(super) fn dropped(shell: &Shell, command: &Command, dropped: &[(CommandCandidate, Rejection)]) {
    if dropped.is_empty() {
        return;
    }
    let text = text(command);
    for (candidate, rejection) in dropped {
        let class = match rejection {
            Rejection::Churn(_) => "churn",
            Rejection::Budget(_) => "budget",
            Rejection::Scheduling(_) => "scheduling",
        };
        tell(
            shell,
            events::rejected(both(shell, candidate), &text, class),
        );
    }
    shell
        .metrics
        .failed_validations
        .get_or_create(&vec![(
            "consolidation_type",
            command.method.consolidation_type().to_owned(),
        )])
        .inc_by(dropped.len() as u64);
    let nodes = dropped.iter().map(|(candidate, rejection)| NodeOutcome {
        node: candidate.node.clone(),
        claim: candidate.claim.clone(),
        pool: candidate.pool.clone(),
        outcome: rejection.outcome(),
        reason: rejection.to_string(),
    });
    shell
        .journal
        .record(Record::DisruptionRound(DisruptionRound {
            at: shell.now(),
            decision_id: command.id.clone(),
            nodes: nodes.collect(),
            policies: Vec::new(),
            commands: 0,
            interrupted: false,
        }));
}

/// A command of which nothing survived its validation.
pub(super) fn rejected(shell: &Shell, command: &Command, rejection: &Rejection) {
    let text = text(command);
    info!(command = %text, reason = %rejection, "abandoning disruption attempt");
    shell
        .journal
        .say(format!("dropped {}: {rejection}", command.id));
    let detail = rejection.to_string();
    step(
        shell,
        command,
        CommandStep::Finished,
        OutcomeId::CommandRejected,
        (&[], &detail),
    );
}

/// Writes a step of a command into the ledger. `told` holds the replacements and the detail.
pub(super) fn step(
    shell: &Shell,
    command: &Command,
    step: CommandStep,
    outcome: OutcomeId,
    told: (&[String], &str),
) {
    let (replacements, detail) = told;
    shell.journal.record(Record::Command(CommandRecord {
        at: shell.now(),
        command_id: command.id.clone(),
        step,
        outcome,
        reason: command.reason().to_string(),
        decision: command.decision().to_owned(),
        consolidation_type: command.method.consolidation_type().to_owned(),
        candidates: command
            .candidates
            .iter()
            .map(|it| it.node.clone())
            .collect(),
        candidate_claims: command
            .candidates
            .iter()
            .map(|it| it.claim.clone())
            .collect(),
        replacements: replacements.to_vec(),
        cost_before_per_hour: command.before.price_per_hour,
        cost_after_per_hour: command.after.price_per_hour,
        effective_before_per_hour: command.before.effective_per_hour,
        effective_after_per_hour: command.after.effective_per_hour,
        detail: detail.to_owned(),
    }));
}
