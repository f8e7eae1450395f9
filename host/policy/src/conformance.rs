//! Rounds made up at random, put to a bound policy: whoever passes them answers whatever a cluster asks.
//!
//! The same rounds on every machine. The tables are as small as a cluster's first and as large as a region's, and
//! hold the values at the ends of their columns; a policy that only knows the samples of loading is found out here.

pub(crate) mod fault;

use std::cmp::Ordering;

use apis::ObjectKey;
use hooks::disruption::{
    BudgetRound, Civil, ConsolidationRound, Move, MoveKind, NO_CAPACITY_TYPE, VerdictDecision,
};
use hooks::ranking::{ClaimView, RankRound, RankStage, Ranking};

use crate::active_policy::{ActivePolicy, Program};
use crate::call_context::moment;
use crate::call_failure::CallFailure;
use crate::called::Called;
use crate::golden;
use crate::host::{HostState, PolicyHost};
use crate::interface::exchange::JudgeAsk;
use crate::interface::exchange::RankAsk;
use crate::interface::exchange::Remembering;
use crate::limits::PolicyKind;
use crate::random::SplitMix;
use crate::recording::RecordedQuestion;
use fault::{ConformanceFault, NotConformant};

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
    /// What was asked.
    pub kind: PolicyKind,
    /// Rounds made up.
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

/// What a policy must answer before it may decide. Gives what is worth knowing of it.
pub(crate) fn gate(host: &HostState, policy: &ActivePolicy) -> Result<Vec<String>, NotConformant> {
    let mut notes = Vec::new();
    for kind in &policy.kinds {
        notes.extend(of_kind(host, policy, *kind, ROUNDS_OF_LOADING)?.notes);
    }
    Ok(notes)
}

/// What a row's cost did when its price rose, over the rounds.
#[derive(Debug, Default)]
struct Response {
    rose: u32,
    fell: u32,
    /// The round in which it fell first, and its rows.
    first_fall: (u32, u32),
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
        let fell = response.fell;
        let asked = Examination {
            host,
            policy,
            memory: &mut memory,
            found: &mut found,
            response: &mut response,
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
        if fell == 0 && response.fell > 0 {
            response.first_fall = (round, rows);
        }
    }
    if response.fell > 0 && response.rose == 0 {
        let (round, rows) = response.first_fall;
        return Err(NotConformant {
            kind,
            round,
            rows,
            fault: ConformanceFault::PrefersCostlier,
        });
    }
    found.notes.dedup();
    Ok(found)
}

/// A moment of one of four weeks; what a policy says may hang on it.
fn some_moment(random: &mut SplitMix) -> (u64, Vec<Civil>) {
    let now_seconds = golden::NOW_SECONDS + u64::from(random.below(28 * 24)) * 3600;
    let now = moment(now_seconds);
    (now_seconds, now.map(Civil::utc).into_iter().collect())
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

struct Examination<'a> {
    host: &'a HostState,
    policy: &'a ActivePolicy,
    memory: &'a mut Vec<u8>,
    found: &'a mut Conformance,
    response: &'a mut Response,
}

