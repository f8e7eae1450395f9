//! The simulated world: API server, workload controllers, scheduler, kubelets and EC2, in virtual or real time.
//!
//! [`SimulatedWorld`] wires the parts; [`ec2::SimulatedEc2`] also stands alone, for a controller on a foreign API
//! server.

pub mod catalogue;
pub mod checkers;
pub mod clock;
mod cluster;
pub mod ec2;
pub mod kubelet;
mod machine;
pub mod node;
pub mod random;
mod scheduler;
pub mod statistics;
mod status;
mod volumes;
mod workload;
pub mod world;

pub use checkers::Violation;
pub use clock::SimulatedClock;
pub use statistics::Statistics;
pub use world::{SimulatedWorld, Time, WorldConfig};
