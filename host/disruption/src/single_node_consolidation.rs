//! Single-node consolidation: every node once, pools taking turns so that none waits for a large one.
//!
//! Moves that do not hinder each other go in one command. Answers to Karpenter's
//! `disruption/singlenodeconsolidation.go`, which takes the first node it finds and waits for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::{Approved, Command, Proposal};
use crate::consolidation::moves::{self, Replacements};
use crate::consolidation::{self, guards};
use crate::method::{ConsolidationMethod, Method};
use crate::multi_node_consolidation::REMOVED_MAX;
use crate::obstacle::Obstacle;
use crate::scan::Scan;

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
    let found = consolidation::look(scan, METHOD, |scan, candidates| best(scan, candidates));
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

/// Every node alone; of those worth taking away the best, with as many others as can go with it.
fn best<'s>(scan: &mut Scan<'s, '_>, candidates: &[&'s Candidate]) -> Option<Approved<'s>> {
    if candidates.is_empty() {
        return None;
    }
    let candidates = interleave(candidates, &scan.memory.unseen);
    scan.memory.unseen.clear();
    scan.deferred.looked_at(consolidation::claims(&candidates));
    let (mut approved, untried) = approve_each(scan, &candidates);
    // Stable: among equals the policy's order stands.
    approved.sort_by(|a, b| b.verdict.score.total_cmp(&a.verdict.score));
    let mut approved = approved.into_iter();
    let best = approved.next()?;
    let others: Vec<Proposal<'s>> = approved.map(|it| it.proposal).collect();
    let joined = together(scan, best, &others);
    let going = joined.proposal.candidates.clone();
    let found = guards::put_off_small_gain(scan, Some(joined));
    if found.is_none() {
        let goes = |it: &&Candidate| going.iter().any(|going| going.name() == it.name());
        let behind = others.iter().filter(|it| !it.candidates.iter().any(goes));
        guards::note_behind(scan, behind);
        for candidate in untried {
            let enough = "enough moves were found before it was tried";
            scan.note(candidate, Obstacle::new(OutcomeId::NodeNotReached, enough));
        }
    }
    found
}

/// The moves of nodes alone that the policy approves of, in batches until there are enough of them, and the nodes that
/// were not tried as there were.
fn approve_each<'s, 'c>(
    scan: &mut Scan<'s, '_>,
    candidates: &'c [&'s Candidate],
) -> (Vec<Approved<'s>>, &'c [&'s Candidate]) {
    let scene = scan.scene;
    let (mut approved, mut ahead) = (Vec::new(), candidates);
    while !ahead.is_empty() && approved.len() < FOUND_ENOUGH {
        if scene.interrupt.is_tripped() {
            cut_off(scan, ahead);
            return (approved, &[]);
        }
        let (batch, rest) = ahead.split_at(BATCH.min(ahead.len()));
        ahead = rest;
        let mut proposals = Vec::new();
        for (candidate, computed) in batch.iter().zip(moves::compute_each(scene, batch, METHOD)) {
            match computed {
                Ok(proposal) => proposals.push(proposal),
                Err(obstacle) => scan.note(candidate, obstacle),
            }
        }
        let proposals = guards::retain_passing(scan, proposals);
        approved.extend(scan.ask_verdicts(proposals));
    }
    (approved, ahead)
}

/// The next loop starts with nodes that this one did not reach.
fn cut_off<'s>(scan: &mut Scan<'s, '_>, unseen: &[&'s Candidate]) {
    for candidate in unseen {
        scan.memory.unseen.insert(candidate.claim().to_owned());
        let cut_off = Obstacle::new(OutcomeId::NodeNotReached, "the scan was cut off");
        scan.note(candidate, cut_off);
    }
}

/// The best of several moves, and with it whichever of the others still save what they promised.
fn together<'s>(
    scan: &mut Scan<'s, '_>,
    best: Approved<'s>,
    others: &[Proposal<'s>],
) -> Approved<'s> {
    let scene = scan.scene;
    let joined = join(&best.proposal, others, |candidates| {
        let method = ConsolidationMethod::Multi;
        let reason = Method::from(method).budget_reason();
        let pools = candidates.iter().map(|it| it.pool());
        let left = &scene.budgets.remaining;
        if scene.interrupt.is_tripped() || !left.admit(pools, reason) {
            return None;
        }
        let found = moves::compute(scene, candidates, method, Replacements::SeveralIfNeeded);
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
