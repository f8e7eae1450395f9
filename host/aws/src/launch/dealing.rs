//! Who got which instance of a shared launch, as far as this process knows.
//!
//! It calls nobody. What it forgets with the process is found again by tags, and claims say themselves what is theirs.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cloudprovider::LISTED_AFTER;
use jiff::{SignedDuration, Timestamp};

use crate::cache::lock;

/// How long a launch matters to anybody; claims are given up long before.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// What is known, by token.
#[derive(Debug, Default)]
pub(super) struct Dealings(Mutex<BTreeMap<String, Dealing>>);

#[derive(Debug)]
struct Dealing {
    since: Timestamp,
    /// EC2 told all instances that came of it.
    is_answered: bool,
    /// Since when EC2 says that it was asked for something else under the token before.
    spent_since: Option<Timestamp>,
    /// Instance ids by UID of the claim.
    dealt: BTreeMap<String, String>,
}

/// What may still come of a token for a claim without instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlook {
    /// EC2 may be asked again.
    Open,
    /// EC2 knows the token and has not listed everything yet.
    Unlisted,
    /// Nothing more.
    Over,
}

impl Dealings {
    fn with<T>(&self, token: &str, now: Timestamp, look: impl FnOnce(&mut Dealing) -> T) -> T {
        let mut dealings = lock(&self.0);
        dealings.retain(|_, it| now.duration_since(it.since) < KEPT);
        let dealing = dealings.entry(token.to_owned()).or_insert(Dealing {
            since: now,
            is_answered: false,
            spent_since: None,
            dealt: BTreeMap::new(),
        });
        look(dealing)
    }

    /// EC2 answered with these instances, the whole of them.
    pub(super) fn answered(&self, token: &str, now: Timestamp) {
        self.with(token, now, |it| it.is_answered = true);
    }

    /// EC2 refuses the token, as it stands for another request.
    pub(super) fn spent(&self, token: &str, now: Timestamp) {
        self.with(token, now, |it| {
            it.spent_since.get_or_insert(now);
        });
    }

    /// The instance of a claim: what it was dealt before, or else the first that nobody has.
    pub(super) fn deal(
        &self,
        token: &str,
        uid: &str,
        now: Timestamp,
        free: impl IntoIterator<Item = String>,
    ) -> Option<String> {
        self.with(token, now, |dealing| {
            if let Some(id) = dealing.dealt.get(uid) {
                return Some(id.clone());
            }
            let is_taken = |id: &String| dealing.dealt.values().any(|other| other == id);
            let id = free.into_iter().find(|id| !is_taken(id))?;
            dealing.dealt.insert(uid.to_owned(), id.clone());
            Some(id)
        })
    }

    /// The claim begins anew, whatever it was dealt before.
    pub(super) fn forget(&self, token: &str, uid: &str, now: Timestamp) {
        self.with(token, now, |it| it.dealt.remove(uid));
    }

    /// What may come of the token yet.
    pub(super) fn outlook(&self, token: &str, now: Timestamp) -> Outlook {
        self.with(token, now, |dealing| match dealing.spent_since {
            _ if dealing.is_answered => Outlook::Over,
            Some(since) if now.duration_since(since) >= LISTED_AFTER => Outlook::Over,
            Some(_) => Outlook::Unlisted,
            None => Outlook::Open,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_dealt_once_and_a_claim_keeps_its_own() {
        let dealings = Dealings::default();
        let now = Timestamp::UNIX_EPOCH;
        let ids = || ["i-1", "i-2"].map(str::to_owned);
        let deal = |uid: &str| dealings.deal("t", uid, now, ids());
        assert_eq!(deal("a").as_deref(), Some("i-1"));
        assert_eq!(deal("b").as_deref(), Some("i-2"));
        assert_eq!(deal("c"), None);
        assert_eq!(deal("a").as_deref(), Some("i-1"));
    }

    #[test]
    fn a_token_is_over_once_all_that_came_of_it_is_known() {
        let dealings = Dealings::default();
        let start = Timestamp::UNIX_EPOCH;
        let later = start + LISTED_AFTER;
        assert_eq!(dealings.outlook("t", start), Outlook::Open);
        dealings.spent("t", start);
        dealings.spent("t", later);
        assert_eq!(dealings.outlook("t", start), Outlook::Unlisted);
        assert_eq!(dealings.outlook("t", later), Outlook::Over);
        dealings.answered("u", start);
        assert_eq!(dealings.outlook("u", start), Outlook::Over);
    }
}
