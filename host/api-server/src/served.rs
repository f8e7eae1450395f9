//! What is served: kinds with their schemas, and how clients find, read and show them.
//!
//! Holds no objects and changes none.

pub(crate) mod discovery;
pub(crate) mod json_path;
pub(crate) mod kinds;
pub(crate) mod openapi;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod table;
