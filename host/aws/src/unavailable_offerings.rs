//! Offerings that lately could not be had, so that nothing asks for them again too soon.
//!
//! Marks expire; they are advice, never a verdict on the cloud. Every change moves a sequence number by
//! which cached offerings notice that they are stale. Answers to Karpenter's
//! `pkg/cache/unavailableofferings.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use apis::CapacityType;
use jiff::{SignedDuration, Timestamp};
use locks::lock;

use crate::cache::after;

/// How long a mark lasts.
const UNAVAILABLE_TTL: SignedDuration = SignedDuration::from_mins(3);
/// How far back refusals are counted for the ranking policy.
const HISTORY_WINDOW: SignedDuration = SignedDuration::from_mins(30);
/// Refusals remembered per offering; more tell a policy nothing new.
const HISTORY_LEN: usize = 32;

/// An offering in a placement group (or in none).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct UnavailableKey {
    instance_type: String,
    zone: String,
    capacity_type: CapacityType,
    placement_group: Option<String>,
}

/// Refusals of one offering within the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IceHistory {
    /// Number of refusals.
    pub(crate) count: u32,
    /// Seconds since the latest, in whole minutes so that a cache of it stays fresh for one.
    pub(crate) age_seconds: Option<u32>,
}

/// What a cached list depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UnavailableStamp {
    shared: u64,
    own: u64,
    minute: i64,
}

#[derive(Debug, Default)]
struct Marks {
    offerings: BTreeMap<UnavailableKey, Timestamp>,
    capacity_types: BTreeMap<CapacityType, Timestamp>,
    subnets: BTreeMap<String, Timestamp>,
    /// Zonal shifts by the id of the zone.
    shifts: BTreeMap<String, Timestamp>,
    refusals: BTreeMap<String, BTreeMap<(String, CapacityType), Vec<Timestamp>>>,
    sequences: BTreeMap<String, u64>,
    shared_sequence: u64,
    revision: u64,
}

/// The marks of all launches of this process.
#[derive(Debug, Default)]
pub(crate) struct UnavailableOfferings {
    marks: Mutex<Marks>,
}

impl UnavailableOfferings {
    /// Marks one offering; within `placement_group` only, when given.
    pub(crate) fn mark(
        &self,
        offering: OfferingName<'_>,
        placement_group: Option<&str>,
        now: Timestamp,
    ) {
        let mut marks = lock(&self.marks);
        let key = offering.key(placement_group);
        marks.offerings.insert(key, after(now, UNAVAILABLE_TTL));
        let zones = marks
            .refusals
            .entry(offering.instance_type.to_owned())
            .or_default();
        let times = zones
            .entry((offering.zone.to_owned(), offering.capacity_type))
            .or_default();
        if times.len() == HISTORY_LEN {
            times.remove(0);
        }
        times.push(now);
        marks.touch(offering.instance_type);
    }

    /// Marks everything of a capacity type, such as spot in an account that may not use it.
    pub(crate) fn mark_capacity_type(&self, capacity_type: CapacityType, now: Timestamp) {
        let mut marks = lock(&self.marks);
        marks
            .capacity_types
            .insert(capacity_type, after(now, UNAVAILABLE_TTL));
        marks.touch_all();
    }

    /// Marks a subnet that has run out of addresses.
    pub(crate) fn mark_subnet(&self, subnet_id: &str, now: Timestamp) {
        let mut marks = lock(&self.marks);
        marks
            .subnets
            .insert(subnet_id.to_owned(), after(now, UNAVAILABLE_TTL));
        marks.touch_all();
    }

    /// Takes over which zones traffic is shifted away from, by id, and until when.
    pub(crate) fn shift(&self, zones: BTreeMap<String, Timestamp>) {
        let mut marks = lock(&self.marks);
        if marks.shifts != zones {
            marks.shifts = zones;
            marks.touch_all();
        }
    }

    /// The ids of the zones that traffic is shifted away from.
    pub(crate) fn shifted_zones(&self, now: Timestamp) -> BTreeSet<String> {
        let marks = lock(&self.marks);
        let shifts = marks.shifts.iter();
        let lasting = shifts.filter(|(_, until)| **until > now);
        lasting.map(|(zone_id, _)| zone_id.clone()).collect()
    }

