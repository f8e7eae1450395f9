//! Rows of recorded questions as cases write them. What has its usual value is left out, as people would.

use hooks::disruption::{
    Allowance, BudgetPool, BudgetReason, BudgetRound, ConsolidationRound, DeclaredBudget, Move,
    NodeTable, Verdict,
};
use hooks::ranking::{ClaimView, ExtraValues, OfferingTable, RankRound, Ranking, UsageTable};
use serde_json::{Map, Value, json};

use super::super::NEVER;
use super::Draft;
use crate::columns::{at, word};
use crate::hooks::rows;

/// Names and numbers of a row.
type CaseRow = Map<String, Value>;

/// A claim, with its best offerings and some that are excluded.
pub(super) fn rank(
    round: &RankRound,
    prior: &[f64],
    claim: &ClaimView,
    ranking: &Ranking,
    rows_max: usize,
) -> Draft {
    let table = &round.table;
    let all: Vec<(u32, f64, Option<&String>)> = (0_u32..)
        .zip(rows(claim, table.price.len()).zip(&ranking.scores))
        .map(|(position, (row, score))| {
            let excluded = ranking.excluded.iter().find(|(out, _)| *out == position);
            (row, *score, excluded.map(|(_, reason)| reason))
        })
        .collect();
    let (mut out, mut ranked): (Vec<_>, Vec<_>) = all.iter().partition(|(.., out)| out.is_some());
    ranked.sort_by(|(_, left, _), (_, right, _)| left.total_cmp(right));
    let left_out = [
        (ranked.len().saturating_sub(rows_max), "offerings"),
        (out.len().saturating_sub(rows_max), "excluded offerings"),
    ];
    ranked.truncate(rows_max);
    out.truncate(rows_max);
    let kept: Vec<&(u32, f64, Option<&String>)> = ranked.iter().chain(&out).collect();
    let rows_kept: Vec<u32> = kept.iter().map(|(row, ..)| *row).collect();
    let ids = ids(table, &rows_kept);
    let offerings = rows_kept.iter().zip(&ids).map(|(row, id)| {
        let mut offering = offering(table, *row);
        offering.insert("id".to_owned(), json!(id));
        let before = at(prior, *row);
        put(
            &mut offering,
            "prior",
            json!(before),
            &json!(at(&table.price, *row)),
        );
        Value::Object(offering)
    });
    let offerings: Vec<Value> = offerings.collect();
    let scores = kept
        .iter()
        .zip(&ids)
        .map(|((_, score, _), id)| (id.clone(), json!(score)));
    let excluded = kept.iter().zip(&ids);
    let excluded: CaseRow = excluded
        .filter_map(|((.., out), id)| Some((id.clone(), json!(out.as_ref()?))))
        .collect();
    let mut expect = CaseRow::new();
    if let Some(first) = ids.first().filter(|_| !ranked.is_empty()) {
        expect.insert("cheapest".to_owned(), json!(first));
    }
    expect.insert("costs".to_owned(), Value::Object(scores.collect()));
    expect.insert("excluded".to_owned(), Value::Object(excluded));
    if let Some(note) = &ranking.note {
        expect.insert("note".to_owned(), json!(note));
    }
    let pool = word(&table.symbols, claim.nodepool);
    let name = format!("{}, NodePool {pool}, {:?}", round.decision_id, claim.stage);
    draft(
        &left_out,
        [
            ("name", json!(name)),
            ("offerings", json!(offerings)),
            ("usage", json!(usage(&round.usage, &table.symbols))),
            ("claim", claim_row(claim, &table.symbols)),
            ("expect", Value::Object(expect)),
        ],
    )
}

/// Names by which a case tells offerings apart.
fn ids(table: &OfferingTable, rows: &[u32]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for row in rows {
        let name = |column: &[u32]| word(&table.symbols, at(column, *row));
        let kind = capacity_type(at(&table.capacity_type, *row));
        let id = format!(
            "{} {} {kind}",
            name(&table.instance_type),
            name(&table.zone)
        );
        let id = if ids.contains(&id) {
            format!("{id} {row}")
        } else {
            id
        };
        ids.push(id);
    }
    ids
}

