//! How many slots of a reservation are free, and for how long that is remembered.

use super::*;
use crate::fake::{FakeAws, at};

fn provider() -> CapacityReservationProvider {
    CapacityReservationProvider::new(FakeAws::new(Vec::new()))
}

#[test]
fn a_launch_takes_a_slot_and_an_instance_that_is_gone_gives_it_back_once() {
    let provider = provider();
    provider.set("cr-1", 2, at(0));
    provider.take("cr-1", at(1));
    provider.take("cr-1", at(1));
    provider.take("cr-1", at(1));
    assert_eq!(provider.available("cr-1", at(1)), 0);
    provider.leaves("i-1", ReservationId("cr-1"), at(2));
    provider.leaves("i-1", ReservationId("cr-1"), at(3));
    assert_eq!(provider.available("cr-1", at(3)), 0, "it is not gone yet");
    provider.note_gone("i-1", at(4));
    provider.note_gone("i-1", at(5));
    provider.note_gone("i-2", at(5));
    assert_eq!(provider.available("cr-1", at(5)), 1);
    assert_eq!(provider.available("cr-2", at(5)), 0, "nobody told of it");
}

#[test]
fn only_a_count_that_changes_makes_lists_stale() {
    let provider = provider();
    let mut last = provider.revision();
    for (seconds, free, is_news) in [(0, 2, true), (1, 2, false), (2, 0, true), (3, 0, false)] {
        provider.set("cr-1", free, at(seconds));
        let revision = provider.revision();
        assert_eq!(revision != last, is_news, "second {seconds}");
        last = revision;
    }
}

#[tokio::test]
async fn counts_are_forgotten_a_day_after_they_were_told_and_instances_an_hour_after_they_were_seen()
 {
    const DAY: i64 = 24 * 60 * 60;
    let provider = provider();
    provider.set("cr-1", 2, at(0));
    provider.set("cr-2", 3, at(1));
    provider.leaves("i-1", ReservationId("cr-1"), at(0));
    assert_eq!(provider.available("cr-1", at(DAY - 1)), 2);
    assert_eq!(provider.available("cr-1", at(DAY)), 0);
    let before = provider.revision();
    // Whoever lists sweeps; the fake has no reservation to tell of.
    let mut class = Ec2NodeClass::default();
    class.spec.capacity_reservation_selector_terms =
        vec![CapacityReservationSelectorTerm::default()];
    provider.list(&class, at(DAY)).await.unwrap();
    let kept: Vec<String> = lock(&provider.slots).free.keys().cloned().collect();
    assert_eq!(kept, ["cr-2"]);
    assert_ne!(provider.revision(), before, "lists tell of two free slots");
    assert!(lock(&provider.slots).leaving.is_empty());
    provider.leaves("i-2", ReservationId("cr-2"), at(DAY));
    provider.leaves("i-3", ReservationId("cr-2"), at(DAY + 3599));
    provider.leaves("i-4", ReservationId("cr-2"), at(DAY + 3600));
    let kept: Vec<String> = lock(&provider.slots).leaving.keys().cloned().collect();
    assert_eq!(kept, ["i-3", "i-4"]);
}

#[test]
fn no_more_is_kept_than_the_bounds_allow() {
    let provider = provider();
    for index in 0..=COUNTS_MAX {
        let seconds = i64::from(index != 7);
        provider.set(&format!("cr-{index}"), 1, at(seconds));
    }
    assert_eq!(lock(&provider.slots).free.len(), COUNTS_MAX);
    assert_eq!(provider.available("cr-7", at(2)), 0, "the oldest made room");
    let ending = (0..LEAVING_MAX).map(|index| {
        let left = Leaving {
            reservation: "cr-1".to_owned(),
            expires: at(100 + i64::from(index != 7)),
        };
        (format!("i-{index}"), left)
    });
    lock(&provider.slots).leaving.extend(ending);
    provider.leaves("i-more", ReservationId("cr-1"), at(2));
    let slots = lock(&provider.slots);
    assert_eq!(slots.leaving.len(), LEAVING_MAX);
    assert!(!slots.leaving.contains_key("i-7"), "the oldest made room");
}
