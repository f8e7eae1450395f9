//! Instance types against published numbers, and what makes their list be built again.

use std::collections::BTreeMap;

use apis::quantity;
use apis::{CapacityType, labels};
use aws_sdk_ec2::types::{
    ArchitectureType, EbsInfo, EbsOptimizedInfo, EbsOptimizedSupport, EfaInfo,
    EphemeralNvmeSupport, GpuDeviceInfo, GpuDeviceMemoryInfo, GpuInfo, InstanceStorageInfo,
    InstanceTypeHypervisor, InstanceTypeInfo, MemoryInfo, NetworkCardInfo, NetworkInfo,
    NeuronDeviceCoreInfo, NeuronDeviceInfo, NeuronInfo, ProcessorInfo, UsageClassType, VCpuInfo,
};
use scheduling::instance_type::Availability;

use super::{Rig, class};
use crate::unavailable_offerings::OfferingName;

const ROWS: &str = include_str!("../../testdata/representative-types.csv");

/// One row: a type and what is published of it.
struct Row(Vec<&'static str>);

impl Row {
    fn all() -> Vec<Self> {
        let lines = ROWS.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| Self(line.split(',').collect())).collect()
    }

    fn text(&self, column: usize) -> &'static str {
        self.0[column]
    }

    fn number<T: std::str::FromStr>(&self, column: usize) -> T {
        let text = self.text(column);
        text.parse()
            .unwrap_or_else(|_| panic!("{}: column {column} is {text:?}", self.text(0)))
    }

    fn info(&self) -> InstanceTypeInfo {
        let arch = if self.text(1) == "arm64" {
            ArchitectureType::Arm64
        } else {
            ArchitectureType::X8664
        };
        let card = NetworkCardInfo::builder()
            .network_card_index(0)
            .maximum_network_interfaces(self.number(4));
        let network = NetworkInfo::builder()
            .maximum_network_interfaces(99)
            .default_network_card_index(0)
            .network_cards(card.build())
            .ipv4_addresses_per_interface(self.number(5))
            .efa_info(
                EfaInfo::builder()
                    .maximum_efa_interfaces(self.number(12))
                    .build(),
            );
        let ebs = EbsOptimizedInfo::builder()
            .maximum_bandwidth_in_mbps(self.number(9))
            .build();
        let ebs = EbsInfo::builder()
            .ebs_optimized_support(EbsOptimizedSupport::Default)
            .ebs_optimized_info(ebs);
        let hypervisor = Some(self.text(14))
            .filter(|text| !text.is_empty())
            .map(InstanceTypeHypervisor::from);
        InstanceTypeInfo::builder()
            .instance_type(self.text(0).into())
            .supported_usage_classes(UsageClassType::OnDemand)
            .supported_usage_classes(UsageClassType::Spot)
            .v_cpu_info(VCpuInfo::builder().default_v_cpus(self.number(2)).build())
            .memory_info(MemoryInfo::builder().size_in_mib(self.number(3)).build())
            .processor_info(
                ProcessorInfo::builder()
                    .supported_architectures(arch)
                    .manufacturer("Maker Inc")
                    .build(),
            )
            .network_info(network.build())
            .ebs_info(ebs.build())
            .set_hypervisor(hypervisor)
            .set_gpu_info(self.gpu())
            .set_neuron_info(self.neuron())
            .set_instance_storage_info(self.storage())
            .build()
    }

    fn words(&self, column: usize) -> Option<Vec<&'static str>> {
        Some(self.text(column))
            .filter(|text| !text.is_empty())
            .map(|text| text.split(' ').collect())
    }

    fn gpu(&self) -> Option<GpuInfo> {
        let words = self.words(10)?;
        let maker = if words[1] == "nvidia" {
            "NVIDIA"
        } else {
            "AMD"
        };
        let memory = GpuDeviceMemoryInfo::builder()
            .size_in_mib(words[3].parse().unwrap())
            .build();
        let gpu = GpuDeviceInfo::builder()
            .count(words[0].parse().unwrap())
            .manufacturer(maker)
            .name(words[2].to_uppercase().replace('-', " "))
            .memory_info(memory);
        Some(GpuInfo::builder().gpus(gpu.build()).build())
    }

    fn neuron(&self) -> Option<NeuronInfo> {
        let words = self.words(11)?;
        let core = NeuronDeviceCoreInfo::builder()
            .count(words[2].parse().unwrap())
            .build();
        let device = NeuronDeviceInfo::builder()
            .count(words[0].parse().unwrap())
            .name(words[1])
            .core_info(core);
        Some(NeuronInfo::builder().neuron_devices(device.build()).build())
    }

    fn storage(&self) -> Option<InstanceStorageInfo> {
        let gb = self.words(13)?[0].parse().unwrap();
        let nvme = EphemeralNvmeSupport::Required;
        Some(
            InstanceStorageInfo::builder()
                .nvme_support(nvme)
                .total_size_in_gb(gb)
                .build(),
        )
    }
}

