//! Rounds made up at random, put to a bound policy: whoever passes them answers whatever a cluster asks.
//!
//! The same rounds on every machine. The tables are as small as a cluster's first and as large as a region's, and
//! hold the values at the ends of their columns; a policy that only knows the samples of loading is found out here.

use disruption::hooks::{BudgetRound, Civil, ConsolidationRound, Move, MoveKind, VerdictDecision};
use scheduling::ranking::{ClaimView, RankRound, Ranking};

use crate::binding::BindingKey;
use crate::call::{CallFailure, Called};
use crate::golden;
use crate::host::{Inner, PolicyHost};
use crate::limits::Kind;
use crate::random::Random;
use crate::recording::Question;
use crate::registry::Bound;

/// Rows of the tables, in turn: none and one are rare and real, as is every type in every zone.
const ROWS: [u32; 12] = [0, 1, 2, 3, 5, 8, 13, 40, 120, 400, 2500, 6000];

/// NodePools and nodes are fewer than offerings.
const POOLS_MAX: u32 = 40;
const NODES_MAX: u32 = 1000;
/// Rounds that a module answers before it is let in: one of each size but the largest.
const ROUNDS_OF_LOADING: u32 = 10;

/// How a policy fared with one kind of rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conformance {
    /// What was asked.
    pub kind: Kind,
    /// Rounds made up.
    pub rounds: u32,
    /// Most fuel of a round.
    pub fuel_most: u64,
    /// Fuel a round may take.
    pub fuel_limit: u64,
    /// Worth knowing, and no reason to refuse it.
    pub notes: Vec<String>,
}

/// A made-up round that a policy has no answer to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} round {round} of {rows} rows: {fault}", kind.as_str())]
pub struct NotConformant {
    /// What was asked.
    pub kind: Kind,
    /// Number of the round.
    pub round: u32,
    /// Rows of its table.
    pub rows: u32,
    /// What went wrong.
    pub fault: ConformanceFault,
}

/// What may go wrong in a made-up round.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConformanceFault {
    /// No answer.
    #[error(transparent)]
    Failed(#[from] CallFailure),
    /// Two answers to one question.
    #[error("a second instance gave another answer; the decision's id is not an input")]
    NotDeterministic,
}

impl PolicyHost {
    /// Puts so many made-up rounds of each of its kinds to a bound policy; empty for an unknown binding.
    pub fn conformance(
        &self,
        key: &BindingKey,
        rounds: u32,
    ) -> Result<Vec<Conformance>, NotConformant> {
        let Some(bound) = self.inner.bound(key) else {
            return Ok(Vec::new());
        };
        let kinds = bound.kinds.iter();
        kinds
            .map(|kind| of_kind(&self.inner, &bound, *kind, rounds))
            .collect()
    }
}

/// What a module must answer before it may decide.
pub(crate) fn gate(host: &Inner, bound: &Bound) -> Result<(), NotConformant> {
    let mut kinds = bound.kinds.iter();
    kinds.try_for_each(|kind| of_kind(host, bound, *kind, ROUNDS_OF_LOADING).map(drop))
}

fn of_kind(
    host: &Inner,
    bound: &Bound,
    kind: Kind,
    rounds: u32,
) -> Result<Conformance, NotConformant> {
    let mut found = Conformance {
        kind,
        rounds,
        fuel_most: 0,
        fuel_limit: host.limits.of(kind).fuel,
        notes: Vec::new(),
    };
    for (round, rows) in (0..rounds).zip(ROWS.into_iter().cycle()) {
        let mut random = Random::new(round);
        let asked = Asked {
            host,
            bound,
            found: &mut found,
        };
        let fared = match kind {
            Kind::Rank => asked.rank(&rank_round(rows, &mut random)),
            Kind::Consolidation => {
                asked.consolidation(&consolidation_round(rows.min(NODES_MAX), &mut random))
            }
            Kind::Budgets => asked.budgets(&budget_round(rows.min(POOLS_MAX), &mut random)),
        };
        fared.map_err(|fault| NotConformant {
            kind,
            round,
            rows,
            fault,
        })?;
    }
    found.notes.dedup();
    Ok(found)
}

