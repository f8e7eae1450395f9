//! Instance types in the format of Karpenter's kwok provider.
//!
//! A type with a fault is left out and named. Answers to Karpenter's `kwok/cloudprovider`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::resources::Resources;
use apis::{CapacityType, NodePool, NodeSelectorRequirementWithMinValues, labels};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use scheduling::instance_type::{Availability, InstanceType, Offering, Overhead};
use scheduling::requirements::{Operator, Requirement, Requirements};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::Value;

use crate::check;
use crate::fault::{FileError, ObjectFault, ObjectFaults};
use crate::typed::{Misread, excerpt, parse};

/// CPU that the kwok provider withholds from pods.
const CPU_MILLIS_RESERVED: i64 = 100;
const MEMORY_MILLIS_RESERVED: i64 = 10 * 1024 * 1024 * 1000;
/// Dearer than anything; a price beyond is a mistake in the file.
const PRICE_PER_HOUR_MAX: f64 = 1e6;

/// The types of a file.
#[derive(Debug, Clone, Default)]
pub struct InstanceTypes {
    /// The faultless ones, in the order of the file.
    pub types: Arc<[Arc<InstanceType>]>,
    /// Faults of the others.
    pub faults: Vec<ObjectFault>,
    /// Keys of labels of theirs that are not well known.
    keys: BTreeSet<String>,
}

#[derive(Deserialize)]
struct WireType {
    name: String,
    #[serde(default)]
    architecture: Option<String>,
    #[serde(default, rename = "operatingSystems")]
    operating_systems: Option<Vec<String>>,
    resources: BTreeMap<String, Quantity>,
    #[serde(default)]
    offerings: Option<Vec<WireOffering>>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct WireOffering {
    #[serde(rename = "Price", alias = "price")]
    price: f64,
    #[serde(rename = "Available", alias = "available")]
    available: bool,
    #[serde(default, rename = "Requirements", alias = "requirements")]
    requirements: Option<Vec<WireRequirement>>,
    #[serde(default, rename = "ReservationCapacity", alias = "reservationCapacity")]
    reservation_capacity: Option<u32>,
}

#[derive(Deserialize)]
struct WireRequirement {
    key: String,
    operator: String,
    #[serde(default)]
    values: Option<Vec<String>>,
}

impl InstanceTypes {
    /// Reads a file of instance types.
    pub fn read(text: &str) -> Result<Self, FileError> {
        // A type at a time, so that a large catalogue costs little more than its text.
        let mut json = serde_json::Deserializer::from_str(text);
        if let Ok(gathering) = json.deserialize_seq(TypesVisitor)
            && json.end().is_ok()
        {
            return Ok(gathering.finish());
        }
        let value = serde_json::from_str(text);
        Self::from_value(value.map_err(|it| FileError::Syntax(it.to_string()))?)
    }

    /// Reads instance types that are in memory already.
    pub fn from_value(value: Value) -> Result<Self, FileError> {
        let Value::Array(list) = value else {
            return Err(FileError::Form {
                path: "$".to_owned(),
                expected: "a list of instance types".to_owned(),
                found: excerpt(&value),
            });
        };
        let mut gathering = Gathering::default();
        for value in list {
            match parse::<WireType>(&value) {
                Ok(wire) => gathering.add(*wire),
                Err(misread) => {
                    gathering.misread(value["name"].as_str().unwrap_or_default(), misread);
                }
            }
        }
        Ok(gathering.finish())
    }

    /// Labels of the types count as known: pods may ask for them of any pool that buys these types.
    pub fn define_labels(&self, pool: &mut Arc<NodePool>) {
        let template = &pool.spec.template;
        let is_defined = |key: &str| {
            template.metadata.labels.contains_key(key)
                || template.spec.requirements.iter().any(|it| it.key == key)
        };
        let new: Vec<&String> = self.keys.iter().filter(|key| !is_defined(key)).collect();
        if new.is_empty() {
            return;
        }
        let exists = |key: &String| {
            let none: [String; 0] = [];
            NodeSelectorRequirementWithMinValues::new(key, Operator::Exists, none)
        };
        let new: Vec<_> = new.into_iter().map(exists).collect();
        Arc::make_mut(pool)
            .spec
            .template
            .spec
            .requirements
            .extend(new);
    }
}

/// Takes types in, one by one.
#[derive(Default)]
struct Gathering {
    index: usize,
    types: Vec<Arc<InstanceType>>,
    names: BTreeSet<String>,
    faults: Vec<ObjectFault>,
    /// Thousands of offerings are sold in a handful of markets, which they share.
    markets: BTreeSet<Requirements>,
}

impl Gathering {
    fn add(&mut self, wire: WireType) {
        let mut faults = ObjectFaults::default();
        let name = wire.name.clone();
        if !self.names.insert(name.clone()) {
            faults.push("name", format!("{name:?}: is the name of an earlier type"));
        }
        let parsed = instance_type(wire, &mut faults, &mut self.markets);
        if faults.0.is_empty() {
            self.types.push(Arc::new(parsed));
        }
        self.blame(&name, faults);
    }

    fn misread(&mut self, name: &str, Misread { field, message }: Misread) {
        let mut faults = ObjectFaults::default();
        faults.push(field, message);
        self.blame(name, faults);
    }

    fn blame(&mut self, name: &str, faults: ObjectFaults) {
        let place = format!("instanceTypes[{}]", self.index);
        self.index += 1;
        let faults = faults.0.into_iter();
        self.faults
            .extend(faults.map(|(field, message)| ObjectFault {
                place: place.clone(),
                object: name.to_owned(),
                field,
                message,
            }));
    }

