//! DescribeInstanceTypes and their offerings, from the catalogue.
//!
//! Types that no zone of the region offers are left out, as EC2 does.

use std::collections::BTreeMap;

use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::operation::describe_instance_type_offerings::{
    DescribeInstanceTypeOfferingsInput, DescribeInstanceTypeOfferingsOutput,
};
use aws_sdk_ec2::operation::describe_instance_types::{
    DescribeInstanceTypesInput, DescribeInstanceTypesOutput,
};
use aws_sdk_ec2::types::{
    ArchitectureType, EbsInfo, EbsOptimizedInfo, EbsOptimizedSupport, EfaInfo, EnaSupport,
    EphemeralNvmeSupport, GpuDeviceInfo, GpuDeviceMemoryInfo, GpuInfo, InferenceAcceleratorInfo,
    InferenceDeviceInfo, InstanceStorageInfo, InstanceType as Ec2InstanceType,
    InstanceTypeHypervisor, InstanceTypeInfo, InstanceTypeOffering, LocationType, MemoryInfo,
    NetworkCardInfo, NetworkInfo, NeuronDeviceCoreInfo, NeuronDeviceInfo, NeuronInfo,
    NitroEnclavesSupport, PlacementGroupInfo, PlacementGroupStrategy, ProcessorInfo,
    UsageClassType, VCpuInfo, VirtualizationType,
};

use super::AccountState;
use super::filters::{matches, page};
use super::network::zone_id;
use crate::catalogue::CatalogueEntry;

const TYPES_PAGE_MAX: i32 = 100;
const OFFERINGS_PAGE_MAX: i32 = 1_000;

impl AccountState {
    pub(super) fn describe_instance_types(
        &self,
        input: &DescribeInstanceTypesInput,
    ) -> ApiResult<DescribeInstanceTypesOutput> {
        if input.dry_run == Some(true) {
            return Err(dry_run());
        }
        let names = input.instance_types.as_deref().unwrap_or_default();
        let filters = input.filters.as_deref().unwrap_or_default();
        let no_tags = BTreeMap::new();
        let found: Vec<&CatalogueEntry> = self
            .types()
            .filter(|t| names.is_empty() || names.iter().any(|name| name.as_str() == t.name))
            .filter(|t| t.zones(&self.config.region).next().is_some())
            .filter(|t| matches(filters, &no_tags, |name| attribute(t, name)))
            .collect();
        let size = Some(
            input
                .max_results
                .unwrap_or(TYPES_PAGE_MAX)
                .clamp(1, TYPES_PAGE_MAX),
        );
        let (found, next) = page(found, size, input.next_token.as_deref())?;
        Ok(DescribeInstanceTypesOutput::builder()
            .set_instance_types(Some(found.into_iter().map(info).collect()))
            .set_next_token(next)
            .build())
    }

    pub(super) fn describe_instance_type_offerings(
        &self,
        input: &DescribeInstanceTypeOfferingsInput,
    ) -> ApiResult<DescribeInstanceTypeOfferingsOutput> {
        let by = input.location_type.clone().unwrap_or(LocationType::Region);
        let region = self.config.region.as_str();
        let locations = |t: &CatalogueEntry| -> Vec<String> {
            match by {
                LocationType::AvailabilityZone => t.zones(region).collect(),
                LocationType::AvailabilityZoneId => {
                    t.zones(region).map(|zone| zone_id(region, &zone)).collect()
                }
                _ => t.zones(region).take(1).map(|_| region.to_owned()).collect(),
            }
        };
        let filters = input.filters.as_deref().unwrap_or_default();
        let no_tags = BTreeMap::new();
        let mut offerings = Vec::new();
        for instance_type in self.types() {
            for location in locations(instance_type) {
                let passes = matches(filters, &no_tags, |name| match name {
                    "location" => vec![location.clone()],
                    "instance-type" => vec![instance_type.name.to_owned()],
                    _ => Vec::new(),
                });
                if passes {
                    offerings.push(
                        InstanceTypeOffering::builder()
                            .instance_type(Ec2InstanceType::from(instance_type.name))
                            .location_type(by.clone())
                            .location(location)
                            .build(),
                    );
                }
            }
        }
        let size = Some(
            input
                .max_results
                .unwrap_or(OFFERINGS_PAGE_MAX)
                .clamp(1, OFFERINGS_PAGE_MAX),
        );
        let (offerings, next) = page(offerings, size, input.next_token.as_deref())?;
        Ok(DescribeInstanceTypeOfferingsOutput::builder()
            .set_instance_type_offerings(Some(offerings))
            .set_next_token(next)
            .build())
    }
}