fn offering(table: &OfferingTable, row: u32) -> CaseRow {
    let mut it = CaseRow::new();
    let name = |column: &[u32]| json!(word(&table.symbols, at(column, row)));
    let number = |column: &[u32]| json!(at(column, row));
    let kind = at(&table.capacity_type, row);
    let price = at(&table.price, row);
    let usual = if kind == 0 { price } else { 0.0 };
    let on_demand = at(&table.on_demand_price, row);
    for (key, value) in [
        ("instanceType", name(&table.instance_type)),
        ("generation", number(&table.generation)),
        ("cpuManufacturer", name(&table.cpu_manufacturer)),
        ("zone", name(&table.zone)),
        ("arch", name(&table.arch)),
        ("capacityType", json!(capacity_type(kind))),
        ("price", json!(price)),
        ("cpuMilli", number(&table.cpu_milli)),
        ("memoryMib", number(&table.memory_mib)),
        ("maxPods", number(&table.max_pods)),
    ] {
        it.insert(key.to_owned(), value);
    }
    put(&mut it, "onDemandPrice", json!(on_demand), &json!(usual));
    put(&mut it, "gpus", number(&table.gpus), &json!(0));
    put(
        &mut it,
        "reservationSlots",
        number(&table.reservation_slots),
        &json!(0),
    );
    put(&mut it, "iceCount", number(&table.ice_count), &json!(0));
    put(&mut it, "iceAge", number(&table.ice_age), &json!(NEVER));
    let rate = json!(at(&table.interruption_rate, row));
    put(&mut it, "interruptionRate", rate, &json!(-1.0));
    let extra: CaseRow = table
        .extra
        .iter()
        .map(|column| {
            let value = match &column.values {
                ExtraValues::Floats(values) => json!(at(values, row)),
                ExtraValues::Ints(values) => json!(f64::from(at(values, row))),
                ExtraValues::Bytes(values) => json!(f64::from(at(values, row))),
                ExtraValues::Syms(values) => json!(word(&table.symbols, at(values, row))),
            };
            (column.name.clone(), value)
        })
        .collect();
    put(&mut it, "extra", Value::Object(extra), &json!({}));
    it
}

fn usage(table: &UsageTable, symbols: &[String]) -> Vec<Value> {
    let rows = 0..u32::try_from(table.nodes.len()).unwrap_or(u32::MAX);
    rows.map(|row| {
        json!({
            "nodepool": word(symbols, at(&table.nodepool, row)),
            "instanceType": word(symbols, at(&table.instance_type, row)),
            "zone": word(symbols, at(&table.zone, row)),
            "capacityType": capacity_type(at(&table.capacity_type, row)),
            "nodes": at(&table.nodes, row),
            "launching": at(&table.launching, row),
            "price": at(&table.price, row),
        })
    })
    .collect()
}

fn claim_row(claim: &ClaimView, symbols: &[String]) -> Value {
    let free = claim.free_addresses.iter();
    let free: CaseRow = free
        .map(|(zone, it)| (word(symbols, *zone).to_owned(), json!(it)))
        .collect();
    let requirements = claim.requirements.iter().map(|it| {
        let values: Vec<&str> = it.values.iter().map(|it| word(symbols, *it)).collect();
        json!({
            "key": word(symbols, it.key),
            "operator": it.operator,
            "values": values,
            "minValues": it.min_values,
        })
    });
    let requirements: Vec<Value> = requirements.collect();
    let pods = &claim.pods;
    let mut row = CaseRow::new();
    row.insert("nodepool".to_owned(), json!(word(symbols, claim.nodepool)));
    row.insert("stage".to_owned(), json!(claim.stage));
    put(&mut row, "weight", json!(claim.weight), &json!(0));
    put(
        &mut row,
        "labels",
        pairs(&claim.labels, symbols),
        &json!({}),
    );
    put(
        &mut row,
        "nodepoolLabels",
        pairs(&claim.nodepool_labels, symbols),
        &json!({}),
    );
    put(&mut row, "freeAddresses", Value::Object(free), &json!({}));
    put(&mut row, "requirements", json!(requirements), &json!([]));
    let pods = json!({
        "count": pods.count,
        "cpuMilli": pods.cpu_milli,
        "memoryMib": pods.memory_mib,
        "gpus": pods.gpus,
        "maxPriority": pods.max_priority,
        "doNotDisrupt": pods.do_not_disrupt,
        "replicated": pods.replicated,
        "oldestWait": pods.oldest_wait_seconds,
    });
    row.insert("pods".to_owned(), pods);
    Value::Object(row)
}

