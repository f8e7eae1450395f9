//! How much of a machine there is, and how much of it pods do not get.
//!
//! The formulas reproduce Karpenter's estimates to the byte; a node that knows better says so when it
//! registers. Answers to Karpenter's `pkg/providers/instancetype/types.go`.

use std::collections::BTreeMap;

use apis::ec2nodeclass::BlockDeviceMapping;
use apis::labels;
use apis::quantity;
use apis::resources::Resources;
use scheduling::instance_type::Overhead;

use super::facts::InstanceTypeFacts;
use super::shape::ClassShape;
use crate::ami_family::features::features;
use crate::ami_family::{default_block_device_mappings, ephemeral_device};
use crate::kubelet::expressions::{KubeletExpressions, MachineFacts, SettledKubelet};
use crate::seed::seed;

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
const DEFAULT_STORAGE_BYTES: i64 = 20 * GIB;
const DEFAULT_PODS: i64 = 110;
const MILLI: i64 = 1000;

/// Capacity and overhead of a type.
pub(super) fn capacity_and_overhead(
    name: &str,
    info: &InstanceTypeFacts,
    shape: &ClassShape,
) -> (Resources, Overhead) {
    let capacity = capacity(name, info, shape);
    let overhead = Overhead {
        kube_reserved: kube_reserved(info, shape, &capacity),
        system_reserved: amounts(&shape.kubelet.system_reserved),
        eviction_threshold: eviction_threshold(info, shape, &capacity),
    };
    (capacity, overhead)
}

/// Settles the expressions in the kubelet's settings on a type, or says which of them comes to nothing.
pub(super) fn settle(
    name: &str,
    info: &InstanceTypeFacts,
    shape: &ClassShape,
    expressions: &KubeletExpressions,
) -> Result<SettledKubelet, String> {
    let mut facts = MachineFacts {
        instance_type: name,
        vcpus: vcpus(info),
        memory_mib: advertised_mib(info),
        default_enis: i64::from(info.network.default_interfaces),
        ips_per_eni: i64::from(info.network.ipv4_per_interface),
        max_pods: pods(info, shape),
    };
    let max_pods = expressions.max_pods(facts)?;
    if max_pods.is_some() {
        facts.max_pods = pods(info, &shape.with_max_pods(max_pods));
    }
    let amounts = expressions.amounts(facts)?;
    Ok(SettledKubelet { max_pods, amounts })
}

fn capacity(name: &str, info: &InstanceTypeFacts, shape: &ClassShape) -> Resources {
    let reported = shape.reported_memory.bytes(name);
    let memory = reported.unwrap_or_else(|| memory_bytes(info, shape));
    let mut capacity = Resources::new()
        .with(labels::RESOURCE_CPU, vcpus(info) * MILLI)
        .with(labels::RESOURCE_MEMORY, memory * MILLI)
        .with(labels::RESOURCE_PODS, pods(info, shape) * MILLI)
        .with(
            labels::RESOURCE_EPHEMERAL_STORAGE,
            storage_bytes(info, shape) * MILLI,
        );
    let (neuron, neuron_cores) = neuron(info);
    let branch = seed(name).map_or(0, |seed| i64::from(seed.branch_interfaces));
    let windows_addresses = if features(shape.family).is_windows {
        i64::from(info.network.ipv4_per_interface) - 1
    } else {
        0
    };
    let counts = [
        (labels::RESOURCE_NVIDIA_GPU, gpus(info, "NVIDIA")),
        (labels::RESOURCE_AMD_GPU, gpus(info, "AMD")),
        (labels::RESOURCE_HABANA_GAUDI, gpus(info, "Habana")),
        (labels::RESOURCE_AWS_NEURON, neuron),
        (labels::RESOURCE_AWS_NEURON_CORE, neuron_cores),
        (labels::RESOURCE_EFA, efa_count(info, shape)),
        (labels::RESOURCE_AWS_POD_ENI, branch),
        (labels::RESOURCE_PRIVATE_IPV4_ADDRESS, windows_addresses),
    ];
    // An absent resource is zero, and thousands of zeros would cost memory.
    for (resource, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        capacity.set(resource, count * MILLI);
    }
    capacity
}

