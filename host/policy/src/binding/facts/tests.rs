//! Facts of a binding: what they say, and how faults in them are told.

use super::*;

fn facts(key: &str, text: &str) -> Result<BindingFacts, BindingError> {
    BindingFacts::parse(BTreeMap::from([(key.to_owned(), text.to_owned())]))
}

/// Noon UTC of 2026-12-24.
const CHRISTMAS_EVE: u64 = 1_798_113_600;

#[test]
fn each_zone_has_its_hour_and_its_day() {
    let facts = facts(TIME_ZONES_KEY, "Europe/Berlin, Asia/Tokyo\nUTC").unwrap();
    let civil = facts.civil(CHRISTMAS_EVE + 6 * 3600).unwrap();
    let found: Vec<_> = civil
        .iter()
        .map(|it| (it.zone.as_str(), it.day, it.hour, it.utc_offset_minutes))
        .collect();
    assert_eq!(
        found,
        [
            ("UTC", 24, 18, 0),
            ("Europe/Berlin", 24, 19, 60),
            ("Asia/Tokyo", 25, 3, 540)
        ]
    );
}

#[test]
fn calendars_contain_days_of_the_zone() {
    let text = "freeze: [2026-12-20/2027-01-05]\nholidays: ['--12-25', 2026-05-01]\n\
        season: ['--12-01/--01-15']\nover: [2026-01-01]";
    let mut texts = BTreeMap::from([(CALENDARS_KEY.to_owned(), text.to_owned())]);
    texts.insert(TIME_ZONES_KEY.to_owned(), "Asia/Tokyo".to_owned());
    let facts = BindingFacts::parse(texts).unwrap();
    let civil = facts.civil(CHRISTMAS_EVE + 6 * 3600).unwrap();
    assert_eq!(civil[0].calendars, ["freeze", "season"]);
    assert_eq!(civil[1].calendars, ["freeze", "holidays", "season"]);
    let after = facts.civil(CHRISTMAS_EVE + 30 * 86_400).unwrap();
    assert!(after[0].calendars.is_empty(), "{after:?}");
}

#[test]
fn a_type_comes_before_its_family_and_only_spot_is_interrupted() {
    let facts = facts(
        INTERRUPTION_RATES_KEY,
        "m7i: {class: 3}\nm7i.large: 0.5\nr7i: 2",
    )
    .unwrap();
    let words = ["m7i", "m7i.large", "m7i.xlarge", "c7i", "c7i.large"];
    let table = OfferingTable {
        symbols: words.map(str::to_owned).to_vec(),
        instance_type: vec![1, 2, 2, 4],
        family: vec![0, 0, 0, 3],
        capacity_type: vec![1, 1, 0, 1],
        interruption_rate: vec![-1.0, -1.0, -1.0, 0.3],
        ..OfferingTable::default()
    };
    assert_eq!(facts.rates(&table).unwrap(), [0.5, 0.175, -1.0, 0.3]);
    assert!(BindingFacts::default().rates(&table).is_none());
}

#[test]
fn each_mistake_names_its_key_and_what_may_stand_there() {
    for (key, text, words) in [
        (
            TIME_ZONES_KEY,
            "Europe/Berlin, Mars/Olympus",
            "data.time-zones: \"Mars/Olympus\" is not valid; use names of time zones",
        ),
        (
            CALENDARS_KEY,
            "freeze: [2026-13-01]",
            "data.calendars: \"2026-13-01\"",
        ),
        (
            CALENDARS_KEY,
            "freeze: [2027-01-05/2026-12-20]",
            "2027-01-05/2026-12-20",
        ),
        (CALENDARS_KEY, "freeze: ['--02-30']", "--02-30"),
        (CALENDARS_KEY, "[2026-12-24]", "data.calendars"),
        (
            INTERRUPTION_RATES_KEY,
            "m7i: {class: 5}",
            "data.interruption-rates: \"m7i\" is not valid",
        ),
        (
            INTERRUPTION_RATES_KEY,
            "m7i: -1",
            "data.interruption-rates: \"m7i\"",
        ),
        (
            INTERRUPTION_RATES_KEY,
            "m7i: often",
            "data.interruption-rates",
        ),
        (
            WORKLOAD_LABELS_ANNOTATION,
            "app=web",
            "mortise.dev/workload-labels: \"app=web\"",
        ),
    ] {
        let error = facts(key, text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
