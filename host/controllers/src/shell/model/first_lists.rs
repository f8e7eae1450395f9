//! How far the first lists have come: nothing is written before everything that there is has been told.
//!
//! A node whose pods are not listed yet looks drained, a claim whose node is not listed yet looks as if it had none.
//! Answers to controller-runtime, which starts no worker before its caches are synced.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A kind that nothing essential hangs on is waited for until its list failed so often.
const FAILURES_BORNE: usize = 5;

/// How much hangs on a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// There is no cluster to manage without it.
    Core,
    /// Whoever does not see it does harm; a cluster that does not serve it has none of it.
    Guarding,
    /// Without it decisions are poorer; who wrote it believes that it decides.
    Policy,
    /// Without it decisions are poorer.
    Helpful,
}

/// A kind that is watched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchedKind {
    name: &'static str,
    weight: Weight,
}

impl fmt::Debug for WatchedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl WatchedKind {
    /// There is no cluster to manage without it.
    pub(crate) const fn core(name: &'static str) -> Self {
        let weight = Weight::Core;
        Self { name, weight }
    }

    /// Whoever does not see it does harm; a cluster that does not serve it has none of it.
    pub(crate) const fn guarding(name: &'static str) -> Self {
        let weight = Weight::Guarding;
        Self { name, weight }
    }

    /// Who wrote one believes that it decides.
    pub(crate) const fn policy(name: &'static str) -> Self {
        let weight = Weight::Policy;
        Self { name, weight }
    }

    /// Without it decisions are poorer.
    pub(crate) const fn helpful(name: &'static str) -> Self {
        let weight = Weight::Helpful;
        Self { name, weight }
    }

    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    /// This kind under the name by which people know its objects.
    pub(crate) const fn display_name(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Whether people must hear of a watch that fails.
    pub(crate) fn is_essential(self) -> bool {
        self.weight != Weight::Helpful
    }
}

/// Why a list failed, as far as waiting for it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The API server does not know the kind.
    NotServed,
    /// This right is missing; the client tells what grants it.
    Denied(String),
    /// Anything else; it may pass.
    Passing,
}

/// Kinds whose first list is waited for.
#[derive(Debug, Default)]
pub(crate) struct FirstLists {
    /// None before the watches have begun.
    awaited: Option<BTreeSet<WatchedKind>>,
    /// How often the list of a kind failed, and why it did last.
    failures: BTreeMap<WatchedKind, (usize, Failure)>,
}

impl FirstLists {
    /// The watches of these kinds begin.
    pub(crate) fn begin(&mut self, kinds: impl IntoIterator<Item = WatchedKind>) {
        self.awaited = Some(kinds.into_iter().collect());
    }

    /// A list of the kind is complete.
    pub(crate) fn note_listed(&mut self, kind: WatchedKind) {
        if let Some(awaited) = &mut self.awaited {
            awaited.remove(&kind);
        }
    }

    /// A list of the kind failed; it is tried again, whether it is waited for or not.
    pub(crate) fn note_failure(&mut self, kind: WatchedKind, failure: Failure) {
        let is_not_served = failure == Failure::NotServed;
        let failures = self.failures.get(&kind).map_or(0, |it| it.0) + 1;
        self.failures.insert(kind, (failures, failure));
        let is_over = match kind.weight {
            Weight::Core => false,
            Weight::Guarding => is_not_served,
            Weight::Policy | Weight::Helpful => is_not_served || failures >= FAILURES_BORNE,
        };
        if is_over {
            self.note_listed(kind);
        }
    }

