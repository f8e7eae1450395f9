//! Pending pods to what is there, and to domains.
//!
//! In go pods of a group that need a place. Those that fit on a node that exists or on a claim opened before in this
//! solve are put there; out come the others as batches, each with the zone (or other domain) of every topology key
//! that its terms look at. Opens no node.

pub(super) mod claim;
mod devices;
mod domains;
mod existing;
mod feasible;
pub(super) mod open_claims;
mod suitable_rows;
