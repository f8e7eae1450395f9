//! Journal entries of a disruption command, from its announcement to its end.
//!
//! What it does is decided before. Answers to the log lines and counts of `pkg/controllers/disruption`; its Events are
//! worded in `events.rs`.

mod counts;

use std::sync::Arc;

use apis::{CapacityType, NodeClaim};
use disruption::validation::Rejection;
use disruption::{Command, CommandCandidate};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use serde_json::{Value, json};
use state::Snapshot;
use state::ledger::{CommandRecord, CommandStep, DisruptionRound, NodeOutcome, OutcomeId, Record};
use tracing::{info, warn};

use self::counts::{count_decision, count_deletion, decided};
use crate::node_claim::counts::count_unhealthy_disrupted;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::log_values::{AsJson, FirstFew};
use crate::shell::journal::recorder::KubernetesEvent;
use crate::shell::journal::references;
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{Series, consolidation_type_label};
use crate::voluntary_disruption::events;

/// A command, and the cluster in which it takes place.
pub(super) struct InFlightCommand<'a> {
    pub(super) command: &'a Command,
    pub(super) snapshot: &'a Snapshot,
}

/// A step of a command.
pub(super) enum CommandEntry<'a> {
    /// It is about to start.
    Announced,
    /// Candidates are marked and replacements exist; these claims were asked to reboot.
    Started {
        replacements: &'a [NodeClaim],
        rebooting: Vec<Arc<NodeClaim>>,
    },
    /// It waits for replacements, these first of all.
    Waiting {
        replacements: &'a [String],
        on: &'a [String],
    },
    /// It was refused, or fell through, before its nodes were marked.
    NotBegun { why: &'a str },
    /// A candidate's claim was deleted.
    Deleted {
        candidate: &'a CommandCandidate,
        claim: &'a NodeClaim,
    },
    /// A node stays although others of its command go.
    LeftOut {
        candidate: &'a CommandCandidate,
        why: &'a str,
    },
    /// It was given up after it had started.
    GivenUp {
        replacements: &'a [String],
        why: &'a str,
    },
    /// All of it is done.
    Finished { replacements: &'a [String] },
    /// Nodes did not survive its validation. The ledger has them as a scan of their own: the second look.
    Dropped(&'a [(CommandCandidate, Rejection)]),
    /// Nothing survived its validation, for this reason.
    Rejected(&'a str),
}

impl<'a> JournalEntry for CommandEntry<'a> {
    type Subject = InFlightCommand<'a>;

    fn log(&self, InFlightCommand { command, .. }: &InFlightCommand<'a>) {
        match self {
            Self::Announced => {
                info!(
                    command = %text(command),
                    reason = %command.reason(),
                    decision = command.decision(),
                    disrupted_node_count = command.candidates.len(),
                    replacement_node_count = command.replacements().len(),
                    pod_count = command.candidates.iter().map(|it| it.pods).sum::<u32>(),
                    disrupted_nodes = %AsJson(disrupted_nodes(command)),
                    replacement_nodes = %AsJson(replacement_nodes(command)),
                    "disrupting node(s)"
                );
            }
            Self::Deleted { candidate, .. } => {
                let reason = command.reason().to_string();
                info!(NodeClaim = %candidate.claim, Node = %candidate.node, reason, "deleted nodeclaim");
            }
            Self::LeftOut { candidate, why } => {
                warn!(command = %command.id, Node = %candidate.node, reason = why, "leaving node out of the disruption command");
            }
            Self::GivenUp { why, .. } => {
                warn!(command = %command.id, reason = why, "failed terminating nodes while executing a disruption command");
            }
            Self::Rejected(why) => {
                info!(command = %text(command), reason = why, "abandoning disruption attempt");
            }
            Self::Started { .. }
            | Self::Waiting { .. }
            | Self::NotBegun { .. }
            | Self::Finished { .. }
            | Self::Dropped(_) => {}
        }
    }

    fn events(&self, subject: &InFlightCommand<'a>) -> Vec<KubernetesEvent> {
        let command = subject.command;
        match self {
            Self::Announced => {
                let text = text(command);
                let candidates = command.candidates.iter();
                candidates
                    .flat_map(|it| events::candidate(subject.references(it), &text))
                    .collect()
            }
            Self::Started { replacements, .. } => {
                let reason = command.reason().to_string();
                let claims = replacements.iter();
                claims
                    .map(|claim| events::launching(claim, &reason))
                    .collect()
            }
            Self::Deleted { candidate, .. } => {
                let reason = command.reason().to_string();
                events::terminating(subject.references(candidate), &reason).into()
            }
            Self::Dropped(dropped) => {
                let text = text(command);
                let notices = dropped.iter().flat_map(|(candidate, rejection)| {
                    events::rejected(subject.references(candidate), &text, class(rejection))
                });
                notices.collect()
            }
            Self::Waiting { .. }
            | Self::NotBegun { .. }
            | Self::LeftOut { .. }
            | Self::GivenUp { .. }
            | Self::Finished { .. }
            | Self::Rejected(_) => Vec::new(),
        }
    }

    fn measure(&self, subject: &InFlightCommand<'a>, metrics: &Metrics) {
        let command = subject.command;
        match self {
            Self::Started { rebooting, .. } => {
                count_decision(metrics, command);
                if let Some(repair_reason) = &command.repair_reason {
                    let (condition, bound) =
                        (&repair_reason.fault.condition, repair_reason.policy_bound);
                    for claim in rebooting {
                        count_unhealthy_disrupted(metrics, claim, condition, bound);
                    }
                }
            }
            Self::Deleted { candidate, claim } => {
                count_deletion(metrics, subject, candidate, claim);
            }
            Self::GivenUp { replacements, .. } => {
                let is_missing = |name: &&String| {
                    let node = subject.snapshot.node_of_claim(name);
                    node.is_none_or(|it| !it.is_initialized())
                };
                let missing = replacements.iter().filter(is_missing).count();
                metrics
                    .disruption_queue_failures
                    .get_or_create(&decided(command))
                    .inc_by(missing as u64);
            }
            Self::Dropped(dropped) => {
                metrics
                    .failed_validations
                    .get_or_create(&Series(consolidation_type_label(command.method)))
                    .inc_by(dropped.len() as u64);
            }
            Self::Announced
            | Self::Waiting { .. }
            | Self::NotBegun { .. }
            | Self::LeftOut { .. }
            | Self::Finished { .. }
            | Self::Rejected(_) => {}
        }
    }

    fn lines(&self, InFlightCommand { command, .. }: &InFlightCommand<'a>) -> Vec<String> {
        let line = match self {
            Self::Announced => match command.explanation() {
                Some(why) => format!("{} ({why})", text(command)),
                None => text(command),
            },
            Self::LeftOut { candidate, why } => {
                format!("left {} out of {}: {why}", candidate.node, command.id)
            }
            Self::GivenUp { why, .. } => format!("gave up {}: {why}", command.id),
            Self::Rejected(why) => format!("dropped {}: {why}", command.id),
            Self::Started { .. }
            | Self::Waiting { .. }
            | Self::NotBegun { .. }
            | Self::Deleted { .. }
            | Self::Finished { .. }
            | Self::Dropped(_) => return Vec::new(),
        };
        vec![line]
    }

    fn record(
        &self,
        InFlightCommand { command, .. }: &InFlightCommand<'a>,
        at: Timestamp,
    ) -> Option<Record> {
        let of_outcome = |outcome, replacements: &[String], detail: &str| {
            record_of(command, at, outcome, replacements, detail)
        };
        let failed = OutcomeId::CommandFailed;
        Some(Record::Command(match self {
            Self::Announced | Self::Deleted { .. } | Self::Dropped([]) => return None,
            Self::Started { replacements, .. } => {
                let names: Vec<String> = replacements.iter().map(ResourceExt::name_any).collect();
                let why = command.explanation().unwrap_or_default();
                CommandRecord {
                    step: CommandStep::Started,
                    ..of_outcome(OutcomeId::CommandStarted, &names, &why)
                }
            }
            Self::Waiting { replacements, on } => {
                let detail = format!("waiting for {}", on.join(", "));
                CommandRecord {
                    step: CommandStep::Waiting,
                    ..of_outcome(OutcomeId::CommandWaiting, replacements, &detail)
                }
            }
            Self::NotBegun { why } => of_outcome(failed, &[], why),
            Self::LeftOut { candidate, why } => {
                let alone = Command {
                    candidates: vec![(*candidate).clone()],
                    ..(*command).clone()
                };
                record_of(&alone, at, failed, &[], why)
            }
            Self::GivenUp { replacements, why } => of_outcome(failed, replacements, why),
            Self::Finished { replacements } => {
                of_outcome(OutcomeId::CommandSucceeded, replacements, "")
            }
            Self::Dropped(dropped) => {
                return Some(Record::DisruptionRound(second_look(command, dropped, at)));
            }
            Self::Rejected(why) => of_outcome(OutcomeId::CommandRejected, &[], why),
        }))
    }
}

impl InFlightCommand<'_> {
    /// The Node and the NodeClaim of a candidate.
    fn references(&self, candidate: &CommandCandidate) -> [ObjectReference; 2] {
        references::node_and_claim(self.snapshot, &candidate.node, &candidate.claim)
    }
}

/// Nodes that go, as log lines have them.
fn disrupted_nodes(command: &Command) -> Vec<Value> {
    let nodes = command.candidates.iter().map(|it| {
        json!({
            "Node": {"name": it.node},
            "NodeClaim": {"name": it.claim},
            "instance-type": it.instance_type,
            "capacity-type": CapacityType::word(it.capacity_type),
        })
    });
    nodes.collect()
}

/// Nodes that come for them; of one alone its types are named.
fn replacement_nodes(command: &Command) -> Vec<Value> {
    let is_alone = command.replacements().len() == 1;
    let nodes = command.replacements().iter().map(|it| {
        let mut node = json!({"capacity-type": CapacityType::word(it.best.capacity_type)});
        if is_alone {
            let types = FirstFew(it.instance_types.iter()).to_string();
            node["instance-types"] = Value::from(types);
        }
        node
    });
    nodes.collect()
}

fn class(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Churn(_) => "churn",
        Rejection::Budget(_) => "budget",
        Rejection::Scheduling(_) => "scheduling",
    }
}

/// The command in one line, as logs, events and the decision feed show it.
fn text(command: &Command) -> String {
    let nodes: Vec<String> = command
        .candidates
        .iter()
        .map(|it| {
            let capacity_type = CapacityType::word(it.capacity_type);
            let zone = it.zone.as_deref().unwrap_or_default();
            format!("{} ({} {capacity_type} {zone})", it.node, it.instance_type)
        })
        .collect();
    let replacements = match command.replacements().len() {
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

fn second_look(
    command: &Command,
    dropped: &[(CommandCandidate, Rejection)],
    at: Timestamp,
) -> DisruptionRound {
    let nodes = dropped.iter().map(|(candidate, rejection)| NodeOutcome {
        node: candidate.node.clone(),
        claim: Some(candidate.claim.clone()),
        pool: Some(candidate.pool.clone()),
        outcome: rejection.outcome(),
        reason: rejection.to_string(),
    });
    DisruptionRound {
        at,
        decision_id: command.id.clone(),
        nodes: nodes.collect(),
        policies: Vec::new(),
        commands: 0,
        interrupted: false,
    }
}

/// Of a command that is over, unless another step is said.
fn record_of(
    command: &Command,
    at: Timestamp,
    outcome: OutcomeId,
    replacements: &[String],
    detail: &str,
) -> CommandRecord {
    let candidates = || command.candidates.iter();
    CommandRecord {
        at,
        command_id: command.id.clone(),
        step: CommandStep::Finished,
        outcome,
        reason: command.reason().to_string(),
        decision: command.decision().to_owned(),
        consolidation_type: command.method.consolidation_type().to_owned(),
        candidates: candidates().map(|it| it.node.clone()).collect(),
        candidate_claims: candidates().map(|it| it.claim.clone()).collect(),
        replacements: replacements.to_vec(),
        cost_before_per_hour: command.before.price_per_hour,
        cost_after_per_hour: command.after.price_per_hour,
        effective_before_per_hour: command.before.effective_per_hour,
        effective_after_per_hour: command.after.effective_per_hour,
        detail: detail.to_owned(),
    }
}
