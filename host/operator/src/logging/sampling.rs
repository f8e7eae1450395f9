//! Thins out lines that repeat: of those of one level and message within a second the first hundred are written, and of
//! the rest every hundredth, as Karpenter's log does it.
//!
//! What differs in the values of a line is no matter: whatever fails for each of ten thousand pods says it in one
//! message. Answers to the `Sampling` of `pkg/operator/logging/logging.go`, and zap's `zapcore/sampler.go`.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use locks::lock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Time for which is counted.
const TICK: Duration = Duration::from_secs(1);
/// Lines of one message that are written at first, and of how many more one is.
const FIRST: u64 = 100;
const THEREAFTER: u64 = 100;
/// Different messages of one second that are counted; lines beyond are all written. There are not as many in the
/// program.
const COUNTED_MAX: usize = 4096;

/// Refuses lines that repeat.
#[derive(Debug)]
pub(super) struct Sampling {
    counts: Mutex<LineCounts>,
}

/// How often what was said since when.
#[derive(Debug)]
struct LineCounts {
    since: Instant,
    /// By level and message.
    counts: HashMap<(Level, u64), u64>,
}

impl Sampling {
    pub(super) fn new() -> Self {
        let counts = LineCounts {
            since: Instant::now(),
            counts: HashMap::new(),
        };
        Self {
            counts: Mutex::new(counts),
        }
    }
}

impl LineCounts {
    /// Whether this line is written.
    fn admit(&mut self, now: Instant, level: Level, message: u64) -> bool {
        if now.saturating_duration_since(self.since) >= TICK {
            self.counts.clear();
            self.since = now;
        }
        let is_known = self.counts.contains_key(&(level, message));
        if !is_known && self.counts.len() >= COUNTED_MAX {
            return true;
        }
        let count = self.counts.entry((level, message)).or_insert(0);
        *count += 1;
        *count <= FIRST || (*count - FIRST).is_multiple_of(THEREAFTER)
    }
}

impl<S: Subscriber> Layer<S> for Sampling {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let mut message = MessageHash(DefaultHasher::new());
        event.record(&mut message);
        let level = *event.metadata().level();
        let mut counts = lock(&self.counts);
        counts.admit(Instant::now(), level, message.0.finish())
    }
}

/// Of an event, its message as a number; nothing is put together for it.
struct MessageHash(DefaultHasher);

impl Visit for MessageHash {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing into it cannot fail.
            let _ = write!(HashedText(&mut self.0), "{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.0.write(value.as_bytes());
        }
    }
}

struct HashedText<'a>(&'a mut DefaultHasher);

impl fmt::Write for HashedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn of_what_repeats_within_a_second_the_first_hundred_are_written_and_then_every_hundredth() {
        // Lines of one message within a second, and how many of them are written.
        let cases = [
            (1, 1),
            (100, 100),
            (101, 100),
            (199, 100),
            (200, 101),
            (1000, 109),
        ];
        for (lines, written) in cases {
            let start = Instant::now();
            let mut counts = Sampling::new().counts.into_inner().unwrap();
            counts.since = start;
            let mut admitted = |at: Instant, level: Level, message: u64, lines: usize| {
                (0..lines)
                    .filter(|_| counts.admit(at, level, message))
                    .count()
            };
            assert_eq!(admitted(start, Level::INFO, 1, lines), written, "{lines}");
            assert_eq!(admitted(start, Level::INFO, 2, 7), 7, "another message");
            assert_eq!(admitted(start, Level::ERROR, 1, 7), 7, "another level");
            let next = start + TICK;
            assert_eq!(
                admitted(next, Level::INFO, 1, lines),
                written,
                "{lines} again"
            );
        }
    }

    #[test]
    fn more_messages_than_are_counted_are_written() {
        let mut counts = Sampling::new().counts.into_inner().unwrap();
        let start = counts.since;
        let messages = 0..2 * COUNTED_MAX as u64;
        assert!(
            messages
                .clone()
                .all(|it| counts.admit(start, Level::INFO, it))
        );
        assert_eq!(counts.counts.len(), COUNTED_MAX);
    }

    /// Counts what gets through.
    struct WrittenLines(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for WrittenLines {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn values_do_not_make_a_line_another_and_messages_do() {
        let written = Arc::new(AtomicUsize::new(0));
        let lines = WrittenLines(Arc::clone(&written));
        let subscriber = tracing_subscriber::registry()
            .with(Sampling::new())
            .with(lines);
        tracing::subscriber::with_default(subscriber, || {
            for pod in 0..150 {
                tracing::info!(pod, "no place for the pod");
                tracing::info!("no place for pod {pod}");
            }
        });
        // A machine that takes longer than a second for this writes more of the first, and never less.
        let written = written.load(Ordering::Relaxed);
        assert!((250..=300).contains(&written), "{written}");
    }
}
