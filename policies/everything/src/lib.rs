//! A policy that asks for everything there is to be told, and repeats what it was told in its log: the tests of the host
//! read there what arrived. It decides as the defaults do, and remembers how often it was asked.

use guest_sdk::{
    Allowances, Allowed, BudgetPolicy, ConsolidationCall, ConsolidationPolicy, Context, Level,
    Move, Need, Offering, Policy, PolicyError, Pool, ProposedMove, RankCall, RankPolicy, RankRound,
    Rankings, Reason, Settings, Verdict, Verdicts, log,
};

/// The cluster whose rounds are repeated; of others there may be more than a log holds.
const REPEATED: &str = "repeat";

/// Asks for everything.
#[derive(Debug)]
pub struct Everything;

impl Policy for Everything {
    const NAME: &'static str = "everything";
    const SUMMARY: &'static str = "repeats what it is told";
    const NEEDS: &'static [Need] = &[
        Need::Workloads,
        Need::NodeLabels,
        Need::FreeAddresses,
        Need::InterruptionRate,
        Need::Memory,
        Need::Expire,
    ];

    fn configure(_settings: &mut Settings) -> Self {
        Self
    }
}

/// One more than what is remembered.
fn counted(context: &Context) -> Option<Vec<u8>> {
    let count = context.memory.first().copied().unwrap_or_default();
    Some(vec![count.wrapping_add(1)])
}

fn repeat(context: &Context, what: &dyn std::fmt::Debug) {
    if context.cluster == REPEATED {
        log(Level::Info, || format!("{what:?}"));
    }
}

impl RankPolicy for Everything {
    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        offering.prior()
    }

    fn rank(&self, call: &RankCall<'_>) -> Result<Rankings, PolicyError> {
        let context = call.context;
        repeat(context, context);
        repeat(context, call.offerings);
        repeat(context, call.usage.table);
        repeat(context, call.workloads.table);
        repeat(context, &call.claims);
        Ok(Rankings {
            memory: counted(context),
            ..call.ranked_by(&call.offerings.prior)
        })
    }
}

impl ConsolidationPolicy for Everything {
    fn verdict(&self, proposed: &ProposedMove<'_>, _context: &Context) -> Verdict {
        match proposed.objection() {
            Some(objection) => Verdict::reject(objection),
            None => Verdict::approve(proposed.savings_per_disruption(), "as the default"),
        }
    }

    fn judge(&self, call: &ConsolidationCall<'_>, moves: &[Move]) -> Result<Verdicts, PolicyError> {
        let context = call.context;
        repeat(context, context);
        repeat(context, call.table);
        repeat(context, &call.pools);
        repeat(context, call.workloads.table);
        repeat(context, &moves);
        let verdict = |it| self.verdict(&call.proposed(it), context);
        let items: Vec<Verdict> = moves.iter().map(verdict).collect();
        Ok(Verdicts {
            memory: counted(context),
            items,
            extra: Vec::new(),
        })
    }
}

impl BudgetPolicy for Everything {
    fn allowed(&self, pool: &Pool, reason: Reason, _context: &Context) -> Allowed {
        Allowed {
            nodes: pool.declared_allowed(reason),
            why: "declared budgets".to_owned(),
        }
    }

    fn allow(&self, context: &Context, pools: &[Pool]) -> Result<Allowances, PolicyError> {
        repeat(context, context);
        repeat(context, &pools);
        // Of repair it speaks as well, though it need not.
        let reasons = [Reason::Empty, Reason::Unhealthy];
        let allowance = |(pool, own): (u32, &Pool), reason| guest_sdk::Allowance {
            pool,
            reason,
            allowed: self.allowed(own, reason, context).nodes,
            why: "declared budgets".to_owned(),
            extra: Vec::new(),
        };
        let pools_numbered = (0_u32..).zip(pools);
        let items = pools_numbered.flat_map(|it| reasons.map(|reason| allowance(it, reason)));
        Ok(Allowances {
            items: items.collect(),
            valid_for: 7,
            memory: counted(context),
            extra: Vec::new(),
        })
    }
}

guest_sdk::export_policy!(full: Everything);

#[cfg(test)]
mod tests {
    use super::Everything;
    use guest_sdk::testing::{Harness, OfferingRow, RankQuestion};

    #[test]
    fn it_counts_its_calls_in_what_it_remembers() {
        let mut policy = Harness::<Everything>::new("").unwrap();
        for expected in 1..4 {
            let question = RankQuestion {
                offerings: &[OfferingRow::default()],
                ..RankQuestion::default()
            };
            let memory = policy.ask(&question).unwrap().memory.unwrap();
            assert_eq!(memory, [expected]);
            policy.context.memory = memory;
        }
    }
}
