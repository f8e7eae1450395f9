//! Requirements that the choice of a row leaves open, met and merged while planning.

use std::collections::BTreeMap;

use crate::requirements::Requirements;
use crate::solve::input::vocabulary::{EMPTY_SET, SetId, Vocabulary};

/// Requirement sets that come up while planning: those of the vocabulary, and further ones that nobody keeps.
#[derive(Debug, Default)]
pub(super) struct OpenSets {
    added: Vec<Requirements>,
    merged: BTreeMap<(SetId, SetId), Option<SetId>>,
}

impl OpenSets {
    /// What satisfies both sets, if anything can.
    pub(super) fn merge(&mut self, known: &Vocabulary, a: SetId, b: SetId) -> Option<SetId> {
        if a == b || b == EMPTY_SET {
            return Some(a);
        }
        if a == EMPTY_SET {
            return Some(b);
        }
        let key = (a.min(b), a.max(b));
        if let Some(found) = self.merged.get(&key) {
            return *found;
        }
        let get = |id: SetId| match known.place_beyond(id) {
            Some(at) => &self.added[at],
            None => known.get(id),
        };
        let both = get(a).meets(get(b)).then(|| {
            let mut both = get(a).clone();
            both.extend_with(get(b));
            both
        });
        let id = both.map(|both| {
            let at = self.added.iter().position(|set| *set == both);
            let at = at.unwrap_or_else(|| {
                self.added.push(both);
                self.added.len() - 1
            });
            known.beyond(at)
        });
        self.merged.insert(key, id);
        id
    }
}
