//! Counts of metrics for a command: that it was decided, and each claim that it deletes.
//!
//! Below the entry, whose type it takes: beside it the two would import each other.

use apis::NodeClaim;
use disruption::{Command, CommandCandidate, Execution, Method};

use super::InFlightCommand;
use crate::node_claim::counts::{capacity_type, count_disrupted, count_unhealthy_disrupted};
use crate::node_claim::termination_mode;
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{
    ConsolidationPolicyLabel, ConsolidationTypeLabel, DecisionLabel, NodePoolLabel, ReasonLabel,
    Series, TerminateFirstReasonLabel, TerminationModeLabel, reason_label, reason_word, snake_case,
};
use crate::voluntary_disruption::method_labels;

/// The series of all commands that come to the same by the same method.
pub(super) fn decided(
    command: &Command,
) -> Series<(DecisionLabel, ReasonLabel, ConsolidationTypeLabel)> {
    let decision = DecisionLabel(command.decision());
    let (reason, consolidation_type) = method_labels(command.method);
    Series((decision, reason, consolidation_type))
}

pub(super) fn count_decision(metrics: &Metrics, command: &Command) {
    let series = decided(command);
    metrics.disruption_decisions.get_or_create(&series).inc();
    let Series((decision, reason, consolidation_type)) = series;
    let pools = command.candidates.iter().map(|it| it.pool.as_str());
    let mut pools: Vec<&str> = pools.collect();
    pools.sort_unstable();
    pools.dedup();
    for pool in pools {
        let series = Series((
            NodePoolLabel(pool.to_owned()),
            decision.clone(),
            reason.clone(),
            consolidation_type.clone(),
        ));
        metrics
            .disruption_decisions_by_node_pool
            .get_or_create(&series)
            .inc();
    }
    if let Execution::TerminateFirst(why) = &command.execution {
        for candidate in &command.candidates {
            let series = Series((
                NodePoolLabel(candidate.pool.clone()),
                reason_label(command.reason()),
                TerminateFirstReasonLabel(why.as_str()),
            ));
            metrics
                .terminate_first_decisions
                .get_or_create(&series)
                .inc();
        }
    }
}

pub(super) fn count_deletion(
    metrics: &Metrics,
    InFlightCommand { command, snapshot }: &InFlightCommand<'_>,
    candidate: &CommandCandidate,
    claim: &NodeClaim,
) {
    let reason = reason_word(command.reason());
    let pool = snapshot.node_pool(&candidate.pool);
    let policy =
        pool.map(|pool| snake_case(&pool.spec.disruption.consolidation_policy.to_string()));
    let is_by_policy = command.method.is_consolidation() || command.method == Method::Emptiness;
    let policy = policy.filter(|_| is_by_policy).unwrap_or_default();
    count_disrupted(metrics, claim, &reason, Some(&policy));
    if let Some(repair_reason) = &command.repair_reason {
        let (condition, bound) = (&repair_reason.fault.condition, repair_reason.policy_bound);
        count_unhealthy_disrupted(metrics, claim, condition, bound);
    }
    let initiated = Series((
        reason_label(command.reason()),
        NodePoolLabel(candidate.pool.clone()),
        capacity_type(claim),
        ConsolidationPolicyLabel(policy),
        TerminationModeLabel(termination_mode(claim)),
    ));
    metrics
        .pods_disruption_initiated
        .get_or_create(&initiated)
        .inc_by(u64::from(candidate.pods));
}
