//! The generated ABI of `wit/`; only the SDK's own type aliases and `export.rs` may name its modules.
//!
//! One `generate!` over the world that has all interfaces gives the types once. Which world a component
//! announces is its author's choice: `export_policy!` picks the encoded world from [`worlds`] and the
//! export macros from here.

#![allow(
    missing_docs,
    unreachable_pub,
    elided_lifetimes_in_paths,
    clippy::all,
    clippy::pedantic,
    reason = "generated"
)]

wit_bindgen::generate!({
    path: "../wit",
    world: "full-policy",
    pub_export_macro: true,
    export_macro_name: "export_everything",
    default_bindings_module: "guest_sdk::__private::types",
    additional_derives: [PartialEq],
});

/// The encoded worlds, written by `build.rs`.
pub mod worlds {
    pub const RANK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rank-policy"));
    pub const CONSOLIDATION: &[u8] =
        include_bytes!(concat!(env!("OUT_DIR"), "/consolidation-policy"));
    pub const BUDGETS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/budget-policy"));
    pub const FULL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/full-policy"));

    pub const fn section<const N: usize>(world: &[u8]) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(world);
        bytes
    }
}
