//! The launch templates that this process knows, and for how long each is kept without being used.
//!
//! Never deletes one at EC2, and never drops one unasked as a cache would: what is no longer kept has to be deleted
//! first.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::{SignedDuration, Timestamp};
use locks::lock;

use crate::cache::after;

/// How long a template is kept that no launch uses.
const UNUSED_TTL: SignedDuration = SignedDuration::from_mins(1);
/// Templates that are known at once: twice what EC2 lets a region have. Others are found again once there is room.
const KNOWN_MAX: usize = 10_000;

/// A template that is known.
#[derive(Debug)]
struct KnownTemplate {
    id: String,
    kept_until: Timestamp,
}

/// Known templates by name.
#[derive(Debug, Default)]
pub(super) struct KnownTemplates(Mutex<BTreeMap<String, KnownTemplate>>);

impl KnownTemplates {
    /// Notes a use of a template. False where it is not known, or about to be deleted.
    pub(super) fn touch(&self, name: &str, now: Timestamp) -> bool {
        let mut known = lock(&self.0);
        let known = known.get_mut(name).filter(|it| it.kept_until > now);
        let is_known = known.is_some();
        if let Some(template) = known {
            template.kept_until = after(now, UNUSED_TTL);
        }
        is_known
    }

    /// Keeps a template that a launch uses from now on.
    pub(super) fn keep(&self, name: String, id: String, now: Timestamp) {
        self.put(name, id, after(now, UNUSED_TTL));
    }

    /// Keeps a template that EC2 lists, unless it is known: that it is listed is no use of it.
    pub(super) fn note_listed(&self, name: String, id: String, now: Timestamp) {
        if !lock(&self.0).contains_key(&name) {
            self.keep(name, id, now);
        }
    }

    /// Has a template that could not be deleted among those of the next [`Self::unused`].
    pub(super) fn put_back(&self, name: String, id: String, now: Timestamp) {
        self.put(name, id, now);
    }

    /// Forgets a template.
    pub(super) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }

    /// Names of what nobody has used for too long, in order.
    pub(super) fn unused(&self, now: Timestamp) -> Vec<String> {
        let known = lock(&self.0);
        let unused = known.iter().filter(|(_, it)| it.kept_until <= now);
        unused.map(|(name, _)| name.clone()).collect()
    }

    /// Takes out a template, if it is still unused, and answers its id.
    pub(super) fn take_unused(&self, name: &str, now: Timestamp) -> Option<String> {
        let mut known = lock(&self.0);
        known.get(name).filter(|it| it.kept_until <= now)?;
        known.remove(name).map(|it| it.id)
    }

    fn put(&self, name: String, id: String, kept_until: Timestamp) {
        let mut known = lock(&self.0);
        if known.len() < KNOWN_MAX || known.contains_key(&name) {
            known.insert(name, KnownTemplate { id, kept_until });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_between_two_deletions_of_a_sweep_stays() {
        let known = KnownTemplates::default();
        let (start, later) = (
            Timestamp::UNIX_EPOCH,
            after(Timestamp::UNIX_EPOCH, UNUSED_TTL),
        );
        for name in ["a", "b"] {
            known.keep(name.to_owned(), format!("id-{name}"), start);
        }
        assert_eq!(known.unused(later), ["a", "b"]);
        // Who needs it meanwhile finds it at EC2, where it still is.
        known.keep("b".to_owned(), "id-b".to_owned(), later);
        assert_eq!(known.take_unused("a", later).as_deref(), Some("id-a"));
        assert_eq!(known.take_unused("b", later), None);
        assert!(known.touch("b", later) && !known.touch("a", later));
    }
}
