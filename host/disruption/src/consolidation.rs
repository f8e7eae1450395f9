//! What both kinds of consolidation share: who is eligible, what a set of nodes could become, and what keeps them from
//! a move.
//!
//! Moves are found and weighed by effective cost, which is the list price where no ranking policy says otherwise; what
//! that policy excludes does not come. A proposal is worth its cost natively before a policy sees it. Answers to
//! Karpenter's `disruption/consolidation.go`.

mod cheaper;
pub(crate) mod eligibility;
pub(crate) mod guards;
pub(crate) mod lower_bound;
pub(crate) mod moves;
pub(crate) mod price;
mod removal;
pub(crate) mod savings;
pub(crate) mod settling;
mod several;

use std::collections::BTreeSet;

use crate::candidate::Candidate;
use crate::memory::NothingFound;
use crate::method::Method;
use crate::obstacle::Obstacle;
use crate::scan::Scan;
use eligibility::eligibility;

pub use crate::input::Gates;

/// What a method of consolidation may try, in the policy's order and within the budgets. `None` when nothing changed
/// since it last found nothing, and while nodes come to rest.
pub(crate) fn candidates<'s>(
    scan: &mut Scan<'s, '_>,
    method: Method,
) -> Option<Vec<&'s Candidate>> {
    let scene = scan.scene;
    let eligible = eligible(scan);
    if settling::awaits_others(scan, &eligible) {
        return None;
    }
    let eligible = scan.unblocked(eligible, method);
    scan.count(method, eligible.len());
    if eligible.is_empty() {
        return Some(eligible);
    }
    let (snapshot, now) = (scene.input.snapshot, scene.input.options.now);
    let state = snapshot.consolidation_state(now);
    let claims = claims(&eligible);
    let resting = self::claims(&guards::resting(scene, &eligible));
    let is_due = scan.memory.preferred.is_due(now);
    let known = scan.memory.nothing_found.get(&method).cloned();
    let known = known.filter(|it| {
        let is_the_same = it.state == state && it.resting == resting;
        is_the_same && !is_due && claims.is_subset(&it.claims)
    });
    if known.as_ref().is_some_and(|it| claims.is_subset(&it.tried)) {
        repeat_findings(scan, &eligible);
        return None;
    }
    let ordered = scan.ordered(&eligible);
    let kept = match method {
        Method::SingleNodeConsolidation => scan.each_within(&ordered, method),
        Method::MultiNodeConsolidation
        | Method::Repair
        | Method::Emptiness
        | Method::StaticDrift
        | Method::Drift
        | Method::Expiry => scan.within(&ordered, method),
    };
    let tried = self::claims(&kept);
    if known.is_some_and(|it| tried.is_subset(&it.tried)) {
        repeat_findings(scan, &kept);
        return None;
    }
    let nothing = NothingFound {
        state,
        claims,
        resting,
        tried,
    };
    scan.memory.nothing_found.insert(method, nothing);
    Some(kept)
}

fn eligible<'s>(scan: &mut Scan<'s, '_>) -> Vec<&'s Candidate> {
    let scene = scan.scene;
    let mut eligible = Vec::new();
    // What emptiness or drift said of empty nodes stands.
    for candidate in scene.candidates.iter().filter(|it| !it.is_empty()) {
        match eligibility(scene, candidate) {
            Ok(()) if scan.is_held(candidate) => {}
            Ok(()) => eligible.push(candidate),
            Err(obstacle) => scan.note(candidate, obstacle),
        }
    }
    eligible
}

fn repeat_findings<'s>(scan: &mut Scan<'s, '_>, candidates: &[&'s Candidate]) {
    for candidate in candidates {
        let known = scan.memory.findings.get(candidate.claim()).cloned();
        if let Some((outcome, reason)) = known {
            scan.note(candidate, Obstacle { outcome, reason });
        }
    }
}

/// Names of the candidates' claims.
pub(crate) fn claims(candidates: &[&Candidate]) -> BTreeSet<String> {
    candidates.iter().map(|it| it.claim().to_owned()).collect()
}
