//! Sample questions that a module answers before it may decide: twice in one instance and once in a
//! fresh one, with equal answers, within the limits of a real round.

use disruption::hooks as native;
use scheduling::ranking::{
    ClaimView, ExtraColumn, ExtraValues, NEVER_SECONDS, NO_SYMBOL, OfferingTable, PodsSummary,
    RankRound,
};

use crate::answer;
use crate::call::{CallFailure, Grant, Session, call};
use crate::limits::{CallLimits, Kind};
use crate::module::{LoadError, Module};
use crate::rule::Rule;

/// Rows of the larger tables: more than a usual round has.
const ROWS_MANY: u32 = 1200;
/// Noon UTC of 2026-01-05.
pub(crate) const NOW_SECONDS: u64 = 1_767_614_400;

/// Tries a module on the sample questions of a kind.
pub(crate) fn try_out(
    module: &Module,
    kind: Kind,
    config: &str,
    grant: Grant<'_>,
) -> Result<(), LoadError> {
    let probe = Probe {
        module,
        config,
        grant,
    };
    match kind {
        Kind::Rank => [6, ROWS_MANY].into_iter().try_for_each(|rows| {
            let round = rank_round(rows);
            probe.agree(|session| answer::rank_round(session, &round))
        }),
        Kind::Consolidation => [6, ROWS_MANY].into_iter().try_for_each(|rows| {
            let (round, moves) = consolidation_round(rows);
            probe.agree(|session| answer::order(session, &round))?;
            probe.agree(|session| answer::judge(session, &round, &moves))
        }),
        Kind::Budgets => {
            let round = budget_round();
            probe.agree(|session| answer::allow(session, &round))
        }
    }
}

/// Tries a rule on the sample questions of its kind. It has no state, so once each is enough.
pub(crate) fn try_rule(rule: &Rule, limits: CallLimits) -> Result<(), LoadError> {
    let fuel = limits.fuel;
    let result = match rule.kind {
        Kind::Rank => [6, ROWS_MANY].into_iter().try_for_each(|rows| {
            let round = rank_round(rows);
            let claims: Vec<&ClaimView> = round.claims.iter().collect();
            let ran = rule.rank(&round, &claims, &round.table.prior, fuel);
            ran.result.map(drop)
        }),
        Kind::Consolidation => [6, ROWS_MANY].into_iter().try_for_each(|rows| {
            let (round, moves) = consolidation_round(rows);
            rule.judge(&round, &moves, fuel).result.map(drop)
        }),
        Kind::Budgets => rule.allow(&budget_round(), fuel).result.map(drop),
    };
    match result {
        // It may be short of a label that only a real round has.
        Ok(())
        | Err(CallFailure::Refused {
            transient: true, ..
        }) => Ok(()),
        Err(failure) => Err(LoadError::Tried {
            during: "answering a sample question",
            failure,
        }),
    }
}

struct Probe<'a> {
    module: &'a Module,
    config: &'a str,
    grant: Grant<'a>,
}

impl Probe<'_> {
    fn agree<T: PartialEq>(
        &self,
        ask: impl Fn(&mut Session<'_>) -> Result<T, CallFailure>,
    ) -> Result<(), LoadError> {
        // Fuel is per call in a real round; a warm pair gets it twice.
        let twice = Grant {
            call: CallLimits {
                fuel: self.grant.call.fuel.saturating_mul(2),
                deadline: self.grant.call.deadline * 2,
            },
            ..self.grant
        };
        let warm = call(self.module, twice, |session| {
            session.configure(self.config)?;
            Ok((ask(session)?, ask(session)?))
        });
        let cold = call(self.module, self.grant, |session| {
            session.configure(self.config)?;
            ask(session)
        });
        match (warm.result, cold.result) {
            (Ok((first, second)), Ok(_)) if first != second => Err(LoadError::NotDeterministic(
                "a second call gave another answer than the first",
            )),
            (Ok((first, _)), Ok(third)) if first != third => Err(LoadError::NotDeterministic(
                "a fresh instance gave another answer",
            )),
            // A policy may be short of data that only a real round has.
            (Ok(_), Ok(_))
            | (
                Err(CallFailure::Refused {
                    transient: true, ..
                }),
                Err(_),
            ) => Ok(()),
            (Err(failure), _) | (Ok(_), Err(failure)) => Err(LoadError::Tried {
                during: "answering a sample question",
                failure,
            }),
        }
    }
}

