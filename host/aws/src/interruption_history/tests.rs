//! What rates come of what was seen.

use jiff::SignedDuration;

use super::*;

/// What happens, in order.
#[derive(Clone, Copy)]
enum Episode {
    /// So many nodes of the type run in the zone for so many hours, listed every hour.
    Run(&'static str, &'static str, usize, usize),
    /// One of them is taken back.
    Interrupt(&'static str, &'static str, &'static str),
    /// Nothing runs for so many days.
    Rest(usize),
}

fn after(history: &InterruptionHistory, steps: &[Episode]) {
    let mut now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    history.note_running([].into_iter(), now);
    let mut hour = |nodes: &[Exposed<'_>]| {
        now += SignedDuration::from_hours(1);
        history.note_running(nodes.iter().copied(), now);
        now
    };
    for step in steps {
        match *step {
            Episode::Run(instance_type, zone, nodes, hours) => {
                let node = Exposed {
                    instance_type,
                    zone,
                    launched_at: None,
                };
                for _ in 0..hours {
                    hour(&vec![node; nodes]);
                }
            }
            Episode::Interrupt(instance_id, instance_type, zone) => {
                let instance = Interrupted {
                    instance_id,
                    instance_type,
                    zone,
                };
                history.note_interruption(instance, hour(&[]));
            }
            Episode::Rest(days) => {
                for _ in 0..days * 24 {
                    hour(&[]);
                }
            }
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_rate_is_interruptions_by_exposure_once_enough_was_seen() {
    use Episode::{Interrupt, Rest, Run};
    let cases: &[(&str, &[Episode], Option<f64>)] = &[
        ("nothing seen", &[], None),
        ("too little seen", &[Run("m5", "a", 1, 23)], None),
        ("a node-day without any", &[Run("m5", "a", 5, 6)], Some(0.0)),
        (
            "another type tells nothing",
            &[Run("c5", "a", 9, 24), Interrupt("i-1", "c5", "a")],
            None,
        ),
        (
            "two in ten node-days",
            &[
                Run("m5", "a", 20, 12),
                Interrupt("i-1", "m5", "a"),
                Interrupt("i-2", "m5", "a"),
            ],
            Some(6.0),
        ),
        (
            "one told twice is one",
            &[
                Run("m5", "a", 20, 12),
                Interrupt("i-1", "m5", "a"),
                Interrupt("i-1", "m5", "a"),
            ],
            Some(3.0),
        ),
        (
            "one alone counts as one in a node-day",
            &[Interrupt("i-1", "m5", "a")],
            Some(30.0),
        ),
        (
            "another zone stands in",
            &[Run("m5", "b", 20, 12), Interrupt("i-1", "m5", "b")],
            Some(3.0),
        ),
        (
            "the zone itself goes before the others",
            &[
                Run("m5", "b", 20, 12),
                Interrupt("i-1", "m5", "b"),
                Run("m5", "a", 20, 12),
            ],
            Some(0.0),
        ),
        (
            "what was long ago counts less than what is new",
            &[
                Run("m5", "a", 20, 12),
                Interrupt("i-1", "m5", "a"),
                Interrupt("i-2", "m5", "a"),
                Rest(30),
                Run("m5", "a", 20, 12),
            ],
            // Of two, and of ten node-days before: 1 / e.
            Some(2.0 * 0.3679 / (10.0 * 0.3679 + 10.0) * 30.0),
        ),
        (
            "one is forgotten after three weeks",
            &[Interrupt("i-1", "m5", "a"), Rest(22)],
            None,
        ),
    ];
    for (what, steps, expected) in cases {
        let history = InterruptionHistory::default();
        after(&history, steps);
        let rate = history.rate("m5", "a");
        let is_close = match (rate, expected) {
            (Some(rate), Some(expected)) => (rate - expected).abs() <= 0.12 * expected + 0.01,
            (rate, expected) => rate == *expected,
        };
        assert!(is_close, "{what}: {rate:?}, not {expected:?}");
    }
}

#[test]
fn exposure_begins_with_the_first_list_or_the_launch_and_gaps_count_an_hour() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let at = |hours: i64| start + SignedDuration::from_hours(hours);
    let exposure = |launched: i64, lists: &[i64]| {
        let history = InterruptionHistory::default();
        for hours in lists {
            let node = Exposed {
                instance_type: "m5",
                zone: "a",
                launched_at: Some(at(launched)),
            };
            let running = (*hours >= launched).then_some(node);
            history.note_running(running.into_iter(), at(*hours));
        }
        let counts = lock(&history.0);
        let zones = counts.places.get("m5");
        let hours = zones.map_or(0.0, |it| it["a"].exposure_seconds / 3600.0);
        format!("{hours:.0}")
    };
    assert_eq!(exposure(-99, &[0]), "0", "nothing before the first list");
    assert_eq!(exposure(-99, &[0, 1, 2]), "2");
    assert_eq!(exposure(1, &[0, 1, 2]), "1", "launched at the second list");
    assert_eq!(exposure(-99, &[0, 500]), "1", "a clock that jumped");
    assert_eq!(exposure(-99, &[0, 1, -9, -8]), "2", "a clock set back");
}

#[test]
fn what_is_told_moves_in_steps() {
    let history = InterruptionHistory::default();
    after(
        &history,
        &[
            Episode::Run("m5", "a", 20, 12),
            Episode::Interrupt("i-1", "m5", "a"),
            Episode::Run("m5", "a", 20, 240),
        ],
    );
    let rate = history.rate("m5", "a").unwrap();
    assert!((0.1..0.2).contains(&rate), "1 in 210 node-days: {rate}");
    let moved = history.revision();
    assert!((5..40).contains(&moved), "252 lists, {moved} steps");
    assert_eq!(history.stamp("m5"), moved);
    assert_eq!(history.stamp("c5"), 0);
}

#[test]
fn what_is_kept_is_bounded() {
    let history = InterruptionHistory::default();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    for serial in 0..2 * PLACES_MAX {
        let mut counts = lock(&history.0);
        let known = counts.tally(&format!("type-{serial}"), "a");
        assert_eq!(known.is_some(), serial < PLACES_MAX);
        if serial < 2 * COUNTED_MAX {
            assert!(counts.is_first_notice(&format!("i-{serial}"), now));
        }
        assert!(counts.counted.len() <= COUNTED_MAX);
    }
    let mut counts = lock(&history.0);
    assert!(counts.tally("", "a").is_none() && counts.tally("type-1", "").is_none());
    counts.decay(now);
    counts.publish();
    assert!(counts.places.is_empty() && counts.published.is_empty());
}
