//! Multi-node consolidation: the longest run of nodes that can go together, in the policy's order or the most wasteful
//! first; and where there is none, the most wasteful nodes for a cheaper set.
//!
//! The run is found by halving, because the more nodes go the less likely their pods still fit. Answers
//! to Karpenter's `disruption/multinodeconsolidation.go`, which has no second part.

use crate::candidate::Candidate;
use crate::command::{Approved, Command, Proposal};
use crate::consolidation::moves::{self, Replacements};
use crate::consolidation::savings::SAVINGS_SHARE_MIN;
use crate::consolidation::{self, guards};
use crate::method::ConsolidationMethod;
use crate::scan::Scan;
use crate::scene::PricedSimulator;

const METHOD: ConsolidationMethod = ConsolidationMethod::Multi;
/// How many of the most wasteful nodes are tried together.
const EXCHANGED: [usize; 11] = [2, 3, 4, 6, 8, 12, 16, 24, 36, 60, 100];
/// A smaller move is preferred to the one that saves most if it saves this share of it...
const ENOUGH: f64 = 0.9;
/// ...and leaves a bill that is at most this many times the least: where nearly all goes, what is left counts.
const LEFT_MAX: f64 = 1.05;
/// An exchange of nodes goes before a longer run of nodes that can go if it leaves this share of the bill that the run
/// would leave: what is nearly empty all over is then moved once, and not step by step. With a half, 5,000 pods that
/// are scaled to a tenth settle in 3 loops at what a fresh cluster costs; step by step it took 6, to 0.5 % above that.
const EXCHANGE_LEAVES: f64 = 0.5;

/// Most nodes that an exchange or moves joined to one command remove. Halving takes it for the last position that it
/// looks at, as Karpenter does, so that of more nodes a run may have one more.
pub(crate) const REMOVED_MAX: usize = 100;

/// Result of the search.
pub(crate) enum Found<'s> {
    /// A command for nodes that go together.
    Command(Command),
    /// An exchange of several nodes, to be had unless something simpler saves about as much.
    Exchange(Approved<'s>),
}

/// The longest run of nodes that can go together, or an exchange where there is none.
pub(crate) fn find<'s>(scan: &mut Scan<'s, '_>) -> Option<Found<'s>> {
    consolidation::look(scan, METHOD, |scan, look| {
        let is_for_several = look.candidates.len() >= 2;
        is_for_several
            .then(|| among(scan, &look.candidates))
            .flatten()
    })
}

fn among<'s>(scan: &mut Scan<'s, '_>, candidates: &[&'s Candidate]) -> Option<Found<'s>> {
    let scene = scan.scene;
    let priced = scan.weigh();
    let without_backoff = guards::without_backoff(scene, candidates);
    let wasteful = by_waste(priced, &without_backoff);
    let is_any_in_backoff = without_backoff.len() < candidates.len();
    let mut orders = vec![without_backoff, wasteful.clone()];
    if is_any_in_backoff {
        orders.extend([by_waste(priced, candidates), candidates.to_vec()]);
    }
    let bill = priced.cost_of(candidates).effective_per_hour;
    let Some(run) = best(longest_of_each(scan, &orders), bill) else {
        let exchange = exchange(scan, &wasteful, bill);
        return guards::put_off_small_gain(scan, exchange).map(Found::Exchange);
    };
    let run = cheapened(scan, run);
    let bill_max = (bill - run.savings_per_hour()) * EXCHANGE_LEAVES;
    // Not worth the simulations where not even full nodes would cost so little.
    let is_within_reach = priced.least_cost_of_pods(candidates) <= bill_max;
    let at_once = is_within_reach
        .then(|| exchange_at_once(scan, &wasteful, bill))
        .flatten()
        .filter(|it| bill - it.savings_per_hour() <= bill_max);
    let chosen = guards::put_off_small_gain(scan, Some(at_once.unwrap_or(run)))?;
    Some(Found::Command(scan.command(chosen)))
}

/// The longest approved run of each of the orders. All are simulated before a policy is asked about any.
fn longest_of_each<'s>(
    scan: &mut Scan<'s, '_>,
    orders: &[Vec<&'s Candidate>],
) -> Vec<Approved<'s>> {
    let (scene, priced) = (scan.scene, scan.weigh());
    let valid_runs = |order: &Vec<&'s Candidate>| {
        longest_runs(order, |first| {
            let found = moves::compute(priced, first, METHOD, Replacements::One).ok();
            found.filter(|it| guards::broken_backoff(scene, it).is_none())
        })
    };
    let by_order: Vec<Vec<Proposal<'s>>> = orders.iter().map(valid_runs).collect();
    let longest = by_order.into_iter();
    longest
        .filter_map(|valid| approve_longest(scan, valid))
        .collect()
}

/// Every valid proposal met while halving, longest last. `try_first` simulates the first so many candidates.
pub(crate) fn longest_runs<T, P>(
    candidates: &[T],
    mut try_first: impl FnMut(&[T]) -> Option<P>,
) -> Vec<P> {
    if candidates.len() < 2 {
        return Vec::new();
    }
    let mut valid = Vec::new();
    let (mut low, mut high) = (1, (candidates.len() - 1).min(REMOVED_MAX));
    while low <= high {
        let middle = usize::midpoint(low, high);
        match candidates.get(..=middle).and_then(&mut try_first) {
            Some(proposal) => {
                valid.push(proposal);
                low = middle + 1;
            }
            None => high = middle - 1,
        }
    }
    valid
}

