//! From candidates to the table that consolidation policies see.
//!
//! Only converts; the wording of columns is in `hooks`.

use std::collections::{BTreeMap, BTreeSet};

use apis::labels;
use jiff::Timestamp;
use scheduling::ranking::Symbols;
use state::Snapshot;

use crate::candidate::{Candidate, TypesByPool};
use crate::command::Proposal;
use crate::history::History;
use crate::hooks::{
    COLUMN_CONSOLIDATION_POLICY, COLUMN_POOL_TOTAL_COST, COLUMN_POOL_TOTAL_DISRUPTION,
    ConsolidationRound, Context, ExtraColumn, ExtraValues, Move, MoveKind, NEVER_SECONDS,
    NO_SYMBOL, NodeTable,
};
use crate::method::Method;

/// What is worked out once for all calls of a loop.
#[derive(Debug, Clone)]
pub struct Round {
    /// The table; one row a candidate, in their order.
    pub table: ConsolidationRound,
    types: BTreeMap<String, u32>,
}

impl Round {
    /// The table of these candidates.
    pub fn new(
        snapshot: &Snapshot,
        types: &TypesByPool,
        candidates: &[Candidate],
        context: Context,
        now: Timestamp,
    ) -> Self {
        let mut symbols = Symbols::default();
        let mut nodes = NodeTable::default();
        let totals = pool_totals(snapshot, types, candidates);
        let (mut policies, mut costs, mut disruptions) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in candidates {
            push_row(&mut nodes, &mut symbols, candidate, now);
            let policy = candidate.node_pool.spec.disruption.consolidation_policy;
            policies.push(symbols.intern(&policy.to_string()));
            let (cost, disruption) = totals.get(candidate.pool()).copied().unwrap_or_default();
            costs.push(cost);
            disruptions.push(disruption);
        }
        for (name, values) in [
            (COLUMN_CONSOLIDATION_POLICY, ExtraValues::Syms(policies)),
            (COLUMN_POOL_TOTAL_COST, ExtraValues::Floats(costs)),
            (
                COLUMN_POOL_TOTAL_DISRUPTION,
                ExtraValues::Floats(disruptions),
            ),
        ] {
            nodes.extra.push(ExtraColumn {
                name: name.to_owned(),
                values,
            });
        }
        // Replacement types may be ones that no candidate has.
        let pools: BTreeSet<&str> = candidates.iter().map(Candidate::pool).collect();
        let names = pools
            .into_iter()
            .filter_map(|it| types.get(it))
            .flat_map(|it| it.iter())
            .map(|it| it.name.clone());
        let types = names.map(|it| (it.clone(), symbols.intern(&it))).collect();
        nodes.symbols = symbols.into_words();
        Self {
            table: ConsolidationRound { context, nodes },
            types,
        }
    }

    /// A proposal as policies see it. `rows` are the candidates it removes.
    pub fn describe(
        &self,
        proposal: &Proposal,
        candidates: &[Candidate],
        snapshot: &Snapshot,
        history: (&History, Timestamp),
    ) -> Move {
        let removed: Vec<&Candidate> = proposal
            .rows
            .iter()
            .filter_map(|&row| candidates.get(row))
            .collect();
        let pods = || removed.iter().flat_map(|it| &it.reschedulable);
        let recent = removed
            .first()
            .map(|it| history.0.of_pool(it.pool(), history.1))
            .unwrap_or_default();
        let replacement = proposal.replacements.first();
        Move {
            kind: match (proposal.method, replacement) {
                (Method::Emptiness, _) => MoveKind::Empty,
                // Repair asks no policy; were it asked, a sick node would be one that is not as it should be.
                (Method::Repair | Method::StaticDrift | Method::Drift, _) => MoveKind::Drift,
                (Method::MultiNodeConsolidation | Method::SingleNodeConsolidation, None) => {
                    MoveKind::Delete
                }
                (Method::MultiNodeConsolidation | Method::SingleNodeConsolidation, Some(_)) => {
                    MoveKind::Replace
                }
            },
            remove: proposal.rows.iter().map(|&row| small(row)).collect(),
            cost_before: proposal.cost_before_per_hour,
            cost_after: proposal.cost_after_per_hour,
            pods_moved: small(pods().count()),
            singletons_moved: small(pods().filter(|pod| snapshot.replicas(pod) <= 1).count()),
            max_priority: pods()
                .map(|pod| pod.shape.priority)
                .max()
                .unwrap_or_default(),
            new_nodes: small(proposal.replacements.len()),
            replacement_type: replacement
                .and_then(|it| self.types.get(&it.best.instance_type))
                .copied()
                .unwrap_or(NO_SYMBOL),
            replacement_spot: replacement
                .is_some_and(|it| it.best.capacity_type == labels::CAPACITY_TYPE_SPOT),
            recent_hour: recent.hour,
            recent_day: recent.day,
            labels: Vec::new(),
        }
    }
}

