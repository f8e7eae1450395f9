//! Tells what happened: a controller writes one entry, and log, Events, metrics, decision feed and ledger each take
//! their part of it.
//!
//! What each of them is told stands with the entry, in the `entries.rs` beside its controllers or in the file of the
//! controller that has one or two. Only the applying halves of controllers write here; nothing reads.

pub(crate) mod feed;
pub(crate) mod log_values;
pub(crate) mod recorder;
pub(crate) mod references;

use std::sync::{Arc, Mutex};

use cloudprovider::Clock;
use jiff::Timestamp;
use locks::lock;
use state::ledger::{Ledger, Record};

use crate::shell::journal::feed::DecisionFeed;
use crate::shell::journal::recorder::{EventRecorder, KubernetesEvent};
use crate::shell::metrics::Metrics;

/// The ledger, shared with whoever wants to read it.
pub type SharedLedger = Arc<Mutex<Ledger>>;

/// Something that happened to a subject, and what each reader is told of it; most are told nothing.
pub(crate) trait JournalEntry {
    /// Object that it happened to, with what else the readers are told.
    type Subject: ?Sized;

    /// Writes the log line.
    fn log(&self, _subject: &Self::Subject) {}

    /// Events to publish; none by default.
    fn events(&self, _subject: &Self::Subject) -> Vec<KubernetesEvent> {
        Vec::new()
    }

    /// Counts and observes for metrics.
    fn measure(&self, _subject: &Self::Subject, _metrics: &Metrics) {}

    /// Lines of the decision feed.
    fn lines(&self, _subject: &Self::Subject) -> Vec<String> {
        Vec::new()
    }

    /// A record of the ledger.
    fn record(&self, _subject: &Self::Subject, _at: Timestamp) -> Option<Record> {
        None
    }
}

/// Shared by all that tell.
pub(crate) struct Journal {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: EventRecorder,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) feed: Arc<DecisionFeed>,
    pub(crate) ledger: SharedLedger,
}

impl Journal {
    /// Tells all of something that happened.
    pub(crate) fn write<E: JournalEntry>(&self, subject: &E::Subject, entry: &E) {
        let at = self.clock.now();
        entry.log(subject);
        for event in entry.events(subject) {
            self.events.publish(event);
        }
        entry.measure(subject, &self.metrics);
        if let Some(record) = entry.record(subject, at) {
            self.metrics.count(&record);
            let mut ledger = lock(&self.ledger);
            ledger.push(record);
        }
        for line in entry.lines(subject) {
            self.feed.write(at, line);
        }
    }
}
