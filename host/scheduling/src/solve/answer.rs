//! From the state of a solve to its answer.
//!
//! In go open claims and the pods left over; out comes the [`Solution`](crate::solution::Solution): claims as
//! NodeClaims will ask for them, the reason for every pod without a place, pods that have to wait for a reservation,
//! and what the policy's plan costs beside that of list prices. Places no pod.

mod diagnosis;
mod finalize;
pub(super) mod premium;
mod reserved;