fn push_row(nodes: &mut NodeTable, symbols: &mut Symbols, candidate: &Candidate, now: Timestamp) {
    let claim = candidate.node.claim.as_ref();
    let created = claim.and_then(|it| it.created_at);
    let age = created.map_or(0, |at| now.duration_since(at).as_secs());
    let left = claim
        .and_then(|it| it.expire_after)
        .map_or(NEVER_SECONDS, |life| seconds(life.as_seconds() - age));
    let allocatable = candidate.node.allocatable();
    nodes.name.push(symbols.intern(candidate.name()));
    nodes.nodepool.push(symbols.intern(candidate.pool()));
    nodes
        .instance_type
        .push(symbols.intern(candidate.instance_type_name()));
    nodes.zone.push(symbols.intern(candidate.zone()));
    nodes.capacity_type.push(match candidate.capacity_type() {
        labels::CAPACITY_TYPE_SPOT => 1,
        labels::CAPACITY_TYPE_RESERVED => 2,
        _ => 0,
    });
    nodes.price.push(candidate.price_per_hour);
    nodes.age.push(seconds(age));
    nodes.time_to_expiry.push(left);
    nodes.pods.push(candidate.pods);
    nodes.blocked_pods.push(candidate.blocked_pods);
    nodes.disruption_cost.push(candidate.reschedule_cost);
    nodes.cpu_milli.push(seconds(allocatable.cpu_millis()));
    nodes
        .cpu_requested_milli
        .push(seconds(candidate.requests.cpu_millis()));
    nodes
        .memory_mib
        .push(seconds(allocatable.memory_bytes() >> 20));
    nodes
        .memory_requested_mib
        .push(seconds(candidate.requests.memory_bytes() >> 20));
}

/// Cost and disruption of all nodes of each pool; candidates count with their exact values.
fn pool_totals(
    snapshot: &Snapshot,
    types: &TypesByPool,
    candidates: &[Candidate],
) -> BTreeMap<String, (f64, f64)> {
    let exact: BTreeMap<&str, &Candidate> = candidates.iter().map(|it| (it.claim(), it)).collect();
    let mut totals: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for node in snapshot.nodes() {
        let (Some(pool), Some(claim)) = (node.node_pool(), node.claim_name()) else {
            continue;
        };
        let (cost, disruption) = if let Some(it) = exact.get(claim) {
            (it.price_per_hour, it.reschedule_cost)
        } else {
            let price = types
                .get(pool)
                .and_then(|it| {
                    it.iter()
                        .find(|it| it.name == node.label(labels::INSTANCE_TYPE))
                })
                .and_then(|it| {
                    it.offering(
                        node.label(labels::TOPOLOGY_ZONE),
                        node.label(labels::CAPACITY_TYPE),
                    )
                })
                .map_or(0.0, |it| it.price_per_hour);
            (price, snapshot.bound(node).disruption_cost())
        };
        let total = totals.entry(pool.to_owned()).or_default();
        total.0 += cost;
        total.1 += disruption;
    }
    totals
}

fn seconds(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
