//! Rows of the tables that ranking policies are given.

use super::{Labels, Words, WorkloadRow, workloads};
use crate::policy::{Context, NEVER};
use crate::rank::{Claim, Offerings, Operator, PodsSummary, RankCall, Requirement, Stage};
use crate::usage::{Usage, UsageView};
use crate::workloads::{Workloads, WorkloadsView};

/// A call as rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct RankQuestion<'a> {
    /// What can be bought.
    pub offerings: &'a [OfferingRow<'a>],
    /// Nodes that there are.
    pub usage: &'a [UsedRow<'a>],
    /// Pods by owner.
    pub workloads: &'a [WorkloadRow<'a>],
    /// What is to be bought; one claim without requirements where none is given.
    pub claims: &'a [ClaimRow<'a>],
}

/// The tables of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct RankTables {
    /// What can be bought.
    pub offerings: Offerings,
    /// Nodes that there are.
    pub usage: Usage,
    /// Pods by owner.
    pub workloads: Workloads,
    /// What is to be bought.
    pub claims: Vec<Claim>,
}

impl RankTables {
    /// Rows as columns.
    pub fn of(question: &RankQuestion<'_>) -> Self {
        let RankQuestion {
            offerings: rows,
            usage: used,
            workloads: pods,
            claims,
        } = *question;
        let mut words = Words::default();
        let mut table = offerings(rows, &mut words);
        let one = [ClaimRow::default()];
        let claims = if claims.is_empty() { &one[..] } else { claims };
        let usage = usage(used, &mut words);
        let workloads = workloads(pods, &mut words);
        let claims = claims.iter().map(|it| it.claim(&mut words)).collect();
        table.symbols = words.0;
        Self {
            offerings: table,
            usage,
            workloads,
            claims,
        }
    }

    /// The call.
    pub fn call<'a>(&'a self, context: &'a Context) -> RankCall<'a> {
        let symbols = &self.offerings.symbols;
        RankCall {
            context,
            offerings: &self.offerings,
            usage: UsageView {
                table: &self.usage,
                symbols,
            },
            workloads: WorkloadsView {
                table: &self.workloads,
                symbols,
            },
            claims: &self.claims,
        }
    }
}

/// One offering, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct OfferingRow<'a> {
    /// Its family is what stands before the dot.
    pub instance_type: &'a str,
    /// Generation of the family.
    pub generation: u32,
    /// Who makes the CPU.
    pub cpu_manufacturer: &'a str,
    /// Availability zone.
    pub zone: &'a str,
    /// `amd64` or `arm64`.
    pub arch: &'a str,
    /// 0 on-demand, 1 spot, 2 reserved.
    pub capacity_type: u8,
    /// USD an hour.
    pub price: f64,
    /// USD an hour on demand.
    pub on_demand_price: f64,
    /// CPU.
    pub cpu_milli: u32,
    /// Memory.
    pub memory_mib: u32,
    /// Accelerators.
    pub gpus: u32,
    /// Pods the kubelet takes.
    pub max_pods: u32,
    /// Free slots of a reservation.
    pub reservation_slots: u32,
    /// Recent insufficient-capacity answers.
    pub ice_count: u32,
    /// Seconds since the latest of them.
    pub ice_age: u32,
    /// Interruptions per node and 30 days; negative when unknown.
    pub interruption_rate: f64,
    /// What a policy before this one made of the price; the price where there was none.
    pub prior: Option<f64>,
}

impl Default for OfferingRow<'_> {
    fn default() -> Self {
        Self {
            instance_type: "m7i.large",
            generation: 7,
            cpu_manufacturer: "intel",
            zone: "us-east-1a",
            arch: "amd64",
            capacity_type: 0,
            price: 0.1,
            on_demand_price: 0.1,
            cpu_milli: 2000,
            memory_mib: 8192,
            gpus: 0,
            max_pods: 110,
            reservation_slots: 0,
            ice_count: 0,
            ice_age: NEVER,
            interruption_rate: -1.0,
            prior: None,
        }
    }
}

fn family(instance_type: &str) -> String {
    let family = instance_type.split('.').next();
    family.unwrap_or_default().to_owned()
}

