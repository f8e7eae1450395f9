//! What the offerings of a type are made of and availability does not change.
//!
//! No price and no mark of what is sold out may stand here: it is kept for as long as the catalogue is.

use std::sync::Arc;

use apis::CapacityType;

/// What its offerings are made of and availability does not change.
#[derive(Debug)]
pub(crate) struct Base {
    /// Zones where it is sold and the class has a subnet.
    pub(crate) zones: Arc<[String]>,
    /// Under which EC2 sells it, reservations aside.
    pub(crate) capacity_types: &'static [CapacityType],
    /// Whether the class can use it at all.
    pub(crate) is_compatible: bool,
}
