//! Calls of components that are built for the interface of today.

use hooks::disruption as native;
use hooks::policy_use::PolicyKind;
use wasmtime::component::InstancePre;

use super::bindings::exports::mortise::policy::{budgets, consolidation, lifecycle, rank};
use super::bindings::mortise::policy::types::PolicyError;
use super::convert;
use super::exchange::{
    ConfigIssue, Descriptor, GivenAllowances, GivenRanking, GuestRefusal, GuestResult, JudgeAsk,
    RankAsk, Remembering, RunningInstance, missing,
};
use crate::call_context::CallContext;
use crate::guest::guest_state::GuestState;

/// The exports of a component.
pub(crate) struct CurrentGuest {
    lifecycle: lifecycle::GuestIndices,
    rank: Option<rank::GuestIndices>,
    consolidation: Option<consolidation::GuestIndices>,
    budgets: Option<budgets::GuestIndices>,
}

impl CurrentGuest {
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
            needs,
            sdk,
            extra: _,
        } = guest.call_describe(store)?;
        Ok(Descriptor {
            name,
            version,
            summary,
            config_schema,
            deterministic,
            needs,
            sdk,
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
        let RankAsk {
            round,
            claims,
            prior,
        } = ask;
        let usage = convert::usage(&round.usage);
        let answer = convert::with_context(call, |context| {
            convert::with_offerings(call, &round.table, prior, |table| {
                convert::with_workloads(call, &round.workloads, |workloads| {
                    convert::with_claims(call, claims, |claims| {
                        guest.call_rank(store, context, table, usage, workloads, claims)
                    })
                })
            })
        })?;
        Ok(answer
            .map(|rankings| {
                let rank::Rankings {
                    items,
                    memory,
                    extra: _,
                } = rankings;
                Remembering {
                    answer: items.into_iter().map(convert::ranking).collect(),
                    memory,
                }
            })
            .map_err(refusal))
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
        let answer = with_round(call, round, |context, nodes, pools, workloads| {
            guest.call_order(store, context, nodes, pools, workloads)
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
        let moves: Vec<_> = moves.iter().map(convert::proposed).collect();
        let answer = with_round(call, round, |context, nodes, pools, workloads| {
            guest.call_judge(store, context, nodes, pools, workloads, &moves)
        })?;
        Ok(answer
            .map(|verdicts| {
                let consolidation::Verdicts {
                    items,
                    memory,
                    extra: _,
                } = verdicts;
                Remembering {
                    answer: items.into_iter().map(convert::verdict).collect(),
                    memory,
                }
            })
            .map_err(refusal))
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
        Ok(answer
            .map(|allowances| {
                let budgets::Allowances {
                    items,
                    valid_for,
                    memory,
                    extra: _,
                } = allowances;
                let items = items.into_iter().filter_map(convert::allowance);
                Remembering {
                    answer: GivenAllowances {
                        items: items.collect(),
                        valid_for_seconds: valid_for,
                    },
                    memory,
                }
            })
            .map_err(refusal))
    }
}

fn with_round<R>(
    call: &CallContext<'_>,
    round: &native::ConsolidationRound,
    ask: impl FnOnce(
        convert::Context<'_>,
        consolidation::Nodes<'_>,
        &[consolidation::Pool<'_>],
        convert::Workloads<'_>,
    ) -> R,
) -> R {
    let native::ConsolidationRound {
        context: _,
        nodes,
        pools,
        workloads,
    } = round;
    let pools: Vec<_> = pools.iter().map(convert::node_pool).collect();
    convert::with_context(call, |context| {
        convert::with_nodes(call, nodes, |nodes| {
            convert::with_workloads(call, workloads, |workloads| {
                ask(context, nodes, &pools, workloads)
            })
        })
    })
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
