//! Cases for consolidation policies: the round that rows make, and what is held against order and verdicts.

mod rows;

use apis::CapacityType;
use hooks::columns::saturated;
use hooks::disruption::{
    ConsolidationHook, ConsolidationRound, Move, NO_CAPACITY_TYPE, NodeTable, PoolView, Verdict,
    WorkloadTable,
};
use hooks::ranking::Symbols;

use super::{Case, CaseFaults, Uses};
use crate::host::PolicyHost;
pub(super) use rows::{Expected, MoveRow, NodePoolRow, NodeRow};

impl Case {
    pub(super) fn ask_consolidation(&self, host: &PolicyHost, faults: &mut CaseFaults) -> Uses {
        let mut symbols = Symbols::default();
        let mut nodes = node_table(&self.nodes, &mut symbols);
        let mut moves = Vec::new();
        for row in &self.moves {
            moves.push(self.proposed(row, &mut symbols, faults));
        }
        let pools = self.pool_views(&mut symbols);
        let workloads = self.workloads_of_nodes(&mut symbols, faults);
        nodes.symbols = symbols.into_words();
        let round = ConsolidationRound {
            context: self.context(),
            nodes,
            pools,
            workloads,
        };
        let expect = &self.expect;
        let mut uses = Vec::new();
        if expect.order.is_some() || expect.skipped.is_some() || moves.is_empty() {
            let answer = host.order(&round);
            self.compare_order(&answer.keys, faults);
            uses = answer.uses;
        }
        if !moves.is_empty() {
            let answer = host.judge(&round, &moves);
            self.compare_verdicts(&answer.verdicts, faults);
            // A failure of the first call must not be hidden by the success of the second.
            uses.retain(|it| !it.outcome.is_ok());
            uses.extend(answer.uses);
        }
        uses
    }

    fn compare_order(&self, keys: &[f64], faults: &mut CaseFaults) {
        let mut ordered: Vec<(&NodeRow, f64)> =
            self.nodes.iter().zip(keys.iter().copied()).collect();
        ordered.sort_by(|(_, left), (_, right)| left.total_cmp(right));
        let (skipped, tried): (Vec<_>, Vec<_>) =
            ordered.into_iter().partition(|(_, key)| *key < 0.0);
        let names = |of: Vec<(&NodeRow, f64)>| -> Vec<String> {
            of.into_iter().map(|(row, _)| row.name.clone()).collect()
        };
        if let Some(expected) = &self.expect.order {
            faults.equal("order", expected, &names(tried));
        }
        if let Some(expected) = &self.expect.skipped {
            let sorted = |mut names: Vec<String>| {
                names.sort_unstable();
                names
            };
            faults.equal(
                "skipped",
                &sorted(expected.clone()),
                &sorted(names(skipped)),
            );
        }
    }

    fn compare_verdicts(&self, verdicts: &[Verdict], faults: &mut CaseFaults) {
        let Some(expected) = &self.expect.verdicts else {
            return;
        };
        faults.equal("number of verdicts", &expected.len(), &verdicts.len());
        for (number, (expected, found)) in expected.iter().zip(verdicts).enumerate() {
            if expected.decision() != found.decision {
                faults.add(format!(
                    "move {}: expected {:?}, got {:?}: {}",
                    number + 1,
                    expected.decision(),
                    found.decision,
                    found.reason
                ));
            } else if !found.reason.contains(expected.reason()) {
                faults.add(format!(
                    "move {}: another reason: {:?}",
                    number + 1,
                    found.reason
                ));
            }
        }
    }

