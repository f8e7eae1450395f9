//! The Node object that an instance's kubelet registers, as a pure function of the instance.
//!
//! Capacity follows the instance type as a real machine shows it (a little more memory than the provider's
//! estimate), allocatable follows the kubelet's settings in user data. Answers to the kubelet and to the
//! cloud-controller-manager, which adds provider id, zone and addresses.

use std::collections::BTreeMap;

use apis::{labels, quantity};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::catalogue::CatalogueEntry;
use crate::ec2::{KubeletSettings, SimulatedInstance};

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

/// Share of advertised memory that firmware and kernel keep, in thousandths. The provider assumes 75.
const MEMORY_OVERHEAD_THOUSANDTHS: i64 = 60;

/// The Node as it stands once its kubelet is up; `ready` says whether it reports Ready yet.
pub fn node_object(instance: &SimulatedInstance, region: &str, ready: Option<Timestamp>) -> Node {
    let name = instance.private_dns_name(region);
    let capacity = capacity(instance);
    Node {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(labels(instance, region, &name)),
            annotations: Some(BTreeMap::from([(
                "alpha.kubernetes.io/provided-node-ip".to_owned(),
                instance.private_ip.clone(),
            )])),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(instance.provider_id().to_string()),
            taints: Some(taints(instance, ready.is_some())),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            allocatable: Some(quantities(&allocatable(instance, &capacity))),
            capacity: Some(quantities(&capacity)),
            addresses: Some(
                [
                    ("InternalIP", &instance.private_ip),
                    ("InternalDNS", &name),
                    ("Hostname", &name),
                ]
                .map(|(kind, address)| NodeAddress {
                    type_: kind.to_owned(),
                    address: address.clone(),
                })
                .to_vec(),
            ),
            conditions: Some(match ready {
                Some(at) => conditions(KubeletWord::Ready, at),
                None => conditions(KubeletWord::NotReady, instance.registers_at),
            }),
            node_info: Some(node_info(instance)),
            ..NodeStatus::default()
        }),
    }
}

/// Word of a kubelet about its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KubeletWord {
    /// The node takes pods.
    Ready,
    /// The network is not up yet.
    NotReady,
}

