//! Every policy of the shelf answers as a component what it answers natively, on generated rounds, and
//! changes a decision with the settings of its examples.

use disruption::hooks::{
    BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook, ConsolidationHook,
    ConsolidationRound, Context, DeclaredBudget, ExtraColumn, ExtraValues, Move, MoveKind,
    NO_SYMBOL, NodeTable, VerdictDecision,
};
use guest_sdk::testing::{Harness, NodeRow, OfferingRow, claim, nodes, offerings, pool, proposed};
use guest_sdk::{
    BudgetPolicy, Column, ConsolidationPolicy, Decision, Nodes, Offerings, RankPolicy, Reason,
};
use policy::{BindingState, PolicyHost};
use scheduling::ranking::{ClaimView, OfferingTable, PriceRank, RankHook, RankRound};

use crate::agreement::{Draw, ROUNDS};
use crate::random::Random;
use crate::support::{builtin, host};

const TYPES: [&str; 5] = [
    "m7i.large",
    "m7g.large",
    "c7g.xlarge",
    "m7a.large",
    "r7g.2xlarge",
];
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];

fn bound(name: &str, kind: &str, config: &str) -> PolicyHost {
    let host = host();
    let mut source = builtin("mine", kind, name);
    source.data.insert("config".to_owned(), config.to_owned());
    let status = host.apply(&source);
    assert_eq!(status.state, BindingState::Ready, "{name}: {status:?}");
    host
}

fn offering_rows(random: &mut Random) -> Vec<OfferingRow<'static>> {
    let rows = 1 + random.below(40);
    random.many(rows, |random| {
        let instance_type = random.among(&TYPES);
        OfferingRow {
            instance_type,
            zone: random.among(&ZONES),
            arch: if instance_type.contains("7g.") {
                "arm64"
            } else {
                "amd64"
            },
            capacity_type: u8::try_from(random.below(3)).unwrap(),
            price: 0.001 + random.amount(),
            on_demand_price: random.amount(),
            cpu_milli: random.below(64_000),
            memory_mib: random.below(64_000),
            gpus: 0,
            ice_count: random.below(3),
            ice_age: random.among(&[u32::MAX, 30, 600, 1234, 4000]),
            interruption_rate: random.amount() - 0.5,
            in_use: random.below(5),
        }
    })
}

fn table(from: &Offerings) -> OfferingTable {
    let from = from.clone();
    OfferingTable {
        symbols: from.symbols,
        instance_type: from.instance_type,
        family: from.family,
        zone: from.zone,
        arch: from.arch,
        capacity_type: from.capacity_type,
        price: from.price,
        on_demand_price: from.on_demand_price,
        cpu_milli: from.cpu_milli,
        memory_mib: from.memory_mib,
        gpus: from.gpus,
        max_pods: from.max_pods,
        reservation_slots: from.reservation_slots,
        ice_count: from.ice_count,
        ice_age: from.ice_age,
        interruption_rate: from.interruption_rate,
        in_use: from.in_use,
        prior: from.prior,
        extra: Vec::new(),
    }
}

/// As the host gives them: ordered, with the reason in words.
fn exclusions(ranking: &guest_sdk::Ranking) -> Vec<(u32, String)> {
    let reasons = ranking.excluded_reason.iter();
    let reasons = reasons.map(|it| ranking.reasons[usize::try_from(*it).unwrap()].clone());
    let mut exclusions: Vec<_> = ranking.excluded.iter().copied().zip(reasons).collect();
    exclusions.sort();
    exclusions
}

fn check_rank<P: RankPolicy>(name: &str, config: &str) {
    let host = bound(name, "rank", config);
    let native = Harness::<P>::new(config).unwrap();
    let mut random = Random::new(3);
    let mut changed = 0;
    for _ in 0..ROUNDS {
        let offerings = offerings(&offering_rows(&mut random));
        let rows = offerings.rows();
        let some = random.below(rows + 1);
        let candidates = random.many(some, |random| random.below(rows));
        let mut partly = claim();
        partly.candidates.clone_from(&candidates);
        let expected = native
            .policy
            .rank(&native.context, &offerings, &[claim(), partly])
            .unwrap();
        let view = |candidates| ClaimView {
            weight: 1,
            candidates,
            ..ClaimView::default()
        };
        let round = RankRound {
            now_seconds: native.context.now,
            decision_id: "rank-1".to_owned(),
            table: table(&offerings),
            claims: vec![view(Vec::new()), view(candidates)],
            ..RankRound::default()
        };
        let found = host.rank(&round).rankings;
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.scores, expected.scores, "{name}");
            assert_eq!(found.excluded, exclusions(expected), "{name}");
            assert_eq!(found.note, expected.note, "{name}");
        }
        changed += usize::from(found != PriceRank.rank(&round).rankings);
    }
    assert_eq!(name == "default-rank", changed == 0, "{name}");
    assert!(
        name == "default-rank" || changed > ROUNDS / 2,
        "{name} changes nothing"
    );
    let failed: Vec<_> = host.drain_events();
    assert!(failed.is_empty(), "{failed:?}");
}

