//! What is read of EC2's description of an instance type. The rest, which is most of it, is let go at the edge: a
//! region has more than a thousand types, and they are kept for as long as the process runs.
//!
//! Knows nothing of classes and decides nothing. An amount that EC2 does not tell is zero where nobody asks which of
//! the two it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::{CapacityType, labels};
use aws_sdk_ec2::types::{
    AttachmentLimitType, DiskInfo, EbsInfo, EbsOptimizedInfo, EbsOptimizedSupport, EfaInfo,
    EnaSupport, EphemeralNvmeSupport, GpuDeviceInfo, GpuDeviceMemoryInfo, GpuInfo,
    InferenceAcceleratorInfo, InferenceDeviceInfo, InstanceStorageInfo, InstanceTypeHypervisor,
    InstanceTypeInfo, MemoryInfo, NetworkCardInfo, NetworkInfo, NeuronDeviceCoreInfo,
    NeuronDeviceInfo, NeuronInfo, NitroEnclavesSupport, PlacementGroupInfo, PlacementGroupStrategy,
    ProcessorInfo, UsageClassType, VCpuInfo,
};

/// Lists of which many are equal: each is kept once.
#[derive(Debug)]
pub(super) struct SharedLists<T>(BTreeSet<Arc<[T]>>);

impl<T: Ord> SharedLists<T> {
    /// With no list.
    pub(super) const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// The one list that is equal to this.
    pub(super) fn of(&mut self, list: Vec<T>) -> Arc<[T]> {
        if let Some(known) = self.0.get(list.as_slice()) {
            return Arc::clone(known);
        }
        let list: Arc<[T]> = list.into();
        self.0.insert(Arc::clone(&list));
        list
    }
}

/// An instance type as EC2 describes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct InstanceTypeFacts {
    pub(super) vcpus: Option<i32>,
    /// Memory as advertised.
    pub(super) memory_mib: Option<i64>,
    /// Kubernetes' word for it; none for those that no node runs on.
    pub(super) architecture: Option<&'static str>,
    pub(super) cpu_manufacturer: Option<Box<str>>,
    pub(super) clock_ghz: Option<f64>,
    pub(super) hypervisor: Option<InstanceTypeHypervisor>,
    /// Under which EC2 sells it, reservations aside.
    pub(super) capacity_types: &'static [CapacityType],
    pub(super) has_enclaves: bool,
    pub(super) nests_virtual_machines: bool,
    /// Bandwidth of volumes at most, where it is there without being asked for.
    pub(super) ebs_mbps: Option<i32>,
    pub(super) ebs_attachments: Option<EbsAttachments>,
    pub(super) disks: DiskFacts,
    pub(super) network: NetworkFacts,
    /// Strategies of the placement groups that it may be in.
    pub(super) placement_strategies: Arc<[PlacementGroupStrategy]>,
    /// Few types have any.
    pub(super) accelerators: Option<Box<AcceleratorFacts>>,
}

/// How many volumes may be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EbsAttachments {
    pub(super) most: i32,
    /// Whether interfaces and local disks count among them.
    pub(super) is_shared: bool,
}

/// Local disks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DiskFacts {
    pub(super) count: usize,
    /// All disks together, where EC2 tells it.
    pub(super) total_gb: Option<i64>,
    pub(super) are_nvme: bool,
}

/// Interfaces and addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NetworkFacts {
    pub(super) cards: Box<[CardFacts]>,
    /// Of the default card.
    pub(super) default_interfaces: i32,
    pub(super) ipv4_per_interface: i32,
    pub(super) efa_max: i32,
    /// Bandwidth that always holds, over all cards.
    pub(super) baseline_mbps: u32,
    /// Elastic network adapters.
    pub(super) has_ena: bool,
    pub(super) encrypts_in_transit: bool,
}

/// A network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CardFacts {
    pub(super) index: i32,
    pub(super) interfaces: i32,
}

/// What a type has to compute with beside its CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AcceleratorFacts {
    pub(super) gpus: Box<[GpuFacts]>,
    pub(super) neuron: Box<[NeuronFacts]>,
    pub(super) inference: Box<[InferenceFacts]>,
}

