//! When each Event was written last: that is how long it is kept, as kube-apiserver gives every write a new time to
//! live.
//!
//! One entry for each name, so that an Event which is written again and again takes no more room than another, and one
//! that is made anew is as young as it looks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::object_key::NamespacedName;

#[derive(Debug, Default)]
pub(crate) struct EventAges {
    written: BTreeMap<NamespacedName, Timestamp>,
    /// The same, oldest first.
    oldest: BTreeSet<(Timestamp, NamespacedName)>,
}

impl EventAges {
    pub(crate) fn note_write(&mut self, now: Timestamp, key: &NamespacedName) {
        if let Some(before) = self.written.insert(key.clone(), now) {
            self.oldest.remove(&(before, key.clone()));
        }
        self.oldest.insert((now, key.clone()));
    }

    /// Takes out those that are as old as Events get.
    pub(crate) fn take_aged(&mut self, now: Timestamp, ttl: SignedDuration) -> Vec<NamespacedName> {
        let mut aged = Vec::new();
        while let Some((written, _)) = self.oldest.first()
            && now.duration_since(*written) >= ttl
            && let Some((_, key)) = self.oldest.pop_first()
        {
            self.written.remove(&key);
            aged.push(key);
        }
        aged
    }
}
