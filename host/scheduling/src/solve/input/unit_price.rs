//! Worth of a unit of CPU and of memory to a class of pods: the dual prices of buying its whole demand from the
//! offerings open to it.
//!
//! The packer compares nodes by what their pods are worth, so a pod that could live on cheap offerings never pays for
//! expensive ones.

use super::bitset::BitSet;
use super::pool_rows::RowValue;
use super::pool_table::PoolTable;
use super::vocabulary::add_times;

const CPU: usize = 0;
const MEMORY: usize = 1;
/// The least share of a demand's worth that each resource has: what nobody is short of is not worth nothing.
const SHARE_MIN: f64 = 0.001;
/// Lines looked at before the best mix counts as found. A few do; more would be for rounding's sake.
const STEPS_MAX: usize = 64;

/// Dollars an hour per thousandth of each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct UnitPrice {
    pub(crate) cpu: f64,
    pub(crate) memory: f64,
}

impl UnitPrice {
    /// Worth of these amounts, effective USD an hour.
    pub(crate) fn of(self, amounts: &[i64]) -> f64 {
        self.cpu * amounts[CPU] as f64 + self.memory * amounts[MEMORY] as f64
    }

    /// Worth of a whole node, effective USD an hour.
    pub(crate) fn of_value(self, value: &RowValue) -> f64 {
        self.cpu * value.cpu + self.memory * value.memory
    }
}

/// What pods can use of a node: of each resource what all of them ask for, and what goes along with the other one in
/// the pod that asks for most of it beside that. A node of 77 MiB has no CPU to sell to pods of a gibibyte, however
/// cheap it is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Usable {
    /// CPU and memory of all pods.
    pub(crate) demand: [i64; 2],
    cpu_per_memory: f64,
    memory_per_cpu: f64,
}

impl Usable {
    /// Adds so many pods of these requests.
    pub(crate) fn add(&mut self, requests: &[i64], count: usize) {
        let pods = i64::try_from(count).unwrap_or(i64::MAX);
        add_times(&mut self.demand, requests, pods);
        let (cpu, memory) = (requests[CPU] as f64, requests[MEMORY] as f64);
        if cpu > 0.0 {
            self.cpu_per_memory = self.cpu_per_memory.max(cpu / memory);
        }
        if memory > 0.0 {
            self.memory_per_cpu = self.memory_per_cpu.max(memory / cpu);
        }
    }

    /// The part of a node that they can use.
    pub(crate) fn of(&self, value: &RowValue) -> RowValue {
        let cpu = value.cpu.min(self.demand[CPU] as f64);
        let memory = value.memory.min(self.demand[MEMORY] as f64);
        RowValue {
            cpu: cpu.min(memory * self.cpu_per_memory),
            memory: memory.min(cpu * self.memory_per_cpu),
            ..*value
        }
    }
}

/// Prices per unit that no row undercuts and that make the demand worth most: the dual of covering it.
pub(crate) fn unit_price(
    table: &PoolTable,
    rows: &BitSet,
    demand: &[i64],
    usable: &Usable,
) -> UnitPrice {
    let (cpu, memory) = (demand[CPU].max(1) as f64, demand[MEMORY].max(1) as f64);
    let buyable = rows.iter().filter(|row| !table.rows[*row].is_reserved());
    let offers = buyable.map(|row| {
        let value = usable.of(table.value_of_row(row));
        (
            value.cpu / cpu / value.cost,
            value.memory / memory / value.cost,
        )
    });
    let offers: Vec<(f64, f64)> = offers.collect();
    let Some(Mix { cpu_share, worth }) = best_mix(&offers) else {
        return UnitPrice::default();
    };
    UnitPrice {
        cpu: cpu_share * worth / cpu,
        memory: (1.0 - cpu_share) * worth / memory,
    }
}

/// How the worth of a demand is shared between CPU and memory, and what all of it is worth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) cpu_share: f64,
    pub(crate) worth: f64,
}