/// The first moves, and the nodes that go with them.
pub(super) fn judge(
    round: &ConsolidationRound,
    moves: &[Move],
    verdicts: &[Verdict],
    rows_max: usize,
) -> Draft {
    let nodes = &round.nodes;
    let kept = moves.len().min(rows_max);
    let mut going: Vec<u32> = match rows_max {
        usize::MAX => (0..u32::try_from(nodes.len()).unwrap_or(u32::MAX)).collect(),
        _ => moves
            .iter()
            .take(kept)
            .flat_map(|it| it.remove.clone())
            .collect(),
    };
    going.sort_unstable();
    going.dedup();
    let pools = round.pools.iter().map(|pool| {
        json!({
            "name": nodes.symbol(pool.name),
            "labels": pairs(&pool.labels, &nodes.symbols),
            "nodes": pool.nodes,
            "price": pool.price,
            "effectivePrice": pool.effective_price,
            "disruptionCost": pool.disruption_cost,
            "recentHour": pool.recent_hour,
            "recentDay": pool.recent_day,
        })
    });
    let pools: Vec<Value> = pools.collect();
    let proposed = moves.iter().take(kept).map(|it| move_row(nodes, it));
    let proposed: Vec<Value> = proposed.collect();
    let verdicts = verdicts.iter().take(kept);
    let verdicts = verdicts.map(|it| json!({"decision": it.decision, "reason": it.reason}));
    let verdicts: Vec<Value> = verdicts.collect();
    let rows: Vec<Value> = going.iter().map(|row| node_row(nodes, *row)).collect();
    let left_out = [
        (moves.len() - kept, "moves"),
        (nodes.len().saturating_sub(going.len()), "nodes"),
    ];
    draft(
        &left_out,
        [
            (
                "name",
                json!(format!("{}, moves", round.context.decision_id)),
            ),
            ("nodes", json!(rows)),
            ("nodePools", json!(pools)),
            ("moves", json!(proposed)),
            ("expect", json!({"verdicts": verdicts})),
        ],
    )
}

fn node_row(nodes: &NodeTable, row: u32) -> Value {
    let name = |column: &[u32]| json!(nodes.symbol(at(column, row)));
    let number = |column: &[u32]| json!(at(column, row));
    let no_labels = Vec::new();
    let index = usize::try_from(row).unwrap_or(usize::MAX);
    let labels = nodes.labels.get(index).unwrap_or(&no_labels);
    json!({
        "name": name(&nodes.name),
        "nodepool": name(&nodes.nodepool),
        "instanceType": name(&nodes.instance_type),
        "zone": name(&nodes.zone),
        "capacityType": capacity_type(at(&nodes.capacity_type, row)),
        "price": at(&nodes.price, row),
        "effectivePrice": at(&nodes.effective_price, row),
        "consolidationPolicy": name(&nodes.consolidation_policy),
        "age": number(&nodes.age),
        "timeToExpiry": number(&nodes.time_to_expiry),
        "lastPodEvent": number(&nodes.last_pod_event),
        "driftReason": name(&nodes.drift_reason),
        "pods": number(&nodes.pods),
        "blockedPods": number(&nodes.blocked_pods),
        "disruptionCost": at(&nodes.disruption_cost, row),
        "cpuMilli": number(&nodes.cpu_milli),
        "cpuRequestedMilli": number(&nodes.cpu_requested_milli),
        "memoryMib": number(&nodes.memory_mib),
        "memoryRequestedMib": number(&nodes.memory_requested_mib),
        "gpus": number(&nodes.gpus),
        "gpusRequested": number(&nodes.gpus_requested),
        "labels": pairs(labels, &nodes.symbols),
    })
}

