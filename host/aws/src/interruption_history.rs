//! How often spot nodes are taken back: the interruptions that the queue told of, against the time that nodes were
//! exposed to them.
//!
//! Counts what happens to the nodes of this cluster only, and forgets it with the process. Reads no clock and no
//! cloud. What it tells moves in steps, so that lists of instance types stay cached. Karpenter has no such thing.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;

use crate::cache::lock;

const DAY_SECONDS: f64 = 86_400.0;
/// Rates are of so long a time.
const UNIT_SECONDS: f64 = 30.0 * DAY_SECONDS;
/// How long what was seen counts, on average.
const MEAN_LIFE_SECONDS: f64 = 30.0 * DAY_SECONDS;
/// From so much exposure on a rate is known. A rate is never of less, or the first interruption of a young node would
/// count for thousands.
const EXPOSURE_SECONDS_MIN: f64 = DAY_SECONDS;
/// From so many interruptions on a rate is known: one alone keeps it known for three weeks.
const INTERRUPTIONS_MIN: f64 = 0.5;
/// A longer time between two lists counts as this: the clock has jumped, or nobody was there to be told.
const GAP_SECONDS_MAX: f64 = 3_600.0;
/// What is told changes with this part of it, and not before.
const STEP: f64 = 0.1;
/// Counts of less than both are dropped.
const INTERRUPTIONS_TRACE: f64 = 0.01;
const EXPOSURE_SECONDS_TRACE: f64 = 1.0;
/// Types and zones that are counted at most; EC2 sells fewer in any region.
const PLACES_MAX: usize = 10_000;
/// Interrupted instances that are remembered, so that a notice told twice counts once.
const COUNTED_MAX: usize = 1_000;

/// A running spot instance, as a list tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exposed<'a> {
    pub(crate) instance_type: &'a str,
    pub(crate) zone: &'a str,
    pub(crate) launched_at: Option<Timestamp>,
}

/// A spot instance that is taken back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupted<'a> {
    pub(crate) instance_id: &'a str,
    pub(crate) instance_type: &'a str,
    pub(crate) zone: &'a str,
}

/// The counts of this process.
#[derive(Debug, Default)]
pub(crate) struct InterruptionHistory(Mutex<InterruptionCounts>);

#[derive(Debug, Default)]
struct InterruptionCounts {
    /// By type and zone.
    places: BTreeMap<String, BTreeMap<String, Tally>>,
    /// By type.
    told: BTreeMap<String, PublishedRates>,
    /// Instances whose end is counted.
    counted: BTreeMap<String, Timestamp>,
    listed_at: Option<Timestamp>,
    /// The time to which everything is decayed.
    at: Option<Timestamp>,
    revision: u64,
}

/// Both decay alike.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Tally {
    interruptions: f64,
    exposure_seconds: f64,
}

/// What is told of a type until it has moved by a step.
#[derive(Debug, Default)]
struct PublishedRates {
    by_zone: BTreeMap<String, f64>,
    anywhere: Option<f64>,
    revision: u64,
}

impl InterruptionHistory {
    /// A list of all spot instances that run. Each was exposed since the last list, or since it was launched.
    pub(crate) fn listed<'a>(&self, running: impl Iterator<Item = Exposed<'a>>, now: Timestamp) {
        let mut counts = lock(&self.0);
        counts.decay(now);
        // What ended before the first list is not known, so neither is what was exposed before it.
        let listed_at = counts.listed_at.replace(now).unwrap_or(now);
        for instance in running {
            let since = instance
                .launched_at
                .map_or(listed_at, |it| it.max(listed_at));
            let seconds = seconds_between(since, now).min(GAP_SECONDS_MAX);
            if let Some(tally) = counts.tally(instance.instance_type, instance.zone) {
                tally.exposure_seconds += seconds;
            }
        }
        counts.tell();
    }

    /// A notice that a spot instance is taken back.
    pub(crate) fn interrupted(&self, instance: Interrupted<'_>, now: Timestamp) {
        let mut counts = lock(&self.0);
        if !counts.is_first_notice(instance.instance_id, now) {
            return;
        }
        counts.decay(now);
        if let Some(tally) = counts.tally(instance.instance_type, instance.zone) {
            tally.interruptions += 1.0;
        }
        counts.tell();
    }

    /// Interruptions to expect of a node in 30 days: of its type in its zone, else of its type anywhere.
    pub(crate) fn rate(&self, instance_type: &str, zone: &str) -> Option<f64> {
        let counts = lock(&self.0);
        let told = counts.told.get(instance_type)?;
        told.by_zone.get(zone).copied().or(told.anywhere)
    }

    /// Changes whenever any rate has.
    pub(crate) fn revision(&self) -> u64 {
        lock(&self.0).revision
    }

    /// Changes whenever a rate of this type has.
    pub(crate) fn stamp(&self, instance_type: &str) -> u64 {
        let counts = lock(&self.0);
        counts.told.get(instance_type).map_or(0, |it| it.revision)
    }
}

