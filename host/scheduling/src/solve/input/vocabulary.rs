//! Requirements and resource names, each distinct one known by a number.
//!
//! Intersections of requirement sets are computed once and remembered; everything else compares numbers.

use std::collections::BTreeMap;

use apis::resources::Resources;
use indexmap::IndexSet;
use smallvec::SmallVec;

use crate::requirements::{Requirement, Requirements};

/// Number of a distinct requirement set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SetId(usize);

/// Amounts by resource dimension, in thousandths.
pub(crate) type Amounts = SmallVec<[i64; 8]>;

/// The set without requirements.
pub(crate) const EMPTY_SET: SetId = SetId(0);

/// All distinct requirement sets of a solve.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    sets: IndexSet<Requirements>,
    merged: BTreeMap<(SetId, SetId), Option<SetId>>,
}

impl Vocabulary {
    pub(crate) fn new() -> Self {
        let mut sets = IndexSet::new();
        sets.insert(Requirements::new());
        Self {
            sets,
            merged: BTreeMap::new(),
        }
    }

    /// A set that is none of these: by its place in a list that goes on where these end.
    pub(crate) fn beyond(&self, place: usize) -> SetId {
        SetId(self.sets.len() + place)
    }

    /// Its place in that list, if it is none of these.
    pub(crate) fn place_beyond(&self, id: SetId) -> Option<usize> {
        id.0.checked_sub(self.sets.len())
    }

    pub(crate) fn set(&mut self, requirements: Requirements) -> SetId {
        SetId(self.sets.insert_full(requirements).0)
    }

    pub(crate) fn get(&self, id: SetId) -> &Requirements {
        &self.sets[id.0]
    }

    /// The set of requirements that satisfies both, if anything can.
    pub(crate) fn merge(&mut self, a: SetId, b: SetId) -> Option<SetId> {
        if a == b || b == EMPTY_SET {
            return Some(a);
        }
        if a == EMPTY_SET {
            return Some(b);
        }
        let key = (a.min(b), a.max(b));
        if let Some(known) = self.merged.get(&key) {
            return *known;
        }
        let result = self.get(a).meets(self.get(b)).then(|| {
            let mut both = self.get(a).clone();
            both.extend_with(self.get(b));
            both
        });
        let id = result.map(|both| self.set(both));
        self.merged.insert(key, id);
        id
    }

    /// The set with one more requirement.
    pub(crate) fn with(&mut self, id: SetId, requirement: Requirement) -> Option<SetId> {
        let one = self.set(std::iter::once(requirement).collect());
        self.merge(id, one)
    }
}

/// The resources that pods and daemons ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dimensions {
    names: IndexSet<String>,
}

impl Dimensions {
    /// Collects names; CPU and memory come first, the rest by name.
    pub(crate) fn collect<'a>(lists: impl Iterator<Item = &'a Resources>) -> Self {
        let mut found = std::collections::BTreeSet::new();
        for list in lists {
            for (name, _) in list.iter() {
                if !found.contains(name) {
                    found.insert(name.to_owned());
                }
            }
        }
        let mut names: IndexSet<String> = IndexSet::new();
        for first in [
            apis::labels::RESOURCE_CPU,
            apis::labels::RESOURCE_MEMORY,
            apis::labels::RESOURCE_PODS,
        ] {
            names.insert(first.to_owned());
        }
        names.extend(found);
        Self { names }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn name(&self, dimension: usize) -> &str {
        &self.names[dimension]
    }

    pub(crate) fn zero(&self) -> Amounts {
        SmallVec::from_elem(0, self.len())
    }

    pub(crate) fn amounts(&self, resources: &Resources) -> Amounts {
        self.names.iter().map(|name| resources.get(name)).collect()
    }

    pub(crate) fn resources(&self, amounts: &[i64]) -> Resources {
        self.names
            .iter()
            .zip(amounts)
            .filter(|(_, amount)| **amount != 0)
            .map(|(name, amount)| (name.as_str(), *amount))
            .collect()
    }
}

/// `a += b × times`.
pub(crate) fn add_times(a: &mut [i64], b: &[i64], times: i64) {
    for (mine, theirs) in a.iter_mut().zip(b) {
        *mine = mine.saturating_add(theirs.saturating_mul(times));
    }
}

/// How often `request` fits into what is `available`. A negative amount fits nothing, as Karpenter has it.
pub(crate) fn times_fitting(available: &[i64], request: &[i64]) -> usize {
    let mut times = i64::MAX;
    for (have, ask) in available.iter().zip(request) {
        if *have < 0 {
            return 0;
        }
        if *ask > 0 {
            times = times.min(have / ask);
        }
    }
    usize::try_from(times).unwrap_or(usize::MAX)
}
