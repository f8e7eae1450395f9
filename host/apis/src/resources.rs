//! Amounts of resources by name, in milli-units.
//!
//! All arithmetic saturates: sums past the bounds mean "more than there is". Answers to Karpenter's
//! `pkg/utils/resources/resources.go`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::labels;
use crate::quantity::{self, QuantityError};

/// Amounts by resource name, each in thousandths of the resource's unit. An absent name is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resources(pub BTreeMap<String, i64>);

/// A resource whose quantity cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resource {name}: {source}")]
pub struct ResourcesError {
    /// Name of the resource.
    pub name: String,
    /// What is wrong with its quantity.
    pub source: QuantityError,
}

impl Resources {
    /// Nothing.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Reads an API resource list.
    pub fn parse(list: &BTreeMap<String, Quantity>) -> Result<Self, ResourcesError> {
        let parse = |(name, quantity): (&String, &Quantity)| match quantity::millis(quantity) {
            Ok(millis) => Ok((name.clone(), millis)),
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
            .filter_map(|(name, q)| Some((name.clone(), quantity::millis(q).ok()?)))
            .collect()
    }

    /// As an API resource list, memory-like resources in binary form.
    pub fn to_list(&self) -> BTreeMap<String, Quantity> {
        self.0
            .iter()
            .map(|(name, millis)| (name.clone(), Quantity(format_amount(name, *millis))))
            .collect()
    }

    /// Thousandths of the resource; zero when absent.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Sets thousandths of the resource.
    pub fn set(&mut self, name: &str, millis: i64) {
        self.0.insert(name.to_owned(), millis);
    }

    /// The same with this resource set.
    pub fn with(mut self, name: &str, millis: i64) -> Self {
        self.set(name, millis);
        self
    }

    /// Whether the resource is listed, even if zero.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Names and thousandths, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, millis)| (name.as_str(), *millis))
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every amount is zero.
    pub fn is_zero(&self) -> bool {
        self.0.values().all(|millis| *millis == 0)
    }

    /// Thousandths of a CPU.
    pub fn cpu_millis(&self) -> i64 {
        self.get(labels::RESOURCE_CPU)
    }

    /// Bytes of memory, rounded up.
    pub fn memory_bytes(&self) -> i64 {
        let millis = self.get(labels::RESOURCE_MEMORY);
        millis / 1000 + i64::from(millis % 1000 > 0)
    }

    /// Adds in place.
    pub fn add_assign(&mut self, other: &Self) {
        for (name, millis) in &other.0 {
            match self.0.get_mut(name) {
                Some(amount) => *amount = amount.saturating_add(*millis),
                None => {
                    self.0.insert(name.clone(), *millis);
                }
            }
        }
    }

    /// The sum.
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
        for (name, millis) in &other.0 {
            match self.0.get_mut(name) {
                Some(amount) => *amount = amount.saturating_sub(*millis),
                None => {
                    self.0.insert(name.clone(), millis.saturating_neg());
                }
            }
        }
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
        for (name, millis) in &other.0 {
            match self.0.get_mut(name) {
                Some(amount) => *amount = (*amount).max(*millis),
                None => {
                    self.0.insert(name.clone(), *millis);
                }
            }
        }
        self
    }

    /// Whether these amounts fit into `total`. A resource missing there is zero, and a negative total fits nothing.
    pub fn fits(&self, total: &Self) -> bool {
        total.0.values().all(|millis| *millis >= 0)
            && self
                .0
                .iter()
                .all(|(name, millis)| *millis <= total.get(name))
    }

    /// The resources of which these amounts exceed `limits`; names without a limit are free.
    pub fn exceeding<'a>(&'a self, limits: &Self) -> Vec<&'a str> {
        self.0
            .iter()
            .filter(|(name, millis)| limits.0.get(*name).is_some_and(|limit| *millis > limit))
            .map(|(name, _)| name.as_str())
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

impl FromIterator<(String, i64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (String, i64)>>(amounts: I) -> Self {
        Self(amounts.into_iter().collect())
    }
}

impl<'a> FromIterator<(&'a str, i64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (&'a str, i64)>>(amounts: I) -> Self {
        amounts
            .into_iter()
            .map(|(name, millis)| (name.to_owned(), millis))
            .collect()
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
