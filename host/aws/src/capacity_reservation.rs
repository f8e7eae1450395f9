//! Capacity reservations a class selects, and how many slots of each are free.
//!
//! Counts are EC2's at the last look, less what was launched since. Answers to Karpenter's
//! `pkg/providers/capacityreservation/provider.go`.

use std::collections::BTreeMap;
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

use crate::cache::{DEFAULT_TTL, TtlCache, lock};
use crate::node_class::revision::revision_key;
use crate::pages::all_pages;
use crate::seam::Ec2Api;
use crate::tags::{filter, tag_filters};

const PAGE: i32 = 1000;
/// EC2 takes blocks back half an hour before their end; nodes must be gone by then.
const BLOCK_NOTICE: SignedDuration = SignedDuration::from_mins(40);

#[derive(Debug, Default)]
struct Slots {
    free: BTreeMap<String, u32>,
    revision: u64,
}

/// Finds reservations and counts their slots.
pub struct CapacityReservationProvider {
    ec2: Arc<dyn Ec2Api>,
    cache: TtlCache<String, Vec<CapacityReservation>>,
    slots: Mutex<Slots>,
}

impl CapacityReservationProvider {
    /// With no reservation known.
    pub fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self {
            ec2,
            cache: TtlCache::new(DEFAULT_TTL),
            slots: Mutex::default(),
        }
    }

    /// The active reservations a class selects, by id.
    pub async fn list(
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
        let mut found = BTreeMap::new();
        for term in terms {
            for reservation in self.describe(term).await? {
                let free =
                    u32::try_from(reservation.available_instance_count().unwrap_or(0)).unwrap_or(0);
                if let Some(resolved) = resolved(&reservation, now) {
                    self.set(&resolved.id, free);
                    found.insert(resolved.id.clone(), resolved);
                }
            }
        }
        let reservations: Vec<_> = found.into_values().collect();
        self.cache.insert(key, reservations.clone(), now);
        Ok(reservations)
    }

    async fn describe(
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
    pub(crate) fn available(&self, id: &str) -> u32 {
        lock(&self.slots).free.get(id).copied().unwrap_or(0)
    }

    /// Changes whenever a count has changed.
    pub(crate) fn revision(&self) -> u64 {
        lock(&self.slots).revision
    }

    /// Notes EC2's count.
    pub(crate) fn set(&self, id: &str, free: u32) {
        let mut slots = lock(&self.slots);
        if slots.free.insert(id.to_owned(), free) != Some(free) {
            slots.revision += 1;
        }
    }

    /// Notes a launch into the reservation.
    pub(crate) fn take(&self, id: &str) {
        self.set(id, self.available(id).saturating_sub(1));
    }

    /// Notes that an instance left the reservation.
    pub(crate) fn give_back(&self, id: &str) {
        self.set(id, self.available(id).saturating_add(1));
    }
}

fn resolved(reservation: &Ec2Reservation, now: Timestamp) -> Option<CapacityReservation> {
    let end = reservation
        .end_date()
        .and_then(|date| Timestamp::from_second(date.secs()).ok());
    if end.is_some_and(|end| end <= now) {
        return None;
    }
    let is_block = reservation.reservation_type() == Some(&Ec2Kind::CapacityBlock);
    let is_expiring = is_block && end.is_some_and(|end| end.duration_since(now) <= BLOCK_NOTICE);
    Some(CapacityReservation {
        availability_zone: reservation.availability_zone()?.to_owned(),
        end_time: end.map(Time),
        id: reservation.capacity_reservation_id()?.to_owned(),
        instance_match_criteria: reservation.instance_match_criteria()?.as_str().to_owned(),
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
