//! The real EC2 instance types that the simulated region offers, read from an embedded table.
//!
//! 1,395 types with their shapes, the zones of four regions and the published us-east-1 Linux on-demand
//! prices. It must never invent a type: what the table lacks (a price outside us-east-1) is derived openly
//! in one place, `on_demand_price_per_hour`. Answers to Karpenter's generated `zz_generated.*` tables.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::OnceLock;

static TABLE: &[u8] = include_bytes!("../data/ec2-catalogue.tsv.gz");

/// Every instance type the simulator knows, by name.
#[derive(Debug, Default)]
pub struct Catalogue {
    types: BTreeMap<&'static str, CatalogueEntry>,
}

/// One EC2 instance type as the EC2 API describes it. Types share the lists of which many are equal.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogueEntry {
    /// For example `m5.large`.
    pub name: &'static str,
    /// EC2's architecture words, for example `x86_64`.
    pub architectures: &'static [&'static str],
    /// Virtual CPUs by default.
    pub vcpus: u32,
    /// Memory that EC2 advertises.
    pub memory_mib: u64,
    /// Whether it has no hypervisor.
    pub bare_metal: bool,
    /// Earns CPU credits (the t families).
    pub burstable: bool,
    /// EC2 still lists it as current.
    pub current_generation: bool,
    /// Encrypts traffic between instances.
    pub encryption_in_transit: bool,
    /// Whether its interfaces can carry IPv6.
    pub ipv6: bool,
    /// Can run Nitro enclaves.
    pub nitro_enclaves: bool,
    /// Can carry branch interfaces for pods.
    pub trunk_compatible: bool,
    /// `nitro`, `xen`, or empty on bare metal.
    pub hypervisor: &'static str,
    /// Who made the processor.
    pub cpu_manufacturer: &'static str,
    /// Sustained clock speed, where published.
    pub clock_ghz: Option<f64>,
    /// EBS bandwidth that always holds.
    pub ebs_baseline_mbps: Option<i32>,
    /// EBS bandwidth at most.
    pub ebs_maximum_mbps: Option<i32>,
    /// Local disks, where there are any.
    pub(crate) instance_store: Option<InstanceStore>,
    /// Interfaces over all cards.
    pub interfaces_max: i32,
    /// IPv4 addresses of one interface.
    pub ipv4_per_interface: i32,
    /// Elastic Fabric Adapters at most.
    pub efa_max: i32,
    /// The card that density counts.
    pub default_card: i32,
    /// Network cards in order.
    pub(crate) cards: &'static [NetworkCard],
    /// Graphics processors.
    pub(crate) gpus: &'static [Gpu],
    /// Inference chips, as (name, manufacturer, count).
    pub inference_accelerators: &'static [(&'static str, &'static str, i32)],
    /// Neuron chips, as (name, count, cores of each).
    pub neuron_devices: &'static [(&'static str, i32, i32)],
    /// `on-demand`, `spot`, `capacity-block`.
    pub usage_classes: &'static [&'static str],
    /// `hvm`, `paravirtual`.
    pub virtualization: &'static [&'static str],
    /// Branch interfaces for pods.
    pub branch_interfaces: u32,
    /// Letters of the zones by region.
    zones: &'static [(&'static str, &'static str)],
    /// By region.
    prices: Box<[(&'static str, f64)]>,
}

/// Local disks of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstanceStore {
    /// Whether the disks are reached through NVMe.
    pub nvme: bool,
    /// All disks together, decimal GB.
    pub total_gb: i64,
}

/// One network card of a type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NetworkCard {
    /// Bandwidth that always holds.
    pub baseline_gbps: f64,
    /// Bandwidth in bursts, Gbit/s.
    pub peak_gbps: f64,
    /// Interfaces the card takes.
    pub interfaces_max: i32,
}

/// One kind of graphics processor of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gpu {
    /// For example `T4`.
    pub name: &'static str,
    /// For example `NVIDIA`.
    pub manufacturer: &'static str,
    /// Devices; 0 for fractions of one.
    pub count: i32,
    /// Memory of one device.
    pub memory_mib: i32,
}

impl Catalogue {
    /// The embedded catalogue, read at the first call.
    pub fn embedded() -> &'static Self {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| {
            let mut text = String::new();
            // The table is part of the binary: a test reads it whole, so an error here is a broken build.
            let read = flate2::read::GzDecoder::new(TABLE).read_to_string(&mut text);
            assert!(read.is_ok(), "the embedded instance catalogue is readable");
            Self::parse(&text)
        })
    }

    /// A type by name.
    pub fn get(&self, name: &str) -> Option<&CatalogueEntry> {
        self.types.get(name)
    }

    /// All types in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &CatalogueEntry> {
        self.types.values()
    }

    fn parse(text: &str) -> Self {
        let mut reader = Reader::default();
        let types = text.lines().filter_map(|line| reader.read(line));
        Self {
            types: types.map(|t| (t.name, t)).collect(),
        }
    }
}