/// The representative types with these names, or all.
pub(super) fn infos(names: &[&str]) -> Vec<InstanceTypeInfo> {
    let rows = Row::all();
    let wanted = rows
        .iter()
        .filter(|row| names.is_empty() || names.contains(&row.text(0)));
    wanted.map(Row::info).collect()
}

#[tokio::test(start_paused = true)]
async fn allocatable_and_labels_match_the_published_numbers() {
    let rig = Rig::new(infos(&[]));
    // a1 does not run AL2023, but its numbers are published for it.
    let class = rig.resolve(class()).await;
    let types = rig.types(&class).await;
    let by_name: BTreeMap<&str, _> = types.iter().map(|t| (t.name.as_str(), t)).collect();
    for row in Row::all() {
        let name = row.text(0);
        let found = by_name[name];
        let allocatable = found.allocatable();
        let millis = |column: usize| quantity::parse_millis(row.text(column)).unwrap();
        assert_eq!(allocatable.cpu_millis(), millis(16), "{name}: cpu");
        assert_eq!(allocatable.get("memory"), millis(17), "{name}: memory");
        assert_eq!(
            allocatable.get("ephemeral-storage"),
            millis_of("17Gi"),
            "{name}: ephemeral-storage"
        );
        assert_eq!(
            allocatable.get("pods"),
            row.number::<i64>(6) * 1000,
            "{name}: pods"
        );
        assert_eq!(
            found.capacity.get(labels::RESOURCE_AWS_POD_ENI),
            row.number::<i64>(7) * 1000,
            "{name}: pod-eni"
        );
        let mut expected = vec![
            (labels::ARCH, row.text(1).to_owned()),
            (labels::INSTANCE_CPU, row.text(2).to_owned()),
            (labels::INSTANCE_MEMORY, row.text(3).to_owned()),
            (labels::INSTANCE_NETWORK_BANDWIDTH, row.text(8).to_owned()),
            (labels::INSTANCE_EBS_BANDWIDTH, row.text(9).to_owned()),
            (labels::INSTANCE_LOCAL_NVME, row.text(13).to_owned()),
            (labels::INSTANCE_HYPERVISOR, row.text(14).to_owned()),
            (labels::INSTANCE_CPU_MANUFACTURER, "maker-inc".to_owned()),
        ];
        if let Some(gpu) = row.words(10) {
            expected.push((labels::INSTANCE_GPU_COUNT, gpu[0].to_owned()));
            expected.push((labels::INSTANCE_GPU_MANUFACTURER, gpu[1].to_owned()));
            expected.push((labels::INSTANCE_GPU_NAME, gpu[2].to_owned()));
            expected.push((labels::INSTANCE_GPU_MEMORY, gpu[3].to_owned()));
        }
        for (key, value) in expected {
            let requirement = found.requirements.find(key).unwrap();
            let values: Vec<&str> = requirement.values().collect();
            let is_absent = value.is_empty() && key != labels::INSTANCE_HYPERVISOR;
            let want = if is_absent {
                vec![]
            } else {
                vec![value.as_str()]
            };
            assert_eq!(values, want, "{name}: {key}");
        }
        let price = row.words(15).map(|words| words[0].parse::<f64>().unwrap());
        let offering = found
            .offering("us-east-1a", CapacityType::OnDemand)
            .unwrap();
        assert_eq!(offering.on_demand_price_per_hour, price, "{name}: price");
        assert_eq!(
            offering.is_available(),
            price.is_some() && !name.starts_with("a1."),
            "{name}: available"
        );
    }
}

