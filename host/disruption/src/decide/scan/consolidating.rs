//! Consolidation of one node and of several: what is tried, in which order, and which of the moves found is taken.
//!
//! A claim whose last replacement did not come rests: what needs no new node may still move it.

use apis::resources::Resources;
use scheduling::ranking::PremiumMax;
use state::ledger::OutcomeId;

use super::{NothingFound, Scan};
use crate::candidate::Candidate;
use crate::command::{Command, Proposal};
use crate::consolidation::{self, Bench, Obstacle, Replacements};
use crate::hooks::Verdict;
use crate::method::Method;
use crate::simulation::Simulator;
use crate::{multi_node_consolidation, single_node_consolidation};

/// How many times the savings of what can go by itself an exchange of nodes must save to go first.
const EXCHANGE_AHEAD: f64 = 2.0;
/// An exchange of nodes goes before a longer run of nodes that can go if it leaves this share of the bill that the run
/// would leave: what is nearly empty all over is then moved once, and not step by step.
const EXCHANGE_LEAVES: f64 = 0.5;

impl<'a> Scan<'a> {
    /// The longest run of nodes that can go together.
    pub(in crate::decide) fn multi_node(&mut self) -> Option<Command> {
        let method = Method::MultiNodeConsolidation;
        let rows = self.consolidatable(method)?;
        if rows.len() < 2 {
            return None;
        }
        self.prepare();
        let bench = self.bench()?;
        let awake = self.awake(&rows);
        let by_waste =
            |rows| multi_node_consolidation::by_waste(&self.candidates, rows, &self.floor);
        let wasteful = by_waste(&awake);
        let mut orders = vec![awake.clone(), wasteful.clone()];
        if awake.len() < rows.len() {
            orders.extend([by_waste(&rows), rows.clone()]);
        }
        let runs = orders.iter().map(|rows| {
            multi_node_consolidation::search(rows, |first| {
                let found = consolidation::compute(&bench, first, method, Replacements::One).ok();
                found.filter(|it| self.resting_for(it).is_none())
            })
        });
        let runs: Vec<Vec<Proposal>> = runs.collect();
        let runs = runs.into_iter().filter_map(|valid| self.longest(valid));
        let runs: Vec<_> = runs.collect();
        let bill = self.bill_per_hour(&rows);
        let best = match multi_node_consolidation::best(runs, bill) {
            None => {
                self.exchange = self.exchanged(&wasteful, bill);
                None
            }
            Some(run) => {
                let run = self.cheapened(run);
                let left_most = (bill - run.0.savings_per_hour()) * EXCHANGE_LEAVES;
                // Not worth the simulations where not even full nodes would cost so little.
                let is_within_reach = self.floor_per_hour(&rows) <= left_most;
                let at_once = is_within_reach
                    .then(|| self.exchanged_at_once(&wasteful, (bill, left_most)))
                    .flatten();
                Some(at_once.unwrap_or(run))
            }
        };
        let best = self.worthwhile(best);
        let exchange = self.exchange.take();
        self.exchange = self.worthwhile(exchange);
        if best.is_some() || self.exchange.is_some() || self.interrupt.is_tripped() {
            self.must_look_again(method);
        }
        best.map(|(proposal, verdict)| self.command(proposal, verdict))
    }

    /// The exchange of all nodes that are wasteful, where it leaves little enough of the bill. Where one command cannot
    /// take them all, removing them step by step gets further.
    fn exchanged_at_once(
        &mut self,
        wasteful: &[usize],
        (bill, left_most): (f64, f64),
    ) -> Option<(Proposal, Verdict)> {
        if wasteful.len() > multi_node_consolidation::NODES_MAX {
            return None;
        }
        let exchange = self.exchanged(wasteful, bill);
        exchange.filter(|it| bill - it.0.savings_per_hour() <= left_most)
    }

    /// The rows whose last replacement did not come lately: they wait with moves that need another one.
    fn resting(&self, rows: &[usize]) -> Vec<usize> {
        let rows = rows.iter().copied();
        rows.filter(|row| self.rest(*row).is_some()).collect()
    }