impl CatalogueEntry {
    /// Zone names of `region` in which the type is offered.
    pub fn zones(&self, region: &str) -> impl Iterator<Item = String> {
        let letters = self
            .zones
            .iter()
            .find(|(name, _)| *name == region)
            .map_or("", |row| row.1);
        let region = region.to_owned();
        letters
            .chars()
            .map(move |letter| format!("{region}{letter}"))
    }

    /// Whether the type is offered in this zone, for example `us-east-1a`.
    pub fn is_offered_in(&self, zone: &str) -> bool {
        let mut letters = self.zones.iter().filter_map(|(region, letters)| {
            zone.strip_prefix(region)
                .map(|letter| letters.contains(letter) && !letter.is_empty())
        });
        letters.any(|offered| offered)
    }

    /// Linux on-demand price. The published table covers us-east-1; other regions use its figures.
    pub fn on_demand_price_per_hour(&self, region: &str) -> Option<f64> {
        let of = |region: &str| {
            self.prices
                .iter()
                .find(|(name, _)| *name == region)
                .map(|p| p.1)
        };
        of(region).or_else(|| of("us-east-1"))
    }

    /// Interfaces of the default card, on which pod density depends.
    pub fn default_card_interfaces(&self) -> i32 {
        let index = usize::try_from(self.default_card).unwrap_or_default();
        self.cards
            .get(index)
            .map_or(self.interfaces_max, |card| card.interfaces_max)
    }

    /// Pods that get an address of their own from the VPC.
    pub(crate) fn eni_pods(&self) -> i64 {
        let interfaces = i64::from(self.default_card_interfaces());
        interfaces * (i64::from(self.ipv4_per_interface) - 1) + 2
    }

    /// `amd64` or `arm64`, the word of Kubernetes.
    pub(crate) fn kubernetes_architecture(&self) -> &'static str {
        if self.architectures.contains(&"arm64") {
            "arm64"
        } else {
            "amd64"
        }
    }

    /// Whether EC2 sells it this way.
    pub(crate) fn has_usage_class(&self, class: &str) -> bool {
        self.usage_classes.contains(&class)
    }
}

/// Words of the table, each kept once and for as long as the program runs.
#[derive(Debug, Default)]
struct Words(BTreeSet<&'static str>);

impl Words {
    fn of(&mut self, word: &str) -> &'static str {
        if let Some(known) = self.0.get(word) {
            return known;
        }
        let word: &'static str = Box::leak(word.into());
        self.0.insert(word);
        word
    }
}

/// Lists by the field that they were read from, each read once and kept for as long as the program runs.
type Lists<'t, T> = BTreeMap<&'t str, &'static [T]>;

/// Reads lines of the table.
#[derive(Debug, Default)]
struct Reader<'t> {
    words: Words,
    lists: Lists<'t, &'static str>,
    cards: Lists<'t, NetworkCard>,
    gpus: Lists<'t, Gpu>,
    inference_accelerators: Lists<'t, (&'static str, &'static str, i32)>,
    neuron_devices: Lists<'t, (&'static str, i32, i32)>,
    zones: Lists<'t, (&'static str, &'static str)>,
}

