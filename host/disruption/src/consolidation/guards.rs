//! Guards that keep consolidation from moves that are sound and yet not sensible: circles, offerings that could not be
//! had a moment ago, preferences that do not pay, gains too small.
//!
//! A claim whose last replacement did not come is in back-off: what needs no new node may still move it. Judges without
//! any simulation.

use scheduling::ranking::PremiumMax;
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::{Approved, Proposal};
use crate::history::ReplacementPause;
use crate::obstacle::Obstacle;
use crate::scan::Scan;
use crate::scene::Scene;

/// The moves that pass; what keeps a single node is said of it.
pub(crate) fn retain_passing<'s>(
    scan: &mut Scan<'s, '_>,
    proposals: Vec<Proposal<'s>>,
) -> Vec<Proposal<'s>> {
    let mut kept = Vec::new();
    for proposal in proposals {
        match pass(scan, &proposal) {
            Ok(()) => kept.push(proposal),
            Err(obstacle) => scan.note_alone(&proposal, obstacle),
        }
    }
    kept
}

/// A rule that stops a move, or lets it pass.
type MoveGuard = fn(&mut Scan<'_, '_>, &Proposal<'_>) -> Result<(), Obstacle>;

/// Every rule that a move has to pass, whatever method found it, in the order in which they are asked.
const GUARDS: [MoveGuard; 5] = [
    breaks_no_backoff,
    pays_for_moving_itself,
    brings_nothing_back,
    within_premium,
    worth_the_preference,
];

fn pass(scan: &mut Scan<'_, '_>, proposal: &Proposal<'_>) -> Result<(), Obstacle> {
    GUARDS.iter().try_for_each(|guard| guard(scan, proposal))
}

/// A claim whose last replacement did not come waits with moves that need another one.
fn breaks_no_backoff(scan: &mut Scan<'_, '_>, proposal: &Proposal<'_>) -> Result<(), Obstacle> {
    broken_backoff(scan.scene, proposal).map_or(Ok(()), Err)
}

/// A node that came by a move itself moves on for a larger share alone, where several nodes come of it.
fn pays_for_moving_itself(
    scan: &mut Scan<'_, '_>,
    proposal: &Proposal<'_>,
) -> Result<(), Obstacle> {
    let (history, now) = (&scan.scene.input.history, scan.scene.input.options.now);
    let share = history.share_to_save(&proposal.claims(), now);
    let least = proposal.before.effective_per_hour * share;
    if proposal.replacements().len() > 1 && proposal.savings_per_hour() < least {
        let percent = share * 100.0;
        let reason = format!("it must save {percent:.0} % as it came by a move itself");
        return Err(Obstacle::new(OutcomeId::NodeLoopGuard, reason));
    }
    Ok(())
}

/// An instance type that was taken away within the hour does not come back.
fn brings_nothing_back(scan: &mut Scan<'_, '_>, proposal: &Proposal<'_>) -> Result<(), Obstacle> {
    let (history, now) = (&scan.scene.input.history, scan.scene.input.options.now);
    let Some(back) = history.brought_back(proposal, now) else {
        return Ok(());
    };
    let reason = format!("{back} was replaced here within the last hour");
    Err(Obstacle::new(OutcomeId::NodeLoopGuard, reason))
}

/// A move that only a ranking policy wants waits until it has paid for the pods that it disturbs.
fn worth_the_preference(scan: &mut Scan<'_, '_>, proposal: &Proposal<'_>) -> Result<(), Obstacle> {
    let now = scan.scene.input.options.now;
    let preferred = &scan.memory.preferred;
    preferred.judge(proposal, now, &mut scan.deferred)
}

/// A preference may not make what comes dearer than the bound above what goes. `minValues` lifts the bound of a launch,
/// which has to come to a node; a move need not be made.
fn within_premium(scan: &mut Scan<'_, '_>, proposal: &Proposal<'_>) -> Result<(), Obstacle> {
    let prepared = scan.scene.simulator().prepared();
    let pools = proposal.replacements().iter().map(|it| it.pool.as_str());
    let bounds = pools.map(|pool| prepared.premium_max(pool));
    let bound = bounds.fold(PremiumMax::OFF, PremiumMax::tighter);
    let before = proposal.before.price_per_hour;
    let after = proposal.after.price_per_hour;
    if after <= bound.most(before) {
        return Ok(());
    }
    let reason =
        format!("{before:.4} to {after:.4} USD an hour by list price, {bound} more at most");
    Err(Obstacle::new(OutcomeId::NodePremiumExceeded, reason))
}

/// A move that was found, unless it saves so little of the bill that it must wait.
pub(crate) fn put_off_small_gain<'s>(
    scan: &mut Scan<'s, '_>,
    found: Option<Approved<'s>>,
) -> Option<Approved<'s>> {
    let (found, scene) = (found?, scan.scene);
    if !scene.input.gates.puts_moves_off {
        return Some(found);
    }
    let bill = bill_per_hour(scan);
    let (now, preferred) = (scene.input.options.now, &scan.memory.preferred);
    let judged = preferred.judge_gain(&found.proposal, bill, now, &mut scan.deferred);
    let Err(obstacle) = judged else {
        return Some(found);
    };
    for candidate in found.proposal.candidates {
        scan.note(candidate, obstacle.clone());
    }
    None
}

