//! A Kubernetes API server in process, for simulations and tests: objects of any kind, discovery, watches, patches of
//! every sort, CRDs with their schemas and rules, tables, garbage collection.
//!
//! [`ApiServer`] is a cheap handle. Controllers of the simulated world use its methods; clients of the outside
//! use it as a tower service or over a loopback listener ([`serve`]). It keeps no clock
//! and no chance of its own: both are given.

mod admission;
mod answer;
mod apply;
mod builtin;
mod delete_options;
mod deletion;
mod direct;
mod discovery;
mod events;
mod eviction;
mod garbage_collector;
mod json_path;
mod kinds;
mod listener;
mod managed_fields;
mod names;
mod object_key;
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
mod timestamp;
mod watch;
mod watch_stream;
mod write;
mod write_options;

pub use answer::ResponseBody;
pub use delete_options::{DeleteOptions, Propagation};
pub use direct::ApiServer;
pub use listener::{kubeconfig, serve};
pub use names::name_suffix;
pub use object_key::NamespacedName;
pub use patch::Patch;
pub use request_info::RequestInfo;
pub use resource::Resource;
pub use selectors::{FieldSelector, ParsedLabelSelector, Selection};
pub use status::{FieldError, StatusError};
pub use store::Now;
pub use timestamp::time_text;
pub use watch::{Watch, WatchEvent, WatchEventType};
pub use write_options::{ObjectPart, WriteOptions};

/// Minor version of Kubernetes that it answers as, where nothing else is asked for.
pub const KUBERNETES_MINOR: u32 = 35;
