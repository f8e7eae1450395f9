//! Every label, annotation, taint, finalizer and resource name that Mortise writes or reads, and the rules on
//! which keys a user may set.
//!
//! Names are wire format: they must never change. Answers to Karpenter's `pkg/apis/v1/labels.go`,
//! `pkg/apis/v1/taints.go` and the AWS provider's `pkg/apis/v1/labels.go`.

use std::collections::BTreeMap;

#[cfg(feature = "objects")]
use k8s_openapi::api::core::v1::Taint;

/// API group of NodePool, NodeClaim and NodeOverlay.
pub const GROUP: &str = "karpenter.sh";
/// API group of EC2NodeClass.
pub const AWS_GROUP: &str = "karpenter.k8s.aws";

// Labels of the core.

/// Owning NodePool of a claim or node.
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
/// `spot`, `on-demand` or `reserved`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// `"true"` on a node once registration is done.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// `"true"` on a node once initialization is done.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// `"true"` on a node whose taints registration must not sync.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Set to [`EXCLUDE_BALANCERS_VALUE`] when termination of a node starts.
pub const NODE_EXCLUDE_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Value of [`NODE_EXCLUDE_BALANCERS`] by which our own label is told from a user's.
pub const EXCLUDE_BALANCERS_VALUE: &str = "karpenter";

// Labels of Kubernetes.

/// Zone name, such as `us-east-1a`.
pub const TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";
/// Region name, such as `us-east-1`.
pub const TOPOLOGY_REGION: &str = "topology.kubernetes.io/region";
/// Instance type name, such as `m7i.large`.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// CPU architecture, `amd64` or `arm64`.
pub const ARCH: &str = "kubernetes.io/arch";
/// Operating system, `linux` or `windows`.
pub const OS: &str = "kubernetes.io/os";
/// Host name of the node; never a requirement of a pool.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Windows build number.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// Field manager of `status.nominatedNodeName` where the plan says it.
pub const NOMINATION_MANAGER: &str = "mortise-plan";

// Labels of the AWS provider.

/// Availability zone id, such as `use1-az1`.
pub const TOPOLOGY_ZONE_ID: &str = "topology.k8s.aws/zone-id";
/// Name of the EC2NodeClass.
pub const EC2_NODE_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
/// Id of the capacity reservation a reserved node runs in.
pub const CAPACITY_RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
/// Kind of the capacity reservation, `default` or `capacity-block`.
pub const CAPACITY_RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
/// Whether the reservation may be taken back.
pub const CAPACITY_RESERVATION_INTERRUPTIBLE: &str =
    "karpenter.k8s.aws/capacity-reservation-interruptible";
/// Hypervisor: `nitro`, `xen`, or empty for metal.
pub const INSTANCE_HYPERVISOR: &str = "karpenter.k8s.aws/instance-hypervisor";
/// Whether traffic between instances is encrypted, `true` or `false`.
pub const INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED: &str =
    "karpenter.k8s.aws/instance-encryption-in-transit-supported";
/// Whether Nitro enclaves are supported.
pub const NITRO_SANDBOX: &str = "karpenter.k8s.aws/nitro-sandbox";
/// Leading letters of the type name, such as `m`.
pub const INSTANCE_CATEGORY: &str = "karpenter.k8s.aws/instance-category";
/// Generation of the instance family, a number.
pub const INSTANCE_GENERATION: &str = "karpenter.k8s.aws/instance-generation";
/// Text before the dot.
pub const INSTANCE_FAMILY: &str = "karpenter.k8s.aws/instance-family";
/// Text after the dot.
pub const INSTANCE_SIZE: &str = "karpenter.k8s.aws/instance-size";
/// Whether it is a flex type.
pub const INSTANCE_CAPABILITY_FLEX: &str = "karpenter.k8s.aws/instance-capability-flex";
/// Size of the local NVMe disks, GB.
pub const INSTANCE_LOCAL_NVME: &str = "karpenter.k8s.aws/instance-local-nvme";
/// Number of vCPUs.
pub const INSTANCE_CPU: &str = "karpenter.k8s.aws/instance-cpu";
/// `intel`, `amd`, `aws`, …
pub const INSTANCE_CPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-cpu-manufacturer";
/// Sustained clock speed of the CPU, MHz.
pub const INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ: &str =
    "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
