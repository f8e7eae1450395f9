//! The generated host side of the interface before this one, as it stood in `wit-0.1`. Only the files beside it may
//! name its types.

#![allow(
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "generated"
)]

wasmtime::component::bindgen!({
    path: "wit-0.1",
    world: "full-policy",
    // As for the interface of today.
    ownership: Borrowing { duplicate_if_necessary: true },
});
