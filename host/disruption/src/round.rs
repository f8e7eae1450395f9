//! From candidates to the table that consolidation policies see.
//!
//! Only converts; the wording of columns is in `hooks`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::CapacityType;
use hooks::columns::saturated;
use hooks::disruption::{
    ConsolidationRound, Context, Move, MoveKind, NEVER_SECONDS, NO_SYMBOL, Needs, NodeTable,
    PoolView, WorkloadTable,
};
use jiff::Timestamp;
use planning::provisioning::PoolTypes;
use scheduling::ranking::{Symbols, WorkloadContext, accelerators, push_workloads};

use crate::appraisal::Costs;
use crate::candidate::{Candidate, list_price};
use crate::command::{Cost, Proposal};
use crate::input::DisruptionInput;
use crate::method::Method;

/// Sources of the table.
pub(crate) struct RoundSource<'v> {
    /// Input of the loop.
    pub(crate) input: &'v DisruptionInput,
    /// Context that policies are told with every question of the loop.
    pub(crate) context: &'v Context,
    /// In order of node name.
    pub(crate) candidates: &'v [Candidate],
}

impl RoundSource<'_> {
    /// The candidate's row of the table.
    fn row(&self, candidate: &Candidate) -> usize {
        let name = candidate.name();
        self.candidates.partition_point(|it| it.name() < name)
    }
}

/// The table that all calls of a loop share, worked out once.
#[derive(Debug, Clone)]
pub(crate) struct PolicyRound {
    /// The table; one row a candidate, in their order.
    pub(crate) table: ConsolidationRound,
    symbols: Symbols,
}

impl PolicyRound {
    /// The table of the candidates, which cost so much, with the columns that the policy needs.
    pub(crate) fn new(source: &RoundSource<'_>, needs: Needs, costs: &Costs) -> Self {
        let DisruptionInput {
            snapshot,
            types,
            options,
            ..
        } = source.input;
        let (candidates, now) = (source.candidates, options.now);
        let mut symbols = Symbols::default();
        let mut nodes = NodeTable::default();
        let mut workloads = WorkloadTable::default();
        let pods = || candidates.iter().flat_map(|it| &it.reschedulable);
        let owners = needs.workloads.then(|| snapshot.owners(pods()));
        for (row, candidate) in (0_u32..).zip(candidates) {
            let cost = costs.of(candidate);
            push_row(
                &mut nodes,
                &mut symbols,
                &PricedCandidate { candidate, cost },
                now,
            );
            if needs.node_labels {
                let labels = symbols.pairs(candidate.node.labels());
                nodes.labels.push(labels);
            }
            if let Some(owners) = &owners {
                let pods = &candidate.reschedulable;
                let context = WorkloadContext { owners, now };
                push_workloads(&mut workloads, row, pods, context, &mut symbols);
            }
        }
        // Replacements may be what no candidate is, and of a pool that has none.
        let pools: BTreeSet<&str> = candidates.iter().map(Candidate::pool).collect();
        let of_pools = || pools.iter().filter_map(|pool| types.get(*pool));
        // A pool with candidates mostly has the very list above, in which a second reading finds nothing new.
        let is_read =
            |it: &&PoolTypes| of_pools().any(|types| Arc::ptr_eq(types, &it.instance_types));
        let to_buy = source.input.pools.iter().filter(|it| !is_read(it));
        let to_buy = to_buy.flat_map(|it| it.instance_types.iter());
        let of_pools = of_pools().flat_map(|types| types.iter());
        for instance_type in of_pools.chain(to_buy) {
            symbols.intern(&instance_type.name);
            for offering in &instance_type.offerings {
                symbols.intern(offering.zone().unwrap_or_default());
            }
        }
        for candidate in candidates {
            symbols.pairs(template_labels(candidate));
        }
        let pools = pool_views(source, costs, &mut symbols);
        nodes.symbols = symbols.clone().into_words();
        let table = ConsolidationRound {
            context: source.context.clone(),
            nodes,
            pools,
            workloads,
        };
        Self { table, symbols }
    }

    /// A proposal as policies see it.
    pub(crate) fn describe(&self, proposal: &Proposal<'_>, source: &RoundSource<'_>) -> Move {
        let (removed, snapshot) = (&proposal.candidates, &source.input.snapshot);
        let rows = removed.iter().map(|it| saturated(source.row(it)));
        let pods = || removed.iter().flat_map(|it| &it.reschedulable);
        let best = proposal.replacements().first().map(|it| &it.best);
        Move {
            kind: kind(proposal),
            remove: rows.collect(),
            cost_before: proposal.before.price_per_hour,
            cost_after: proposal.after.price_per_hour,
            effective_before: proposal.before.effective_per_hour,
            effective_after: proposal.after.effective_per_hour,
            pods_moved: saturated(pods().count()),
            singletons_moved: saturated(pods().filter(|pod| snapshot.replicas(pod) <= 1).count()),
            max_priority: pods()
                .map(|pod| pod.shape.priority)
                .max()
                .unwrap_or_default(),
            new_nodes: saturated(proposal.replacements().len()),
            replacement_type: self.symbol(best.map(|it| it.instance_type.as_str())),
            replacement_zone: self.symbol(best.map(|it| it.zone.as_deref().unwrap_or_default())),
            replacement_capacity_type: CapacityType::code_of(best.and_then(|it| it.capacity_type)),
            labels: self.common_labels(removed),
        }
    }

    fn symbol(&self, word: Option<&str>) -> u32 {
        let known = word.and_then(|it| self.symbols.find(it));
        known.unwrap_or(NO_SYMBOL)
    }

