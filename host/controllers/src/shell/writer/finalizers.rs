//! Finalizers of objects: whether one is there, and the object with it or without it.
//!
//! Pure: nothing is written.

use kube::ResourceExt;

pub(crate) fn has_finalizer(object: &impl ResourceExt, finalizer: &str) -> bool {
    object.finalizers().iter().any(|it| it == finalizer)
}

/// Adds the finalizer where it is not there.
pub(crate) fn add_finalizer(object: &mut impl ResourceExt, finalizer: &str) {
    if !has_finalizer(object, finalizer) {
        object.finalizers_mut().push(finalizer.to_owned());
    }
}

pub(crate) fn remove_finalizer(object: &mut impl ResourceExt, finalizer: &str) {
    object.finalizers_mut().retain(|it| it != finalizer);
}
