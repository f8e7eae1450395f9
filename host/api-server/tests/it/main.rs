//! The API server through its public doors: direct calls, its HTTP service and its listener. What is expected is what
//! Kubernetes documents; nothing here knows how the server keeps objects.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod applies;
mod clients;
mod custom_resources;
mod deletions;
mod lists;
mod patches;
mod resting;
mod rig;
mod rules;
mod selectors;
mod server;
mod subresources;
mod types;
mod watches;
