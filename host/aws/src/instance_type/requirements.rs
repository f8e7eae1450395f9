//! The labels of an instance type, as requirements.
//!
//! A label that a type lacks is stated as `DoesNotExist`, so that asking for it fails. Answers to Karpenter's
//! `pkg/providers/instancetype/types.go` (computeRequirements).

use apis::{CapacityType, labels};
use scheduling::requirements::{Operator, Requirement, Requirements};

use super::facts::InstanceTypeFacts;
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

/// Requirements for all labels of the type.
pub(super) fn requirements(
    name: &str,
    info: &InstanceTypeFacts,
    zones: &[String],
    shape: &ClassShape,
) -> Requirements {
    let mut labels = LabelRequirements(Vec::with_capacity(40));
    let architecture = info.architecture;
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
    let is_reserved = !shape.reservations_of(name).is_empty();
    let reserved = is_reserved.then_some(&CapacityType::Reserved);
    let sold = info.capacity_types.iter().chain(reserved);
    labels.many(labels::CAPACITY_TYPE, sold.map(|it| it.as_str()));
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

fn machine_labels(labels: &mut LabelRequirements, name: &str, info: &InstanceTypeFacts) {
    let hypervisor = info.hypervisor.as_ref().map_or("", |it| it.as_str());
    labels.one(labels::INSTANCE_HYPERVISOR, hypervisor);
    labels.one(
        labels::INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED,
        info.network.encrypts_in_transit.to_string(),
    );
    labels.one(labels::NITRO_SANDBOX, info.has_enclaves.to_string());
    let nvme_gb = info.disks.total_gb.filter(|_| info.disks.are_nvme);
    labels.maybe(
        labels::INSTANCE_LOCAL_NVME,
        nvme_gb.map(|gb| gb.to_string()),
    );
    labels.maybe(
        labels::INSTANCE_CPU,
        info.vcpus.map(|vcpus| vcpus.to_string()),
    );
    labels.maybe(
        labels::INSTANCE_CPU_MANUFACTURER,
        info.cpu_manufacturer.as_deref().map(kebab),
    );
    let mhz = info
        .clock_ghz
        .filter(|ghz| *ghz > 0.0)
        .map(|ghz| format!("{:.0}", ghz * 1000.0));
    labels.maybe(labels::INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ, mhz);
    labels.maybe(
        labels::INSTANCE_MEMORY,
        info.memory_mib.map(|mib| mib.to_string()),
    );
    labels.maybe(
        labels::INSTANCE_EBS_BANDWIDTH,
        info.ebs_mbps.map(|mbps| mbps.to_string()),
    );
    // For types that are newer than the table.
    let baseline = info.network.baseline_mbps;
    let network_mbps = seed(name).map_or(baseline, |seed| seed.network_mbps);
    labels.maybe(
        labels::INSTANCE_NETWORK_BANDWIDTH,
        (network_mbps > 0).then(|| network_mbps.to_string()),
    );
}

fn accelerator_labels(labels: &mut LabelRequirements, info: &InstanceTypeFacts) {
    // More than one kind of GPU in a type cannot be told by single labels.
    let gpu = match info.gpus() {
        [gpu] => Some(gpu),
        _ => None,
    };
    labels.maybe(
        labels::INSTANCE_GPU_NAME,
        gpu.and_then(|gpu| gpu.name.as_deref()).map(kebab),
    );
    labels.maybe(
        labels::INSTANCE_GPU_MANUFACTURER,
        gpu.and_then(|gpu| gpu.manufacturer.as_deref()).map(kebab),
    );
    labels.maybe(
        labels::INSTANCE_GPU_COUNT,
        gpu.map(|gpu| gpu.count.to_string()),
    );
    labels.maybe(
        labels::INSTANCE_GPU_MEMORY,
        gpu.and_then(|gpu| gpu.memory_mib)
            .map(|mib| mib.to_string()),
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
fn accelerator(info: &InstanceTypeFacts) -> Option<(String, String, String)> {
    match (info.neuron(), info.inference()) {
        ([device], _) => Some((
            kebab(&device.name),
            "aws".to_owned(),
            device.count.to_string(),
        )),
        ([], [device]) => Some((
            kebab(&device.name),
            kebab(&device.manufacturer),
            device.count.to_string(),
        )),
        _ => None,
    }
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