fn offerings(rows: &[OfferingRow<'_>], words: &mut Words) -> Offerings {
    let mut syms = |text: fn(&OfferingRow<'_>) -> String| -> Vec<u32> {
        rows.iter().map(|row| words.intern(&text(row))).collect()
    };
    let instance_type = syms(|row| row.instance_type.to_owned());
    let family = syms(|row| family(row.instance_type));
    let cpu_manufacturer = syms(|row| row.cpu_manufacturer.to_owned());
    let zone = syms(|row| row.zone.to_owned());
    let arch = syms(|row| row.arch.to_owned());
    let counts = |of: fn(&OfferingRow<'_>) -> u32| rows.iter().map(of).collect();
    let floats = |of: fn(&OfferingRow<'_>) -> f64| rows.iter().map(of).collect();
    Offerings {
        symbols: Vec::new(),
        instance_type,
        family,
        generation: counts(|row| row.generation),
        cpu_manufacturer,
        zone,
        arch,
        capacity_type: rows.iter().map(|row| row.capacity_type).collect(),
        price: floats(|row| row.price),
        on_demand_price: floats(|row| row.on_demand_price),
        cpu_milli: counts(|row| row.cpu_milli),
        memory_mib: counts(|row| row.memory_mib),
        gpus: counts(|row| row.gpus),
        max_pods: counts(|row| row.max_pods),
        reservation_slots: counts(|row| row.reservation_slots),
        ice_count: counts(|row| row.ice_count),
        ice_age: counts(|row| row.ice_age),
        interruption_rate: floats(|row| row.interruption_rate),
        prior: floats(|row| row.prior.unwrap_or(row.price)),
        extra: Vec::new(),
    }
}

/// Nodes of one NodePool, type, zone and capacity type, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct UsedRow<'a> {
    /// NodePool.
    pub node_pool: &'a str,
    /// Its family is what stands before the dot.
    pub instance_type: &'a str,
    /// Availability zone.
    pub zone: &'a str,
    /// 0 on-demand, 1 spot, 2 reserved.
    pub capacity_type: u8,
    /// Nodes, those on their way included.
    pub nodes: u32,
    /// Those on their way.
    pub launching: u32,
    /// USD an hour of one of them.
    pub price: f64,
}

impl Default for UsedRow<'_> {
    fn default() -> Self {
        Self {
            node_pool: "default",
            instance_type: "m7i.large",
            zone: "us-east-1a",
            capacity_type: 0,
            nodes: 1,
            launching: 0,
            price: 0.1,
        }
    }
}

fn usage(rows: &[UsedRow<'_>], words: &mut Words) -> Usage {
    let mut syms = |text: fn(&UsedRow<'_>) -> String| -> Vec<u32> {
        rows.iter().map(|row| words.intern(&text(row))).collect()
    };
    Usage {
        nodepool: syms(|row| row.node_pool.to_owned()),
        instance_type: syms(|row| row.instance_type.to_owned()),
        family: syms(|row| family(row.instance_type)),
        zone: syms(|row| row.zone.to_owned()),
        capacity_type: rows.iter().map(|row| row.capacity_type).collect(),
        nodes: rows.iter().map(|row| row.nodes).collect(),
        launching: rows.iter().map(|row| row.launching).collect(),
        price: rows.iter().map(|row| row.price).collect(),
        extra: Vec::new(),
    }
}

/// A claim, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRow<'a> {
    /// NodePool.
    pub node_pool: &'a str,
    /// Weight of the NodePool.
    pub weight: u32,
    /// When it is asked.
    pub stage: Stage,
    /// Rows that may be bought; empty for all.
    pub candidates: &'a [u32],
    /// Requirements.
    pub requirements: &'a [RequirementRow<'a>],
    /// Its pods.
    pub pods: PodsRow,
    /// Labels of the template.
    pub labels: Labels<'a>,
    /// Labels of the NodePool object.
    pub node_pool_labels: Labels<'a>,
    /// Free addresses by zone.
    pub free_addresses: &'a [(&'a str, u32)],
}

impl Default for ClaimRow<'_> {
    fn default() -> Self {
        Self {
            node_pool: "default",
            weight: 1,
            stage: Stage::Packing,
            candidates: &[],
            requirements: &[],
            pods: PodsRow {
                count: 1,
                cpu_milli: 100,
                memory_mib: 128,
                ..PodsRow::default()
            },
            labels: &[],
            node_pool_labels: &[],
            free_addresses: &[],
        }
    }
}

/// The pods of a claim in a few numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodsRow {
    /// How many.
    pub count: u32,
    /// CPU requests.
    pub cpu_milli: u32,
    /// Memory requests.
    pub memory_mib: u32,
    /// Accelerator requests.
    pub gpus: u32,
    /// Highest priority.
    pub max_priority: i32,
    /// Those that carry do-not-disrupt.
    pub do_not_disrupt: u32,
    /// Those whose controller keeps two replicas or more.
    pub replicated: u32,
    /// Seconds that the longest waiting has been without a node.
    pub oldest_wait: u32,
}

/// A requirement, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct RequirementRow<'a> {
    /// Label key.
    pub key: &'a str,
    /// How the values are read.
    pub operator: Operator,
    /// Label values.
    pub values: &'a [&'a str],
    /// `minValues`; 0 without.
    pub min_values: u32,
}

impl ClaimRow<'_> {
    fn claim(&self, words: &mut Words) -> Claim {
        let PodsRow {
            count,
            cpu_milli,
            memory_mib,
            gpus,
            max_priority,
            do_not_disrupt,
            replicated,
            oldest_wait,
        } = self.pods;
        let requirements = self.requirements.iter().map(|it| Requirement {
            key: words.intern(it.key),
            operator: it.operator,
            values: it.values.iter().map(|value| words.intern(value)).collect(),
            min_values: it.min_values,
            extra: Vec::new(),
        });
        let requirements = requirements.collect();
        let free = self.free_addresses.iter();
        let free_addresses = free.map(|(zone, it)| (words.intern(zone), *it)).collect();
        Claim {
            nodepool: words.intern(self.node_pool),
            weight: self.weight,
            stage: self.stage,
            candidates: self.candidates.to_vec(),
            requirements,
            pods: PodsSummary {
                count,
                cpu_milli,
                memory_mib,
                gpus,
                max_priority,
                do_not_disrupt,
                replicated,
                oldest_wait,
                extra: Vec::new(),
            },
            labels: words.pairs(self.labels),
            nodepool_labels: words.pairs(self.node_pool_labels),
            free_addresses,
            extra: Vec::new(),
        }
    }
}