    /// Whether the offering is marked at `now`, by itself, by its capacity type, or by all of its zone's subnets.
    pub(crate) fn is_unavailable(
        &self,
        offering: OfferingName<'_>,
        placement_group: Option<&str>,
        zone_subnets: &[String],
        now: Timestamp,
    ) -> bool {
        let marks = lock(&self.marks);
        let is_live = |expires: Option<&Timestamp>| expires.is_some_and(|it| *it > now);
        let is_marked = |group| is_live(marks.offerings.get(&offering.key(group)));
        let is_full = |id: &String| is_live(marks.subnets.get(id));
        is_marked(None)
            || (placement_group.is_some() && is_marked(placement_group))
            || is_live(marks.capacity_types.get(&offering.capacity_type))
            || (!zone_subnets.is_empty() && zone_subnets.iter().all(is_full))
    }

    /// Refusals of an offering within the window.
    pub(crate) fn history(&self, offering: OfferingName<'_>, now: Timestamp) -> IceHistory {
        let marks = lock(&self.marks);
        let Some(zones) = marks.refusals.get(offering.instance_type) else {
            return IceHistory::default();
        };
        let key = (offering.zone.to_owned(), offering.capacity_type);
        let Some(times) = zones.get(&key) else {
            return IceHistory::default();
        };
        let recent = || {
            times
                .iter()
                .filter(|time| now.duration_since(**time) < HISTORY_WINDOW)
        };
        let age = recent()
            .next_back()
            .map(|time| now.duration_since(*time).as_secs().max(0) / 60 * 60);
        IceHistory {
            count: u32::try_from(recent().count()).unwrap_or(u32::MAX),
            age_seconds: age.and_then(|age| u32::try_from(age).ok()),
        }
    }

    /// Changes whenever any offering may have changed.
    pub(crate) fn revision(&self, now: Timestamp) -> (u64, i64) {
        let mut marks = lock(&self.marks);
        marks.sweep(now);
        let minute = if marks.refusals.is_empty() {
            0
        } else {
            now.as_second() / 60
        };
        (marks.revision, minute)
    }

    /// Changes whenever an offering of this type may have changed.
    pub(crate) fn stamp(&self, instance_type: &str, now: Timestamp) -> UnavailableStamp {
        let marks = lock(&self.marks);
        UnavailableStamp {
            shared: marks.shared_sequence,
            own: marks.sequences.get(instance_type).copied().unwrap_or(0),
            minute: if marks.refusals.contains_key(instance_type) {
                now.as_second() / 60
            } else {
                0
            },
        }
    }
}

impl Marks {
    fn touch(&mut self, instance_type: &str) {
        *self.sequences.entry(instance_type.to_owned()).or_default() += 1;
        self.revision += 1;
    }

    fn touch_all(&mut self) {
        self.shared_sequence += 1;
        self.revision += 1;
    }

    fn sweep(&mut self, now: Timestamp) {
        let mut expired = Vec::new();
        self.offerings.retain(|key, expires| {
            let is_live = *expires > now;
            if !is_live {
                expired.push(key.instance_type.clone());
            }
            is_live
        });
        for instance_type in expired {
            self.touch(&instance_type);
        }
        let dropped = drop_expired(&mut self.capacity_types, now)
            + drop_expired(&mut self.subnets, now)
            + drop_expired(&mut self.shifts, now);
        if dropped > 0 {
            self.touch_all();
        }
        self.forget_refusals(now);
    }

    fn forget_refusals(&mut self, now: Timestamp) {
        let mut emptied = Vec::new();
        for (instance_type, zones) in &mut self.refusals {
            zones.retain(|_, times| {
                times.retain(|time| now.duration_since(*time) < HISTORY_WINDOW);
                !times.is_empty()
            });
            if zones.is_empty() {
                emptied.push(instance_type.clone());
            }
        }
        for instance_type in emptied {
            self.refusals.remove(&instance_type);
            self.touch(&instance_type);
        }
    }
}

