//! Bindings as they were applied, and what follows from how each ConfigMap is found now.
//!
//! Decides; loading, letting go and writing are the controller's.

use std::collections::BTreeMap;
use std::time::Duration;

use apis::ObjectKey;
use jiff::{SignedDuration, Timestamp};

use super::pace::SwapPace;

/// How long a deleted policy goes on deciding: whoever replaces a ConfigMap deletes it for a moment.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// A binding as it was read, with the ConfigMaps that it names.
#[derive(Debug, Clone, Copy)]
pub(super) struct BindingReading<'a> {
    /// Version of its ConfigMap.
    pub(super) version: &'a str,
    /// Differs where anything else is said.
    pub(super) fingerprint: u64,
}

/// Consequence of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterReading {
    /// It says what it said.
    Keep,
    /// It was changed so lately that it has to wait.
    Rest(Duration),
    /// It is put in charge as it is now.
    Swap,
}

/// Consequence where there is no ConfigMap any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterDeletion {
    /// Nothing is to be done: the binding was not known.
    Nothing,
    /// It goes on deciding, for so long at most.
    Linger(Duration),
    /// It decides no more.
    LetGo,
}

/// Bindings as they were applied, and when they may be swapped again.
#[derive(Debug, Default)]
pub(super) struct KnownBindings(BTreeMap<ObjectKey, KnownBinding>);

#[derive(Debug)]
struct KnownBinding {
    /// Version of its ConfigMap that was looked at last.
    version: String,
    fingerprint: u64,
    pace: SwapPace,
    /// When its ConfigMap was found gone.
    gone_since: Option<Timestamp>,
}

impl KnownBindings {
    /// Whether this version of a ConfigMap was looked at.
    pub(super) fn is_seen(&self, key: &ObjectKey, version: &str) -> bool {
        self.0.get(key).is_some_and(|it| it.version == version)
    }

    /// A ConfigMap is there: its policy goes on, or begins.
    pub(super) fn note_there(&mut self, key: &ObjectKey) {
        if let Some(known) = self.0.get_mut(key) {
            known.gone_since = None;
        }
    }

    /// A ConfigMap was read, so that it is there. A swap that follows counts as made.
    pub(super) fn note_read(
        &mut self,
        key: &ObjectKey,
        reading: BindingReading<'_>,
        now: Timestamp,
    ) -> AfterReading {
        if let Some(known) = self.0.get_mut(key) {
            return known.note_read(reading, now);
        }
        let known = KnownBinding {
            version: reading.version.to_owned(),
            fingerprint: reading.fingerprint,
            pace: SwapPace::first(now),
            gone_since: None,
        };
        self.0.insert(key.clone(), known);
        AfterReading::Swap
    }

    /// A ConfigMap is gone, or going.
    pub(super) fn note_gone(&mut self, key: &ObjectKey, now: Timestamp) -> AfterDeletion {
        let Some(known) = self.0.get_mut(key) else {
            return AfterDeletion::Nothing;
        };
        let since = *known.gone_since.get_or_insert(now);
        let left = GRACE - now.duration_since(since);
        if left.is_positive() {
            return AfterDeletion::Linger(left.unsigned_abs());
        }
        self.0.remove(key);
        AfterDeletion::LetGo
    }
}

impl KnownBinding {
    fn note_read(&mut self, reading: BindingReading<'_>, now: Timestamp) -> AfterReading {
        let BindingReading {
            version,
            fingerprint,
        } = reading;
        self.gone_since = None;
        let is_other = self.fingerprint != fingerprint;
        if is_other && let Err(wait) = self.pace.swap(now, fingerprint) {
            return AfterReading::Rest(wait);
        }
        version.clone_into(&mut self.version);
        self.fingerprint = fingerprint;
        if is_other {
            AfterReading::Swap
        } else {
            AfterReading::Keep
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::new("mortise", "it")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    impl KnownBindings {
        fn read(&mut self, seconds: i64, version: &str, fingerprint: u64) -> AfterReading {
            let reading = BindingReading {
                version,
                fingerprint,
            };
            self.note_read(&key(), reading, at(seconds))
        }

        fn gone(&mut self, seconds: i64) -> AfterDeletion {
            self.note_gone(&key(), at(seconds))
        }
    }

    #[test]
    fn what_says_the_same_is_not_loaded_again() {
        let mut known = KnownBindings::default();
        assert!(!known.is_seen(&key(), "1"));
        assert_eq!(known.read(0, "1", 7), AfterReading::Swap);
        assert!(known.is_seen(&key(), "1"));
        assert_eq!(known.read(2, "2", 7), AfterReading::Keep);
        assert!(known.is_seen(&key(), "2"));
    }

    #[test]
    fn a_change_waits_out_the_pause_and_is_read_again_then() {
        let mut known = KnownBindings::default();
        known.read(0, "1", 7);
        let rest = AfterReading::Rest(Duration::from_secs(6));
        assert_eq!(known.read(4, "2", 8), rest);
        assert!(!known.is_seen(&key(), "2"));
        assert_eq!(known.read(10, "2", 8), AfterReading::Swap);
    }

    #[test]
    fn a_deleted_policy_decides_for_a_minute() {
        let linger = |seconds| AfterDeletion::Linger(Duration::from_secs(seconds));
        let mut known = KnownBindings::default();
        assert_eq!(known.gone(0), AfterDeletion::Nothing);
        known.read(0, "1", 7);
        assert_eq!([known.gone(5), known.gone(30)], [linger(60), linger(35)]);
        assert_eq!(known.gone(65), AfterDeletion::LetGo);
        assert_eq!(known.gone(66), AfterDeletion::Nothing);
    }

    #[test]
    fn one_that_comes_back_has_its_minute_again() {
        let mut known = KnownBindings::default();
        known.read(0, "1", 7);
        known.gone(5);
        known.note_there(&key());
        assert_eq!(known.read(40, "2", 7), AfterReading::Keep);
        let linger = AfterDeletion::Linger(Duration::from_mins(1));
        assert_eq!(known.gone(66), linger);
    }
}
