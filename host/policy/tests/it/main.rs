//! The policy host through its public door: what a ConfigMap brings about in the next decision.

mod agreement;
mod bad_modules;
mod bindings;
mod freshness;
mod support;