    fn awake(&self, rows: &[usize]) -> Vec<usize> {
        let rows = rows.iter().copied();
        rows.filter(|row| self.rest(*row).is_none()).collect()
    }

    fn rest(&self, row: usize) -> Option<Obstacle> {
        let claim = self.candidates.get(row)?.claim();
        let (until, times) = self.input.history.rests(claim, self.input.options.now)?;
        let told = format!("{times} in a row, next try {until}");
        Some(Obstacle::new(OutcomeId::NodeReplacementFailed, told))
    }

    /// The rest that a move would break: one that needs no new node breaks none.
    fn resting_for(&self, proposal: &Proposal) -> Option<Obstacle> {
        let mut rows = proposal.rows.iter();
        let needs_new = !proposal.replacements.is_empty();
        needs_new.then(|| rows.find_map(|&row| self.rest(row)))?
    }

    /// Effective USD an hour of these nodes.
    fn bill_per_hour(&self, rows: &[usize]) -> f64 {
        let candidates = rows.iter().filter_map(|&row| self.candidates.get(row));
        candidates.map(|it| it.cost.effective_per_hour).sum()
    }

    /// The least that the pods of these nodes could cost anywhere, effective USD an hour.
    fn floor_per_hour(&self, rows: &[usize]) -> f64 {
        let mut needed = Resources::new();
        for candidate in rows.iter().filter_map(|&row| self.candidates.get(row)) {
            needed.add_assign(&candidate.requests);
        }
        self.floor.cost_per_hour(&needed)
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
    pub(in crate::decide) fn exchange(&mut self) -> Option<Command> {
        let (proposal, verdict) = self.exchange.take()?;
        self.must_look_again(Method::SingleNodeConsolidation);
        Some(self.command(proposal, verdict))
    }

    /// The first of these nodes, the most wasteful first, for a cheaper set of new ones.
    fn exchanged(&mut self, rows: &[usize], bill: f64) -> Option<(Proposal, Verdict)> {
        let method = Method::MultiNodeConsolidation;
        let bench = self.bench()?;
        let all = rows.len().min(multi_node_consolidation::NODES_MAX);
        let sizes = multi_node_consolidation::EXCHANGED.into_iter();
        let sizes = sizes.filter(|size| *size < all);
        let sizes = sizes.chain((all >= 2).then_some(all));
        let mut valid = Vec::new();
        for size in sizes {
            if self.interrupt.is_tripped() {
                break;
            }
            let first = rows.get(..size)?;
            valid.extend(consolidation::compute(&bench, first, method, Replacements::Several).ok());
        }
        let valid = self.unguarded(valid);
        multi_node_consolidation::best(self.approved(valid), bill)
    }

    /// Whether a move that only the ranking policy wants pays for the pods that it disturbs.
    fn pays(&mut self, proposal: &Proposal) -> bool {
        let rows = proposal.rows.iter();
        let nodes: Vec<&Candidate> = rows.filter_map(|&row| self.candidates.get(row)).collect();
        let now = self.input.options.now;
        let judged = self.within_premium(proposal).and_then(|()| {
            self.memory
                .preferred
                .judge(proposal, &nodes, now, &mut self.deferred)
        });
        let Err(obstacle) = judged else {
            return true;
        };
        if let [row] = proposal.rows[..] {
            self.note(row, obstacle);
        }
        false
    }

    /// A preference may not make what comes dearer than the bound above what goes.
    fn within_premium(&self, proposal: &Proposal) -> Result<(), Obstacle> {
        let prepared = self.simulator.as_ref().map(Simulator::prepared);
        let pools = proposal.replacements.iter().map(|it| it.pool.as_str());
        let bounds = pools.filter_map(|pool| Some(prepared?.premium_max(pool)));
        let bound = bounds.fold(PremiumMax::OFF, PremiumMax::tighter);
        let (before, after) = (
            proposal.before.price_per_hour,
            proposal.after.price_per_hour,
        );
        if after <= bound.most(before) {
            return Ok(());
        }
        let told =
            format!("{before:.4} to {after:.4} USD an hour by list price, {bound} more at most");
        Err(Obstacle::new(OutcomeId::NodePremiumExceeded, told))
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

    /// Leaves out moves that would only undo an earlier one, or buy what could not be had a moment ago.
    fn unguarded(&mut self, proposals: Vec<Proposal>) -> Vec<Proposal> {
        let (history, now) = (self.input.history, self.input.options.now);
        let mut kept = Vec::new();
        for proposal in proposals {
            let rows = proposal.rows.iter();
            let claims: Vec<&str> = rows
                .filter_map(|&row| Some(self.candidates.get(row)?.claim()))
                .collect();
            if let Some(rest) = self.resting_for(&proposal) {
                if let [row] = proposal.rows[..] {
                    self.note(row, rest);
                }
                continue;
            }
            let share = history.share_to_save(&claims, now);
            let least = proposal.before.effective_per_hour * share;
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
                None if self.pays(&proposal) => kept.push(proposal),
                None => {}
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
    pub(in crate::decide) fn single_node(&mut self) -> Option<Command> {
        let method = Method::SingleNodeConsolidation;
        let rows = self.consolidatable(method)?;
        if rows.is_empty() {
            return None;
        }
        let rows =
            single_node_consolidation::interleave(&self.candidates, &rows, &self.memory.unseen);
        self.memory.unseen.clear();
        self.deferred.looked_at(self.claims(&rows));
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
        let best = self.together(approved);
        let best = self.worthwhile(best);
        if best.is_some() || self.interrupt.is_tripped() {
            self.must_look_again(method);
        }
        let (proposal, verdict) = best?;
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

    /// A move that was found, unless it saves so little of the bill that it must wait.
    fn worthwhile(&mut self, found: Option<(Proposal, Verdict)>) -> Option<(Proposal, Verdict)> {
        let (proposal, verdict) = found?;
        if !self.input.gates.waits_for_small_gains {
            return Some((proposal, verdict));
        }
        let all = 0..self.candidates.len();
        let bill = self.bill_per_hour(&all.collect::<Vec<_>>());
        let rows = proposal.rows.iter();
        let nodes: Vec<&Candidate> = rows.filter_map(|&row| self.candidates.get(row)).collect();
        let (now, known) = (self.input.options.now, &self.memory.preferred);
        let judged = known.judge_gain((&proposal, bill), &nodes, now, &mut self.deferred);
        let Err(obstacle) = judged else {
            return Some((proposal, verdict));
        };
        for row in proposal.rows {
            self.note(row, obstacle.clone());
        }
        None
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
            if self.interrupt.is_tripped() || !self.admits(rows, method) {
                return None;
            }
            let found = consolidation::compute(&bench, rows, method, Replacements::SeveralIfNeeded);
            found.ok().filter(|it| self.resting_for(it).is_none())
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
            match consolidation::eligibility(candidate) {
                Ok(()) if self.held(row).is_some() => {}
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
        let is_due = self.memory.preferred.is_due(self.input.options.now);
        let known = self.memory.nothing_found.get(&method).cloned();
        let known = known.filter(|_| !is_due);
        let resting = self.claims(&self.resting(&rows));
        let is_the_same = |it: &NothingFound| it.state == state && it.resting == resting;
        let known = known.filter(|it| is_the_same(it) && claims.is_subset(&it.claims));
        if known.as_ref().is_some_and(|it| claims.is_subset(&it.tried)) {
            self.repeat_findings(&rows);
            return None;
        }
        let ordered = self.ordered(&rows);
        let kept = match method {
            Method::SingleNodeConsolidation => self.each_within(&ordered, method),
            _ => self.within(&ordered, method),
        };
        let tried = self.claims(&kept);
        if known.is_some_and(|it| tried.is_subset(&it.tried)) {
            self.repeat_findings(&kept);
            return None;
        }
        let nothing = NothingFound {
            state,
            claims,
            resting,
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
}
