//! One loop at work on a scene: what every method does alike with the candidates that it found.
//!
//! Puts them into the policy's order, draws on budgets, asks the policy for verdicts, makes commands and notes why a
//! node stays. Which nodes, and what becomes of them, is in the file of each method.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use hooks::columns::saturated;
use hooks::disruption::{BudgetReason, Verdict, VerdictDecision};
use state::ledger::{NodeOutcome, OutcomeId};

use crate::budgets::Budgets;
use crate::candidate::{Blocked, Candidate};
use crate::command::{Approved, Command, Cost, Proposal};
use crate::consolidation::eligibility::NodeRule;
use crate::decision::Decision;
use crate::findings::{self, Findings, LastWord};
use crate::memory::Memory;
use crate::method::Method;
use crate::node_finding::NodeFinding;
use crate::obstacle::Obstacle;
use crate::preferred::Deferred;
use crate::scene::{CostBasis, PricedSimulator, Scene};
use crate::scored::{self, ScoredMove};

/// The longest that a policy may hold a node back without being asked again.
const HOLD_SECONDS_MAX: u32 = 3_600;
/// While nodes come to rest, the next loop comes this soon.
const STABILIZING_SECONDS: u32 = 3;

/// Why a node was not reached.
pub(crate) const CUT_OFF: &str = "the scan was cut off";

/// State of a loop while its methods look: memory, findings and verdicts so far.
pub(crate) struct Scan<'s, 'a> {
    pub(crate) scene: &'s Scene<'a>,
    /// Knowledge for the next loop.
    pub(crate) memory: Memory,
    /// Moves of this loop that do not pay yet.
    pub(crate) deferred: Deferred,
    findings: Findings<'s>,
    scored: Vec<ScoredMove>,
    /// Costs by which policies are asked from now on.
    basis: CostBasis<'s>,
    /// The candidates in the policy's order, once it was asked; whether moves were weighed meanwhile does not matter.
    order: Option<Vec<&'s Candidate>>,
    eligible: BTreeMap<Method, u32>,
    cut_short: Option<Method>,
    looks_again_soon: bool,
}

impl<'s, 'a> Scan<'s, 'a> {
    /// Nothing found yet; of what the loop before left behind, what still counts.
    pub(crate) fn new(scene: &'s Scene<'a>) -> Self {
        let mut memory = scene.input.memory.clone();
        let now = scene.input.options.now;
        memory.holds.retain(|_, until| *until > now);
        let judges = scene.judges();
        if memory.judges != judges {
            memory.holds.clear();
            memory.nothing_found.clear();
            memory.judges = judges;
        }
        Self {
            scene,
            memory,
            deferred: Deferred::default(),
            findings: Findings::default(),
            scored: Vec::new(),
            basis: scene.first_basis(),
            order: None,
            eligible: BTreeMap::new(),
            cut_short: None,
            looks_again_soon: false,
        }
    }

    /// What moves are simulated and weighed by. From then on all reckons with what the ranking policy says now.
    pub(crate) fn weigh(&mut self) -> PricedSimulator<'s, 'a> {
        self.basis = CostBasis::Asked;
        self.scene.priced_simulator()
    }

    /// Cost of a candidate; asks nobody where an earlier loop knew it and no move was weighed yet.
    pub(crate) fn cost(&self, candidate: &Candidate) -> Cost {
        self.scene.costs(self.basis).of(candidate)
    }

    /// Nodes come to rest within seconds: the next loop comes soon.
    pub(crate) const fn look_again_soon(&mut self) {
        self.looks_again_soon = true;
    }

    /// Says why a node stays.
    pub(crate) fn note(&mut self, candidate: &'s Candidate, obstacle: Obstacle) {
        self.findings.note(candidate, NodeFinding::Kept(obstacle));
    }

    /// Says why a move is not made, if it is about one node: what keeps several together may keep none of them.
    pub(crate) fn note_alone(&mut self, proposal: &Proposal<'s>, obstacle: Obstacle) {
        if let [candidate] = proposal.candidates[..] {
            self.note(candidate, obstacle);
        }
    }

    /// Findings on these drifted nodes outlast those of consolidation.
    pub(crate) fn keep_of_drift(&mut self, drifted: &[&'s Candidate]) {
        self.findings.keep_of_drift(drifted);
    }

    /// So many nodes are eligible for the method.
    pub(crate) fn count(&mut self, method: Method, eligible: usize) {
        self.eligible.insert(method, saturated(eligible));
    }

    /// The method is done, or was cut short.
    pub(crate) fn note_done(&mut self, method: Method) {
        if method.is_consolidation() && self.scene.interrupt.is_tripped() {
            self.cut_short.get_or_insert(method);
        }
    }

    /// The candidates that the rules of consolidation let pass, and that no policy holds back.
    pub(crate) fn retain_eligible(
        &mut self,
        candidates: impl Iterator<Item = &'s Candidate>,
        rules: NodeRule,
    ) -> Vec<&'s Candidate> {
        let mut eligible = Vec::new();
        for candidate in candidates {
            match rules(self.scene, candidate) {
                Ok(()) if self.note_if_held(candidate) => {}
                Ok(()) => eligible.push(candidate),
                Err(obstacle) => self.note(candidate, obstacle),
            }
        }
        eligible
    }

