//! Instance types of the cases: the standard ones, ladders of equal steps, and those a case writes itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use apis::labels;
use apis::resources::Resources;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use scheduling::instance_type::{Availability, InstanceType, Offering, Overhead};
use scheduling::requirements::{Operator, Requirement, Requirements};
use serde::Deserialize;

use crate::case::{Named, Text};
use crate::words;

/// Zones in which a type is sold on demand unless it says otherwise; spot is sold in the first two.
const ZONES: [&str; 3] = ["a", "b", "c"];
const SPOT_ZONES: usize = 2;
/// Spot costs this share of the on-demand price.
const SPOT_SHARE: f64 = 0.4;
const CPU_PRICE_PER_HOUR: f64 = 0.04;
const GIB_PRICE_PER_HOUR: f64 = 0.005;
const GPU_PRICE_PER_HOUR: f64 = 1.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// The standard types, as a case would write them.
const STANDARD: &str = include_str!("../cases/types.yaml");

/// Which types there are.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
pub enum TypesGiven {
    /// The standard ones.
    #[default]
    Standard,
    /// Some of the standard ones, or `ladder 10`: `step-1` to `step-10`, each a CPU, 2 GiB and 10 pods larger.
    Words(Vec<String>),
    /// Types of the case's own; those without fields are taken from the standard ones.
    Own(Named<Option<TypeGiven>>),
}

/// An instance type.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TypeGiven {
    /// CPUs.
    pub cpu: Text,
    /// Memory.
    pub memory: Text,
    /// Pod slots; 110 when absent.
    #[serde(default)]
    pub pods: Option<u32>,
    /// Further resources.
    #[serde(default)]
    pub resources: Named<Text>,
    /// Architecture; amd64 when absent.
    #[serde(default)]
    pub arch: Option<String>,
    /// Operating system; linux when absent.
    #[serde(default)]
    pub os: Option<String>,
    /// On-demand price; by CPU, memory and GPUs when absent.
    #[serde(default)]
    pub price: Option<f64>,
    /// Further labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Reserved for the kubelet.
    #[serde(default)]
    pub overhead: Named<Text>,
    /// Offerings in words: `on-demand a 0.5`, `spot b 0.1`, `reserved a 0.01 id=cr-1 free=2`, and `gone` at the end
    /// when it cannot be had.
    #[serde(default)]
    pub offerings: Option<Vec<String>>,
    /// Volumes that may be attached, by driver.
    #[serde(default)]
    pub attach: BTreeMap<String, u32>,
}

/// The types of a case by name.
pub type Types = BTreeMap<String, Arc<InstanceType>>;

/// Builds the types of a case.
pub fn build(given: &TypesGiven) -> Result<Types> {
    let standard: Named<TypeGiven> = serde_saphyr::from_str(STANDARD)?;
    let mut definitions: Named<TypeGiven> = BTreeMap::new();
    match given {
        TypesGiven::Standard => definitions = standard,
        TypesGiven::Words(list) => {
            for words in list {
                if let Some(count) = words.strip_prefix("ladder ") {
                    let count: u32 = count.parse().with_context(|| words.clone())?;
                    definitions.extend((1..=count).map(step));
                } else {
                    let definition = standard
                        .get(words)
                        .with_context(|| format!("no type {words:?}"))?;
                    definitions.insert(words.clone(), definition.clone());
                }
            }
        }
        TypesGiven::Own(own) => {
            for (name, definition) in own {
                let known = || standard.get(name).cloned();
                let definition = definition
                    .clone()
                    .or_else(known)
                    .with_context(|| format!("type {name:?} has no fields"))?;
                definitions.insert(name.clone(), definition);
            }
        }
    }
    definitions
        .iter()
        .map(|(name, definition)| Ok((name.clone(), Arc::new(instance_type(name, definition)?))))
        .collect()
}

fn step(size: u32) -> (String, TypeGiven) {
    let definition = TypeGiven {
        cpu: Text(size.to_string()),
        memory: Text(format!("{}Gi", 2 * size)),
        pods: Some(10 * size),
        ..TypeGiven::default()
    };
    // With zeros in front, the order of names is the order of sizes.
    (format!("step-{size:03}"), definition)
}

/// Parses amounts.
pub fn amounts(list: &Named<Text>) -> Result<Resources> {
    let list = list
        .iter()
        .map(|(name, amount)| (name.clone(), Quantity(amount.0.clone())))
        .collect();
    Ok(Resources::parse(&list)?)
}

fn instance_type(name: &str, given: &TypeGiven) -> Result<InstanceType> {
    let mut capacity = amounts(&given.resources)?;
    let sizes: Named<Text> = [
        ("cpu".to_owned(), given.cpu.clone()),
        ("memory".to_owned(), given.memory.clone()),
        (
            "pods".to_owned(),
            Text(given.pods.unwrap_or(110).to_string()),
        ),
    ]
    .into();
    capacity.add_assign(&amounts(&sizes)?);
    let offerings = offerings(given, &capacity).with_context(|| format!("type {name:?}"))?;
    Ok(InstanceType {
        name: name.to_owned(),
        requirements: requirements(name, given, &capacity, &offerings),
        offerings,
        overhead: Overhead {
            kube_reserved: amounts(&given.overhead)?,
            ..Overhead::default()
        },
        capacity,
        volume_attachment_limits: given.attach.clone(),
    })
}

