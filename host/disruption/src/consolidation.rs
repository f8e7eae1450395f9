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
mod several;
pub(crate) mod stabilization;

use std::collections::BTreeSet;

use crate::candidate::Candidate;
use crate::memory::NothingFound;
use crate::method::{ConsolidationMethod, Method};
use crate::scan::Scan;
use eligibility::eligibility;

/// A look of a method for a move.
pub(crate) struct ConsolidationLook<'s> {
    /// Nodes to try, in the policy's order and within the budgets.
    pub(crate) candidates: Vec<&'s Candidate>,
    /// Those of them that were tried before and have not changed since.
    pub(crate) tried_before: BTreeSet<String>,
    /// Record to keep where nothing comes of them all.
    pub(crate) nothing: NothingFound,
}

/// Has a method look for a move, unless nothing changed since it last found nothing. A look that comes to nothing is
/// remembered here and nowhere else: one that was cut off, or that found something, is always followed by another.
pub(crate) fn look<'s, T>(
    scan: &mut Scan<'s, '_>,
    method: ConsolidationMethod,
    find: impl FnOnce(&mut Scan<'s, '_>, &mut ConsolidationLook<'s>) -> Option<T>,
) -> Option<T> {
    let mut look = prepare_look(scan, method)?;
    let found = find(scan, &mut look);
    let method = Method::from(method);
    if found.is_some() || scan.scene.interrupt.is_tripped() {
        scan.memory.nothing_found.remove(&method);
    } else {
        scan.memory.nothing_found.insert(method, look.nothing);
    }
    found
}

/// Candidates to try. `None` where no node is eligible, while those that are wait for others to come to rest, and where
/// nothing changed since nothing was found: then the same is said again.
fn prepare_look<'s>(
    scan: &mut Scan<'s, '_>,
    kind: ConsolidationMethod,
) -> Option<ConsolidationLook<'s>> {
    let (scene, method) = (scan.scene, Method::from(kind));
    // What emptiness or drift said of empty nodes stands.
    let used = scene.candidates.iter().filter(|it| !it.is_empty());
    let eligible = scan.retain_eligible(used, eligibility);
    if stabilization::wait_for_others(scan, &eligible) {
        return None;
    }
    let eligible = scan.retain_unblocked(eligible, method);
    scan.count(method, eligible.len());
    if eligible.is_empty() {
        return None;
    }
    let (snapshot, now) = (&scene.input.snapshot, scene.input.options.now);
    let state = snapshot.consolidation_state(now);
    let claims = claims(&eligible);
    let in_backoff = self::claims(&guards::in_backoff(scene, &eligible));
    let is_due = scan.memory.preferred.is_due(now);
    let known = scan.memory.nothing_found.get(&method).cloned();
    let known = known.filter(|it| {
        let is_the_same = it.state == state && it.in_backoff == in_backoff;
        is_the_same && !is_due && claims.is_subset(&it.claims)
    });
    if known.as_ref().is_some_and(|it| claims.is_subset(&it.tried)) {
        repeat_findings(scan, &eligible);
        return None;
    }
    let ordered = scan.put_in_order(&eligible);
    let candidates = match kind {
        ConsolidationMethod::Single => scan.retain_each_within(&ordered, method),
        ConsolidationMethod::Multi => scan.retain_within(&ordered, method),
    };
    let tried = self::claims(&candidates);
    if known.as_ref().is_some_and(|it| tried.is_subset(&it.tried)) {
        repeat_findings(scan, &candidates);
        return None;
    }
    let tried_before = known.map_or_else(BTreeSet::new, |it| &it.tried & &tried);
    let nothing = NothingFound {
        state,
        claims,
        in_backoff,
        tried,
    };
    Some(ConsolidationLook {
        candidates,
        tried_before,
        nothing,
    })
}

/// Says again what kept the candidates when they were last looked at.
pub(crate) fn repeat_findings<'s>(scan: &mut Scan<'s, '_>, candidates: &[&'s Candidate]) {
    for candidate in candidates {
        let known = scan.memory.kept.get(candidate.claim()).cloned();
        if let Some(obstacle) = known {
            scan.note(candidate, obstacle);
        }
    }
}

/// Names of the candidates' claims.
pub(crate) fn claims(candidates: &[&Candidate]) -> BTreeSet<String> {
    candidates.iter().map(|it| it.claim().to_owned()).collect()
}
