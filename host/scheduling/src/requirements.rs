//! The algebra of node requirements in their string form: what pods, pools, claims, types and offerings ask or offer.
//!
//! This is the form at the edges; the solver interns it. Nothing here may depend on the order in which requirements
//! were added. Answers to Karpenter's `pkg/scheduling/requirements.go`.

mod requirement;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map;

use apis::NodeSelectorRequirementWithMinValues;
use apis::labels;

pub use apis::Operator;
pub use requirement::Requirement;
pub(crate) use requirement::is_negative;

/// Why two sets of requirements do not go together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Incompatible {
    /// The other side names a label that this side does not define.
    #[error("label \"{key}\" does not have known values{}", hint.as_ref().map(|h| format!(" (typo of \"{h}\"?)")).unwrap_or_default())]
    Undefined {
        /// The unknown label.
        key: String,
        /// A known label that looks alike.
        hint: Option<String>,
    },
    /// Both sides define the label and share no value.
    #[error("incompatible requirements, key {key}, {incoming} not in {existing}")]
    Disjoint {
        /// The label.
        key: String,
        /// What was asked.
        incoming: String,
        /// What there is.
        existing: String,
    },
}

/// Which labels may be asked for though nobody defines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowUndefined {
    /// None: existing nodes have the labels they have.
    None,
    /// The well-known ones: templates, new claims and offerings.
    WellKnown,
}

/// Requirements by label key, one entry a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(BTreeMap<String, Requirement>);

impl Requirements {
    /// No requirement: everything is allowed.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// One `In` of one value for each label.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        labels
            .into_iter()
            .map(|(key, value)| Requirement::new(key, Operator::In, [value.as_str()]))
            .collect()
    }

    /// The requirements of a NodePool or NodeClaim.
    pub fn from_node_selector_requirements(
        requirements: &[NodeSelectorRequirementWithMinValues],
    ) -> Self {
        requirements
            .iter()
            .map(|r| {
                let mut requirement =
                    Requirement::new(&r.key, r.operator, r.values.iter().map(String::as_str));
                requirement.min_values = r.min_values.and_then(|n| u32::try_from(n).ok());
                requirement
            })
            .collect()
    }

    /// Adds a requirement, intersecting it with what the key already has.
    pub fn add(&mut self, requirement: Requirement) {
        match self.0.entry(requirement.key().to_owned()) {
            btree_map::Entry::Vacant(entry) => {
                entry.insert(requirement);
            }
            btree_map::Entry::Occupied(mut entry) => {
                let merged = entry.get().intersection(&requirement);
                entry.insert(merged);
            }
        }
    }

    /// Adds all requirements of another set.
    pub fn extend_with(&mut self, other: &Self) {
        for requirement in other.iter() {
            self.add(requirement.clone());
        }
    }

    /// Replaces whatever the key had.
    pub fn replace(&mut self, requirement: Requirement) {
        self.0.insert(requirement.key().to_owned(), requirement);
    }

    /// Forgets a key.
    pub fn remove(&mut self, key: &str) -> Option<Requirement> {
        self.0.remove(key)
    }

    /// The requirement on a key; a missing key behaves as `Exists`.
    pub fn get(&self, key: &str) -> Requirement {
        self.0
            .get(key)
            .cloned()
            .unwrap_or_else(|| Requirement::new(key, Operator::Exists, []))
    }

    /// The requirement on a key if there is one.
    pub fn find(&self, key: &str) -> Option<&Requirement> {
        self.0.get(key)
    }

    /// Whether the key is required at all.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The requirements in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.0.values()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `incoming` can be met here: every key it insists on is defined (or may be undefined), and no shared key
    /// is disjoint.
    pub fn compatible(&self, incoming: &Self, allow: AllowUndefined) -> Result<(), Incompatible> {
        for requirement in incoming.iter() {
            let key = requirement.key();
            let may_be_undefined = allow == AllowUndefined::WellKnown && labels::is_well_known(key);
            if may_be_undefined || self.has(key) || is_negative(requirement.operator()) {
                continue;
            }
            return Err(Incompatible::Undefined {
                key: key.to_owned(),
                hint: self.hint(key),
            });
        }
        self.intersects(incoming)
    }

    /// Whether the shared keys share values, without the words for the case that they do not.
    pub(crate) fn meets(&self, incoming: &Self) -> bool {
        let (small, large) = if self.len() < incoming.len() {
            (self, incoming)
        } else {
            (incoming, self)
        };
        small.iter().all(|one| {
            large.find(one.key()).is_none_or(|other| {
                one.has_intersection(other)
                    || (is_negative(one.operator()) && is_negative(other.operator()))
            })
        })
    }

    /// Whether the shared keys share values. Two negative operators tolerate each other.
    pub fn intersects(&self, incoming: &Self) -> Result<(), Incompatible> {
        let (small, large) = if self.len() < incoming.len() {
            (self, incoming)
        } else {
            (incoming, self)
        };
        for key in small.0.keys().filter(|key| large.0.contains_key(*key)) {
            let (Some(existing), Some(asked)) = (self.0.get(key), incoming.0.get(key)) else {
                continue;
            };
            if existing.has_intersection(asked)
                || (is_negative(existing.operator()) && is_negative(asked.operator()))
            {
                continue;
            }
            return Err(Incompatible::Disjoint {
                key: key.clone(),
                incoming: asked.to_string(),
                existing: existing.to_string(),
            });
        }
        Ok(())
    }

    /// The labels that these requirements settle: one value for each key that has a resolvable one.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.iter()
            .filter_map(|r| Some((r.key().to_owned(), r.any(0)?)))
            .collect()
    }

    /// The wire form, sorted by key; a pair of bounds becomes `Gte` and `Lte`.
    pub fn to_node_selector_requirements(&self) -> Vec<NodeSelectorRequirementWithMinValues> {
        self.iter()
            .flat_map(Requirement::to_node_selector_requirements)
            .collect()
    }

    fn hint(&self, key: &str) -> Option<String> {
        let suffix = key.rsplit('/').next().unwrap_or(key);
        let known = self
            .keys()
            .chain(labels::WELL_KNOWN_CORE)
            .chain(labels::WELL_KNOWN_AWS);
        known
            .filter(|candidate| {
                candidate.contains(key) || candidate.rsplit('/').next() == Some(suffix)
            })
            .map(str::to_owned)
            .next()
    }
}

impl FromIterator<Requirement> for Requirements {
    fn from_iter<T: IntoIterator<Item = Requirement>>(iter: T) -> Self {
        let mut requirements = Self::new();
        for requirement in iter {
            requirements.add(requirement);
        }
        requirements
    }
}

impl std::fmt::Display for Requirements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, requirement) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}