/// Memory of the instance, MiB.
pub const INSTANCE_MEMORY: &str = "karpenter.k8s.aws/instance-memory";
/// Maximum bandwidth to EBS, Mbit/s.
pub const INSTANCE_EBS_BANDWIDTH: &str = "karpenter.k8s.aws/instance-ebs-bandwidth";
/// Baseline bandwidth of the network, Mbit/s.
pub const INSTANCE_NETWORK_BANDWIDTH: &str = "karpenter.k8s.aws/instance-network-bandwidth";
/// Model of the GPU, in kebab-case.
pub const INSTANCE_GPU_NAME: &str = "karpenter.k8s.aws/instance-gpu-name";
/// Maker of the GPU.
pub const INSTANCE_GPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
/// Number of GPUs.
pub const INSTANCE_GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
/// Memory of each GPU, MiB.
pub const INSTANCE_GPU_MEMORY: &str = "karpenter.k8s.aws/instance-gpu-memory";
/// Model of the accelerator.
pub const INSTANCE_ACCELERATOR_NAME: &str = "karpenter.k8s.aws/instance-accelerator-name";
/// Maker of the accelerator.
pub const INSTANCE_ACCELERATOR_MANUFACTURER: &str =
    "karpenter.k8s.aws/instance-accelerator-manufacturer";
/// Number of accelerators.
pub const INSTANCE_ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";
/// Tenancy of the instance, `default` or `dedicated`.
pub const INSTANCE_TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
/// Id of the placement group.
pub const PLACEMENT_GROUP_ID: &str = "karpenter.k8s.aws/placement-group-id";
/// Partition number within the placement group.
pub const PLACEMENT_GROUP_PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";

// Label values.

/// Value of [`CAPACITY_TYPE`]: spare capacity that EC2 may take back.
pub const CAPACITY_TYPE_SPOT: &str = "spot";
/// Value of [`CAPACITY_TYPE`]: capacity at list price.
pub const CAPACITY_TYPE_ON_DEMAND: &str = "on-demand";
/// Value of [`CAPACITY_TYPE`]: capacity of a reservation.
pub const CAPACITY_TYPE_RESERVED: &str = "reserved";
/// All values of [`CAPACITY_TYPE`].
pub(crate) const CAPACITY_TYPES: [&str; 3] = [
    CAPACITY_TYPE_SPOT,
    CAPACITY_TYPE_ON_DEMAND,
    CAPACITY_TYPE_RESERVED,
];
/// Value of [`ARCH`].
pub const ARCH_AMD64: &str = "amd64";
/// Value of [`ARCH`].
pub const ARCH_ARM64: &str = "arm64";
/// Value of [`OS`].
pub const OS_LINUX: &str = "linux";
/// Value of [`OS`].
pub const OS_WINDOWS: &str = "windows";

// Annotations.

/// `"true"` on a node, claim or pod (or a duration on a pod) blocks voluntary disruption.
pub const DO_NOT_DISRUPT_ANNOTATION: &str = "karpenter.sh/do-not-disrupt";
/// `"true"` on a node or claim vetoes node repair.
pub const DO_NOT_REPAIR_ANNOTATION: &str = "karpenter.sh/do-not-repair";
/// A user's eviction cost of a pod; wins over [`POD_DELETION_COST_ANNOTATION`].
pub const DISRUPTION_COST_ANNOTATION: &str = "karpenter.sh/disruption-cost";
/// Kubernetes' own hint for ReplicaSet scale-down.
pub const POD_DELETION_COST_ANNOTATION: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Static drift hash of the pool.
pub const NODEPOOL_HASH_ANNOTATION: &str = "karpenter.sh/nodepool-hash";
/// On a NodePool or a policy binding: how much dearer than it need be a ranking policy may make a node, such as `50%`.
pub const MAX_PREMIUM_ANNOTATION: &str = "mortise.dev/max-premium";
/// On a NodeClaim: the ranking policies that changed what was bought, as `name@digest`.
pub const RANKED_BY_ANNOTATION: &str = "mortise.dev/ranked-by";
/// On a NodeClaim: USD an hour that it costs more than the default's choice, by list price at its launch.
pub const PREMIUM_ANNOTATION: &str = "mortise.dev/premium-per-hour";
/// On a NodeClaim: the try to launch its instance that was begun last, as `number/token`.
pub const LAUNCH_ANNOTATION: &str = "mortise.dev/launch";
/// On an instance: the token of the launch that made it, as its claim bears it in [`LAUNCH_ANNOTATION`].
pub const LAUNCH_TAG: &str = "mortise.dev/launch";
/// Version of the algorithm behind [`NODEPOOL_HASH_ANNOTATION`].
pub const NODEPOOL_HASH_VERSION_ANNOTATION: &str = "karpenter.sh/nodepool-hash-version";
/// RFC 3339 instant by which the node must be gone.
pub const NODECLAIM_TERMINATION_TIMESTAMP_ANNOTATION: &str =
    "karpenter.sh/nodeclaim-termination-timestamp";
