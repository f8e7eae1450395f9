//! The methods at work on one set of candidates, sharing the table, the budgets and the simulator.
//!
//! Each method leaves a finding on every row it looked at; the last one stands.

mod policies;
mod renewal;

use std::collections::{BTreeMap, BTreeSet};

use scheduling::Interrupt;
use scheduling::problem::Options;
use scheduling::ranking::PolicyUse;
use state::ledger::{NodeOutcome, OutcomeId};

use super::{Decision, Hooks, Input, Memory, NothingFound, look_again_seconds};
use crate::budgets::Budgets;
use crate::candidate::{Blocked, Candidate};
use crate::command::{Command, Proposal};
use crate::consolidation::{self, Bench, Floor, Obstacle, Prices, Replacements};
use crate::hooks::{Context, Verdict};
use crate::method::Method;
use crate::round::Round;
use crate::simulation::Simulator;
use crate::{emptiness, multi_node_consolidation, single_node_consolidation};

/// How many times the savings of what can go by itself an exchange of nodes must save to go first.
const EXCHANGE_AHEAD: f64 = 2.0;

pub(super) struct Scan<'a> {
    input: Input<'a>,
    hooks: Hooks<'a>,
    interrupt: &'a Interrupt,
    candidates: Vec<Candidate>,
    context: Context,
    budgets: Budgets,
    round: Option<Round>,
    simulator: Option<Simulator<'a>>,
    prices: Prices<'a>,
    floor: Floor,
    /// An exchange of several nodes, to be had unless something simpler saves about as much.
    exchange: Option<(Proposal, Verdict)>,
    /// Rows in the policy's order; rows to skip are absent.
    order: Option<Vec<usize>>,
    findings: Vec<Option<Obstacle>>,
    /// What keeps drifted nodes: consolidation, which looks at them too, does not talk over it.
    drift_findings: BTreeMap<usize, Obstacle>,
    uses: Vec<PolicyUse>,
    memory: Memory,
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
            prices: Prices::of(input.types),
            floor: Floor::default(),
            exchange: None,
            order: None,
            memory,
            eligible: BTreeMap::new(),
        }
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
        let mut budgets = self.budgets.clone();
        let (rows, _) = self.within(&ordered, method, &mut budgets);
        let proposals: Vec<Proposal> = rows
            .iter()
            .filter_map(|&row| Some(emptiness::proposal(self.candidates.get(row)?, row)))
            .collect();
        let approved = self.approved(proposals);
        let verdict = approved.first().map(|it| it.1.clone())?;
        let all = emptiness::merge(approved.into_iter().map(|it| it.0))?;
        Some(self.command(all, verdict))
    }

    /// The longest run of nodes that can go together.
    pub(super) fn multi_node(&mut self) -> Option<Command> {
        let method = Method::MultiNodeConsolidation;
        let rows = self.consolidatable(method)?;
        if rows.len() < 2 {
            return None;
        }
        self.prepare();
        let bench = self.bench()?;
        let wasteful = multi_node_consolidation::by_waste(&self.candidates, &rows, &self.floor);
        let runs = [&rows, &wasteful].map(|rows| {
            multi_node_consolidation::search(rows, |first| {
                consolidation::compute(&bench, first, method, Replacements::One).ok()
            })
        });
        let runs = runs.map(|valid| self.longest(valid));
        let best = multi_node_consolidation::best(runs.into_iter().flatten().collect());
        let best = best.map(|it| self.cheapened(it));
        if best.is_none() {
            self.exchange = self.exchanged(&wasteful, method);
        }
        if best.is_some() || self.exchange.is_some() || self.interrupt.is_tripped() {
            self.must_look_again(method);
        }
        best.map(|(proposal, verdict)| self.command(proposal, verdict))
    }

    /// Verdicts on shorter runs do not matter once a longer one is approved.
    fn longest(&mut self, valid: Vec<Proposal>) -> Option<(Proposal, Verdict)> {
        let valid = self.unguarded(valid);
        let approved = self.approved(valid).into_iter();
        approved.max_by_key(|it| it.0.rows.len())
    }

    /// The same nodes gone, with several new ones instead of one where these are cheaper.
    fn cheapened(&mut self, run: (Proposal, Verdict)) -> (Proposal, Verdict) {
        let (rows, method) = (&run.0.rows, run.0.method);
        let several = self
            .bench()
            .filter(|_| !run.0.replacements.is_empty())
            .and_then(|it| consolidation::compute(&it, rows, method, Replacements::Several).ok())
            .filter(|it| it.replacements.len() > 1);
        let several = self.unguarded(several.into_iter().collect());
        self.approved(several).pop().unwrap_or(run)
    }

    /// The exchange of the most wasteful nodes for cheaper ones, where no smaller move was found.
    pub(super) fn exchange(&mut self) -> Option<Command> {
        let (proposal, verdict) = self.exchange.take()?;
        self.must_look_again(Method::SingleNodeConsolidation);
        Some(self.command(proposal, verdict))
    }

    /// The first of these nodes, the most wasteful first, for a cheaper set of new ones.
    fn exchanged(&mut self, rows: &[usize], method: Method) -> Option<(Proposal, Verdict)> {
        let bench = self.bench()?;
        let sizes = multi_node_consolidation::EXCHANGED;
        let sizes = sizes.into_iter().filter(|size| *size <= rows.len());
        let mut valid = Vec::new();
        for size in sizes {
            if self.interrupt.is_tripped() {
                break;
            }
            let first = rows.get(..size)?;
            valid.extend(consolidation::compute(&bench, first, method, Replacements::Several).ok());
        }
        let valid = self.unguarded(valid);
        multi_node_consolidation::best(self.approved(valid))
    }

    fn bench(&self) -> Option<Bench<'_, 'a>> {
        Some(Bench {
            simulator: self.simulator.as_ref()?,
            candidates: &self.candidates,
            prices: &self.prices,
            floor: &self.floor,
            gates: self.input.gates,
        })
    }

    /// Leaves out moves that would only undo an earlier one.
    fn unguarded(&mut self, proposals: Vec<Proposal>) -> Vec<Proposal> {
        let (history, now) = (self.input.history, self.input.options.now);
        let mut kept = Vec::new();
        for proposal in proposals {
            let rows = proposal.rows.iter();
            let claims: Vec<&str> = rows
                .filter_map(|&row| Some(self.candidates.get(row)?.claim()))
                .collect();
            let share = history.share_to_save(&claims, now);
            let least = proposal.cost_before_per_hour * share;
            if proposal.replacements.len() > 1 && proposal.savings_per_hour() < least {
                if let [row] = proposal.rows[..] {
                    let reason = format!(
                        "it must save {:.0} % as it came by a move itself",
                        share * 100.0
                    );
                    self.note(row, Obstacle::new(OutcomeId::NodeLoopGuard, reason));
                }
                continue;
            }
            match history.brought_back(&proposal, &claims, now) {
                None => kept.push(proposal),
                Some(back) => {
                    let reason = format!("{back} was replaced here within the last hour");
                    if let [row] = proposal.rows[..] {
                        self.note(row, Obstacle::new(OutcomeId::NodeLoopGuard, reason));
                    }
                }
            }
        }
        kept
    }

    /// Every node alone, in batches; of those worth taking away the best, with as many others as can go with it.
    pub(super) fn single_node(&mut self) -> Option<Command> {
        let method = Method::SingleNodeConsolidation;
        let rows = self.consolidatable(method)?;
        if rows.is_empty() {
            return None;
        }
        let rows =
            single_node_consolidation::interleave(&self.candidates, &rows, &self.memory.unseen);
        self.memory.unseen.clear();
        self.prepare();
        let mut approved = Vec::new();
        for (index, batch) in rows.chunks(single_node_consolidation::BATCH).enumerate() {
            if self.interrupt.is_tripped() {
                let unseen = rows.iter().skip(index * single_node_consolidation::BATCH);
                self.cut_off(unseen.copied().collect());
                break;
            }
            let mut proposals = Vec::new();
            let bench = self.bench()?;
            let computed = consolidation::compute_each(&bench, batch, method);
            for (&row, computed) in batch.iter().zip(computed) {
                match computed {
                    Ok(proposal) => proposals.push(proposal),
                    Err(obstacle) => self.note(row, obstacle),
                }
            }
            let proposals = self.unguarded(proposals);
            approved.extend(self.approved(proposals));
            if approved.len() >= single_node_consolidation::FOUND_ENOUGH {
                break;
            }
        }
        if !approved.is_empty() || self.interrupt.is_tripped() {
            self.must_look_again(method);
        }
        let (proposal, verdict) = self.together(approved)?;
        // What frees nodes disturbs less, unless an exchange of many saves far more.
        let saves_far_more = |it: &mut (Proposal, Verdict)| {
            it.0.savings_per_hour() > proposal.savings_per_hour() * EXCHANGE_AHEAD
        };
        let (proposal, verdict) = self
            .exchange
            .take_if(saves_far_more)
            .unwrap_or((proposal, verdict));
        Some(self.command(proposal, verdict))
    }

    /// The best of several moves, and with it whichever of the others still save what they promised.
    fn together(&mut self, mut approved: Vec<(Proposal, Verdict)>) -> Option<(Proposal, Verdict)> {
        // Stable: among equals the policy's order stands.
        approved.sort_by(|a, b| b.1.score.total_cmp(&a.1.score));
        let mut moves = approved.into_iter();
        let best = moves.next()?;
        let others: Vec<Proposal> = moves.map(|it| it.0).collect();
        let bench = self.bench()?;
        let joined = single_node_consolidation::join(&best.0, &others, |rows| {
            let method = Method::MultiNodeConsolidation;
            if self.interrupt.is_tripped() {
                return None;
            }
            consolidation::compute(&bench, rows, method, Replacements::SeveralIfNeeded).ok()
        });
        let joined = self.unguarded(joined.into_iter().collect());
        self.approved(joined).pop().or(Some(best))
    }

    /// Rows that consolidation may try, in the policy's order and within the budgets. `None` when nothing
    /// changed since the method last found nothing.
    fn consolidatable(&mut self, method: Method) -> Option<Vec<usize>> {
        let mut rows = Vec::new();
        for row in 0..self.candidates.len() {
            let Some(candidate) = self.candidates.get(row) else {
                continue;
            };
            // What emptiness or drift said of it stands.
            if candidate.is_empty() {
                continue;
            }
            let held = self.memory.holds.get(candidate.claim());
            if let Some(until) = held {
                let obstacle = Obstacle::new(OutcomeId::NodePolicyHeld, format!("until {until}"));
                self.note(row, obstacle);
                continue;
            }
            let rests = self
                .input
                .history
                .rests(candidate.claim(), self.input.options.now);
            let eligible = consolidation::eligibility(candidate).and_then(|()| match rests {
                None => Ok(()),
                Some((until, times)) => {
                    let outcome = OutcomeId::NodeReplacementFailed;
                    let told = format!("{times} in a row, next try {until}");
                    Err(Obstacle::new(outcome, told))
                }
            });
            match eligible {
                Ok(()) => rows.push(row),
                Err(obstacle) => self.note(row, obstacle),
            }
        }
        let rows = self.graceful(rows);
        self.count(method, rows.len());
        if rows.is_empty() {
            return Some(rows);
        }
        let state = self
            .input
            .snapshot
            .consolidation_state(self.input.options.now);
        let claims = self.claims(&rows);
        let known = self.memory.nothing_found.get(&method).cloned();
        let known = known.filter(|it| it.state == state && claims.is_subset(&it.claims));
        if known.as_ref().is_some_and(|it| claims.is_subset(&it.tried)) {
            self.repeat_findings(&rows);
            return None;
        }
        let ordered = self.ordered(&rows);
        let mut budgets = self.budgets.clone();
        let (kept, _) = self.within(&ordered, method, &mut budgets);
        let tried = self.claims(&kept);
        if known.is_some_and(|it| tried.is_subset(&it.tried)) {
            self.repeat_findings(&kept);
            return None;
        }
        let nothing = NothingFound {
            state,
            claims,
            tried,
        };
        self.memory.nothing_found.insert(method, nothing);
        Some(kept)
    }

    fn repeat_findings(&mut self, rows: &[usize]) {
        for &row in rows {
            let Some(candidate) = self.candidates.get(row) else {
                continue;
            };
            if let Some((outcome, reason)) = self.memory.findings.get(candidate.claim()).cloned() {
                self.note(row, Obstacle { outcome, reason });
            }
        }
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
            self.simulator = Some(simulator);
            self.floor = Floor::of(pools);
        }
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
                pool: it.pool.clone(),
                outcome: it.outcome,
                reason: it.message.clone().unwrap_or_default(),
            })
            .collect();
        let mut events = blocked;
        self.memory.findings.clear();
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
            if candidate
                .pod_block
                .as_ref()
                .is_some_and(|it| it.outcome == finding.outcome)
            {
                events.push(Blocked {
                    name: candidate.name().to_owned(),
                    node: Some(candidate.name().to_owned()),
                    claim: Some(candidate.claim().to_owned()),
                    pool: candidate.pool().to_owned(),
                    outcome: finding.outcome,
                    message: Some(finding.reason.clone()),
                });
            }
            outcomes.push(NodeOutcome {
                node: candidate.name().to_owned(),
                pool: candidate.pool().to_owned(),
                outcome: finding.outcome,
                reason: finding.reason,
            });
        }
        outcomes.sort_by(|a, b| a.node.cmp(&b.node));
        Decision {
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
