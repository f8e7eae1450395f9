//! Sample rounds: tables of any size, the same on every machine.
//!
//! No chance and no clock: a policy that answers them once answers them always.

mod of_disruption;

use hooks::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, NO_SYMBOL, OfferingTable, PodsSummary, RankRound,
    UsageTable, WorkloadTable,
};

pub(crate) use of_disruption::{budget_round, consolidation_round, many_pools};

/// The words of the sample tables, in the order of their symbols.
const WORDS: [&str; 14] = [
    "sample",
    "amd64",
    "arm64",
    "us-east-1a",
    "us-east-1b",
    "us-east-1c",
    "aws",
    "intel",
    "shop",
    "Deployment",
    "web",
    "app",
    "critical",
    "team",
];
const SAMPLE: u32 = 0;
const ZONE_BASE: u32 = 3;
const SHOP: u32 = 8;
const DEPLOYMENT: u32 = 9;
const WEB: u32 = 10;
const APP: u32 = 11;
const CRITICAL: u32 = 12;
const TEAM: u32 = 13;
const FAMILIES: [&str; 5] = ["m7i", "m7g", "c7i", "r7g", "t3"];
/// Noon UTC of 2026-01-05.
pub(crate) const NOW_SECONDS: u64 = 1_767_614_400;

/// A table of so many offerings and two claims: everything, and every third row.
pub(crate) fn rank_round(rows: u32) -> RankRound {
    let mut symbols: Vec<String> = WORDS.map(str::to_owned).to_vec();
    let family_base = sym(symbols.len());
    symbols.extend(FAMILIES.map(str::to_owned));
    let type_base = sym(symbols.len());
    for it in 0..rows.div_ceil(6) {
        let family = usize::try_from(it % 5).ok();
        let family = family.and_then(|it| FAMILIES.get(it)).copied();
        symbols.push(format!("{}.{}xlarge", family.unwrap_or("m7i"), it / 5 + 1));
    }
    let column = |value: fn(u32) -> u32| (0..rows).map(value).collect::<Vec<u32>>();
    let price: Vec<f64> = (0..rows)
        .map(|it| f64::from(spread(it) % 100_000) / 1e4)
        .collect();
    let table = OfferingTable {
        instance_type: (0..rows).map(|it| type_base + it / 6).collect(),
        family: (0..rows).map(|it| family_base + it / 6 % 5).collect(),
        generation: column(|it| 3 + it / 6 % 5),
        cpu_manufacturer: column(|it| 6 + it / 6 % 2),
        zone: column(|it| ZONE_BASE + it % 3),
        arch: column(|it| 1 + u32::from(it / 6 % 5 == 1 || it / 6 % 5 == 3)),
        capacity_type: (0..rows).map(|it| u8::from(it / 3 % 2 == 1)).collect(),
        on_demand_price: price.iter().map(|price| price * 1.5).collect(),
        cpu_milli: column(|it| (1 + it / 30) * 4000),
        memory_mib: column(|it| (1 + it / 30) * 16384),
        gpus: column(|it| u32::from(it % 40 == 0)),
        max_pods: column(|_| 110),
        reservation_slots: column(|_| 0),
        ice_count: column(|it| u32::from(it % 17 == 0)),
        ice_age: column(|it| if it % 17 == 0 { 600 } else { u32::MAX }),
        interruption_rate: (0..rows).map(|it| f64::from(it % 7) / 10.0 - 0.1).collect(),
        prior: price.clone(),
        price,
        extra: Vec::new(),
        symbols,
    };
    RankRound {
        now_seconds: NOW_SECONDS,
        cluster: "sample".to_owned(),
        decision_id: "sample".to_owned(),
        seed: 1,
        usage: usage(&table),
        workloads: workloads(1 + rows / 20, |_| NO_SYMBOL),
        claims: vec![claim(Vec::new()), claim((0..rows).step_by(3).collect())],
        table,
    }
}

fn claim(candidates: Vec<u32>) -> ClaimView {
    ClaimView {
        nodepool: SAMPLE,
        weight: 1,
        candidates,
        requirements: vec![ClaimRequirement {
            key: TEAM,
            operator: ClaimOperator::InSet,
            values: vec![SHOP],
            min_values: 0,
        }],
        pods: PodsSummary {
            count: 10,
            cpu_milli: 4000,
            memory_mib: 8192,
            replicated: 4,
            oldest_wait_seconds: 30,
            ..PodsSummary::default()
        },
        labels: vec![(TEAM, SHOP)],
        nodepool_labels: vec![(TEAM, SHOP)],
        free_addresses: (ZONE_BASE..ZONE_BASE + 3).map(|zone| (zone, 250)).collect(),
        ..ClaimView::default()
    }
}

/// Nodes on every fourth offering.
fn usage(table: &OfferingTable) -> UsageTable {
    let mut usage = UsageTable::default();
    let types = table.instance_type.iter().zip(&table.family);
    let places = table.zone.iter().zip(&table.capacity_type);
    let rows = types.zip(places).zip(&table.price).step_by(4);
    for (nodes, (((instance_type, family), (zone, capacity_type)), price)) in (1..).zip(rows) {
        usage.nodepool.push(SAMPLE);
        usage.instance_type.push(*instance_type);
        usage.family.push(*family);
        usage.zone.push(*zone);
        usage.capacity_type.push(*capacity_type);
        usage.nodes.push(nodes % 7);
        usage.launching.push(nodes % 2);
        usage.price.push(*price);
    }
    usage
}

/// Pods of so many owners, and which claim or node each has them on.
fn workloads(owners: u32, of: fn(u32) -> u32) -> WorkloadTable {
    let mut table = WorkloadTable::default();
    for owner in 0..owners {
        table.of.push(of(owner));
        table.namespace.push(SHOP);
        table.owner_kind.push(DEPLOYMENT);
        table.owner_name.push(WEB);
        let is_critical = owner % 3 == 0;
        table
            .priority_class
            .push(if is_critical { CRITICAL } else { NO_SYMBOL });
        table.priority.push(if is_critical { 1000 } else { 0 });
        table.labels.push(vec![(APP, WEB), (TEAM, SHOP)]);
        table.pods.push(1 + owner % 9);
        table.do_not_disrupt.push(owner % 2);
        table.cpu_milli.push(250 * (1 + owner % 9));
        table.memory_mib.push(512 * (1 + owner % 9));
        table.gpus.push(0);
        table.replicas.push(3 + owner % 30);
        table
            .disruptions_allowed
            .push(if owner % 4 == 0 { u32::MAX } else { 1 });
        table.oldest_wait.push(owner % 120);
    }
    table
}

fn sym(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NO_SYMBOL)
}

/// A table of so many offerings and one claim for all of them, as a solve asks for one pool.
pub(crate) fn pool_round(rows: u32) -> RankRound {
    let mut round = rank_round(rows);
    round.claims.truncate(1);
    round
}

/// Numbers without a pattern, the same everywhere.
fn spread(number: u32) -> u32 {
    number.wrapping_mul(2_654_435_761).rotate_left(13)
}
