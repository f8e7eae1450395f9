//! Names of pods, by which they are told apart.

/// Namespace and name of a pod.
pub type PodKey = apis::ObjectKey;
