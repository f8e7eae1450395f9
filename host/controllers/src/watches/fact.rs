//! Facts that a watch tells of an object, and the key under which they are kept.
//!
//! It judges none: what a fact changes, the model says, or the controller that binds policies.

use apis::ObjectKey;
use kube::ResourceExt;
use state::Event;

use crate::policy_binding::PolicyFact;

/// A fact about an object, or about all of a kind.
#[derive(Debug)]
pub(super) enum WatchFact {
    /// For the model of the cluster.
    Model(Event),
    /// For the policies, which the model knows nothing of.
    Policy(PolicyFact),
}

/// The name under which it is kept.
pub(super) fn key_of(object: &impl ResourceExt) -> ObjectKey {
    ObjectKey {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}
