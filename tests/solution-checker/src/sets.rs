//! Sets of label values as the rules word them, kept apart from the solver's algebra on purpose.
//!
//! Must not call any method of `scheduling::requirements` that compares, merges or tests; what a requirement lists is
//! read off as data.

use std::collections::{BTreeMap, BTreeSet};

use scheduling::requirements::{Requirement, Requirements};

/// Strings: those listed or all but those listed, and of these only integers within the bounds, where there are any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Set {
    is_complement: bool,
    listed: BTreeSet<String>,
    lowest: Option<i64>,
    highest: Option<i64>,
}

/// What a node carries under a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    /// No such label.
    Absent,
    /// Some value of the set; which one is not known yet.
    Within(Set),
}

impl Set {
    pub(crate) fn of(requirement: &Requirement) -> Self {
        Self {
            is_complement: requirement.is_complement(),
            listed: requirement.values().map(str::to_owned).collect(),
            lowest: requirement.gte(),
            highest: requirement.lte(),
        }
    }

    pub(crate) fn one(value: &str) -> Self {
        Self {
            is_complement: false,
            listed: BTreeSet::from([value.to_owned()]),
            lowest: None,
            highest: None,
        }
    }

    pub(crate) fn has(&self, value: &str) -> bool {
        let is_bounded = self.lowest.is_some() || self.highest.is_some();
        let is_within = |number: i64| {
            self.lowest.is_none_or(|low| low <= number)
                && self.highest.is_none_or(|high| number <= high)
        };
        let is_in_bounds = !is_bounded || value.parse::<i64>().is_ok_and(is_within);
        is_in_bounds && self.is_complement != self.listed.contains(value)
    }

    /// The members, unless there are endlessly many.
    pub(crate) fn members(&self) -> Option<BTreeSet<String>> {
        let members = || self.listed.iter().filter(|value| self.has(value)).cloned();
        (!self.is_complement).then(|| members().collect())
    }

    /// `NotIn` and `DoesNotExist`: a node without the label will do.
    pub(crate) fn is_met_by_absence(&self) -> bool {
        self.is_complement != self.listed.is_empty()
    }

    fn are_bounds_crossed(&self) -> bool {
        matches!((self.lowest, self.highest), (Some(low), Some(high)) if low > high)
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        let both = Self {
            is_complement: self.is_complement && other.is_complement,
            listed: BTreeSet::new(),
            lowest: self.lowest.max(other.lowest),
            highest: match (self.highest, other.highest) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        };
        if both.are_bounds_crossed() {
            return Self {
                is_complement: false,
                lowest: None,
                highest: None,
                ..both
            };
        }
        let all = self.listed.union(&other.listed).cloned();
        let listed = if both.is_complement {
            all.collect()
        } else {
            all.filter(|v| self.has(v) && other.has(v)).collect()
        };
        Self { listed, ..both }
    }

    /// Whether some value is in both. Sets without end always share one, unless their bounds say otherwise.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let crossed = match (self.lowest.max(other.lowest), self.highest, other.highest) {
            (None, ..) | (_, None, None) => false,
            (Some(low), a, b) => [a, b].into_iter().flatten().any(|high| low > high),
        };
        let (some, others) = match (self.is_complement, other.is_complement) {
            _ if crossed => return false,
            (true, true) => return true,
            (true, false) => (other, self),
            (false, _) => (self, other),
        };
        some.listed.iter().any(|v| some.has(v) && others.has(v))
    }

    pub(crate) fn is_within(&self, other: &Self) -> bool {
        match self.members() {
            Some(members) => members.iter().all(|value| other.has(value)),
            None => {
                other.is_complement
                    && other.listed.iter().all(|value| !self.has(value))
                    && other.lowest.is_none_or(|low| self.lowest >= Some(low))
                    && other
                        .highest
                        .is_none_or(|high| self.highest.is_some_and(|own| own <= high))
            }
        }
    }
}

impl Label {
    /// Whether the requirement holds whatever the value turns out to be.
    pub(crate) fn satisfies(&self, requirement: &Set) -> bool {
        match self {
            Self::Absent => requirement.is_met_by_absence(),
            Self::Within(values) => values.is_within(requirement),
        }
    }
}

/// Whether what is asked for can be had where `known` is required: a label that nobody defines may be asked for only
/// if `may_be_undefined` says so, or by its absence.
pub(crate) fn are_compatible(
    known: &BTreeMap<String, Set>,
    asked: &BTreeMap<String, Set>,
    may_be_undefined: impl Fn(&str) -> bool,
) -> bool {
    asked.iter().all(|(key, set)| match known.get(key) {
        None => may_be_undefined(key) || set.is_met_by_absence(),
        Some(of_known) => {
            of_known.meets(set) || (of_known.is_met_by_absence() && set.is_met_by_absence())
        }
    })
}

/// Whether no label known to both rules the other out.
pub(crate) fn do_not_clash(a: &BTreeMap<String, Set>, b: &BTreeMap<String, Set>) -> bool {
    are_compatible(a, b, |_| true)
}

pub(crate) fn sets_of(requirements: &Requirements) -> BTreeMap<String, Set> {
    let pairs = requirements.iter();
    pairs.map(|r| (r.key().to_owned(), Set::of(r))).collect()
}

/// All of these at once, by key.
pub(crate) fn conjunction<'a>(
    requirements: impl Iterator<Item = (&'a str, Set)>,
) -> BTreeMap<String, Set> {
    let mut all: BTreeMap<String, Set> = BTreeMap::new();
    for (key, set) in requirements {
        let merged = match all.get(key) {
            Some(known) => known.and(&set),
            None => set,
        };
        all.insert(key.to_owned(), merged);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use scheduling::requirements::Operator;

    fn set(operator: Operator, values: &[&str]) -> Set {
        Set::of(&Requirement::new("k", operator, values.iter().copied()))
    }

    #[test]
    fn bounds_exclude_what_is_no_number() {
        let more = set(Operator::Gt, &["4"]);
        assert!(more.has("5") && !more.has("4") && !more.has("many"));
        let both = more.and(&set(Operator::Lt, &["10"]));
        assert!(both.has("9") && !both.has("10"));
        assert!(!more.meets(&set(Operator::Lt, &["5"])));
    }

    #[test]
    fn absence_meets_only_what_forbids() {
        assert!(Label::Absent.satisfies(&set(Operator::NotIn, &["a"])));
        assert!(Label::Absent.satisfies(&set(Operator::DoesNotExist, &[])));
        assert!(!Label::Absent.satisfies(&set(Operator::Exists, &[])));
        assert!(!Label::Absent.satisfies(&set(Operator::In, &["a"])));
    }

    #[test]
    fn a_label_not_settled_must_satisfy_with_every_value() {
        let ab = Label::Within(set(Operator::In, &["a", "b"]));
        assert!(ab.satisfies(&set(Operator::NotIn, &["c"])));
        assert!(!ab.satisfies(&set(Operator::In, &["a"])));
        let not_c = Label::Within(set(Operator::NotIn, &["c"]));
        assert!(not_c.satisfies(&set(Operator::Exists, &[])));
        assert!(!not_c.satisfies(&set(Operator::NotIn, &["c", "d"])));
    }
}
