//! Sample rounds: tables of any size, the same on every machine.

use hooks::disruption as native;
use hooks::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, NEVER_SECONDS, NO_SYMBOL, OfferingTable,
    PodsSummary, RankRound, UsageTable, WorkloadTable,
};

use crate::call_context::moment;

/// The words of the sample tables, in the order of their symbols.
const WORDS: [&str; 14] = [
    "sample",
    "amd64",
    "arm64",
    "us-east-1a",
    "us-east-1b",
    "us-east-1c",
    "aws",
    "intel",
    "shop",
    "Deployment",
    "web",
    "app",
    "critical",
    "team",
];
const SAMPLE: u32 = 0;
const ZONE_BASE: u32 = 3;
const SHOP: u32 = 8;
const DEPLOYMENT: u32 = 9;
const WEB: u32 = 10;
const APP: u32 = 11;
const CRITICAL: u32 = 12;
const TEAM: u32 = 13;
const FAMILIES: [&str; 5] = ["m7i", "m7g", "c7i", "r7g", "t3"];
/// Noon UTC of 2026-01-05.
pub(crate) const NOW_SECONDS: u64 = 1_767_614_400;
/// Three pools, a consolidation policy for each, a type and a drift reason.
const NODE_WORDS: [&str; 8] = [
    "front",
    "batch",
    "gpu",
    "WhenEmptyOrUnderutilized",
    "WhenEmpty",
    "Balanced",
    "m7i.xlarge",
    "NodePoolDrifted",
];

fn context() -> native::Context {
    native::Context {
        now_seconds: NOW_SECONDS,
        civil: moment(NOW_SECONDS)
            .map(native::Civil::utc)
            .into_iter()
            .collect(),
        cluster: "sample".to_owned(),
        decision_id: "sample".to_owned(),
        seed: 1,
    }
}

/// A table of so many offerings and two claims: everything, and every third row.
pub(crate) fn rank_round(rows: u32) -> RankRound {
    let mut symbols: Vec<String> = WORDS.map(str::to_owned).to_vec();
    let family_base = sym(symbols.len());
    symbols.extend(FAMILIES.map(str::to_owned));
    let type_base = sym(symbols.len());
    for it in 0..rows.div_ceil(6) {
        let family = usize::try_from(it % 5).ok();
        let family = family.and_then(|it| FAMILIES.get(it)).copied();
        symbols.push(format!("{}.{}xlarge", family.unwrap_or("m7i"), it / 5 + 1));
    }
    let column = |value: fn(u32) -> u32| (0..rows).map(value).collect::<Vec<u32>>();
    let price: Vec<f64> = (0..rows)
        .map(|it| f64::from(spread(it) % 100_000) / 1e4)
        .collect();
    let table = OfferingTable {
        instance_type: (0..rows).map(|it| type_base + it / 6).collect(),
        family: (0..rows).map(|it| family_base + it / 6 % 5).collect(),
        generation: column(|it| 3 + it / 6 % 5),
        cpu_manufacturer: column(|it| 6 + it / 6 % 2),
        zone: column(|it| ZONE_BASE + it % 3),
        arch: column(|it| 1 + u32::from(it / 6 % 5 == 1 || it / 6 % 5 == 3)),
        capacity_type: (0..rows).map(|it| u8::from(it / 3 % 2 == 1)).collect(),
        on_demand_price: price.iter().map(|price| price * 1.5).collect(),
        cpu_milli: column(|it| (1 + it / 30) * 4000),
        memory_mib: column(|it| (1 + it / 30) * 16384),
        gpus: column(|it| u32::from(it % 40 == 0)),
        max_pods: column(|_| 110),
        reservation_slots: column(|_| 0),
        ice_count: column(|it| u32::from(it % 17 == 0)),
        ice_age: column(|it| if it % 17 == 0 { 600 } else { u32::MAX }),
        interruption_rate: (0..rows).map(|it| f64::from(it % 7) / 10.0 - 0.1).collect(),
        prior: price.clone(),
        price,
        extra: Vec::new(),
        symbols,
    };
    RankRound {
        now_seconds: NOW_SECONDS,
        cluster: "sample".to_owned(),
        decision_id: "sample".to_owned(),
        seed: 1,
        usage: usage(&table),
        workloads: workloads(1 + rows / 20, |_| NO_SYMBOL),
        claims: vec![claim(Vec::new()), claim((0..rows).step_by(3).collect())],
        table,
    }
}

