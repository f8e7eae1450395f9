//! Tests through the public door: the binary, the API server, the component.

mod tidy;
