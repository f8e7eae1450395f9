//! The ranking of one claim's offerings just before its launch.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{CapacityType, NodeClaim, NodePool, labels};
use hooks::columns::saturated;
use hooks::ranking::{
    ClaimView, Needs, OfferingTable, PodsSummary, PolicyUse, PremiumMax, RankAnswer, RankHook,
    RankRound, RankStage, Symbols, WorkloadTable,
};
use jiff::Timestamp;

use super::exclusions::Exclusions;
use super::premium::{premium_of_node, premium_of_pool};
use super::table::{TableRow, accelerators, claim_requirements, memory_mib, offering_table};
use super::usage::{Usage, UsageKey, usage_table};
use super::workloads::{FactsByOwner, WorkloadContext, pods_summary, push_workloads};
use crate::instance_type::InstanceType;
use crate::pod::Pod;
use crate::requirements::{AllowUndefined, Requirements};

/// Input of the ranking for a launch.
#[derive(Debug)]
pub struct LaunchRanking<'a> {
    /// NodeClaim that is to be launched.
    pub node_claim: &'a NodeClaim,
    /// NodePool of the claim.
    pub node_pool: &'a NodePool,
    /// Types of its pool.
    pub instance_types: &'a [Arc<InstanceType>],
    /// The pods that it was made for, as far as that is known.
    pub pods: &'a [Arc<Pod>],
    /// Facts about the owners of these pods.
    pub owners: &'a FactsByOwner,
    /// Nodes that there are, this claim aside.
    pub usage: &'a BTreeMap<UsageKey, Usage>,
    /// Free addresses of the class's subnets by zone.
    pub free_addresses: &'a BTreeMap<String, u32>,
    /// Moment of the ranking.
    pub now: Timestamp,
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Seed derived from the claim.
    pub seed: u64,
    /// The greatest premium that a policy may put on the node, where the pool says nothing else.
    pub premium_max: PremiumMax,
}

/// An offering with its place in the order. A claim may have thousands, and many claims launch at once, so that their
/// names are shared.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedOffering {
    /// Name of the type.
    pub instance_type: Arc<str>,
    pub zone: Arc<str>,
    pub capacity_type: CapacityType,
    /// List price, USD an hour.
    pub price_per_hour: f64,
    /// Cost as the ranking policy reckons, effective USD an hour.
    pub effective_cost_per_hour: f64,
}

/// Offerings in order, and what led to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankedLaunch {
    /// Offerings that may be launched, best first.
    pub offerings: Arc<[RankedOffering]>,
    /// Whether the order differs from that of prices.
    pub order_differs_from_price: bool,
    /// Report of the offerings that the policy ruled out.
    pub exclusions: Exclusions,
    /// What was dropped because it costs too much, if anything was.
    pub above_premium: Option<AbovePremium>,
    /// Whether the best offering is another than list prices would choose.
    pub best_differs_from_list_price: bool,
    /// USD an hour that the best offering costs more than the one of the lowest price.
    pub premium_per_hour: f64,
    /// Line that the policy noted for events and records.
    pub note: Option<String>,
    /// Policies that were asked, and how it went.
    pub uses: Vec<PolicyUse>,
}

/// Offerings that cost more than the bound above the cheapest one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AbovePremium {
    pub offerings: usize,
    pub bound: PremiumMax,
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
    let (table, rows) = offering_table(&fitting, &mut symbols);
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
    let needs = hook.needs();
    let mut view = claim_view(launch, &requirements, &requests, &mut symbols);
    view.candidates = candidates.iter().map(|row| saturated(*row)).collect();
    if needs.free_addresses {
        let free = launch.free_addresses.iter();
        view.free_addresses = free.map(|(zone, it)| (symbols.intern(zone), *it)).collect();
    }
    let workloads = workloads(launch, needs, &mut symbols);
    let usage = usage_table(launch.usage, &mut symbols);
    let round = RankRound {
        now_seconds: u64::try_from(launch.now.as_second()).unwrap_or(0),
        cluster: launch.cluster.to_owned(),
        decision_id: claim.metadata.name.clone().unwrap_or_default(),
        seed: launch.seed,
        table: OfferingTable {
            symbols: symbols.into_words(),
            ..table
        },
        usage,
        workloads,
        claims: vec![view],
    };
    let answer = hook.rank(&round);
    let bound = answer.rankings.first().and_then(|it| it.premium_max);
    let bound = bound.unwrap_or(PremiumMax::OFF);
    let own = premium_of_pool(launch.node_pool, launch.premium_max);
    let bound = premium_of_node(own.tighter(bound), &requirements);
    let (ranked, ordered) = order(&fitting, &rows, &candidates, answer);
    ranked.with_offerings(ordered, bound)
}

/// An offering and the generation of its type, which decides between those that cost the same.
type WithGeneration = (u32, RankedOffering);