    fn proposed(&self, row: &MoveRow, symbols: &mut Symbols, faults: &mut CaseFaults) -> Move {
        let mut going: Vec<&NodeRow> = Vec::new();
        let mut remove = Vec::new();
        for name in &row.remove {
            let found = (0_u32..).zip(&self.nodes).find(|(_, it)| it.name == *name);
            match found {
                Some((index, node)) => {
                    remove.push(index);
                    going.push(node);
                }
                None => faults.add(format!("no node is called {name}")),
            }
        }
        let is_replaced = row.cost_after > 0.0;
        Move {
            kind: row.kind,
            remove,
            cost_before: row
                .cost_before
                .unwrap_or_else(|| going.iter().map(|it| it.price).sum()),
            cost_after: row.cost_after,
            effective_before: row
                .effective_before
                .unwrap_or_else(|| going.iter().map(|it| it.effective_price()).sum()),
            effective_after: row.effective_after.unwrap_or(row.cost_after),
            pods_moved: row
                .pods_moved
                .unwrap_or_else(|| going.iter().map(|it| it.pods).sum()),
            singletons_moved: row.singletons_moved,
            max_priority: row.max_priority,
            new_nodes: row.new_nodes.unwrap_or_else(|| u32::from(is_replaced)),
            replacement_type: symbols.intern(&row.replacement_type),
            replacement_zone: symbols.intern(&row.replacement_zone),
            replacement_capacity_type: row
                .replacement_capacity_type
                .map_or(NO_CAPACITY_TYPE, CapacityType::code),
            labels: symbols.pairs(&row.labels),
        }
    }

    /// The NodePools of the nodes.
    fn pool_views(&self, symbols: &mut Symbols) -> Vec<PoolView> {
        let mut names: Vec<&str> = self.nodes.iter().map(|it| it.nodepool.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let none = NodePoolRow::default();
        let view = |name| {
            let own = || self.nodes.iter().filter(move |it| it.nodepool == name);
            let row = self.node_pools.iter().find(|it| it.name == name);
            let row = row.unwrap_or(&none);
            let count = || saturated(own().count());
            let sum = |of: fn(&NodeRow) -> f64| own().map(of).sum();
            PoolView {
                name: symbols.intern(name),
                labels: symbols.pairs(&row.labels),
                nodes: row.nodes.unwrap_or_else(count),
                price: row.price.unwrap_or_else(|| sum(|it| it.price)),
                effective_price: row
                    .effective_price
                    .unwrap_or_else(|| sum(NodeRow::effective_price)),
                disruption_cost: row
                    .disruption_cost
                    .unwrap_or_else(|| sum(|it| it.disruption_cost)),
                recent_hour: row.recent_hour,
                recent_day: row.recent_day,
            }
        };
        names.into_iter().map(view).collect()
    }

    fn workloads_of_nodes(&self, symbols: &mut Symbols, faults: &mut CaseFaults) -> WorkloadTable {
        let mut table = WorkloadTable::default();
        for row in &self.workloads {
            let name = row.node();
            match (0_u32..).zip(&self.nodes).find(|(_, it)| it.name() == name) {
                Some((node, _)) => row.push(node, &mut table, symbols),
                None => faults.add(format!("workloads: no node is called {name:?}")),
            }
        }
        table
    }
}

fn node_table(rows: &[NodeRow], symbols: &mut Symbols) -> NodeTable {
    let mut table = NodeTable::default();
    for row in rows {
        table.name.push(symbols.intern(&row.name));
        table.nodepool.push(symbols.intern(&row.nodepool));
        table.instance_type.push(symbols.intern(&row.instance_type));
        table.zone.push(symbols.intern(&row.zone));
        table.capacity_type.push(row.capacity_type.code());
        table.price.push(row.price);
        table.effective_price.push(row.effective_price());
        let policy = symbols.intern(&row.consolidation_policy);
        table.consolidation_policy.push(policy);
        table.age.push(row.age);
        table.time_to_expiry.push(row.time_to_expiry);
        table.last_pod_event.push(row.last_pod_event);
        table.drift_reason.push(symbols.intern(&row.drift_reason));
        table.pods.push(row.pods);
        table.blocked_pods.push(row.blocked_pods);
        table.disruption_cost.push(row.disruption_cost);
        table.cpu_milli.push(row.cpu_milli);
        table.cpu_requested_milli.push(row.cpu_requested_milli);
        table.memory_mib.push(row.memory_mib);
        table.memory_requested_mib.push(row.memory_requested_mib);
        table.gpus.push(row.gpus);
        table.gpus_requested.push(row.gpus_requested);
        table.labels.push(symbols.pairs(&row.labels));
    }
    table
}
