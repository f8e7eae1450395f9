//! The offerings of an instance type: where and how it can be bought, at what price, and whether now.
//!
//! Availability is a conjunction of facts told by others; nothing is decided here. Answers to `offering.go` and
//! `base_resolver.go` in `pkg/providers/instancetype/offering` of the AWS provider.

use std::collections::{BTreeMap, BTreeSet};

use apis::ec2nodeclass::{CapacityReservation, CapacityReservationState};
use apis::{CapacityType, labels};
use jiff::Timestamp;
use scheduling::instance_type::{Availability, Offering};
use scheduling::requirements::{Operator, Requirement, Requirements};

use crate::capacity_reservation::CapacityReservationProvider;
use crate::instance_type::base::Base;
use crate::instance_type::shape::{ClassShape, ClassZone};
use crate::interruption_history::InterruptionHistory;
use crate::pricing::PricingProvider;
use crate::unavailable_offerings::{OfferingName, UnavailableOfferings};

/// A reserved slot is paid for already; this keeps dearer types dearer.
const RESERVED_PRICE_DIVISOR: f64 = 10_000_000.0;

/// Who knows what makes an offering available.
pub(crate) struct OfferingSources<'a> {
    pub(crate) pricing: &'a PricingProvider,
    pub(crate) unavailable: &'a UnavailableOfferings,
    pub(crate) reservations: &'a CapacityReservationProvider,
    pub(crate) interruptions: &'a InterruptionHistory,
    pub(crate) now: Timestamp,
}

/// What the market asks of every type alike.
const MARKET: [CapacityType; 2] = [CapacityType::OnDemand, CapacityType::Spot];

/// A class with the requirements of its markets, which all types share.
pub(crate) struct Places<'a> {
    shape: &'a ClassShape,
    /// Zones that traffic is shifted away from, by name.
    shifted: BTreeSet<&'a str>,
    /// By zone, in the order of [`MARKET`].
    markets: BTreeMap<&'a str, [Requirements; 2]>,
}

impl<'a> Places<'a> {
    pub(crate) fn of(shape: &'a ClassShape, sources: &OfferingSources<'_>) -> Self {
        let shifted_ids = sources.unavailable.shifted_zones(sources.now);
        let is_shifted = |zone: &ClassZone| {
            let zone_id = zone.zone_id.as_ref();
            zone_id.is_some_and(|id| shifted_ids.contains(id))
        };
        let shifted = shape.zones.iter().filter(|(_, zone)| is_shifted(zone));
        let markets = |zone: &str| MARKET.map(|capacity_type| market(shape, zone, capacity_type));
        let zones = shape.zones.keys().map(String::as_str);
        Self {
            shape,
            shifted: shifted.map(|(name, _)| name.as_str()).collect(),
            markets: zones.map(|zone| (zone, markets(zone))).collect(),
        }
    }
}

impl Places<'_> {
    fn unless_shifted(&self, zone: &str, offering: Offering) -> Offering {
        let is_shifted = self.shifted.contains(zone);
        Offering {
            availability: if is_shifted {
                Availability::Unavailable
            } else {
                offering.availability
            },
            ..offering
        }
    }
}

/// All offerings of a type in the zones of a class.
pub(crate) fn offerings(
    name: &str,
    base: &Base,
    places: &Places<'_>,
    sources: &OfferingSources<'_>,
) -> Vec<Offering> {
    let shape = places.shape;
    let reservations = shape.reservations_of(name);
    let count = base.zones.len() * base.capacity_types.len() + reservations.len();
    let mut offerings = Vec::with_capacity(count);
    for zone in base.zones.iter() {
        // The zones of a type are among those of its class.
        let Some(markets) = places.markets.get(zone.as_str()) else {
            continue;
        };
        for (capacity_type, requirements) in MARKET.into_iter().zip(markets) {
            if base.capacity_types.contains(&capacity_type) {
                let offered = OfferingName {
                    instance_type: name,
                    zone,
                    capacity_type,
                };
                let offering = market_offering(base, shape, sources, offered, requirements);
                offerings.push(places.unless_shifted(zone, offering));
            }
        }
    }
    for reservation in reservations {
        let offering = reserved_offering(base, shape, sources, reservation);
        offerings.push(places.unless_shifted(&reservation.availability_zone, offering));
    }
    offerings
}

