//! How often spot nodes are taken back: the interruptions that the queue told of, against the time that nodes were
//! exposed to them.
//!
//! Counts what happens to the nodes of this cluster only, and forgets it with the process. Reads no clock and no
//! cloud. What it tells moves in steps, so that lists of instance types stay cached. Karpenter has no such thing.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;
use locks::lock;

use crate::cache::make_room;

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
    /// Name of the zone.
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
    /// Rates told of each type.
    published: BTreeMap<String, PublishedRates>,
    /// Instances whose end is counted.
    counted: BTreeMap<String, Timestamp>,
    listed_at: Option<Timestamp>,
    /// The time to which everything is decayed.
    at: Option<Timestamp>,
    revision: u64,
}

/// Counts of a type in a zone, which decay at the same rate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Tally {
    interruptions: f64,
    exposure_seconds: f64,
}

/// Rates told of a type until one has moved by a step.
#[derive(Debug, Default)]
struct PublishedRates {
    by_zone: BTreeMap<String, f64>,
    anywhere: Option<f64>,
    revision: u64,
}

impl InterruptionHistory {
    /// A list of all spot instances that run. Each was exposed since the last list, or since it was launched.
    pub(crate) fn note_running<'a>(
        &self,
        running: impl Iterator<Item = Exposed<'a>>,
        now: Timestamp,
    ) {
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
        counts.publish();
    }

    /// A notice that a spot instance is taken back.
    pub(crate) fn note_interruption(&self, instance: Interrupted<'_>, now: Timestamp) {
        let mut counts = lock(&self.0);
        if !counts.is_first_notice(instance.instance_id, now) {
            return;
        }
        counts.decay(now);
        if let Some(tally) = counts.tally(instance.instance_type, instance.zone) {
            tally.interruptions += 1.0;
        }
        counts.publish();
    }

    /// Interruptions to expect of a node in 30 days: of its type in its zone, else of its type anywhere.
    pub(crate) fn rate(&self, instance_type: &str, zone: &str) -> Option<f64> {
        let counts = lock(&self.0);
        let rates = counts.published.get(instance_type)?;
        rates.by_zone.get(zone).copied().or(rates.anywhere)
    }

    /// Changes whenever any rate has.
    pub(crate) fn revision(&self) -> u64 {
        lock(&self.0).revision
    }

    /// Changes whenever a rate of this type has.
    pub(crate) fn stamp(&self, instance_type: &str) -> u64 {
        let counts = lock(&self.0);
        counts
            .published
            .get(instance_type)
            .map_or(0, |it| it.revision)
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
        make_room(&mut self.counted, instance_id, COUNTED_MAX, |at| *at);
        self.counted.insert(instance_id.to_owned(), now);
        is_first
    }

    /// Tells what has moved.
    fn publish(&mut self) {
        self.published.retain(|instance_type, rates| {
            rates.anywhere.is_some() || self.places.contains_key(instance_type)
        });
        for instance_type in self.places.keys() {
            self.published.entry(instance_type.clone()).or_default();
        }
        let nowhere = BTreeMap::new();
        for (instance_type, rates) in &mut self.published {
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
            let is_same = by_zone.keys().eq(rates.by_zone.keys())
                && by_zone
                    .iter()
                    .all(|(zone, rate)| !has_moved(rates.by_zone.get(zone).copied(), Some(*rate)))
                && !has_moved(rates.anywhere, anywhere);
            if is_same {
                continue;
            }
            self.revision += 1;
            *rates = PublishedRates {
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
mod tests;
