//! Why a volume of a pod cannot be used.

/// Why a pod's volume cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// The claim does not exist.
    #[error("persistentvolumeclaim \"{0}\" not found")]
    ClaimNotFound(String),
    /// The claim is going.
    #[error("persistentvolumeclaim \"{0}\" is being deleted")]
    ClaimDeleting(String),
    /// The claim lost its volume.
    #[error("persistentvolumeclaim \"{0}\" is lost")]
    ClaimLost(String),
    /// The claim names a volume but the binding is not done.
    #[error("persistentvolumeclaim \"{0}\" is not fully bound yet")]
    NotBound(String),
    /// The volume of the claim does not exist.
    #[error("persistentvolume \"{volume}\" of persistentvolumeclaim \"{claim}\" not found")]
    VolumeNotFound { claim: String, volume: String },
    /// The volume is going.
    #[error("persistentvolume \"{volume}\" of persistentvolumeclaim \"{claim}\" is being deleted")]
    VolumeDeleting { claim: String, volume: String },
    /// The unbound claim names no class.
    #[error("unbound persistentvolumeclaim \"{0}\" must define a storage class")]
    NoStorageClass(String),
    /// The class of the claim does not exist.
    #[error("storageclass \"{class}\" of persistentvolumeclaim \"{claim}\" not found")]
    StorageClassNotFound { claim: String, class: String },
    /// The volume should exist already, as nothing waits for the pod.
    #[error("persistentvolumeclaim \"{0}\" is unbound and its storage class binds immediately")]
    UnboundImmediate(String),
}