impl<'t> Reader<'t> {
    /// One line of the table; the converter in `examples/` writes the same order.
    fn read(&mut self, line: &'t str) -> Option<CatalogueEntry> {
        let Self {
            words,
            lists,
            cards,
            gpus,
            inference_accelerators,
            neuron_devices,
            zones,
        } = self;
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        let name = words.of(next()?);
        let architectures = shared(lists, next()?, ',', |word| Some(words.of(word)));
        let vcpus = next()?.parse().ok()?;
        let memory_mib = next()?.parse().ok()?;
        let flags = next()?;
        let hypervisor = words.of(next()?);
        let cpu_manufacturer = words.of(next()?);
        let clock_ghz = next()?.parse().ok();
        let (ebs_baseline, ebs_maximum) = next()?.split_once('/')?;
        let (nvme, total_gb) = next()?.split_once('/')?;
        Some(CatalogueEntry {
            name,
            architectures,
            vcpus,
            memory_mib,
            bare_metal: flags.contains('b'),
            burstable: flags.contains('u'),
            current_generation: flags.contains('g'),
            encryption_in_transit: flags.contains('e'),
            ipv6: flags.contains('6'),
            nitro_enclaves: flags.contains('n'),
            trunk_compatible: flags.contains('t'),
            hypervisor,
            cpu_manufacturer,
            clock_ghz,
            ebs_baseline_mbps: ebs_baseline.parse().ok(),
            ebs_maximum_mbps: ebs_maximum.parse().ok(),
            instance_store: total_gb.parse().ok().map(|total_gb| InstanceStore {
                nvme: nvme != "unsupported",
                total_gb,
            }),
            interfaces_max: next()?.parse().ok()?,
            ipv4_per_interface: next()?.parse().ok()?,
            efa_max: next()?.parse().ok()?,
            default_card: next()?.parse().ok()?,
            cards: shared(cards, next()?, ';', run_of_cards),
            gpus: shared(gpus, next()?, ';', |row| gpu(row, words)),
            inference_accelerators: shared(inference_accelerators, next()?, ';', |row| {
                accelerator(row, words)
            }),
            neuron_devices: shared(neuron_devices, next()?, ';', |row| neuron(row, words)),
            usage_classes: shared(lists, next()?, ',', |word| Some(words.of(word))),
            virtualization: shared(lists, next()?, ',', |word| Some(words.of(word))),
            branch_interfaces: next()?.parse().unwrap_or_default(),
            zones: shared(zones, next()?, ';', |row| {
                let (region, letters) = row.split_once('=')?;
                Some((words.of(region), words.of(letters)))
            }),
            prices: parts(next()?, ';')
                .filter_map(|row| row.split_once('='))
                .filter_map(|(region, price)| Some((words.of(region), price.parse().ok()?)))
                .collect(),
        })
    }
}

/// The list of a field, read if it is the first of its kind.
fn shared<'t, T: 'static, I: IntoIterator<Item = T>>(
    known: &mut Lists<'t, T>,
    field: &'t str,
    separator: char,
    read: impl FnMut(&'t str) -> I,
) -> &'static [T] {
    known.entry(field).or_insert_with(|| {
        let list: Box<[T]> = parts(field, separator).flat_map(read).collect();
        Box::leak(list)
    })
}

fn parts(field: &str, separator: char) -> impl Iterator<Item = &str> {
    field.split(separator).filter(|part| !part.is_empty())
}

fn run_of_cards(row: &str) -> Vec<NetworkCard> {
    let run = || {
        let (count, card) = row.split_once('*')?;
        let mut parts = card.split('/');
        let card = NetworkCard {
            baseline_gbps: parts.next()?.parse().ok()?,
            peak_gbps: parts.next()?.parse().ok()?,
            interfaces_max: parts.next()?.parse().ok()?,
        };
        Some(vec![card; count.parse().ok()?])
    };
    run().unwrap_or_default()
}

fn gpu(row: &str, words: &mut Words) -> Option<Gpu> {
    let mut parts = row.split('|');
    Some(Gpu {
        name: words.of(parts.next()?),
        manufacturer: words.of(parts.next()?),
        count: parts.next()?.parse().ok()?,
        memory_mib: parts.next()?.parse().ok()?,
    })
}

fn accelerator(row: &str, words: &mut Words) -> Option<(&'static str, &'static str, i32)> {
    let mut parts = row.split('|');
    Some((
        words.of(parts.next()?),
        words.of(parts.next()?),
        parts.next()?.parse().ok()?,
    ))
}

fn neuron(row: &str, words: &mut Words) -> Option<(&'static str, i32, i32)> {
    let mut parts = row.split('|');
    Some((
        words.of(parts.next()?),
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_table_is_whole() {
        let catalogue = Catalogue::embedded();
        assert_eq!(catalogue.iter().count(), 1395);
        let m5 = catalogue.get("m5.large").unwrap();
        assert_eq!((m5.vcpus, m5.memory_mib, m5.eni_pods()), (2, 8192, 29));
        assert_eq!(m5.on_demand_price_per_hour("us-east-1"), Some(0.096));
        assert!(m5.is_offered_in("us-east-1a") && !m5.is_offered_in("us-east-1"));
        let p5 = catalogue.get("p5.48xlarge").unwrap();
        assert_eq!(
            (p5.gpus[0].count, p5.cards.len(), p5.eni_pods()),
            (8, 32, 100)
        );
        let trn1 = catalogue.get("trn1.32xlarge").unwrap();
        assert_eq!(trn1.neuron_devices, [("Trainium", 16, 2)]);
    }
}