    /// Leaves out nodes with a pod that blocks the method.
    pub(crate) fn retain_unblocked(
        &mut self,
        mut candidates: Vec<&'s Candidate>,
        method: Method,
    ) -> Vec<&'s Candidate> {
        candidates.retain(|candidate| {
            let block = candidate.block(method.class());
            if let Some(block) = block {
                self.note(candidate, block.clone());
            }
            block.is_none()
        });
        candidates
    }

    /// The candidates in the policy's order; those it skips are left out.
    pub(crate) fn put_in_order(&mut self, candidates: &[&'s Candidate]) -> Vec<&'s Candidate> {
        let named = candidates.iter().map(|it| (it.name(), *it));
        let mut left: BTreeMap<&str, &'s Candidate> = named.collect();
        let (scene, basis) = (self.scene, self.basis);
        let order = self.order.get_or_insert_with(|| scene.ask_order(basis));
        let mut ordered = order.clone();
        ordered.retain(|it| left.remove(it.name()).is_some());
        for candidate in left.into_values() {
            self.note(candidate, OutcomeId::NodePolicySkipped.into());
        }
        ordered
    }

    /// The first candidates that the budgets allow to go together.
    pub(crate) fn retain_within(
        &mut self,
        candidates: &[&'s Candidate],
        method: Method,
    ) -> Vec<&'s Candidate> {
        let mut left = self.scene.budgets.remaining.clone();
        self.retain_allowed(candidates, method, |pool, reason| left.take(pool, reason))
    }

    /// The candidates each of which might go by itself. One that cannot go in the end is not in the way of the others.
    pub(crate) fn retain_each_within(
        &mut self,
        candidates: &[&'s Candidate],
        method: Method,
    ) -> Vec<&'s Candidate> {
        let left = &self.scene.budgets.remaining;
        self.retain_allowed(candidates, method, |pool, reason| left.of(pool, reason) > 0)
    }

    /// The candidates whose pool the predicate allows; the others are told of their budget.
    fn retain_allowed(
        &mut self,
        candidates: &[&'s Candidate],
        method: Method,
        mut is_allowed: impl FnMut(&str, BudgetReason) -> bool,
    ) -> Vec<&'s Candidate> {
        let mut kept = Vec::new();
        for &candidate in candidates {
            if is_allowed(candidate.pool(), method.budget_reason()) {
                kept.push(candidate);
            } else {
                self.note_out_of_budget(candidate, method);
            }
        }
        kept
    }

    /// The scan was cut off before it came to these nodes.
    pub(crate) fn note_cut_off(&mut self, untried: &[&'s Candidate]) {
        for candidate in untried {
            let cut_off = Obstacle::new(OutcomeId::NodeNotReached, CUT_OFF);
            self.note(candidate, cut_off);
        }
    }

    /// The budget of its pool keeps the node.
    pub(crate) fn note_out_of_budget(&mut self, candidate: &'s Candidate, method: Method) {
        let budgets = &self.scene.budgets;
        let why = budgets.why(candidate.pool(), method.budget_reason());
        self.note(
            candidate,
            Obstacle::new(OutcomeId::NodeBudgetExhausted, why),
        );
    }

    /// Asks the policy once about all proposals; what it refuses is noted. A missing verdict approves nothing.
    pub(crate) fn ask_verdicts(&mut self, proposals: Vec<Proposal<'s>>) -> Vec<Approved<'s>> {
        if proposals.is_empty() {
            return Vec::new();
        }
        let judged = self.scene.judge(&proposals, self.basis);
        let round = self.scene.round(self.basis);
        let mut approved = Vec::new();
        for (proposal, judged) in proposals.into_iter().zip(judged) {
            if proposal.method.is_consolidation() {
                self.scored.push(ScoredMove::of(round, &proposal, &judged));
            }
            let verdict = judged.verdict;
            match verdict.decision {
                VerdictDecision::Approve => approved.push(Approved { proposal, verdict }),
                VerdictDecision::Reject => {
                    let refused =
                        Obstacle::new(OutcomeId::NodePolicyRejected, verdict_text(&verdict));
                    self.note_alone(&proposal, refused);
                }
                VerdictDecision::Hold => {
                    let held = Obstacle::new(OutcomeId::NodePolicyHeld, verdict_text(&verdict));
                    self.note_alone(&proposal, held);
                    for candidate in proposal.candidates {
                        self.hold(candidate, verdict.retry_after_seconds);
                    }
                }
            }
        }
        approved
    }

    /// Whether a policy holds the node back, which is then said of it.
    pub(crate) fn note_if_held(&mut self, candidate: &'s Candidate) -> bool {
        let Some(until) = self.memory.holds.get(candidate.claim()) else {
            return false;
        };
        let held = Obstacle::new(OutcomeId::NodePolicyHeld, format!("until {until}"));
        self.note(candidate, held);
        true
    }

    fn hold(&mut self, candidate: &Candidate, seconds: u32) {
        let seconds = seconds.min(HOLD_SECONDS_MAX);
        let pause = jiff::SignedDuration::from_secs(i64::from(seconds));
        let now = self.scene.input.options.now;
        if let Ok(until) = now.saturating_add(pause) {
            let claim = candidate.claim().to_owned();
            self.memory.holds.insert(claim, until);
        }
    }

    /// Makes a command of an approved move, whose nodes count as chosen from then on.
    pub(crate) fn command(&mut self, approved: Approved<'s>) -> Command {
        let (scene, proposal) = (self.scene, &approved.proposal);
        let outcome = proposal.method.chosen();
        for candidate in &proposal.candidates {
            let chosen = NodeFinding::Chosen {
                outcome,
                reason: verdict_text(&approved.verdict),
            };
            self.findings.note(candidate, chosen);
        }
        let first = proposal.candidates.first();
        let id = format!(
            "{}-{}-{}",
            proposal.method.reason().as_str().to_lowercase(),
            first.map_or("", |it| it.claim()),
            scene.input.options.now.as_second(),
        );
        Command::new(id, approved, |it| self.cost(it))
    }

    /// One outcome for every node.
    pub(crate) fn finish(mut self, commands: Vec<Command>) -> Decision {
        let scene = self.scene;
        let outcomes = scene.blocked.iter().map(findings::blocked_outcome);
        let mut outcomes: Vec<NodeOutcome> = outcomes.collect();
        let mut blocked: Vec<Blocked> = scene.blocked.clone();
        self.memory.kept.clear();
        let claims: BTreeSet<&str> = scene.candidates.iter().map(Candidate::claim).collect();
        self.memory.preferred.keep(&claims, self.deferred);
        if let Some(costs) = scene.effective_costs() {
            self.memory.costs.clone_from(costs);
        }
        for candidate in &scene.candidates {
            let LastWord {
                finding,
                keeps_drifted,
            } = self.findings.of(candidate, scene, &commands);
            outcomes.push(findings::outcome(candidate, &finding));
            if let NodeFinding::Kept(obstacle) = finding {
                if keeps_drifted {
                    blocked.extend(findings::blocked_drift(candidate, &obstacle));
                }
                // Whatever else keeps the node, it is told of the pod in its way.
                let block = candidate.pod_block.clone();
                blocked.extend(block.map(|it| Blocked::new(&candidate.node, it)));
                let claim = candidate.claim().to_owned();
                self.memory.kept.insert(claim, obstacle);
            }
        }
        outcomes.sort_by(|a, b| a.node.cmp(&b.node));
        Decision {
            scored: scored::counted(self.scored, &commands),
            commands,
            outcomes,
            blocked,
            next_look_seconds: next_look(&scene.budgets, self.looks_again_soon),
            budgets: scene.budgets.clone(),
            uses: scene.uses(),
            memory: self.memory,
            eligible: self.eligible,
            is_interrupted: scene.interrupt.is_tripped(),
            cut_short: self.cut_short,
            decision_id: scene.context.decision_id.clone(),
        }
    }
}

/// When what was found may change although nothing happens.
fn next_look(budgets: &Budgets, looks_again_soon: bool) -> Option<NonZero<u32>> {
    let soon = NonZero::new(STABILIZING_SECONDS).filter(|_| looks_again_soon);
    soon.into_iter().chain(budgets.valid_for_seconds).min()
}

/// A verdict in words.
fn verdict_text(verdict: &Verdict) -> String {
    let Verdict { reason, score, .. } = verdict;
    if reason.is_empty() {
        return format!("score {score:.4}");
    }
    format!("{reason} (score {score:.4})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_without_a_reason_is_its_score() {
        for (reason, expected) in [
            ("saves cost", "saves cost (score 0.5000)"),
            ("", "score 0.5000"),
        ] {
            let verdict = Verdict {
                decision: VerdictDecision::Approve,
                score: 0.5,
                reason: reason.to_owned(),
                retry_after_seconds: 0,
            };
            assert_eq!(verdict_text(&verdict), expected);
        }
    }
}
