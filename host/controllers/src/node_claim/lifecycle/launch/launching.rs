//! Choices of the launches under way, until each claim tells its own.
//!
//! Claims of one round are ranked one after the other, and a policy that weighs what there is must see the choices made
//! before. Bounded by the launches under way; nothing is decided here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use locks::lock;
use scheduling::problem::OfferingKey;
use scheduling::ranking::{RankedOffering, Usage, UsageKey};

/// Choices by name of the claim, and the prices of what there is.
#[derive(Debug, Default)]
pub(crate) struct Launching {
    choices: Mutex<BTreeMap<String, (UsageKey, f64)>>,
    prices: Mutex<Arc<BTreeMap<UsageKey, f64>>>,
}

impl Launching {
    /// A claim is launched, as this offering if all goes well.
    pub(crate) fn chose(&self, claim: &str, pool: &str, best: &RankedOffering) {
        let key = UsageKey {
            pool: pool.to_owned(),
            offering: OfferingKey {
                instance_type: best.instance_type.to_string(),
                zone: Some(best.zone.to_string()),
                capacity_type: Some(best.capacity_type),
            },
        };
        let choice = (key, best.price_per_hour);
        self.choices().insert(claim.to_owned(), choice);
    }

    /// The launch came to an end, good or bad.
    pub(crate) fn settle(&self, claim: &str) {
        self.choices().remove(claim);
    }

    /// Keeps the prices of nodes as packing saw them: a launch looks at the types of its own pool only.
    pub(crate) fn keep_prices(&self, prices: Arc<BTreeMap<UsageKey, f64>>) {
        *lock(&self.prices) = prices;
    }

    /// Adds the prices that were kept, and the choices of all claims but one.
    pub(crate) fn add_to(&self, usage: &mut BTreeMap<UsageKey, Usage>, except: &str) {
        let prices = Arc::clone(&lock(&self.prices));
        for (key, count) in usage.iter_mut() {
            count.price_per_hour = prices.get(key).copied();
        }
        self.add_choices(usage, Some(except));
    }

    /// Adds the choices of all claims, or of all but one.
    pub(crate) fn add_choices(&self, usage: &mut BTreeMap<UsageKey, Usage>, except: Option<&str>) {
        for (claim, (key, price_per_hour)) in self.choices().iter() {
            if Some(claim.as_str()) == except {
                continue;
            }
            let count = usage.entry(key.clone()).or_default();
            count.nodes += 1;
            count.launching += 1;
            count.price_per_hour = Some(*price_per_hour);
        }
    }

    fn choices(&self) -> MutexGuard<'_, BTreeMap<String, (UsageKey, f64)>> {
        lock(&self.choices)
    }
}
