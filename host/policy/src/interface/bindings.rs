//! The generated host side of `wit/`. Only the files beside it may name its types, and for the log `guest_state.rs` and
//! `called.rs`.
//!
//! One world that has all interfaces serves every component: exports are looked up by interface, so a
//! component of a smaller world is taken for what it exports.

#![allow(
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "generated"
)]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "full-policy",
    // A question is written into the guest straight from the columns of the round.
    ownership: Borrowing { duplicate_if_necessary: true },
});
