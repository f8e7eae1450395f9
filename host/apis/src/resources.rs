//! Amounts of resources by name, in milli-units.
//!
//! All arithmetic saturates: sums past the bounds mean "more than there is". Answers to Karpenter's
//! `pkg/utils/resources/resources.go`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::labels;
use crate::quantity::{self, QuantityError};

const MILLIS_PER_UNIT: i64 = 1000;

/// Amounts by resource name, each in thousandths of the resource's unit. An absent name is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resources(
    /// By name, each once. A list, because there are few of them in each of tens of thousands.
    Vec<(Cow<'static, str>, i64)>,
);

/// The resources that most lists are of.
const WELL_KNOWN: [&str; 4] = [
    labels::RESOURCE_CPU,
    labels::RESOURCE_MEMORY,
    labels::RESOURCE_EPHEMERAL_STORAGE,
    labels::RESOURCE_PODS,
];

/// A name that lives as long as the program if it is one of the known ones.
fn interned(name: &str) -> Cow<'static, str> {
    let known = WELL_KNOWN.into_iter().find(|known| *known == name);
    known.map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed)
}

/// A resource whose quantity cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resource {name}: {source}")]
pub struct ResourcesError {
    /// Name of the resource.
    pub name: String,
    /// Fault of its quantity.
    pub source: QuantityError,
}

