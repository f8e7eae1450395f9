//! Pods, CPU and memory of every published type.

use aws_sdk_ec2::types::{MemoryInfo, NetworkCardInfo, NetworkInfo, ProcessorInfo, VCpuInfo};

use super::*;
use crate::AwsOptions;

/// A row of the table: a type as EC2 tells it, and what is published of its nodes.
struct PublishedType {
    name: &'static str,
    info: InstanceTypeInfo,
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
        info,
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
