//! When the cloud was first asked for each reboot that is under way.
//!
//! Bounded by the claims that reboot, and lost with the process, which then begins anew. Nothing is decided here.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use apis::NodeClaim;
use jiff::Timestamp;
use kube::ResourceExt;
use locks::lock;

use crate::node_claim::uid;

/// Of the one controller that asks.
#[derive(Debug, Default)]
pub(super) struct AskedReboots(Mutex<BTreeMap<AskedClaim, Timestamp>>);

/// A claim by its name, under which the controller looks for it, and its UID, as another may come to bear the name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AskedClaim {
    name: String,
    uid: String,
}

impl AskedClaim {
    fn of(claim: &NodeClaim) -> Self {
        let (name, uid) = (claim.name_any(), uid(claim));
        Self { name, uid }
    }
}

impl AskedReboots {
    /// The cloud is asked for the reboot of the claim, for the first time or once more.
    pub(super) fn note(&self, claim: &NodeClaim, now: Timestamp) {
        self.lock().entry(AskedClaim::of(claim)).or_insert(now);
    }

    pub(super) fn first_asked_at(&self, claim: &NodeClaim) -> Option<Timestamp> {
        self.lock().get(&AskedClaim::of(claim)).copied()
    }

    /// No claim of that name reboots any more: it is over, or somebody else deleted the claim.
    pub(super) fn forget(&self, name: &str) {
        self.lock().retain(|claim, _| claim.name != name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AskedClaim, Timestamp>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node_claim::tests::claim_with;

    #[test]
    fn the_first_time_counts_until_the_claim_reboots_no_more() {
        let claim = |uid: &str| claim_with(&json!({"/metadata/uid": uid}));
        let at = |second| Timestamp::from_second(second).unwrap();
        let asked = AskedReboots::default();
        asked.note(&claim("one"), at(1));
        asked.note(&claim("one"), at(2));
        assert_eq!(asked.first_asked_at(&claim("one")), Some(at(1)));
        assert_eq!(asked.first_asked_at(&claim("two")), None, "of that name");
        asked.forget("another");
        assert_eq!(asked.first_asked_at(&claim("one")), Some(at(1)));
        asked.forget("c");
        assert!(asked.lock().is_empty());
    }
}
