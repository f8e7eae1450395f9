//! Instance types that a pool may buy, with their offerings, capacity and overhead.
//!
//! Values only; filtering belongs to the solver. Answers to Karpenter's `pkg/cloudprovider/types.go`.

use std::collections::BTreeMap;

use apis::resources::Resources;
use apis::{CapacityType, labels};

use crate::requirements::Requirements;

/// A kind of machine, as one pool sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceType {
    /// Name of the type, such as `m7i.large`.
    pub name: String,
    /// Labels of its nodes, well-known ones included even when empty.
    pub requirements: Requirements,
    /// Where and how it is sold.
    pub offerings: Vec<Offering>,
    /// All of the machine.
    pub capacity: Resources,
    /// Resources that pods do not get.
    pub overhead: Overhead,
    /// Volumes that may be attached, by CSI driver; an absent driver is unlimited.
    pub volume_attachment_limits: BTreeMap<String, u32>,
}

/// Resources withheld from pods.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overhead {
    /// Resources kept for the kubelet and the container runtime.
    pub kube_reserved: Resources,
    /// Resources kept for the operating system.
    pub system_reserved: Resources,
    /// Kept free by eviction.
    pub eviction_threshold: Resources,
}

/// Instance type, zone and capacity type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferingKey {
    /// Name of the type.
    pub instance_type: String,
    pub zone: Option<String>,
    /// None where its word is one that nobody knows.
    pub capacity_type: Option<CapacityType>,
}

impl Overhead {
    /// The sum of the three.
    pub fn total(&self) -> Resources {
        let Self {
            kube_reserved,
            system_reserved,
            eviction_threshold,
        } = self;
        kube_reserved
            .clone()
            .add(system_reserved)
            .add(eviction_threshold)
    }
}

/// Whether an offering can be bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// It can be bought now. A full but healthy reservation stays available.
    Now,
    /// Not at the moment, or not by this pool.
    Unavailable,
    /// Nothing but a price is wanting: nobody told one, so `price_per_hour` is 0. A NodeOverlay with a `price` makes it
    /// available.
    NoPrice,
}

/// One way to buy an instance type.
#[derive(Debug, Clone, PartialEq)]
pub struct Offering {
    /// Zone, capacity type, and the provider's own (zone id, reservation id).
    pub requirements: Requirements,
    /// USD an hour, overlays applied.
    pub price_per_hour: f64,
    /// USD an hour of the on-demand offering of the same type, when known.
    pub on_demand_price_per_hour: Option<f64>,
    /// Whether it can be bought.
    pub availability: Availability,
    /// Free slots of a reservation, 0 otherwise.
    pub reservation_capacity: u32,
    /// Insufficient-capacity answers in the observation window.
    pub ice_count: u32,
    /// Seconds since the latest one.
    pub ice_age_seconds: Option<u32>,
    /// Interruptions to expect of a node in 30 days, when known.
    pub interruption_rate: Option<f64>,
}

impl Offering {
    /// One that can be bought now, for `price_per_hour` USD, and of which nothing else is known.
    pub fn new(requirements: Requirements, price_per_hour: f64) -> Self {
        Self {
            requirements,
            price_per_hour,
            on_demand_price_per_hour: None,
            availability: Availability::Now,
            reservation_capacity: 0,
            ice_count: 0,
            ice_age_seconds: None,
            interruption_rate: None,
        }
    }

    /// The zone, where it is sold in one.
    pub fn zone(&self) -> Option<&str> {
        self.label(labels::TOPOLOGY_ZONE)
    }

    /// How it is bought; none where it says nothing of it, or what nobody knows.
    pub fn capacity_type(&self) -> Option<CapacityType> {
        CapacityType::parse(self.label(labels::CAPACITY_TYPE)?)
    }

    /// The id of the capacity reservation that it belongs to.
    pub fn reservation_id(&self) -> Option<&str> {
        self.label(labels::CAPACITY_RESERVATION_ID)
    }

    /// Whether it belongs to a capacity reservation.
    pub fn is_reserved(&self) -> bool {
        self.capacity_type() == Some(CapacityType::Reserved)
    }

    /// Whether it can be bought now; a reservation may be full.
    pub fn is_available(&self) -> bool {
        match self.availability {
            Availability::Now => true,
            Availability::Unavailable | Availability::NoPrice => false,
        }
    }

    /// Whether a launch would get it: available, and with a slot left if reserved.
    pub fn is_launchable(&self) -> bool {
        self.is_available() && (!self.is_reserved() || self.reservation_capacity > 0)
    }

    /// Whether it is a reservation that is sound and has no slot left.
    pub fn is_full(&self) -> bool {
        self.is_available() && !self.is_launchable()
    }

    /// The value of a label that its nodes will have, where it is known before they come.
    pub fn label(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.find(key)?;
        let mut values = (!requirement.is_complement()).then(|| requirement.values())?;
        values.next()
    }
}

impl InstanceType {
    /// Resources that pods (daemons included) may use. Huge pages come out of memory.
    pub fn allocatable(&self) -> Resources {
        let names = self.capacity.iter().map(|(name, _)| name);
        names
            .map(|name| (name, self.allocatable_of(name)))
            .collect()
    }

    /// Amount of one resource that pods (daemons included) may use.
    pub fn allocatable_of(&self, resource: &str) -> i64 {
        let Overhead {
            kube_reserved,
            system_reserved,
            eviction_threshold,
        } = &self.overhead;
        let withheld = [kube_reserved, system_reserved, eviction_threshold]
            .map(|list| list.get(resource))
            .into_iter()
            .fold(0_i64, i64::saturating_add);
        let left = self.capacity.get(resource).saturating_sub(withheld).max(0);
        if resource != labels::RESOURCE_MEMORY {
            return left;
        }
        let huge_pages = self.capacity.iter();
        let huge_pages = huge_pages.filter(|(name, _)| name.starts_with("hugepages-"));
        let huge_pages = huge_pages.fold(0_i64, |sum, (_, amount)| sum.saturating_add(amount));
        left.saturating_sub(huge_pages).max(0)
    }

    /// The offering of a zone and capacity type; of several reservations there, the first.
    pub fn offering(&self, zone: &str, capacity_type: CapacityType) -> Option<&Offering> {
        self.offerings
            .iter()
            .find(|o| o.zone() == Some(zone) && o.capacity_type() == Some(capacity_type))
    }

    /// The generation number that breaks price ties, 0 when unknown.
    pub fn generation(&self) -> u32 {
        self.requirements
            .find(labels::INSTANCE_GENERATION)
            .and_then(|r| r.values().next())
            .and_then(|v| v.parse().ok())
            .unwrap_or(0)
    }
}
