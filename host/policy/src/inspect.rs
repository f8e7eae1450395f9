//! Facts about a policy for tools: what a component is, and what calls of it cost.
//!
//! Nothing here is on the way of a decision.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apis::ObjectKey;
use hooks::policy_use::PolicyKind;
use hooks::ranking::ClaimView;

use crate::active_policy::{ActivePolicy, Program};
use crate::answer;
use crate::call_context::CallContext;
use crate::guest::call::{Grant, Session, call};
use crate::guest::call_failure::CallFailure;
use crate::guest::limits::CallLimits;
use crate::guest::module::{Module, Origin};
use crate::host::PolicyHost;
use crate::interface::exchange::{Descriptor, JudgeAsk, RankAsk};
use crate::load_error::LoadError;
use crate::trying::golden;

/// Calls that a figure is the median of.
const CALLS: usize = 101;

/// Facts about a component.
pub struct Inspection {
    /// `sha256:` and hexadecimal digits.
    pub digest: String,
    /// Size of the component, bytes.
    pub bytes: usize,
    /// Names of its imports.
    pub imports: Vec<String>,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// Kinds of decisions that it can judge.
    pub kinds: Vec<PolicyKind>,
    /// Who it says it is.
    pub descriptor: Descriptor,
    /// While somebody looks at it, binding it compiles nothing again.
    _module: Arc<Module>,
}

/// Cost of calls with so many rows, as medians.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Kind of call that was measured.
    pub kind: PolicyKind,
    /// Rows of the table, or pools.
    pub rows: u32,
    /// A further call in an instance that has answered before; what a rule takes.
    pub warm: Duration,
    /// As a round makes it: fresh instance, configuration, conversion, call, check of the answer.
    pub fresh: Duration,
    /// Fuel of a fresh call.
    pub fuel: u64,
    /// Linear memory after a call; nothing for a rule.
    pub memory_bytes: usize,
}

/// A call in a fresh instance.
struct FreshCall {
    duration: Duration,
    fuel: u64,
}

/// A call in an instance that has answered before.
struct WarmCall {
    duration: Duration,
    memory_bytes: usize,
}

impl PolicyHost {
    /// Looks at a component without putting it in charge.
    pub fn inspect(&self, component: &[u8]) -> Result<Inspection, LoadError> {
        let module = self.inner.module(component, Origin::Given)?;
        let kinds = PolicyKind::ALL.into_iter();
        let descriptor = module.describe(self.inner.grant(self.inner.limits.load))?;
        Ok(Inspection {
            digest: module.digest.clone(),
            bytes: component.len(),
            imports: module.imports(),
            exports: module.exports(),
            kinds: kinds
                .filter(|kind| module.check_kind(*kind).is_ok())
                .collect(),
            descriptor,
            _module: module,
        })
    }

    /// Measures calls of a bound policy; `None` when there is no such binding in charge.
    pub fn measure(
        &self,
        key: &ObjectKey,
        kind: PolicyKind,
        rows: u32,
    ) -> Option<Result<Measured, CallFailure>> {
        let policy = self.inner.policy(key)?;
        Some(self.measure_policy(&policy, kind, rows))
    }

    /// Measures calls of a built-in default.
    pub fn measure_default(
        &self,
        kind: PolicyKind,
        rows: u32,
    ) -> Option<Result<Measured, CallFailure>> {
        let policy = self.inner.default_of(kind)?;
        Some(self.measure_policy(&policy, kind, rows))
    }

    fn measure_policy(
        &self,
        policy: &ActivePolicy,
        kind: PolicyKind,
        rows: u32,
    ) -> Result<Measured, CallFailure> {
        // A busy machine shall give worse figures, not none.
        let policy = &ActivePolicy {
            is_on_trial: true,
            ..policy.clone()
        };
        let fresh = self.fresh(policy, kind, rows)?;
        let warm = match &policy.program {
            Program::Rule(_) => WarmCall {
                duration: fresh.duration,
                memory_bytes: 0,
            },
            Program::Component(module) => self.warm(module, policy, kind, rows)?,
        };
        Ok(Measured {
            kind,
            rows,
            warm: warm.duration,
            fresh: fresh.duration,
            fuel: fresh.fuel,
            memory_bytes: warm.memory_bytes,
        })
    }

    fn fresh(
        &self,
        policy: &ActivePolicy,
        kind: PolicyKind,
        rows: u32,
    ) -> Result<FreshCall, CallFailure> {
        let inner = &self.inner;
        match kind {
            PolicyKind::Rank => {
                let round = golden::pool_round(rows);
                let claims: Vec<&ClaimView> = round.claims.iter().collect();
                timed(|| {
                    let ask = RankAsk::of(&round, &claims);
                    let called = inner.ask_rank_anew(policy, ask, &[]);
                    called.result.map(|_| called.fuel)
                })
            }
            PolicyKind::Consolidation => {
                let (round, moves) = golden::consolidation_round(rows);
                let ask = JudgeAsk {
                    round: &round,
                    moves: &moves,
                };
                timed(|| {
                    let called = inner.ask_judge_anew(policy, ask, &[]);
                    called.result.map(|_| called.fuel)
                })
            }
            PolicyKind::Budgets => {
                let round = golden::many_pools(rows);
                timed(|| {
                    let called = inner.ask_allow_anew(policy, &round, &[]);
                    called.result.map(|_| called.fuel)
                })
            }
        }
    }

    fn warm(
        &self,
        module: &Module,
        policy: &ActivePolicy,
        kind: PolicyKind,
        rows: u32,
    ) -> Result<WarmCall, CallFailure> {
        let unbound = Grant {
            call: CallLimits {
                fuel: u64::MAX / 4,
                deadline: Duration::from_mins(1),
            },
            ..self.inner.grant(self.inner.limits.load)
        };
        let called = call(module, unbound, |session| {
            session.configure(&policy.config)?;
            let duration = match kind {
                PolicyKind::Rank => {
                    let round = golden::pool_round(rows);
                    let claims: Vec<&ClaimView> = round.claims.iter().collect();
                    let call = CallContext::rank(policy, &round, &[]);
                    let ask = RankAsk::of(&round, &claims);
                    repeated(session, |session| {
                        answer::rank(session, &call, ask).map(drop)
                    })
                }
                PolicyKind::Consolidation => {
                    let (round, moves) = golden::consolidation_round(rows);
                    let call = CallContext::consolidation(policy, &round, &[]);
                    let ask = JudgeAsk {
                        round: &round,
                        moves: &moves,
                    };
                    repeated(session, |session| {
                        answer::judge(session, &call, ask).map(drop)
                    })
                }
                PolicyKind::Budgets => {
                    let round = golden::many_pools(rows);
                    let call = CallContext::budgets(policy, &round, &[]);
                    repeated(session, |session| {
                        answer::allow(session, &call, &round).map(drop)
                    })
                }
            }?;
            Ok(WarmCall {
                duration,
                memory_bytes: session.memory_bytes(),
            })
        });
        called.result
    }
}

fn timed(mut ask: impl FnMut() -> Result<u64, CallFailure>) -> Result<FreshCall, CallFailure> {
    let mut fuel = 0;
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let started = Instant::now();
        fuel = ask()?;
        times.push(started.elapsed());
    }
    Ok(FreshCall {
        duration: median(times),
        fuel,
    })
}

fn repeated<'a>(
    session: &mut Session<'a>,
    ask: impl Fn(&mut Session<'a>) -> Result<(), CallFailure>,
) -> Result<Duration, CallFailure> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let started = Instant::now();
        ask(session)?;
        times.push(started.elapsed());
    }
    Ok(median(times))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
