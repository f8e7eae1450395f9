//! Repair: sick nodes are rebooted or replaced, one a loop, the most urgent first.
//!
//! It goes before every other method and looks at nodes that the others may not touch: those that are not
//! initialized and those that carry do-not-disrupt. Answers to Karpenter's `disruption/repair.go`.

mod policies;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::duration::GoDuration;
use apis::labels;
use scheduling::Interrupt;
use state::ledger::OutcomeId;
use state::{Snapshot, StateNode};

pub use policies::{Diagnosis, PolicyFault, RepairAction, RepairPolicies, RepairPolicy};

use crate::budgets::Budgets;
use crate::candidate::{Blocked, Candidate, without_pool};
use crate::command::{Command, Manner, Proposal, Sickness};
use crate::consolidation::Obstacle;
use crate::decide::{Hooks, Input};
use crate::hooks::{BudgetReason, Verdict, VerdictDecision};
use crate::method::{DisruptionClass, Method};
use crate::simulation::{Purpose, Simulator};
use crate::static_drift::{self, Standing};
use crate::{drift, history};

/// So many reboots in a day did not help, so the node is replaced.
const REBOOTS_MAX: usize = 2;
/// A pool of which more than this share is sick has a trouble that replacing nodes does not end.
const BREAKER_PERCENT: usize = 20;

/// What came of a look at all nodes.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    /// At most one.
    pub(crate) command: Option<Command>,
    /// What stands in the way of the sick nodes, by name of the node.
    pub(crate) findings: BTreeMap<String, Obstacle>,
    /// For events.
    pub(crate) blocked: Vec<Blocked>,
    /// Sick nodes that might go.
    pub(crate) eligible: u32,
}

/// A sick node that may be repaired.
struct Patient {
    candidate: Candidate,
    diagnosis: Diagnosis,
}

/// Looks at every node; at most one command.
pub(crate) fn look(
    input: &Input<'_>,
    hooks: Hooks<'_>,
    budgets: &Budgets,
    interrupt: &Interrupt,
) -> Repaired {
    let Some(policies) = input.repair else {
        return Repaired::default();
    };
    let mut repaired = Repaired::default();
    let mut patients = patients(input, policies, &mut repaired);
    repaired.eligible = u32::try_from(patients.len()).unwrap_or(u32::MAX);
    patients.sort_by(|a, b| {
        b.diagnosis
            .score
            .total_cmp(&a.diagnosis.score)
            .then_with(|| {
                let cost = |it: &Patient| it.candidate.disruption_cost;
                cost(a).total_cmp(&cost(b))
            })
            .then_with(|| a.candidate.name().cmp(b.candidate.name()))
    });
    let mut ward = Ward {
        input,
        hooks,
        interrupt,
        budgets,
        simulator: None,
    };
    for patient in patients {
        match ward.treat(policies, &patient) {
            Ok(command) => {
                let outcome = match command.manner {
                    Manner::Reboot => OutcomeId::NodeChosenReboot,
                    Manner::ReplaceFirst | Manner::TerminateFirst(_) => {
                        OutcomeId::NodeChosenUnhealthy
                    }
                };
                let name = patient.candidate.name().to_owned();
                let reason = command.policy_reason.clone();
                repaired
                    .findings
                    .insert(name, Obstacle::new(outcome, reason));
                repaired.command = Some(command);
                break;
            }
            Err(obstacle) => repaired.find(&patient.candidate.node, obstacle, ""),
        }
    }
    repaired
}

