//! Resources of pods and nodes as the scheduler counts them: the four common ones in fields, the rest in a list.

use std::collections::BTreeMap;

use apis::quantity::parse_millis;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

/// Amounts in milli-units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MilliAmounts {
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) ephemeral_storage: i64,
    pub(crate) pods: i64,
    /// Extended resources, by name.
    pub(crate) extended: BTreeMap<String, i64>,
}

/// Resource that is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage<'a> {
    /// The node runs as many pods as it can.
    Pods,
    /// A resource, by name.
    Of(&'a str),
}

impl MilliAmounts {
    pub(crate) fn from_quantities(list: &BTreeMap<String, Quantity>) -> Self {
        let mut amounts = Self::default();
        for (name, quantity) in list {
            amounts.set(name, parse_millis(&quantity.0).unwrap_or_default());
        }
        amounts
    }

    pub(crate) fn from_value(list: &Value) -> Self {
        let mut amounts = Self::default();
        for (name, quantity) in list.as_object().into_iter().flatten() {
            let text = quantity
                .as_str()
                .map_or_else(|| quantity.to_string(), ToOwned::to_owned);
            amounts.set(name, parse_millis(&text).unwrap_or_default());
        }
        amounts
    }

    pub(crate) fn get(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral_storage,
            "pods" => self.pods,
            _ => self.extended.get(name).copied().unwrap_or_default(),
        }
    }

    pub(crate) fn set(&mut self, name: &str, millis: i64) {
        match name {
            "cpu" => self.cpu = millis,
            "memory" => self.memory = millis,
            "ephemeral-storage" => self.ephemeral_storage = millis,
            "pods" => self.pods = millis,
            _ => drop(self.extended.insert(name.to_owned(), millis)),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.combine(other, |a, b| a + b);
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.combine(other, |a, b| a - b);
    }

    pub(crate) fn raise_to(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    fn combine(&mut self, other: &Self, with: impl Fn(i64, i64) -> i64) {
        self.cpu = with(self.cpu, other.cpu);
        self.memory = with(self.memory, other.memory);
        self.ephemeral_storage = with(self.ephemeral_storage, other.ephemeral_storage);
        self.pods = with(self.pods, other.pods);
        for (name, millis) in &other.extended {
            let mine = self.extended.entry(name.clone()).or_default();
            *mine = with(*mine, *millis);
        }
    }

    /// The first resource of which `self` wants more than is free, in kube-scheduler's order.
    pub(crate) fn shortage(&self, free: &Self) -> Option<Shortage<'_>> {
        if self.pods > free.pods {
            return Some(Shortage::Pods);
        }
        let common = [
            ("cpu", self.cpu, free.cpu),
            ("memory", self.memory, free.memory),
            (
                "ephemeral-storage",
                self.ephemeral_storage,
                free.ephemeral_storage,
            ),
        ];
        let short = common
            .iter()
            .find(|(_, want, free)| *want > 0 && want > free)
            .map(|row| row.0);
        let extended = || {
            let short = self.extended.iter().find(|(name, want)| {
                **want > 0 && **want > free.extended.get(*name).copied().unwrap_or_default()
            });
            short.map(|(name, _)| name.as_str())
        };
        short.or_else(extended).map(Shortage::Of)
    }

    /// Whether `self` fits into what is free.
    pub(crate) fn fits(&self, free: &Self) -> bool {
        self.pods <= free.pods
            && (self.cpu == 0 || self.cpu <= free.cpu)
            && (self.memory == 0 || self.memory <= free.memory)
            && (self.ephemeral_storage == 0 || self.ephemeral_storage <= free.ephemeral_storage)
            && self.extended.iter().all(|(name, want)| {
                *want == 0 || *want <= free.extended.get(name).copied().unwrap_or_default()
            })
    }
}
