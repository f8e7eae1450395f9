//! Facts that a policy in charge is told beside the tables, for each kind of round.

use std::borrow::Cow;

use hooks::disruption::{BudgetRound, Civil, ConsolidationRound, Context};
use hooks::ranking::RankRound;

use super::{CallContext, moment};
use crate::active_policy::ActivePolicy;
use crate::needs::Need;

impl<'a> CallContext<'a> {
    /// Beside the tables of a rank round.
    pub(crate) fn rank(policy: &'a ActivePolicy, round: &'a RankRound, memory: &'a [u8]) -> Self {
        let context = Cow::Owned(rank_context(round));
        Self {
            rates: policy.facts.rates(&round.table),
            ..Self::new(policy, context, memory, &round.table.symbols)
        }
    }

    /// Beside the tables of a consolidation round.
    pub(crate) fn consolidation(
        policy: &'a ActivePolicy,
        round: &'a ConsolidationRound,
        memory: &'a [u8],
    ) -> Self {
        let context = Cow::Borrowed(&round.context);
        Self::new(policy, context, memory, &round.nodes.symbols)
    }

    /// Beside the pools of a budget round.
    pub(crate) fn budgets(
        policy: &'a ActivePolicy,
        round: &'a BudgetRound,
        memory: &'a [u8],
    ) -> Self {
        Self::new(policy, Cow::Borrowed(&round.context), memory, &[])
    }

    fn new(
        policy: &'a ActivePolicy,
        mut context: Cow<'a, Context>,
        memory: &'a [u8],
        symbols: &'a [String],
    ) -> Self {
        if let Some(civil) = policy.facts.civil(context.now_seconds) {
            context.to_mut().civil = civil;
        }
        let remembers = policy.needs.has(Need::Memory);
        Self {
            context,
            memory: if remembers { memory } else { &[] },
            needs: &policy.needs,
            workload_labels: policy.facts.workload_labels(),
            symbols,
            rates: None,
        }
    }
}

/// The context of a rank round, which carries only the moment: the calendar is added in UTC.
fn rank_context(round: &RankRound) -> Context {
    Context {
        now_seconds: round.now_seconds,
        civil: moment(round.now_seconds)
            .map(Civil::utc)
            .into_iter()
            .collect(),
        cluster: round.cluster.clone(),
        decision_id: round.decision_id.clone(),
        seed: round.seed,
    }
}