fn context() -> native::Context {
    let now = jiff::Timestamp::from_second(i64::try_from(NOW_SECONDS).unwrap_or_default());
    native::Context {
        now_seconds: NOW_SECONDS,
        civil: now.ok().map(native::Civil::utc).into_iter().collect(),
        cluster: "sample".to_owned(),
        decision_id: "sample".to_owned(),
        seed: 1,
    }
}

/// A table of so many offerings and two claims: everything, and every third row.
pub(crate) fn rank_round(rows: u32) -> RankRound {
    let zones = ["us-east-1a", "us-east-1b", "us-east-1c"];
    let families = ["m7i", "m7g", "c7i", "r7g", "t3"];
    let mut symbols: Vec<String> = ["sample", "amd64", "arm64"].map(str::to_owned).to_vec();
    symbols.extend(zones.map(str::to_owned));
    symbols.extend(families.map(str::to_owned));
    let (zone_base, family_base, type_base) = (3, 6, 11);
    let types = rows.div_ceil(6);
    for it in 0..types {
        let family = families
            .get(usize::try_from(it % 5).unwrap_or(0))
            .copied()
            .unwrap_or("m7i");
        symbols.push(format!("{family}.{}xlarge", it / 5 + 1));
    }
    let column = |value: fn(u32) -> u32| (0..rows).map(value).collect::<Vec<u32>>();
    let price: Vec<f64> = (0..rows)
        .map(|it| f64::from(spread(it) % 100_000) / 1e4)
        .collect();
    let table = OfferingTable {
        instance_type: (0..rows).map(|it| type_base + it / 6).collect(),
        family: (0..rows).map(|it| family_base + it / 6 % 5).collect(),
        zone: (0..rows).map(|it| zone_base + it % 3).collect(),
        arch: column(|it| 1 + u32::from(it / 6 % 5 == 1 || it / 6 % 5 == 3)),
        capacity_type: (0..rows).map(|it| u8::from(it / 3 % 2 == 1)).collect(),
        on_demand_price: price.iter().map(|price| price * 1.5).collect(),
        cpu_milli: column(|it| (1 + it / 30) * 4000),
        memory_mib: column(|it| (1 + it / 30) * 16384),
        gpus: column(|_| 0),
        max_pods: column(|_| 110),
        reservation_slots: column(|_| 0),
        ice_count: column(|it| u32::from(it % 17 == 0)),
        ice_age: column(|it| if it % 17 == 0 { 600 } else { u32::MAX }),
        interruption_rate: (0..rows).map(|it| f64::from(it % 7) / 10.0 - 0.1).collect(),
        in_use: column(|it| it % 4),
        prior: price.clone(),
        price,
        extra: Vec::new(),
        symbols,
    };
    let claim = |candidates| ClaimView {
        nodepool: 0,
        weight: 1,
        candidates,
        requirements: Vec::new(),
        pods: PodsSummary {
            count: 10,
            cpu_milli: 4000,
            memory_mib: 8192,
            ..PodsSummary::default()
        },
        labels: Vec::new(),
    };
    RankRound {
        now_seconds: NOW_SECONDS,
        cluster: "sample".to_owned(),
        decision_id: "sample".to_owned(),
        seed: 1,
        table,
        claims: vec![claim(Vec::new()), claim((0..rows).step_by(3).collect())],
    }
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
    let words = [
        "web",
        "batch",
        "gpu",
        "WhenEmptyOrUnderutilized",
        "WhenEmpty",
        "Balanced",
        "m7i.xlarge",
        "us-east-1a",
    ];
    let mut symbols: Vec<String> = words.map(str::to_owned).to_vec();
    symbols.extend((0..rows).map(|it| format!("node-{it}")));
    let column = |value: fn(u32) -> u32| (0..rows).map(value).collect::<Vec<u32>>();
    let floats = |value: fn(u32) -> f64| (0..rows).map(value).collect::<Vec<f64>>();
    let extra = |name: &str, values| ExtraColumn {
        name: name.to_owned(),
        values,
    };
    let nodes = native::NodeTable {
        name: column(|it| 8 + it),
        nodepool: column(|it| it % 3),
        instance_type: column(|_| 6),
        zone: column(|_| 7),
        capacity_type: (0..rows).map(|it| u8::from(it % 2 == 1)).collect(),
        price: floats(|it| f64::from(spread(it) % 1000) / 1e3),
        age: column(|it| it * 60),
        time_to_expiry: column(|it| if it % 2 == 0 { NEVER_SECONDS } else { 3600 }),
        pods: column(|it| it % 20),
        blocked_pods: column(|it| u32::from(it % 9 == 0)),
        disruption_cost: floats(|it| 1.0 + f64::from(it % 20)),
        cpu_milli: column(|_| 4000),
        cpu_requested_milli: column(|it| it * 37 % 4000),
        memory_mib: column(|_| 16384),
        memory_requested_mib: column(|it| it * 131 % 16384),
        extra: vec![
            extra(
                native::COLUMN_CONSOLIDATION_POLICY,
                ExtraValues::Syms(column(|it| 3 + it % 3)),
            ),
            extra(
                native::COLUMN_POOL_TOTAL_COST,
                ExtraValues::Floats(floats(|_| 10.0)),
            ),
            extra(
                native::COLUMN_POOL_TOTAL_DISRUPTION,
                ExtraValues::Floats(floats(|_| 50.0)),
            ),
        ],
        symbols,
    };
    let kinds = [
        native::MoveKind::Empty,
        native::MoveKind::Delete,
        native::MoveKind::Replace,
        native::MoveKind::Drift,
        native::MoveKind::Expire,
    ];
    let moves = (0_u32..rows.min(40))
        .zip(kinds.into_iter().cycle())
        .map(|(it, kind)| sample_move(kind, it, rows))
        .collect();
    (
        native::ConsolidationRound {
            context: context(),
            nodes,
        },
        moves,
    )
}

