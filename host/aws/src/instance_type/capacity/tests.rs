//! Pods, CPU and memory of every published type, and what of them hangs on the class.

use apis::AmiFamily;
use aws_sdk_ec2::types::{
    ArchitectureType, InstanceTypeInfo, MemoryInfo, NetworkCardInfo, NetworkInfo, ProcessorInfo,
    VCpuInfo,
};
use serde_json::json;

use super::*;
use crate::AwsOptions;
use crate::instance_type::facts::{
    AcceleratorFacts, GpuFacts, NetworkFacts, NeuronFacts, SharedLists,
};

/// A row of the table: a type as EC2 tells it, and what is published of its nodes.
struct PublishedType {
    name: &'static str,
    info: InstanceTypeFacts,
    cpu: &'static str,
    memory: &'static str,
    pods: &'static str,
}

fn published(line: &'static str) -> PublishedType {
    let fields: Vec<&str> = line.split(',').collect();
    let [
        name,
        arch,
        vcpus,
        mib,
        interfaces,
        addresses,
        cpu,
        memory,
        pods,
    ] = fields[..]
    else {
        panic!("{line}");
    };
    let arch = match arch {
        "arm64" => ArchitectureType::Arm64,
        _ => ArchitectureType::X8664,
    };
    let card = NetworkCardInfo::builder()
        .network_card_index(0)
        .maximum_network_interfaces(interfaces.parse().unwrap())
        .build();
    let network = NetworkInfo::builder()
        .default_network_card_index(0)
        .network_cards(card)
        .ipv4_addresses_per_interface(addresses.parse().unwrap())
        .build();
    let processor = ProcessorInfo::builder()
        .supported_architectures(arch)
        .build();
    let vcpus = VCpuInfo::builder()
        .default_v_cpus(vcpus.parse().unwrap())
        .build();
    let mib = MemoryInfo::builder()
        .size_in_mib(mib.parse().unwrap())
        .build();
    let info = InstanceTypeInfo::builder()
        .instance_type(name.into())
        .processor_info(processor)
        .v_cpu_info(vcpus)
        .memory_info(mib)
        .network_info(network)
        .build();
    PublishedType {
        name,
        info: InstanceTypeFacts::of(&info, &mut SharedLists::new()),
        cpu,
        memory,
        pods,
    }
}

#[test]
fn every_published_type_has_the_published_room() {
    let mut class = apis::Ec2NodeClass::default();
    let ami = apis::ec2nodeclass::AmiSelectorTerm {
        alias: Some("al2023@latest".to_owned()),
        ..Default::default()
    };
    class.spec.ami_selector_terms = vec![ami];
    let shape = ClassShape::of(&class, None, &AwsOptions::new("demo", "us-east-1"));
    let table = include_str!("../../../testdata/published-types.csv").lines();
    let rows: Vec<PublishedType> = table
        .filter(|line| !line.starts_with('#'))
        .map(published)
        .collect();
    assert_eq!(rows.len(), 1363);
    for row in rows {
        let (capacity, overhead) = capacity_and_overhead(row.name, &row.info, &shape);
        let wants = [("cpu", row.cpu), ("memory", row.memory), ("pods", row.pods)];
        for (resource, want) in wants {
            let kept = [
                &overhead.kube_reserved,
                &overhead.system_reserved,
                &overhead.eviction_threshold,
            ];
            let kept: i64 = kept.iter().map(|it| it.get(resource)).sum();
            let left = capacity.get(resource) - kept;
            let want = quantity::parse_millis(want).unwrap();
            assert_eq!(left, want, "{}: {resource}", row.name);
        }
    }
}