/// The candidates whose cost exceeds the least that their pods could cost by as much as a move must save, most wasteful
/// first: the others would only make the move larger.
fn by_waste<'s>(
    priced: PricedSimulator<'_, '_>,
    candidates: &[&'s Candidate],
) -> Vec<&'s Candidate> {
    let waste = |it: &Candidate| {
        let cost = priced.costs.of(it).effective_per_hour;
        let waste = cost - priced.lower_bound.cost_per_hour(&it.requests);
        (waste >= cost * SAVINGS_SHARE_MIN).then_some(waste)
    };
    let mut wasteful: Vec<(f64, &Candidate)> = candidates
        .iter()
        .filter_map(|it| Some((waste(it)?, *it)))
        .filter(|(waste, _)| *waste > 0.0)
        .collect();
    // Stable: among equals the policy's order stands.
    wasteful.sort_by(|a, b| b.0.total_cmp(&a.0));
    wasteful.into_iter().map(|(_, it)| it).collect()
}

/// The smallest move that saves nearly as much as the best of a bill.
fn best(moves: Vec<Approved<'_>>, bill_per_hour: f64) -> Option<Approved<'_>> {
    let savings = moves.iter().map(Approved::savings_per_hour);
    let most = savings.max_by(f64::total_cmp)?;
    let is_enough = |it: &Approved<'_>| saves_enough(it.savings_per_hour(), most, bill_per_hour);
    let enough = moves.into_iter().filter(is_enough);
    enough.min_by_key(|it| it.proposal.candidates.len())
}

/// Whether a move that saves so much does as well as the one that saves most. That one does, also where it saves more
/// than the bill: costs that are added in another order come to another sum in the last digit.
fn saves_enough(saved: f64, most: f64, bill_per_hour: f64) -> bool {
    let left_max = (bill_per_hour - most).max(0.0) * LEFT_MAX;
    saved >= most || saved >= most * ENOUGH && bill_per_hour - saved <= left_max
}

/// Verdicts on shorter runs do not matter once a longer one is approved.
fn approve_longest<'s>(scan: &mut Scan<'s, '_>, valid: Vec<Proposal<'s>>) -> Option<Approved<'s>> {
    let approved = approve(scan, valid).into_iter();
    approved.max_by_key(|it| it.proposal.candidates.len())
}

/// The proposals that pass the guards and the policy.
fn approve<'s>(scan: &mut Scan<'s, '_>, valid: Vec<Proposal<'s>>) -> Vec<Approved<'s>> {
    let valid = guards::retain_passing(scan, valid);
    scan.ask_verdicts(valid)
}

/// A run with several new nodes instead of one, where these are cheaper.
fn cheapened<'s>(scan: &mut Scan<'s, '_>, run: Approved<'s>) -> Approved<'s> {
    if run.proposal.replacements().is_empty() {
        return run;
    }
    let candidates = &run.proposal.candidates;
    let several = moves::compute(scan.weigh(), candidates, METHOD, Replacements::Several).ok();
    let several = several.filter(|it| it.replacements().len() > 1);
    approve(scan, several.into_iter().collect())
        .pop()
        .unwrap_or(run)
}

/// The exchange of all nodes that are wasteful. Where one command cannot take them all, removing them step by step gets
/// further.
fn exchange_at_once<'s>(
    scan: &mut Scan<'s, '_>,
    wasteful: &[&'s Candidate],
    bill_per_hour: f64,
) -> Option<Approved<'s>> {
    let is_one_command = wasteful.len() <= REMOVED_MAX;
    is_one_command
        .then(|| exchange(scan, wasteful, bill_per_hour))
        .flatten()
}

/// The first of these nodes, the most wasteful first, for a cheaper set of new ones.
fn exchange<'s>(
    scan: &mut Scan<'s, '_>,
    wasteful: &[&'s Candidate],
    bill_per_hour: f64,
) -> Option<Approved<'s>> {
    let all = wasteful.len().min(REMOVED_MAX);
    let sizes = EXCHANGED.into_iter().filter(|size| *size < all);
    let sizes = sizes.chain((all >= 2).then_some(all));
    let mut valid = Vec::new();
    for size in sizes {
        if scan.scene.interrupt.is_tripped() {
            break;
        }
        let first = wasteful.get(..size)?;
        valid.extend(moves::compute(scan.weigh(), first, METHOD, Replacements::Several).ok());
    }
    best(approve(scan, valid), bill_per_hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_keeps_the_longest_run_that_works() {
        let mut tried = Vec::new();
        let found = longest_runs(&[0, 1, 2, 3, 4], |first| {
            tried.push(first.len());
            (first.len() <= 3).then(|| first.to_vec())
        });
        assert_eq!(tried, [3, 4]);
        assert_eq!(found.last().unwrap(), &[0, 1, 2]);
    }

    #[test]
    fn what_saves_most_is_enough_whatever_the_order_of_the_sums() {
        let (by_policy, by_waste) = (0.3 + 0.2 + 0.1, 0.1 + 0.2 + 0.3);
        assert!(by_policy < by_waste, "{by_policy} {by_waste}");
        for (saved, most, bill, enough) in [
            (by_waste, by_waste, by_policy, true),
            (by_policy, by_waste, by_policy, true),
            (by_policy, by_policy, by_waste, true),
            (0.55, by_waste, by_policy, false),
            (0.55, 0.6, 1.6, true),
            (0.5, 0.6, 1.6, false),
        ] {
            assert_eq!(saves_enough(saved, most, bill), enough, "{saved} {most}");
        }
    }

    #[test]
    fn one_node_is_no_matter_for_it() {
        let found: Vec<usize> = longest_runs(&[0], |_| unreachable!());
        assert!(found.is_empty());
    }
}