/// Whether `minValues` was lowered for the claim, `"true"` or `"false"`.
pub const NODECLAIM_MIN_VALUES_RELAXED_ANNOTATION: &str =
    "karpenter.sh/nodeclaim-min-values-relaxed";
/// `"true"` where a NodeOverlay changed the price.
pub const PRICE_OVERLAY_APPLIED_ANNOTATION: &str = "karpenter.sh/price-overlay-applied";
/// `"true"` where a NodeOverlay changed the capacity.
pub const CAPACITY_OVERLAY_APPLIED_ANNOTATION: &str = "karpenter.sh/capacity-overlay-applied";
/// Node boot id before the reboot was asked for.
pub const REBOOT_PRE_BOOT_ID_ANNOTATION: &str = "karpenter.sh/reboot-pre-boot-id";
/// Go duration that bounds the drain before a reboot.
pub const REBOOT_TERMINATION_GRACE_PERIOD_ANNOTATION: &str =
    "karpenter.sh/reboot-termination-grace-period";
/// `"true"` on the virtual pods of a CapacityBuffer.
pub const CAPACITY_BUFFER_FAKE_POD_ANNOTATION: &str = "karpenter.sh/capacity-buffer-fake-pod";
/// Name of the CapacityBuffer behind a virtual pod.
pub const CAPACITY_BUFFER_NAME_ANNOTATION: &str = "karpenter.sh/capacity-buffer-name";
/// Namespace of the CapacityBuffer behind a virtual pod.
pub const CAPACITY_BUFFER_NAMESPACE_ANNOTATION: &str = "karpenter.sh/capacity-buffer-namespace";
/// Static drift hash of the EC2NodeClass.
pub const EC2_NODE_CLASS_HASH_ANNOTATION: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
/// Version of the algorithm behind [`EC2_NODE_CLASS_HASH_ANNOTATION`].
pub const EC2_NODE_CLASS_HASH_VERSION_ANNOTATION: &str =
    "karpenter.k8s.aws/ec2nodeclass-hash-version";
/// `"true"` once the tagging controller is done with the claim.
pub const INSTANCE_TAGGED_ANNOTATION: &str = "karpenter.k8s.aws/tagged";
/// `"true"` once the cluster-name tag is ensured.
pub const CLUSTER_NAME_TAGGED_ANNOTATION: &str =
    "compatibility.karpenter.k8s.aws/cluster-name-tagged";
/// Instance profile used at launch.
pub const INSTANCE_PROFILE_ANNOTATION: &str = "karpenter.k8s.aws/instance-profile-name";

// Taints.

/// On a node that is being disrupted or terminated, effect `NoSchedule`, no value.
pub const DISRUPTED_TAINT_KEY: &str = "karpenter.sh/disrupted";
/// On a node from boot to registration, effect `NoExecute`, no value.
pub const UNREGISTERED_TAINT_KEY: &str = "karpenter.sh/unregistered";
/// On a node that reboots in place, effect `NoSchedule`, no value.
pub const REBOOTING_TAINT_KEY: &str = "karpenter.sh/rebooting";
/// Kubernetes' taint on nodes that are not ready.
pub const NOT_READY_TAINT_KEY: &str = "node.kubernetes.io/not-ready";
/// Kubernetes' taint on nodes that cannot be reached.
pub const UNREACHABLE_TAINT_KEY: &str = "node.kubernetes.io/unreachable";
/// The cloud controller manager's taint on nodes it has not seen yet.
pub const CLOUD_PROVIDER_UNINITIALIZED_TAINT_KEY: &str =
    "node.cloudprovider.kubernetes.io/uninitialized";
