//! Condition reasons of Karpenter's that conditions here carry, and fixed messages.
//!
//! What one place alone writes may stand there as a literal, too. Names are wire format. Answers to the constants of
//! Karpenter's `pkg/apis/v1/*_status.go` and to the reasons its controllers write.

/// A condition that nothing has set yet.
pub const AWAITING_RECONCILIATION: &str = "AwaitingReconciliation";
/// Message of [`AWAITING_RECONCILIATION`].
pub(crate) const AWAITING_RECONCILIATION_MESSAGE: &str = "object is awaiting reconciliation";
/// Root is False because a dependent is.
pub(crate) const UNHEALTHY_DEPENDENTS: &str = "UnhealthyDependents";
/// Root is Unknown because a dependent is.
pub(crate) const RECONCILING_DEPENDENTS: &str = "ReconcilingDependents";
/// NodePool: runtime validation failed.
pub const NODE_POOL_VALIDATION_FAILED: &str = "NodePoolValidationFailed";
/// NodePool: no such NodeClass.
pub const NODE_CLASS_NOT_FOUND: &str = "NodeClassNotFound";
/// NodePool: the NodeClass is being deleted.
pub const NODE_CLASS_TERMINATING: &str = "NodeClassTerminating";
/// NodePool: the NodeClass says nothing yet.
pub const NODE_CLASS_READINESS_UNKNOWN: &str = "NodeClassReadinessUnknown";
/// NodePool: instances launch but never join.
pub const REGISTRATION_FAILED: &str = "RegistrationFailed";
/// NodeClaim: the cloud refused.
pub const LAUNCH_FAILED: &str = "LaunchFailed";
/// NodeClaim: no node with its provider id.
pub const NODE_NOT_FOUND: &str = "NodeNotFound";
/// NodeClaim: more than one node with its provider id.
pub const MULTIPLE_NODES_FOUND: &str = "MultipleNodesFound";
/// NodeClaim: a registration hook has not finished.
pub const REGISTRATION_HOOK_PENDING: &str = "RegistrationHookPending";
/// NodeClaim: the node is not ready.
pub const NODE_NOT_READY: &str = "NodeNotReady";
/// NodeClaim: a startup taint is still there.
pub const STARTUP_TAINTS_EXIST: &str = "StartupTaintsExist";
/// NodeClaim: a taint of a starting node is still there.
pub const KNOWN_EPHEMERAL_TAINTS_EXIST: &str = "KnownEphemeralTaintsExist";
/// NodeClaim: an expected resource is missing from the node.
pub const RESOURCE_NOT_REGISTERED: &str = "ResourceNotRegistered";
/// NodeClaim: differs from its pool's template.
pub const NODE_POOL_DRIFTED: &str = "NodePoolDrifted";
/// NodeClaim: its labels no longer meet the pool's requirements.
pub const REQUIREMENTS_DRIFTED: &str = "RequirementsDrifted";
/// NodeClaim: its instance type is no longer offered.
pub const INSTANCE_TYPE_NOT_FOUND: &str = "InstanceTypeNotFound";
/// NodeClaim: a consistency check failed.
pub const CONSISTENCY_CHECK_FAILED: &str = "ConsistencyCheckFailed";
/// NodeClaim: pods are being moved away.
pub const DRAINING: &str = "Draining";
/// NodeClaim: a volume still holds the node.
pub const AWAITING_VOLUME_DETACHMENT: &str = "AwaitingVolumeDetachment";
/// NodeClaim: the grace period ended first.
pub const TERMINATION_GRACE_PERIOD_ELAPSED: &str = "TerminationGracePeriodElapsed";
/// NodeOverlay: runtime validation failed.
pub const RUNTIME_VALIDATION: &str = "RuntimeValidation";
/// NodeOverlay: another of equal weight says otherwise.
pub const CONFLICT: &str = "Conflict";
/// EC2NodeClass: no subnet matched.
pub const SUBNETS_NOT_FOUND: &str = "SubnetsNotFound";
/// EC2NodeClass: no security group matched.
pub const SECURITY_GROUPS_NOT_FOUND: &str = "SecurityGroupsNotFound";
/// EC2NodeClass: no image matched.
pub const AMI_NOT_FOUND: &str = "AMINotFound";
/// EC2NodeClass: the alias does not exist for this Kubernetes version.
pub const UNSUPPORTED_ALIAS: &str = "UnsupportedAlias";
/// EC2NodeClass: another condition must be True first.
pub const DEPENDENCIES_NOT_READY: &str = "DependenciesNotReady";
/// EC2NodeClass: a restricted tag.
pub const TAG_VALIDATION_FAILED: &str = "TagValidationFailed";
/// EC2NodeClass: the kubelet configuration is malformed.
pub const INVALID_KUBELET_CONFIGURATION: &str = "InvalidKubeletConfiguration";
/// EC2NodeClass: the family cannot apply the kubelet configuration.
pub const UNSUPPORTED_KUBELET_CONFIGURATION: &str = "UnsupportedKubeletConfiguration";
/// EC2NodeClass: the instance profile does not exist.
pub const INSTANCE_PROFILE_NOT_FOUND: &str = "InstanceProfileNotFound";
/// EC2NodeClass: no placement group matched.
pub const PLACEMENT_GROUP_NOT_FOUND: &str = "PlacementGroupNotFound";
/// CapacityBuffer: the pod template is known.
pub const RESOLVED: &str = "Resolved";
/// CapacityBuffer: no template of that name.
pub const POD_TEMPLATE_NOT_FOUND: &str = "PodTemplateNotFound";
/// CapacityBuffer: no workload of that name.
pub const SCALABLE_REF_NOT_FOUND: &str = "ScalableRefNotFound";
/// CapacityBuffer: its pods cannot be told.
pub const RESOLUTION_FAILED: &str = "ResolutionFailed";
/// CapacityBuffer: all of the room is there.
pub const FITS_EXISTING_CAPACITY: &str = "FitsExistingCapacity";
/// CapacityBuffer: some of the room needs new nodes.
pub const REQUIRES_NEW_CAPACITY: &str = "RequiresNewCapacity";
/// CapacityBuffer: it is not understood.
pub const NOT_READY_FOR_PROVISIONING: &str = "NotReadyForProvisioning";
/// CapacityBuffer: it asks for nothing.
pub const BUFFER_EMPTY: &str = "BufferEmpty";