fn claim(candidates: Vec<u32>) -> ClaimView {
    ClaimView {
        nodepool: SAMPLE,
        weight: 1,
        candidates,
        requirements: vec![ClaimRequirement {
            key: TEAM,
            operator: ClaimOperator::InSet,
            values: vec![SHOP],
            min_values: 0,
        }],
        pods: PodsSummary {
            count: 10,
            cpu_milli: 4000,
            memory_mib: 8192,
            replicated: 4,
            oldest_wait_seconds: 30,
            ..PodsSummary::default()
        },
        labels: vec![(TEAM, SHOP)],
        nodepool_labels: vec![(TEAM, SHOP)],
        free_addresses: (ZONE_BASE..ZONE_BASE + 3).map(|zone| (zone, 250)).collect(),
        ..ClaimView::default()
    }
}

/// Nodes on every fourth offering.
fn usage(table: &OfferingTable) -> UsageTable {
    let mut usage = UsageTable::default();
    let types = table.instance_type.iter().zip(&table.family);
    let places = table.zone.iter().zip(&table.capacity_type);
    let rows = types.zip(places).zip(&table.price).step_by(4);
    for (nodes, (((instance_type, family), (zone, capacity_type)), price)) in (1..).zip(rows) {
        usage.nodepool.push(SAMPLE);
        usage.instance_type.push(*instance_type);
        usage.family.push(*family);
        usage.zone.push(*zone);
        usage.capacity_type.push(*capacity_type);
        usage.nodes.push(nodes % 7);
        usage.launching.push(nodes % 2);
        usage.price.push(*price);
    }
    usage
}

/// Pods of so many owners, and which claim or node each has them on.
fn workloads(owners: u32, of: fn(u32) -> u32) -> WorkloadTable {
    let mut table = WorkloadTable::default();
    for owner in 0..owners {
        table.of.push(of(owner));
        table.namespace.push(SHOP);
        table.owner_kind.push(DEPLOYMENT);
        table.owner_name.push(WEB);
        let is_critical = owner % 3 == 0;
        table
            .priority_class
            .push(if is_critical { CRITICAL } else { NO_SYMBOL });
        table.priority.push(if is_critical { 1000 } else { 0 });
        table.labels.push(vec![(APP, WEB), (TEAM, SHOP)]);
        table.pods.push(1 + owner % 9);
        table.do_not_disrupt.push(owner % 2);
        table.cpu_milli.push(250 * (1 + owner % 9));
        table.memory_mib.push(512 * (1 + owner % 9));
        table.gpus.push(0);
        table.replicas.push(3 + owner % 30);
        table
            .disruptions_allowed
            .push(if owner % 4 == 0 { u32::MAX } else { 1 });
        table.oldest_wait.push(owner % 120);
    }
    table
}

fn sym(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NO_SYMBOL)
}

/// A table of so many offerings and one claim for all of them, as a solve asks for one pool.
pub(crate) fn pool_round(rows: u32) -> RankRound {
    let mut round = rank_round(rows);
    round.claims.truncate(1);
    round
}

/// The pools of [`budget_round`], over and over.
pub(crate) fn many_pools(pools: u32) -> native::BudgetRound {
    let mut round = budget_round();
    let count = usize::try_from(pools).unwrap_or_default();
    round.pools = round.pools.into_iter().cycle().take(count).collect();
    round
}

/// A table of so many nodes in three pools, one for each consolidation policy, and moves of every kind.
pub(crate) fn consolidation_round(rows: u32) -> (native::ConsolidationRound, Vec<native::Move>) {
    // The first words are those of the rank round, because the pods are the same.
    let mut symbols: Vec<String> = WORDS.map(str::to_owned).to_vec();
    let pool_base = sym(symbols.len());
    symbols.extend(NODE_WORDS.map(str::to_owned));
    let (policy_base, type_sym, drift_sym) = (pool_base + 3, pool_base + 6, pool_base + 7);
    let name_base = sym(symbols.len());
    symbols.extend((0..rows).map(|it| format!("node-{it}")));
    let column = |value: fn(u32) -> u32| (0..rows).map(value).collect::<Vec<u32>>();
    let floats = |value: fn(u32) -> f64| (0..rows).map(value).collect::<Vec<f64>>();
    let price = floats(|it| f64::from(spread(it) % 1000) / 1e3);
    let nodes = native::NodeTable {
        name: (0..rows).map(|it| name_base + it).collect(),
        nodepool: (0..rows).map(|it| pool_base + it % 3).collect(),
        instance_type: (0..rows).map(|_| type_sym).collect(),
        zone: column(|it| ZONE_BASE + it % 3),
        capacity_type: (0..rows).map(|it| u8::from(it % 2 == 1)).collect(),
        effective_price: price.iter().map(|price| price * 1.25).collect(),
        price,
        consolidation_policy: (0..rows).map(|it| policy_base + it % 3).collect(),
        age: column(|it| it * 60),
        time_to_expiry: column(|it| if it % 2 == 0 { NEVER_SECONDS } else { 3600 }),
        last_pod_event: column(|it| if it % 5 == 0 { NEVER_SECONDS } else { it }),
        drift_reason: (0..rows)
            .map(|it| if it % 7 == 0 { drift_sym } else { NO_SYMBOL })
            .collect(),
        pods: column(|it| it % 20),
        blocked_pods: column(|it| u32::from(it % 9 == 0)),
        disruption_cost: floats(|it| 1.0 + f64::from(it % 20)),
        cpu_milli: column(|_| 4000),
        cpu_requested_milli: column(|it| it * 37 % 4000),
        memory_mib: column(|_| 16384),
        memory_requested_mib: column(|it| it * 131 % 16384),
        gpus: column(|it| u32::from(it % 3 == 2)),
        gpus_requested: column(|it| u32::from(it % 6 == 2)),
        labels: (0..rows).map(|_| vec![(TEAM, SHOP), (APP, WEB)]).collect(),
        extra: Vec::new(),
        symbols,
    };
    let pools = (0..3).map(|pool| native::PoolView {
        name: pool_base + pool,
        labels: vec![(TEAM, SHOP)],
        nodes: rows / 3 + 1,
        price: 8.0,
        effective_price: 10.0,
        disruption_cost: 50.0,
        recent_hour: pool,
        recent_day: pool * 4,
    });
    let kinds = [
        native::MoveKind::Empty,
        native::MoveKind::Delete,
        native::MoveKind::Replace,
        native::MoveKind::Drift,
        native::MoveKind::StaticDrift,
        native::MoveKind::Expire,
    ];
    let moves = (0_u32..rows.min(40))
        .zip(kinds.into_iter().cycle())
        .map(|(it, kind)| sample_move(kind, it, rows, type_sym))
        .collect();
    let round = native::ConsolidationRound {
        context: context(),
        nodes,
        pools: pools.collect(),
        workloads: workloads(rows, |owner| owner),
    };
    (round, moves)
}