impl Examination<'_> {
    fn rank(mut self, round: &RankRound) -> Result<(), ConformanceFault> {
        let again = RankRound {
            decision_id: "again".to_owned(),
            ..round.clone()
        };
        let (host, policy) = (self.host, self.policy);
        let memory = self.memory.clone();
        let ask = |round: &RankRound| {
            let claims: Vec<&ClaimView> = round.claims.iter().collect();
            host.ask_rank_anew(policy, RankAsk::of(round, &claims), &memory)
        };
        let Some(answer) = self.equal(ask(round), ask(&again))? else {
            return Ok(());
        };
        // Dearer in the table, cheaper for the policy: allowed, and rarely meant.
        let Some(row) = round.table.price.len().checked_sub(1) else {
            return Ok(());
        };
        let mut costlier = again;
        for column in [&mut costlier.table.price, &mut costlier.table.prior] {
            if let Some(price) = column.get_mut(row) {
                *price += 1.0;
            }
        }
        let score = |answer: &[Ranking]| answer.first().and_then(|it| it.scores.get(row).copied());
        let Ok(after) = ask(&costlier).result else {
            return Ok(());
        };
        match score(&after.answer).partial_cmp(&score(&answer)) {
            Some(Ordering::Less) => {
                self.response.fell += 1;
                self.found
                    .notes
                    .push("a higher price lowered the cost of a row".to_owned());
            }
            Some(Ordering::Greater) => self.response.rose += 1,
            Some(Ordering::Equal) | None => {}
        }
        Ok(())
    }

    fn consolidation(
        mut self,
        round: &ConsolidationRound,
        moves: &[Move],
    ) -> Result<(), ConformanceFault> {
        let mut again = round.clone();
        "again".clone_into(&mut again.context.decision_id);
        let (host, policy) = (self.host, self.policy);
        let memory = self.memory.clone();
        self.equal(
            host.ask_order_anew(policy, round, &memory),
            host.ask_order_anew(policy, &again, &memory),
        )?;
        let judge = |round| host.ask_judge_anew(policy, JudgeAsk { round, moves }, &memory);
        let judged = self.equal(judge(round), judge(&again))?;
        let is_costlier = judged.is_some_and(|verdicts| {
            let mut pairs = verdicts.iter().zip(moves);
            pairs.any(|(verdict, it)| {
                verdict.decision == VerdictDecision::Approve
                    && matches!(it.kind, MoveKind::Replace)
                    && it.effective_after > it.effective_before
            })
        });
        if is_costlier {
            self.found
                .notes
                .push("approves replacements that cost more than what they replace".to_owned());
        }
        Ok(())
    }

    fn budgets(mut self, round: &BudgetRound) -> Result<(), ConformanceFault> {
        let mut again = round.clone();
        "again".clone_into(&mut again.context.decision_id);
        let (host, policy) = (self.host, self.policy);
        let memory = self.memory.clone();
        self.equal(
            host.ask_allow_anew(policy, round, &memory),
            host.ask_allow_anew(policy, &again, &memory),
        )?;
        Ok(())
    }

    /// The answer, when both are there and the same; nothing when the policy is short of data.
    fn equal<T: PartialEq>(
        &mut self,
        first: Called<Remembering<T>>,
        second: Called<Remembering<T>>,
    ) -> Result<Option<T>, ConformanceFault> {
        self.found.fuel_most = self.found.fuel_most.max(first.fuel).max(second.fuel);
        match (first.result, second.result) {
            (Ok(first), Ok(second)) if first == second => {
                if let Some(memory) = first.memory {
                    *self.memory = memory;
                }
                Ok(Some(first.answer))
            }
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

fn rank_round(rows: u32, random: &mut SplitMix) -> RankRound {
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
        &mut table.generation,
        &mut table.gpus,
        &mut round.usage.nodes,
        &mut round.usage.launching,
        &mut round.workloads.pods,
        &mut round.workloads.replicas,
        &mut round.workloads.oldest_wait,
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
        claim.pods.oldest_wait_seconds = random.among(&ends);
        claim.stage = random.among(&[RankStage::Packing, RankStage::Launch, RankStage::Appraisal]);
        for (_, free) in &mut claim.free_addresses {
            *free = random.among(&ends);
        }
        claim.weight = random.below(101);
    }
    round
}

fn consolidation_round(rows: u32, random: &mut SplitMix) -> (ConsolidationRound, Vec<Move>) {
    let (mut round, mut moves) = golden::consolidation_round(rows);
    let nodes = &mut round.nodes;
    for column in [&mut nodes.price, &mut nodes.effective_price] {
        for price in column {
            *price = random.among(&[0.0, 0.1, 5.0]);
        }
    }
    let ends = [0, 1, 600, 86_400, u32::MAX];
    for column in [
        &mut nodes.age,
        &mut nodes.time_to_expiry,
        &mut nodes.last_pod_event,
        &mut nodes.gpus,
        &mut nodes.gpus_requested,
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
        it.effective_before = random.among(&[0.0, 0.1, 0.5, 12.0]);
        it.effective_after = random.among(&[0.0, 0.1, 0.49, 13.0]);
        it.pods_moved = random.among(&ends);
        it.max_priority = random.among(&[i32::MIN, 0, i32::MAX]);
        it.replacement_capacity_type = random.among(&[0, 1, 2, NO_CAPACITY_TYPE]);
    }
    for pool in &mut round.pools {
        pool.nodes = random.among(&ends);
        pool.effective_price = random.among(&[0.0, 0.1, 500.0]);
        pool.disruption_cost = random.among(&[0.0, 1.0, 900.0]);
        pool.recent_hour = random.among(&ends);
        pool.recent_day = random.among(&ends);
    }
    (round, moves)
}

fn budget_round(pools: u32, random: &mut SplitMix) -> BudgetRound {
    let mut round = golden::many_pools(pools);
    let ends = [0, 1, 7, 1000, u32::MAX];
    for pool in &mut round.pools {
        pool.total = random.among(&ends);
        pool.not_ready = random.among(&ends);
        pool.deleting = random.among(&ends);
        pool.pending_pods = random.among(&ends);
        pool.drifted = random.among(&ends);
        pool.renewed = random.among(&ends);
        pool.target_age_seconds = random.among(&ends);
        for activity in &mut pool.activity {
            for count in [
                &mut activity.disrupting,
                &mut activity.recent_hour,
                &mut activity.recent_day,
                &mut activity.failed_day,
            ] {
                *count = random.among(&ends);
            }
        }
        for budget in &mut pool.declared {
            budget.active = random.below(2) == 1;
            budget.resolved = random.among(&ends);
        }
    }
    round
}
