//! Which claim got which instance of a shared launch, as far as this process knows.
//!
//! It calls nobody. What it forgets with the process is found again by tags, and claims say themselves what is theirs.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cloudprovider::LISTED_AFTER;
use jiff::{SignedDuration, Timestamp};
use locks::lock;

use super::claim::ClaimUid;

/// How long a launch matters to anybody; claims are given up long before.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// What is known, by token.
#[derive(Debug, Default)]
pub(super) struct SharedLaunches(Mutex<BTreeMap<String, SharedLaunch>>);

#[derive(Debug)]
struct SharedLaunch {
    since: Timestamp,
    /// EC2 told all instances that came of it.
    is_answered: bool,
    /// Since when EC2 says that it was asked for something else under the token before.
    spent_since: Option<Timestamp>,
    /// Instance ids by claim.
    assigned: BTreeMap<ClaimUid, String>,
}

/// Prospect of a token for a claim without instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenState {
    /// EC2 may be asked again.
    Open,
    /// EC2 knows the token and has not listed everything yet.
    Unlisted,
    /// No instance will come of the token any more.
    Over,
}

impl SharedLaunches {
    fn with<T>(&self, token: &str, now: Timestamp, look: impl FnOnce(&mut SharedLaunch) -> T) -> T {
        let mut launches = lock(&self.0);
        launches.retain(|_, it| now.duration_since(it.since) < KEPT);
        let launch = launches.entry(token.to_owned()).or_insert(SharedLaunch {
            since: now,
            is_answered: false,
            spent_since: None,
            assigned: BTreeMap::new(),
        });
        look(launch)
    }

    /// EC2 answered with these instances, the whole of them.
    pub(super) fn note_answer(&self, token: &str, now: Timestamp) {
        self.with(token, now, |it| it.is_answered = true);
    }

    /// EC2 refuses the token, as it stands for another request.
    pub(super) fn spent(&self, token: &str, now: Timestamp) {
        self.with(token, now, |it| {
            it.spent_since.get_or_insert(now);
        });
    }

    /// The instance of a claim: the one that it was assigned before, or else the first that nobody has.
    pub(super) fn assign(
        &self,
        token: &str,
        uid: &ClaimUid,
        now: Timestamp,
        free: impl IntoIterator<Item = String>,
    ) -> Option<String> {
        self.with(token, now, |launch| {
            if let Some(id) = launch.assigned.get(uid) {
                return Some(id.clone());
            }
            let is_taken = |id: &String| launch.assigned.values().any(|other| other == id);
            let id = free.into_iter().find(|id| !is_taken(id))?;
            launch.assigned.insert(uid.clone(), id.clone());
            Some(id)
        })
    }

    /// The claim begins anew, whatever it was assigned before.
    pub(super) fn forget(&self, token: &str, uid: &ClaimUid, now: Timestamp) {
        self.with(token, now, |it| it.assigned.remove(uid));
    }

    /// What may come of the token yet.
    pub(super) fn state(&self, token: &str, now: Timestamp) -> TokenState {
        self.with(token, now, |launch| match launch.spent_since {
            _ if launch.is_answered => TokenState::Over,
            Some(since) if now.duration_since(since) >= LISTED_AFTER => TokenState::Over,
            Some(_) => TokenState::Unlisted,
            None => TokenState::Open,
        })
    }
}

#[cfg(test)]
mod tests {
    use apis::NodeClaim;

    use super::*;

    #[test]
    fn an_instance_is_assigned_once_and_a_claim_keeps_its_own() {
        let launches = SharedLaunches::default();
        let now = Timestamp::UNIX_EPOCH;
        let ids = || ["i-1", "i-2"].map(str::to_owned);
        let assign = |name: &str| {
            let mut claim = NodeClaim::default();
            claim.metadata.name = Some(name.to_owned());
            launches.assign("t", &ClaimUid::of(&claim), now, ids())
        };
        assert_eq!(assign("a").as_deref(), Some("i-1"));
        assert_eq!(assign("b").as_deref(), Some("i-2"));
        assert_eq!(assign("c"), None);
        assert_eq!(assign("a").as_deref(), Some("i-1"));
    }

    #[test]
    fn a_token_is_over_once_all_that_came_of_it_is_known() {
        let launches = SharedLaunches::default();
        let start = Timestamp::UNIX_EPOCH;
        let later = start + LISTED_AFTER;
        assert_eq!(launches.state("t", start), TokenState::Open);
        launches.spent("t", start);
        launches.spent("t", later);
        assert_eq!(launches.state("t", start), TokenState::Unlisted);
        assert_eq!(launches.state("t", later), TokenState::Over);
        launches.note_answer("u", start);
        assert_eq!(launches.state("u", start), TokenState::Over);
    }
}