fn vcpus(info: &InstanceTypeFacts) -> i64 {
    i64::from(info.vcpus.unwrap_or(0))
}

fn advertised_mib(info: &InstanceTypeFacts) -> i64 {
    info.memory_mib.unwrap_or(0)
}

/// Memory of a node, as long as none has reported its own.
fn memory_bytes(info: &InstanceTypeFacts, shape: &ClassShape) -> i64 {
    let mut mib = advertised_mib(info);
    if info.architecture == Some(labels::ARCH_ARM64) {
        // The Linux kernel reserves this much for contiguous allocations on arm64.
        mib -= 64;
    }
    (mib - ceil(mib as f64 * shape.vm_memory_overhead_percent)) * MIB
}

/// Pods a node takes.
fn pods(info: &InstanceTypeFacts, shape: &ClassShape) -> i64 {
    let features = features(shape.family);
    let mut pods = match shape.kubelet.max_pods {
        Some(max_pods) => max_pods,
        None if features.eni_limited_pods => eni_limited_pods(info, shape, shape.reserved_enis),
        None => DEFAULT_PODS,
    };
    if features.pods_per_core
        && let Some(per_core) = shape.kubelet.pods_per_core.filter(|per_core| *per_core > 0)
    {
        pods = pods.min(per_core * vcpus(info));
    }
    pods
}

/// Pods that the addresses of the default network card allow.
pub(crate) fn eni_limited_pods(
    info: &InstanceTypeFacts,
    shape: &ClassShape,
    reserved_enis: i64,
) -> i64 {
    let interfaces = i64::from(info.network.default_interfaces);
    let usable = (interfaces - reserved_enis - shape.efa_only_count(Some(0))).max(0);
    if usable == 0 {
        0
    } else {
        usable * (i64::from(info.network.ipv4_per_interface) - 1) + 2
    }
}

fn gpus(info: &InstanceTypeFacts, maker: &str) -> i64 {
    let gpus = info.gpus().iter();
    let own = gpus.filter(|gpu| gpu.manufacturer.as_deref() == Some(maker));
    own.map(|gpu| i64::from(gpu.count)).sum()
}

/// Neuron devices of the type, and their cores.
fn neuron(info: &InstanceTypeFacts) -> (i64, i64) {
    let devices = info.neuron();
    let count = devices.iter().map(|device| i64::from(device.count)).sum();
    let cores = devices.first().map_or(0, |device| {
        i64::from(device.count) * i64::from(device.cores)
    });
    (count, cores)
}

/// Elastic fabric adapters: those the class asks for, or else all.
pub(crate) fn efa_count(info: &InstanceTypeFacts, shape: &ClassShape) -> i64 {
    if !shape.network_interfaces.is_empty() {
        return shape.efa_only_count(None);
    }
    i64::from(info.network.efa_max)
}

fn storage_bytes(info: &InstanceTypeFacts, shape: &ClassShape) -> i64 {
    if shape.is_raid0
        && let Some(gb) = info.disks.total_gb.filter(|gb| *gb > 0)
    {
        return gb.saturating_mul(1_000_000_000);
    }
    let mappings = &shape.block_device_mappings;
    let size_of = |mapping: &BlockDeviceMapping| {
        let size = mapping.ebs.as_ref()?.volume_size.as_ref()?;
        quantity::millis(size).ok().map(|millis| millis / MILLI)
    };
    if let Some(root) = mappings.iter().find(|mapping| mapping.root_volume) {
        return size_of(root).unwrap_or(DEFAULT_STORAGE_BYTES);
    }
    let size_in = |mappings: &[BlockDeviceMapping]| {
        let mapping = match ephemeral_device(shape.family) {
            None => mappings.last(),
            Some(device) => mappings
                .iter()
                .find(|mapping| mapping.device_name.as_deref() == Some(device)),
        };
        mapping.and_then(size_of)
    };
    size_in(mappings)
        .or_else(|| size_in(&default_block_device_mappings(shape.family)))
        .unwrap_or(DEFAULT_STORAGE_BYTES)
}

