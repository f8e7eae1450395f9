//! One entry of the ledger as steps in the story of an object.
//!
//! Words what was recorded, and judges nothing anew.

use scheduling::ranking::PolicyUse;

use super::WhyStep;
use super::words::join;
use crate::ledger::LedgerEntry;
use crate::ledger::outcome::OutcomeId;
use crate::ledger::record::{DisruptionRound, NodeOutcome, ProvisioningRound, Record};
use crate::ledger::subject::Subject;

/// What is told of one entry before it is known which entry.
type StepOutline<'a> = (String, OutcomeId, String, &'a [PolicyUse]);

pub(super) fn steps_of(entry: &LedgerEntry, subject: &Subject) -> Vec<WhyStep> {
    let outline = match &entry.record {
        Record::ProvisioningRound(it) => of_provisioning(it, subject),
        Record::DisruptionRound(it) => of_disruption(it, subject),
        Record::Launch(it) => {
            let offering = format!("{} {} {}", it.instance_type, it.capacity_type, it.zone);
            let reason = join(offering.trim(), &it.reason);
            vec![(it.claim.clone(), it.outcome, reason, it.policies.as_slice())]
        }
        Record::Command(it) => {
            let (before, after) = (it.effective_before_per_hour, it.effective_after_per_hour);
            let is_list = (before - it.cost_before_per_hour).abs() < 1e-9
                && (after - it.cost_after_per_hour).abs() < 1e-9;
            let reckoned = if is_list {
                String::new()
            } else {
                format!(", {before:.4} to {after:.4} as the ranking policy reckons")
            };
            let outline = format!(
                "{} {}: {} go, {} come; {:.4} to {:.4} USD an hour{reckoned}",
                it.decision,
                it.reason,
                it.candidates.join(" "),
                it.replacements.len(),
                it.cost_before_per_hour,
                it.cost_after_per_hour
            );
            let reason = join(&outline, &it.detail);
            vec![(it.command_id.clone(), it.outcome, reason, [].as_slice())]
        }
        Record::Termination(it) => {
            let reason = join(&it.pods.join(" "), &it.reason);
            vec![(it.node.clone(), it.outcome, reason, [].as_slice())]
        }
        Record::Placement(it) => {
            let reason = format!("planned for {}, bound to {}", it.planned, it.node);
            vec![(it.pod.clone(), it.outcome, reason, [].as_slice())]
        }
    };
    let decision_id = match &entry.record {
        Record::ProvisioningRound(it) => it.decision_id.as_str(),
        Record::DisruptionRound(it) => it.decision_id.as_str(),
        // The ranking before a launch is asked under the name of the claim.
        Record::Launch(it) => it.claim.as_str(),
        Record::Command(_) | Record::Termination(_) | Record::Placement(_) => "",
    };
    let step = |(about, outcome, reason, policies): StepOutline<'_>| WhyStep {
        at: entry.record.at(),
        last_at: entry.last_at,
        times: entry.times,
        sequence: entry.sequence,
        about,
        code: outcome.code(),
        outcome,
        meaning: outcome.meaning().to_owned(),
        reason,
        policies: policies.to_vec(),
        decision_id: decision_id.to_owned(),
        parts: Vec::new(),
    };
    outline.into_iter().map(step).collect()
}

fn of_provisioning<'a>(round: &'a ProvisioningRound, subject: &Subject) -> Vec<StepOutline<'a>> {
    let (_, name) = subject.words();
    let policies = round.policies.as_slice();
    let concerned = round.pods.iter().filter(|group| match subject {
        Subject::Pod(key) => group.pods.contains(key),
        Subject::Node(name) | Subject::Claim(name) => group.target == *name,
        Subject::Pool(_) => false,
    });
    let groups = concerned.map(|group| {
        let about = match subject {
            Subject::Pod(_) => name.to_owned(),
            Subject::Node(_) | Subject::Claim(_) | Subject::Pool(_) => group.pods.join(" "),
        };
        let reason = join(&group.target, &group.reason);
        (about, group.outcome, reason, policies)
    });
    let pools = round.pools.iter().filter(|pool| match subject {
        Subject::Pool(name) => pool.pool == *name,
        Subject::Pod(_) | Subject::Node(_) | Subject::Claim(_) => false,
    });
    let pools = pools.map(|pool| {
        (
            pool.pool.clone(),
            pool.outcome,
            pool.reason.clone(),
            policies,
        )
    });
    let claims = round.claims.iter().filter(|claim| claim.claim == name);
    let claims = claims.map(|claim| {
        let reason = format!(
            "best of {} types is {}, {:.4} USD an hour, for {} pods {}",
            claim.instance_types_total,
            claim.instance_types.first().map_or("", String::as_str),
            claim.price_per_hour,
            claim.pods,
            claim.note
        );
        let reason = reason.trim_end().to_owned();
        (claim.claim.clone(), claim.outcome, reason, policies)
    });
    groups.chain(pools).chain(claims).collect()
}

fn of_disruption<'a>(round: &'a DisruptionRound, subject: &Subject) -> Vec<StepOutline<'a>> {
    let policies = round.policies.as_slice();
    match subject {
        Subject::Pool(pool) => summary(&round.nodes, pool)
            .into_iter()
            .map(|(outcome, outline)| (pool.clone(), outcome, outline, policies))
            .collect(),
        Subject::Node(_) | Subject::Claim(_) | Subject::Pod(_) => round
            .nodes
            .iter()
            .filter(|node| node.is_about(subject))
            .map(|node| {
                (
                    node.node.clone(),
                    node.outcome,
                    node.reason.clone(),
                    policies,
                )
            })
            .collect(),
    }
}

/// The nodes of a pool by what came of them.
fn summary(nodes: &[NodeOutcome], pool: &str) -> Vec<(OutcomeId, String)> {
    let mut by_outcome = std::collections::BTreeMap::<OutcomeId, Vec<&NodeOutcome>>::new();
    for node in nodes.iter().filter(|it| it.is_of_pool(pool)) {
        by_outcome.entry(node.outcome).or_default().push(node);
    }
    let outline_of = |(outcome, nodes): (OutcomeId, Vec<&NodeOutcome>)| {
        let example = nodes.first().map(|it| join(&it.node, &it.reason));
        let outline = format!(
            "{} nodes, such as {}",
            nodes.len(),
            example.unwrap_or_default()
        );
        (outcome, outline)
    };
    by_outcome.into_iter().map(outline_of).collect()
}
