//! The algebra of node requirements in their string form: what pods, pools, claims, types and offerings ask or offer.
//!
//! This is the form at the edges; the solver interns it. Nothing here may depend on the order in which requirements
//! were added. Answers to Karpenter's `pkg/scheduling/requirements.go`.

mod requirement;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;
use apis::{NodeClaimTemplate, NodeSelectorRequirementWithMinValues};

pub use apis::Operator;
pub use requirement::Requirement;
pub(crate) use requirement::is_negative;

/// Why two sets of requirements do not go together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Incompatible {
    /// The other side names a label that this side does not define.
    #[error("label \"{key}\" does not have known values{}", hint.as_ref().map(|h| format!(" (typo of \"{h}\"?)")).unwrap_or_default())]
    Undefined {
        /// Key of the unknown label.
        key: String,
        /// A known label that looks alike.
        hint: Option<String>,
    },
    /// Both sides define the label and share no value.
    #[error("incompatible requirements, key {key}, {incoming} not in {existing}")]
    Disjoint {
        /// Key of the label.
        key: String,
        /// Requirement that was added, in words.
        incoming: String,
        /// Requirement that was there before, in words.
        existing: String,
    },
}

/// Which labels may be asked for though nobody defines them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowUndefined {
    /// No label: existing nodes have the labels they have.
    None,
    /// The well-known ones: templates, new claims and offerings.
    WellKnown,
}

/// Requirements by label key, one entry a key. Clones share their list until one of them changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(
    /// Sorted by key; nothing when it would be empty.
    Option<Arc<Vec<Requirement>>>,
);

impl Requirements {
    /// An empty set, which allows everything.
    pub const fn new() -> Self {
        Self(None)
    }

    fn list(&self) -> &[Requirement] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Where a key is, or where it would be.
    fn position(&self, key: &str) -> Result<usize, usize> {
        self.list().binary_search_by(|own| own.key().cmp(key))
    }

    fn list_mut(&mut self) -> &mut Vec<Requirement> {
        Arc::make_mut(self.0.get_or_insert_default())
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

    /// Requirements of a NodePool's template on its nodes: its own and its labels.
    pub fn from_template(template: &NodeClaimTemplate) -> Self {
        let mut all = Self::from_node_selector_requirements(&template.spec.requirements);
        all.extend_with(&Self::from_labels(&template.metadata.labels));
        all
    }

    /// Adds a requirement, intersecting it with what the key already has.
    pub fn add(&mut self, requirement: Requirement) {
        match self.position(requirement.key()) {
            Err(at) => self.list_mut().insert(at, requirement),
            Ok(at) => {
                let own = &mut self.list_mut()[at];
                *own = own.intersection(&requirement);
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
        match self.position(requirement.key()) {
            Err(at) => self.list_mut().insert(at, requirement),
            Ok(at) => self.list_mut()[at] = requirement,
        }
    }

    /// Takes the requirement on a key away, and gives it back if there was one.
    pub fn remove(&mut self, key: &str) -> Option<Requirement> {
        let at = self.position(key).ok()?;
        let removed = self.list_mut().remove(at);
        if self.list().is_empty() {
            self.0 = None;
        }
        Some(removed)
    }

    /// The requirement on a key; a missing key behaves as `Exists`.
    pub fn get(&self, key: &str) -> Requirement {
        self.find(key)
            .cloned()
            .unwrap_or_else(|| Requirement::new(key, Operator::Exists, []))
    }

    /// The requirement on a key if there is one.
    pub fn find(&self, key: &str) -> Option<&Requirement> {
        self.position(key).ok().and_then(|at| self.list().get(at))
    }

    /// Whether the key is required at all.
    pub fn has(&self, key: &str) -> bool {
        self.position(key).is_ok()
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(Requirement::key)
    }

    /// The requirements in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.list().iter()
    }

    /// Number of keys with a requirement.
    pub fn len(&self) -> usize {
        self.list().len()
    }

    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether `incoming` can be met here: every key it insists on is defined (or may be undefined), and no shared key
    /// is disjoint.
    pub fn compatible(&self, incoming: &Self, allow: AllowUndefined) -> Result<(), Incompatible> {
        match self.missing_key(incoming, allow) {
            Some(key) => Err(Incompatible::Undefined {
                key: key.to_owned(),
                hint: self.hint(key),
            }),
            None => self.intersects(incoming),
        }
    }

    /// Whether nodes of these requirements can meet the incoming ones; why not is not asked.
    pub(crate) fn is_compatible(&self, incoming: &Self, allow: AllowUndefined) -> bool {
        self.missing_key(incoming, allow).is_none() && self.meets(incoming)
    }

    /// A key that `incoming` insists on and that is not defined here.
    fn missing_key<'a>(&self, incoming: &'a Self, allow: AllowUndefined) -> Option<&'a str> {
        let missing = incoming.iter().find(|requirement| {
            let key = requirement.key();
            let may_be_undefined = allow == AllowUndefined::WellKnown && labels::is_well_known(key);
            !may_be_undefined && !self.has(key) && !is_negative(requirement.operator())
        });
        missing.map(Requirement::key)
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
        let small = if self.len() < incoming.len() {
            self
        } else {
            incoming
        };
        for one in small.iter() {
            let key = one.key();
            let (Some(existing), Some(asked)) = (self.find(key), incoming.find(key)) else {
                continue;
            };
            if existing.has_intersection(asked)
                || (is_negative(existing.operator()) && is_negative(asked.operator()))
            {
                continue;
            }
            return Err(Incompatible::Disjoint {
                key: key.to_owned(),
                incoming: asked.to_string(),
                existing: existing.to_string(),
            });
        }
        Ok(())
    }

    /// The labels that these requirements determine: one value for each key that has a resolvable one.
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
        let mut list: Vec<Requirement> = iter.into_iter().collect();
        // Stable, so that what is said twice is intersected in the order in which it was said.
        list.sort_by(|a, b| a.key().cmp(b.key()));
        list.dedup_by(|later, first| {
            let is_same = later.key() == first.key();
            if is_same {
                *first = first.intersection(later);
            }
            is_same
        });
        list.shrink_to_fit();
        Self((!list.is_empty()).then(|| Arc::new(list)))
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
