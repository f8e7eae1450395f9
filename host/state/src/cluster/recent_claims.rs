//! The NodeClaims that changed lately, whole, and of every claim the newest version that is known.
//!
//! A change of a claim wakes half a dozen controllers, and each would read it from the API server. Claims at rest
//! are not kept: they are large (up to 600 names of instance types), and asked for seldom. Versions are small, so they
//! are kept of all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use apis::NodeClaim;

use super::resource_version::resource_version;

/// How many claims are kept.
const KEPT_MAX: usize = 256;
/// How many UIDs are kept of claims that are gone: more than can be written to at once.
const DELETED_MAX: usize = 4096;

/// Copies of claims that changed lately, and the newest version known of every claim.
#[derive(Debug, Default)]
pub(super) struct RecentClaims {
    kept: BTreeMap<String, KeptClaim>,
    /// Names by when they were kept last.
    ages: BTreeMap<u64, String>,
    next: u64,
    /// Value of `next` when copies were let go last.
    looked: u64,
    /// Of all claims that are not gone, also of those whose copy fell out: what is told late of one must not be taken
    /// for its present, or it is launched twice.
    versions: BTreeMap<String, RecentClaim>,
    /// UIDs of claims that are gone: the answer to a write may come after the word of the deletion.
    deleted: VecDeque<String>,
}

/// What is known of a claim that is not gone, launched or not.
#[derive(Debug, Default)]
struct RecentClaim {
    version: u64,
    uid: String,
    /// Whether a list has to have it. One that goes may be gone before anything tells of it.
    is_told: bool,
}

#[derive(Debug)]
struct KeptClaim {
    at: u64,
    claim: Arc<NodeClaim>,
}

impl RecentClaims {
    pub(super) fn get(&self, name: &str) -> Option<Arc<NodeClaim>> {
        self.kept.get(name).map(|it| Arc::clone(&it.claim))
    }

