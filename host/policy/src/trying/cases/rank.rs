//! Cases for ranking policies: the round that rows make, and what is held against the answer.
//!
//! Costs are compared as people write them, with few digits.

mod rows;

use std::collections::BTreeMap;

use hooks::ranking::{
    ClaimRequirement, ClaimView, EVERY_CLAIM, ExtraColumn, ExtraValues, NO_SYMBOL, OfferingTable,
    PodsSummary, RankHook, RankRound, RankStage, Ranking, Symbols, UsageTable, WorkloadTable,
};

use super::{Case, CaseFaults, Uses};
use crate::host::PolicyHost;
use rows::ExtraValue;
pub(super) use rows::{ClaimRow, OfferingRow, UsageRow};

/// Costs closer than this are equal: people write few digits.
const TOLERANCE: f64 = 1e-6;

impl Case {
    pub(super) fn ask_rank(&self, host: &PolicyHost, faults: &mut CaseFaults) -> Uses {
        let ids: Vec<String> = self.offerings.iter().map(OfferingRow::id).collect();
        for (position, id) in ids.iter().enumerate() {
            if ids.get(..position).is_some_and(|seen| seen.contains(id)) {
                faults.add(format!("two offerings are called {id}: give them an `id`"));
            }
        }
        let answer = host.rank(&self.rank_round());
        if let Some(ranking) = answer.rankings.first() {
            self.compare_ranking(&ids, ranking, faults);
        }
        answer.uses
    }

    fn compare_ranking(&self, ids: &[String], ranking: &Ranking, faults: &mut CaseFaults) {
        let expect = &self.expect;
        let excluded: BTreeMap<String, String> = ranking
            .excluded
            .iter()
            .filter_map(|(row, reason)| {
                let id = ids.get(usize::try_from(*row).ok()?)?;
                Some((id.clone(), reason.clone()))
            })
            .collect();
        let mut ranked: Vec<(&String, f64)> = ids
            .iter()
            .zip(ranking.scores.iter().copied())
            .filter(|(id, _)| !excluded.contains_key(*id))
            .collect();
        ranked.sort_by(|(_, left), (_, right)| left.total_cmp(right));
        let order: Vec<String> = ranked.iter().map(|(id, _)| (*id).clone()).collect();
        if let Some(cheapest) = &expect.cheapest {
            let found = order.first().cloned().unwrap_or_default();
            faults.equal("cheapest", cheapest, &found);
        }
        if let Some(expected) = &expect.order {
            faults.equal("order", expected, &order);
        }
        for (id, cost) in &expect.costs {
            let found = ids.iter().position(|it| it == id);
            match found.and_then(|row| ranking.scores.get(row)) {
                Some(found) if (found - cost).abs() <= TOLERANCE => {}
                Some(found) => {
                    faults.add(format!("cost of {id}: expected {cost}, got {found}"));
                }
                None => faults.add(format!("no offering is called {id}")),
            }
        }
        if let Some(words) = &expect.note {
            let note = ranking.note.clone().unwrap_or_default();
            if !note.contains(words.as_str()) {
                faults.add(format!("another note: {note:?}"));
            }
        }
        if let Some(expected) = &expect.excluded {
            let names = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<Vec<_>>();
            faults.equal("excluded", &names(expected), &names(&excluded));
            for (id, words) in expected {
                if let Some(reason) = excluded.get(id).filter(|it| !it.contains(words.as_str())) {
                    faults.add(format!("{id} is excluded for another reason: {reason:?}"));
                }
            }
        }
    }

    fn rank_round(&self) -> RankRound {
        let context = self.context();
        let mut symbols = Symbols::default();
        let mut table = OfferingTable::default();
        for row in &self.offerings {
            push_row(&mut table, &mut symbols, row);
        }
        table.extra = extra_columns(&self.offerings, &mut symbols);
        let mut usage = UsageTable::default();
        for row in &self.usage {
            push_used(&mut usage, &mut symbols, row);
        }
        let claim = self.claim_view(&mut symbols);
        let of = match claim.stage {
            RankStage::Packing => EVERY_CLAIM,
            RankStage::Launch | RankStage::Appraisal => 0,
        };
        let mut workloads = WorkloadTable::default();
        for row in &self.workloads {
            row.push(of, &mut workloads, &mut symbols);
        }
        table.symbols = symbols.into_words();
        RankRound {
            now_seconds: context.now_seconds,
            cluster: context.cluster,
            decision_id: context.decision_id,
            seed: context.seed,
            table,
            usage,
            workloads,
            claims: vec![claim],
        }
    }

