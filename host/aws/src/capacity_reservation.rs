//! Capacity reservations a class selects, and how many slots of each are free.
//!
//! Counts are EC2's at the last look, less what was launched since. Never makes, changes or releases a
//! reservation. Answers to Karpenter's `pkg/providers/capacityreservation/provider.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use apis::Ec2NodeClass;
use apis::ec2nodeclass::{
    CapacityReservation, CapacityReservationSelectorTerm, CapacityReservationState,
    CapacityReservationType,
};
use aws_sdk_ec2::operation::describe_capacity_reservations::DescribeCapacityReservationsInput;
use aws_sdk_ec2::types::{
    CapacityReservation as Ec2Reservation, CapacityReservationType as Ec2Kind,
};
use cloudprovider::CloudProviderError;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use locks::lock;

use crate::cache::{DEFAULT_TTL, TtlCache, after, make_room};
use crate::node_class::revision::revision_key;
use crate::pages::all_pages;
use crate::seam::Ec2Api;
use crate::tags::{filter, tag_filters};

const PAGE: i32 = 1000;
/// What EC2 says of the instances that may run in a reservation.
const MATCH_CRITERIA: [&str; 2] = ["open", "targeted"];
/// EC2 takes blocks back half an hour before their end; nodes must be gone by then.
const BLOCK_NOTICE: SignedDuration = SignedDuration::from_mins(40);
/// How long a count is believed that nothing has renewed.
const COUNT_TTL: SignedDuration = SignedDuration::from_hours(24);
/// How long an instance that ends is waited for, since somebody last saw that it does. EC2 does not list one that has
/// ended for longer.
const LEAVING_TTL: SignedDuration = SignedDuration::from_hours(1);
/// Reservations of which slots are counted. What expires soonest makes room: none of it is free as far as is known.
const COUNTS_MAX: usize = 10_000;
/// Instances that are waited for. What expires soonest makes room: the next listing tells of its slot.
const LEAVING_MAX: usize = 10_000;

/// The id of a reservation where that of an instance stands beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservationId<'a>(pub(crate) &'a str);

/// Free slots of a reservation.
#[derive(Debug, Clone, Copy)]
struct FreeSlots {
    count: u32,
    expires: Timestamp,
}

/// An instance that ends.
#[derive(Debug)]
struct Leaving {
    reservation: String,
    expires: Timestamp,
}

#[derive(Debug, Default)]
struct Slots {
    free: BTreeMap<String, FreeSlots>,
    /// By the id of the instance.
    leaving: BTreeMap<String, Leaving>,
    revision: u64,
}

impl Slots {
    fn available(&self, id: &str, now: Timestamp) -> u32 {
        let slots = self.free.get(id).filter(|it| it.expires > now);
        slots.map_or(0, |it| it.count)
    }

    fn set(&mut self, id: &str, count: u32, now: Timestamp) {
        make_room(&mut self.free, id, COUNTS_MAX, |it| it.expires);
        let expires = after(now, COUNT_TTL);
        let slots = FreeSlots { count, expires };
        let before = self.free.insert(id.to_owned(), slots);
        self.revision += u64::from(before.is_none_or(|it| it.count != count));
    }

    fn forget_expired(&mut self, now: Timestamp) {
        self.leaving.retain(|_, it| it.expires > now);
        let before = self.free.len();
        self.free.retain(|_, it| it.expires > now);
        self.revision += u64::from(self.free.len() != before);
    }
}

/// Finds reservations and counts their slots.
pub(crate) struct CapacityReservationProvider {
    ec2: Arc<dyn Ec2Api>,
    cache: TtlCache<String, Vec<CapacityReservation>>,
    slots: Mutex<Slots>,
}