/// The mix that makes a demand worth most. Each offer is what a dollar an hour buys of the demand's CPU and memory, as
/// shares of the whole; none undercuts what comes of it.
///
/// With a share λ of the demand's worth in CPU, the best offer gives max(λ·c + (1−λ)·m) per dollar; the dual takes the
/// λ for which that is least. It is where the last falling line of this upper envelope meets the first rising one.
pub(crate) fn best_mix(offers: &[(f64, f64)]) -> Option<Mix> {
    let gives = |(cpu, memory): (f64, f64), share: f64| share * cpu + (1.0 - share) * memory;
    let best = |share: f64| {
        let offers = offers.iter().copied();
        offers.max_by(|a, b| gives(*a, share).total_cmp(&gives(*b, share)))
    };
    let rises = |(cpu, memory): (f64, f64)| cpu - memory;
    let (low, high) = (SHARE_MIN, 1.0 - SHARE_MIN);
    let (mut falling, mut rising) = (best(low)?, best(high)?);
    let mut share = if rises(falling) >= 0.0 { low } else { high };
    if rises(falling) < 0.0 && rises(rising) > 0.0 {
        for _ in 0..STEPS_MAX {
            let at_once = rises(rising) - rises(falling);
            share = ((falling.1 - rising.1) / at_once).clamp(low, high);
            let top = best(share)?;
            if gives(top, share) <= gives(falling, share) * (1.0 + 1e-9) {
                break;
            }
            if rises(top) < 0.0 {
                falling = top;
            } else {
                rising = top;
            }
        }
    }
    Some(Mix {
        cpu_share: share,
        worth: 1.0 / gives(best(share)?, share).max(1e-300),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: i64 = 1 << 30;

    /// CPU and GiB of a node, and what pods use of it.
    struct UsableCase {
        name: &'static str,
        pods: Vec<([i64; 2], usize)>,
        node: (f64, f64),
        used: (f64, f64),
    }

    #[test]
    fn pods_use_no_more_of_a_node_than_they_ask_for() {
        let web = ([500, GIB], 40);
        let cache = ([250, 6 * GIB], 10);
        let case = |name, pods: &[_], node, used| UsableCase {
            name,
            pods: pods.to_vec(),
            node,
            used,
        };
        let bytes = |gib: f64| gib * GIB as f64;
        for it in [
            case("no memory to go along", &[web], (2000.0, 0.1), (50.0, 0.1)),
            case("no CPU to go along", &[web], (1000.0, 64.0), (1000.0, 2.0)),
            case("more asks", &[web, cache], (1000.0, 64.0), (1000.0, 24.0)),
            case("few", &[cache], (128_000.0, 2048.0), (2500.0, 60.0)),
            case("no CPU", &[([0, GIB], 3)], (4000.0, 8.0), (0.0, 3.0)),
            case("best effort", &[([0, 0], 5)], (4000.0, 8.0), (0.0, 0.0)),
        ] {
            let mut usable = Usable::default();
            for (requests, count) in &it.pods {
                usable.add(requests, *count);
            }
            let used = usable.of(&RowValue {
                cpu: it.node.0,
                memory: bytes(it.node.1),
                cost: 1.0,
                size: 0,
            });
            let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.max(1.0);
            let (cpu, memory) = it.used;
            assert!(is_near(used.cpu, cpu), "{}: {used:?}", it.name);
            assert!(is_near(used.memory, bytes(memory)), "{}: {used:?}", it.name);
        }
    }

    #[test]
    fn the_mix_is_where_the_best_of_all_offers_is_least() {
        type MixCase<'a> = (&'a str, &'a [(f64, f64)], f64, f64);
        let cases: [MixCase<'_>; 5] = [
            ("one is short of each", &[(3.0, 1.0), (1.0, 3.0)], 0.5, 0.5),
            (
                "one of both",
                &[(3.0, 1.0), (1.0, 4.0), (2.0, 2.5)],
                0.6,
                1.0 / 2.2,
            ),
            (
                "none is in between",
                &[(4.0, 1.0), (0.0, 2.5)],
                3.0 / 11.0,
                5.5 / 10.0,
            ),
            (
                "CPU is plenty",
                &[(3.0, 1.0), (4.0, 2.0)],
                SHARE_MIN,
                1.0 / 2.002,
            ),
            (
                "memory is plenty",
                &[(1.0, 3.0)],
                1.0 - SHARE_MIN,
                1.0 / 1.002,
            ),
        ];
        for (name, offers, share, worth) in cases {
            let mix = best_mix(offers).unwrap();
            assert!((mix.worth - worth).abs() < 1e-9, "{name}: {mix:?}");
            assert!((mix.cpu_share - share).abs() < 1e-9, "{name}: {mix:?}");
        }
        assert!(best_mix(&[]).is_none());
    }
}