/// A test for each policy, so that they run side by side.
macro_rules! agree_with_themselves {
    ($check:ident: $($test:ident = $policy:ty, $name:literal, $config:literal;)+) => {
        $(#[test]
        fn $test() {
            $check::<$policy>($name, $config);
        })+
    };
}

agree_with_themselves! { check_rank:
    default_rank_agrees_with_itself = default_rank::DefaultRank, "default-rank", "";
    prefer_arm64_agrees_with_itself = prefer_arm64::PreferArm64, "prefer-arm64", "";
    perf_price_agrees_with_itself = perf_price::PerfPrice, "perf-price",
        r#"{"performance": {"m7g": 1.25, "m7i": 1.15}}"#;
    ordered_agrees_with_itself = ordered::Ordered, "ordered",
        r#"{"tiers": [["m7g", "spot"], ["us-east-1b", "amd64"], ["c7g.xlarge"]]}"#;
    node_overhead_agrees_with_itself = node_overhead::NodeOverhead, "node-overhead", r#"{"perCpu": 0.003}"#;
    zone_balance_agrees_with_itself = zone_balance::ZoneBalance, "zone-balance", r#"{"weight": 0.37}"#;
    spot_risk_agrees_with_itself = spot_risk::SpotRisk, "spot-risk", "";
    commit_ledger_agrees_with_itself = commit_ledger::CommitLedger, "commit-ledger",
        r#"{"commitments": [{"family": "m7g", "nodes": 50, "discount": 0.4}]}"#;
    prefer_return_agrees_with_itself = prefer_return::PreferReturn, "prefer-return", "";
}

agree_with_themselves! { check_consolidation:
    balanced_k_agrees_with_itself = balanced_k::BalancedK, "balanced-k", r#"{"k": 1.5}"#;
    payback_agrees_with_itself = payback::Payback, "payback", "";
    utilization_threshold_agrees_with_itself =
        utilization_threshold::UtilizationThreshold, "utilization-threshold", "";
    soft_expiry_agrees_with_itself = soft_expiry::SoftExpiry, "soft-expiry", "";
}

agree_with_themselves! { check_budgets:
    rate_budget_agrees_with_itself = rate_budget::RateBudget, "rate-budget", r#"{"perHour": 4, "perDay": 20}"#;
    canary_rollout_agrees_with_itself = canary_rollout::CanaryRollout, "canary-rollout", "";
}

fn node_table(from: &Nodes) -> NodeTable {
    let from = from.clone();
    let extra = from.extra.into_iter().map(|column| ExtraColumn {
        name: column.name,
        values: match column.values {
            Column::Floats(values) => ExtraValues::Floats(values),
            Column::Ints(values) => ExtraValues::Ints(values),
            Column::Syms(values) => ExtraValues::Syms(values),
            Column::Bytes(values) => ExtraValues::Bytes(values),
        },
    });
    NodeTable {
        extra: extra.collect(),
        symbols: from.symbols,
        name: from.name,
        nodepool: from.nodepool,
        instance_type: from.instance_type,
        zone: from.zone,
        capacity_type: from.capacity_type,
        price: from.price,
        age: from.age,
        time_to_expiry: from.time_to_expiry,
        pods: from.pods,
        blocked_pods: from.blocked_pods,
        disruption_cost: from.disruption_cost,
        cpu_milli: from.cpu_milli,
        cpu_requested_milli: from.cpu_requested_milli,
        memory_mib: from.memory_mib,
        memory_requested_mib: from.memory_requested_mib,
    }
}

fn generated_nodes(random: &mut Random) -> Nodes {
    let rows = 1 + random.below(20);
    let policies = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"];
    let rows = random.many(rows, |random| NodeRow {
        consolidation_policy: random.among(&policies),
        price: random.amount(),
        disruption_cost: random.amount() * 5.0,
        age: random.below(3_000_000),
        ..NodeRow::default()
    });
    let mut table = nodes(&rows);
    table.cpu_requested_milli = rows.iter().map(|_| random.below(4000)).collect();
    table.time_to_expiry = rows
        .iter()
        .map(|_| random.among(&[u32::MAX, 600, 9000]))
        .collect();
    table
}