/// What keeps moves that rank behind another: they save little themselves, or wait for it. Since when each has been
/// wanted is kept of all of them, or of many small moves only one would go in an hour.
pub(crate) fn judge_behind<'s: 'p, 'p>(
    scan: &mut Scan<'s, '_>,
    moves: impl Iterator<Item = &'p Proposal<'s>>,
) -> Vec<(&'p Proposal<'s>, Obstacle)> {
    let scene = scan.scene;
    if !scene.input.gates.puts_moves_off {
        return Vec::new();
    }
    let (bill, now) = (bill_per_hour(scan), scene.input.options.now);
    let (preferred, deferred) = (&scan.memory.preferred, &mut scan.deferred);
    let judged = moves.map(|proposal| {
        let judged = preferred.judge_gain(proposal, bill, now, deferred);
        let waits = || Obstacle::new(OutcomeId::NodeOutranked, "a move before it is put off");
        (proposal, judged.err().unwrap_or_else(waits))
    });
    judged.collect()
}

/// Effective cost of all candidates.
fn bill_per_hour(scan: &mut Scan<'_, '_>) -> f64 {
    let costs = scan.weigh().costs;
    let all = scan.scene.candidates.iter();
    all.map(|it| costs.of(it).effective_per_hour).sum()
}

/// The candidates whose replacements did not fail lately.
pub(crate) fn without_backoff<'s>(
    scene: &Scene<'_>,
    candidates: &[&'s Candidate],
) -> Vec<&'s Candidate> {
    let candidates = candidates.iter().copied();
    candidates
        .filter(|it| backoff(scene, it).is_none())
        .collect()
}

/// The candidates whose last replacement did not come lately: they wait with moves that need another one.
pub(crate) fn in_backoff<'s>(
    scene: &Scene<'_>,
    candidates: &[&'s Candidate],
) -> Vec<&'s Candidate> {
    let candidates = candidates.iter().copied();
    candidates
        .filter(|it| backoff(scene, it).is_some())
        .collect()
}

/// The back-off that a move would break: one that needs no new node breaks none.
pub(crate) fn broken_backoff(scene: &Scene<'_>, proposal: &Proposal<'_>) -> Option<Obstacle> {
    let mut candidates = proposal.candidates.iter();
    let needs_new = !proposal.replacements().is_empty();
    needs_new.then(|| candidates.find_map(|it| backoff(scene, it)))?
}

fn backoff(scene: &Scene<'_>, candidate: &Candidate) -> Option<Obstacle> {
    let (history, now) = (&scene.input.history, scene.input.options.now);
    let ReplacementPause { until, failures } = history.claim_pause(candidate.claim(), now)?;
    let reason = format!("{failures} in a row, next try {until}");
    Some(Obstacle::new(OutcomeId::NodeReplacementFailed, reason))
}