/// Sick nodes that nothing about themselves keeps from repair.
fn patients(input: &Input<'_>, policies: &RepairPolicies, repaired: &mut Repaired) -> Vec<Patient> {
    let now = input.options.now;
    let mut patients = Vec::new();
    for node in input.snapshot.nodes().filter(|it| is_open(input, it)) {
        let Some(diagnosis) = policies.diagnose(node, now) else {
            continue;
        };
        if let Some((outcome, reason)) = without_pool(input.snapshot, input.types, node) {
            let reason = format!(
                "{reason}; condition {} is not repaired",
                diagnosis.condition
            );
            let about = &diagnosis.condition;
            repaired.find(node, Obstacle::new(outcome, reason), about);
            continue;
        }
        if is_vetoed(node) {
            let reason = "Repair is blocked through the \"karpenter.sh/do-not-repair\" annotation";
            let vetoed = Obstacle::new(OutcomeId::NodeDoNotRepair, reason);
            repaired.find(node, vetoed, "");
            continue;
        }
        // Pods may be on their way to it, and what they asked for is about to come.
        if node.is_initialized() && node.is_nominated(now) {
            continue;
        }
        let Some(candidate) = Candidate::of(input.snapshot, input.types, node, now) else {
            continue;
        };
        let block = candidate.block(DisruptionClass::Repair);
        if let Some(block) = block.filter(|_| diagnosis.bound.is_none()) {
            let reason = format!("{}; set terminationGracePeriod", block.message);
            let unbounded = Obstacle::new(OutcomeId::NodeRepairUnbounded, reason);
            repaired.find(node, unbounded, &block.about);
            continue;
        }
        patients.push(Patient {
            candidate,
            diagnosis,
        });
    }
    patients
}

/// Whether a node is one that repair may look at at all: ours, joined, and not on its way out.
fn is_open(input: &Input<'_>, node: &StateNode) -> bool {
    let Some(claim) = &node.claim else {
        return false;
    };
    let is_going = node.is_marked_for_deletion() || input.queued.contains(&claim.name);
    node.is_registered() && !is_going && claim.conditions.rebooting_at.is_none()
}

fn is_vetoed(node: &StateNode) -> bool {
    let of_node = node.node.as_ref().map(|it| &it.annotations);
    let of_claim = node.claim.as_ref().map(|it| &it.annotations);
    let says = |key: &str| {
        let annotations = of_node.into_iter().chain(of_claim);
        annotations
            .into_iter()
            .any(|it| it.get(key).is_some_and(|value| value == "true"))
    };
    says(labels::DO_NOT_REPAIR_ANNOTATION)
}

impl Repaired {
    fn find(&mut self, node: &Arc<StateNode>, obstacle: Obstacle, about: &str) {
        let name = node.node_name().unwrap_or_else(|| node.name()).to_owned();
        self.blocked.push(Blocked {
            name: name.clone(),
            node: node.node_name().map(str::to_owned),
            claim: node.claim_name().map(str::to_owned),
            pool: node.node_pool().unwrap_or_default().to_owned(),
            outcome: obstacle.outcome,
            about: about.to_owned(),
            message: Some(obstacle.reason.clone()),
        });
        self.findings.insert(name, obstacle);
    }
}

/// What treatment needs; the simulator is made for the first patient that asks for one.
struct Ward<'i, 'a> {
    input: &'i Input<'a>,
    hooks: Hooks<'i>,
    interrupt: &'i Interrupt,
    budgets: &'i Budgets,
    simulator: Option<Simulator<'i>>,
}

impl Ward<'_, '_> {
    fn treat(&mut self, policies: &RepairPolicies, patient: &Patient) -> Result<Command, Obstacle> {
        let Patient {
            candidate,
            diagnosis,
        } = patient;
        breaker(self.input.snapshot, policies, candidate.pool())?;
        let reason = BudgetReason::Unhealthy;
        if candidate.node.is_initialized() && self.budgets.remaining(candidate.pool(), reason) == 0
        {
            let why = self.budgets.why(candidate.pool(), reason);
            return Err(Obstacle::new(OutcomeId::NodeBudgetExhausted, why));
        }
        let claim = candidate.node.claim.as_ref();
        let own_bound = claim.and_then(|it| it.termination_grace_period);
        let uid = claim.map_or("", |it| it.uid.as_str());
        let now = self.input.options.now;
        let reboots = history::History::reboots(self.input.history, uid, now);
        let is_escalated = diagnosis.action == RepairAction::Reboot && reboots >= REBOOTS_MAX;
        let sickness = Sickness {
            condition: diagnosis.condition.clone(),
            drain_bound: least(diagnosis.bound, own_bound),
            policy_bound: diagnosis.bound,
            is_escalated,
        };
        let proposal = if diagnosis.action == RepairAction::Reboot && !is_escalated {
            stays(candidate)
        } else if candidate.node_pool.is_static() {
            self.replace_static(candidate)?
        } else {
            self.replace(candidate)?
        };
        Ok(command(proposal, candidate, sickness, now.as_second()))
    }

