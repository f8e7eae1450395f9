//! Single-node consolidation: every node once, pools taking turns so that none waits for a large one.
//!
//! Moves that do not hinder each other go in one command. Answers to Karpenter's
//! `disruption/singlenodeconsolidation.go`, which takes the first node it finds and waits for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::{Approved, Command, Proposal};
use crate::consolidation::moves::{self, Replacements};
use crate::consolidation::{self, ConsolidationLook, guards};
use crate::method::{ConsolidationMethod, Method};
use crate::multi_node_consolidation::REMOVED_MAX;
use crate::obstacle::Obstacle;
use crate::scan::{CUT_OFF, Scan};

const METHOD: ConsolidationMethod = ConsolidationMethod::Single;
/// Proposals judged in one call.
const BATCH: usize = 16;
/// A scan that has found so many moves need not look further: they will not all go together.
const FOUND_ENOUGH: usize = 64;
/// Part of what the moves save alone that they must save together.
const KEPT_SHARE: f64 = 0.95;
/// How many times the savings of what can go by itself an exchange of nodes must save to go first.
const EXCHANGE_AHEAD: f64 = 2.0;

/// The best node to take away, with as many others as can go with it; or the exchange that multi-node consolidation
/// found.
pub(crate) fn command<'s>(
    scan: &mut Scan<'s, '_>,
    exchange: Option<Approved<'s>>,
) -> Option<Command> {
    let found = consolidation::look(scan, METHOD, best);
    let chosen = match (found, exchange) {
        // What frees nodes disturbs less, unless an exchange of many saves far more.
        (Some(found), Some(exchange))
            if exchange.savings_per_hour() > found.savings_per_hour() * EXCHANGE_AHEAD =>
        {
            exchange
        }
        (Some(found), _) => found,
        (None, Some(exchange)) => {
            // What goes now was among what this method found nothing in.
            scan.memory.nothing_found.remove(&METHOD.into());
            exchange
        }
        (None, None) => return None,
    };
    Some(scan.command(chosen))
}

/// What came of trying nodes alone.
struct EachAlone<'s> {
    /// Moves that the policy approves of.
    approved: Vec<Approved<'s>>,
    /// Nodes that were not tried, or not to the end.
    untried: Vec<&'s Candidate>,
}

/// Every node alone; of those worth taking away the best, with as many others as can go with it.
fn best<'s>(scan: &mut Scan<'s, '_>, look: &mut ConsolidationLook<'s>) -> Option<Approved<'s>> {
    if look.candidates.is_empty() {
        return None;
    }
    let unseen = std::mem::take(&mut scan.memory.unseen);
    let candidates = interleave(&look.candidates, &unseen);
    let EachAlone { approved, untried } = try_each(scan, &candidates);
    // What was not tried may be wanted as before.
    let tried = &consolidation::claims(&candidates) - &consolidation::claims(&untried);
    scan.deferred.looked_at(tried);
    let is_cut_off = scan.scene.interrupt.is_tripped();
    let found = choose(scan, approved);
    if is_cut_off {
        leave(scan, look, &untried, CUT_OFF);
    } else if found.is_none() {
        let enough = "enough moves were found before it was tried";
        leave(scan, look, &untried, enough);
    }
    // Of those that it did not reach the next run starts with the ones that the last did not reach either.
    let left_again: BTreeSet<String> = &scan.memory.unseen & &unseen;
    if !left_again.is_empty() {
        scan.memory.unseen = left_again;
    }
    found
}

/// The moves of nodes alone, in batches until there are enough of them.
fn try_each<'s>(scan: &mut Scan<'s, '_>, candidates: &[&'s Candidate]) -> EachAlone<'s> {
    let scene = scan.scene;
    let (mut approved, mut untried) = (Vec::new(), Vec::new());
    let mut ahead = candidates;
    while !ahead.is_empty() && approved.len() < FOUND_ENOUGH && !scene.interrupt.is_tripped() {
        let (batch, rest) = ahead.split_at(BATCH.min(ahead.len()));
        ahead = rest;
        let mut proposals = Vec::new();
        let computed = moves::compute_each(scan.weigh(), batch, METHOD);
        for (candidate, computed) in batch.iter().zip(computed) {
            match computed {
                Ok(proposal) => proposals.push(proposal),
                Err(obstacle) if obstacle.outcome == OutcomeId::NodeNotReached => {
                    untried.push(*candidate);
                }
                Err(obstacle) => scan.note(candidate, obstacle),
            }
        }
        let proposals = guards::retain_passing(scan, proposals);
        approved.extend(scan.ask_verdicts(proposals));
    }
    untried.extend(ahead);
    EachAlone { approved, untried }
}

