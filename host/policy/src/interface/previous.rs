//! Calls of components that are built for the interface before this one. They need nothing, keep no memory, and are
//! told what they knew then.

use hooks::disruption as native;
use hooks::policy_use::PolicyKind;
use wasmtime::component::InstancePre;

use super::bindings_0_1::exports::mortise::policy::{budgets, consolidation, lifecycle, rank};
use super::bindings_0_1::mortise::policy::types::PolicyError;
use super::convert_0_1 as convert;
use super::exchange::{
    ConfigIssue, Descriptor, GivenAllowances, GivenRanking, GuestRefusal, GuestResult, JudgeAsk,
    RankAsk, Remembering, RunningInstance, missing,
};
use crate::call_context::CallContext;
use crate::guest::guest_state::GuestState;

/// The exports of a component.
pub(crate) struct PreviousGuest {
    lifecycle: lifecycle::GuestIndices,
    rank: Option<rank::GuestIndices>,
    consolidation: Option<consolidation::GuestIndices>,
    budgets: Option<budgets::GuestIndices>,
}

impl PreviousGuest {
    pub(super) fn new(pre: &InstancePre<GuestState>) -> Option<Self> {
        Some(Self {
            lifecycle: lifecycle::GuestIndices::new(pre).ok()?,
            rank: rank::GuestIndices::new(pre).ok(),
            consolidation: consolidation::GuestIndices::new(pre).ok(),
            budgets: budgets::GuestIndices::new(pre).ok(),
        })
    }

    pub(super) fn has(&self, kind: PolicyKind) -> bool {
        match kind {
            PolicyKind::Rank => self.rank.is_some(),
            PolicyKind::Consolidation => self.consolidation.is_some(),
            PolicyKind::Budgets => self.budgets.is_some(),
        }
    }

    pub(super) fn describe(
        &self,
        RunningInstance { store, instance }: RunningInstance<'_>,
    ) -> wasmtime::Result<Descriptor> {
        let guest = self.lifecycle.load(&mut *store, instance)?;
        let lifecycle::Descriptor {
            name,
            version,
            summary,
            config_schema,
            deterministic,
        } = guest.call_describe(store)?;
        Ok(Descriptor {
            name,
            version,
            summary,
            config_schema,
            deterministic,
            needs: Vec::new(),
            sdk: String::new(),
        })
    }

    pub(super) fn validate(
        &self,
        RunningInstance { store, instance }: RunningInstance<'_>,
        config: &str,
    ) -> wasmtime::Result<Result<Vec<ConfigIssue>, Vec<ConfigIssue>>> {
        let guest = self.lifecycle.load(&mut *store, instance)?;
        let answer = guest.call_validate(store, config)?;
        Ok(answer.map(issues).map_err(issues))
    }

    pub(super) fn configure(
        &self,
        RunningInstance { store, instance }: RunningInstance<'_>,
        config: &str,
    ) -> wasmtime::Result<Result<(), Vec<ConfigIssue>>> {
        let guest = self.lifecycle.load(&mut *store, instance)?;
        Ok(guest.call_configure(store, config)?.map_err(issues))
    }

    pub(super) fn rank(
        &self,
        RunningInstance { store, instance }: RunningInstance<'_>,
        call: &CallContext<'_>,
        ask: RankAsk<'_>,
    ) -> GuestResult<Remembering<Vec<GivenRanking>>> {
        let indices = self.rank.as_ref().ok_or_else(|| missing("rank"))?;
        let guest = indices.load(&mut *store, instance)?;
        let answer = convert::with_context(call, |context| {
            convert::with_offerings(call, ask.round, ask.prior, |table| {
                convert::with_claims(ask.claims, |claims| {
                    guest.call_rank(store, context, table, claims)
                })
            })
        })?;
        let answer = answer.map(|items| items.into_iter().map(convert::ranking).collect());
        Ok(answer.map(forgetting).map_err(refusal))
    }

    pub(super) fn order(
        &self,
        RunningInstance { store, instance }: RunningInstance<'_>,
        call: &CallContext<'_>,
        round: &native::ConsolidationRound,
    ) -> GuestResult<Vec<f64>> {
        let guest = self
            .consolidation
            .as_ref()
            .ok_or_else(|| missing("consolidation"))?
            .load(&mut *store, instance)?;
        let answer = convert::with_context(call, |context| {
            convert::with_nodes(round, |nodes| guest.call_order(store, context, nodes))
        })?;
        Ok(answer.map_err(refusal))
    }

    pub(super) fn judge(
        &self,
        RunningInstance { store, instance }: RunningInstance<'_>,
        call: &CallContext<'_>,
        JudgeAsk { round, moves }: JudgeAsk<'_>,
    ) -> GuestResult<Remembering<Vec<native::Verdict>>> {
        let guest = self
            .consolidation
            .as_ref()
            .ok_or_else(|| missing("consolidation"))?
            .load(&mut *store, instance)?;
        let moves: Vec<_> = moves
            .iter()
            .map(|it| convert::proposed(round, it))
            .collect();
        let answer = convert::with_context(call, |context| {
            convert::with_nodes(round, |nodes| {
                guest.call_judge(store, context, nodes, &moves)
            })
        })?;
        let answer = answer.map(|items| items.into_iter().map(convert::verdict).collect());
        Ok(answer.map(forgetting).map_err(refusal))
    }

    pub(super) fn allow(
        &self,
        RunningInstance { store, instance }: RunningInstance<'_>,
        call: &CallContext<'_>,
        pools: &[native::BudgetPool],
    ) -> GuestResult<Remembering<GivenAllowances>> {
        let indices = self.budgets.as_ref().ok_or_else(|| missing("budgets"))?;
        let guest = indices.load(&mut *store, instance)?;
        let answer = convert::with_context(call, |context| {
            convert::with_pools(pools, |pools| guest.call_allow(store, context, pools))
        })?;
        let answer = answer.map(|allowances| {
            let budgets::Allowances { items, valid_for } = allowances;
            GivenAllowances {
                items: items.into_iter().map(convert::allowance).collect(),
                valid_for_seconds: valid_for,
            }
        });
        Ok(answer.map(forgetting).map_err(refusal))
    }
}

fn forgetting<T>(answer: T) -> Remembering<T> {
    Remembering {
        answer,
        memory: None,
    }
}

fn issues(issues: Vec<lifecycle::ConfigIssue>) -> Vec<ConfigIssue> {
    let issue = |it| {
        let lifecycle::ConfigIssue { path, message } = it;
        ConfigIssue { path, message }
    };
    issues.into_iter().map(issue).collect()
}

fn refusal(error: PolicyError) -> GuestRefusal {
    let PolicyError { message, transient } = error;
    GuestRefusal { message, transient }
}
