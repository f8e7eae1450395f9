//! How many nodes of each pool may be disrupted now: declared budgets, the policy's say, the host's minimum.
//!
//! A policy can only narrow what the budgets declare, unless its binding was given authority to replace
//! them. What cannot be understood allows nothing. Answers to Karpenter's `NodePool.GetAllowedDisruptions`
//! and `disruption/helpers.go` (`BuildDisruptionBudgetMapping`).

pub(crate) mod pools;
mod remaining;
mod schedule;
mod window;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use apis::NodePool;
use apis::nodepool::{Budget, DisruptionReason};
use hooks::disruption::{
    Allowance, BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook, Context,
    DeclaredBudget,
};
use jiff::Timestamp;
use scheduling::ranking::PolicyUse;
use state::Snapshot;

use pools::pools;
pub use pools::{BudgetWorld, RolloutTarget, Targets, targets};
use remaining::Remaining;
pub use window::InvalidBudget;
use window::window;

/// Source of a number that no policy has a part in.
const DECLARED: &str = "declared budgets";

/// Nodes that may still be disrupted in this loop, and why.
#[derive(Debug, Clone, Default)]
pub struct Budgets {
    /// The nodes, by pool and reason.
    pub(crate) remaining: Remaining,
    /// Per pool, those without nodes too, and reason: what was allowed, what was already under way, and why.
    pub details: Vec<BudgetDetail>,
    /// Policies that took part.
    pub uses: Vec<PolicyUse>,
    /// Ask again no later than this; `None`: at the next loop.
    pub valid_for_seconds: Option<NonZero<u32>>,
}

/// How one number came about, for metrics, events and records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetDetail {
    /// Name of the NodePool.
    pub pool: String,
    /// Reason of the disruptions that the number limits.
    pub reason: BudgetReason,
    /// Nodes that may be disrupted at once, those of `consuming` included.
    pub allowed: u32,
    /// Nodes that use the budget up already.
    pub consuming: u32,
    /// Nodes of the pool that count.
    pub total: u32,
    /// Source of the number in words: `declared budgets`, the policy's explanation, or the fault of a budget.
    pub why: String,
}

impl Budgets {
    /// Asks the policy, then takes the host's minimum.
    pub fn ask(world: &BudgetWorld<'_>, context: Context, hook: &dyn BudgetsHook) -> Self {
        let (snapshot, now) = (world.snapshot, world.now);
        let (pools, faults): (Vec<_>, Vec<_>) = pools(world).into_iter().unzip();
        let details = without_nodes(snapshot, &pools, now);
        if pools.is_empty() {
            return Self {
                details,
                ..Self::default()
            };
        }
        let round = BudgetRound { context, pools };
        let answer = hook.allow(&round);
        let mut budgets = Self {
            uses: answer.uses,
            valid_for_seconds: NonZero::new(answer.valid_for_seconds),
            details,
            ..Self::default()
        };
        let rebooting = rebooting(snapshot);
        for ((index, pool), fault) in (0_u32..).zip(&round.pools).zip(&faults) {
            let rebooting = rebooting.get(pool.name.as_str()).copied();
            let left = BudgetReason::ALL.map(|reason| {
                let asked = answer
                    .items
                    .iter()
                    .find(|it| it.pool == index && it.reason == reason);
                let declared = pool.declared_allowed(reason);
                let (allowed, why) = combine(declared, asked, fault.as_ref());
                let consuming = match reason {
                    // Sick nodes are what repair is for, so they do not use up its budget.
                    BudgetReason::Unhealthy => pool.deleting + rebooting.unwrap_or_default(),
                    BudgetReason::Underutilized | BudgetReason::Empty | BudgetReason::Drifted => {
                        pool.not_ready + pool.deleting
                    }
                };
                budgets.details.push(BudgetDetail {
                    pool: pool.name.clone(),
                    reason,
                    allowed,
                    consuming,
                    total: pool.total,
                    why,
                });
                allowed.saturating_sub(consuming)
            });
            budgets.remaining.insert(pool.name.clone(), left);
        }
        budgets
    }

    /// Why a pool's budget is what it is.
    pub fn why(&self, pool: &str, reason: BudgetReason) -> String {
        self.details
            .iter()
            .find(|it| it.pool == pool && it.reason == reason)
            .map(|it| {
                format!(
                    "{} of {} nodes allowed at once, {} under way: {}",
                    it.allowed, it.total, it.consuming, it.why
                )
            })
            .unwrap_or_default()
    }
}