/// A class of a family, with more of its spec as JSON.
fn shape(family: AmiFamily, spec: &serde_json::Value, reserved_enis: u32) -> ClassShape {
    let mut class = apis::Ec2NodeClass::default();
    class.spec.ami_family = Some(family);
    let part = |name: &str| spec.get(name).cloned();
    if let Some(kubelet) = part("kubelet") {
        class.spec.kubelet = serde_json::from_value(kubelet).unwrap();
    }
    if let Some(volumes) = part("blockDeviceMappings") {
        class.spec.block_device_mappings = serde_json::from_value(volumes).unwrap();
    }
    if let Some(interfaces) = part("networkInterfaces") {
        class.spec.network_interfaces = serde_json::from_value(interfaces).unwrap();
    }
    if let Some(policy) = part("instanceStorePolicy") {
        class.spec.instance_store_policy = serde_json::from_value(policy).unwrap();
    }
    let mut options = AwsOptions::new("demo", "us-east-1");
    options.reserved_enis = reserved_enis;
    ClassShape::of(&class, None, &options)
}

/// Two CPUs, and three interfaces of ten addresses: 29 pods.
fn small() -> InstanceTypeFacts {
    InstanceTypeFacts {
        vcpus: Some(2),
        network: NetworkFacts {
            default_interfaces: 3,
            ipv4_per_interface: 10,
            ..NetworkFacts::default()
        },
        ..InstanceTypeFacts::default()
    }
}

#[test]
fn pods_follow_from_addresses_and_settings_and_the_kubelets_memory_from_pods() {
    use AmiFamily::{Al2, Al2023, Bottlerocket, Custom, Windows2022};
    let (plain, fifty) = (json!({}), json!({"kubelet": {"maxPods": 50}}));
    let per_core = |count: u32| json!({"kubelet": {"podsPerCore": count}});
    let both = json!({"kubelet": {"maxPods": 50, "podsPerCore": 4}});
    let efa = json!({"networkInterfaces": [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ]});
    // Family, class, interfaces kept from pods, and how many pods there are and how many the memory is kept for.
    let cases = [
        (Al2023, &plain, 0, 29, 29),
        (Al2023, &plain, 1, 20, 29),
        (Al2023, &plain, 3, 0, 29),
        (Al2023, &plain, 4, 0, 29),
        (Al2023, &efa, 0, 20, 20),
        (Al2023, &fifty, 1, 50, 29),
        (Al2023, &both, 0, 8, 29),
        (Al2023, &per_core(0), 0, 29, 29),
        (Al2023, &per_core(20), 0, 29, 29),
        (Al2, &both, 0, 8, 29),
        (Custom, &fifty, 0, 50, 29),
        (Bottlerocket, &plain, 1, 20, 20),
        (Bottlerocket, &both, 0, 50, 50),
        (Windows2022, &plain, 1, 110, 110),
        (Windows2022, &both, 0, 8, 8),
    ];
    for (family, spec, reserved_enis, pods, counted) in cases {
        let shape = shape(family, spec, reserved_enis);
        let (capacity, overhead) = capacity_and_overhead("x9.test", &small(), &shape);
        let what = format!("{family:?} {spec} {reserved_enis}");
        assert_eq!(capacity.count("pods"), pods, "{what}");
        let memory = overhead.kube_reserved.get("memory");
        assert_eq!(memory, (11 * counted + 255) * MIB * MILLI, "{what}");
    }
}