impl Resources {
    /// An empty list: nothing of any resource.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Where a name is, or where it would be.
    fn position(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| (**own).cmp(name))
    }

    /// Sets each of the other's amounts to what `of` makes of it and of the amount here, if there is one.
    fn merge(&mut self, other: &Self, of: impl Fn(Option<i64>, i64) -> i64) {
        for (name, millis) in &other.0 {
            match self.position(name) {
                Ok(at) => self.0[at].1 = of(Some(self.0[at].1), *millis),
                Err(at) => self.0.insert(at, (name.clone(), of(None, *millis))),
            }
        }
    }

    /// Reads an API resource list.
    pub fn parse(list: &BTreeMap<String, Quantity>) -> Result<Self, ResourcesError> {
        let parse = |(name, quantity): (&String, &Quantity)| match quantity::millis(quantity) {
            Ok(millis) => Ok((interned(name), millis)),
            Err(source) => Err(ResourcesError {
                name: name.clone(),
                source,
            }),
        };
        list.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Reads an API resource list that the API server has already checked; what it cannot read counts as absent.
    pub fn from_list(list: &BTreeMap<String, Quantity>) -> Self {
        list.iter()
            .filter_map(|(name, q)| Some((name.as_str(), quantity::millis(q).ok()?)))
            .collect()
    }

    /// As an API resource list, memory-like resources in binary form.
    pub fn to_list(&self) -> BTreeMap<String, Quantity> {
        self.0
            .iter()
            .map(|(name, millis)| {
                let amount = Quantity(format_amount(name, *millis));
                (name.to_string(), amount)
            })
            .collect()
    }

    /// Thousandths of the resource; zero when absent.
    pub fn get(&self, name: &str) -> i64 {
        self.position(name).map_or(0, |at| self.0[at].1)
    }

    /// Sets thousandths of the resource.
    pub fn set(&mut self, name: &str, millis: i64) {
        match self.position(name) {
            Ok(at) => self.0[at].1 = millis,
            Err(at) => self.0.insert(at, (interned(name), millis)),
        }
    }

    /// The same with this resource set.
    pub fn with(mut self, name: &str, millis: i64) -> Self {
        self.set(name, millis);
        self
    }

    /// Whole units of the resource, what is beyond them left out; zero when absent.
    pub fn count(&self, name: &str) -> i64 {
        self.get(name) / MILLIS_PER_UNIT
    }

    /// The same with so many whole units of this resource.
    pub fn with_count(self, name: &str, count: i64) -> Self {
        self.with(name, count.saturating_mul(MILLIS_PER_UNIT))
    }

    /// Whether the resource is listed, even if zero.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_ok()
    }

    /// Names and thousandths, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, millis)| (&**name, *millis))
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every amount is zero.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|(_, millis)| *millis == 0)
    }

    /// Thousandths of a CPU.
    pub fn cpu_millis(&self) -> i64 {
        self.get(labels::RESOURCE_CPU)
    }

    /// Bytes of memory, rounded up.
    pub fn memory_bytes(&self) -> i64 {
        let millis = self.get(labels::RESOURCE_MEMORY);
        millis / MILLIS_PER_UNIT + i64::from(millis % MILLIS_PER_UNIT > 0)
    }

    /// Adds the other's amounts to these, up to the largest number.
    pub fn add_assign(&mut self, other: &Self) {
        self.merge(other, |own, millis| own.unwrap_or(0).saturating_add(millis));
    }

    /// The sum of both, resource by resource.
    #[expect(
        clippy::should_implement_trait,
        reason = "the operator would hide that it takes a reference"
    )]
    pub fn add(mut self, other: &Self) -> Self {
        self.add_assign(other);
        self
    }

    /// Subtracts in place, below zero if need be; names only `other` has become negative.
    pub fn sub_assign(&mut self, other: &Self) {
        self.merge(other, |own, millis| own.unwrap_or(0).saturating_sub(millis));
    }

    /// Takes the requests away if they fit, and nothing otherwise; whether they did.
    pub fn take(&mut self, requests: &Self) -> bool {
        let has_room = requests.fits(self);
        if has_room {
            self.sub_assign(requests);
        }
        has_room
    }

    /// The difference, which may be negative.
    #[expect(
        clippy::should_implement_trait,
        reason = "the operator would hide that it takes a reference"
    )]
    pub fn sub(mut self, other: &Self) -> Self {
        self.sub_assign(other);
        self
    }

    /// The difference with nothing below zero and no new names.
    pub fn saturating_sub(mut self, other: &Self) -> Self {
        for (name, amount) in &mut self.0 {
            *amount = amount.saturating_sub(other.get(name)).max(0);
        }
        self
    }

    /// The greater amount of each resource.
    pub fn max(mut self, other: &Self) -> Self {
        self.merge(other, |own, millis| {
            own.map_or(millis, |own| own.max(millis))
        });
        self
    }

    /// Whether these amounts fit into `total`. A resource missing there is zero, and a negative total fits nothing.
    pub fn fits(&self, total: &Self) -> bool {
        total.0.iter().all(|(_, millis)| *millis >= 0)
            && self
                .0
                .iter()
                .all(|(name, millis)| *millis <= total.get(name))
    }

    /// The resources of which these amounts exceed `limits`; names without a limit are free.
    pub fn exceeding<'a>(&'a self, limits: &Self) -> Vec<&'a str> {
        self.0
            .iter()
            .filter(|(name, millis)| {
                let limit = limits.position(name).map(|at| limits.0[at].1);
                limit.is_ok_and(|limit| *millis > limit)
            })
            .map(|(name, _)| &**name)
            .collect()
    }
}

/// The form of quantity users expect of the resource.
fn format_amount(name: &str, millis: i64) -> String {
    let is_bytes = matches!(
        name,
        labels::RESOURCE_MEMORY | labels::RESOURCE_EPHEMERAL_STORAGE
    ) || name.starts_with("hugepages-");
    if is_bytes {
        quantity::format_millis_binary(millis)
    } else {
        quantity::format_millis(millis)
    }
}

impl<'a> FromIterator<(&'a str, i64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (&'a str, i64)>>(amounts: I) -> Self {
        let mut resources = Self::new();
        for (name, millis) in amounts {
            resources.set(name, millis);
        }
        resources
    }
}

