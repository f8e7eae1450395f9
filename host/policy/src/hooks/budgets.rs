//! Budgets: among the policies for a pool the minimum wins.
//!
//! Whether an allowance may stand in for the declared budgets is noted here and weighed by the asker.

use std::collections::{BTreeMap, BTreeSet};

use hooks::binding::{Authority, OnFailure};
use hooks::columns::{index, saturated};
use hooks::disruption::{
    AllowAnswer, Allowance, BudgetReason, BudgetRound, BudgetsHook, DeclaredBudgets, PolicyUse,
};
use hooks::policy_use::PolicyKind;

use super::add_use;
use crate::active_policy::ActivePolicy;
use crate::answer::Allowed;
use crate::host::{HostState, PolicyHost, RoundRef};
use crate::records::ShadowDifference;

impl BudgetsHook for PolicyHost {
    fn allow(&self, round: &BudgetRound) -> AllowAnswer {
        let host = &self.inner;
        let active = host.active();
        let mut allowances = Allowances {
            items: BTreeMap::new(),
            valid_for_seconds: None,
        };
        let mut uses = Vec::new();
        let mut fallback = None;
        for policy in active.deciding(PolicyKind::Budgets) {
            if !round.pools.iter().any(|pool| policy.is_for(&pool.name)) {
                continue;
            }
            let called = host.ask_allow(&policy, round);
            add_use(
                &mut uses,
                host.note(&policy, at_round(round), &called, None),
            );
            let answer = match (called.result, policy.on_failure) {
                (Ok(answer), _) => answer,
                (Err(_), OnFailure::Hold) => nothing(round, &policy.name),
                (Err(_), OnFailure::Default) => fallback
                    .get_or_insert_with(|| default_answer(host, round, &mut uses))
                    .clone(),
            };
            if let Some(changed) = allowances.lowered_by(round, &answer, &policy) {
                host.note_change(&policy, at_round(round), changed);
            }
            allowances.lower(round, &answer, &policy);
        }
        let decided: DecidedReasons = allowances.items.keys().copied().collect();
        if !allowances.is_complete(round) {
            let answer = fallback.unwrap_or_else(|| default_answer(host, round, &mut uses));
            allowances.fill(&answer);
        }
        let items: Vec<Allowance> = allowances.items.into_values().collect();
        for shadow in active.shadows(PolicyKind::Budgets) {
            watch(host, round, &shadow, &items, &decided);
        }
        AllowAnswer {
            items,
            valid_for_seconds: allowances.valid_for_seconds.unwrap_or(0),
            uses,
        }
    }
}

fn at_round(round: &BudgetRound) -> RoundRef<'_> {
    RoundRef {
        kind: PolicyKind::Budgets,
        decision_id: &round.context.decision_id,
        now_seconds: round.context.now_seconds,
    }
}

fn default_answer(host: &HostState, round: &BudgetRound, uses: &mut Vec<PolicyUse>) -> Allowed {
    let asked = host.default_of(PolicyKind::Budgets).and_then(|default| {
        let called = host.ask_allow(&default, round);
        add_use(uses, host.note(&default, at_round(round), &called, None));
        called.result.ok()
    });
    asked.unwrap_or_else(|| Allowed {
        items: DeclaredBudgets.allow(round).items,
        valid_for_seconds: 0,
    })
}

/// Allowance of a failed policy under `on-failure: hold`: no node.
fn nothing(round: &BudgetRound, name: &str) -> Allowed {
    let why = format!("policy {name} failed, and its binding says to hold");
    let items = (0_u32..)
        .zip(&round.pools)
        .flat_map(|(pool, _)| BudgetReason::JUDGED.map(|reason| (pool, reason)))
        .map(|(pool, reason)| Allowance {
            pool,
            reason,
            allowed: 0,
            why: why.clone(),
            replaces_declared: false,
        })
        .collect();
    Allowed {
        items,
        valid_for_seconds: 0,
    }
}

/// Pools and reasons for which a policy has spoken.
type DecidedReasons = BTreeSet<(u32, BudgetReason)>;