/// Taints with this prefix come and go with a node's readiness gates.
const READINESS_TAINT_PREFIX: &str = "readiness.k8s.io/";

/// Taint effect: no new pod that does not tolerate it.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// Taint effect: better no new pod that does not tolerate it.
pub const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
/// Taint effect: no pod that does not tolerate it, running ones included.
pub const NO_EXECUTE: &str = "NoExecute";

// Finalizers.

/// On NodeClaims before launch, and on Nodes from registration.
pub const TERMINATION_FINALIZER: &str = "karpenter.sh/termination";
/// Finalizer on EC2NodeClasses.
pub const EC2_NODE_CLASS_TERMINATION_FINALIZER: &str = "karpenter.k8s.aws/termination";

// Tags of EC2 objects.

/// Tag with the NodeClaim's name.
pub const NODECLAIM_TAG: &str = "karpenter.sh/nodeclaim";
/// Tag with the cluster's name.
pub const EKS_CLUSTER_NAME_TAG: &str = "eks:eks-cluster-name";

// Resource names.

/// Resource: CPU, in cores.
pub const RESOURCE_CPU: &str = "cpu";
/// Memory, bytes.
pub const RESOURCE_MEMORY: &str = "memory";
/// Ephemeral storage, bytes.
pub const RESOURCE_EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// Pod slots.
pub const RESOURCE_PODS: &str = "pods";
/// Pseudo resource of NodePool limits and status: number of nodes.
pub const RESOURCE_NODES: &str = "nodes";
/// NVIDIA GPUs.
pub const RESOURCE_NVIDIA_GPU: &str = "nvidia.com/gpu";
/// AMD GPUs.
pub const RESOURCE_AMD_GPU: &str = "amd.com/gpu";
/// Neuron devices.
pub const RESOURCE_AWS_NEURON: &str = "aws.amazon.com/neuron";
/// Neuron cores.
pub const RESOURCE_AWS_NEURON_CORE: &str = "aws.amazon.com/neuroncore";
/// Gaudi accelerators.
pub const RESOURCE_HABANA_GAUDI: &str = "habana.ai/gaudi";
/// Branch interfaces for pods.
pub const RESOURCE_AWS_POD_ENI: &str = "vpc.amazonaws.com/pod-eni";
/// Private addresses (Windows).
pub const RESOURCE_PRIVATE_IPV4_ADDRESS: &str = "vpc.amazonaws.com/PrivateIPv4Address";
/// Elastic fabric adapters.
pub const RESOURCE_EFA: &str = "vpc.amazonaws.com/efa";
/// Its request turns Nitro enclaves on.
pub const RESOURCE_NITRO_SANDBOX: &str = "eks.amazonaws.com/nitro-sandbox";

/// Resources a NodeOverlay may not change.
pub(crate) const WELL_KNOWN_RESOURCES: [&str; 4] = [
    RESOURCE_CPU,
    RESOURCE_MEMORY,
    RESOURCE_EPHEMERAL_STORAGE,
    RESOURCE_PODS,
];

/// Resources dear enough that a node without their users is not offered to others.
pub const EXOTIC_RESOURCES: [&str; 5] = [
    RESOURCE_NVIDIA_GPU,
    RESOURCE_AMD_GPU,
    RESOURCE_AWS_NEURON,
    RESOURCE_AWS_NEURON_CORE,
    RESOURCE_HABANA_GAUDI,
];

/// Resources of which one is one accelerator.
pub const ACCELERATOR_RESOURCES: [&str; 4] = [
    RESOURCE_NVIDIA_GPU,
    RESOURCE_AMD_GPU,
    RESOURCE_AWS_NEURON,
    RESOURCE_HABANA_GAUDI,
];

/// Well-known labels of the core: allowed in a restricted domain, and allowed to be undefined on templates.
pub const WELL_KNOWN_CORE: [&str; 8] = [
    NODEPOOL,
    TOPOLOGY_ZONE,
    TOPOLOGY_REGION,
    INSTANCE_TYPE,
    ARCH,
    OS,
    CAPACITY_TYPE,
    WINDOWS_BUILD,
];