fn market_offering(
    base: &Base,
    shape: &ClassShape,
    sources: &OfferingSources<'_>,
    offered: OfferingName<'_>,
    requirements: &Requirements,
) -> Offering {
    let OfferingName {
        instance_type: name,
        zone,
        capacity_type,
    } = offered;
    let on_demand = sources.pricing.on_demand_price_per_hour(name);
    let (price, interruption_rate) = if capacity_type == CapacityType::Spot {
        let price = sources.pricing.spot_price_per_hour(name, zone);
        (price, sources.interruptions.rate(name, zone))
    } else {
        (on_demand, None)
    };
    let placement_group = shape
        .placement_group
        .as_ref()
        .map(|group| group.id.as_str());
    let subnets = shape
        .zones
        .get(zone)
        .map(|zone| zone.subnet_ids.as_slice())
        .unwrap_or_default();
    let is_marked =
        sources
            .unavailable
            .is_unavailable(offered, placement_group, subnets, sources.now);
    let history = sources.unavailable.history(offered, sources.now);
    let is_to_be_had = base.is_compatible && !is_marked;
    Offering {
        requirements: requirements.clone(),
        price_per_hour: price.unwrap_or(0.0),
        on_demand_price_per_hour: on_demand,
        availability: match (is_to_be_had, price) {
            (true, Some(_)) => Availability::Now,
            (true, None) => Availability::NoPrice,
            (false, _) => Availability::Unavailable,
        },
        reservation_capacity: 0,
        ice_count: history.count,
        ice_age_seconds: history.age_seconds,
        interruption_rate,
    }
}

fn reserved_offering(
    base: &Base,
    shape: &ClassShape,
    sources: &OfferingSources<'_>,
    reservation: &CapacityReservation,
) -> Offering {
    let name = &reservation.instance_type;
    let on_demand = sources.pricing.on_demand_price_per_hour(name);
    let zone = &reservation.availability_zone;
    let mut requirements = place(shape, zone, CapacityType::Reserved);
    let interruptible = if reservation.interruptible {
        "true"
    } else {
        "false"
    };
    let own = [
        (labels::CAPACITY_RESERVATION_ID, reservation.id.as_str()),
        (
            labels::CAPACITY_RESERVATION_TYPE,
            reservation.reservation_type.as_str(),
        ),
        (labels::CAPACITY_RESERVATION_INTERRUPTIBLE, interruptible),
    ];
    for (key, value) in own {
        requirements.add(Requirement::new(key, Operator::In, [value]));
    }
    let is_expiring = reservation.state == CapacityReservationState::Expiring;
    Offering {
        requirements,
        price_per_hour: on_demand.unwrap_or(0.0) / RESERVED_PRICE_DIVISOR,
        on_demand_price_per_hour: on_demand,
        // A full reservation stays available: a slot may be free again when a pod comes.
        availability: if base.is_compatible && base.zones.contains(zone) && !is_expiring {
            Availability::Now
        } else {
            Availability::Unavailable
        },
        reservation_capacity: sources.reservations.available(&reservation.id, sources.now),
        ice_count: 0,
        ice_age_seconds: None,
        interruption_rate: None,
    }
}

fn market(shape: &ClassShape, zone: &str, capacity_type: CapacityType) -> Requirements {
    let mut requirements = place(shape, zone, capacity_type);
    for key in [
        labels::CAPACITY_RESERVATION_ID,
        labels::CAPACITY_RESERVATION_TYPE,
        labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
    ] {
        requirements.add(Requirement::new(key, Operator::DoesNotExist, []));
    }
    requirements
}

fn place(shape: &ClassShape, zone: &str, capacity_type: CapacityType) -> Requirements {
    let mut requirements = Requirements::new();
    requirements.add(Requirement::new(
        labels::TOPOLOGY_ZONE,
        Operator::In,
        [zone],
    ));
    requirements.add(Requirement::new(
        labels::CAPACITY_TYPE,
        Operator::In,
        [capacity_type.as_str()],
    ));
    if let Some(zone_id) = shape
        .zones
        .get(zone)
        .and_then(|zone| zone.zone_id.as_deref())
    {
        requirements.add(Requirement::new(
            labels::TOPOLOGY_ZONE_ID,
            Operator::In,
            [zone_id],
        ));
    }
    requirements
}