fn requirements(
    name: &str,
    given: &TypeGiven,
    capacity: &Resources,
    offerings: &[Offering],
) -> Requirements {
    let (family, size) = name.split_once('.').unwrap_or((name, ""));
    let cpus = (capacity.cpu_millis() / 1000).to_string();
    let mebibytes = (capacity.memory_bytes() / (1024 * 1024)).to_string();
    let arch = given.arch.as_deref().unwrap_or(labels::ARCH_AMD64);
    let os = given.os.as_deref().unwrap_or(labels::OS_LINUX);
    let mut known: BTreeMap<&str, &str> = [
        (labels::INSTANCE_TYPE, name),
        (labels::ARCH, arch),
        (labels::OS, os),
        (labels::INSTANCE_FAMILY, family),
        (labels::INSTANCE_CPU, &cpus),
        (labels::INSTANCE_MEMORY, &mebibytes),
    ]
    .into();
    if !size.is_empty() {
        known.insert(labels::INSTANCE_SIZE, size);
    }
    for (key, value) in &given.labels {
        known.insert(words::key(key), value);
    }
    let mut requirements: Requirements = known
        .iter()
        .map(|(key, value)| Requirement::new(key, Operator::In, [*value]))
        .collect();
    for key in [labels::TOPOLOGY_ZONE, labels::CAPACITY_TYPE] {
        let values: Vec<&str> = offerings
            .iter()
            .filter_map(|it| it.requirements.find(key)?.values().next())
            .collect();
        requirements.add(Requirement::new(key, Operator::In, values));
    }
    // A type answers for every well-known label, if only by not having it.
    for key in labels::WELL_KNOWN_CORE
        .iter()
        .chain(&labels::WELL_KNOWN_AWS)
    {
        let is_pools = [labels::NODEPOOL, labels::TOPOLOGY_REGION].contains(key);
        let is_reservation = *key == labels::CAPACITY_RESERVATION_ID;
        if !requirements.has(key) && !is_pools && !is_reservation {
            requirements.add(Requirement::new(key, Operator::DoesNotExist, []));
        }
    }
    let reservations: Vec<&str> = offerings
        .iter()
        .filter_map(Offering::reservation_id)
        .collect();
    if reservations.is_empty() {
        let none = Requirement::new(labels::CAPACITY_RESERVATION_ID, Operator::DoesNotExist, []);
        requirements.add(none);
    } else {
        let id = labels::CAPACITY_RESERVATION_ID;
        requirements.add(Requirement::new(id, Operator::In, reservations));
    }
    requirements
}

fn offerings(given: &TypeGiven, capacity: &Resources) -> Result<Vec<Offering>> {
    let gpus = capacity.get(labels::RESOURCE_NVIDIA_GPU) as f64 / 1000.0;
    let by_size = CPU_PRICE_PER_HOUR * capacity.cpu_millis() as f64 / 1000.0
        + GIB_PRICE_PER_HOUR * capacity.memory_bytes() as f64 / GIB
        + GPU_PRICE_PER_HOUR * gpus;
    let price = given.price.unwrap_or(by_size);
    let Some(list) = &given.offerings else {
        let on_demand = ZONES.iter().map(|zone| offering("on-demand", zone, price));
        let spot = ZONES[..SPOT_ZONES]
            .iter()
            .map(|zone| offering("spot", zone, price * SPOT_SHARE));
        return Ok(on_demand.chain(spot).collect());
    };
    list.iter().map(|it| offering_of(it)).collect()
}

fn offering(capacity_type: &str, zone: &str, price_per_hour: f64) -> Offering {
    let requirements = [
        Requirement::new(labels::CAPACITY_TYPE, Operator::In, [capacity_type]),
        Requirement::new(labels::TOPOLOGY_ZONE, Operator::In, [zone]),
    ];
    Offering::new(requirements.into_iter().collect(), price_per_hour)
}

fn offering_of(text: &str) -> Result<Offering> {
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let [capacity_type, zone, price, rest @ ..] = tokens.as_slice() else {
        bail!("offering {text:?} needs a capacity type, a zone and a price");
    };
    let mut made = offering(capacity_type, zone, price.parse().context(text.to_owned())?);
    for token in rest {
        match token.split_once('=') {
            Some(("id", id)) => {
                let key = labels::CAPACITY_RESERVATION_ID;
                made.requirements
                    .add(Requirement::new(key, Operator::In, [id]));
            }
            Some(("free", slots)) => {
                made.reservation_capacity = slots.parse().context(text.to_owned())?;
            }
            None if *token == "gone" => made.availability = Availability::Unavailable,
            Some(_) | None => bail!("cannot read {token:?} of offering {text:?}"),
        }
    }
    if !made.requirements.has(labels::CAPACITY_RESERVATION_ID) {
        let key = labels::CAPACITY_RESERVATION_ID;
        made.requirements
            .add(Requirement::new(key, Operator::DoesNotExist, []));
    }
    Ok(made)
}
