//! Karpenter's scheduling rules as data: files of cases, each what is given and what must come out.
//!
//! A case goes the way of production: objects become events, events the cluster's state, a snapshot the problem, and
//! the solver answers. Nothing here may know how the solver works. `cases/README.md` explains the format.

pub mod case;
pub mod check;
pub mod objects;
pub mod run;
pub mod tables;
pub mod types;
pub mod words;
pub mod world;