/// Well-known labels that the AWS provider adds.
pub const WELL_KNOWN_AWS: [&str; 29] = [
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    INSTANCE_HYPERVISOR,
    INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED,
    NITRO_SANDBOX,
    INSTANCE_CATEGORY,
    INSTANCE_CAPABILITY_FLEX,
    INSTANCE_FAMILY,
    INSTANCE_GENERATION,
    INSTANCE_SIZE,
    INSTANCE_LOCAL_NVME,
    INSTANCE_CPU,
    INSTANCE_CPU_MANUFACTURER,
    INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ,
    INSTANCE_MEMORY,
    INSTANCE_EBS_BANDWIDTH,
    INSTANCE_NETWORK_BANDWIDTH,
    INSTANCE_GPU_NAME,
    INSTANCE_GPU_MANUFACTURER,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_MEMORY,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_ACCELERATOR_MANUFACTURER,
    INSTANCE_ACCELERATOR_COUNT,
    TOPOLOGY_ZONE_ID,
    INSTANCE_TENANCY,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
];

/// Domains in which only well-known labels may be set; their sub-domains count too.
const RESTRICTED_DOMAINS: [&str; 2] = [GROUP, AWS_GROUP];

/// Domains of what Karpenter and this project write and read; their sub-domains count too.
const OWN_DOMAINS: [&str; 3] = [GROUP, AWS_GROUP, "mortise.dev"];

/// Whether the annotations of a node or a claim forbid to disrupt it: `true` and nothing else does, no duration as on a
/// pod.
pub fn has_do_not_disrupt(annotations: &BTreeMap<String, String>) -> bool {
    let value = annotations.get(DO_NOT_DISRUPT_ANNOTATION);
    value.is_some_and(|it| it == "true")
}

/// Whether the label is known to the core or the provider.
///
/// The NodeClass label counts: Karpenter's CRD admits it by name, and every node carries it.
pub fn is_well_known(key: &str) -> bool {
    WELL_KNOWN_CORE.contains(&key) || WELL_KNOWN_AWS.contains(&key) || key == EC2_NODE_CLASS
}

/// Whether the key of a label or an annotation is Karpenter's or this project's.
pub fn is_ours(key: &str) -> bool {
    lies_in(key, &OWN_DOMAINS)
}

/// Whether the key lies in one of the domains or in a sub-domain of one.
fn lies_in(key: &str, domains: &[&str]) -> bool {
    let Some((of_key, _)) = key.split_once('/') else {
        return false;
    };
    domains.iter().any(|domain| {
        let before = of_key.strip_suffix(domain);
        before.is_some_and(|it| it.is_empty() || it.ends_with('.'))
    })
}

/// Whether a user may not set the label: a key of a restricted domain that is not well-known, or the host name.
pub fn is_restricted(key: &str) -> bool {
    !is_well_known(key) && (lies_in(key, &RESTRICTED_DOMAINS) || key == HOSTNAME)
}

/// The key under which older or foreign spellings of a label are kept.
pub fn normalize(key: &str) -> &str {
    match key {
        "failure-domain.beta.kubernetes.io/zone" | "topology.ebs.csi.aws.com/zone" => TOPOLOGY_ZONE,
        "failure-domain.beta.kubernetes.io/region" => TOPOLOGY_REGION,
        "beta.kubernetes.io/arch" => ARCH,
        "beta.kubernetes.io/os" => OS,
        "beta.kubernetes.io/instance-type" => INSTANCE_TYPE,
        other => other,
    }
}

/// The label that carries the NodeClass name of nodes made from a class of this group and kind.
pub fn node_class_label(group: &str, kind: &str) -> String {
    format!("{group}/{}", kind.to_lowercase())
}

#[cfg(feature = "objects")]
fn taint(key: &str, effect: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        effect: effect.to_owned(),
        ..Taint::default()
    }
}

/// The taint put on a node that is being disrupted.
#[cfg(feature = "objects")]
pub fn disrupted_taint() -> Taint {
    taint(DISRUPTED_TAINT_KEY, NO_SCHEDULE)
}

/// The taint that user data puts on a node at boot and registration takes away.
#[cfg(feature = "objects")]
pub fn unregistered_taint() -> Taint {
    taint(UNREGISTERED_TAINT_KEY, NO_EXECUTE)
}