impl InterruptionCounts {
    fn decay(&mut self, now: Timestamp) {
        let seconds = self.at.map_or(0.0, |at| seconds_between(at, now));
        self.at = Some(now);
        let left = (-seconds / MEAN_LIFE_SECONDS).exp();
        for zones in self.places.values_mut() {
            for tally in zones.values_mut() {
                tally.interruptions *= left;
                tally.exposure_seconds *= left;
            }
            zones.retain(|_, tally| !tally.is_trace());
        }
        self.places.retain(|_, zones| !zones.is_empty());
    }

    /// Where to count; `None` for what has no place and when there are too many.
    fn tally(&mut self, instance_type: &str, zone: &str) -> Option<&mut Tally> {
        let is_known = self
            .places
            .get(instance_type)
            .is_some_and(|zones| zones.contains_key(zone));
        let is_full = || self.places.values().map(BTreeMap::len).sum::<usize>() >= PLACES_MAX;
        if instance_type.is_empty() || zone.is_empty() || (!is_known && is_full()) {
            return None;
        }
        let zones = self.places.entry(instance_type.to_owned()).or_default();
        Some(zones.entry(zone.to_owned()).or_default())
    }

    fn is_first_notice(&mut self, instance_id: &str, now: Timestamp) -> bool {
        let is_first = !self.counted.contains_key(instance_id);
        if is_first && self.counted.len() >= COUNTED_MAX {
            let oldest = self.counted.iter().min_by_key(|(_, at)| **at);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.map(|id| self.counted.remove(&id));
        }
        self.counted.insert(instance_id.to_owned(), now);
        is_first
    }

    /// Tells what has moved.
    fn tell(&mut self) {
        self.told.retain(|instance_type, told| {
            told.anywhere.is_some() || self.places.contains_key(instance_type)
        });
        for instance_type in self.places.keys() {
            self.told.entry(instance_type.clone()).or_default();
        }
        let nowhere = BTreeMap::new();
        for (instance_type, told) in &mut self.told {
            let zones = self.places.get(instance_type).unwrap_or(&nowhere);
            let mut sum = Tally::default();
            for tally in zones.values() {
                sum.interruptions += tally.interruptions;
                sum.exposure_seconds += tally.exposure_seconds;
            }
            let by_zone: BTreeMap<String, f64> = zones
                .iter()
                .filter_map(|(zone, tally)| Some((zone.clone(), tally.rate()?)))
                .collect();
            let anywhere = sum.rate();
            let is_same = by_zone.keys().eq(told.by_zone.keys())
                && by_zone
                    .iter()
                    .all(|(zone, rate)| !has_moved(told.by_zone.get(zone).copied(), Some(*rate)))
                && !has_moved(told.anywhere, anywhere);
            if is_same {
                continue;
            }
            self.revision += 1;
            *told = PublishedRates {
                by_zone,
                anywhere,
                revision: self.revision,
            };
        }
    }
}

impl Tally {
    fn rate(&self) -> Option<f64> {
        let is_known = self.exposure_seconds >= EXPOSURE_SECONDS_MIN
            || self.interruptions >= INTERRUPTIONS_MIN;
        let exposure_seconds = self.exposure_seconds.max(EXPOSURE_SECONDS_MIN);
        is_known.then(|| self.interruptions / exposure_seconds * UNIT_SECONDS)
    }

    fn is_trace(&self) -> bool {
        self.interruptions < INTERRUPTIONS_TRACE && self.exposure_seconds < EXPOSURE_SECONDS_TRACE
    }
}

fn has_moved(from: Option<f64>, to: Option<f64>) -> bool {
    match (from, to) {
        (Some(from), Some(to)) => (to - from).abs() > STEP * from.max(STEP),
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    }
}

/// Clocks may be set back.
fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[cfg(test)]
mod tests {
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
        history.listed([].into_iter(), now);
        let mut hour = |nodes: &[Exposed<'_>]| {
            now += SignedDuration::from_hours(1);
            history.listed(nodes.iter().copied(), now);
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
                    history.interrupted(instance, hour(&[]));
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
                history.listed(running.into_iter(), at(*hours));
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
        counts.tell();
        assert!(counts.places.is_empty() && counts.told.is_empty());
    }
}