/// The best of the moves with as many others as can go with it, unless it must wait.
fn choose<'s>(scan: &mut Scan<'s, '_>, mut approved: Vec<Approved<'s>>) -> Option<Approved<'s>> {
    // Stable: among equals the policy's order stands.
    approved.sort_by(|a, b| b.verdict.score.total_cmp(&a.verdict.score));
    let mut approved = approved.into_iter();
    let best = approved.next()?;
    let others: Vec<Proposal<'s>> = approved.map(|it| it.proposal).collect();
    let joined = together(scan, best, &others);
    let going = joined.proposal.candidates.clone();
    let found = guards::put_off_small_gain(scan, Some(joined));
    let goes = |it: &&Candidate| going.iter().any(|going| going.name() == it.name());
    let behind = others.iter().filter(|it| !it.candidates.iter().any(goes));
    for (behind, obstacle) in guards::judge_behind(scan, behind) {
        if found.is_none() {
            scan.note_alone(behind, obstacle);
        }
    }
    found
}

/// The next loop starts with nodes that this one did not reach. What is known of one from before, while nothing
/// changed, still holds.
fn leave<'s>(
    scan: &mut Scan<'s, '_>,
    look: &mut ConsolidationLook<'s>,
    untried: &[&'s Candidate],
    why: &str,
) {
    for candidate in untried {
        if look.tried_before.contains(candidate.claim()) {
            consolidation::repeat_findings(scan, &[candidate]);
        } else {
            scan.memory.unseen.insert(candidate.claim().to_owned());
            look.nothing.tried.remove(candidate.claim());
            scan.note(candidate, Obstacle::new(OutcomeId::NodeNotReached, why));
        }
    }
}

/// The best of several moves, and with it whichever of the others still save what they promised.
fn together<'s>(
    scan: &mut Scan<'s, '_>,
    best: Approved<'s>,
    others: &[Proposal<'s>],
) -> Approved<'s> {
    let (scene, priced) = (scan.scene, scan.weigh());
    let joined = join(&best.proposal, others, |candidates| {
        let method = ConsolidationMethod::Multi;
        let reason = Method::from(method).budget_reason();
        let pools = candidates.iter().map(|it| it.pool());
        let left = &scene.budgets.remaining;
        if scene.interrupt.is_tripped() || !left.admit(pools, reason) {
            return None;
        }
        let found = moves::compute(priced, candidates, method, Replacements::SeveralIfNeeded);
        let found = found.ok();
        found.filter(|it| guards::broken_backoff(scene, it).is_none())
    });
    let joined = guards::retain_passing(scan, joined.into_iter().collect());
    scan.ask_verdicts(joined).pop().unwrap_or(best)
}

/// The largest move that consists of `best` and of as many others as save together what they save alone; `None` where
/// no other can join. `compute` simulates a set of candidates.
///
/// Others are tried in groups, which double while all goes well and halve when it does not.
pub(crate) fn join<'s>(
    best: &Proposal<'s>,
    others: &[Proposal<'s>],
    mut compute: impl FnMut(&[&'s Candidate]) -> Option<Proposal<'s>>,
) -> Option<Proposal<'s>> {
    let mut joined: Option<Proposal<'s>> = None;
    let (mut ahead, mut size) = (others, 1);
    while !ahead.is_empty() {
        let whole = joined.as_ref().unwrap_or(best);
        let (group, rest) = ahead.split_at(size.min(ahead.len()));
        let candidates = group.iter().flat_map(|it| &it.candidates);
        let candidates: BTreeMap<&str, &Candidate> = candidates
            .chain(&whole.candidates)
            .map(|it| (it.name(), *it))
            .collect();
        let candidates: Vec<&Candidate> = candidates.into_values().collect();
        let alone: f64 = group.iter().map(Proposal::savings_per_hour).sum();
        let promised = whole.savings_per_hour() + alone;
        let found = (candidates.len() <= REMOVED_MAX)
            .then(|| compute(&candidates))
            .flatten()
            .filter(|it| it.savings_per_hour() >= promised * KEPT_SHARE);
        match found {
            Some(found) => {
                joined = Some(found);
                ahead = rest;
                size *= 2;
            }
            None if group.len() == 1 => ahead = rest,
            None => size = group.len() / 2,
        }
    }
    joined
}

/// The candidates again, one of each pool in turn; those that the last run did not reach go before all others.
fn interleave<'s>(candidates: &[&'s Candidate], unseen: &BTreeSet<String>) -> Vec<&'s Candidate> {
    let is_unseen = |it: &&Candidate| unseen.contains(it.claim());
    let (first, last): (Vec<&Candidate>, Vec<&Candidate>) =
        candidates.iter().copied().partition(is_unseen);
    let mut all = by_turns(first);
    all.extend(by_turns(last));
    all
}

fn by_turns(candidates: Vec<&Candidate>) -> Vec<&Candidate> {
    let mut pools: Vec<&str> = Vec::new();
    let mut queues: BTreeMap<&str, VecDeque<&Candidate>> = BTreeMap::new();
    let count = candidates.len();
    for candidate in candidates {
        let pool = candidate.pool();
        if !queues.contains_key(pool) {
            pools.push(pool);
        }
        queues.entry(pool).or_default().push_back(candidate);
    }
    let mut mixed = Vec::with_capacity(count);
    while mixed.len() < count {
        for pool in &pools {
            mixed.extend(queues.get_mut(pool).and_then(VecDeque::pop_front));
        }
    }
    mixed
}