    /// Whether everything has been told.
    pub(crate) fn is_complete(&self) -> bool {
        self.awaited.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Kinds whose first list is still waited for.
    pub(crate) fn awaited(&self) -> Vec<WatchedKind> {
        self.awaited.iter().flatten().copied().collect()
    }

    /// Causes that keep lists from being complete and that somebody has to mend, and how, as sentences.
    pub(crate) fn obstacles(&self) -> Vec<String> {
        let mut not_served = Vec::new();
        let mut denied = Vec::new();
        for kind in self.awaited.iter().flatten() {
            match self.failures.get(kind) {
                Some((_, Failure::NotServed)) => not_served.push(kind.name),
                Some((_, Failure::Denied(right))) => denied.push(format!(
                    "{} cannot be watched, because the controller may not {right}",
                    kind.name
                )),
                Some((_, Failure::Passing)) | None => {}
            }
        }
        let not_served = (!not_served.is_empty()).then(|| {
            format!(
                "the API server does not serve {}: `mortise crds | kubectl apply --server-side -f -` installs what is \
                 missing",
                not_served.join(", ")
            )
        });
        not_served.into_iter().chain(denied).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: WatchedKind = WatchedKind::core("Pod");
    const NODE: WatchedKind = WatchedKind::core("Node");

    fn may_not_list_nodes() -> Failure {
        Failure::Denied("list nodes".to_owned())
    }

    #[test]
    fn what_somebody_has_to_mend_is_named_with_the_way_out() {
        let (pool, class) = (
            WatchedKind::core("NodePool"),
            WatchedKind::core("EC2NodeClass"),
        );
        let overlay = WatchedKind::helpful("NodeOverlay");
        let mut progress = FirstLists::default();
        progress.begin([POD, NODE, pool, class, overlay]);
        assert_eq!(progress.obstacles(), [""; 0]);
        progress.note_failure(POD, Failure::Passing);
        progress.note_failure(overlay, Failure::NotServed);
        assert_eq!(
            progress.obstacles(),
            [""; 0],
            "what passes, and what nobody waits for"
        );
        progress.note_failure(pool, Failure::NotServed);
        progress.note_failure(class, Failure::NotServed);
        progress.note_failure(NODE, may_not_list_nodes());
        let obstacles = progress.obstacles();
        let parts: [&[&str]; 2] = [
            &[
                "does not serve",
                "EC2NodeClass",
                "NodePool",
                "`mortise crds | kubectl apply --server-side -f -`",
            ],
            &["Node cannot be watched", "may not list nodes"],
        ];
        assert_eq!(obstacles.len(), parts.len(), "{obstacles:?}");
        for (obstacle, parts) in obstacles.iter().zip(parts) {
            for part in parts {
                assert!(obstacle.contains(part), "{part}: {obstacle}");
            }
        }
        for kind in [pool, class, NODE] {
            progress.note_listed(kind);
        }
        assert_eq!(progress.obstacles(), [""; 0], "mended");
    }

    #[test]
    fn nothing_is_complete_before_it_begins() {
        let mut progress = FirstLists::default();
        assert!(!progress.is_complete());
        progress.begin([POD, NODE]);
        progress.note_listed(POD);
        assert!(!progress.is_complete());
        assert_eq!(progress.awaited(), [NODE]);
        progress.note_listed(NODE);
        assert!(progress.is_complete());
    }

    #[test]
    fn what_fails_is_waited_for_by_what_hangs_on_it() {
        // Kind, how it fails, and after how many failures nobody waits any more.
        let cases = [
            (POD, Failure::Passing, None),
            (WatchedKind::core("NodeClaim"), Failure::NotServed, None),
            (NODE, may_not_list_nodes(), None),
            (
                WatchedKind::guarding("VolumeAttachment"),
                Failure::Passing,
                None,
            ),
            (
                WatchedKind::guarding("VolumeAttachment"),
                Failure::NotServed,
                Some(1),
            ),
            (
                WatchedKind::guarding("PodDisruptionBudget"),
                Failure::NotServed,
                Some(1),
            ),
            (
                WatchedKind::helpful("NodeOverlay"),
                Failure::NotServed,
                Some(1),
            ),
            (
                WatchedKind::helpful("StorageClass"),
                Failure::Passing,
                Some(FAILURES_BORNE),
            ),
        ];
        for (kind, failure, expected) in cases {
            let mut progress = FirstLists::default();
            progress.begin([kind]);
            let given_up = (1..=2 * FAILURES_BORNE).find(|_| {
                progress.note_failure(kind, failure.clone());
                progress.is_complete()
            });
            assert_eq!(given_up, expected, "{kind:?} {failure:?}");
        }
    }
}
