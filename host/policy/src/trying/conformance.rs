//! Rounds made up at random, put to a bound policy: whoever passes them answers whatever a cluster asks.
//!
//! The same rounds on every machine. The tables are as small as a cluster's first and as large as a region's, and
//! hold the values at the ends of their columns; a policy that only knows the samples of loading is found out here.

mod examination;
pub(crate) mod fault;
mod rounds;

use apis::ObjectKey;
use hooks::policy_use::PolicyKind;

use crate::active_policy::{ActivePolicy, Program};
use crate::host::{HostState, PolicyHost};
use crate::random::SplitMix;
use crate::recording::RecordedQuestion;
use crate::trying::golden;
use examination::{Examination, MadeUpRound, Response};
use fault::{ConformanceFault, NotConformant};
use rounds::{budget_round, consolidation_round, rank_round, some_moment};

/// Rows of the tables, in turn: none and one are rare and real, as is every type in every zone.
const ROWS: [u32; 12] = [0, 1, 2, 3, 5, 8, 13, 40, 120, 400, 2500, 6000];

/// NodePools and nodes are fewer than offerings.
const POOLS_MAX: u32 = 40;
const NODES_MAX: u32 = 1000;
/// Rounds that a module answers before it is let in: one of each size but the largest.
const ROUNDS_OF_LOADING: u32 = 10;
/// Rows of the rounds that a rule answers then. What one row takes is bounded, so that more tell no more.
const ROWS_OF_RULES: u32 = 24;

/// How a policy fared with one kind of rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conformance {
    /// Kind of policy that was asked.
    pub kind: PolicyKind,
    /// Number of rounds that were made up.
    pub rounds: u32,
    /// Most fuel of a round.
    pub fuel_most: u64,
    /// Fuel a round may take.
    pub fuel_limit: u64,
    /// Worth knowing, and no reason to refuse it.
    pub notes: Vec<String>,
}

impl PolicyHost {
    /// Puts so many made-up rounds of each of its kinds to a bound policy; empty for an unknown binding.
    pub fn conformance(
        &self,
        key: &ObjectKey,
        rounds: u32,
    ) -> Result<Vec<Conformance>, NotConformant> {
        let Some(policy) = self.inner.policy(key) else {
            return Ok(Vec::new());
        };
        let kinds = policy.kinds.iter();
        kinds
            .map(|kind| of_kind(&self.inner, &policy, *kind, rounds))
            .collect()
    }
}

/// Puts made-up rounds to a policy, all of which it must answer before it may decide. Gives notes worth knowing.
pub(crate) fn gate(host: &HostState, policy: &ActivePolicy) -> Result<Vec<String>, NotConformant> {
    let mut notes = Vec::new();
    for kind in &policy.kinds {
        notes.extend(of_kind(host, policy, *kind, ROUNDS_OF_LOADING)?.notes);
    }
    Ok(notes)
}

fn of_kind(
    host: &HostState,
    policy: &ActivePolicy,
    kind: PolicyKind,
    rounds: u32,
) -> Result<Conformance, NotConformant> {
    let mut found = Conformance {
        kind,
        rounds,
        fuel_most: 0,
        fuel_limit: host.limits.of(kind).fuel,
        notes: Vec::new(),
    };
    // What a policy answers as memory it is told in the next round, as in a cluster.
    let mut memory = Vec::new();
    let rows_max = match policy.program {
        Program::Rule(_) if rounds <= ROUNDS_OF_LOADING => ROWS_OF_RULES,
        Program::Rule(_) | Program::Component(_) => u32::MAX,
    };
    let mut response = Response::default();
    for (round, rows) in (0..rounds).zip(ROWS.into_iter().cycle()) {
        let (mut random, rows) = (SplitMix::new(round), rows.min(rows_max));
        let asked = Examination {
            host,
            policy,
            memory: &mut memory,
            found: &mut found,
            response: &mut response,
            at: MadeUpRound {
                number: round,
                rows,
            },
        };
        let fared = match kind {
            PolicyKind::Rank => asked.rank(&rank_round(rows, &mut random)),
            PolicyKind::Consolidation => {
                let (round, moves) = consolidation_round(rows.min(NODES_MAX), &mut random);
                asked.consolidation(&round, &moves)
            }
            PolicyKind::Budgets => asked.budgets(&budget_round(rows.min(POOLS_MAX), &mut random)),
        };
        fared.map_err(|fault| NotConformant {
            kind,
            round,
            rows,
            fault,
        })?;
    }
    if let Some(MadeUpRound { number, rows }) = response.first_fall
        && response.rose == 0
    {
        return Err(NotConformant {
            kind,
            round: number,
            rows,
            fault: ConformanceFault::PrefersCostlier,
        });
    }
    found.notes.dedup();
    Ok(found)
}

/// A made-up round of a usual size, with values as clusters have them.
pub(crate) fn usual(kind: PolicyKind, seed: u32) -> RecordedQuestion {
    let mut random = SplitMix::new(seed);
    match kind {
        PolicyKind::Rank => {
            let mut round = golden::rank_round(6 + random.below(114));
            let table = &mut round.table;
            for price in &mut table.price {
                *price = f64::from(20 + random.below(980)) / 1000.0;
            }
            table.prior.clone_from(&table.price);
            (round.now_seconds, _) = some_moment(&mut random);
            let prior = round.table.prior.clone();
            RecordedQuestion::Rank { round, prior }
        }
        PolicyKind::Consolidation => {
            let (mut round, mut moves) = golden::consolidation_round(1 + random.below(40));
            for price in &mut round.nodes.price {
                *price = f64::from(20 + random.below(980)) / 1000.0;
            }
            for it in &mut moves {
                it.cost_before = f64::from(20 + random.below(980)) / 1000.0;
                it.cost_after = match it.new_nodes {
                    0 => 0.0,
                    _ => f64::from(20 + random.below(980)) / 1000.0,
                };
                (it.effective_before, it.effective_after) = (it.cost_before, it.cost_after);
            }
            round.nodes.effective_price.clone_from(&round.nodes.price);
            (round.context.now_seconds, round.context.civil) = some_moment(&mut random);
            RecordedQuestion::Judge { round, moves }
        }
        PolicyKind::Budgets => {
            let mut round = golden::many_pools(1 + random.below(8));
            for pool in &mut round.pools {
                pool.total = random.below(200);
                pool.renewed = random.below(20);
                for activity in &mut pool.activity {
                    activity.recent_hour = random.below(8);
                    activity.recent_day = random.below(80);
                    activity.disrupting = random.below(4);
                }
            }
            (round.context.now_seconds, round.context.civil) = some_moment(&mut random);
            RecordedQuestion::Allow { round }
        }
    }
}
