//! Moves of consolidation as cases write them, with the nodes that would go.

use apis::CapacityType;
use hooks::columns::{at, index, saturated};
use hooks::disruption::{ConsolidationRound, Move, NodeTable, Verdict};
use serde_json::{Value, json};

use super::super::Draft;
use super::draft::{capacity_type, draft, pairs};

/// The first moves, and the nodes that go with them.
pub(crate) fn judge(
    round: &ConsolidationRound,
    moves: &[Move],
    verdicts: &[Verdict],
    rows_max: usize,
) -> Draft {
    let nodes = &round.nodes;
    let kept = moves.len().min(rows_max);
    let mut going: Vec<u32> = match rows_max {
        usize::MAX => (0..saturated(nodes.len())).collect(),
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
    let labels = nodes.labels.get(index(row)).unwrap_or(&no_labels);
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

fn move_row(nodes: &NodeTable, proposed: &Move) -> Value {
    let remove = proposed
        .remove
        .iter()
        .map(|row| nodes.symbol(at(&nodes.name, *row)));
    let remove: Vec<&str> = remove.collect();
    let mut row = json!({
        "kind": proposed.kind,
        "remove": remove,
        "costBefore": proposed.cost_before,
        "costAfter": proposed.cost_after,
        "effectiveBefore": proposed.effective_before,
        "effectiveAfter": proposed.effective_after,
        "podsMoved": proposed.pods_moved,
        "singletonsMoved": proposed.singletons_moved,
        "maxPriority": proposed.max_priority,
        "newNodes": proposed.new_nodes,
        "replacementType": nodes.symbol(proposed.replacement_type),
        "replacementZone": nodes.symbol(proposed.replacement_zone),
        "labels": pairs(&proposed.labels, &nodes.symbols),
    });
    if let Some(comes) = CapacityType::of_code(proposed.replacement_capacity_type)
        && let Some(fields) = row.as_object_mut()
    {
        fields.insert("replacementCapacityType".to_owned(), json!(comes.as_str()));
    }
    row
}