/// A moment of one of four weeks; what a policy says may hang on it.
fn moment(random: &mut Random) -> (u64, Vec<Civil>) {
    let now_seconds = golden::NOW_SECONDS + u64::from(random.below(28 * 24)) * 3600;
    let now = i64::try_from(now_seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    (now_seconds, now.map(Civil::utc).into_iter().collect())
}

/// A made-up round of a usual size, with values as clusters have them.
pub(crate) fn usual(kind: Kind, seed: u32) -> Question {
    let mut random = Random::new(seed);
    match kind {
        Kind::Rank => {
            let mut round = golden::rank_round(6 + random.below(114));
            let table = &mut round.table;
            for price in &mut table.price {
                *price = f64::from(20 + random.below(980)) / 1000.0;
            }
            table.prior.clone_from(&table.price);
            (round.now_seconds, _) = moment(&mut random);
            let prior = round.table.prior.clone();
            Question::Rank { round, prior }
        }
        Kind::Consolidation => {
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
            }
            (round.context.now_seconds, round.context.civil) = moment(&mut random);
            Question::Judge { round, moves }
        }
        Kind::Budgets => {
            let mut round = golden::many_pools(1 + random.below(8));
            for pool in &mut round.pools {
                pool.total = random.below(200);
                pool.recent_hour = random.below(20);
                pool.recent_day = random.below(200);
                pool.disrupting = (0..3).map(|_| random.below(4)).collect();
            }
            (round.context.now_seconds, round.context.civil) = moment(&mut random);
            Question::Allow { round }
        }
    }
}

struct Asked<'a> {
    host: &'a Inner,
    bound: &'a Bound,
    found: &'a mut Conformance,
}

impl Asked<'_> {
    fn rank(mut self, round: &RankRound) -> Result<(), ConformanceFault> {
        let again = RankRound {
            decision_id: "again".to_owned(),
            ..round.clone()
        };
        let (host, bound) = (self.host, self.bound);
        let ask = |round: &RankRound| {
            let claims: Vec<&ClaimView> = round.claims.iter().collect();
            host.ask_rank_anew(bound, round, &claims, &round.table.prior)
        };
        let Some(answer) = self.equal(ask(round), ask(&again))? else {
            return Ok(());
        };
        // Dearer in the table, cheaper for the policy: allowed, and rarely meant.
        let Some(row) = round.table.price.len().checked_sub(1) else {
            return Ok(());
        };
        let mut dearer = again;
        for column in [&mut dearer.table.price, &mut dearer.table.prior] {
            if let Some(price) = column.get_mut(row) {
                *price += 1.0;
            }
        }
        let score = |answer: &[Ranking]| answer.first().and_then(|it| it.scores.get(row).copied());
        if let Ok(after) = ask(&dearer).result
            && score(&after) < score(&answer)
        {
            self.found
                .notes
                .push("a higher price lowered the cost of a row".to_owned());
        }
        Ok(())
    }

    fn consolidation(
        mut self,
        (round, moves): &(ConsolidationRound, Vec<Move>),
    ) -> Result<(), ConformanceFault> {
        let mut again = round.clone();
        "again".clone_into(&mut again.context.decision_id);
        let (host, bound) = (self.host, self.bound);
        self.equal(
            host.ask_order_anew(bound, round),
            host.ask_order_anew(bound, &again),
        )?;
        let judged = self.equal(
            host.ask_judge_anew(bound, round, moves),
            host.ask_judge_anew(bound, &again, moves),
        )?;
        let is_dearer = judged.is_some_and(|verdicts| {
            let mut pairs = verdicts.iter().zip(moves);
            pairs.any(|(verdict, it)| {
                verdict.decision == VerdictDecision::Approve
                    && matches!(it.kind, MoveKind::Replace)
                    && it.cost_after > it.cost_before
            })
        });
        if is_dearer {
            self.found
                .notes
                .push("approves replacements that cost more than what they replace".to_owned());
        }
        Ok(())
    }

    fn budgets(mut self, round: &BudgetRound) -> Result<(), ConformanceFault> {
        let mut again = round.clone();
        "again".clone_into(&mut again.context.decision_id);
        let (host, bound) = (self.host, self.bound);
        self.equal(
            host.ask_allow_anew(bound, round),
            host.ask_allow_anew(bound, &again),
        )?;
        Ok(())
    }

    /// The answer, when both are there and the same; nothing when the policy is short of data.
    fn equal<T: PartialEq>(
        &mut self,
        first: Called<T>,
        second: Called<T>,
    ) -> Result<Option<T>, ConformanceFault> {
        self.found.fuel_most = self.found.fuel_most.max(first.fuel).max(second.fuel);
        match (first.result, second.result) {
            (Ok(first), Ok(second)) if first == second => Ok(Some(first)),
            (
                Err(CallFailure::Refused {
                    transient: true, ..
                }),
                Err(_),
            ) => Ok(None),
            (Err(failure), _) => Err(failure.into()),
            (Ok(_), _) => Err(ConformanceFault::NotDeterministic),
        }
    }
}

