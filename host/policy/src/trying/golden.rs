//! Sample questions that a module answers before it may decide: twice in one instance and once in a
//! fresh one, with equal answers, within the limits of a real round.

mod rounds;

use hooks::policy_use::PolicyKind;
use hooks::ranking::ClaimView;

use crate::active_policy::ActivePolicy;
use crate::answer;
use crate::call_context::CallContext;
use crate::guest::call::{Grant, Session, call};
use crate::guest::call_failure::CallFailure;
use crate::guest::limits::CallLimits;
use crate::guest::module::Module;
use crate::host::HostState;
use crate::interface::exchange::{JudgeAsk, RankAsk};
use crate::load_error::LoadError;

pub(crate) use rounds::{
    NOW_SECONDS, budget_round, consolidation_round, many_pools, pool_round, rank_round,
};

/// Rows of the larger tables: more than a usual round has.
const ROWS_MANY: u32 = 1200;
/// Rows of the larger tables that rules are tried on. What a rule may take for one row is bounded, so that many rows
/// tell no more than a few.
const ROWS_OF_RULES: u32 = 30;

/// Tries a module on the sample questions of a kind.
pub(crate) fn try_out(
    module: &Module,
    kind: PolicyKind,
    policy: &ActivePolicy,
    grant: Grant<'_>,
) -> Result<(), LoadError> {
    let probe = Probe {
        module,
        config: &policy.config,
        grant,
    };
    match kind {
        PolicyKind::Rank => [6, ROWS_MANY].into_iter().try_for_each(|rows| {
            let round = rank_round(rows);
            let claims: Vec<&ClaimView> = round.claims.iter().collect();
            let call = CallContext::rank(policy, &round, &[]);
            let ask = RankAsk::of(&round, &claims);
            probe.agree(|session| answer::rank(session, &call, ask))
        }),
        PolicyKind::Consolidation => [6, ROWS_MANY].into_iter().try_for_each(|rows| {
            let (round, moves) = consolidation_round(rows);
            let call = CallContext::consolidation(policy, &round, &[]);
            probe.agree(|session| answer::order(session, &call, &round))?;
            let ask = JudgeAsk {
                round: &round,
                moves: &moves,
            };
            probe.agree(|session| answer::judge(session, &call, ask))
        }),
        PolicyKind::Budgets => {
            let round = budget_round();
            let call = CallContext::budgets(policy, &round, &[]);
            probe.agree(|session| answer::allow(session, &call, &round))
        }
    }
}

/// Tries a rule on the sample questions of its kind. It has no state, so once each is enough.
pub(crate) fn try_rule(host: &HostState, policy: &ActivePolicy) -> Result<(), LoadError> {
    let mut kinds = policy.kinds.iter();
    let result = kinds.try_for_each(|kind| match kind {
        PolicyKind::Rank => [6, ROWS_OF_RULES].into_iter().try_for_each(|rows| {
            let round = rank_round(rows);
            let claims: Vec<&ClaimView> = round.claims.iter().collect();
            let ask = RankAsk::of(&round, &claims);
            host.ask_rank_anew(policy, ask, &[]).result.map(drop)
        }),
        PolicyKind::Consolidation => [6, ROWS_OF_RULES].into_iter().try_for_each(|rows| {
            let (round, moves) = consolidation_round(rows);
            let ask = JudgeAsk {
                round: &round,
                moves: &moves,
            };
            host.ask_judge_anew(policy, ask, &[]).result.map(drop)
        }),
        PolicyKind::Budgets => {
            let called = host.ask_allow_anew(policy, &budget_round(), &[]);
            called.result.map(drop)
        }
    });
    result.map_err(|failure| LoadError::Tried {
        during: "answering a sample question",
        failure,
    })
}

struct Probe<'a> {
    module: &'a Module,
    config: &'a str,
    grant: Grant<'a>,
}

impl Probe<'_> {
    fn agree<T: PartialEq>(
        &self,
        ask: impl Fn(&mut Session<'_>) -> Result<T, CallFailure>,
    ) -> Result<(), LoadError> {
        // Fuel is per call in a real round; a warm pair gets it twice.
        let twice = Grant {
            call: CallLimits {
                fuel: self.grant.call.fuel.saturating_mul(2),
                deadline: self.grant.call.deadline * 2,
            },
            ..self.grant
        };
        let warm = call(self.module, twice, |session| {
            session.configure(self.config)?;
            Ok((ask(session)?, ask(session)?))
        });
        let cold = call(self.module, self.grant, |session| {
            session.configure(self.config)?;
            ask(session)
        });
        match (warm.result, cold.result) {
            (Ok((first, second)), Ok(_)) if first != second => Err(LoadError::NotDeterministic(
                "a second call gave another answer than the first",
            )),
            (Ok((first, _)), Ok(third)) if first != third => Err(LoadError::NotDeterministic(
                "a fresh instance gave another answer",
            )),
            // A policy may be short of data that only a real round has.
            (Ok(_), Ok(_))
            | (
                Err(CallFailure::Refused {
                    transient: true, ..
                }),
                Err(_),
            ) => Ok(()),
            (Err(failure), _) | (Ok(_), Err(failure)) => Err(LoadError::Tried {
                during: "answering a sample question",
                failure,
            }),
        }
    }
}