    fn common_labels(&self, removed: &[&Candidate]) -> Vec<(u32, u32)> {
        let Some((first, others)) = removed.split_first() else {
            return Vec::new();
        };
        let is_everywhere = |(key, value): &(&String, &String)| {
            let same = |it: &&Candidate| template_labels(it).get(*key) == Some(*value);
            others.iter().all(same)
        };
        let common = template_labels(first).iter().filter(is_everywhere);
        common
            .map(|(key, value)| (self.symbol(Some(key)), self.symbol(Some(value))))
            .collect()
    }
}

fn template_labels(candidate: &Candidate) -> &BTreeMap<String, String> {
    &candidate.node_pool.spec.template.metadata.labels
}

fn kind(proposal: &Proposal<'_>) -> MoveKind {
    match (proposal.method, proposal.replacements().is_empty()) {
        (Method::Emptiness, _) => MoveKind::Empty,
        // Repair asks no policy; were it asked, a sick node would be one that is not as it should be.
        (Method::Repair | Method::Drift, _) => MoveKind::Drift,
        (Method::StaticDrift, _) => MoveKind::StaticDrift,
        (Method::Expiry, _) => MoveKind::Expire,
        (Method::MultiNodeConsolidation | Method::SingleNodeConsolidation, true) => {
            MoveKind::Delete
        }
        (Method::MultiNodeConsolidation | Method::SingleNodeConsolidation, false) => {
            MoveKind::Replace
        }
    }
}

/// A candidate and what it costs.
struct PricedCandidate<'s> {
    candidate: &'s Candidate,
    cost: Cost,
}

fn push_row(
    nodes: &mut NodeTable,
    symbols: &mut Symbols,
    row: &PricedCandidate<'_>,
    now: Timestamp,
) {
    let PricedCandidate { candidate, cost } = row;
    let claim = candidate.node.claim();
    let created_at = candidate.created_at();
    let age = created_at.map_or(0, |at| now.duration_since(at).as_secs());
    let left = claim
        .and_then(|it| it.expire_after)
        .map_or(NEVER_SECONDS, |life| saturated(life.as_seconds() - age));
    let allocatable = candidate.node.allocatable();
    nodes.name.push(symbols.intern(candidate.name()));
    nodes.nodepool.push(symbols.intern(candidate.pool()));
    let instance_type = candidate.instance_type_name().unwrap_or_default();
    nodes.instance_type.push(symbols.intern(instance_type));
    let zone = candidate.zone().unwrap_or_default();
    nodes.zone.push(symbols.intern(zone));
    let capacity_type = CapacityType::code_of(candidate.capacity_type());
    nodes.capacity_type.push(capacity_type);
    nodes.price.push(cost.price_per_hour);
    nodes.effective_price.push(cost.effective_per_hour);
    let policy = candidate.node_pool.spec.disruption.consolidation_policy;
    nodes
        .consolidation_policy
        .push(symbols.intern(&policy.to_string()));
    let pods_since = claim.and_then(|it| it.last_pod_event_at);
    nodes
        .last_pod_event
        .push(pods_since.map_or(NEVER_SECONDS, |at| {
            saturated(now.duration_since(at).as_secs())
        }));
    let drift_reason = claim.and_then(|it| it.drift_reason.as_deref());
    nodes
        .drift_reason
        .push(symbols.intern(drift_reason.unwrap_or_default()));
    nodes.age.push(saturated(age));
    nodes.time_to_expiry.push(left);
    nodes.pods.push(candidate.pods);
    nodes.blocked_pods.push(candidate.blocked_pods);
    nodes.disruption_cost.push(candidate.reschedule_cost);
    nodes.cpu_milli.push(saturated(allocatable.cpu_millis()));
    nodes
        .cpu_requested_milli
        .push(saturated(candidate.requests.cpu_millis()));
    nodes
        .memory_mib
        .push(saturated(allocatable.memory_bytes() >> 20));
    nodes
        .memory_requested_mib
        .push(saturated(candidate.requests.memory_bytes() >> 20));
    nodes.gpus.push(accelerators(&allocatable));
    nodes.gpus_requested.push(accelerators(&candidate.requests));
}

/// The pools of the candidates with all their nodes; candidates count with their exact values.
fn pool_views(source: &RoundSource<'_>, costs: &Costs, symbols: &mut Symbols) -> Vec<PoolView> {
    let (candidates, now) = (source.candidates, source.input.options.now);
    let exact: BTreeMap<&str, &Candidate> = candidates.iter().map(|it| (it.claim(), it)).collect();
    let mut views: BTreeMap<&str, PoolView> = BTreeMap::new();
    for candidate in candidates {
        let pool = candidate.pool();
        views.entry(pool).or_insert_with(|| {
            let recent = source.input.history.of_pool(pool, now);
            let labels = candidate.node_pool.metadata.labels.iter().flatten();
            PoolView {
                name: symbols.intern(pool),
                labels: symbols.pairs(labels),
                recent_hour: recent.hour,
                recent_day: recent.day,
                ..PoolView::default()
            }
        });
    }
    for node in source.input.snapshot.nodes() {
        let (Some(pool), Some(claim)) = (node.node_pool(), node.claim_name()) else {
            continue;
        };
        let Some(view) = views.get_mut(pool) else {
            continue;
        };
        let (cost, disruption) = if let Some(candidate) = exact.get(claim) {
            (costs.of(candidate), candidate.reschedule_cost)
        } else {
            (
                Cost::at_list_price(list_price(&source.input.types, node)),
                source.input.snapshot.bound(node).disruption_cost(),
            )
        };
        view.nodes += 1;
        view.price += cost.price_per_hour;
        view.effective_price += cost.effective_per_hour;
        view.disruption_cost += disruption;
    }
    views.into_values().collect()
}