    fn claim_view(&self, symbols: &mut Symbols) -> ClaimView {
        let ClaimRow {
            nodepool,
            weight,
            stage,
            labels,
            nodepool_labels,
            free_addresses,
            requirements,
            pods,
        } = &self.claim;
        let labels = symbols.pairs(labels);
        let nodepool_labels = symbols.pairs(nodepool_labels);
        let free = free_addresses.iter();
        let free_addresses = free.map(|(zone, it)| (symbols.intern(zone), *it)).collect();
        let requirements = requirements
            .iter()
            .map(|it| ClaimRequirement {
                key: symbols.intern(&it.key),
                operator: it.operator,
                values: it.values.iter().map(|it| symbols.intern(it)).collect(),
                min_values: it.min_values,
            })
            .collect();
        ClaimView {
            nodepool: symbols.intern(nodepool.as_deref().unwrap_or("default")),
            weight: *weight,
            stage: *stage,
            candidates: Vec::new(),
            requirements,
            pods: PodsSummary {
                count: pods.count,
                cpu_milli: pods.cpu_milli,
                memory_mib: pods.memory_mib,
                gpus: pods.gpus,
                max_priority: pods.max_priority,
                do_not_disrupt: pods.do_not_disrupt,
                replicated: pods.replicated,
                oldest_wait_seconds: pods.oldest_wait,
            },
            labels,
            nodepool_labels,
            free_addresses,
        }
    }
}

fn push_row(table: &mut OfferingTable, symbols: &mut Symbols, row: &OfferingRow) {
    let family = row.instance_type.split('.').next().unwrap_or_default();
    table.instance_type.push(symbols.intern(&row.instance_type));
    table.family.push(symbols.intern(family));
    table.generation.push(row.generation);
    let maker = symbols.intern(&row.cpu_manufacturer);
    table.cpu_manufacturer.push(maker);
    table.zone.push(symbols.intern(&row.zone));
    table.arch.push(symbols.intern(&row.arch));
    table.capacity_type.push(row.capacity_type.code());
    table.price.push(row.price);
    table.on_demand_price.push(row.on_demand_price());
    table.cpu_milli.push(row.cpu_milli);
    table.memory_mib.push(row.memory_mib);
    table.gpus.push(row.gpus);
    table.max_pods.push(row.max_pods);
    table.reservation_slots.push(row.reservation_slots);
    table.ice_count.push(row.ice_count);
    table.ice_age.push(row.ice_age);
    table.interruption_rate.push(row.interruption_rate);
    table.prior.push(row.prior.unwrap_or(row.price));
}

fn push_used(table: &mut UsageTable, symbols: &mut Symbols, row: &UsageRow) {
    let family = row.instance_type.split('.').next().unwrap_or_default();
    table.nodepool.push(symbols.intern(&row.nodepool));
    table.instance_type.push(symbols.intern(&row.instance_type));
    table.family.push(symbols.intern(family));
    table.zone.push(symbols.intern(&row.zone));
    table.capacity_type.push(row.capacity_type.code());
    table.nodes.push(row.nodes);
    table.launching.push(row.launching);
    table.price.push(row.price);
}

/// A column for each name that a row gives: numbers, or words where one of them is a word.
fn extra_columns(rows: &[OfferingRow], symbols: &mut Symbols) -> Vec<ExtraColumn> {
    let mut names: Vec<&String> = rows.iter().flat_map(|row| row.extra.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut columns = Vec::new();
    for name in names {
        let values = rows.iter().map(|row| row.extra.get(name));
        let is_words = values
            .clone()
            .any(|value| matches!(value, Some(ExtraValue::Word(_))));
        let values = if is_words {
            let words = values.map(|value| match value {
                Some(ExtraValue::Word(word)) => symbols.intern(word),
                Some(ExtraValue::Number(number)) => symbols.intern(&number.to_string()),
                None => NO_SYMBOL,
            });
            ExtraValues::Syms(words.collect())
        } else {
            let numbers = values.map(|value| match value {
                Some(ExtraValue::Number(number)) => *number,
                Some(ExtraValue::Word(_)) | None => 0.0,
            });
            ExtraValues::Floats(numbers.collect())
        };
        columns.push(ExtraColumn {
            name: name.clone(),
            values,
        });
    }
    columns
}
