//! One key's requirement: a set of values or its complement, with integer bounds.
//!
//! Must stay total: nonsensical input becomes `DoesNotExist`, never an error, because validation happens at the edge.
//! Answers to Karpenter's `pkg/scheduling/requirement.go`.

use std::borrow::Cow;
use std::cmp::Ordering;

use apis::labels;
use apis::{NodeSelectorRequirementWithMinValues, Operator};
use smallvec::SmallVec;

/// Whether the absence of the label satisfies the operator.
pub(crate) const fn is_negative(operator: Operator) -> bool {
    matches!(operator, Operator::NotIn | Operator::DoesNotExist)
}

/// The values that a requirement lists: sorted, each once. Nearly all requirements list one or none, and a
/// catalogue has tens of thousands of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Values {
    One(Box<str>),
    /// None, or two and more: one value has one form, by which equal requirements are found equal.
    Listed(Box<[Box<str>]>),
}

impl Values {
    fn list(&self) -> &[Box<str>] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Listed(values) => values,
        }
    }

    fn contains(&self, value: &str) -> bool {
        self.list()
            .binary_search_by(|own| (**own).cmp(value))
            .is_ok()
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.list().iter().map(AsRef::as_ref)
    }

    fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    fn len(&self) -> usize {
        self.list().len()
    }
}

impl PartialOrd for Values {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Values {
    fn cmp(&self, other: &Self) -> Ordering {
        self.list().cmp(other.list())
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::Listed(Box::default())
    }
}

impl<'a> FromIterator<&'a str> for Values {
    fn from_iter<T: IntoIterator<Item = &'a str>>(iter: T) -> Self {
        let mut values: SmallVec<[Box<str>; 1]> = iter.into_iter().map(Box::from).collect();
        values.sort_unstable();
        values.dedup();
        if values.len() == 1
            && let Some(only) = values.pop()
        {
            Self::One(only)
        } else {
            Self::Listed(values.into_boxed_slice())
        }
    }
}

/// A key that lives as long as the program if it is one of the known ones.
fn interned(key: &str) -> Cow<'static, str> {
    let known = labels::WELL_KNOWN_CORE
        .iter()
        .chain(&labels::WELL_KNOWN_AWS)
        .find(|known| **known == key);
    known.map_or_else(|| Cow::Owned(key.to_owned()), |known| Cow::Borrowed(*known))
}

/// Integers that a value may be, both ends included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct IntegerRange {
    gte: Option<i64>,
    lte: Option<i64>,
}

impl IntegerRange {
    fn intersection(self, other: Self) -> Self {
        Self {
            gte: self.gte.max(other.gte),
            lte: min_some(self.lte, other.lte),
        }
    }

    fn is_empty(self) -> bool {
        matches!((self.gte, self.lte), (Some(gte), Some(lte)) if gte > lte)
    }

    fn has(self, value: &str) -> bool {
        let is_in = |n| self.gte.is_none_or(|gte| n >= gte) && self.lte.is_none_or(|lte| n <= lte);
        self == Self::default() || value.parse::<i64>().is_ok_and(is_in)
    }

    /// Nothing where all integers are in it, and what is none.
    fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// A requirement on the values of one label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: Cow<'static, str>,
    complement: bool,
    values: Values,
    /// Few have one, so that it is kept apart.
    range: Option<Box<IntegerRange>>,
    /// How many distinct values the instance types of a claim must keep.
    pub min_values: Option<u32>,
}

