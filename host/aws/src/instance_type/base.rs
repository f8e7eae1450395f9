//! What the offerings of a type are made of and availability does not change.

use apis::CapacityType;

/// What its offerings are made of and availability does not change.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) name: String,
    /// Zones where it is sold and the class has a subnet.
    pub(crate) zones: Vec<String>,
    pub(crate) capacity_types: Vec<CapacityType>,
    pub(crate) is_compatible: bool,
}