fn check_consolidation<P: ConsolidationPolicy>(name: &str, config: &str) {
    let host = bound(name, "consolidation", config);
    let native = Harness::<P>::new(config).unwrap();
    let mut random = Random::new(4);
    let kinds = [
        (guest_sdk::MoveKind::Empty, MoveKind::Empty),
        (guest_sdk::MoveKind::Delete, MoveKind::Delete),
        (guest_sdk::MoveKind::Replace, MoveKind::Replace),
        (guest_sdk::MoveKind::Drift, MoveKind::Drift),
    ];
    let mut rejected = 0;
    for _ in 0..ROUNDS {
        let table = generated_nodes(&mut random);
        let (theirs, kind) = kinds[usize::try_from(random.below(4)).unwrap()];
        let removed = random.many(2, |random| random.below(table.rows()));
        let (before, after) = (random.amount(), random.amount() / 2.0);
        let guest_move = proposed(theirs, &removed, before, after);
        let round = ConsolidationRound {
            context: context(),
            nodes: node_table(&table),
        };
        let host_move = Move {
            kind,
            remove: removed,
            cost_before: before,
            cost_after: after,
            pods_moved: guest_move.pods_moved,
            singletons_moved: 0,
            max_priority: 0,
            new_nodes: guest_move.new_nodes,
            replacement_type: NO_SYMBOL,
            replacement_spot: false,
            recent_hour: 0,
            recent_day: 0,
            labels: Vec::new(),
        };
        let keys = native.policy.order(&native.context, &table).unwrap();
        assert_eq!(host.order(&round).keys, keys, "{name}");
        let expected = native
            .policy
            .judge(&native.context, &table, &[guest_move])
            .unwrap();
        let found = host.judge(&round, &[host_move]).verdicts;
        let decision = match expected[0].decision {
            Decision::Approve => VerdictDecision::Approve,
            Decision::Reject => VerdictDecision::Reject,
            Decision::Hold => VerdictDecision::Hold,
        };
        assert_eq!(
            (found[0].decision, found[0].score),
            (decision, expected[0].score),
            "{name}"
        );
        assert_eq!(found[0].reason, expected[0].reason, "{name}");
        rejected += usize::from(decision != VerdictDecision::Approve);
    }
    assert!(rejected > 0 && rejected < ROUNDS, "{name} has one answer");
    assert!(host.drain_events().is_empty());
}

fn context() -> Context {
    Context {
        now_seconds: 1_767_614_400,
        decision_id: "it-1".to_owned(),
        ..Context::default()
    }
}

fn check_budgets<P: BudgetPolicy>(name: &str, config: &str) {
    let host = bound(name, "budgets", config);
    let native = Harness::<P>::new(config).unwrap();
    let mut random = Random::new(5);
    for _ in 0..ROUNDS {
        let declared = random.below(10);
        let mut guest_pool = pool("web", random.below(100), &[declared]);
        guest_pool.recent_hour = random.below(8);
        guest_pool.recent_day = random.below(30);
        guest_pool.not_ready = random.below(2);
        guest_pool.disrupting = random.many(3, |random| random.below(3));
        let round = BudgetRound {
            context: context(),
            pools: vec![BudgetPool {
                name: "web".to_owned(),
                total: guest_pool.total,
                not_ready: guest_pool.not_ready,
                disrupting: guest_pool.disrupting.clone(),
                recent_hour: guest_pool.recent_hour,
                recent_day: guest_pool.recent_day,
                declared: vec![DeclaredBudget {
                    nodes: declared.to_string(),
                    resolved: declared,
                    active: true,
                    next_change_seconds: 0,
                    reasons: BudgetReasons::ALL,
                }],
                ..BudgetPool::default()
            }],
        };
        let expected = native
            .policy
            .allow(&native.context, &[guest_pool])
            .unwrap()
            .items;
        let found = host.allow(&round).items;
        for (theirs, reason) in [
            (Reason::Underutilized, BudgetReason::Underutilized),
            (Reason::Empty, BudgetReason::Empty),
            (Reason::Drifted, BudgetReason::Drifted),
        ] {
            let expected = expected.iter().find(|it| it.reason == theirs).unwrap();
            let found = found.iter().find(|it| it.reason == reason).unwrap();
            assert_eq!(
                (found.allowed, &found.why),
                (expected.allowed, &expected.why),
                "{name}"
            );
        }
    }
    assert!(host.drain_events().is_empty());
}
