//! Names of new NodeClaims, chosen before the API server is asked: whoever does not learn what came of a creation can
//! look under the name, and makes no second claim, which would be a second instance.
//!
//! It creates nothing. Answers to `metadata.generateName`, which Karpenter uses and which leaves the choice to the
//! server.

use std::sync::atomic::{AtomicU64, Ordering};

use apis::fnv::{OFFSET_BASIS, fnv_1a};
use jiff::Timestamp;

/// The letters from which Kubernetes draws its suffixes: no vowels, and none that look alike.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// The longest part that comes before it, as the API server cuts `generateName`.
const PREFIX_LENGTH_MAX: usize = 58;

/// Names of one process; equal runs choose equal names.
#[derive(Debug, Default)]
pub(crate) struct ClaimNames {
    chosen: AtomicU64,
}

impl ClaimNames {
    /// A name that begins so: another at each call, and at each moment.
    pub(crate) fn next(&self, prefix: &str, now: Timestamp) -> String {
        let number = self.chosen.fetch_add(1, Ordering::Relaxed);
        let moment = now.as_nanosecond().to_le_bytes();
        let parts = prefix.bytes().chain(moment).chain(number.to_le_bytes());
        let hash = fnv_1a(OFFSET_BASIS, parts);
        // Its upper half is mixed best.
        let mut rest = hash ^ (hash >> 32);
        let letters = std::iter::repeat_with(|| {
            let letter = LETTERS[usize::try_from(rest % 27).unwrap_or_default()];
            rest /= 27;
            char::from(letter)
        });
        let prefix = prefix.chars().take(PREFIX_LENGTH_MAX);
        prefix.chain(letters.take(SUFFIX_LENGTH)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_differ_and_repeat_with_the_run() {
        let run = || {
            let names = ClaimNames::default();
            let at = |second| Timestamp::from_second(second).unwrap();
            let name = |number: i64| names.next("default-", at(1_700_000_000 + number / 100));
            (0..1000).map(name).collect::<Vec<_>>()
        };
        let names = run();
        assert_eq!(names, run());
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        let is_valid = |it: &String| it.len() == 13 && it.starts_with("default-");
        assert!(names.iter().all(is_valid), "{names:?}");
        let long = ClaimNames::default().next(&"a".repeat(80), Timestamp::UNIX_EPOCH);
        assert_eq!(long.len(), 63);
    }
}