fn kube_reserved(info: &InstanceTypeFacts, shape: &ClassShape, capacity: &Resources) -> Resources {
    let pods = if features(shape.family).eni_limited_memory_overhead {
        eni_limited_pods(info, shape, 0)
    } else {
        capacity.get(labels::RESOURCE_PODS) / MILLI
    };
    let mut reserved = Resources::new()
        .with(
            labels::RESOURCE_CPU,
            kube_reserved_cpu_millis(capacity.cpu_millis()),
        )
        .with(labels::RESOURCE_MEMORY, (11 * pods + 255) * MIB * MILLI)
        .with(labels::RESOURCE_EPHEMERAL_STORAGE, GIB * MILLI);
    for (name, millis) in amounts(&shape.kubelet.kube_reserved).iter() {
        reserved.set(name, millis);
    }
    reserved
}

/// A share that shrinks as the machine grows: 6 %, 1 %, 0.5 %, 0.25 %.
fn kube_reserved_cpu_millis(cpu_millis: i64) -> i64 {
    let slices = [
        (0, 1000, 600),
        (1000, 2000, 100),
        (2000, 4000, 50),
        (4000, i64::MAX, 25),
    ];
    slices
        .into_iter()
        .filter(|(from, ..)| cpu_millis > *from)
        .map(|(from, to, per_ten_thousand)| (cpu_millis.min(to) - from) * per_ten_thousand / 10_000)
        .sum()
}

/// Percentages are of the estimate, also where a node has reported its memory.
fn eviction_threshold(
    info: &InstanceTypeFacts,
    shape: &ClassShape,
    capacity: &Resources,
) -> Resources {
    let hard = &shape.kubelet.eviction_hard;
    let memory = memory_bytes(info, shape) * MILLI;
    let storage = capacity.get(labels::RESOURCE_EPHEMERAL_STORAGE);
    let memory_default = 100 * MIB * MILLI;
    let storage_default = ceil_units(storage, 10.0);
    let memory = hard
        .get("memory.available")
        .map_or(memory_default, |signal| threshold(memory, signal));
    let storage = hard
        .get("nodefs.available")
        .map_or(storage_default, |signal| threshold(storage, signal));
    Resources::new()
        .with(labels::RESOURCE_MEMORY, memory)
        .with(labels::RESOURCE_EPHEMERAL_STORAGE, storage)
}

/// A threshold in milli-units; a percentage is of the capacity, and 100 % switches the signal off.
fn threshold(capacity_millis: i64, signal: &str) -> i64 {
    match signal.strip_suffix('%') {
        Some(percent) => match percent.parse::<f64>() {
            Ok(percent) if percent < 100.0 => ceil_units(capacity_millis, percent),
            _ => 0,
        },
        None => quantity::parse_millis(signal).unwrap_or(0),
    }
}

fn ceil_units(capacity_millis: i64, percent: f64) -> i64 {
    let units = (capacity_millis / MILLI) as f64;
    ceil(units / 100.0 * percent).saturating_mul(MILLI)
}

fn amounts(map: &BTreeMap<String, String>) -> Resources {
    map.iter()
        .filter_map(|(name, text)| Some((name.as_str(), quantity::parse_millis(text).ok()?)))
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "amounts of one machine lie far below 2^53"
)]
fn ceil(number: f64) -> i64 {
    number.ceil() as i64
}

#[cfg(test)]
mod tests;
