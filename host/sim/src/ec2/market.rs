//! Capacity pools and spot prices: one pool per (type, zone, capacity type), as deep as the seed says.
//!
//! Chance hangs on the names of a pool and on the time, never on who asked before.

use apis::CapacityType;
use jiff::Timestamp;

use super::AccountState;
use crate::catalogue::CatalogueEntry;
use crate::random::{hash, hash_unit};

/// How long a dry pool stays dry, at least.
const DRY_WINDOW_SECONDS: i64 = 15 * 60;

/// A pool of capacity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CapacityPool {
    instance_type: String,
    zone: String,
    capacity_type: CapacityType,
}

impl CapacityPool {
    pub(super) fn new(instance_type: &str, zone: &str, capacity_type: CapacityType) -> Self {
        Self {
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
            capacity_type,
        }
    }

    pub(super) fn capacity_type(&self) -> CapacityType {
        self.capacity_type
    }

    pub(super) fn is_spot(&self) -> bool {
        self.capacity_type == CapacityType::Spot
    }
}

impl AccountState {
    /// Spot price: 28 to 63 % of on-demand, fixed by seed, type and zone; none where spot is not sold.
    pub(super) fn spot_price(&self, instance_type: &str, zone: &str) -> Option<f64> {
        let found = self.catalogue.get(instance_type)?;
        if !found.has_usage_class("spot") || !found.is_offered_in(zone) {
            return None;
        }
        let on_demand = found.on_demand_price_per_hour(&self.config.region)?;
        let seed = self.config.seed;
        // The family sets the level, the type and the zone vary it: prices of one family move together.
        let family = instance_type.split('.').next().unwrap_or_default();
        let level = hash_unit(seed, &["spot-family", family]);
        let noise = hash_unit(seed, &["spot-type", instance_type, zone]);
        let share = 0.28 + 0.35 * (0.6 * level + 0.4 * noise);
        Some((on_demand * share * 10_000.0).round() / 10_000.0)
    }

    /// Price of a type in a zone as it is bought.
    pub(super) fn price(&self, t: &CatalogueEntry, zone: &str, how: CapacityType) -> Option<f64> {
        match how {
            CapacityType::OnDemand => t.on_demand_price_per_hour(&self.config.region),
            CapacityType::Spot => self.spot_price(t.name, zone),
            // Paid for whether used or not.
            CapacityType::Reserved => Some(0.0),
        }
    }

    /// Instances that a pool can still give at `now`.
    pub(super) fn available(&self, t: &CatalogueEntry, pool: &CapacityPool, now: Timestamp) -> u32 {
        if self.is_dry(pool, now) {
            return 0;
        }
        self.depth(t, pool)
            .saturating_sub(self.used.get(pool).copied().unwrap_or_default())
    }

    /// Instances that a pool holds when it is not dry: deep for common small types, a handful for rare ones.
    pub(super) fn depth(&self, t: &CatalogueEntry, pool: &CapacityPool) -> u32 {
        let CapacityPool {
            instance_type,
            zone,
            capacity_type,
        } = pool;
        let vcpus: u64 = match (
            t.gpus.is_empty() && t.neuron_devices.is_empty(),
            capacity_type,
        ) {
            (true, CapacityType::OnDemand | CapacityType::Reserved) => 24_000,
            (true, CapacityType::Spot) => 8_000,
            (false, CapacityType::OnDemand | CapacityType::Reserved) => 3_000,
            (false, CapacityType::Spot) => 600,
        };
        let words = [
            "depth",
            instance_type.as_str(),
            zone.as_str(),
            capacity_type.as_str(),
        ];
        let share = 25 + hash(self.config.seed, &words) % 76;
        let depth = vcpus * share / 100 / u64::from(t.vcpus.max(1));
        u32::try_from(depth.clamp(1, 5_000)).unwrap_or(u32::MAX)
    }

    fn is_dry(&self, pool: &CapacityPool, now: Timestamp) -> bool {
        if self.drained.get(pool).is_some_and(|until| *until > now) {
            return true;
        }
        let share = match pool.capacity_type {
            CapacityType::OnDemand => self.config.faults.on_demand_pools_dry,
            CapacityType::Spot => self.config.faults.spot_pools_dry,
            CapacityType::Reserved => 0.0,
        };
        let window = now.as_second().div_euclid(DRY_WINDOW_SECONDS).to_string();
        let CapacityPool {
            instance_type,
            zone,
            capacity_type,
        } = pool;
        let words = ["dry", instance_type, zone, capacity_type.as_str(), &window];
        share > 0.0 && hash_unit(self.config.seed, &words) < share
    }
}
