//! The ranking of one claim's offerings just before its launch.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::NodeClaim;
use apis::labels;
use apis::resources::Resources;
use jiff::Timestamp;

use super::table::{gpus, memory_mib, saturate};
use super::{
    ClaimView, OfferingTable, PodsSummary, PolicyUse, RankHook, RankRound, Symbols, TableRow,
};
use crate::instance_type::InstanceType;
use crate::problem::OfferingKey;
use crate::requirements::{AllowUndefined, Requirements};

/// What a launch ranking looks at.
#[derive(Debug)]
pub struct LaunchRanking<'a> {
    /// The claim.
    pub node_claim: &'a NodeClaim,
    /// Weight of its pool.
    pub weight: u32,
    /// Types of its pool.
    pub instance_types: &'a [Arc<InstanceType>],
    /// Nodes running on each offering.
    pub in_use: &'a BTreeMap<OfferingKey, u32>,
    /// The present moment.
    pub now: Timestamp,
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Seed derived from the claim.
    pub seed: u64,
}

/// An offering with its place in the order.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedOffering {
    /// Name of the type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: String,
    /// Price.
    pub price_per_hour: f64,
    /// What the policy says it costs.
    pub effective_cost_per_hour: f64,
}

/// Offerings in order, and what led to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankedLaunch {
    /// Best first.
    pub offerings: Vec<RankedOffering>,
    /// Whether the order differs from that of prices.
    pub order_differs_from_price: bool,
    /// Offerings the policy ruled out, with its reason.
    pub excluded: Vec<(RankedOffering, String)>,
    /// The policy's line.
    pub note: Option<String>,
    /// Policies asked.
    pub uses: Vec<PolicyUse>,
}

/// Ranks the launchable offerings that satisfy the claim. Ties go to the newer generation, then to the name.
pub fn rank_for_launch(launch: &LaunchRanking<'_>, hook: &dyn RankHook) -> RankedLaunch {
    let claim = launch.node_claim;
    let requirements = Requirements::from_node_selector_requirements(&claim.spec.requirements);
    let requests = Resources::from_list(&claim.spec.resources.requests);
    let names = requirements.get(labels::INSTANCE_TYPE);
    let fitting: Vec<Arc<InstanceType>> = launch
        .instance_types
        .iter()
        .filter(|t| {
            // The name decides most types, and is the cheapest to ask.
            names.has(&t.name)
                && requirements.meets(&t.requirements)
                && requests.fits(&t.allocatable())
        })
        .cloned()
        .collect();
    let mut symbols = Symbols::default();
    let (table, rows) = OfferingTable::build(&fitting, launch.in_use, &mut symbols);
    let candidates: Vec<usize> = (0..rows.len())
        .filter(|row| {
            rows.get(*row).is_some_and(|row| {
                let offering = fitting[row.instance_type].offerings.get(row.offering);
                offering.is_some_and(|o| {
                    o.is_launchable()
                        && requirements.is_compatible(&o.requirements, AllowUndefined::WellKnown)
                })
            })
        })
        .collect();
    if candidates.is_empty() {
        return RankedLaunch::default();
    }
    let view = claim_view(launch, &requirements, &requests, &mut symbols);
    let view = ClaimView {
        candidates: candidates.iter().map(|row| saturate_usize(*row)).collect(),
        ..view
    };
    let round = RankRound {
        now_seconds: u64::try_from(launch.now.as_second()).unwrap_or(0),
        cluster: launch.cluster.to_owned(),
        decision_id: claim.metadata.name.clone().unwrap_or_default(),
        seed: launch.seed,
        table: OfferingTable {
            symbols: symbols.into_words(),
            ..table
        },
        claims: vec![view],
    };
    let answer = hook.rank(&round);
    order(&fitting, &rows, &candidates, answer)
}

fn claim_view(
    launch: &LaunchRanking<'_>,
    requirements: &Requirements,
    requests: &Resources,
    symbols: &mut Symbols,
) -> ClaimView {
    let claim_labels = launch
        .node_claim
        .metadata
        .labels
        .clone()
        .unwrap_or_default();
    let pool = claim_labels
        .get(labels::NODEPOOL)
        .cloned()
        .unwrap_or_default();
    ClaimView {
        nodepool: symbols.intern(&pool),
        weight: launch.weight,
        candidates: Vec::new(),
        requirements: symbols.requirements(requirements),
        pods: PodsSummary {
            count: saturate(requests.get(labels::RESOURCE_PODS) / 1000),
            cpu_milli: saturate(requests.get(labels::RESOURCE_CPU)),
            memory_mib: memory_mib(requests),
            gpus: saturate(gpus(requests)),
            ..PodsSummary::default()
        },
        labels: claim_labels
            .iter()
            .map(|(k, v)| (symbols.intern(k), symbols.intern(v)))
            .collect(),
    }
}

fn order(
    types: &[Arc<InstanceType>],
    rows: &[TableRow],
    candidates: &[usize],
    answer: super::RankAnswer,
) -> RankedLaunch {
    let ranking = answer.rankings.into_iter().next().unwrap_or_default();
    let excluded: BTreeMap<usize, String> = ranking
        .excluded
        .into_iter()
        .map(|(position, reason)| (position as usize, reason))
        .collect();
    let mut launch = RankedLaunch {
        note: ranking.note,
        uses: answer.uses,
        ..RankedLaunch::default()
    };
    let mut keyed = Vec::with_capacity(candidates.len());
    for (position, row) in candidates.iter().enumerate() {
        let row = rows[*row];
        let instance_type = &types[row.instance_type];
        let offering = &instance_type.offerings[row.offering];
        let ranked = RankedOffering {
            instance_type: instance_type.name.clone(),
            zone: offering.zone().to_owned(),
            capacity_type: offering.capacity_type().to_owned(),
            price_per_hour: offering.price_per_hour,
            effective_cost_per_hour: ranking
                .scores
                .get(position)
                .copied()
                .unwrap_or(offering.price_per_hour),
        };
        match excluded.get(&position) {
            Some(reason) => launch.excluded.push((ranked, reason.clone())),
            None => keyed.push((instance_type.generation(), ranked)),
        }
    }
    keyed.sort_by(|(gen_a, a), (gen_b, b)| {
        a.effective_cost_per_hour
            .total_cmp(&b.effective_cost_per_hour)
            .then_with(|| gen_b.cmp(gen_a))
            .then_with(|| a.instance_type.cmp(&b.instance_type))
            .then_with(|| a.zone.cmp(&b.zone))
            .then_with(|| a.capacity_type.cmp(&b.capacity_type))
    });
    launch.offerings = keyed.into_iter().map(|(_, ranked)| ranked).collect();
    launch.order_differs_from_price = launch
        .offerings
        .windows(2)
        .any(|pair| pair[0].price_per_hour > pair[1].price_per_hour);
    launch
}

fn saturate_usize(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}
