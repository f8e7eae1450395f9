//! The methods at work on one set of candidates, sharing the table, the budgets and the simulator.
//!
//! Each method leaves a finding on every row it looked at; the last one stands.

mod consolidating;
mod policies;
mod renewal;

use std::collections::{BTreeMap, BTreeSet};

use scheduling::Interrupt;
use scheduling::problem::Options;
use scheduling::ranking::PolicyUse;
use state::ledger::{NodeOutcome, OutcomeId};

use super::{Decision, Hooks, Input, Memory, NothingFound, look_again_seconds};
use crate::appraisal::{appraise, price};
use crate::budgets::{Budgets, Targets};
use crate::candidate::{Blocked, Candidate};
use crate::command::{Command, Proposal};
use crate::consolidation::{self, Floor, Obstacle, Prices};
use crate::drift;
use crate::emptiness;
use crate::hooks::{Context, Verdict};
use crate::method::Method;
use crate::preferred::Deferred;
use crate::round::Round;
use crate::scored::{self, ScoredMove};
use crate::simulation::Simulator;

pub(super) struct Scan<'a> {
    input: Input<'a>,
    hooks: Hooks<'a>,
    interrupt: &'a Interrupt,
    candidates: Vec<Candidate>,
    context: Context,
    budgets: Budgets,
    round: Option<Round>,
    simulator: Option<Simulator<'a>>,
    prices: Prices,
    floor: Floor,
    /// An exchange of several nodes, to be had unless something simpler saves about as much.
    exchange: Option<(Proposal, Verdict)>,
    /// Rows in the policy's order; rows to skip are absent.
    order: Option<Vec<usize>>,
    findings: Vec<Option<Obstacle>>,
    /// What keeps drifted nodes: consolidation, which looks at them too, does not talk over it.
    drift_findings: BTreeMap<usize, Obstacle>,
    uses: Vec<PolicyUse>,
    scored: Vec<ScoredMove>,
    memory: Memory,
    /// Preferred moves of this loop that do not pay yet, by claim.
    deferred: Deferred,
    eligible: BTreeMap<Method, u32>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        input: Input<'a>,
        hooks: Hooks<'a>,
        interrupt: &'a Interrupt,
        (candidates, budgets, context): (Vec<Candidate>, Budgets, Context),
    ) -> Self {
        let mut memory = input.memory.clone();
        memory.holds.retain(|_, until| *until > input.options.now);
        let judges = [hooks.rank.identity(), hooks.consolidation.identity()].join(" | ");
        if memory.judges != judges {
            memory.holds.clear();
            memory.nothing_found.clear();
            memory.judges = judges;
        }
        Self {
            findings: vec![None; candidates.len()],
            drift_findings: BTreeMap::new(),
            uses: budgets.uses.clone(),
            input,
            hooks,
            interrupt,
            candidates,
            context,
            budgets,
            round: None,
            simulator: None,
            prices: Prices::default(),
            floor: Floor::default(),
            exchange: None,
            order: None,
            scored: Vec::new(),
            memory,
            deferred: Deferred::default(),
            eligible: BTreeMap::new(),
        }
    }

    /// Nodes are renewed towards these from now on.
    pub(super) fn aim(&mut self, targets: Targets) {
        self.memory.targets = targets;
    }

    /// All empty nodes within the budgets, in one command.
    pub(super) fn emptiness(&mut self) -> Option<Command> {
        let method = Method::Emptiness;
        let mut rows = Vec::new();
        for row in 0..self.candidates.len() {
            let Some(candidate) = self.candidates.get(row) else {
                continue;
            };
            if candidate.is_empty() && self.input.buffer_nodes.contains(candidate.name()) {
                self.note(row, Obstacle::new(OutcomeId::NodeHoldsBuffer, ""));
                continue;
            }
            match emptiness::eligibility(candidate) {
                Ok(true) if self.held(row).is_some() => {}
                Ok(true) => rows.push(row),
                Ok(false) => {}
                Err(obstacle) => self.note(row, obstacle),
            }
        }
        let rows = self.graceful(rows);
        self.count(method, rows.len());
        if rows.is_empty() {
            return None;
        }
        let ordered = self.ordered(&rows);
        let rows = self.each_within(&ordered, method);
        let proposals: Vec<Proposal> = rows
            .iter()
            .filter_map(|&row| Some(emptiness::proposal(self.candidates.get(row)?, row)))
            .collect();
        let mut approved = self.approved(proposals);
        let rows: Vec<usize> = approved.iter().flat_map(|it| it.0.rows.clone()).collect();
        let together: BTreeSet<usize> = self.within(&rows, method).into_iter().collect();
        approved.retain(|it| it.0.rows.iter().all(|row| together.contains(row)));
        let verdict = approved.first().map(|it| it.1.clone())?;
        let all = emptiness::merge(approved.into_iter().map(|it| it.0))?;
        Some(self.command(all, verdict))
    }

    /// Leaves out rows that a pod blocks.
    fn graceful(&mut self, rows: Vec<usize>) -> Vec<usize> {
        self.unblocked(rows, Method::SingleNodeConsolidation)
    }

    fn unblocked(&mut self, mut rows: Vec<usize>, method: Method) -> Vec<usize> {
        rows.retain(|&row| {
            let block = self
                .candidates
                .get(row)
                .and_then(|it| it.block(method.class()))
                .cloned();
            if let Some(block) = &block {
                self.note(row, Obstacle::new(block.outcome, block.message.clone()));
            }
            block.is_none()
        });
        rows
    }

    fn prepare(&mut self) {
        if self.simulator.is_none() {
            let options: Options = self.input.options.clone();
            let (snapshot, pools) = (self.input.snapshot, self.input.pools);
            let ranking = (self.hooks.rank, self.input.tables);
            let simulator = Simulator::new(snapshot, pools, options, ranking, self.interrupt);
            self.uses.extend_from_slice(simulator.uses());
            self.floor = Floor::of(simulator.prepared());
            let (rank, prepared) = (self.hooks.rank, simulator.prepared());
            let (costs, uses) = appraise(&self.candidates, &self.input, prepared, rank);
            price(&mut self.candidates, &costs);
            self.uses.extend(uses);
            self.memory.costs = costs;
            self.simulator = Some(simulator);
            // What it showed of the nodes may be of an earlier loop.
            self.round = None;
        }
    }

    /// Whether the candidates have the costs of an earlier loop that saw the same cluster: enough to order them by.
    fn remembers_costs(&mut self) -> bool {
        let (snapshot, now) = (self.input.snapshot, self.input.options.now);
        let state = snapshot.consolidation_state(now);
        let mut known = self.memory.nothing_found.values();
        known.any(|it| it.state == state) && price(&mut self.candidates, &self.memory.costs)
    }

    fn note(&mut self, row: usize, obstacle: Obstacle) {
        if let Some(finding) = self.findings.get_mut(row) {
            *finding = Some(obstacle);
        }
    }

    fn count(&mut self, method: Method, eligible: usize) {
        self.eligible
            .insert(method, u32::try_from(eligible).unwrap_or(u32::MAX));
    }

    fn cut_off(&mut self, unseen: Vec<usize>) {
        for row in unseen {
            let Some(candidate) = self.candidates.get(row) else {
                continue;
            };
            self.memory.unseen.insert(candidate.claim().to_owned());
            self.note(
                row,
                Obstacle::new(OutcomeId::NodeNotReached, "the scan was cut off"),
            );
        }
    }

    /// A method that was cut off, or that decided something, looks again.
    fn must_look_again(&mut self, method: Method) {
        self.memory.nothing_found.remove(&method);
    }

    fn claims(&self, rows: &[usize]) -> BTreeSet<String> {
        let candidates = rows.iter().filter_map(|&row| self.candidates.get(row));
        candidates.map(|it| it.claim().to_owned()).collect()
    }

    fn command(&mut self, proposal: Proposal, verdict: Verdict) -> Command {
        let outcome = renewal::chosen(proposal.method);
        for row in proposal.rows.clone() {
            self.note(row, Obstacle::new(outcome, told(&verdict)));
        }
        let first = proposal
            .rows
            .first()
            .and_then(|&row| self.candidates.get(row));
        let id = format!(
            "{}-{}-{}",
            proposal.method.reason().as_str().to_lowercase(),
            first.map_or("", Candidate::claim),
            self.input.options.now.as_second(),
        );
        Command::new(id, proposal, &self.candidates, verdict)
    }

    pub(super) fn finish(mut self, commands: Vec<Command>, blocked: Vec<Blocked>) -> Decision {
        let mut outcomes: Vec<NodeOutcome> = blocked
            .iter()
            .map(|it| NodeOutcome {
                node: it.name.clone(),
                claim: it.claim.clone().unwrap_or_default(),
                pool: it.pool.clone(),
                outcome: it.outcome,
                reason: it.message.clone().unwrap_or_default(),
            })
            .collect();
        let mut events = blocked;
        self.memory.findings.clear();
        let claims = self.candidates.iter().map(Candidate::claim).collect();
        self.memory.preferred.keep(&claims, self.deferred);
        let rows = (0..).zip(self.candidates.iter().zip(&self.findings));
        for (row, (candidate, finding)) in rows {
            let is_chosen = finding.as_ref().is_some_and(|it| it.outcome.is_chosen());
            let of_drift = self.drift_findings.get(&row).filter(|_| !is_chosen);
            let finding = of_drift
                .or(finding.as_ref())
                .cloned()
                .unwrap_or_else(|| unexamined(candidate, !commands.is_empty()));
            self.memory.findings.insert(
                candidate.claim().to_owned(),
                (finding.outcome, finding.reason.clone()),
            );
            events.extend(of_drift.and_then(|it| drift::blocked(candidate, it)));
            // Whatever else keeps the node, it is told of the pod in its way.
            let block = candidate.pod_block.as_ref().filter(|_| !is_chosen);
            events.extend(
                block.map(|it| Blocked::candidate(candidate, (it.outcome, &it.about, &it.message))),
            );
            outcomes.push(NodeOutcome {
                node: candidate.name().to_owned(),
                claim: candidate.claim().to_owned(),
                pool: candidate.pool().to_owned(),
                outcome: finding.outcome,
                reason: finding.reason,
            });
        }
        outcomes.sort_by(|a, b| a.node.cmp(&b.node));
        Decision {
            scored: scored::counted(self.scored, &commands),
            commands,
            outcomes,
            blocked: events,
            next_look_seconds: look_again_seconds(self.budgets.valid_for_seconds),
            budgets: self.budgets,
            uses: distinct(self.uses),
            memory: self.memory,
            eligible: self.eligible,
            is_interrupted: self.interrupt.is_tripped(),
            decision_id: self.context.decision_id,
        }
    }
}

/// A verdict in words.
fn told(verdict: &Verdict) -> String {
    format!("{} (score {:.4})", verdict.reason, verdict.score)
}

/// What to say of a node that no method came to.
fn unexamined(candidate: &Candidate, is_decided: bool) -> Obstacle {
    if let Some(block) = &candidate.pod_block {
        return Obstacle::new(block.outcome, block.message.clone());
    }
    match consolidation::eligibility(candidate) {
        Err(obstacle) => obstacle,
        Ok(()) if is_decided => {
            Obstacle::new(OutcomeId::NodeOutranked, "another command goes first")
        }
        Ok(()) => Obstacle::new(OutcomeId::NodeWithoutReason, ""),
    }
}

/// A policy asked several times with one result appears once.
fn distinct(uses: Vec<PolicyUse>) -> Vec<PolicyUse> {
    let mut seen: Vec<PolicyUse> = Vec::new();
    for it in uses {
        if !seen.contains(&it) {
            seen.push(it);
        }
    }
    seen
}
