//! Emptiness: nodes on which nothing is worth moving go, all of them in one command.
//!
//! No simulation: what little runs there is worth less than nothing. Answers to Karpenter's
//! `disruption/emptiness.go`.

use std::collections::BTreeSet;

use crate::candidate::Candidate;
use crate::command::{Approved, Command, Cost, Execution, Proposal};
use crate::consolidation::eligibility::eligibility_when_empty;
use crate::method::Method;
use crate::scan::Scan;

const METHOD: Method = Method::Emptiness;

/// All empty nodes within the budgets, in one command.
pub(crate) fn command(scan: &mut Scan<'_, '_>) -> Option<Command> {
    let scene = scan.scene;
    let empty = scene.candidates.iter().filter(|it| it.is_empty());
    let empty = scan.retain_eligible(empty, eligibility_when_empty);
    let empty = scan.retain_unblocked(empty, METHOD);
    scan.count(METHOD, empty.len());
    if empty.is_empty() {
        return None;
    }
    let ordered = scan.put_in_order(&empty);
    let removable = scan.retain_each_within(&ordered, METHOD).into_iter();
    let proposals: Vec<_> = removable.map(|it| proposal(it, scan.cost(it))).collect();
    let mut approved = scan.ask_verdicts(proposals);
    let removed = approved.iter().flat_map(|it| &it.proposal.candidates);
    let removed: Vec<&Candidate> = removed.copied().collect();
    let together = scan.retain_within(&removed, METHOD);
    let together: BTreeSet<&str> = together.into_iter().map(Candidate::name).collect();
    approved.retain(|it| {
        let mut removed = it.proposal.candidates.iter();
        removed.all(|it| together.contains(it.name()))
    });
    Some(scan.command(merge(approved)?))
}

/// The removal of one empty node, for the policy to judge.
fn proposal(candidate: &Candidate, cost: Cost) -> Proposal<'_> {
    Proposal {
        execution: Execution::DELETE,
        method: METHOD,
        candidates: vec![candidate],
        destinations: Vec::new(),
        before: cost,
        after: Cost::default(),
    }
}

/// All approved removals as one, with the verdict on the first.
fn merge(approved: Vec<Approved<'_>>) -> Option<Approved<'_>> {
    approved.into_iter().reduce(|mut all, next| {
        let (whole, part) = (&mut all.proposal, next.proposal);
        whole.candidates.extend(part.candidates);
        whole.before = [whole.before, part.before].into_iter().sum();
        all
    })
}
