//! The solver: pods to nodes that exist, to claims opened in this pass, to new claims.
//!
//! Works in rounds. Each round takes the pods that are left at their present step of relaxation; those that find no
//! place are relaxed by one step, as views, and tried again. Total and deterministic. Answers to Karpenter's
//! `scheduling/scheduler.go`.

use std::collections::BTreeMap;

use apis::NodeRef;

use crate::error::PodError;
use crate::interrupt::Interrupt;
use crate::problem::Problem;
use crate::ranking::RankHook;
use crate::solution::Solution;

mod answer;
mod assign_and_pack;
mod input;
mod lower_bound;
mod pack;
mod place;
mod solver;

pub use input::prepared::{Prepared, Sale, TableCache};
pub use lower_bound::lower_bound_per_hour;

use answer::premium;
use input::pod_groups::{PodGroupId, sort_pods};
use place::open_claims::CostRise;
use solver::{DeferredDomains, Pending, Solver, ViewId};

/// Places the pods of the problem.
pub fn solve(problem: &Problem, hook: &dyn RankHook, interrupt: &Interrupt) -> Solution {
    let cache = TableCache::default();
    let prepared = Prepared::new(problem, hook, &cache);
    Solution {
        uses: prepared.uses().to_vec(),
        ..solve_within_premium(problem, &prepared, &cache, interrupt)
    }
}

/// Solves, and takes the plan of list prices where the policy's costs too much.
pub fn solve_within_premium(
    problem: &Problem,
    prepared: &Prepared,
    cache: &TableCache,
    interrupt: &Interrupt,
) -> Solution {
    let solution = solve_prepared(problem, prepared, interrupt);
    let bound = premium::bound(&solution, prepared);
    let Some(list_prices) = prepared.list_prices().filter(|_| bound.is_on()) else {
        return solution;
    };
    let listed = Prepared::new(problem, &list_prices, cache);
    let listed = solve_prepared(problem, &listed, interrupt);
    premium::within(bound, solution, listed)
}

/// Places the pods of a problem whose pools and nodes were prepared; the nodes and the policies asked are the
/// preparation's.
pub fn solve_prepared(problem: &Problem, prepared: &Prepared, interrupt: &Interrupt) -> Solution {
    solve_without(problem, prepared, &[], interrupt)
}

/// As [`solve_prepared`], as if these nodes were removed.
pub fn solve_without(
    problem: &Problem,
    prepared: &Prepared,
    removed: &[NodeRef],
    interrupt: &Interrupt,
) -> Solution {
    let removed = prepared.positions(removed);
    let mut deferred = DeferredDomains::new();
    loop {
        let mut solution = Solution {
            pool_errors: prepared.pool_errors.clone(),
            notes: prepared.notes.clone(),
            ..Solution::default()
        };
        let mut solver = Solver::new(problem, prepared, &removed, deferred.clone());
        let waiting = solver.place_all(interrupt);
        solution.is_interrupted = interrupt.is_tripped();
        deferred.extend(solver.defer_for_reservations(&mut solution));
        // Others were told that these pods are where they would have been.
        if deferred.len() > solver.deferred.len() && !interrupt.is_tripped() {
            continue;
        }
        solver.report_errors(&waiting, &mut solution);
        return solver.finalize(solution);
    }
}

impl Solver<'_> {
    /// Places what can be placed; returns the rest.
    fn place_all(&mut self, interrupt: &Interrupt) -> Vec<Pending> {
        let mut waiting: Vec<Pending> = PodGroupId::all(self.groups.len())
            .map(|group| self.pending(group))
            .collect();
        loop {
            let placed_before = self.placed;
            self.failed_domains.clear();
            waiting = self.pass(waiting, interrupt);
            if waiting.is_empty() || interrupt.is_tripped() {
                return waiting;
            }
            // Pods that depend on others (affinity) get another chance as long as anything moves, and those that were
            // sent where no node can be had another domain.
            let closed_before = self.closed_domains.len();
            if self.placed == placed_before {
                self.closed_domains.append(&mut self.failed_domains);
                if self.closed_domains.len() == closed_before {
                    return waiting;
                }
            }
        }
    }

    fn pending(&self, group: PodGroupId) -> Pending {
        Pending {
            view: ViewId::strictest(group),
            members: self.groups[group].members.clone(),
        }
    }

    /// Tries everything once, relaxing step by step; returns what found no place, unrelaxed.
    fn pass(&mut self, pending: Vec<Pending>, interrupt: &Interrupt) -> Vec<Pending> {
        let mut exhausted = Vec::new();
        let mut queue = pending;
        while !queue.is_empty() && !interrupt.is_tripped() {
            let left = self.attempt(queue, interrupt);
            queue = Vec::new();
            for mut pending in left {
                if pending.view.step + 1 < self.groups[pending.view.group].views.len() {
                    pending.view.step += 1;
                    queue.push(pending);
                } else {
                    exhausted.push(unrelaxed(pending));
                }
            }
        }
        exhausted.extend(queue.into_iter().map(unrelaxed));
        exhausted
    }

    /// One attempt for each pending pod at its present step.
    fn attempt(&mut self, mut queue: Vec<Pending>, interrupt: &Interrupt) -> Vec<Pending> {
        for pending in &mut queue {
            self.place_on_nodes(pending);
        }
        queue.retain(|p| !p.members.is_empty());
        let held = self.hold_for_devices(&mut queue);
        if !self.claims.is_empty() {
            for pending in &mut queue {
                self.place_on_claims(pending, CostRise::WorthMax);
            }
            queue.retain(|p| !p.members.is_empty());
        }
        let mut left = self.assign_and_pack(queue, interrupt);
        left.retain(|p| !p.members.is_empty());
        left.extend(held);
        merge_pending(self.problem, left)
    }

    fn report_errors(&mut self, waiting: &[Pending], solution: &mut Solution) {
        for (pod, error) in std::mem::take(&mut self.refused) {
            solution
                .pod_errors
                .insert(self.problem.pods[pod].key.clone(), error);
        }
        for pending in waiting {
            let error = if solution.is_interrupted {
                PodError::Interrupted
            } else if let Some(pool) = self.awaited_reservation(pending.view.group, &[]) {
                PodError::ReservedCapacityPending { pool }
            } else if let Some(lack) = self.lack_of_devices(pending.view.group) {
                PodError::Devices(lack)
            } else {
                self.diagnose(pending)
            };
            for pod in &pending.members {
                solution
                    .pod_errors
                    .insert(self.problem.pods[*pod].key.clone(), error.clone());
            }
        }
    }
}

fn unrelaxed(pending: Pending) -> Pending {
    Pending {
        view: ViewId::strictest(pending.view.group),
        ..pending
    }
}

/// Joins what belongs together, in the order of groups.
fn merge_pending(problem: &Problem, pending: Vec<Pending>) -> Vec<Pending> {
    let mut merged: BTreeMap<ViewId, Vec<usize>> = BTreeMap::new();
    for Pending { view, members } in pending {
        merged.entry(view).or_default().extend(members);
    }
    merged
        .into_iter()
        .map(|(view, mut members)| {
            sort_pods(&problem.pods, &mut members);
            Pending { view, members }
        })
        .collect()
}