struct Allowances {
    items: BTreeMap<(u32, BudgetReason), Allowance>,
    valid_for_seconds: Option<u32>,
}

impl Allowances {
    /// Allowances that an answer lowers below those before it, or below the declared budgets, in words; `None` for
    /// none.
    fn lowered_by(
        &self,
        round: &BudgetRound,
        answer: &Allowed,
        policy: &ActivePolicy,
    ) -> Option<String> {
        let lowered = answer.items.iter().filter_map(|item| {
            let pool = round.pools.get(index(item.pool))?;
            let declared = || pool.declared_least(item.reason).unwrap_or(pool.total);
            let known = self.items.get(&(item.pool, item.reason));
            let before = known.map_or_else(declared, |it| it.allowed);
            let is_lower = item.allowed < before && policy.is_for(&pool.name);
            is_lower.then(|| {
                let (name, reason, after) = (&pool.name, item.reason.as_str(), item.allowed);
                format!("{name} {reason} {before} -> {after}")
            })
        });
        let lowered: Vec<String> = lowered.collect();
        let first = lowered.first()?;
        Some(match lowered.len() {
            1 => first.clone(),
            all => format!("{first}, and {} more", all - 1),
        })
    }

    /// Takes in an answer where it is lower than what there is, for the pools it is for.
    fn lower(&mut self, round: &BudgetRound, answer: &Allowed, policy: &ActivePolicy) {
        for item in &answer.items {
            let pool = round.pools.get(index(item.pool));
            if !pool.is_some_and(|pool| policy.is_for(&pool.name)) {
                continue;
            }
            let mut item = item.clone();
            item.replaces_declared = policy.authority == Authority::Replace;
            self.items
                .entry((item.pool, item.reason))
                .and_modify(|known| {
                    if item.allowed < known.allowed {
                        *known = item.clone();
                    }
                })
                .or_insert(item);
        }
        self.valid_for(answer.valid_for_seconds);
    }

    /// Whether there is one for every pool and every reason that policies are asked about.
    fn is_complete(&self, round: &BudgetRound) -> bool {
        let pools = (0_u32..).zip(&round.pools);
        let mut wanted =
            pools.flat_map(|(pool, _)| BudgetReason::JUDGED.map(|reason| (pool, reason)));
        wanted.all(|it| self.items.contains_key(&it))
    }

    /// Takes in the default's answer where no policy gave one.
    fn fill(&mut self, default: &Allowed) {
        for item in &default.items {
            self.items
                .entry((item.pool, item.reason))
                .or_insert_with(|| item.clone());
        }
        self.valid_for(default.valid_for_seconds);
    }

    fn valid_for(&mut self, seconds: u32) {
        self.valid_for_seconds = Some(
            self.valid_for_seconds
                .map_or(seconds, |known| known.min(seconds)),
        );
    }
}

/// Asks a policy that only watches and notes how many allowances it would change: the minimum counts where other
/// policies decide, its own word where the default does.
fn watch(
    host: &HostState,
    round: &BudgetRound,
    shadow: &ActivePolicy,
    enforced: &[Allowance],
    decided: &DecidedReasons,
) {
    if !round.pools.iter().any(|pool| shadow.is_for(&pool.name)) {
        return;
    }
    let called = host.ask_allow(shadow, round);
    let difference = called.result.as_ref().ok().map(|answer| {
        let differs = |theirs: &&Allowance| {
            let place = (theirs.pool, theirs.reason);
            let pool = round.pools.get(index(theirs.pool));
            let ours = enforced
                .iter()
                .find(|ours| (ours.pool, ours.reason) == place);
            pool.is_some_and(|pool| shadow.is_for(&pool.name))
                && ours.is_some_and(|ours| {
                    if decided.contains(&place) {
                        theirs.allowed < ours.allowed
                    } else {
                        theirs.allowed != ours.allowed
                    }
                })
        };
        let disagreements = answer.items.iter().filter(differs).count();
        ShadowDifference {
            disagreements: saturated(disagreements),
            usd_per_hour: 0.0,
        }
    });
    host.note(shadow, at_round(round), &called, difference);
}