impl RankedLaunch {
    /// Takes the offerings in their order, but what a policy prefers beyond what it may cost, and works out how they
    /// differ from the order of prices. Without a policy's say there is nothing to bound: more expensive offerings are
    /// what a launch falls back on.
    fn with_offerings(mut self, mut ordered: Vec<WithGeneration>, bound: PremiumMax) -> Self {
        let prices = ordered.iter().map(|it| it.1.price_per_hour);
        let Some(cheapest) = prices.min_by(f64::total_cmp) else {
            return self;
        };
        if differs_from_price(&ordered) && bound.is_on() {
            let before = ordered.len();
            let most = bound.most(cheapest);
            ordered.retain(|it| it.1.price_per_hour <= most);
            let dropped = before - ordered.len();
            self.above_premium = (dropped > 0).then_some(AbovePremium {
                offerings: dropped,
                bound,
            });
        }
        let by_price = ordered
            .iter()
            .min_by(|a, b| by(|it| it.price_per_hour)(a, b));
        let best = ordered.first();
        self.best_differs_from_list_price =
            by_price.map(|it| tie(&it.1)) != best.map(|it| tie(&it.1));
        self.premium_per_hour = best.map_or(0.0, |it| it.1.price_per_hour) - cheapest;
        self.order_differs_from_price = differs_from_price(&ordered);
        self.offerings = ordered.into_iter().map(|(_, ranked)| ranked).collect();
        self
    }
}

fn differs_from_price(ordered: &[WithGeneration]) -> bool {
    ordered
        .windows(2)
        .any(|pair| pair[0].1.price_per_hour > pair[1].1.price_per_hour)
}

fn workloads(launch: &LaunchRanking<'_>, needs: Needs, symbols: &mut Symbols) -> WorkloadTable {
    let mut table = WorkloadTable::default();
    if needs.workloads {
        let context = WorkloadContext {
            owners: launch.owners,
            now: launch.now,
        };
        push_workloads(&mut table, 0, launch.pods, context, symbols);
    }
    table
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
        weight: u32::try_from(launch.node_pool.weight()).unwrap_or(0),
        stage: RankStage::Launch,
        candidates: Vec::new(),
        requirements: claim_requirements(requirements, symbols),
        pods: PodsSummary {
            count: saturated(requests.count(labels::RESOURCE_PODS)),
            cpu_milli: saturated(requests.cpu_millis()),
            memory_mib: memory_mib(requests),
            gpus: accelerators(requests),
            // Requests are the claim's own word, daemons included; the rest is what its pods tell.
            ..pods_summary(launch.pods, launch.owners, launch.now)
        },
        labels: symbols.pairs(&claim_labels),
        nodepool_labels: symbols.pairs(launch.node_pool.metadata.labels.iter().flatten()),
        free_addresses: Vec::new(),
    }
}

/// Offerings in the order of the answer, and what else it says.
fn order(
    types: &[Arc<InstanceType>],
    rows: &[TableRow],
    candidates: &[usize],
    answer: RankAnswer,
) -> (RankedLaunch, Vec<WithGeneration>) {
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
    let names: Vec<Arc<str>> = types.iter().map(|it| it.name.as_str().into()).collect();
    let mut zones: BTreeMap<&str, Arc<str>> = BTreeMap::new();
    let mut reasons: Vec<&str> = Vec::new();
    let mut keyed = Vec::with_capacity(candidates.len());
    for (position, row) in candidates.iter().enumerate() {
        let row = rows[*row];
        let instance_type = &types[row.instance_type];
        let offering = &instance_type.offerings[row.offering];
        // What does not say where and how it is bought cannot be.
        let (Some(zone), Some(capacity_type)) = (offering.zone(), offering.capacity_type()) else {
            continue;
        };
        let shared_zone = zones.entry(zone).or_insert_with(|| zone.into());
        let ranked = RankedOffering {
            instance_type: Arc::clone(&names[row.instance_type]),
            zone: Arc::clone(shared_zone),
            capacity_type,
            price_per_hour: offering.price_per_hour,
            effective_cost_per_hour: ranking
                .scores
                .get(position)
                .copied()
                .unwrap_or(offering.price_per_hour),
        };
        match excluded.get(&position) {
            Some(reason) => reasons.push(reason),
            None => keyed.push((instance_type.generation(), ranked)),
        }
    }
    launch.exclusions = Exclusions::of(reasons);
    keyed.sort_by(by(|it| it.effective_cost_per_hour));
    (launch, keyed)
}

/// The order in which offerings with their generations are taken: the cheapest first, ties as [`rank_for_launch`] has
/// them.
fn by<C>(cost: C) -> impl Fn(&WithGeneration, &WithGeneration) -> Ordering
where
    C: Fn(&RankedOffering) -> f64,
{
    move |(gen_a, a), (gen_b, b)| {
        cost(a)
            .total_cmp(&cost(b))
            .then_with(|| gen_b.cmp(gen_a))
            .then_with(|| tie(a).cmp(&tie(b)))
    }
}

/// Key that decides between offerings that cost the same and are of one generation.
fn tie(offering: &RankedOffering) -> (&str, &str, CapacityType) {
    let RankedOffering {
        instance_type,
        zone,
        capacity_type,
        ..
    } = offering;
    (instance_type, zone, *capacity_type)
}