impl CapacityReservationProvider {
    /// With no reservation known.
    pub(crate) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self {
            ec2,
            cache: TtlCache::new(DEFAULT_TTL),
            slots: Mutex::default(),
        }
    }

    /// The active reservations a class selects, by id.
    pub(crate) async fn list(
        &self,
        node_class: &Ec2NodeClass,
        now: Timestamp,
    ) -> Result<Vec<CapacityReservation>, CloudProviderError> {
        let terms = &node_class.spec.capacity_reservation_selector_terms;
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let key = revision_key(node_class);
        if let Some(reservations) = self.cache.get(&key, now) {
            return Ok(reservations);
        }
        lock(&self.slots).forget_expired(now);
        let mut found = BTreeMap::new();
        for term in terms {
            for reservation in self.describe(term).await? {
                let free =
                    u32::try_from(reservation.available_instance_count().unwrap_or(0)).unwrap_or(0);
                if let Some(resolved) = resolved(&reservation, now) {
                    self.set(&resolved.id, free, now);
                    found.insert(resolved.id.clone(), resolved);
                }
            }
        }
        let reservations: Vec<_> = found.into_values().collect();
        self.cache.insert(key, reservations.clone(), now);
        Ok(reservations)
    }

    /// Those of the reservations that end so soon that their nodes must go.
    pub(crate) async fn expiring(
        &self,
        ids: &BTreeSet<String>,
        now: Timestamp,
    ) -> Result<BTreeSet<String>, CloudProviderError> {
        let mut expiring = BTreeSet::new();
        for id in ids {
            let term = CapacityReservationSelectorTerm {
                id: Some(id.clone()),
                ..CapacityReservationSelectorTerm::default()
            };
            let described = self.describe(&term).await?;
            let resolved = described.iter().filter_map(|it| resolved(it, now));
            let ending = resolved.filter(|it| it.state == CapacityReservationState::Expiring);
            expiring.extend(ending.map(|it| it.id));
        }
        Ok(expiring)
    }

    /// Nothing for one that is named and not there, which is no fault of the others.
    async fn describe(
        &self,
        term: &CapacityReservationSelectorTerm,
    ) -> Result<Vec<Ec2Reservation>, CloudProviderError> {
        match self.ask(term).await {
            Err(error) if error.is_not_found() => {
                let id = term.id.as_deref().unwrap_or_default();
                tracing::warn!(id, "there is no such capacity reservation");
                Ok(Vec::new())
            }
            answer => answer,
        }
    }

    async fn ask(
        &self,
        term: &CapacityReservationSelectorTerm,
    ) -> Result<Vec<Ec2Reservation>, CloudProviderError> {
        let input = || {
            let input =
                DescribeCapacityReservationsInput::builder().filters(filter("state", ["active"]));
            if let Some(id) = &term.id {
                return input.capacity_reservation_ids(id);
            }
            let mut filters = tag_filters(&term.tags);
            filters.extend(
                term.owner_id
                    .as_deref()
                    .map(|owner| filter("owner-id", [owner])),
            );
            let criteria = term.instance_match_criteria.as_deref();
            filters.extend(criteria.map(|criteria| filter("instance-match-criteria", [criteria])));
            filters
                .into_iter()
                .fold(input, aws_sdk_ec2::operation::describe_capacity_reservations::builders::DescribeCapacityReservationsInputBuilder::filters)
                .max_results(PAGE)
        };
        all_pages!(
            self.ec2,
            describe_capacity_reservations,
            "describing capacity reservations",
            capacity_reservations,
            input()
        )
    }

    /// Free slots, 0 when unknown.
    pub(crate) fn available(&self, id: &str, now: Timestamp) -> u32 {
        lock(&self.slots).available(id, now)
    }

    /// Changes whenever a count has changed.
    pub(crate) fn revision(&self) -> u64 {
        lock(&self.slots).revision
    }

    /// Notes the free slots that EC2 reports.
    pub(crate) fn set(&self, id: &str, free: u32, now: Timestamp) {
        lock(&self.slots).set(id, free, now);
    }

    /// Notes a launch into the reservation.
    pub(crate) fn take(&self, id: &str, now: Timestamp) {
        let mut slots = lock(&self.slots);
        let left = slots.available(id, now).saturating_sub(1);
        slots.set(id, left, now);
    }

    /// Notes that an instance of the reservation is on its way out. Its slot is free once it is gone.
    pub(crate) fn leaves(&self, instance_id: &str, id: ReservationId<'_>, now: Timestamp) {
        let mut slots = lock(&self.slots);
        slots.forget_expired(now);
        let leaving = &mut slots.leaving;
        make_room(leaving, instance_id, LEAVING_MAX, |it| it.expires);
        let left = Leaving {
            reservation: id.0.to_owned(),
            expires: after(now, LEAVING_TTL),
        };
        leaving.insert(instance_id.to_owned(), left);
    }

    /// Notes that an instance is gone.
    pub(crate) fn note_gone(&self, instance_id: &str, now: Timestamp) {
        let mut slots = lock(&self.slots);
        if let Some(left) = slots.leaving.remove(instance_id) {
            let free = slots.available(&left.reservation, now).saturating_add(1);
            slots.set(&left.reservation, free, now);
        }
    }
}

fn resolved(reservation: &Ec2Reservation, now: Timestamp) -> Option<CapacityReservation> {
    let end = reservation
        .end_date()
        .and_then(|date| Timestamp::from_second(date.secs()).ok());
    if end.is_some_and(|end| end <= now) {
        return None;
    }
    let id = reservation.capacity_reservation_id()?;
    let criteria = reservation.instance_match_criteria()?;
    let is_block = match reservation.reservation_type() {
        None | Some(Ec2Kind::Default) => false,
        Some(Ec2Kind::CapacityBlock) => true,
        Some(kind) => {
            tracing::warn!(
                id,
                kind = kind.as_str(),
                "a reservation of a kind that is not supported"
            );
            return None;
        }
    };
    if !MATCH_CRITERIA.contains(&criteria.as_str()) {
        let criteria = criteria.as_str();
        tracing::warn!(
            id,
            criteria,
            "a reservation whose criteria are not supported"
        );
        return None;
    }
    let is_expiring = is_block && end.is_some_and(|end| end.duration_since(now) <= BLOCK_NOTICE);
    Some(CapacityReservation {
        availability_zone: reservation.availability_zone()?.to_owned(),
        end_time: end.map(Time),
        id: id.to_owned(),
        instance_match_criteria: criteria.as_str().to_owned(),
        instance_type: reservation.instance_type()?.to_owned(),
        owner_id: reservation.owner_id()?.to_owned(),
        reservation_type: if is_block {
            CapacityReservationType::CapacityBlock
        } else {
            CapacityReservationType::Default
        },
        interruptible: reservation.interruptible().unwrap_or(false),
        state: if is_expiring {
            CapacityReservationState::Expiring
        } else {
            CapacityReservationState::Active
        },
    })
}

#[cfg(test)]
mod tests;
