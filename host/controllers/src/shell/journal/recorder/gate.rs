//! Which Events are written, and which were told lately or are one too many.
//!
//! It remembers and counts; it writes nothing. Answers to the cache and the rate limits of `pkg/events/recorder.go`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::{KubernetesEvent, RateClass};

/// Events that are remembered at one time: two for each of 32,768 nodes, its own and its claim's.
const TOLD_MAX: usize = 65_536;

/// Everything that makes two events the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ToldEvent {
    reason: Cow<'static, str>,
    dedupe: String,
}

/// Gate that all events pass before they are queued.
#[derive(Debug, Default)]
pub(super) struct EventGate {
    told: BTreeSet<Arc<ToldEvent>>,
    /// The same by the moment from which they may be told again, so that nobody has to look for those that lapsed.
    lapses: BTreeSet<(Instant, Arc<ToldEvent>)>,
    buckets: BTreeMap<RateClass, (f64, Instant)>,
}

impl EventGate {
    /// Whether the event is to be written; it is remembered then.
    pub(super) fn admits(&mut self, event: &KubernetesEvent, now: Instant) -> bool {
        while self.lapses.first().is_some_and(|(at, _)| *at <= now) {
            self.forget_next();
        }
        let told = ToldEvent {
            reason: event.reason.clone(),
            dedupe: event.dedupe.clone(),
        };
        if self.told.contains(&told) {
            return false;
        }
        let takes_token = |class| self.takes_token(class, now);
        if !event.rate.is_none_or(takes_token) {
            return false;
        }
        if !event.dedupe_for.is_zero() {
            self.remember(told, now + event.dedupe_for);
        }
        true
    }

    /// Where there is no room, what would be forgotten next anyway makes it.
    fn remember(&mut self, told: ToldEvent, until: Instant) {
        if self.told.len() >= TOLD_MAX {
            self.forget_next();
        }
        let told = Arc::new(told);
        self.told.insert(Arc::clone(&told));
        self.lapses.insert((until, told));
    }

    fn forget_next(&mut self) {
        if let Some((_, told)) = self.lapses.pop_first() {
            self.told.remove(&told);
        }
    }

    fn takes_token(&mut self, class: RateClass, now: Instant) -> bool {
        let (per_second, burst) = match class {
            RateClass::Nomination | RateClass::NoCapacity => (5.0, 10.0),
        };
        let (tokens, filled_at) = self.buckets.entry(class).or_insert((burst, now));
        let gained = now.duration_since(*filled_at).as_secs_f64() * per_second;
        *tokens = (*tokens + gained).min(burst);
        *filled_at = now;
        if *tokens < 1.0 {
            return false;
        }
        *tokens -= 1.0;
        true
    }
}
