//! The labels of an instance type, as requirements.
//!
//! A label that a type lacks is stated as `DoesNotExist`, so that asking for it fails. Answers to Karpenter's
//! `pkg/providers/instancetype/types.go` (computeRequirements).

use apis::{CapacityType, labels};
use aws_sdk_ec2::types::{
    EbsOptimizedSupport, EphemeralNvmeSupport, InstanceTypeInfo, NetworkCardInfo,
    NitroEnclavesSupport, UsageClassType,
};
use scheduling::requirements::{Operator, Requirement, Requirements};

use super::shape::ClassShape;
use crate::ami_family::features::features;
use crate::ami_family::windows_build;
use crate::placement_group::PlacementGroup;
use crate::seed::seed;

struct LabelRequirements(Vec<Requirement>);

impl LabelRequirements {
    fn one(&mut self, key: &str, value: impl AsRef<str>) {
        self.0
            .push(Requirement::new(key, Operator::In, [value.as_ref()]));
    }

    fn many<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a str>) {
        self.0.push(Requirement::new(key, Operator::In, values));
    }

    fn maybe(&mut self, key: &str, value: Option<impl AsRef<str>>) {
        match value {
            Some(value) => self.one(key, value),
            None => self
                .0
                .push(Requirement::new(key, Operator::DoesNotExist, [])),
        }
    }
}

/// How a type can be bought at all.
pub(super) fn capacity_types(
    name: &str,
    info: &InstanceTypeInfo,
    shape: &ClassShape,
) -> Vec<CapacityType> {
    let mut types: Vec<CapacityType> = info
        .supported_usage_classes()
        .iter()
        .filter_map(|class| match class {
            UsageClassType::OnDemand => Some(CapacityType::OnDemand),
            UsageClassType::Spot => Some(CapacityType::Spot),
            _ => None,
        })
        .collect();
    types.sort_unstable();
    if !shape.reservations_of(name).is_empty() {
        types.push(CapacityType::Reserved);
    }
    types
}

/// `amd64` or `arm64`.
pub(super) fn architecture(info: &InstanceTypeInfo) -> Option<&'static str> {
    let processor = info.processor_info()?;
    processor
        .supported_architectures()
        .iter()
        .find_map(|architecture| match architecture.as_str() {
            "x86_64" => Some(labels::ARCH_AMD64),
            "arm64" => Some(labels::ARCH_ARM64),
            _ => None,
        })
}

/// Requirements for all labels of the type.
pub(super) fn requirements(
    name: &str,
    info: &InstanceTypeInfo,
    zones: &[String],
    capacity_types: &[CapacityType],
    shape: &ClassShape,
) -> Requirements {
    let mut labels = LabelRequirements(Vec::with_capacity(40));
    let architecture = architecture(info);
    labels.one(labels::INSTANCE_TYPE, name);
    labels.maybe(labels::ARCH, architecture);
    let os = match (features(shape.family).is_windows, architecture) {
        (false, _) => Some(labels::OS_LINUX),
        (true, Some(labels::ARCH_AMD64)) => Some(labels::OS_WINDOWS),
        (true, _) => None,
    };
    labels.maybe(labels::OS, os);
    labels.maybe(labels::WINDOWS_BUILD, windows_build(shape.family));
    labels.one(labels::TOPOLOGY_REGION, &shape.region);
    labels.many(labels::TOPOLOGY_ZONE, zones.iter().map(String::as_str));
    let zone_ids = zones
        .iter()
        .filter_map(|zone| shape.zones.get(zone)?.zone_id.as_deref());
    labels.many(labels::TOPOLOGY_ZONE_ID, zone_ids);
    let words = capacity_types.iter().map(|it| it.as_str());
    labels.many(labels::CAPACITY_TYPE, words);
    labels.many(labels::INSTANCE_TENANCY, ["default", "dedicated"]);
    name_labels(&mut labels, name);
    machine_labels(&mut labels, name, info);
    accelerator_labels(&mut labels, info);
    reservation_labels(&mut labels, name, shape);
    placement_labels(&mut labels, shape);
    labels.0.into_iter().collect()
}

/// Where the partition is left open, EC2 chooses; a pod that asks for one, or that spreads over them, pins it.
fn placement_labels(labels: &mut LabelRequirements, shape: &ClassShape) {
    let group = shape.placement_group.as_ref();
    labels.maybe(labels::PLACEMENT_GROUP_ID, group.map(|it| it.id.as_str()));
    let partitions = group.into_iter().flat_map(PlacementGroup::partition_names);
    let partitions: Vec<String> = partitions.collect();
    if partitions.is_empty() {
        labels.maybe(labels::PLACEMENT_GROUP_PARTITION, None::<&str>);
    } else {
        let partitions = partitions.iter().map(String::as_str);
        labels.many(labels::PLACEMENT_GROUP_PARTITION, partitions);
    }
}

