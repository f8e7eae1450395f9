//! Tests through the public door: the binary, the API server, the component.

mod demo;
mod kubectl;
mod tidy;
