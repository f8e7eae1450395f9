//! What tells pods apart.

/// Namespace and name of a pod.
pub type PodKey = apis::ObjectKey;
