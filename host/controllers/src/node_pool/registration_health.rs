//! Remembers how the last launches and registrations of each pool went, and says so in the pool's status.
//!
//! For information; no decision looks at it. Answers to
//! `pkg/controllers/nodepool/registrationhealth/controller.go`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Results that are remembered.
const REMEMBERED: usize = 4;
/// With this many failures among them, a pool is unhealthy.
const FAILURES_MIN: usize = 2;

/// The last results of each pool, by its UID: a pool that was made anew starts afresh.
#[derive(Debug, Default)]
pub(crate) struct RegistrationHealth {
    results: BTreeMap<String, VecDeque<bool>>,
    /// UIDs of pools whose condition is being written.
    telling: BTreeSet<String>,
}

impl RegistrationHealth {
    /// Whether the condition of the pool is to be written by who asks: where many nodes register at once, one of them
    /// says so for all.
    pub(crate) fn tells(&mut self, pool: &str) -> bool {
        self.telling.insert(pool.to_owned())
    }

    /// The condition was written, or could not be.
    pub(crate) fn told(&mut self, pool: &str) {
        self.telling.remove(pool);
    }

    /// Takes in a result; answers whether the pool is healthy now.
    pub(crate) fn note(&mut self, pool: &str, success: bool) -> bool {
        let results = self.results.entry(pool.to_owned()).or_default();
        results.push_back(success);
        if results.len() > REMEMBERED {
            results.pop_front();
        }
        results.iter().filter(|success| !**success).count() < FAILURES_MIN
    }

    /// A process that knows nothing takes the pool's condition for what it remembers: one success where it says
    /// healthy, as many failures as make a pool unhealthy where it says the contrary.
    pub(crate) fn seed(&mut self, pool: &str, healthy: Option<bool>) {
        if let (Some(healthy), false) = (healthy, self.results.contains_key(pool)) {
            let results = if healthy {
                VecDeque::from([true])
            } else {
                VecDeque::from([false; FAILURES_MIN])
            };
            self.results.insert(pool.to_owned(), results);
        }
    }

    /// The pool or its class changed, so the past says nothing.
    pub(crate) fn forget(&mut self, pool: &str) {
        self.results.remove(pool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_failures_among_the_last_four_are_unhealthy() {
        let cases: [(&[bool], bool); 4] = [
            (&[true, true, false, false], false),
            (&[false], true),
            (&[false, false], false),
            (&[false, false, true, true, true], true),
        ];
        for (results, healthy) in cases {
            let mut health = RegistrationHealth::default();
            let last = results
                .iter()
                .map(|result| health.note("p", *result))
                .last();
            assert_eq!(last, Some(healthy), "{results:?}");
        }
    }

    #[test]
    fn a_condition_stands_for_what_was_forgotten() {
        for (told, result, healthy) in [
            (Some(false), true, false),
            (Some(true), false, true),
            (None, false, true),
        ] {
            let mut health = RegistrationHealth::default();
            health.seed("p", told);
            assert_eq!(health.note("p", result), healthy, "{told:?} {result}");
        }
        let mut health = RegistrationHealth::default();
        health.note("p", true);
        health.seed("p", Some(false));
        assert!(health.note("p", true), "what is remembered counts more");
    }
}
