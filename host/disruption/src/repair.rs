//! Repair: sick nodes are rebooted or replaced, one a loop, the most urgent first.
//!
//! It goes before every other method and looks at nodes that the others may not touch: those that are not
//! initialized and those that carry do-not-disrupt. Answers to Karpenter's `disruption/repair.go`.

pub(crate) mod policies;

use std::collections::BTreeMap;

use apis::duration::GoDuration;
use apis::{RepairAction, labels};
use hooks::columns::saturated;
use hooks::disruption::{Verdict, VerdictDecision};
use state::ledger::OutcomeId;
use state::{Snapshot, StateNode};

pub use policies::{
    Diagnosis, InvalidRepairPolicies, NodeFault, OverdueCondition, PolicyFault, RepairPolicies,
};

use crate::candidate::{Blocked, Candidate, types_of};
use crate::command::{Approved, Command, Cost, Execution, RepairReason};
use crate::input::DisruptionInput;
use crate::method::{DisruptionClass, Method};
use crate::node_finding::NodeFinding;
use crate::obstacle::Obstacle;
use crate::renewal::{self, Renewal, RenewalOrder};
use crate::scene::Scene;
use crate::simulation::Purpose;
use crate::static_drift::{self, NodeCounts};

const METHOD: Method = Method::Repair;
/// So many reboots in a day did not help, so the node is replaced.
const REBOOTS_MAX: usize = 2;
/// A pool of which more than this share is sick has a trouble that replacing nodes does not end.
const BREAKER_PERCENT: usize = 20;

/// Result of a look at all nodes.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    /// Command to carry out, at most one.
    pub(crate) command: Option<Command>,
    /// Findings on the sick nodes, by name of the node.
    pub(crate) findings: BTreeMap<String, NodeFinding>,
    /// Sick nodes that may not be disrupted, for events.
    pub(crate) blocked: Vec<Blocked>,
    /// Sick nodes that might go.
    pub(crate) eligible: u32,
}

/// A sick node that may be repaired. The other methods may not touch it, so the scene has it not.
struct RepairCandidate {
    candidate: Candidate,
    diagnosis: Diagnosis,
}

/// Looks at every node; at most one command.
pub(crate) fn look(scene: &Scene<'_>, policies: &RepairPolicies) -> Repaired {
    let mut repaired = Repaired::default();
    let mut candidates = candidates(scene.input, policies, &mut repaired);
    repaired.eligible = saturated(candidates.len());
    candidates.sort_by(|a, b| {
        let (one, other) = (&a.candidate, &b.candidate);
        let by_urgency = b.diagnosis.score.total_cmp(&a.diagnosis.score);
        by_urgency
            .then_with(|| one.cost_for_life_left.total_cmp(&other.cost_for_life_left))
            .then_with(|| one.name().cmp(other.name()))
    });
    for sick in candidates {
        match repair(scene, policies, &sick) {
            Ok(command) => {
                let outcome = match command.execution {
                    Execution::Reboot => OutcomeId::NodeChosenReboot,
                    Execution::ReplaceFirst(_) | Execution::TerminateFirst(_) => METHOD.chosen(),
                };
                let name = sick.candidate.name().to_owned();
                let reason = command.explanation().unwrap_or_default();
                let chosen = NodeFinding::Chosen { outcome, reason };
                repaired.findings.insert(name, chosen);
                repaired.command = Some(command);
                break;
            }
            Err(obstacle) => repaired.keep(&sick.candidate.node, obstacle),
        }
    }
    repaired
}

/// Sick nodes that nothing about themselves keeps from repair.
fn candidates(
    input: &DisruptionInput,
    policies: &RepairPolicies,
    repaired: &mut Repaired,
) -> Vec<RepairCandidate> {
    let now = input.options.now;
    let mut candidates = Vec::new();
    for node in input.snapshot.nodes().filter(|it| is_open(input, it)) {
        let Some(diagnosis) = policies.diagnose(node, now) else {
            continue;
        };
        let candidate = match Candidate::of(&input.snapshot, &input.types, node, now) {
            Ok(candidate) => candidate,
            Err(missing) => {
                let condition = &diagnosis.fault.condition;
                let message = format!("{}; condition {condition} is not repaired", missing.message);
                let obstacle = Obstacle::new(missing.outcome, message).about(condition);
                repaired.keep(node, obstacle);
                continue;
            }
        };
        if is_vetoed(node) {
            let reason = "Repair is blocked through the \"karpenter.sh/do-not-repair\" annotation";
            let vetoed = Obstacle::new(OutcomeId::NodeDoNotRepair, reason);
            repaired.keep(node, vetoed);
            continue;
        }
        // Pods may be on their way to it, and what they asked for is about to come.
        if node.is_initialized() && node.is_nominated(now) {
            continue;
        }
        let block = candidate.block(DisruptionClass::Repair);
        if let Some(block) = block.filter(|_| diagnosis.bound.is_none()) {
            let unbounded = Obstacle {
                outcome: OutcomeId::NodeRepairUnbounded,
                message: format!("{}; set terminationGracePeriod", block.message),
                about: block.about.clone(),
            };
            repaired.keep(node, unbounded);
            continue;
        }
        candidates.push(RepairCandidate {
            candidate,
            diagnosis,
        });
    }
    candidates
}

