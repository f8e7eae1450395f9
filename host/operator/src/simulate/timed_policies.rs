//! Measures what the policies take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hooks::disruption::{
    AllowAnswer, BudgetRound, BudgetsHook, ConsolidationHook, ConsolidationRound, JudgeAnswer,
    Move, OrderAnswer,
};
use policy::PolicyHost;
use scheduling::ranking::{RankAnswer, RankHook, RankRound};

/// The policies with a watch.
pub(super) struct TimedPolicies<'a> {
    inner: &'a PolicyHost,
    nanos: AtomicU64,
}

impl<'a> TimedPolicies<'a> {
    pub(super) fn new(inner: &'a PolicyHost) -> Self {
        Self {
            inner,
            nanos: AtomicU64::new(0),
        }
    }

    /// Time in calls so far.
    pub(super) fn spent(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn timed<T>(&self, call: impl FnOnce(&PolicyHost) -> T) -> T {
        let started = Instant::now();
        let answer = call(self.inner);
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        answer
    }
}

impl RankHook for TimedPolicies<'_> {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        self.timed(|it| it.rank(round))
    }
}

impl ConsolidationHook for TimedPolicies<'_> {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        self.timed(|it| it.order(round))
    }

    fn judge(&self, round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        self.timed(|it| it.judge(round, moves))
    }
}

impl BudgetsHook for TimedPolicies<'_> {
    fn allow(&self, round: &BudgetRound) -> AllowAnswer {
        self.timed(|it| it.allow(round))
    }
}
