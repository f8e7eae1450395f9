//! Amounts of resources in a width that cannot overflow.

use std::collections::BTreeMap;
use std::fmt;

use apis::resources::Resources;
use scheduling::instance_type::InstanceType;

/// Thousandths by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Amounts(pub(crate) BTreeMap<String, i128>);

/// A resource of which there is too little, and by how much.
pub(crate) struct Shortage {
    resource: String,
    thousandths: i128,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} thousandths of {}", self.thousandths, self.resource)
    }
}

impl Amounts {
    pub(crate) fn of(resources: &Resources) -> Self {
        let pairs = resources.iter();
        Self(pairs.map(|(k, v)| (k.to_owned(), i128::from(v))).collect())
    }

    pub(crate) fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn plus(mut self, resources: &Resources) -> Self {
        for (name, amount) in resources.iter() {
            *self.0.entry(name.to_owned()).or_default() += i128::from(amount);
        }
        self
    }

    pub(crate) fn minus(mut self, other: &Self) -> Self {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() -= amount;
        }
        self
    }

    /// The greater of each, and of zero.
    pub(crate) fn at_least_zero(mut self) -> Self {
        for amount in self.0.values_mut() {
            *amount = (*amount).max(0);
        }
        self
    }

    /// The first resource that is short, and by how much. What is negative to begin with takes nothing.
    pub(crate) fn shortage(&self, total: &Self) -> Option<Shortage> {
        let overdrawn = total.0.iter().find(|(_, amount)| **amount < 0);
        let of = |resource: &String, thousandths: i128| Shortage {
            resource: resource.clone(),
            thousandths,
        };
        let short = self.0.iter().find_map(|(name, wanted)| {
            let short = wanted - total.get(name);
            (short > 0).then(|| of(name, short))
        });
        short.or_else(|| overdrawn.map(|(name, amount)| of(name, -amount)))
    }
}

/// Capacity less overhead; huge pages come out of memory.
pub(crate) fn allocatable(of_type: &InstanceType) -> Amounts {
    let overhead = &of_type.overhead;
    let reserved = Amounts::of(&overhead.kube_reserved)
        .plus(&overhead.system_reserved)
        .plus(&overhead.eviction_threshold);
    let mut left = Amounts::of(&of_type.capacity);
    for (name, amount) in &mut left.0 {
        *amount = (*amount - reserved.get(name)).max(0);
    }
    let huge: i128 = of_type
        .capacity
        .iter()
        .filter(|(name, _)| name.starts_with("hugepages-"))
        .map(|(_, amount)| i128::from(amount))
        .sum();
    if let Some(memory) = left.0.get_mut("memory") {
        *memory = (*memory - huge).max(0);
    }
    left
}
