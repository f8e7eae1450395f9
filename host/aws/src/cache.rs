//! A map whose entries expire, on the injected clock.
//!
//! Never reads a clock itself: every call is told what time it is. Ordered, so that sweeping is
//! deterministic. Answers to Karpenter's `pkg/cache/cache.go`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use apis::fnv::{OFFSET_BASIS, fnv_1a};
use jiff::{SignedDuration, Timestamp};
use locks::lock;

/// Entries of one minute: what Karpenter calls the default.
pub(crate) const DEFAULT_TTL: SignedDuration = SignedDuration::from_mins(1);

/// Entries that expire a fixed time after they were put in.
#[derive(Debug)]
pub(crate) struct TtlCache<K, V> {
    ttl: SignedDuration,
    entries: Mutex<BTreeMap<K, (V, Timestamp)>>,
}

impl<K: Ord + Clone, V: Clone> TtlCache<K, V> {
    pub(crate) fn new(ttl: SignedDuration) -> Self {
        Self {
            ttl,
            entries: Mutex::new(BTreeMap::new()),
        }
    }

    /// The live entry of a key.
    pub(crate) fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let entries = lock(&self.entries);
        entries
            .get(key)
            .filter(|(_, expires)| *expires > now)
            .map(|(value, _)| value.clone())
    }

    /// Adds or replaces an entry with the cache's own time to live.
    pub(crate) fn insert(&self, key: K, value: V, now: Timestamp) {
        self.insert_for(key, value, now, self.ttl);
    }

    /// Adds or replaces an entry with its own time to live.
    pub(crate) fn insert_for(&self, key: K, value: V, now: Timestamp, ttl: SignedDuration) {
        let mut entries = lock(&self.entries);
        entries.insert(key, (value, after(now, ttl)));
    }

    /// Adds an entry, unless the key has one, be it expired.
    pub(crate) fn insert_if_absent(&self, key: K, value: V, now: Timestamp) {
        let mut entries = lock(&self.entries);
        entries
            .entry(key)
            .or_insert_with(|| (value, after(now, self.ttl)));
    }

    /// Forgets an entry.
    pub(crate) fn remove(&self, key: &K) -> Option<V> {
        lock(&self.entries).remove(key).map(|(value, _)| value)
    }

    /// Takes out what has expired, in key order.
    pub(crate) fn sweep(&self, now: Timestamp) -> Vec<(K, V)> {
        let mut entries = lock(&self.entries);
        let dead: Vec<K> = entries
            .iter()
            .filter(|(_, (_, expires))| *expires <= now)
            .map(|(key, _)| key.clone())
            .collect();
        dead.into_iter()
            .filter_map(|key| entries.remove(&key).map(|(value, _)| (key, value)))
            .collect()
    }
}

/// `now` plus `ttl`; the end of time if that lies beyond it.
pub(crate) fn after(now: Timestamp, ttl: SignedDuration) -> Timestamp {
    now.checked_add(ttl).unwrap_or(Timestamp::MAX)
}

/// A name for values that are equal in content: 64 bits of FNV-1a.
pub(crate) fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    // The terminator keeps ["ab", "c"] apart from ["a", "bc"].
    let bytes = parts.into_iter().flat_map(|it| it.bytes().chain([0xff]));
    fnv_1a(OFFSET_BASIS, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_lives_for_its_time_and_no_longer() {
        let cache = TtlCache::new(DEFAULT_TTL);
        let start = Timestamp::UNIX_EPOCH;
        cache.insert("a", 1, start);
        cache.insert_for("b", 2, start, SignedDuration::from_secs(5));
        let later = after(start, SignedDuration::from_secs(5));
        assert_eq!(cache.get(&"a", later), Some(1));
        assert_eq!(cache.get(&"b", later), None);
        assert_eq!(cache.sweep(later), vec![("b", 2)]);
        assert_eq!(cache.get(&"a", after(start, DEFAULT_TTL)), None);
    }

    #[test]
    fn fingerprints_respect_the_borders_of_parts() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
        assert_eq!(fingerprint(["ab", "c"]), fingerprint(["ab", "c"]));
    }
}
