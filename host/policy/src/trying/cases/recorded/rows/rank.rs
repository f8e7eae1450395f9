//! Questions of ranking as cases write them: offerings, what runs already, the claim.

use hooks::columns::{at, saturated, word};
use hooks::ranking::{ClaimView, ExtraValues, OfferingTable, RankRound, Ranking, UsageTable};
use serde_json::{Value, json};

use super::super::super::NEVER;
use super::super::Draft;
use super::draft::{CaseRow, capacity_type, draft, pairs, put};
use crate::hooks::rows;

/// A claim, with its best offerings and some that are excluded.
pub(crate) fn rank(
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
    let mut row_of_case = CaseRow::new();
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
        row_of_case.insert(key.to_owned(), value);
    }
    put(
        &mut row_of_case,
        "onDemandPrice",
        json!(on_demand),
        &json!(usual),
    );
    put(&mut row_of_case, "gpus", number(&table.gpus), &json!(0));
    put(
        &mut row_of_case,
        "reservationSlots",
        number(&table.reservation_slots),
        &json!(0),
    );
    put(
        &mut row_of_case,
        "iceCount",
        number(&table.ice_count),
        &json!(0),
    );
    put(
        &mut row_of_case,
        "iceAge",
        number(&table.ice_age),
        &json!(NEVER),
    );
    let rate = json!(at(&table.interruption_rate, row));
    put(&mut row_of_case, "interruptionRate", rate, &json!(-1.0));
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
    put(&mut row_of_case, "extra", Value::Object(extra), &json!({}));
    row_of_case
}

fn usage(table: &UsageTable, symbols: &[String]) -> Vec<Value> {
    let rows = 0..saturated(table.nodes.len());
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