fn rank_round(rows: u32, random: &mut Random) -> RankRound {
    let mut round = golden::rank_round(rows);
    let table = &mut round.table;
    for price in &mut table.price {
        *price = random.among(&[0.0, 0.0042, 0.1, 0.096, 1.5, 32.77, 400.0]);
    }
    table.prior.clone_from(&table.price);
    for on_demand in &mut table.on_demand_price {
        *on_demand = random.among(&[0.0, 0.1, 2.0, 500.0]);
    }
    for code in &mut table.capacity_type {
        *code = random.among(&[0, 1, 2]);
    }
    let ends = [0, 1, 2, 100, u32::MAX];
    for column in [
        &mut table.reservation_slots,
        &mut table.ice_count,
        &mut table.ice_age,
        &mut table.in_use,
        &mut table.gpus,
    ] {
        for value in column {
            *value = random.among(&ends);
        }
    }
    for rate in &mut table.interruption_rate {
        *rate = random.among(&[-1.0, 0.0, 0.05, 1.0, 60.0]);
    }
    for claim in round.claims.iter_mut().skip(1) {
        let count = random.below(rows + 1);
        claim.candidates = (0..count).map(|_| random.below(rows)).collect();
        claim.pods.count = random.among(&ends);
        claim.weight = random.below(101);
    }
    round
}

fn consolidation_round(rows: u32, random: &mut Random) -> (ConsolidationRound, Vec<Move>) {
    let (mut round, mut moves) = golden::consolidation_round(rows);
    let nodes = &mut round.nodes;
    for price in &mut nodes.price {
        *price = random.among(&[0.0, 0.1, 5.0]);
    }
    let ends = [0, 1, 600, 86_400, u32::MAX];
    for column in [
        &mut nodes.age,
        &mut nodes.time_to_expiry,
        &mut nodes.pods,
        &mut nodes.blocked_pods,
        &mut nodes.cpu_milli,
        &mut nodes.cpu_requested_milli,
        &mut nodes.memory_mib,
    ] {
        for value in column {
            *value = random.among(&ends);
        }
    }
    for it in &mut moves {
        it.cost_before = random.among(&[0.0, 0.1, 0.5, 12.0]);
        it.cost_after = random.among(&[0.0, 0.1, 0.49, 13.0]);
        it.pods_moved = random.among(&ends);
        it.recent_hour = random.among(&ends);
        it.recent_day = random.among(&ends);
        it.max_priority = random.among(&[i32::MIN, 0, i32::MAX]);
        it.replacement_spot = random.below(2) == 1;
    }
    (round, moves)
}

fn budget_round(pools: u32, random: &mut Random) -> BudgetRound {
    let mut round = golden::many_pools(pools);
    let ends = [0, 1, 7, 1000, u32::MAX];
    for pool in &mut round.pools {
        pool.total = random.among(&ends);
        pool.not_ready = random.among(&ends);
        pool.deleting = random.among(&ends);
        pool.pending_pods = random.among(&ends);
        pool.recent_hour = random.among(&ends);
        pool.recent_day = random.among(&ends);
        for count in &mut pool.disrupting {
            *count = random.among(&ends);
        }
        for budget in &mut pool.declared {
            budget.active = random.below(2) == 1;
            budget.resolved = random.among(&ends);
        }
    }
    round
}
