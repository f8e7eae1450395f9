//! The controllers against the simulated API server, in virtual time, with a small cloud of their own.

mod cloud;
mod failures;
mod life_of_a_node;
mod policies;
mod world;