fn move_row(nodes: &NodeTable, it: &Move) -> Value {
    let remove = it
        .remove
        .iter()
        .map(|row| nodes.symbol(at(&nodes.name, *row)));
    let remove: Vec<&str> = remove.collect();
    let mut row = json!({
        "kind": it.kind,
        "remove": remove,
        "costBefore": it.cost_before,
        "costAfter": it.cost_after,
        "effectiveBefore": it.effective_before,
        "effectiveAfter": it.effective_after,
        "podsMoved": it.pods_moved,
        "singletonsMoved": it.singletons_moved,
        "maxPriority": it.max_priority,
        "newNodes": it.new_nodes,
        "replacementType": nodes.symbol(it.replacement_type),
        "replacementZone": nodes.symbol(it.replacement_zone),
        "labels": pairs(&it.labels, &nodes.symbols),
    });
    if it.replacement_capacity_type <= 2
        && let Some(fields) = row.as_object_mut()
    {
        let kind = capacity_type(it.replacement_capacity_type);
        fields.insert("replacementCapacityType".to_owned(), json!(kind));
    }
    row
}

/// The first NodePools, with what the policy said of them.
pub(super) fn allow(round: &BudgetRound, items: &[Allowance], rows_max: usize) -> Draft {
    let mut allowed = CaseRow::new();
    for (number, pool) in (0_u32..).zip(&round.pools).take(rows_max) {
        let of_pool = items.iter().filter(|it| it.pool == number);
        let reasons = of_pool.map(|it| (it.reason.as_str().to_owned(), json!(it.allowed)));
        let reasons: CaseRow = reasons.collect();
        if !reasons.is_empty() {
            allowed.insert(pool.name.clone(), Value::Object(reasons));
        }
    }
    let pools: Vec<Value> = round.pools.iter().take(rows_max).map(pool_row).collect();
    draft(
        &[(round.pools.len() - pools.len(), "NodePools")],
        [
            (
                "name",
                json!(format!("{}, budgets", round.context.decision_id)),
            ),
            ("pools", json!(pools)),
            ("expect", json!({"allowed": allowed})),
        ],
    )
}

fn pool_row(pool: &BudgetPool) -> Value {
    let labels: CaseRow = pool
        .labels
        .iter()
        .map(|(key, it)| (key.clone(), json!(it)))
        .collect();
    let activity = BudgetReason::ALL.into_iter().zip(&pool.activity);
    let activity: CaseRow = activity
        .map(|(reason, it)| {
            let counts = json!({
                "disrupting": it.disrupting,
                "recentHour": it.recent_hour,
                "recentDay": it.recent_day,
                "failedDay": it.failed_day,
            });
            (reason.as_str().to_owned(), counts)
        })
        .collect();
    let budgets: Vec<Value> = pool.declared.iter().map(budget_row).collect();
    json!({
        "name": pool.name,
        "labels": labels,
        "total": pool.total,
        "notReady": pool.not_ready,
        "deleting": pool.deleting,
        "drifted": pool.drifted,
        "driftTarget": pool.drift_target,
        "renewed": pool.renewed,
        "targetAge": pool.target_age_seconds,
        "price": pool.price,
        "activity": activity,
        "pendingPods": pool.pending_pods,
        "budgets": budgets,
    })
}

fn budget_row(budget: &DeclaredBudget) -> Value {
    let all = BudgetReason::ALL.into_iter();
    let reasons = all.filter(|it| budget.reasons.contains(*it));
    let reasons: Vec<&str> = reasons.map(BudgetReason::as_str).collect();
    json!({
        "nodes": budget.nodes,
        "active": budget.active,
        "nextChange": budget.next_change_seconds,
        "reasons": reasons,
    })
}

fn draft<const N: usize>(left_out: &[(usize, &str)], fields: [(&str, Value); N]) -> Draft {
    let comments = left_out.iter().filter(|(count, _)| *count > 0);
    let fields = fields.into_iter().filter(|(_, value)| *value != json!([]));
    Draft {
        comments: comments
            .map(|(count, what)| format!("{count} further {what} are left out"))
            .collect(),
        fields: fields.map(|(key, value)| (key.to_owned(), value)).collect(),
    }
}

/// What is not as usual.
fn put(row: &mut CaseRow, key: &str, value: Value, usual: &Value) {
    if value != *usual {
        row.insert(key.to_owned(), value);
    }
}

fn pairs(pairs: &[(u32, u32)], symbols: &[String]) -> Value {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(key, value)| {
        let value = json!(word(symbols, *value));
        (word(symbols, *key).to_owned(), value)
    });
    Value::Object(pairs.collect())
}

fn capacity_type(code: u8) -> &'static str {
    match code {
        1 => "spot",
        2 => "reserved",
        _ => "on-demand",
    }
}