impl<'a> std::iter::Sum<&'a Resources> for Resources {
    fn sum<I: Iterator<Item = &'a Self>>(amounts: I) -> Self {
        amounts.fold(Self::new(), |mut sum, next| {
            sum.add_assign(next);
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn resources(text: &str) -> Resources {
        let pair = |pair: &str| {
            let (name, amount) = pair.split_once('=').unwrap();
            (name.to_owned(), Quantity(amount.to_owned()))
        };
        Resources::parse(&text.split_whitespace().map(pair).collect()).unwrap()
    }

    #[rstest]
    #[case("cpu=1 memory=1Gi", "cpu=2 memory=1Gi", true)]
    #[case("cpu=2001m", "cpu=2", false)]
    #[case("cpu=1 nvidia.com/gpu=1", "cpu=2", false)]
    #[case("cpu=1 nvidia.com/gpu=0", "cpu=2", true)]
    #[case("", "cpu=0", true)]
    #[case("cpu=1", "cpu=2 memory=-1", false)]
    fn fits(#[case] requests: &str, #[case] total: &str, #[case] expected: bool) {
        assert_eq!(resources(requests).fits(&resources(total)), expected);
    }

    #[rstest]
    #[case("cpu=2 memory=1Gi", "cpu=1", true, "cpu=1 memory=1Gi")]
    #[case("cpu=2 memory=1Gi", "cpu=2 memory=1Gi", true, "cpu=0 memory=0")]
    #[case("cpu=2 memory=1Gi", "cpu=1 memory=2Gi", false, "cpu=2 memory=1Gi")]
    #[case("cpu=2", "cpu=1 nvidia.com/gpu=1", false, "cpu=2")]
    fn only_what_fits_is_taken(
        #[case] free: &str,
        #[case] requests: &str,
        #[case] expected: bool,
        #[case] left: &str,
    ) {
        let mut free = resources(free);
        assert_eq!(free.take(&resources(requests)), expected);
        assert_eq!(free, resources(left));
    }

    #[test]
    fn arithmetic_knows_absent_names() {
        let (a, b) = (resources("cpu=1 memory=1Gi"), resources("cpu=3 pods=2"));
        assert_eq!(a.clone().add(&b), resources("cpu=4 memory=1Gi pods=2"));
        assert_eq!(a.clone().sub(&b), resources("cpu=-2 memory=1Gi pods=-2"));
        assert_eq!(a.clone().saturating_sub(&b), resources("cpu=0 memory=1Gi"));
        assert_eq!(a.clone().max(&b), resources("cpu=3 memory=1Gi pods=2"));
        assert_eq!([&a, &b].into_iter().sum::<Resources>(), a.add(&b));
        assert!(
            resources("cpu=0").is_zero()
                && !resources("cpu=0").is_empty()
                && Resources::new().is_zero()
        );
    }

    #[test]
    fn limits_bind_only_what_they_name() {
        let limits = resources("cpu=10 nodes=3");
        assert_eq!(
            resources("cpu=10 memory=9Ti nodes=3").exceeding(&limits),
            Vec::<&str>::new()
        );
        assert_eq!(
            resources("cpu=11 nodes=4").exceeding(&limits),
            ["cpu", "nodes"]
        );
    }

    #[test]
    fn lists_are_written_as_people_read_them() {
        let list =
            resources("cpu=1500m memory=8589934592 pods=110 ephemeral-storage=20Gi").to_list();
        let text: Vec<_> = list
            .iter()
            .map(|(name, quantity)| format!("{name}={}", quantity.0))
            .collect();
        assert_eq!(
            text.join(" "),
            "cpu=1500m ephemeral-storage=20Gi memory=8Gi pods=110"
        );
    }

    #[test]
    fn unreadable_quantities_are_named() {
        let list = [("memory".to_owned(), Quantity("lots".to_owned()))].into();
        let error = Resources::parse(&list).unwrap_err();
        assert_eq!(
            format!("{error}"),
            r#"resource memory: invalid quantity "lots""#
        );
        assert!(Resources::from_list(&list).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_taken_away_again_leaves_no_trace(a in 0..1_i64 << 40, b in 0..1_i64 << 40) {
            let (a, b) = (Resources::new().with("cpu", a), Resources::new().with("cpu", b));
            prop_assert_eq!(a.clone().add(&b).sub(&b), a.clone());
            prop_assert!(a.fits(&a.clone().add(&b)));
        }
    }
}
