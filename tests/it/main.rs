//! Tests through the public door: the binary, the API server, the component.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

mod demo;
mod kubectl;
mod policy;
mod simulate;
mod tidy;
