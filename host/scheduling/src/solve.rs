//! The solver: pods to nodes that exist, to claims opened in this pass, to new claims.
//!
//! Total and deterministic. Answers to Karpenter's `scheduling/scheduler.go`.

use crate::interrupt::Interrupt;
use crate::problem::Problem;
use crate::ranking::RankHook;
use crate::solution::Solution;

/// Places the pods of the problem.
pub fn solve(problem: &Problem, hook: &dyn RankHook, interrupt: &Interrupt) -> Solution {
    let _ = (problem, hook, interrupt);
    Solution::default()
}
