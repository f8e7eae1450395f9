//! What a watch says of an object, and the key under which that is kept.

use apis::ObjectKey;
use kube::ResourceExt;
use state::Event;

use crate::policy_binding::PolicyFact;

/// What is said of an object, or of all of a kind.
#[derive(Debug)]
pub(super) enum WatchFact {
    /// For the model.
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