fn sample_move(kind: native::MoveKind, it: u32, rows: u32) -> native::Move {
    let new_nodes = u32::from(kind != native::MoveKind::Delete && kind != native::MoveKind::Empty);
    native::Move {
        kind,
        remove: vec![it % rows, (it + 1) % rows],
        cost_before: f64::from(1 + it % 5) / 2.0,
        cost_after: f64::from(new_nodes) * f64::from(it % 7) / 4.0,
        pods_moved: it % 20,
        singletons_moved: it % 3,
        max_priority: 0,
        new_nodes,
        replacement_type: if new_nodes > 0 { 6 } else { NO_SYMBOL },
        replacement_spot: it.is_multiple_of(2),
        recent_hour: it % 4,
        recent_day: it % 9,
        labels: Vec::new(),
    }
}

/// Three pools: without budgets, with a closed one, with several.
pub(crate) fn budget_round() -> native::BudgetRound {
    let budget = |resolved, active, reasons| native::DeclaredBudget {
        nodes: resolved_text(resolved),
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
    let pool = |name: &str, total, declared| native::BudgetPool {
        name: name.to_owned(),
        labels: vec![("team".to_owned(), "shop".to_owned())],
        total,
        not_ready: total / 10,
        deleting: 1,
        disrupting: vec![0, 1, 0],
        pending_pods: 7,
        declared,
        recent_hour: 2,
        recent_day: 9,
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

fn resolved_text(resolved: u32) -> String {
    resolved.to_string()
}

/// Numbers without a pattern, the same everywhere.
fn spread(it: u32) -> u32 {
    it.wrapping_mul(2_654_435_761).rotate_left(13)
}
