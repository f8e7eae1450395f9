//! The AWS adapter against moto, a server of AWS' APIs that is not ours: the SDK, HTTP and XML are the real ones.
//!
//! `calls.md` beside this file lists the calls, and which of the tests makes each of them; tests are held to it. A
//! target of its own because it takes Python: without moto each test says so and does nothing.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

mod calls;
mod controller;
mod installation;
mod life;
mod refused;
mod rig;
