//! A component as wasmtime runs it: compiled, let in, granted what it may use, and called in a fresh instance.
//!
//! Nothing here knows bindings, rounds or which policy decides.

pub(crate) mod call;
pub(crate) mod call_failure;
pub(crate) mod called;
pub(crate) mod compiler;
pub(crate) mod engine;
pub(crate) mod guest_config;
pub(crate) mod guest_state;
pub(crate) mod limits;
pub(crate) mod linker;
pub(crate) mod memories;
pub(crate) mod module;
pub(crate) mod module_cache;
pub(crate) mod precompiled;