/// The taint on a node that reboots in place.
#[cfg(feature = "objects")]
pub fn rebooting_taint() -> Taint {
    taint(REBOOTING_TAINT_KEY, NO_SCHEDULE)
}

/// Whether the taint goes away by itself while a node starts; such taints are ignored until initialization and
/// must be gone to initialize. Values are not compared.
#[cfg(feature = "objects")]
pub fn is_known_ephemeral_taint(taint: &Taint) -> bool {
    taint.key.starts_with(READINESS_TAINT_PREFIX)
        || matches!(
            (taint.key.as_str(), taint.effect.as_str()),
            (NOT_READY_TAINT_KEY, NO_SCHEDULE | NO_EXECUTE)
                | (
                    UNREACHABLE_TAINT_KEY | CLOUD_PROVIDER_UNINITIALIZED_TAINT_KEY,
                    NO_SCHEDULE
                )
                | (UNREGISTERED_TAINT_KEY, NO_EXECUTE)
        )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(CAPACITY_TYPE, false)]
    #[case(INSTANCE_FAMILY, false)]
    #[case(EC2_NODE_CLASS, false)]
    #[case(TOPOLOGY_ZONE_ID, false)]
    #[case("node-role.kubernetes.io/x", false)]
    #[case("team", false)]
    #[case("notkarpenter.sh/x", false)]
    #[case(HOSTNAME, true)]
    #[case(REGISTERED, true)]
    #[case("karpenter.sh/anything", true)]
    #[case("sub.karpenter.sh/anything", true)]
    #[case("karpenter.k8s.aws/anything", true)]
    #[case("sub.karpenter.k8s.aws/anything", true)]
    fn restriction(#[case] key: &str, #[case] expected: bool) {
        assert_eq!(is_restricted(key), expected);
    }

    #[rstest]
    #[case(DO_NOT_DISRUPT_ANNOTATION, true)]
    #[case(EC2_NODE_CLASS_HASH_ANNOTATION, true)]
    #[case(CLUSTER_NAME_TAGGED_ANNOTATION, true)]
    #[case(MAX_PREMIUM_ANNOTATION, true)]
    #[case("sub.mortise.dev/x", true)]
    #[case("notmortise.dev/x", false)]
    #[case("notkarpenter.sh/x", false)]
    #[case("mortise.dev", false)]
    #[case("mortise.dev.example.com/x", false)]
    #[case(POD_DELETION_COST_ANNOTATION, false)]
    #[case("team", false)]
    fn own_keys(#[case] key: &str, #[case] expected: bool) {
        assert_eq!(is_ours(key), expected);
    }

    #[rstest]
    #[case(NOT_READY_TAINT_KEY, NO_SCHEDULE, true)]
    #[case(NOT_READY_TAINT_KEY, NO_EXECUTE, true)]
    #[case(UNREACHABLE_TAINT_KEY, NO_SCHEDULE, true)]
    #[case(UNREACHABLE_TAINT_KEY, NO_EXECUTE, false)]
    #[case(CLOUD_PROVIDER_UNINITIALIZED_TAINT_KEY, NO_SCHEDULE, true)]
    #[case(UNREGISTERED_TAINT_KEY, NO_EXECUTE, true)]
    #[case("readiness.k8s.io/gpu", NO_SCHEDULE, true)]
    #[case(DISRUPTED_TAINT_KEY, NO_SCHEDULE, false)]
    fn ephemeral_taints(#[case] key: &str, #[case] effect: &str, #[case] expected: bool) {
        assert_eq!(is_known_ephemeral_taint(&taint(key, effect)), expected);
    }

    #[test]
    fn aliases_become_the_label_they_stand_for() {
        assert_eq!(
            normalize("failure-domain.beta.kubernetes.io/zone"),
            TOPOLOGY_ZONE
        );
        assert_eq!(normalize("topology.ebs.csi.aws.com/zone"), TOPOLOGY_ZONE);
        assert_eq!(normalize("beta.kubernetes.io/instance-type"), INSTANCE_TYPE);
        assert_eq!(normalize("team"), "team");
        assert_eq!(node_class_label(AWS_GROUP, "EC2NodeClass"), EC2_NODE_CLASS);
    }
}
