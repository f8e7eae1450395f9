//! Cases for consolidation policies.

use std::collections::BTreeMap;

use disruption::hooks::{
    COLUMN_CONSOLIDATION_POLICY, COLUMN_POOL_TOTAL_COST, COLUMN_POOL_TOTAL_DISRUPTION,
    ConsolidationHook, ConsolidationRound, ExtraColumn, ExtraValues, Move, MoveKind, NodeTable,
    Verdict, VerdictDecision,
};
use scheduling::ranking::Symbols;
use serde::Deserialize;

use super::{CapacityTypeName, Case, Faults, NEVER, Uses};
use crate::host::PolicyHost;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct NodeRow {
    name: String,
    nodepool: String,
    instance_type: String,
    zone: String,
    capacity_type: CapacityTypeName,
    price: f64,
    age: u32,
    time_to_expiry: u32,
    pods: u32,
    blocked_pods: u32,
    disruption_cost: f64,
    cpu_milli: u32,
    cpu_requested_milli: u32,
    memory_mib: u32,
    memory_requested_mib: u32,
    /// Of the NodePool.
    consolidation_policy: String,
}

impl Default for NodeRow {
    fn default() -> Self {
        Self {
            name: "node".to_owned(),
            nodepool: "default".to_owned(),
            instance_type: "m7i.xlarge".to_owned(),
            zone: "us-east-1a".to_owned(),
            capacity_type: CapacityTypeName::OnDemand,
            price: 0.2,
            age: 3600,
            time_to_expiry: NEVER,
            pods: 5,
            blocked_pods: 0,
            disruption_cost: 5.0,
            cpu_milli: 4000,
            cpu_requested_milli: 1000,
            memory_mib: 16_384,
            memory_requested_mib: 4096,
            consolidation_policy: "WhenEmptyOrUnderutilized".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MoveRow {
    kind: MoveKind,
    /// Names of the nodes that go.
    remove: Vec<String>,
    /// Their prices when left out.
    #[serde(default)]
    cost_before: Option<f64>,
    #[serde(default)]
    cost_after: f64,
    /// The pods of the nodes when left out.
    #[serde(default)]
    pods_moved: Option<u32>,
    #[serde(default)]
    singletons_moved: u32,
    #[serde(default)]
    max_priority: i32,
    #[serde(default)]
    new_nodes: Option<u32>,
    #[serde(default)]
    replacement_type: String,
    #[serde(default)]
    replacement_spot: bool,
    #[serde(default)]
    recent_hour: u32,
    #[serde(default)]
    recent_day: u32,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// A verdict, or a verdict with words of its reason.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Expected {
    Decision(VerdictDecision),
    Whole {
        decision: VerdictDecision,
        #[serde(default)]
        reason: String,
    },
}

impl Expected {
    fn decision(&self) -> VerdictDecision {
        match self {
            Self::Decision(decision) | Self::Whole { decision, .. } => *decision,
        }
    }

    fn reason(&self) -> &str {
        match self {
            Self::Decision(_) => "",
            Self::Whole { reason, .. } => reason,
        }
    }
}

impl Case {
    pub(super) fn ask_consolidation(&self, host: &PolicyHost, faults: &mut Faults) -> Uses {
        let mut symbols = Symbols::default();
        let mut nodes = node_table(&self.nodes, &mut symbols);
        let mut moves = Vec::new();
        for row in &self.moves {
            moves.push(self.proposed(row, &mut symbols, faults));
        }
        nodes.symbols = symbols.into_words();
        let round = ConsolidationRound {
            context: self.context(),
            nodes,
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
            uses.retain(|it| it.outcome != "ok");
            uses.extend(answer.uses);
        }
        uses
    }

    fn compare_order(&self, keys: &[f64], faults: &mut Faults) {
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

    fn compare_verdicts(&self, verdicts: &[Verdict], faults: &mut Faults) {
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

    fn proposed(&self, row: &MoveRow, symbols: &mut Symbols, faults: &mut Faults) -> Move {
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
            pods_moved: row
                .pods_moved
                .unwrap_or_else(|| going.iter().map(|it| it.pods).sum()),
            singletons_moved: row.singletons_moved,
            max_priority: row.max_priority,
            new_nodes: row.new_nodes.unwrap_or_else(|| u32::from(is_replaced)),
            replacement_type: symbols.intern(&row.replacement_type),
            replacement_spot: row.replacement_spot,
            recent_hour: row.recent_hour,
            recent_day: row.recent_day,
            labels: row
                .labels
                .iter()
                .map(|(key, value)| (symbols.intern(key), symbols.intern(value)))
                .collect(),
        }
    }
}

fn node_table(rows: &[NodeRow], symbols: &mut Symbols) -> NodeTable {
    let mut table = NodeTable::default();
    let mut policies = Vec::new();
    let (mut costs, mut disruption) = (Vec::new(), Vec::new());
    for row in rows {
        table.name.push(symbols.intern(&row.name));
        table.nodepool.push(symbols.intern(&row.nodepool));
        table.instance_type.push(symbols.intern(&row.instance_type));
        table.zone.push(symbols.intern(&row.zone));
        table.capacity_type.push(row.capacity_type.code());
        table.price.push(row.price);
        table.age.push(row.age);
        table.time_to_expiry.push(row.time_to_expiry);
        table.pods.push(row.pods);
        table.blocked_pods.push(row.blocked_pods);
        table.disruption_cost.push(row.disruption_cost);
        table.cpu_milli.push(row.cpu_milli);
        table.cpu_requested_milli.push(row.cpu_requested_milli);
        table.memory_mib.push(row.memory_mib);
        table.memory_requested_mib.push(row.memory_requested_mib);
        policies.push(symbols.intern(&row.consolidation_policy));
        let siblings = || rows.iter().filter(|it| it.nodepool == row.nodepool);
        costs.push(siblings().map(|it| it.price).sum());
        disruption.push(siblings().map(|it| it.disruption_cost).sum());
    }
    let column = |name: &str, values| ExtraColumn {
        name: name.to_owned(),
        values,
    };
    table.extra = vec![
        column(COLUMN_CONSOLIDATION_POLICY, ExtraValues::Syms(policies)),
        column(COLUMN_POOL_TOTAL_COST, ExtraValues::Floats(costs)),
        column(
            COLUMN_POOL_TOTAL_DISRUPTION,
            ExtraValues::Floats(disruption),
        ),
    ];
    table
}