fn name_labels(labels: &mut LabelRequirements, name: &str) {
    let (family, size) = match name.split_once('.') {
        Some((family, size)) => (Some(family), Some(size)),
        None => (None, None),
    };
    let scheme = family.and_then(naming_scheme);
    labels.maybe(
        labels::INSTANCE_CATEGORY,
        scheme.map(|(category, _)| category),
    );
    labels.maybe(
        labels::INSTANCE_GENERATION,
        scheme.map(|(_, generation)| generation),
    );
    labels.maybe(labels::INSTANCE_FAMILY, family);
    labels.maybe(labels::INSTANCE_SIZE, size);
    let is_flex = family.is_some_and(|family| family.contains("-flex"));
    labels.one(labels::INSTANCE_CAPABILITY_FLEX, is_flex.to_string());
}

/// Category and generation of a family: `m` and `7` of `m7i-flex`, `u` and `1` of `u-6tb1`.
fn naming_scheme(family: &str) -> Option<(&str, &str)> {
    let letters = family.find(|c: char| !c.is_ascii_lowercase())?;
    let (category, mut rest) = family
        .split_at_checked(letters)
        .filter(|(category, _)| !category.is_empty())?;
    // Memory-sized families put their terabytes between category and generation.
    if let Some(sized) = rest.strip_prefix('-') {
        rest = sized
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix("tb")?;
    }
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..digits)
        .filter(|generation| !generation.is_empty())
        .map(|generation| (category, generation))
}

fn machine_labels(labels: &mut LabelRequirements, name: &str, info: &InstanceTypeInfo) {
    let network = info.network_info();
    let processor = info.processor_info();
    labels.one(
        labels::INSTANCE_HYPERVISOR,
        info.hypervisor()
            .map_or("", |hypervisor| hypervisor.as_str()),
    );
    let encrypts = network
        .and_then(aws_sdk_ec2::types::NetworkInfo::encryption_in_transit_supported)
        .unwrap_or(false);
    labels.one(
        labels::INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED,
        encrypts.to_string(),
    );
    let enclaves = info.nitro_enclaves_support() == Some(&NitroEnclavesSupport::Supported);
    labels.one(labels::NITRO_SANDBOX, enclaves.to_string());
    let nvme = info.instance_storage_info().filter(|storage| {
        storage
            .nvme_support()
            .is_some_and(|support| *support != EphemeralNvmeSupport::Unsupported)
    });
    let nvme_gb = nvme.and_then(aws_sdk_ec2::types::InstanceStorageInfo::total_size_in_gb);
    labels.maybe(
        labels::INSTANCE_LOCAL_NVME,
        nvme_gb.map(|gb| gb.to_string()),
    );
    let vcpus = info
        .v_cpu_info()
        .and_then(aws_sdk_ec2::types::VCpuInfo::default_v_cpus);
    labels.maybe(labels::INSTANCE_CPU, vcpus.map(|vcpus| vcpus.to_string()));
    let maker = processor
        .and_then(|processor| processor.manufacturer())
        .map(kebab);
    labels.maybe(labels::INSTANCE_CPU_MANUFACTURER, maker);
    let ghz = processor.and_then(aws_sdk_ec2::types::ProcessorInfo::sustained_clock_speed_in_ghz);
    let mhz = ghz
        .filter(|ghz| *ghz > 0.0)
        .map(|ghz| format!("{:.0}", ghz * 1000.0));
    labels.maybe(labels::INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ, mhz);
    let memory_mib = info
        .memory_info()
        .and_then(aws_sdk_ec2::types::MemoryInfo::size_in_mib);
    labels.maybe(
        labels::INSTANCE_MEMORY,
        memory_mib.map(|mib| mib.to_string()),
    );
    let ebs = info
        .ebs_info()
        .filter(|ebs| ebs.ebs_optimized_support() == Some(&EbsOptimizedSupport::Default));
    let ebs_mbps = ebs
        .and_then(|ebs| ebs.ebs_optimized_info())
        .and_then(aws_sdk_ec2::types::EbsOptimizedInfo::maximum_bandwidth_in_mbps);
    labels.maybe(
        labels::INSTANCE_EBS_BANDWIDTH,
        ebs_mbps.map(|mbps| mbps.to_string()),
    );
    let network_mbps = seed(name)
        .map(|seed| seed.network_mbps)
        .or_else(|| baseline_mbps(info))
        .filter(|mbps| *mbps > 0);
    labels.maybe(
        labels::INSTANCE_NETWORK_BANDWIDTH,
        network_mbps.map(|mbps| mbps.to_string()),
    );
}