/// GPUs of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GpuFacts {
    pub(super) name: Option<Box<str>>,
    pub(super) manufacturer: Option<Box<str>>,
    pub(super) count: i32,
    /// Of one of them.
    pub(super) memory_mib: Option<i32>,
}

/// Neuron devices of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NeuronFacts {
    pub(super) name: Box<str>,
    pub(super) count: i32,
    /// Of one of them.
    pub(super) cores: i32,
}

/// Inference accelerators of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InferenceFacts {
    pub(super) name: Box<str>,
    pub(super) manufacturer: Box<str>,
    pub(super) count: i32,
}

impl InstanceTypeFacts {
    /// What is read of a description. Strategies are shared with the types that came before.
    pub(super) fn of(
        info: &InstanceTypeInfo,
        strategies: &mut SharedLists<PlacementGroupStrategy>,
    ) -> Self {
        let processor = info.processor_info();
        let groups = info.placement_group_info();
        let groups = groups.map(PlacementGroupInfo::supported_strategies);
        let attachments = info.ebs_info().and_then(EbsInfo::maximum_ebs_attachments);
        Self {
            vcpus: info.v_cpu_info().and_then(VCpuInfo::default_v_cpus),
            memory_mib: info.memory_info().and_then(MemoryInfo::size_in_mib),
            architecture: processor.and_then(architecture),
            cpu_manufacturer: processor.and_then(|it| it.manufacturer()).map(Box::from),
            clock_ghz: processor.and_then(ProcessorInfo::sustained_clock_speed_in_ghz),
            hypervisor: info.hypervisor().cloned(),
            capacity_types: capacity_types(info.supported_usage_classes()),
            has_enclaves: info.nitro_enclaves_support() == Some(&NitroEnclavesSupport::Supported),
            nests_virtual_machines: processor.is_some_and(nests_virtual_machines),
            ebs_mbps: info.ebs_info().and_then(ebs_mbps),
            ebs_attachments: attachments.map(|most| EbsAttachments {
                most,
                is_shared: info.ebs_info().and_then(EbsInfo::attachment_limit_type)
                    == Some(&AttachmentLimitType::Shared),
            }),
            disks: info.instance_storage_info().map(disks).unwrap_or_default(),
            network: info.network_info().map(network).unwrap_or_default(),
            placement_strategies: strategies.of(groups.unwrap_or_default().to_vec()),
            accelerators: accelerators(info).map(Box::new),
        }
    }

    /// GPUs of all kinds; none for most types.
    pub(super) fn gpus(&self) -> &[GpuFacts] {
        self.accelerators.as_ref().map_or(&[], |it| &it.gpus)
    }

    /// Neuron devices of all kinds; none for most types.
    pub(super) fn neuron(&self) -> &[NeuronFacts] {
        self.accelerators.as_ref().map_or(&[], |it| &it.neuron)
    }

    /// Inference accelerators of all kinds; none for most types.
    pub(super) fn inference(&self) -> &[InferenceFacts] {
        self.accelerators.as_ref().map_or(&[], |it| &it.inference)
    }
}

fn architecture(processor: &ProcessorInfo) -> Option<&'static str> {
    let architectures = processor.supported_architectures().iter();
    let mut words = architectures.filter_map(|it| match it.as_str() {
        "x86_64" => Some(labels::ARCH_AMD64),
        "arm64" => Some(labels::ARCH_ARM64),
        _ => None,
    });
    words.next()
}

fn capacity_types(classes: &[UsageClassType]) -> &'static [CapacityType] {
    let is_sold = |class| classes.contains(&class);
    match (
        is_sold(UsageClassType::OnDemand),
        is_sold(UsageClassType::Spot),
    ) {
        (true, true) => &[CapacityType::OnDemand, CapacityType::Spot],
        (true, false) => &[CapacityType::OnDemand],
        (false, true) => &[CapacityType::Spot],
        (false, false) => &[],
    }
}

fn nests_virtual_machines(processor: &ProcessorInfo) -> bool {
    let mut features = processor.supported_features().iter();
    features.any(|it| it.as_str() == "nested-virtualization")
}

