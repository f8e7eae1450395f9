//! A map whose entries expire, on the injected clock.
//!
//! Never reads a clock itself: every call is told what time it is. Keeps nothing that must be cleaned up elsewhere, for
//! what has expired goes without a word. Answers to Karpenter's `pkg/cache/cache.go`.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Mutex;

use apis::fnv::{OFFSET_BASIS, fnv_1a};
use jiff::{SignedDuration, Timestamp};
use locks::lock;

/// Entries of one minute: what Karpenter calls the default.
pub(crate) const DEFAULT_TTL: SignedDuration = SignedDuration::from_mins(1);

/// Entries of one cache. What expires soonest makes room: all that is lost by it is that AWS is asked again.
pub(crate) const ENTRIES_MAX: usize = 10_000;

/// Entries that expire some time after they were put in. Each insertion takes out what has expired by then, so that
/// nothing has to sweep.
#[derive(Debug)]
pub(crate) struct TtlCache<K, V> {
    ttl: SignedDuration,
    entries: Mutex<BTreeMap<K, (V, Timestamp)>>,
}

impl<K: Ord + Clone, V: Clone> TtlCache<K, V> {
    /// With no entry.
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
        entries.retain(|_, (_, expires)| *expires > now);
        make_room(&mut entries, &key, ENTRIES_MAX, |(_, expires)| *expires);
        entries.insert(key, (value, after(now, ttl)));
    }

    /// Forgets an entry.
    pub(crate) fn remove(&self, key: &K) -> Option<V> {
        lock(&self.entries).remove(key).map(|(value, _)| value)
    }
}

/// Takes one entry out of a map that is full, unless it has the key already: the one that comes first by `order`.
pub(crate) fn make_room<K, V, Q, T>(
    entries: &mut BTreeMap<K, V>,
    key: &Q,
    max: usize,
    order: impl Fn(&V) -> T,
) where
    K: Ord + Clone + Borrow<Q>,
    Q: Ord + ?Sized,
    T: Ord,
{
    if entries.len() < max || entries.contains_key(key) {
        return;
    }
    let first = entries.iter().min_by_key(|(_, value)| order(value));
    if let Some(first) = first.map(|(key, _)| key.clone()) {
        entries.remove(first.borrow());
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
        assert_eq!(cache.get(&"a", after(start, DEFAULT_TTL)), None);
    }

    #[test]
    fn what_has_expired_is_gone_with_the_next_insertion() {
        let cache = TtlCache::new(DEFAULT_TTL);
        let start = Timestamp::UNIX_EPOCH;
        cache.insert("gone", 1, start);
        cache.insert("stays", 2, after(start, SignedDuration::from_secs(1)));
        cache.insert("new", 3, after(start, DEFAULT_TTL));
        let kept: Vec<&str> = lock(&cache.entries).keys().copied().collect();
        assert_eq!(kept, ["new", "stays"]);
    }

    #[test]
    fn a_full_cache_drops_what_would_expire_first_and_nothing_for_a_key_that_it_has() {
        let cache = TtlCache::new(DEFAULT_TTL);
        let start = Timestamp::UNIX_EPOCH;
        let expires = |key| {
            after(
                start,
                SignedDuration::from_secs(if key == 7 { 5 } else { 6 }),
            )
        };
        let entries = (0..ENTRIES_MAX).map(|key| (key, ((), expires(key))));
        lock(&cache.entries).extend(entries);
        cache.insert(0, (), start);
        assert!(cache.get(&7, start).is_some());
        cache.insert(ENTRIES_MAX, (), start);
        assert!(cache.get(&7, start).is_none());
        assert_eq!(lock(&cache.entries).len(), ENTRIES_MAX);
    }

    #[test]
    fn fingerprints_respect_the_borders_of_parts() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
        assert_eq!(fingerprint(["ab", "c"]), fingerprint(["ab", "c"]));
    }
}