/// What a successful dry run answers.
pub(super) fn dry_run() -> ApiError {
    ApiError::client(
        "DryRunOperation",
        "Request would have succeeded, but DryRun flag is set.",
    )
}

fn attribute(t: &CatalogueEntry, name: &str) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match name {
        "instance-type" => vec![t.name.to_owned()],
        "supported-virtualization-type" => words(t.virtualization),
        "processor-info.supported-architecture" => words(t.architectures),
        "supported-usage-class" => words(t.usage_classes),
        "bare-metal" => vec![t.bare_metal.to_string()],
        "current-generation" => vec![t.current_generation.to_string()],
        "hypervisor" => vec![t.hypervisor.to_owned()],
        _ => Vec::new(),
    }
}

fn info(t: &CatalogueEntry) -> InstanceTypeInfo {
    let map = |words: &[&'static str]| words.to_vec();
    let mut info = InstanceTypeInfo::builder()
        .instance_type(Ec2InstanceType::from(t.name))
        .current_generation(t.current_generation)
        .set_supported_usage_classes(Some(
            map(t.usage_classes)
                .into_iter()
                .map(UsageClassType::from)
                .collect(),
        ))
        .set_supported_virtualization_types(Some(
            map(t.virtualization)
                .into_iter()
                .map(VirtualizationType::from)
                .collect(),
        ))
        .bare_metal(t.bare_metal)
        .processor_info(
            ProcessorInfo::builder()
                .manufacturer(t.cpu_manufacturer)
                .set_sustained_clock_speed_in_ghz(t.clock_ghz)
                .set_supported_architectures(Some(
                    map(t.architectures)
                        .into_iter()
                        .map(ArchitectureType::from)
                        .collect(),
                ))
                .build(),
        )
        .v_cpu_info(
            VCpuInfo::builder()
                .default_v_cpus(i32::try_from(t.vcpus).unwrap_or(i32::MAX))
                .build(),
        )
        .memory_info(
            MemoryInfo::builder()
                .size_in_mib(i64::try_from(t.memory_mib).unwrap_or(i64::MAX))
                .build(),
        )
        .ebs_info(ebs(t))
        .network_info(network(t))
        .instance_storage_supported(t.instance_store.is_some())
        .burstable_performance_supported(t.burstable)
        .nitro_enclaves_support(if t.nitro_enclaves {
            NitroEnclavesSupport::Supported
        } else {
            NitroEnclavesSupport::Unsupported
        })
        .placement_group_info(placement(t));
    if !t.hypervisor.is_empty() {
        info = info.hypervisor(InstanceTypeHypervisor::from(t.hypervisor));
    }
    if let Some(store) = t.instance_store {
        let nvme = if store.nvme {
            EphemeralNvmeSupport::Required
        } else {
            EphemeralNvmeSupport::Unsupported
        };
        let store = InstanceStorageInfo::builder()
            .total_size_in_gb(store.total_gb)
            .nvme_support(nvme);
        info = info.instance_storage_info(store.build());
    }
    accelerators(info, t).build()
}

type InfoBuilder = aws_sdk_ec2::types::builders::InstanceTypeInfoBuilder;

fn accelerators(mut info: InfoBuilder, t: &CatalogueEntry) -> InfoBuilder {
    if !t.gpus.is_empty() {
        let gpu = |gpu: &crate::catalogue::Gpu| {
            GpuDeviceInfo::builder()
                .name(gpu.name)
                .manufacturer(gpu.manufacturer)
                .count(gpu.count)
                .memory_info(
                    GpuDeviceMemoryInfo::builder()
                        .size_in_mib(gpu.memory_mib)
                        .build(),
                )
                .build()
        };
        let gpus = t.gpus.iter().map(gpu).collect();
        info = info.gpu_info(GpuInfo::builder().set_gpus(Some(gpus)).build());
    }
    if !t.inference_accelerators.is_empty() {
        let device = |(name, manufacturer, count): &(&str, &str, i32)| {
            InferenceDeviceInfo::builder()
                .name(*name)
                .manufacturer(*manufacturer)
                .count(*count)
                .build()
        };
        let devices = t.inference_accelerators.iter().map(device).collect();
        info = info.inference_accelerator_info(
            InferenceAcceleratorInfo::builder()
                .set_accelerators(Some(devices))
                .build(),
        );
    }
    if !t.neuron_devices.is_empty() {
        let device = |(name, count, cores): &(&str, i32, i32)| {
            NeuronDeviceInfo::builder()
                .name(*name)
                .count(*count)
                .core_info(NeuronDeviceCoreInfo::builder().count(*cores).build())
                .build()
        };
        let devices = t.neuron_devices.iter().map(device).collect();
        info = info.neuron_info(
            NeuronInfo::builder()
                .set_neuron_devices(Some(devices))
                .build(),
        );
    }
    info
}

fn ebs(t: &CatalogueEntry) -> EbsInfo {
    let support = match t.ebs_maximum_mbps {
        Some(_) => EbsOptimizedSupport::Default,
        None => EbsOptimizedSupport::Unsupported,
    };
    let bandwidth = t.ebs_maximum_mbps.map(|maximum| {
        EbsOptimizedInfo::builder()
            .maximum_bandwidth_in_mbps(maximum)
            .set_baseline_bandwidth_in_mbps(t.ebs_baseline_mbps)
            .build()
    });
    EbsInfo::builder()
        .ebs_optimized_support(support)
        .set_ebs_optimized_info(bandwidth)
        .build()
}

fn network(t: &CatalogueEntry) -> NetworkInfo {
    let cards = t.cards.iter().zip(0..).map(|(card, index)| {
        NetworkCardInfo::builder()
            .network_card_index(index)
            .maximum_network_interfaces(card.interfaces_max)
            .baseline_bandwidth_in_gbps(card.baseline_gbps)
            .peak_bandwidth_in_gbps(card.peak_gbps)
            .build()
    });
    // Xen hosts of the oldest generations have no ENA; all others need it.
    let ena = if t.hypervisor == "xen" {
        EnaSupport::Supported
    } else {
        EnaSupport::Required
    };
    let efa = (t.efa_max > 0).then(|| EfaInfo::builder().maximum_efa_interfaces(t.efa_max).build());
    NetworkInfo::builder()
        .maximum_network_interfaces(t.interfaces_max)
        .maximum_network_cards(i32::try_from(t.cards.len()).unwrap_or(i32::MAX))
        .default_network_card_index(t.default_card)
        .set_network_cards(Some(cards.collect()))
        .ipv4_addresses_per_interface(t.ipv4_per_interface)
        .ipv6_addresses_per_interface(if t.ipv6 { t.ipv4_per_interface } else { 0 })
        .ipv6_supported(t.ipv6)
        .ena_support(ena)
        .efa_supported(t.efa_max > 0)
        .set_efa_info(efa)
        .encryption_in_transit_supported(t.encryption_in_transit)
        .build()
}

fn placement(t: &CatalogueEntry) -> PlacementGroupInfo {
    let mut strategies = vec![
        PlacementGroupStrategy::Partition,
        PlacementGroupStrategy::Spread,
    ];
    if !t.burstable && !t.name.contains("-flex.") {
        strategies.insert(0, PlacementGroupStrategy::Cluster);
    }
    PlacementGroupInfo::builder()
        .set_supported_strategies(Some(strategies))
        .build()
}
