//! A claim while it is open: the rows it may still become, and what is on it.
//!
//! A value only; what goes on it is decided by those who place and pack. Answers to Karpenter's
//! `scheduling/nodeclaim.go`.

use crate::pod::HostPort;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pool_table::PoolId;
use crate::solve::input::topology::{HOSTNAME_KEY, KeyId, NodePlace, Pin};
use crate::solve::input::vocabulary::{Amounts, SetId};
use crate::solve::input::volumes::AttachedVolumes;

/// A node to be, while pods are being added.
#[derive(Debug, Clone)]
pub(crate) struct OpenClaim {
    pub(crate) pool: PoolId,
    /// The rows on which everything so far fits, cheapest first.
    pub(crate) rows: BitSet,
    pub(crate) set: SetId,
    /// Requests of the pods; daemons are part of the rows.
    pub(crate) requests: Amounts,
    pub(crate) members: Vec<usize>,
    pub(crate) place: NodePlace,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) volumes: AttachedVolumes,
    /// The reservation it holds a slot of.
    pub(crate) reservation: Option<String>,
    pub(crate) are_min_values_relaxed: bool,
}

/// Notes the domains of a place that are assigned to pods whose terms look at these keys.
pub(crate) fn record_domains(place: &mut NodePlace, keys: &[KeyId], pins: &[Pin]) {
    for pin in pins {
        debug_assert_ne!(
            pin.key, HOSTNAME_KEY,
            "host names are not assigned as domains"
        );
        place.assign(*pin);
    }
    for key in keys {
        let is_assigned = pins.iter().any(|pin| pin.key == *key);
        if !is_assigned && !place.unknown.contains(key) {
            place.unknown.push(*key);
        }
    }
}
