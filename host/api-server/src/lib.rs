//! A Kubernetes API server in process, for simulations and tests: objects of any kind, discovery, watches, patches of
//! every sort, CRDs with their schemas and rules, tables, garbage collection.
//!
//! [`ApiServer`] is a cheap handle. Controllers of the simulated world use its methods; clients of the outside
//! use it as a tower service or over a loopback listener ([`serve`]). It keeps no clock
//! and no chance of its own: both are given.

mod admission;
mod apply;
mod builtin;
mod direct;
mod discovery;
mod events;
mod eviction;
mod garbage_collector;
mod kinds;
mod listener;
mod managed_fields;
mod names;
mod openapi;
mod patch;
mod protobuf;
mod quantity;
mod request;
mod request_info;
mod resource;
mod review;
mod routes;
mod scale;
mod schema;
mod selectors;
mod service;
mod status;
mod store;
mod sync;
mod table;
mod watch;
mod watch_stream;
mod write;

pub use direct::ApiServer;
pub use eviction::EvictionOptions;
pub use garbage_collector::{DeleteOptions, Propagation};
pub use listener::{kubeconfig, serve};
pub use patch::Patch;
pub use request_info::RequestInfo;
pub use resource::Resource;
pub use selectors::{FieldSelector, LabelSelector, Selection};
pub use service::ResponseBody;
pub use status::{FieldError, Status};
pub use store::{Now, ObjectKey};
pub use watch::{Change, Watch, WatchEvent};
pub use write::{Part, WriteOptions};

/// Minor version of Kubernetes that it answers as, where nothing else is asked for.
pub const KUBERNETES_MINOR: u32 = 35;