#[test]
fn storage_is_local_disks_or_the_volume_that_pods_write_to() {
    use AmiFamily::{Al2, Al2023, Bottlerocket, Custom, Windows2019};
    let volume =
        |device: &str, size: &str| json!({"deviceName": device, "ebs": {"volumeSize": size}});
    let with = |volumes: &[serde_json::Value]| json!({"blockDeviceMappings": volumes});
    let root =
        json!({"deviceName": "/dev/xvdb", "rootVolume": true, "ebs": {"volumeSize": "70Gi"}});
    let unsized_root =
        json!({"deviceName": "/dev/xvda", "rootVolume": true, "ebs": {"snapshotID": "snap-1"}});
    let (plain, raid0) = (json!({}), json!({"instanceStorePolicy": "RAID0"}));
    let gib = |count: i64| count * GIB;
    let cases = [
        (Al2, plain.clone(), None, gib(20)),
        (Al2023, plain.clone(), None, gib(20)),
        (Bottlerocket, plain.clone(), None, gib(20)),
        (Windows2019, plain.clone(), None, gib(50)),
        (Custom, plain.clone(), None, gib(20)),
        (
            Al2023,
            with(&[volume("/dev/xvda", "100Gi")]),
            None,
            gib(100),
        ),
        (
            Al2023,
            with(&[volume("/dev/xvda", "100G")]),
            None,
            100_000_000_000,
        ),
        (Al2023, with(&[volume("/dev/xvdb", "100Gi")]), None, gib(20)),
        (
            Bottlerocket,
            with(&[volume("/dev/xvda", "4Gi"), volume("/dev/xvdb", "80Gi")]),
            None,
            gib(80),
        ),
        (
            Custom,
            with(&[volume("/dev/sda1", "30Gi"), volume("/dev/sdb", "70Gi")]),
            None,
            gib(70),
        ),
        (
            Al2023,
            with(&[volume("/dev/xvda", "30Gi"), root]),
            None,
            gib(70),
        ),
        (Al2023, with(&[unsized_root]), None, gib(20)),
        (Al2023, plain, Some(900), gib(20)),
        (Al2023, raid0.clone(), Some(900), 900_000_000_000),
        (Al2023, raid0, None, gib(20)),
    ];
    for (family, spec, disks_gb, want) in cases {
        let shape = shape(family, &spec, 0);
        let mut facts = small();
        facts.disks.total_gb = disks_gb;
        let (capacity, _) = capacity_and_overhead("x9.test", &facts, &shape);
        let found = capacity.count("ephemeral-storage");
        assert_eq!(found, want, "{family:?} {spec} {disks_gb:?}");
    }
}

#[test]
fn devices_are_counted_by_maker_and_adapters_as_the_class_asks_for_them() {
    let gpu = |maker: &str, count: i32| GpuFacts {
        name: None,
        manufacturer: Some(maker.into()),
        count,
        memory_mib: None,
    };
    let neuron = |count: i32, cores: i32| NeuronFacts {
        name: "n".into(),
        count,
        cores,
    };
    let accelerators = AcceleratorFacts {
        gpus: [
            gpu("NVIDIA", 4),
            gpu("NVIDIA", 2),
            gpu("AMD", 3),
            gpu("Habana", 8),
        ]
        .into(),
        neuron: [neuron(2, 4), neuron(1, 8)].into(),
        ..AcceleratorFacts::default()
    };
    let mut facts = small();
    facts.accelerators = Some(Box::new(accelerators));
    facts.network.efa_max = 4;
    let efa = json!({"networkInterfaces": [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ]});
    let addresses = labels::RESOURCE_PRIVATE_IPV4_ADDRESS;
    for (family, spec, adapters, private_addresses) in [
        (AmiFamily::Al2023, json!({}), 4, 0),
        (AmiFamily::Al2023, efa, 1, 0),
        (AmiFamily::Windows2025, json!({}), 4, 9),
    ] {
        let shape = shape(family, &spec, 0);
        let (capacity, _) = capacity_and_overhead("x9.test", &facts, &shape);
        for (resource, count) in [
            (labels::RESOURCE_NVIDIA_GPU, 6),
            (labels::RESOURCE_AMD_GPU, 3),
            (labels::RESOURCE_HABANA_GAUDI, 8),
            (labels::RESOURCE_AWS_NEURON, 3),
            // Of the first kind.
            (labels::RESOURCE_AWS_NEURON_CORE, 8),
            (labels::RESOURCE_EFA, adapters),
            (addresses, private_addresses),
        ] {
            assert_eq!(capacity.count(resource), count, "{family:?} {resource}");
            assert_eq!(capacity.has(resource), count > 0, "{resource}");
        }
    }
}

#[test]
fn eviction_starts_at_an_amount_or_at_a_share_of_the_capacity() {
    let cases = [
        ("5%", 50_000),
        ("0.05%", 1_000),
        ("0%", 0),
        ("100%", 0),
        ("x%", 0),
        ("100Mi", 100 * MIB * MILLI),
        ("100", 100_000),
        ("much", 0),
    ];
    for (signal, millis) in cases {
        assert_eq!(threshold(1_000_000, signal), millis, "{signal}");
    }
}