fn ebs_mbps(ebs: &EbsInfo) -> Option<i32> {
    let is_there = ebs.ebs_optimized_support() == Some(&EbsOptimizedSupport::Default);
    let bandwidth = ebs.ebs_optimized_info().filter(|_| is_there);
    bandwidth.and_then(EbsOptimizedInfo::maximum_bandwidth_in_mbps)
}

fn disks(storage: &InstanceStorageInfo) -> DiskFacts {
    let counts = storage.disks().iter().filter_map(DiskInfo::count);
    let nvme = storage.nvme_support();
    DiskFacts {
        count: counts.filter_map(|it| usize::try_from(it).ok()).sum(),
        total_gb: storage.total_size_in_gb(),
        are_nvme: nvme.is_some_and(|it| *it != EphemeralNvmeSupport::Unsupported),
    }
}

fn network(network: &NetworkInfo) -> NetworkFacts {
    let cards = network.network_cards().iter().filter_map(|card| {
        Some(CardFacts {
            index: card.network_card_index()?,
            interfaces: card.maximum_network_interfaces().unwrap_or(0),
        })
    });
    let index = network.default_network_card_index().unwrap_or(0);
    let mut all = network.network_cards().iter();
    let default = all.find(|it| it.network_card_index() == Some(index));
    let default = default.and_then(NetworkCardInfo::maximum_network_interfaces);
    let efa = network.efa_info();
    let ena = network.ena_support();
    NetworkFacts {
        cards: cards.collect(),
        default_interfaces: default
            .or_else(|| network.maximum_network_interfaces())
            .unwrap_or(0),
        ipv4_per_interface: network.ipv4_addresses_per_interface().unwrap_or(0),
        efa_max: efa.and_then(EfaInfo::maximum_efa_interfaces).unwrap_or(0),
        baseline_mbps: baseline_mbps(network.network_cards()),
        has_ena: ena.is_some_and(|it| *it != EnaSupport::Unsupported),
        encrypts_in_transit: network.encryption_in_transit_supported().unwrap_or(false),
    }
}

/// EC2 tells a baseline for each card.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bandwidth in Mbps is positive and far below 2^32"
)]
fn baseline_mbps(cards: &[NetworkCardInfo]) -> u32 {
    let gbps = cards
        .iter()
        .filter_map(NetworkCardInfo::baseline_bandwidth_in_gbps)
        .sum::<f64>();
    (gbps * 1000.0).round() as u32
}

fn accelerators(info: &InstanceTypeInfo) -> Option<AcceleratorFacts> {
    let gpus = info.gpu_info().map(GpuInfo::gpus).unwrap_or_default();
    let neuron = info.neuron_info().map(NeuronInfo::neuron_devices);
    let inference = info.inference_accelerator_info();
    let inference = inference.map(InferenceAcceleratorInfo::accelerators);
    let facts = AcceleratorFacts {
        gpus: gpus.iter().map(gpu).collect(),
        neuron: neuron
            .unwrap_or_default()
            .iter()
            .map(neuron_device)
            .collect(),
        inference: inference
            .unwrap_or_default()
            .iter()
            .map(inference_device)
            .collect(),
    };
    (facts != AcceleratorFacts::default()).then_some(facts)
}

fn gpu(gpu: &GpuDeviceInfo) -> GpuFacts {
    GpuFacts {
        name: gpu.name().map(Box::from),
        manufacturer: gpu.manufacturer().map(Box::from),
        count: gpu.count().unwrap_or(0),
        memory_mib: gpu.memory_info().and_then(GpuDeviceMemoryInfo::size_in_mib),
    }
}

fn neuron_device(device: &NeuronDeviceInfo) -> NeuronFacts {
    NeuronFacts {
        name: device.name().unwrap_or_default().into(),
        count: device.count().unwrap_or(0),
        cores: device
            .core_info()
            .and_then(NeuronDeviceCoreInfo::count)
            .unwrap_or(0),
    }
}

fn inference_device(device: &InferenceDeviceInfo) -> InferenceFacts {
    InferenceFacts {
        name: device.name().unwrap_or_default().into(),
        manufacturer: device.manufacturer().unwrap_or_default().into(),
        count: device.count().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests;
