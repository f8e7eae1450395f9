//! The pools as budget policies see them: their nodes, what was done lately, what a roll-out would make of them.
//!
//! Nothing is allowed or refused here.

use std::collections::BTreeMap;

use apis::fnv::{OFFSET_BASIS, fnv_1a};
use apis::{NodePool, labels};
use hooks::columns::saturated;
use hooks::disruption::{BudgetPool, BudgetReason, DeclaredBudget, NEVER_SECONDS, PoolActivity};
use jiff::Timestamp;
use state::Snapshot;

use super::{InvalidBudget, declared};
use crate::candidate::{TypesByPool, list_price};
use crate::history::History;

/// Everything that budgets are worked out of.
#[derive(Clone, Copy)]
pub struct BudgetWorld<'a> {
    /// The cluster as the loop sees it.
    pub snapshot: &'a Snapshot,
    /// Moves that finished or failed lately, and those under way.
    pub history: &'a History,
    /// Instance types of every pool that has nodes, for their prices.
    pub types: &'a TypesByPool,
    /// Definition that a new node of each pool would have, and since when.
    pub targets: &'a Targets,
    /// Moment of the loop.
    pub now: Timestamp,
}

/// Definition that a node made now would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutTarget {
    /// Hashes and images, as a text.
    pub definition: String,
    /// Moment since when it is so; `None` where the change was not seen.
    pub since: Option<Timestamp>,
    /// Drifted nodes renewed since it is so, as far as they were seen, up to `counted_to`: a roll-out may take longer
    /// than the history lasts.
    pub renewed: u32,
    /// Moment up to which they were counted.
    pub counted_to: Timestamp,
}

impl RolloutTarget {
    /// Drifted nodes of the pool renewed since it is so, those after the last loop included.
    pub(super) fn renewed_by(&self, pool: &str, history: &History) -> u32 {
        let since = history.finished_since(pool, BudgetReason::Drifted, self.counted_to);
        self.renewed.saturating_add(since)
    }

    fn carried_on(&self, pool: &str, history: &History, now: Timestamp) -> Self {
        // What is of this very moment is counted by the next loop, as more of it may come.
        let of_now = history.finished_since(pool, BudgetReason::Drifted, now);
        Self {
            renewed: self.renewed_by(pool, history).saturating_sub(of_now),
            counted_to: now,
            ..self.clone()
        }
    }
}

/// The targets by pool.
pub type Targets = BTreeMap<String, RolloutTarget>;

/// The targets of this moment; `before` are those of the last loop.
pub fn targets(
    snapshot: &Snapshot,
    before: &Targets,
    history: &History,
    now: Timestamp,
) -> Targets {
    let definition = |pool: &NodePool| {
        let annotations = pool.metadata.annotations.as_ref();
        let hash = annotations.and_then(|it| it.get(labels::NODEPOOL_HASH_ANNOTATION));
        let class = snapshot.node_class(&pool.spec.template.spec.node_class_ref.name);
        let class = class.map_or("", |it| it.fingerprint.as_str());
        format!("{} {class}", hash.map_or("", String::as_str))
    };
    let pools = snapshot.node_pools().map(|pool| {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let definition = definition(pool);
        let target = match before.get(&name) {
            Some(known) if known.definition == definition => known.carried_on(&name, history, now),
            changed => RolloutTarget {
                definition,
                since: changed.map(|_| now),
                renewed: 0,
                counted_to: now,
            },
        };
        (name, target)
    });
    pools.collect()
}

/// Nodes of a pool that count.
#[derive(Debug, Clone, Copy, Default)]
struct PoolCount {
    total: u32,
    not_ready: u32,
    deleting: u32,
    drifted: u32,
}

/// What is worked out of a pool before its row is made.
struct CountedPool {
    count: PoolCount,
    price: f64,
    pending: u32,
    declared: Vec<DeclaredBudget>,
}