/// Whether a node is one that repair may look at at all: ours, joined, and not on its way out.
fn is_open(input: &DisruptionInput, node: &StateNode) -> bool {
    let Some(claim) = node.claim() else {
        return false;
    };
    let is_going = node.is_marked_for_deletion() || input.queued.contains(&claim.name);
    node.is_registered() && !is_going && claim.conditions.rebooting_at.is_none()
}

fn is_vetoed(node: &StateNode) -> bool {
    let of_node = node.node().map(|it| &it.annotations);
    let of_claim = node.claim().map(|it| &it.annotations);
    let says = |key: &str| {
        let annotations = of_node.into_iter().chain(of_claim);
        annotations
            .into_iter()
            .any(|it| it.get(key).is_some_and(|value| value == "true"))
    };
    says(labels::DO_NOT_REPAIR_ANNOTATION)
}

impl Repaired {
    /// Something keeps a sick node.
    fn keep(&mut self, node: &StateNode, obstacle: Obstacle) {
        let told = Obstacle {
            message: obstacle.without_rule(),
            ..obstacle.clone()
        };
        let blocked = Blocked::new(node, told);
        let finding = NodeFinding::Kept(obstacle);
        self.findings.insert(blocked.name.clone(), finding);
        self.blocked.push(blocked);
    }
}

/// A reboot or a replacement, within the budget.
fn repair(
    scene: &Scene<'_>,
    policies: &RepairPolicies,
    unhealthy: &RepairCandidate,
) -> Result<Command, Obstacle> {
    let RepairCandidate {
        candidate,
        diagnosis,
    } = unhealthy;
    let (input, budgets) = (scene.input, &scene.budgets);
    breaker(&input.snapshot, policies, candidate.pool())?;
    let reason = METHOD.budget_reason();
    if candidate.node.is_initialized() && budgets.remaining.of(candidate.pool(), reason) == 0 {
        let why = budgets.why(candidate.pool(), reason);
        return Err(Obstacle::new(OutcomeId::NodeBudgetExhausted, why));
    }
    let claim = candidate.node.claim();
    let own_bound = claim.and_then(|it| it.termination_grace_period);
    let uid = claim.map_or("", |it| it.uid.as_str());
    let now = input.options.now;
    let reboots = input.history.reboots(uid, now);
    let is_escalated = diagnosis.action == RepairAction::Reboot && reboots >= REBOOTS_MAX;
    let repair_reason = RepairReason {
        fault: diagnosis.fault.clone(),
        drain_bound: least(diagnosis.bound, own_bound),
        policy_bound: diagnosis.bound,
        is_escalated,
    };
    let order = RenewalOrder::of_repair(input.gates);
    let renewal = if diagnosis.action == RepairAction::Reboot && !is_escalated {
        Renewal {
            execution: Execution::Reboot,
            destinations: Vec::new(),
        }
    } else if candidate.node_pool.is_static() {
        let counts = NodeCounts::of(&input.snapshot, &candidate.node_pool);
        counts.check_surplus()?;
        let types = types_of(&input.types, candidate.pool());
        static_drift::renew(candidate, types, &counts, order)?
    } else {
        renewal::renew(scene, candidate, Purpose::Repair, order)?
    };
    Ok(command(renewal, candidate, repair_reason, now.as_second()))
}

/// Whether so many of some nodes are sick at once that the trouble is not theirs.
pub fn trips_breaker(unhealthy: usize, total: usize) -> bool {
    unhealthy > (total * BREAKER_PERCENT).div_ceil(100)
}

/// Whether too much of a pool is sick at once.
fn breaker(snapshot: &Snapshot, policies: &RepairPolicies, pool: &str) -> Result<(), Obstacle> {
    let of_pool = || {
        snapshot
            .nodes()
            .filter(|it| it.node_pool() == Some(pool) && it.node().is_some())
    };
    let (total, unhealthy) = (
        of_pool().count(),
        of_pool().filter(|it| policies.is_unhealthy(it)).count(),
    );
    if !trips_breaker(unhealthy, total) {
        return Ok(());
    }
    let reason = format!(
        "{unhealthy} of {total} nodes of nodepool \"{pool}\" are unhealthy, more than {BREAKER_PERCENT}%"
    );
    Err(Obstacle::new(OutcomeId::NodeRepairBreaker, reason))
}

fn least(one: Option<GoDuration>, other: Option<GoDuration>) -> Option<GoDuration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn command(
    renewal: Renewal,
    candidate: &Candidate,
    repair_reason: RepairReason,
    now_seconds: i64,
) -> Command {
    let id = format!("unhealthy-{}-{now_seconds}", candidate.claim());
    // No policy is asked, and so none says why, or what the node is worth.
    let verdict = Verdict {
        decision: VerdictDecision::Approve,
        score: 0.0,
        reason: String::new(),
        retry_after_seconds: 0,
    };
    let cost = |it: &Candidate| Cost::at_list_price(it.price_per_hour);
    let proposal = renewal.proposal(candidate, cost(candidate), METHOD);
    Command {
        repair_reason: Some(repair_reason),
        ..Command::new(id, Approved { proposal, verdict }, cost)
    }
}