    /// Takes a copy in; false, and nothing done, where a newer one is known or the claim is gone.
    pub(super) fn keep(&mut self, claim: &Arc<NodeClaim>) -> bool {
        let name = claim.metadata.name.clone().unwrap_or_default();
        let uid = claim.metadata.uid.as_deref().unwrap_or_default();
        if self.deleted.iter().any(|deleted| deleted == uid) {
            return false;
        }
        let version = resource_version(&claim.metadata);
        let newest = self.versions.entry(name.clone()).or_default();
        if version < newest.version {
            return false;
        }
        let was_told = newest.is_told && newest.uid == uid;
        *newest = RecentClaim {
            version,
            uid: uid.to_owned(),
            is_told: was_told || claim.metadata.deletion_timestamp.is_some(),
        };
        if let Some(known) = self.kept.get(&name) {
            self.ages.remove(&known.at);
        }
        let at = self.next;
        self.next += 1;
        self.ages.insert(at, name.clone());
        let claim = Arc::clone(claim);
        self.kept.insert(name, KeptClaim { at, claim });
        if self.kept.len() > KEPT_MAX
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.kept.remove(&oldest);
        }
        true
    }

    /// The watch tells of the claim, so that a list without it means that it is gone.
    pub(super) fn note_told(&mut self, claim: &NodeClaim) {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let uid = claim.metadata.uid.as_deref().unwrap_or_default();
        if let Some(known) = self.versions.get_mut(name).filter(|it| it.uid == uid) {
            known.is_told = true;
        }
    }

    /// Whether a list may lack the claim, of which only writes of our own tell so far; the next list may not.
    pub(super) fn excuse_once(&mut self, name: &str) -> bool {
        let known = self.versions.get_mut(name);
        known.is_some_and(|it| !std::mem::replace(&mut it.is_told, true))
    }

    /// The claim that was known by this name is gone for good.
    pub(super) fn note_deleted(&mut self, name: &str) {
        self.forget(name);
        let uid = self.versions.remove(name).map(|it| it.uid);
        self.deleted.extend(uid.filter(|it| !it.is_empty()));
        if self.deleted.len() > DELETED_MAX {
            self.deleted.pop_front();
        }
    }

    /// Lets go of the copies that were there at the last call already: their claims are at rest.
    pub(super) fn rest(&mut self) {
        let young = self.ages.split_off(&self.looked);
        for name in std::mem::replace(&mut self.ages, young).values() {
            self.kept.remove(name);
        }
        self.looked = self.next;
    }

    /// A write showed that the copy is old.
    pub(super) fn forget(&mut self, name: &str) {
        if let Some(known) = self.kept.remove(name) {
            self.ages.remove(&known.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str, version: &str) -> Arc<NodeClaim> {
        let mut claim = NodeClaim::new(name, apis::NodeClaimSpec::default());
        claim.metadata.resource_version = Some(version.to_owned());
        Arc::new(claim)
    }

    fn known(recent: &RecentClaims, name: &str) -> Option<String> {
        recent.get(name)?.metadata.resource_version.clone()
    }

    #[test]
    fn an_older_copy_that_comes_late_does_not_replace_a_newer_one() {
        let mut recent = RecentClaims::default();
        assert!(recent.keep(&claim("a", "10")));
        assert!(!recent.keep(&claim("a", "9")));
        assert_eq!(known(&recent, "a").as_deref(), Some("10"));
        assert!(recent.keep(&claim("a", "11")));
        assert!(recent.keep(&claim("a", "opaque")));
        assert_eq!(known(&recent, "a").as_deref(), Some("opaque"));
    }

    #[test]
    fn an_older_copy_stays_out_also_where_the_newer_one_is_not_kept() {
        let mut recent = RecentClaims::default();
        recent.keep(&claim("a", "10"));
        recent.forget("a");
        assert!(!recent.keep(&claim("a", "9")) && recent.get("a").is_none());
        assert!(recent.keep(&claim("a", "10")));
        for number in 0..KEPT_MAX {
            recent.keep(&claim(&format!("c{number}"), "1"));
        }
        assert!(recent.get("a").is_none());
        assert!(!recent.keep(&claim("a", "9")) && recent.get("a").is_none());
        recent.note_deleted("a");
        assert!(recent.keep(&claim("a", "9")));
    }

    #[test]
    fn the_answer_to_a_write_does_not_bring_a_claim_back_that_is_gone() {
        let with_uid = |uid: &str| {
            let mut claim = (*claim("a", "10")).clone();
            claim.metadata.uid = Some(uid.to_owned());
            Arc::new(claim)
        };
        let mut recent = RecentClaims::default();
        assert!(recent.keep(&with_uid("first")));
        recent.note_deleted("a");
        assert!(!recent.keep(&with_uid("first")) && recent.get("a").is_none());
        assert!(recent.keep(&with_uid("second")), "another of the same name");
    }

    #[test]
    fn those_at_rest_fall_out() {
        let mut recent = RecentClaims::default();
        recent.keep(&claim("a", "1"));
        recent.keep(&claim("b", "1"));
        recent.rest();
        assert!(recent.get("a").is_some(), "not at once");
        recent.keep(&claim("b", "2"));
        recent.rest();
        assert!(recent.get("a").is_none() && recent.get("b").is_some());
        recent.rest();
        assert!(recent.kept.is_empty() && recent.ages.is_empty());
        assert!(!recent.keep(&claim("b", "1")), "its version is known");
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut recent = RecentClaims::default();
        for number in 0..=KEPT_MAX {
            recent.keep(&claim(&format!("c{number}"), "1"));
            recent.keep(&claim("busy", &number.to_string()));
        }
        assert!(recent.get("c0").is_none() && recent.get("c1").is_none());
        assert!(recent.get("busy").is_some() && recent.get("c2").is_some());
        assert_eq!((recent.kept.len(), recent.ages.len()), (KEPT_MAX, KEPT_MAX));
    }
}