    fn finish(self) -> InstanceTypes {
        let keys = self.types.iter().flat_map(|it| it.requirements.keys());
        let keys = keys.filter(|key| !labels::is_well_known(key));
        InstanceTypes {
            keys: keys.map(str::to_owned).collect(),
            types: self.types.into(),
            faults: self.faults,
        }
    }
}

struct TypesVisitor;

impl<'de> Visitor<'de> for TypesVisitor {
    type Value = Gathering;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of instance types")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Gathering, A::Error> {
        let mut gathering = Gathering::default();
        while let Some(wire) = sequence.next_element::<WireType>()? {
            gathering.add(wire);
        }
        Ok(gathering)
    }
}

fn instance_type(
    wire: WireType,
    faults: &mut ObjectFaults,
    markets: &mut BTreeSet<Requirements>,
) -> InstanceType {
    let WireType {
        name,
        architecture,
        operating_systems,
        resources,
        offerings,
        labels: further,
    } = wire;
    if name.is_empty() {
        faults.push("name", "is not set");
    }
    let mut requirements = Requirements::new();
    let mut add = |key: &str, values: &[&str]| {
        requirements.add(Requirement::new(key, Operator::In, values.iter().copied()));
    };
    add(labels::INSTANCE_TYPE, &[&name]);
    add(
        labels::ARCH,
        &[architecture.as_deref().unwrap_or(labels::ARCH_AMD64)],
    );
    let systems = operating_systems.unwrap_or_else(|| vec!["linux".to_owned()]);
    add(
        labels::OS,
        &systems.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    for (key, value) in further.iter().flatten() {
        add(key, &[value]);
    }
    let offerings = offerings.unwrap_or_default();
    if offerings.is_empty() {
        faults.push("offerings", "is empty: the type cannot be bought");
    }
    let offerings = (offerings.into_iter().enumerate())
        .map(|(index, it)| {
            let mut offering = offering(&format!("offerings[{index}]"), it, faults);
            match markets.get(&offering.requirements) {
                Some(known) => offering.requirements.clone_from(known),
                None => {
                    markets.insert(offering.requirements.clone());
                }
            }
            offering
        })
        .collect();
    InstanceType {
        name,
        requirements,
        offerings,
        capacity: capacity(&resources, faults),
        overhead: Overhead {
            kube_reserved: [
                (labels::RESOURCE_CPU, CPU_MILLIS_RESERVED),
                (labels::RESOURCE_MEMORY, MEMORY_MILLIS_RESERVED),
            ]
            .into_iter()
            .collect(),
            ..Overhead::default()
        },
        volume_attachment_limits: BTreeMap::new(),
    }
}

fn capacity(resources: &BTreeMap<String, Quantity>, faults: &mut ObjectFaults) -> Resources {
    check::quantities("resources", Some(resources), faults);
    Resources::from_list(resources)
}

fn offering(path: &str, wire: WireOffering, faults: &mut ObjectFaults) -> Offering {
    let WireOffering {
        price,
        available,
        requirements,
        reservation_capacity,
    } = wire;
    // A comparison with NaN is false.
    if !(0.0..=PRICE_PER_HOUR_MAX).contains(&price) {
        let message = format!("{price}: must be between 0 and {PRICE_PER_HOUR_MAX} USD an hour");
        faults.push(format!("{path}.Price"), message);
    }
    let mut parsed = Requirements::new();
    for (index, it) in requirements.into_iter().flatten().enumerate() {
        let path = format!("{path}.Requirements[{index}]");
        let values = it.values.unwrap_or_default();
        match Operator::parse(&it.operator) {
            Some(Operator::In) if !values.is_empty() => {
                let values = values.iter().map(String::as_str);
                parsed.add(Requirement::new(&it.key, Operator::In, values));
            }
            Some(Operator::In) => faults.push(format!("{path}.values"), "is empty"),
            Some(operator) => {
                let values = values.iter().map(String::as_str);
                parsed.add(Requirement::new(&it.key, operator, values));
            }
            None => {
                let message = format!("{:?}: unknown operator", it.operator);
                faults.push(format!("{path}.operator"), message);
            }
        }
    }
    let offering = Offering {
        requirements: parsed,
        price_per_hour: price,
        on_demand_price_per_hour: None,
        availability: if available {
            Availability::Now
        } else {
            Availability::Unavailable
        },
        reservation_capacity: reservation_capacity.unwrap_or_default(),
        ice_count: 0,
        ice_age_seconds: None,
        interruption_rate: None,
    };
    for key in [labels::TOPOLOGY_ZONE, labels::CAPACITY_TYPE] {
        if offering.label(key).is_none_or(str::is_empty) {
            let message = format!("nothing says its {key}");
            faults.push(format!("{path}.Requirements"), message);
        }
    }
    let word = offering.label(labels::CAPACITY_TYPE).unwrap_or_default();
    if !word.is_empty() && offering.capacity_type().is_none() {
        let message = format!("{word:?}: capacity is bought on-demand, spot or reserved");
        faults.push(format!("{path}.Requirements"), message);
    }
    if offering.capacity_type() == Some(CapacityType::Reserved) && reservation_capacity.is_none() {
        let message = "is not set: of reserved capacity it says how many instances may be launched";
        faults.push(format!("{path}.ReservationCapacity"), message);
    }
    offering
}