/// The pools that have nodes, as budget policies see them, each with the first thing wrong with its budgets.
pub(super) fn pools(world: &BudgetWorld<'_>) -> Vec<(BudgetPool, Option<InvalidBudget>)> {
    let pending = world.snapshot.pods();
    let pending = saturated(pending.filter(|pod| pod.is_provisionable()).count());
    let prices = prices(world);
    counts(world.snapshot)
        .into_iter()
        .filter_map(|(name, count)| {
            let pool = world.snapshot.node_pool(name)?;
            let price = prices.get(name).copied().unwrap_or_default();
            let declared = declared(pool, count.total, world.now);
            let facts = CountedPool {
                count,
                price,
                pending,
                declared: declared.budgets,
            };
            Some((of_pool(world, pool, name, facts), declared.fault))
        })
        .collect()
}

/// USD an hour of the nodes of each pool, as far as their prices are known.
fn prices<'a>(world: &BudgetWorld<'a>) -> BTreeMap<&'a str, f64> {
    let mut prices = BTreeMap::new();
    for node in world.snapshot.nodes().filter(|it| it.is_managed()) {
        if let Some(pool) = node.node_pool() {
            let of_pool = prices.entry(pool).or_insert(0.0);
            *of_pool += list_price(world.types, node).into_iter().sum::<f64>();
        }
    }
    prices
}

fn of_pool(world: &BudgetWorld<'_>, pool: &NodePool, name: &str, facts: CountedPool) -> BudgetPool {
    let count = facts.count;
    let (history, now) = (world.history, world.now);
    let target = world.targets.get(name);
    let since = target.and_then(|it| it.since);
    let renewed = target.map(|it| it.renewed_by(name, history));
    let age = since.map(|it| now.duration_since(it).as_secs());
    let labels = pool.metadata.labels.clone().unwrap_or_default();
    BudgetPool {
        name: name.to_owned(),
        labels: labels.into_iter().collect(),
        total: count.total,
        not_ready: count.not_ready,
        deleting: count.deleting,
        drifted: count.drifted,
        drift_target: target
            .map(|it| short_hash(&it.definition))
            .unwrap_or_default(),
        renewed: renewed.unwrap_or_default(),
        target_age_seconds: age.map_or(NEVER_SECONDS, |it| {
            u32::try_from(it.max(0)).unwrap_or(NEVER_SECONDS)
        }),
        price: facts.price,
        activity: BudgetReason::ALL.map(|reason| {
            let recent = history.of_pool_for(name, reason, now);
            PoolActivity {
                disrupting: disrupting(world.snapshot, history, name, reason),
                recent_hour: recent.hour,
                recent_day: recent.day,
                failed_day: history.missed(name, reason, now),
            }
        }),
        pending_pods: facts.pending,
        declared: facts.declared,
    }
}

/// FNV-1a in hexadecimal: short, and the same on every machine.
fn short_hash(text: &str) -> String {
    format!("{:016x}", fnv_1a(OFFSET_BASIS, text.bytes()))
}

fn counts(snapshot: &Snapshot) -> BTreeMap<&str, PoolCount> {
    let mut counts: BTreeMap<&str, PoolCount> = BTreeMap::new();
    for node in snapshot.nodes() {
        let (Some(pool), Some(claim)) = (node.node_pool(), node.claim()) else {
            continue;
        };
        let is_rebooting = claim.conditions.rebooting_at.is_some();
        if !(node.is_initialized() || is_rebooting)
            || claim.conditions.instance_terminating_at.is_some()
        {
            continue;
        }
        let count = counts.entry(pool).or_default();
        count.total += 1;
        count.drifted += u32::from(claim.conditions.drifted_at.is_some());
        // A rebooting node comes back, but until then it is as good as gone.
        if node.is_marked_for_deletion() {
            count.deleting += 1;
        } else if !node.is_ready() || is_rebooting {
            count.not_ready += 1;
        }
    }
    counts
}

fn disrupting(snapshot: &Snapshot, history: &History, pool: &str, reason: BudgetReason) -> u32 {
    let count = snapshot
        .nodes()
        .filter(|node| node.node_pool() == Some(pool) && node.is_marked_for_deletion())
        .filter(|node| node.claim_name().and_then(|it| history.reason(it)) == Some(reason))
        .count();
    saturated(count)
}
