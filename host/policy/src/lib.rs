//! The Wasm policy host: loads components, runs them within limits, and answers the hooks of scheduling and disruption.