    fn replace_static(&self, candidate: &Candidate) -> Result<Proposal, Obstacle> {
        let standing = Standing::of(self.input.snapshot, &candidate.node_pool);
        standing.check_surplus()?;
        let types = static_drift::types_of(self.input.types, candidate.pool());
        let is_open = self.input.gates.terminate_first_repair;
        static_drift::propose(candidate, types, &standing, (Method::Repair, is_open))
    }

    fn replace(&mut self, candidate: &Candidate) -> Result<Proposal, Obstacle> {
        let (input, interrupt, rank) = (self.input, self.interrupt, self.hooks.rank);
        let simulator = self.simulator.get_or_insert_with(|| {
            let ranking = (rank, input.tables);
            let options = input.options.clone();
            Simulator::new(input.snapshot, input.pools, options, ranking, interrupt)
        });
        drift::renew(
            simulator,
            candidate,
            (Method::Repair, Purpose::Repair),
            || {
                drift::slot_of(candidate, input.gates.terminate_first_repair).map(|slot| {
                    let options = input.options.clone();
                    Simulator::with_slot(
                        input.snapshot,
                        input.pools,
                        options,
                        (rank, slot),
                        interrupt,
                    )
                })
            },
        )
    }
}

/// Whether too much of a pool is sick at once.
fn breaker(snapshot: &Snapshot, policies: &RepairPolicies, pool: &str) -> Result<(), Obstacle> {
    let of_pool = || {
        snapshot
            .nodes()
            .filter(|it| it.node_pool() == Some(pool) && it.node.is_some())
    };
    let (total, sick) = (
        of_pool().count(),
        of_pool().filter(|it| policies.is_unhealthy(it)).count(),
    );
    let tolerated = (total * BREAKER_PERCENT).div_ceil(100);
    if sick <= tolerated {
        return Ok(());
    }
    let reason = format!(
        "{sick} of {total} nodes of nodepool \"{pool}\" are unhealthy, more than {BREAKER_PERCENT}%"
    );
    Err(Obstacle::new(OutcomeId::NodeRepairBreaker, reason))
}

fn least(one: Option<GoDuration>, other: Option<GoDuration>) -> Option<GoDuration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The node that reboots keeps its price and its pods.
fn stays(candidate: &Candidate) -> Proposal {
    Proposal {
        method: Method::Repair,
        manner: Manner::Reboot,
        rows: Vec::new(),
        replacements: Vec::new(),
        destinations: Vec::new(),
        before: candidate.cost,
        after: candidate.cost,
    }
}

fn command(
    proposal: Proposal,
    candidate: &Candidate,
    sickness: Sickness,
    now_seconds: i64,
) -> Command {
    let id = format!("unhealthy-{}-{now_seconds}", candidate.claim());
    let escalated = if sickness.is_escalated {
        ", reboots did not help"
    } else {
        ""
    };
    let verdict = Verdict {
        decision: VerdictDecision::Approve,
        score: 0.0,
        reason: format!("condition {}{escalated}", sickness.condition),
        retry_after_seconds: 0,
    };
    let proposal = Proposal {
        rows: vec![0],
        ..proposal
    };
    Command {
        sickness: Some(sickness),
        ..Command::new(id, proposal, std::slice::from_ref(candidate), verdict)
    }
}