fn sample_move(kind: native::MoveKind, it: u32, rows: u32, type_sym: u32) -> native::Move {
    let is_replaced = match kind {
        native::MoveKind::Empty | native::MoveKind::Delete => false,
        native::MoveKind::Replace
        | native::MoveKind::Drift
        | native::MoveKind::StaticDrift
        | native::MoveKind::Expire => true,
    };
    let new_nodes = u32::from(is_replaced);
    let (before, after) = (
        f64::from(1 + it % 5) / 2.0,
        f64::from(new_nodes) * f64::from(it % 7) / 4.0,
    );
    native::Move {
        kind,
        remove: vec![it % rows, (it + 1) % rows],
        cost_before: before,
        cost_after: after,
        effective_before: before * 1.25,
        effective_after: after * 1.25,
        pods_moved: it % 20,
        singletons_moved: it % 3,
        max_priority: 0,
        new_nodes,
        replacement_type: if is_replaced { type_sym } else { NO_SYMBOL },
        replacement_zone: if is_replaced { ZONE_BASE } else { NO_SYMBOL },
        replacement_capacity_type: if is_replaced {
            u8::from(it.is_multiple_of(2))
        } else {
            native::NO_CAPACITY_TYPE
        },
        labels: vec![(TEAM, SHOP)],
    }
}

/// Three pools: without budgets, with a closed one, with several.
pub(crate) fn budget_round() -> native::BudgetRound {
    let budget = |resolved: u32, active, reasons| native::DeclaredBudget {
        nodes: resolved.to_string(),
        resolved,
        active,
        next_change_seconds: 600,
        reasons,
    };
    let all = native::BudgetReasons::ALL;
    let drifted = native::BudgetReasons {
        drifted: true,
        ..native::BudgetReasons::default()
    };
    let pool = |name: &str, total: u32, declared| native::BudgetPool {
        name: name.to_owned(),
        labels: vec![("team".to_owned(), "shop".to_owned())],
        total,
        not_ready: total / 10,
        deleting: 1,
        drifted: total / 4,
        drift_target: format!("{name}-1"),
        renewed: total / 20,
        target_age_seconds: 7200,
        price: f64::from(total) / 8.0,
        activity: native::BudgetReason::ALL.map(|reason| native::PoolActivity {
            disrupting: u32::from(reason == native::BudgetReason::Empty),
            recent_hour: u32::from(reason == native::BudgetReason::Underutilized) * 2,
            recent_day: 3,
            failed_day: u32::from(reason == native::BudgetReason::Drifted),
        }),
        pending_pods: 7,
        declared,
    };
    native::BudgetRound {
        context: context(),
        pools: vec![
            pool("idle", 0, Vec::new()),
            pool("web", 20, vec![budget(0, true, all)]),
            pool(
                "batch",
                100,
                vec![
                    budget(10, true, all),
                    budget(3, true, drifted),
                    budget(1, false, all),
                ],
            ),
        ],
    }
}

/// Numbers without a pattern, the same everywhere.
fn spread(it: u32) -> u32 {
    it.wrapping_mul(2_654_435_761).rotate_left(13)
}
