//! Rounds made up at random: tables from none to as large as a region's, with the values at the ends of their columns.
//!
//! Judges nothing; the same numbers make the same rounds on every machine.

use hooks::disruption::{BudgetRound, Civil, ConsolidationRound, Move, NO_CAPACITY_TYPE};
use hooks::ranking::{RankRound, RankStage};

use crate::call_context::moment;
use crate::random::SplitMix;
use crate::trying::golden;

/// A moment of one of four weeks; what a policy says may hang on it.
pub(super) fn some_moment(random: &mut SplitMix) -> (u64, Vec<Civil>) {
    let now_seconds = golden::NOW_SECONDS + u64::from(random.below(28 * 24)) * 3600;
    let now = moment(now_seconds);
    (now_seconds, now.map(Civil::utc).into_iter().collect())
}

pub(super) fn rank_round(rows: u32, random: &mut SplitMix) -> RankRound {
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

pub(super) fn consolidation_round(
    rows: u32,
    random: &mut SplitMix,
) -> (ConsolidationRound, Vec<Move>) {
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

pub(super) fn budget_round(pools: u32, random: &mut SplitMix) -> BudgetRound {
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
