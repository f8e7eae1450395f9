//! A Kubernetes API server in process, for simulations and tests: objects of any kind, discovery, watches, patches of
//! every sort, CRDs with their schemas and rules, tables, garbage collection.
//!
//! [`ApiServer`] is a cheap handle. Controllers of the simulated world use its methods; clients of the outside
//! use it as a tower service or over a loopback listener ([`serve`]). It keeps no clock
//! and no chance of its own: both are given.

mod api_server;
mod builtin;
mod conditions;
mod object_key;
mod quantity;
mod request;
mod resource;
mod selectors;
mod served;
mod status;
mod store;
mod sync;
mod timestamp;
mod write;

pub use api_server::ApiServer;
pub use object_key::NamespacedName;
pub use request::answer::ResponseBody;
pub use request::listener::{kubeconfig, serve};
pub use request::request_info::RequestInfo;
pub use resource::Resource;
pub use selectors::{FieldSelector, ParsedLabelSelector, Selection};
pub use status::{FieldError, StatusError};
pub use store::Now;
pub use store::names::name_suffix;
pub use store::watch::{Watch, WatchEvent, WatchEventType, WatchOverrun};
pub use timestamp::time_text;
pub use write::options::{DeleteOptions, ObjectPart, Propagation, WriteOptions};
pub use write::patch::Patch;

/// Minor version of Kubernetes that it answers as, where nothing else is asked for.
pub const KUBERNETES_MINOR: u32 = 35;