impl Requirement {
    /// Builds a requirement. Keys are normalised; a bound that is no integer, or an empty `In`, allows nothing.
    pub fn new<'a>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut requirement = Self {
            key: interned(labels::normalize(key)),
            complement: !matches!(operator, Operator::In | Operator::DoesNotExist),
            values: Values::default(),
            range: None,
            min_values: None,
        };
        let mut values = values.into_iter();
        match operator {
            Operator::In | Operator::NotIn => {
                requirement.values = values.collect();
            }
            Operator::Exists | Operator::DoesNotExist => {}
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => {
                let bound = values.next().and_then(|v| v.parse::<i64>().ok());
                requirement.bound(operator, bound);
            }
        }
        requirement
    }

    fn bound(&mut self, operator: Operator, bound: Option<i64>) {
        let mut range = IntegerRange::default();
        match operator {
            Operator::Gt => range.gte = bound.and_then(|n| n.checked_add(1)),
            Operator::Gte => range.gte = bound,
            Operator::Lt => range.lte = bound.and_then(|n| n.checked_sub(1)),
            Operator::Lte => range.lte = bound,
            Operator::In | Operator::NotIn | Operator::Exists | Operator::DoesNotExist => {}
        }
        self.range = range.boxed();
        self.complement = self.range.is_some();
    }

    fn range(&self) -> IntegerRange {
        self.range.as_deref().copied().unwrap_or_default()
    }

    /// The label key, normalised.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator this requirement reads as. Bounds alone read as `Exists`.
    pub fn operator(&self) -> Operator {
        match (self.complement, self.values.is_empty()) {
            (true, true) => Operator::Exists,
            (true, false) => Operator::NotIn,
            (false, true) => Operator::DoesNotExist,
            (false, false) => Operator::In,
        }
    }

    /// The listed values: the allowed ones, or the excluded ones of a complement.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter()
    }

    /// The lower bound, inclusive.
    pub fn gte(&self) -> Option<i64> {
        self.range().gte
    }

    /// The upper bound, inclusive.
    pub fn lte(&self) -> Option<i64> {
        self.range().lte
    }

    /// Whether the listed values are the excluded ones.
    pub fn is_complement(&self) -> bool {
        self.complement
    }

    /// Whether the value is allowed.
    pub fn has(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && self.range().has(value)
    }

    /// The requirement that allows the values that both allow.
    pub fn intersection(&self, other: &Self) -> Self {
        let range = self.range().intersection(other.range());
        let mut result = Self {
            key: self.key.clone(),
            complement: self.complement && other.complement && !range.is_empty(),
            values: Values::default(),
            range: None,
            min_values: self.min_values.max(other.min_values),
        };
        if range.is_empty() {
            return result;
        }
        let keep = |value: &&str| range.has(value);
        let but = |list: &Self, without: &Self| {
            let left = list.values.iter().filter(|v| !without.values.contains(v));
            left.filter(keep).collect()
        };
        result.values = match (self.complement, other.complement) {
            (true, true) => {
                let both = self.values.iter().chain(other.values.iter());
                both.filter(keep).collect()
            }
            (true, false) => but(other, self),
            (false, true) => but(self, other),
            (false, false) => {
                let shared = self.values.iter().filter(|v| other.values.contains(v));
                shared.filter(keep).collect()
            }
        };
        if result.complement {
            result.range = range.boxed();
        }
        result
    }

    /// Whether some value is allowed by both.
    pub fn has_intersection(&self, other: &Self) -> bool {
        let range = self.range().intersection(other.range());
        if range.is_empty() {
            return false;
        }
        let allowed = |value: &str| range.has(value);
        match (self.complement, other.complement) {
            (true, true) => true,
            (true, false) => other
                .values
                .iter()
                .any(|v| !self.values.contains(v) && allowed(v)),
            (false, true) => self
                .values
                .iter()
                .any(|v| !other.values.contains(v) && allowed(v)),
            (false, false) => self
                .values
                .iter()
                .any(|v| other.values.contains(v) && allowed(v)),
        }
    }

    /// A value that meets the requirement. An open requirement has endlessly many: `seed` picks an integer within the
    /// bounds, so that the caller keeps the choice reproducible.
    pub fn any(&self, seed: u64) -> Option<String> {
        match self.operator() {
            Operator::In => self.values.iter().next().map(str::to_owned),
            Operator::DoesNotExist => None,
            Operator::NotIn
            | Operator::Exists
            | Operator::Gt
            | Operator::Gte
            | Operator::Lt
            | Operator::Lte => {
                let IntegerRange { gte, lte } = self.range();
                let low = gte.unwrap_or(0);
                let high = lte.unwrap_or(i64::MAX).max(low);
                let width = u64::try_from(high.saturating_sub(low))
                    .unwrap_or(0)
                    .saturating_add(1);
                (0..=self.values.len() as u64)
                    .map(|step| {
                        low.saturating_add_unsigned((seed % width + step) % width)
                            .to_string()
                    })
                    .find(|candidate| self.has(candidate))
            }
        }
    }

    /// The wire form: two entries for a pair of bounds, one otherwise. Values that are excluded within bounds are not
    /// told, as by Karpenter.
    pub fn to_node_selector_requirements(&self) -> Vec<NodeSelectorRequirementWithMinValues> {
        let entry = |operator, values: Vec<String>| NodeSelectorRequirementWithMinValues {
            key: self.key.to_string(),
            operator,
            values,
            min_values: self.min_values.map(i64::from),
        };
        let IntegerRange { gte, lte } = self.range();
        match (gte, lte) {
            (Some(gte), Some(lte)) => vec![
                entry(Operator::Gte, vec![gte.to_string()]),
                entry(Operator::Lte, vec![lte.to_string()]),
            ],
            (Some(gte), None) => vec![entry(Operator::Gte, vec![gte.to_string()])],
            (None, Some(lte)) => vec![entry(Operator::Lte, vec![lte.to_string()])],
            (None, None) => vec![entry(
                self.operator(),
                self.values.iter().map(str::to_owned).collect(),
            )],
        }
    }
}

impl std::fmt::Display for Requirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.key, self.operator().as_str())?;
        if !self.values.is_empty() {
            const SHOWN_MAX: usize = 5;
            write!(f, " [")?;
            for (index, value) in self.values.iter().take(SHOWN_MAX).enumerate() {
                write!(f, "{}{value}", if index > 0 { " " } else { "" })?;
            }
            if self.values.len() > SHOWN_MAX {
                write!(f, " and {} others", self.values.len() - SHOWN_MAX)?;
            }
            write!(f, "]")?;
        }
        let IntegerRange { gte, lte } = self.range();
        if let Some(gte) = gte {
            write!(f, " >={gte}")?;
        }
        if let Some(lte) = lte {
            write!(f, " <={lte}")?;
        }
        if let Some(min_values) = self.min_values {
            write!(f, " minValues {min_values}")?;
        }
        Ok(())
    }
}

fn min_some(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