/// How many marks were dropped.
fn drop_expired<K: Ord>(marks: &mut BTreeMap<K, Timestamp>, now: Timestamp) -> usize {
    let before = marks.len();
    marks.retain(|_, expires| *expires > now);
    before - marks.len()
}

/// Names one offering.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfferingName<'a> {
    /// Such as `m7i.large`.
    pub instance_type: &'a str,
    /// Such as `us-east-1a`.
    pub zone: &'a str,
    /// Under which it is sold.
    pub capacity_type: CapacityType,
}

impl OfferingName<'_> {
    fn key(self, placement_group: Option<&str>) -> UnavailableKey {
        UnavailableKey {
            instance_type: self.instance_type.to_owned(),
            zone: self.zone.to_owned(),
            capacity_type: self.capacity_type,
            placement_group: placement_group.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::at;

    const OFFERED: OfferingName<'static> = OfferingName {
        instance_type: "m5.large",
        zone: "us-east-1a",
        capacity_type: CapacityType::Spot,
    };

    #[test]
    fn a_mark_hides_its_offering_for_three_minutes_and_moves_the_stamp_twice() {
        let marks = UnavailableOfferings::default();
        let before = marks.stamp("m5.large", at(0));
        marks.mark(OFFERED, None, at(0));
        assert_ne!(marks.stamp("m5.large", at(0)), before);
        assert!(marks.is_unavailable(OFFERED, None, &[], at(0)));
        let elsewhere = OfferingName {
            zone: "us-east-1b",
            ..OFFERED
        };
        assert!(!marks.is_unavailable(elsewhere, None, &[], at(0)));
        let marked = marks.revision(at(179));
        assert!(marks.is_unavailable(OFFERED, None, &[], at(179)));
        // A mark that has run out counts no more, whether anybody has swept it out yet or not.
        assert!(!marks.is_unavailable(OFFERED, None, &[], at(180)));
        assert_ne!(marks.revision(at(180)), marked);
        assert_eq!(
            marks.stamp("c5.large", at(180)),
            UnavailableStamp::default()
        );
    }

    #[test]
    fn subnets_hide_a_zone_only_when_all_of_them_are_full() {
        let marks = UnavailableOfferings::default();
        let subnets = ["subnet-1".to_owned(), "subnet-2".to_owned()];
        marks.mark_subnet("subnet-1", at(0));
        assert!(!marks.is_unavailable(OFFERED, None, &subnets, at(0)));
        marks.mark_subnet("subnet-2", at(60));
        assert!(marks.is_unavailable(OFFERED, None, &subnets, at(60)));
        assert!(!marks.is_unavailable(OFFERED, None, &[], at(60)));
        assert!(!marks.is_unavailable(OFFERED, None, &subnets, at(180)));
    }

    #[test]
    fn a_placement_group_keeps_its_marks_to_itself() {
        let marks = UnavailableOfferings::default();
        marks.mark(OFFERED, Some("pg-1"), at(0));
        assert!(!marks.is_unavailable(OFFERED, None, &[], at(0)));
        assert!(!marks.is_unavailable(OFFERED, Some("pg-2"), &[], at(0)));
        assert!(marks.is_unavailable(OFFERED, Some("pg-1"), &[], at(0)));
    }

    #[test]
    fn history_counts_refusals_within_its_window() {
        let marks = UnavailableOfferings::default();
        marks.mark(OFFERED, None, at(0));
        marks.mark(OFFERED, None, at(600));
        let history = marks.history(OFFERED, at(725));
        assert_eq!(
            history,
            IceHistory {
                count: 2,
                age_seconds: Some(120)
            }
        );
        assert_eq!(marks.history(OFFERED, at(1900)).count, 1);
        marks.revision(at(600 + 1800));
        assert_eq!(
            marks.history(OFFERED, at(600 + 1800)),
            IceHistory::default()
        );
    }

    #[test]
    fn a_capacity_type_mark_touches_every_type() {
        let marks = UnavailableOfferings::default();
        let before = marks.stamp("c5.large", at(0));
        marks.mark_capacity_type(CapacityType::Spot, at(0));
        assert!(marks.is_unavailable(OFFERED, None, &[], at(0)));
        assert_ne!(marks.stamp("c5.large", at(0)), before);
    }
}
