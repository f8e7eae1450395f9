//! Every policy of the shelf answers as a component what it answers natively, on generated rounds, and
//! changes a decision with the settings of its examples.

use guest_sdk::testing::{
    ClaimRow, ConsolidationQuestion, ConsolidationTables, Counts, Harness, NodeRow, OfferingRow,
    PoolRow, RankQuestion, RankTables, UsedRow, activity, pool, proposed,
};
use guest_sdk::{
    BudgetPolicy, ConsolidationPolicy, ConsolidationPool, Decision, Nodes, Offerings, Pool,
    RankPolicy, Reason, Usage,
};
use hooks::disruption::{
    BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook, ConsolidationHook,
    ConsolidationRound, Context, DeclaredBudget, Move, MoveKind, NodeTable, PoolActivity, PoolView,
    VerdictDecision,
};
use policy::{BindingState, PolicyHost};
use scheduling::ranking::{ClaimView, OfferingTable, PriceRank, RankHook, RankRound, UsageTable};

use crate::agreement::{Draw, ROUNDS};
use crate::random::SplitMix;
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

fn offering_rows(random: &mut SplitMix) -> Vec<OfferingRow<'static>> {
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
            ..OfferingRow::default()
        }
    })
}

fn used_rows(random: &mut SplitMix) -> Vec<UsedRow<'static>> {
    let rows = random.below(20);
    random.many(rows, |random| UsedRow {
        instance_type: random.among(&TYPES),
        zone: random.among(&ZONES),
        capacity_type: u8::try_from(random.below(3)).unwrap(),
        nodes: random.below(9),
        ..UsedRow::default()
    })
}

fn table(from: &Offerings) -> OfferingTable {
    let from = from.clone();
    OfferingTable {
        symbols: from.symbols,
        instance_type: from.instance_type,
        family: from.family,
        generation: from.generation,
        cpu_manufacturer: from.cpu_manufacturer,
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
        prior: from.prior,
        extra: Vec::new(),
    }
}

