//! Sample rounds of consolidation and budgets.

use hooks::disruption as native;
use hooks::ranking::{NEVER_SECONDS, NO_SYMBOL};

use super::{APP, NOW_SECONDS, SHOP, TEAM, WEB, WORDS, ZONE_BASE, spread, sym, workloads};
use crate::call_context::moment;

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

fn sample_move(kind: native::MoveKind, number: u32, rows: u32, type_sym: u32) -> native::Move {
    let is_replaced = match kind {
        native::MoveKind::Empty | native::MoveKind::Delete => false,
        native::MoveKind::Replace
        | native::MoveKind::Drift
        | native::MoveKind::StaticDrift
        | native::MoveKind::Expire => true,
    };
    let new_nodes = u32::from(is_replaced);
    let (before, after) = (
        f64::from(1 + number % 5) / 2.0,
        f64::from(new_nodes) * f64::from(number % 7) / 4.0,
    );
    native::Move {
        kind,
        remove: vec![number % rows, (number + 1) % rows],
        cost_before: before,
        cost_after: after,
        effective_before: before * 1.25,
        effective_after: after * 1.25,
        pods_moved: number % 20,
        singletons_moved: number % 3,
        max_priority: 0,
        new_nodes,
        replacement_type: if is_replaced { type_sym } else { NO_SYMBOL },
        replacement_zone: if is_replaced { ZONE_BASE } else { NO_SYMBOL },
        replacement_capacity_type: if is_replaced {
            u8::from(number.is_multiple_of(2))
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