/// The host's minimum and its source in words: a policy narrows, and widens only with authority. What it says in place
/// of the declared budgets is its own, whatever is wrong with them.
fn combine(
    declared: u32,
    asked: Option<&Allowance>,
    fault: Option<&InvalidBudget>,
) -> (u32, String) {
    let (allowed, why) = match asked {
        Some(it) if it.replaces_declared => return (it.allowed, it.why.clone()),
        Some(it) if it.allowed <= declared => (it.allowed, it.why.clone()),
        Some(_) | None => (declared, DECLARED.to_owned()),
    };
    (allowed, blamed(allowed, why, fault))
}

/// Source of a number in words; where nothing is allowed, a budget that cannot be understood is to blame.
fn blamed(allowed: u32, why: String, fault: Option<&InvalidBudget>) -> String {
    let blamed = fault.filter(|_| allowed == 0);
    blamed.map_or(why, |it| format!("a budget cannot be understood: {it}"))
}

/// Numbers for the pools without nodes. No policy is asked about them, as there is nothing to disrupt.
fn without_nodes(snapshot: &Snapshot, others: &[BudgetPool], now: Timestamp) -> Vec<BudgetDetail> {
    let of_pool = |pool: &NodePool| {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let ResolvedBudgets { budgets, fault } = declared(pool, 0, now);
        let pool = BudgetPool {
            declared: budgets,
            ..BudgetPool::default()
        };
        let detail = move |reason| {
            let allowed = pool.declared_allowed(reason);
            BudgetDetail {
                pool: name.clone(),
                reason,
                allowed,
                consuming: 0,
                total: 0,
                why: blamed(allowed, DECLARED.to_owned(), fault.as_ref()),
            }
        };
        BudgetReason::ALL.into_iter().map(detail)
    };
    let is_empty = |pool: &&Arc<NodePool>| {
        let name = pool.metadata.name.as_deref();
        others.iter().all(|it| Some(it.name.as_str()) != name)
    };
    let pools = snapshot.node_pools().filter(is_empty);
    pools.flat_map(|it| of_pool(it)).collect()
}

/// Nodes that reboot and are not going, by pool.
fn rebooting(snapshot: &Snapshot) -> BTreeMap<&str, u32> {
    let mut counts = BTreeMap::new();
    for node in snapshot.nodes().filter(|it| !it.is_marked_for_deletion()) {
        let claim = node.claim();
        let is_rebooting = claim.is_some_and(|it| {
            it.conditions.rebooting_at.is_some() && it.conditions.instance_terminating_at.is_none()
        });
        if let Some(pool) = node.node_pool().filter(|_| is_rebooting) {
            *counts.entry(pool).or_default() += 1;
        }
    }
    counts
}

/// The budgets of a pool, resolved against its number of nodes.
pub(crate) struct ResolvedBudgets {
    pub(crate) budgets: Vec<DeclaredBudget>,
    /// The first thing wrong with them.
    pub(crate) fault: Option<InvalidBudget>,
}

/// The budgets of a pool of so many nodes. One that cannot be understood allows nothing: nobody knows what the author
/// meant.
pub(crate) fn declared(pool: &NodePool, total: u32, now: Timestamp) -> ResolvedBudgets {
    resolved(&pool.spec.disruption.budgets, total, now)
}

fn resolved(budgets: &[Budget], total: u32, now: Timestamp) -> ResolvedBudgets {
    let mut fault = None;
    let budgets = budgets.iter().map(|budget| {
        resolve(budget, total, now).unwrap_or_else(|error| {
            fault.get_or_insert(error);
            closed(budget)
        })
    });
    ResolvedBudgets {
        budgets: budgets.collect(),
        fault,
    }
}

fn closed(budget: &Budget) -> DeclaredBudget {
    DeclaredBudget {
        nodes: budget.nodes.clone(),
        resolved: 0,
        active: true,
        next_change_seconds: 0,
        reasons: BudgetReasons::ALL,
    }
}

fn resolve(budget: &Budget, total: u32, now: Timestamp) -> Result<DeclaredBudget, InvalidBudget> {
    let nodes = budget.allowed_nodes()?;
    let window = window(budget, now)?;
    Ok(DeclaredBudget {
        nodes: budget.nodes.clone(),
        resolved: nodes.of(total),
        active: window.is_open,
        next_change_seconds: window.next_change_seconds.map_or(0, NonZero::get),
        reasons: BudgetReasons {
            underutilized: budget.covers(DisruptionReason::Underutilized),
            empty: budget.covers(DisruptionReason::Empty),
            drifted: budget.covers(DisruptionReason::Drifted),
            unhealthy: budget.covers(DisruptionReason::Unhealthy),
        },
    })
}

#[cfg(test)]
mod tests;
