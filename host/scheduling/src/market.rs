//! Markets: the distinct requirements under which offerings are sold.
//!
//! A catalogue has thousands of offerings in a handful of markets (zone by capacity type, and one a reservation), so
//! what only depends on the market is asked once a market. Numbers are in the order of first sight.

use std::collections::BTreeMap;

use apis::CapacityType;

use crate::instance_type::Offering;
use crate::requirements::Requirements;

/// Markets looked at one by one before the search by words.
const NEAR_MAX: usize = 32;

/// Requirements that several offerings share.
#[derive(Debug, Clone)]
pub(crate) struct Market {
    pub(crate) requirements: Requirements,
    pub(crate) zone: Option<String>,
    /// None where it is one that nobody knows.
    pub(crate) capacity_type: Option<CapacityType>,
}

/// Numbers the markets of offerings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Markets {
    list: Vec<Market>,
    by_requirements: BTreeMap<Requirements, usize>,
    /// Types list their offerings in the same order, so this is most often the one asked for.
    next: usize,
}

impl Markets {
    /// The number of an offering's market.
    pub(crate) fn number(&mut self, offering: &Offering) -> usize {
        let offered = &offering.requirements;
        let is_it = |market: &Market| market.requirements == *offered;
        let at = if self.list.get(self.next).is_some_and(is_it) {
            self.next
        } else {
            let mut near = self.list.iter().take(NEAR_MAX);
            near.position(is_it)
                .or_else(|| self.by_requirements.get(offered).copied())
                .unwrap_or_else(|| self.add(offering))
        };
        self.next = at + 1;
        if self.next >= self.list.len() {
            self.next = 0;
        }
        at
    }

    fn add(&mut self, offering: &Offering) -> usize {
        self.list.push(Market {
            requirements: offering.requirements.clone(),
            zone: offering.zone().map(str::to_owned),
            capacity_type: offering.capacity_type(),
        });
        let at = self.list.len() - 1;
        self.by_requirements
            .insert(offering.requirements.clone(), at);
        at
    }

    /// The market of a number.
    pub(crate) fn get(&self, number: usize) -> &Market {
        &self.list[number]
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Market> {
        self.list.iter()
    }
}
