//! Native code and components give equal answers: the fallback inside the host, and the policies' own
//! native builds, on generated rounds.

use guest_sdk::testing::{Harness, OfferingRow};
use hooks::disruption::{
    BudgetPool, BudgetReasons, BudgetRound, BudgetsHook, ConsolidationHook, ConsolidationRound,
    Context, DeclaredBudget, DeclaredBudgets, DefaultConsolidation, Move, MoveKind,
    NO_CAPACITY_TYPE, NO_SYMBOL, NodeTable, PoolActivity, PoolView,
};
use prefer_arm64::PreferArm64;
use scheduling::ranking::{OfferingTable, PriceRank, RankHook, RankRound};

use crate::random::SplitMix;
use crate::support::{builtin, host, round};

/// Generated inputs of each kind. A build without optimization is for correctness, and spends its time elsewhere.
pub(crate) const ROUNDS: usize = if cfg!(debug_assertions) { 500 } else { 10_000 };

/// What tests draw beside single numbers.
pub(crate) trait Draw: Sized {
    fn amount(&mut self) -> f64;

    fn many<T>(&mut self, count: u32, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..count).map(|_| one(self)).collect()
    }
}

impl Draw for SplitMix {
    fn amount(&mut self) -> f64 {
        f64::from(self.below(4001)) / 1000.0
    }
}

fn rank_round(random: &mut SplitMix) -> RankRound {
    let rows = 1 + random.below(40);
    let prices = random.many(rows, SplitMix::amount);
    let numbers = |random: &mut SplitMix, bound| random.many(rows, |random| random.below(bound));
    let table = OfferingTable {
        symbols: round().table.symbols,
        instance_type: vec![4; prices.len()],
        family: vec![6; prices.len()],
        generation: numbers(random, 9),
        cpu_manufacturer: vec![NO_SYMBOL; prices.len()],
        zone: vec![8; prices.len()],
        arch: numbers(random, 2).into_iter().map(|it| it + 2).collect(),
        capacity_type: random.many(rows, |random| u8::try_from(random.below(3)).unwrap()),
        on_demand_price: prices.clone(),
        cpu_milli: numbers(random, 64_000),
        memory_mib: numbers(random, 64_000),
        gpus: numbers(random, 8),
        max_pods: numbers(random, 110),
        reservation_slots: numbers(random, 3),
        ice_count: numbers(random, 3),
        ice_age: numbers(random, 3000),
        interruption_rate: random.many(rows, SplitMix::amount),
        prior: prices.clone(),
        price: prices,
        extra: Vec::new(),
    };
    let mut made = RankRound { table, ..round() };
    for claim in &mut made.claims {
        let count = random.below(rows + 1);
        claim.candidates = random.many(count, |random| random.below(rows));
    }
    made
}

pub(crate) fn consolidation_round(random: &mut SplitMix) -> (ConsolidationRound, Vec<Move>) {
    let rows = 1 + random.below(20);
    let words = [
        "web",
        "batch",
        "WhenEmpty",
        "WhenEmptyOrUnderutilized",
        "Balanced",
        "node",
    ];
    let numbers = |random: &mut SplitMix, bound| random.many(rows, |random| random.below(bound));
    let nodepool = numbers(random, 2);
    let policies = [2 + random.below(3), 2 + random.below(3)];
    let policy = nodepool
        .iter()
        .map(|pool| policies[usize::try_from(*pool).unwrap()])
        .collect();
    // One pool may be missing, as it never is, and a total may be nothing.
    let known = 1 + random.below(2);
    let pools = (0..known).map(|name| PoolView {
        name,
        effective_price: random.amount() * 10.0,
        disruption_cost: random.amount() * 10.0,
        ..PoolView::default()
    });
    let pools = pools.collect();
    let nodes = NodeTable {
        symbols: words.map(str::to_owned).to_vec(),
        name: vec![5; nodepool.len()],
        instance_type: vec![NO_SYMBOL; nodepool.len()],
        zone: vec![NO_SYMBOL; nodepool.len()],
        capacity_type: vec![0; nodepool.len()],
        price: random.many(rows, SplitMix::amount),
        effective_price: random.many(rows, SplitMix::amount),
        consolidation_policy: policy,
        last_pod_event: numbers(random, 9000),
        drift_reason: vec![NO_SYMBOL; nodepool.len()],
        age: numbers(random, 9000),
        time_to_expiry: numbers(random, 9000),
        pods: numbers(random, 30),
        blocked_pods: numbers(random, 2),
        disruption_cost: random.many(rows, |random| random.amount() * 5.0),
        cpu_milli: numbers(random, 64_000),
        cpu_requested_milli: numbers(random, 64_000),
        memory_mib: numbers(random, 64_000),
        memory_requested_mib: numbers(random, 64_000),
        gpus: numbers(random, 8),
        gpus_requested: numbers(random, 8),
        labels: Vec::new(),
        extra: Vec::new(),
        nodepool: nodepool.clone(),
    };
    let moves = moves(random, rows);
    (
        ConsolidationRound {
            context: context(),
            nodes,
            pools,
            ..ConsolidationRound::default()
        },
        moves,
    )
}