/// For types that are newer than the table; EC2 tells a baseline for each card.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bandwidth in Mbps is positive and far below 2^32"
)]
fn baseline_mbps(info: &InstanceTypeInfo) -> Option<u32> {
    let cards = info.network_info()?.network_cards();
    let gbps = cards
        .iter()
        .filter_map(NetworkCardInfo::baseline_bandwidth_in_gbps)
        .sum::<f64>();
    Some((gbps * 1000.0).round() as u32)
}

fn accelerator_labels(labels: &mut LabelRequirements, info: &InstanceTypeInfo) {
    // More than one kind of GPU in a type cannot be told by single labels.
    let gpu = match info.gpu_info().map(aws_sdk_ec2::types::GpuInfo::gpus) {
        Some([gpu]) => Some(gpu),
        _ => None,
    };
    labels.maybe(
        labels::INSTANCE_GPU_NAME,
        gpu.and_then(|gpu| gpu.name()).map(kebab),
    );
    labels.maybe(
        labels::INSTANCE_GPU_MANUFACTURER,
        gpu.and_then(|gpu| gpu.manufacturer()).map(kebab),
    );
    labels.maybe(
        labels::INSTANCE_GPU_COUNT,
        gpu.map(|gpu| gpu.count().unwrap_or(0).to_string()),
    );
    let gpu_mib = gpu
        .and_then(|gpu| gpu.memory_info())
        .and_then(aws_sdk_ec2::types::GpuDeviceMemoryInfo::size_in_mib);
    labels.maybe(
        labels::INSTANCE_GPU_MEMORY,
        gpu_mib.map(|mib| mib.to_string()),
    );
    let accelerator = accelerator(info);
    labels.maybe(
        labels::INSTANCE_ACCELERATOR_NAME,
        accelerator.as_ref().map(|a| &a.0),
    );
    labels.maybe(
        labels::INSTANCE_ACCELERATOR_MANUFACTURER,
        accelerator.as_ref().map(|a| &a.1),
    );
    labels.maybe(
        labels::INSTANCE_ACCELERATOR_COUNT,
        accelerator.as_ref().map(|a| &a.2),
    );
}

/// Name, maker and count of the one kind of accelerator.
fn accelerator(info: &InstanceTypeInfo) -> Option<(String, String, String)> {
    if let Some(neuron) = info.neuron_info() {
        let [device] = neuron.neuron_devices() else {
            return None;
        };
        let name = kebab(device.name().unwrap_or_default());
        return Some((
            name,
            "aws".to_owned(),
            device.count().unwrap_or(0).to_string(),
        ));
    }
    let [device] = info.inference_accelerator_info()?.accelerators() else {
        return None;
    };
    let name = kebab(device.name().unwrap_or_default());
    Some((
        name,
        kebab(device.manufacturer().unwrap_or_default()),
        device.count().unwrap_or(0).to_string(),
    ))
}

fn reservation_labels(labels: &mut LabelRequirements, name: &str, shape: &ClassShape) {
    let mine = shape.reservations_of(name);
    if mine.is_empty() {
        labels.maybe(labels::CAPACITY_RESERVATION_ID, None::<&str>);
        labels.maybe(labels::CAPACITY_RESERVATION_TYPE, None::<&str>);
        labels.maybe(labels::CAPACITY_RESERVATION_INTERRUPTIBLE, None::<&str>);
        return;
    }
    labels.many(
        labels::CAPACITY_RESERVATION_ID,
        mine.iter().map(|reservation| reservation.id.as_str()),
    );
    let kinds = mine
        .iter()
        .map(|reservation| reservation.reservation_type.as_str());
    labels.many(labels::CAPACITY_RESERVATION_TYPE, kinds);
    let interruptible = mine.iter().map(|reservation| {
        if reservation.interruptible {
            "true"
        } else {
            "false"
        }
    });
    labels.many(labels::CAPACITY_RESERVATION_INTERRUPTIBLE, interruptible);
}

fn kebab(text: &str) -> String {
    text.to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests;