/// The conditions that a kubelet reports, with the moment of their last change.
pub fn conditions(word: KubeletWord, at: Timestamp) -> Vec<NodeCondition> {
    let condition = |type_: &str, status: bool, reason: &str, message: &str| NodeCondition {
        type_: type_.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(Time(at)),
        last_transition_time: Some(Time(at)),
    };
    let not_ready = "container runtime network not ready: cni plugin not initialized";
    vec![
        condition(
            "MemoryPressure",
            false,
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition(
            "DiskPressure",
            false,
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        condition(
            "PIDPressure",
            false,
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        match word {
            KubeletWord::Ready => condition(
                "Ready",
                true,
                "KubeletReady",
                "kubelet is posting ready status",
            ),
            KubeletWord::NotReady => condition("Ready", false, "KubeletNotReady", not_ready),
        },
    ]
}

fn labels(instance: &SimulatedInstance, region: &str, name: &str) -> BTreeMap<String, String> {
    let t = instance.instance_type;
    let mut labels = instance.bootstrap.labels.clone();
    let own = [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/arch", t.kubernetes_architecture()),
        ("kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", t.kubernetes_architecture()),
        ("beta.kubernetes.io/os", "linux"),
        ("node.kubernetes.io/instance-type", t.name),
        ("beta.kubernetes.io/instance-type", t.name),
        ("topology.kubernetes.io/region", region),
        ("topology.kubernetes.io/zone", &instance.zone),
        ("topology.k8s.aws/zone-id", &instance.zone_id),
        ("failure-domain.beta.kubernetes.io/region", region),
        ("failure-domain.beta.kubernetes.io/zone", &instance.zone),
    ];
    labels.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
    labels
}

fn taints(instance: &SimulatedInstance, ready: bool) -> Vec<Taint> {
    let taint = |key: &str, value: &str, effect: &str| Taint {
        key: key.to_owned(),
        value: (!value.is_empty()).then(|| value.to_owned()),
        effect: effect.to_owned(),
        time_added: None,
    };
    let own = instance
        .bootstrap
        .taints
        .iter()
        .map(|(key, value, effect)| taint(key, value, effect));
    let waiting = (!ready).then(|| taint("node.kubernetes.io/not-ready", "", labels::NO_SCHEDULE));
    own.chain(waiting).collect()
}

fn node_info(instance: &SimulatedInstance) -> NodeSystemInfo {
    NodeSystemInfo {
        architecture: instance.instance_type.kubernetes_architecture().to_owned(),
        boot_id: instance.boot_id(),
        container_runtime_version: "containerd://2.1.4".to_owned(),
        kernel_version: "6.12.46-66.121.amzn2023".to_owned(),
        kube_proxy_version: String::new(),
        kubelet_version: format!("v{}.5-eks-simulated", instance.kubernetes_version),
        machine_id: instance.id.clone(),
        operating_system: "linux".to_owned(),
        os_image: if instance.bootstrap.bottlerocket {
            "Bottlerocket OS"
        } else {
            "Amazon Linux 2023"
        }
        .to_owned(),
        system_uuid: instance.id.clone(),
        ..NodeSystemInfo::default()
    }
}

/// Resources in milli-units, as `apis::Resources` counts them.
fn capacity(instance: &SimulatedInstance) -> BTreeMap<String, i64> {
    let t = instance.instance_type;
    let pods = instance.bootstrap.max_pods.unwrap_or_else(|| t.eni_pods());
    let mut capacity = BTreeMap::from([
        ("cpu".to_owned(), i64::from(t.vcpus) * 1_000),
        ("memory".to_owned(), memory_bytes(t) * 1_000),
        ("pods".to_owned(), pods * 1_000),
        (
            "ephemeral-storage".to_owned(),
            instance.ephemeral_storage_bytes * 1_000,
        ),
    ]);
    let gpus = |maker: &str| {
        let of = t.gpus.iter().filter(|gpu| gpu.manufacturer == maker);
        of.map(|gpu| i64::from(gpu.count)).sum::<i64>()
    };
    let neuron: i64 = t
        .neuron_devices
        .iter()
        .map(|(_, count, _)| i64::from(*count))
        .sum();
    let cores: i64 = t
        .neuron_devices
        .iter()
        .map(|(_, n, cores)| i64::from(n * cores))
        .sum();
    let extended = [
        ("nvidia.com/gpu", gpus("NVIDIA")),
        ("amd.com/gpu", gpus("AMD")),
        ("habana.ai/gaudi", gpus("Habana")),
        ("aws.amazon.com/neuron", neuron),
        ("aws.amazon.com/neuroncore", cores),
        (
            "vpc.amazonaws.com/pod-eni",
            i64::from(if t.trunk_compatible {
                t.branch_interfaces
            } else {
                0
            }),
        ),
        ("vpc.amazonaws.com/efa", instance.efa_interfaces),
    ];
    for (name, count) in extended.into_iter().filter(|(_, count)| *count > 0) {
        capacity.insert(name.to_owned(), count * 1_000);
    }
    capacity
}

fn memory_bytes(t: &CatalogueEntry) -> i64 {
    let mut mib = i64::try_from(t.memory_mib).unwrap_or(i64::MAX >> 30);
    if t.kubernetes_architecture() == "arm64" {
        // Kept for the crash kernel of arm64 images.
        mib -= 64;
    }
    (mib - mib * MEMORY_OVERHEAD_THOUSANDTHS / 1_000) * MIB
}

fn allocatable(
    instance: &SimulatedInstance,
    capacity: &BTreeMap<String, i64>,
) -> BTreeMap<String, i64> {
    let of = |name: &str| capacity.get(name).copied().unwrap_or_default();
    let kube = kube_reserved(instance, of("pods") / 1_000);
    let system = parsed(&instance.bootstrap.system_reserved);
    let mut allocatable = capacity.clone();
    for name in ["cpu", "memory", "ephemeral-storage"] {
        let threshold = eviction(&instance.bootstrap, name, of(name));
        let reserved = [&kube, &system].map(|map| map.get(name).copied().unwrap_or_default());
        let left = of(name) - reserved[0] - reserved[1] - threshold;
        allocatable.insert(name.to_owned(), left.max(0));
    }
    allocatable
}

/// What user data reserve, over the defaults of EKS's bootstrap.
fn kube_reserved(instance: &SimulatedInstance, pods: i64) -> BTreeMap<String, i64> {
    let t = instance.instance_type;
    let cpu_millis = i64::from(t.vcpus) * 1_000;
    // The slices that EKS reserves: 6 % of the first core, then 1 %, 0.5 % and 0.25 %.
    let slices = [
        (0, 1_000, 600),
        (1_000, 2_000, 100),
        (2_000, 4_000, 50),
        (4_000, i64::MAX, 25),
    ];
    let cpu = slices
        .iter()
        .map(|(from, to, share)| (cpu_millis.min(*to) - from).max(0) * share / 10_000);
    let density = if instance.bootstrap.bottlerocket {
        pods
    } else {
        t.eni_pods()
    };
    let mut reserved = BTreeMap::from([
        ("cpu".to_owned(), cpu.sum()),
        ("memory".to_owned(), (11 * density + 255) * MIB * 1_000),
        ("ephemeral-storage".to_owned(), GIB * 1_000),
    ]);
    reserved.extend(parsed(&instance.bootstrap.kube_reserved));
    reserved
}

fn eviction(bootstrap: &KubeletSettings, resource: &str, capacity: i64) -> i64 {
    let (signal, default) = match resource {
        "memory" => ("memory.available", 100 * MIB * 1_000),
        "ephemeral-storage" => ("nodefs.available", capacity / 10),
        _ => return 0,
    };
    let Some(threshold) = bootstrap.eviction_hard.get(signal) else {
        return default;
    };
    match threshold
        .strip_suffix('%')
        .and_then(|percent| percent.parse::<i64>().ok())
    {
        // A threshold of everything counts as none, as in the kubelet.
        Some(percent) if percent >= 100 => 0,
        Some(percent) => (capacity * percent + 99) / 100,
        None => milli(threshold).unwrap_or(default),
    }
}

fn parsed(map: &BTreeMap<String, String>) -> BTreeMap<String, i64> {
    map.iter()
        .filter_map(|(name, value)| Some((name.clone(), milli(value)?)))
        .collect()
}

fn milli(text: &str) -> Option<i64> {
    quantity::parse_millis(text).ok()
}

fn quantities(resources: &BTreeMap<String, i64>) -> BTreeMap<String, Quantity> {
    let text = |(name, milli): (&String, &i64)| {
        let text = match name.as_str() {
            "memory" | "ephemeral-storage" => format!("{}Ki", milli / 1_000 / 1_024),
            _ if milli % 1_000 == 0 => (milli / 1_000).to_string(),
            _ => format!("{milli}m"),
        };
        (name.clone(), Quantity(text))
    };
    resources.iter().map(text).collect()
}
