//! Days and hours that are closed, and settings that mean nothing.

use super::BusinessCalendar;
use guest_sdk::Civil;
use guest_sdk::testing::{Harness, civil, pool};

const CONFIG: &str = r#"{"zone": "Europe/Berlin", "holidays": ["berlin"], "freezes": ["freeze"], "reasons": ["Underutilized", "Drifted"]}"#;

fn allowed(config: &str, civil: Civil) -> [u32; 3] {
    let mut policy = Harness::<BusinessCalendar>::new(config).unwrap();
    policy.context.civil.push(civil);
    let allowances = policy.allow(&[pool("web", 100, &[10])]).unwrap();
    [0, 1, 2].map(|index: usize| allowances.items[index].allowed)
}

#[test]
fn business_hours_and_freezes_close_what_they_are_for() {
    let on = |weekday, hour, calendars: &[&str]| Civil {
        weekday,
        calendars: calendars.iter().map(|it| (*it).to_owned()).collect(),
        ..civil("Europe/Berlin", hour)
    };
    let (open, closed) = ([10, 10, 10], [0, 10, 0]);
    for (civil, expected) in [
        (on(0, 7, &[]), open),
        (on(0, 8, &[]), closed),
        (on(4, 17, &[]), closed),
        (on(4, 18, &[]), open),
        (on(5, 12, &[]), open),
        (on(0, 12, &["berlin"]), open),
        (on(0, 3, &["berlin", "freeze"]), closed),
    ] {
        assert_eq!(allowed(CONFIG, civil.clone()), expected, "{civil:?}");
    }
}

#[test]
fn a_zone_that_the_binding_does_not_name_closes_all() {
    let found = allowed(r#"{"zone": "Asia/Tokyo"}"#, civil("Europe/Berlin", 3));
    assert_eq!(found, [0, 0, 0]);
}

#[test]
fn other_days_may_be_working_days() {
    let config = r#"{"workdays": ["sunday"], "to": 24}"#;
    let mut policy = Harness::<BusinessCalendar>::new(config).unwrap();
    for (weekday, expected) in [(6, 0), (0, 10)] {
        policy.context.civil[0].weekday = weekday;
        let allowances = policy.allow(&[pool("web", 100, &[10])]).unwrap();
        assert_eq!(allowances.items[0].allowed, expected);
    }
}

#[test]
fn what_no_clock_has_is_refused() {
    for (config, path) in [
        (r#"{"to": 25}"#, "/to"),
        (r#"{"from": 20}"#, "/to"),
        (r#"{"workdays": ["Monday"]}"#, "/workdays"),
        (r#"{"reasons": ["drift"]}"#, "/reasons"),
    ] {
        let issues = Harness::<BusinessCalendar>::new(config).unwrap_err();
        assert_eq!(issues[0].path, path);
    }
}