fn moves(random: &mut SplitMix, rows: u32) -> Vec<Move> {
    let kinds = [
        MoveKind::Empty,
        MoveKind::Delete,
        MoveKind::Replace,
        MoveKind::Drift,
        MoveKind::StaticDrift,
        MoveKind::Expire,
    ];
    let count = random.below(12);
    random.many(count, |random| {
        let removed = 1 + random.below(3);
        Move {
            kind: kinds[usize::try_from(random.below(6)).unwrap()],
            remove: random.many(removed, |random| random.below(rows)),
            cost_before: random.amount(),
            cost_after: random.amount() / 2.0,
            effective_before: random.amount(),
            effective_after: random.amount() / 2.0,
            pods_moved: random.below(20),
            singletons_moved: 0,
            max_priority: 0,
            new_nodes: random.below(2),
            replacement_type: NO_SYMBOL,
            replacement_zone: NO_SYMBOL,
            replacement_capacity_type: random.among(&[0, 1, 2, NO_CAPACITY_TYPE]),
            labels: Vec::new(),
        }
    })
}

fn budget_round(random: &mut SplitMix) -> BudgetRound {
    let pools = random.below(5);
    let flag = |random: &mut SplitMix| random.below(2) == 1;
    BudgetRound {
        context: context(),
        pools: random.many(pools, |random| {
            let budgets = random.below(4);
            BudgetPool {
                name: format!("pool-{}", random.below(9)),
                total: random.below(100),
                activity: [0; 4].map(|_: u32| PoolActivity {
                    disrupting: random.below(3),
                    ..PoolActivity::default()
                }),
                declared: random.many(budgets, |random| DeclaredBudget {
                    nodes: "10%".to_owned(),
                    resolved: random.below(10),
                    active: flag(random),
                    next_change_seconds: random.below(600),
                    reasons: BudgetReasons {
                        underutilized: flag(random),
                        empty: flag(random),
                        drifted: flag(random),
                        unhealthy: flag(random),
                    },
                }),
                ..BudgetPool::default()
            }
        }),
    }
}

pub(crate) fn context() -> Context {
    Context {
        now_seconds: 1_767_614_400,
        cluster: "test".to_owned(),
        decision_id: "consolidation-1".to_owned(),
        ..Context::default()
    }
}

#[test]
fn the_default_components_answer_as_the_native_defaults_do() {
    let host = host();
    let mut random = SplitMix::new(1);
    for _ in 0..ROUNDS {
        let round = rank_round(&mut random);
        assert_eq!(host.rank(&round).rankings, PriceRank.rank(&round).rankings);
        let (round, moves) = consolidation_round(&mut random);
        assert_eq!(
            host.order(&round).keys,
            DefaultConsolidation.order(&round).keys
        );
        let native = DefaultConsolidation.judge(&round, &moves).verdicts;
        assert_eq!(
            host.judge(&round, &moves).verdicts,
            native,
            "{round:?} {moves:?}"
        );
        let round = budget_round(&mut random);
        assert_eq!(
            host.allow(&round).items,
            DeclaredBudgets.allow(&round).items
        );
    }
    let failed: Vec<_> = host
        .drain_records()
        .into_iter()
        .filter(|it| !it.outcome.is_ok())
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn a_policy_answers_the_same_natively() {
    let host = host();
    host.apply(&builtin("graviton-first", "rank", "prefer-arm64"));
    let native = Harness::<PreferArm64>::new("").unwrap();
    let mut random = SplitMix::new(2);
    for _ in 0..ROUNDS {
        let mut round = rank_round(&mut random);
        round.claims.truncate(1);
        round.claims[0].candidates.clear();
        let rows: Vec<OfferingRow<'_>> = (0..round.table.price.len())
            .map(|row| OfferingRow {
                arch: if round.table.arch[row] == 3 {
                    "arm64"
                } else {
                    "amd64"
                },
                price: round.table.price[row],
                ..OfferingRow::default()
            })
            .collect();
        assert_eq!(host.rank(&round).rankings[0].scores, native.scores(&rows));
    }
}