fn usage(from: &Usage) -> UsageTable {
    let from = from.clone();
    UsageTable {
        nodepool: from.nodepool,
        instance_type: from.instance_type,
        family: from.family,
        zone: from.zone,
        capacity_type: from.capacity_type,
        nodes: from.nodes,
        launching: from.launching,
        price: from.price,
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
    let mut random = SplitMix::new(3);
    let mut changed = 0;
    for _ in 0..ROUNDS {
        let (rows, used) = (offering_rows(&mut random), used_rows(&mut random));
        let count = u32::try_from(rows.len()).unwrap();
        let some = random.below(count + 1);
        let candidates = random.many(some, |random| random.below(count));
        let partly = ClaimRow {
            candidates: &candidates,
            ..ClaimRow::default()
        };
        let question = RankQuestion {
            offerings: &rows,
            usage: &used,
            claims: &[ClaimRow::default(), partly],
            ..RankQuestion::default()
        };
        let expected = native.ask(&question).unwrap().items;
        let tables = RankTables::of(&question);
        let view = |candidates| ClaimView {
            nodepool: tables.claims[0].nodepool,
            weight: 1,
            candidates,
            ..ClaimView::default()
        };
        let round = RankRound {
            now_seconds: native.context.now,
            decision_id: "rank-1".to_owned(),
            table: table(&tables.offerings),
            usage: usage(&tables.usage),
            claims: vec![view(Vec::new()), view(candidates.clone())],
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
    spot_share_agrees_with_itself = spot_share::SpotShare, "spot-share",
        r#"{"share": 0.1}"#;
    price_limit_agrees_with_itself = price_limit::PriceLimit, "price-limit",
        r#"{"perNode": 2, "perCpu": 0.05, "spotOfOnDemand": 0.6}"#;
    carbon_agrees_with_itself = carbon::Carbon, "carbon",
        r#"{"gramsPerKwh": {"us-east-1": 380, "us-east-1b": 20}, "wattsPerCpu": {"m7g": 1.2}}"#;
}

agree_with_themselves! { check_consolidation:
    balanced_k_agrees_with_itself = balanced_k::BalancedK, "balanced-k", r#"{"k": 1.5}"#;
    payback_agrees_with_itself = payback::Payback, "payback", "";
    utilization_threshold_agrees_with_itself =
        utilization_threshold::UtilizationThreshold, "utilization-threshold", "";
    soft_expiry_agrees_with_itself = soft_expiry::SoftExpiry, "soft-expiry", "";
    workload_class_agrees_with_itself = workload_class::WorkloadClass, "workload-class",
        r#"{"classes": {"web": {"minSavings": 0.05}}, "namespaces": {"default": "web"}}"#;
}

agree_with_themselves! { check_budgets:
    rate_budget_agrees_with_itself = rate_budget::RateBudget, "rate-budget", r#"{"perHour": 4, "perDay": 20}"#;
    canary_rollout_agrees_with_itself = canary_rollout::CanaryRollout, "canary-rollout", "";
    business_calendar_agrees_with_itself = business_calendar::BusinessCalendar, "business-calendar",
        "";
}

fn node_table(from: &Nodes) -> NodeTable {
    let from = from.clone();
    NodeTable {
        symbols: from.symbols,
        name: from.name,
        nodepool: from.nodepool,
        instance_type: from.instance_type,
        zone: from.zone,
        capacity_type: from.capacity_type,
        price: from.price,
        effective_price: from.effective_price,
        consolidation_policy: from.consolidation_policy,
        age: from.age,
        time_to_expiry: from.time_to_expiry,
        last_pod_event: from.last_pod_event,
        drift_reason: from.drift_reason,
        pods: from.pods,
        blocked_pods: from.blocked_pods,
        disruption_cost: from.disruption_cost,
        cpu_milli: from.cpu_milli,
        cpu_requested_milli: from.cpu_requested_milli,
        memory_mib: from.memory_mib,
        memory_requested_mib: from.memory_requested_mib,
        gpus: from.gpus,
        gpus_requested: from.gpus_requested,
        labels: from.labels,
        extra: Vec::new(),
    }
}

fn pool_view(from: &ConsolidationPool) -> PoolView {
    PoolView {
        name: from.name,
        labels: from.labels.clone(),
        nodes: from.nodes,
        price: from.price,
        effective_price: from.effective_price,
        disruption_cost: from.disruption_cost,
        recent_hour: from.recent_hour,
        recent_day: from.recent_day,
    }
}

fn host_move(from: guest_sdk::Move, kind: MoveKind) -> Move {
    Move {
        kind,
        remove: from.remove,
        cost_before: from.cost_before,
        cost_after: from.cost_after,
        effective_before: from.effective_before,
        effective_after: from.effective_after,
        pods_moved: from.pods_moved,
        singletons_moved: from.singletons_moved,
        max_priority: from.max_priority,
        new_nodes: from.new_nodes,
        replacement_type: from.replacement_type,
        replacement_zone: from.replacement_zone,
        replacement_capacity_type: from.replacement_capacity_type,
        labels: from.labels,
    }
}

fn node_rows(random: &mut SplitMix) -> Vec<NodeRow<'static>> {
    let rows = 1 + random.below(20);
    let policies = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"];
    random.many(rows, |random| NodeRow {
        consolidation_policy: random.among(&policies),
        price: random.amount(),
        effective_price: Some(random.amount()),
        disruption_cost: random.amount() * 5.0,
        age: random.below(3_000_000),
        cpu_requested_milli: random.below(4000),
        time_to_expiry: random.among(&[u32::MAX, 600, 9000, 90_000]),
        ..NodeRow::default()
    })
}

fn check_consolidation<P: ConsolidationPolicy>(name: &str, config: &str) {
    let host = bound(name, "consolidation", config);
    let native = Harness::<P>::new(config).unwrap();
    let mut random = SplitMix::new(4);
    let kinds = [
        (guest_sdk::MoveKind::Empty, MoveKind::Empty),
        (guest_sdk::MoveKind::Delete, MoveKind::Delete),
        (guest_sdk::MoveKind::Replace, MoveKind::Replace),
        (guest_sdk::MoveKind::Drift, MoveKind::Drift),
        (guest_sdk::MoveKind::StaticDrift, MoveKind::StaticDrift),
        (guest_sdk::MoveKind::Expire, MoveKind::Expire),
    ];
    // Who does not ask for renewals is not asked about them: the default refuses.
    let kinds = if P::NEEDS.contains(&guest_sdk::Need::Expire) {
        &kinds[..]
    } else {
        &kinds[..5]
    };
    let mut rejected = 0;
    for _ in 0..ROUNDS {
        let rows = node_rows(&mut random);
        let count = u32::try_from(rows.len()).unwrap();
        let kind = u32::try_from(kinds.len()).unwrap();
        let (theirs, kind) = kinds[usize::try_from(random.below(kind)).unwrap()];
        let removed = random.many(2, |random| random.below(count));
        let (before, after) = (random.amount(), random.amount() / 2.0);
        let question = ConsolidationQuestion {
            nodes: &rows,
            pools: &[PoolRow {
                effective_price: random.amount() * 9.0,
                disruption_cost: random.amount() * 30.0,
                ..PoolRow::default()
            }],
            moves: &[guest_sdk::testing::MoveRow {
                effective_before: Some(random.amount()),
                ..proposed(theirs, &removed, before, after)
            }],
            ..ConsolidationQuestion::default()
        };
        let mut tables = ConsolidationTables::of(&question);
        let round = ConsolidationRound {
            context: context(),
            nodes: node_table(&tables.nodes),
            pools: tables.pools.iter().map(pool_view).collect(),
            ..ConsolidationRound::default()
        };
        let proposed = host_move(tables.moves.remove(0), kind);
        let keys = native.order_of(&question).unwrap();
        assert_eq!(host.order(&round).keys, keys, "{name}");
        let expected = native.verdict(&question);
        let found = host.judge(&round, &[proposed]).verdicts;
        let decision = match expected.decision {
            Decision::Approve => VerdictDecision::Approve,
            Decision::Reject => VerdictDecision::Reject,
            Decision::Hold => VerdictDecision::Hold,
        };
        assert_eq!(
            (found[0].decision, found[0].score),
            (decision, expected.score),
            "{name}"
        );
        assert_eq!(found[0].reason, expected.reason, "{name}");
        rejected += usize::from(decision != VerdictDecision::Approve);
    }
    assert!(rejected > 0 && rejected < ROUNDS, "{name} has one answer");
    assert!(host.drain_events().is_empty());
}

fn context() -> Context {
    Context {
        now_seconds: 1_767_614_400,
        civil: vec![hooks::disruption::Civil {
            zone: "UTC".to_owned(),
            hour: 12,
            ..hooks::disruption::Civil::default()
        }],
        decision_id: "it-1".to_owned(),
        ..Context::default()
    }
}

/// The reasons, as guests and as the host have them.
const REASONS: [(Reason, BudgetReason); 4] = [
    (Reason::Underutilized, BudgetReason::Underutilized),
    (Reason::Empty, BudgetReason::Empty),
    (Reason::Drifted, BudgetReason::Drifted),
    (Reason::Unhealthy, BudgetReason::Unhealthy),
];

fn guest_pool(random: &mut SplitMix, declared: u32) -> Pool {
    let counts = REASONS.map(|(reason, _)| {
        let counts = Counts {
            disrupting: random.below(3),
            recent_hour: random.below(3),
            recent_day: random.below(9),
            failed_day: random.below(2),
        };
        (reason, counts)
    });
    Pool {
        not_ready: random.below(2),
        renewed: random.below(6),
        activity: activity(&counts),
        ..pool("web", random.below(100), &[declared])
    }
}

fn budget_pool(from: &Pool, declared: u32) -> BudgetPool {
    let activity = REASONS.map(|(reason, _)| {
        let own = from.activity_of(reason).unwrap();
        PoolActivity {
            disrupting: own.disrupting,
            recent_hour: own.recent_hour,
            recent_day: own.recent_day,
            failed_day: own.failed_day,
        }
    });
    BudgetPool {
        name: from.name.clone(),
        total: from.total,
        not_ready: from.not_ready,
        renewed: from.renewed,
        activity,
        declared: vec![DeclaredBudget {
            nodes: declared.to_string(),
            resolved: declared,
            active: true,
            next_change_seconds: 0,
            reasons: BudgetReasons::ALL,
        }],
        ..BudgetPool::default()
    }
}

fn check_budgets<P: BudgetPolicy>(name: &str, config: &str) {
    let host = bound(name, "budgets", config);
    let native = Harness::<P>::new(config).unwrap();
    let mut random = SplitMix::new(5);
    for _ in 0..ROUNDS {
        let declared = random.below(10);
        let pool = guest_pool(&mut random, declared);
        let round = BudgetRound {
            context: context(),
            pools: vec![budget_pool(&pool, declared)],
        };
        let expected = native.policy.allow(&native.context, &[pool]).unwrap().items;
        let found = host.allow(&round).items;
        for (theirs, reason) in &REASONS[..3] {
            let expected = expected.iter().find(|it| it.reason == *theirs).unwrap();
            let found = found.iter().find(|it| it.reason == *reason).unwrap();
            assert_eq!(
                (found.allowed, &found.why),
                (expected.allowed, &expected.why),
                "{name}"
            );
        }
    }
    assert!(host.drain_events().is_empty());
}