fn millis_of(text: &str) -> i64 {
    quantity::parse_millis(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_type_without_a_published_price_is_told_as_one_that_lacks_it() {
    let mut types = infos(&["m5.large", "m5.xlarge"]);
    types[0].instance_type = Some("x99.large".into());
    let rig = Rig::new(types);
    let class = rig.resolve(class()).await;
    let told = rig.types(&class).await;
    for (name, expected) in [
        ("x99.large", Availability::NoPrice),
        ("m5.xlarge", Availability::Now),
    ] {
        let found = told.iter().find(|it| it.name == name).unwrap();
        assert!(!found.offerings.is_empty(), "{name}");
        for offering in &found.offerings {
            assert_eq!(offering.availability, expected, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn kubelet_settings_change_capacity_and_overhead() {
    let rig = Rig::new(infos(&["m5.large"]));
    let mut class = class();
    class.spec.kubelet = serde_json::from_value(serde_json::json!({
        "maxPods": 110,
        "kubeReserved": {"memory": "1Gi"},
        "systemReserved": {"cpu": "100m"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "100%"},
    }))
    .unwrap();
    let class = rig.resolve(class).await;
    let found = &rig.types(&class).await[0];
    assert_eq!(found.capacity.get("pods"), 110_000);
    assert_eq!(found.overhead.kube_reserved.get("memory"), millis_of("1Gi"));
    assert_eq!(found.overhead.system_reserved.get("cpu"), 100);
    // 5 % of 7577 MiB, rounded up to a byte.
    assert_eq!(
        found.overhead.eviction_threshold.get("memory"),
        397_253_018_000
    );
    assert_eq!(
        found.overhead.eviction_threshold.get("ephemeral-storage"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_mark_rebuilds_its_own_type_only() {
    let rig = Rig::new(infos(&["m5.large", "c5.large"]));
    let class = rig.resolve(class()).await;
    let before = rig.types(&class).await;
    assert!(
        std::sync::Arc::ptr_eq(&before, &rig.types(&class).await),
        "nothing has changed"
    );
    let offered = OfferingName {
        instance_type: "m5.large",
        zone: "us-east-1a",
        capacity_type: CapacityType::Spot,
    };
    rig.provider.mark_unavailable(offered);
    let after = rig.types(&class).await;
    assert!(
        std::sync::Arc::ptr_eq(&before[0], &after[0]),
        "c5.large has not changed"
    );
    let offering = after[1].offering("us-east-1a", CapacityType::Spot).unwrap();
    assert!(
        !offering.is_available() && offering.ice_count == 1 && offering.ice_age_seconds == Some(0)
    );
    assert!(
        after[1]
            .offering("us-east-1b", CapacityType::Spot)
            .unwrap()
            .is_available()
    );
    assert!(
        after[1]
            .offering("us-east-1a", CapacityType::OnDemand)
            .unwrap()
            .is_available()
    );
    rig.pass(181);
    let again = rig.types(&class).await;
    let offering = again[1].offering("us-east-1a", CapacityType::Spot).unwrap();
    assert!(offering.is_available() && offering.ice_age_seconds == Some(180));
    assert_eq!(rig.aws.calls("DescribeInstanceTypes"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_without_news_builds_nothing() {
    let rig = Rig::new(infos(&["m5.large", "c5.large"]));
    let class = rig.resolve(class()).await;
    let before = rig.types(&class).await;
    rig.provider.refresh_instance_types().await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&before, &rig.types(&class).await));
    // Half of it may be missing by mistake: it is believed when it is told again.
    rig.aws.edit(|state| state.types.pop());
    rig.provider.refresh_instance_types().await.unwrap_err();
    assert_eq!(rig.types(&class).await.len(), 2);
    rig.provider.refresh_instance_types().await.unwrap();
    assert_eq!(rig.types(&class).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_memory_that_nodes_of_the_current_image_report_is_what_the_type_has() {
    let rig = Rig::new(infos(&["m5.large", "c5.large"]));
    let class = rig.resolve(class()).await;
    let memory = |types: &[std::sync::Arc<scheduling::instance_type::InstanceType>]| {
        types
            .iter()
            .map(|it| it.capacity.get("memory"))
            .collect::<Vec<_>>()
    };
    let built = rig.types(&class).await;
    let estimates = memory(&built);
    let image_id = "ami-x86";
    let mib = |count: i64| count << 20;
    // Image, MiB reported by an m5.large of 8 GiB, and what counts then; none for the estimate.
    let told = [
        ("ami-old", 7_700, None),
        (image_id, 0, None),
        (image_id, 4_096, None),
        (image_id, 8_193, None),
        (image_id, 7_800, Some(7_800)),
        (image_id, 7_700, Some(7_700)),
        (image_id, 7_900, Some(7_700)),
    ];
    for (image_id, reported, counts) in told {
        let node = cloudprovider::RegisteredNode {
            instance_type: "m5.large",
            image_id,
            memory_bytes: mib(reported),
        };
        let before = rig.types(&class).await;
        cloudprovider::CloudProvider::learn(rig.provider.as_ref(), node, &class).await;
        let types = rig.types(&class).await;
        // A report is no news for other types.
        assert!(std::sync::Arc::ptr_eq(&before[0], &types[0]), "{reported}");
        let m5 = counts.map_or(estimates[1], |count| mib(count) * 1000);
        assert_eq!(memory(&types), [estimates[0], m5], "{image_id} {reported}");
    }
    // A percentage is of the estimate all the same.
    let mut evicting = class.clone();
    evicting.metadata.resource_version = Some("3".to_owned());
    evicting.spec.kubelet =
        serde_json::from_value(serde_json::json!({"evictionHard": {"memory.available": "50%"}}))
            .unwrap();
    let m5 = &rig.types(&evicting).await[1];
    assert_eq!(m5.capacity.get("memory"), mib(7_700) * 1000);
    let kept = m5.overhead.eviction_threshold.get("memory");
    assert_eq!(kept, estimates[1] / 2);
    // Nodes of other images have said nothing yet.
    let mut renewed = class.clone();
    renewed.metadata.resource_version = Some("2".to_owned());
    renewed.status.as_mut().unwrap().amis[0].id = "ami-new".to_owned();
    assert_eq!(memory(&rig.types(&renewed).await), estimates);
}
