//! What of EC2's description counts.

use super::*;

fn facts(info: &InstanceTypeInfo) -> InstanceTypeFacts {
    InstanceTypeFacts::of(info, &mut SharedLists::new())
}

#[test]
fn a_type_of_which_ec2_tells_nothing_has_nothing() {
    let nothing = facts(&InstanceTypeInfo::builder().build());
    assert_eq!(nothing, InstanceTypeFacts::default());
    assert!(nothing.gpus().is_empty() && nothing.neuron().is_empty());
    assert!(nothing.inference().is_empty());
}

#[test]
fn it_is_sold_as_nodes_can_be_bought() {
    use CapacityType::{OnDemand, Spot};
    let cases: [(&[&str], &[CapacityType]); 5] = [
        (&[], &[]),
        (&["spot", "on-demand"], &[OnDemand, Spot]),
        (&["on-demand"], &[OnDemand]),
        (&["spot"], &[Spot]),
        (&["capacity-block"], &[]),
    ];
    for (classes, want) in cases {
        let classes = classes.iter().map(|it| UsageClassType::from(*it)).collect();
        let info = InstanceTypeInfo::builder().set_supported_usage_classes(Some(classes));
        assert_eq!(facts(&info.build()).capacity_types, want);
    }
}

#[test]
fn the_first_architecture_that_nodes_run_on_counts() {
    let cases: [(&[&str], Option<&str>); 5] = [
        (&["x86_64"], Some("amd64")),
        (&["i386", "x86_64"], Some("amd64")),
        (&["arm64"], Some("arm64")),
        (&["arm64_mac"], None),
        (&[], None),
    ];
    for (told, want) in cases {
        let told = told.iter().map(|it| (*it).into()).collect();
        let processor = ProcessorInfo::builder().set_supported_architectures(Some(told));
        let info = InstanceTypeInfo::builder().processor_info(processor.build());
        assert_eq!(facts(&info.build()).architecture, want);
    }
}

#[test]
fn bandwidth_of_volumes_counts_where_nobody_has_to_ask_for_it() {
    for (support, want) in [
        (Some("default"), Some(4_750)),
        (Some("supported"), None),
        (Some("unsupported"), None),
        (None, None),
    ] {
        let bandwidth = EbsOptimizedInfo::builder().maximum_bandwidth_in_mbps(4_750);
        let ebs = EbsInfo::builder()
            .set_ebs_optimized_support(support.map(Into::into))
            .ebs_optimized_info(bandwidth.build());
        let info = InstanceTypeInfo::builder().ebs_info(ebs.build());
        assert_eq!(facts(&info.build()).ebs_mbps, want, "{support:?}");
    }
}

#[test]
fn pods_share_the_interfaces_of_the_default_card() {
    let card = |index: Option<i32>, interfaces: Option<i32>, gbps: f64| {
        NetworkCardInfo::builder()
            .set_network_card_index(index)
            .set_maximum_network_interfaces(interfaces)
            .baseline_bandwidth_in_gbps(gbps)
            .build()
    };
    // Cards, the default one, interfaces over all cards, and those that count.
    let cases = [
        (vec![], None, None, 0),
        (vec![], None, Some(4), 4),
        (vec![card(Some(0), Some(3), 0.75)], None, Some(4), 3),
        (vec![card(Some(0), None, 0.75)], None, Some(4), 4),
        (
            vec![card(Some(0), Some(7), 50.0), card(Some(1), Some(15), 50.0)],
            Some(1),
            Some(22),
            15,
        ),
        (vec![card(None, Some(7), 1.0)], Some(0), Some(5), 5),
    ];
    for (cards, default_card, over_all, want) in cases {
        let network = NetworkInfo::builder()
            .set_network_cards(Some(cards.clone()))
            .set_default_network_card_index(default_card)
            .set_maximum_network_interfaces(over_all)
            .build();
        let info = InstanceTypeInfo::builder().network_info(network).build();
        assert_eq!(facts(&info).network.default_interfaces, want, "{cards:?}");
    }
    assert_eq!(baseline_mbps(&[card(Some(0), None, 0.75)]), 750);
    let two = [card(Some(0), None, 50.0), card(Some(1), None, 50.0)];
    assert_eq!(baseline_mbps(&two), 100_000);
}

#[test]
fn disks_are_counted_and_told_from_those_that_are_not_nvme() {
    for (support, are_nvme) in [
        (None, false),
        (Some("unsupported"), false),
        (Some("supported"), true),
        (Some("required"), true),
    ] {
        let disk = |count: i32| DiskInfo::builder().count(count).build();
        let storage = InstanceStorageInfo::builder()
            .total_size_in_gb(900)
            .set_nvme_support(support.map(Into::into))
            .disks(disk(2))
            .disks(disk(1));
        let info = InstanceTypeInfo::builder().instance_storage_info(storage.build());
        let want = DiskFacts {
            count: 3,
            total_gb: Some(900),
            are_nvme,
        };
        assert_eq!(facts(&info.build()).disks, want, "{support:?}");
    }
}

#[test]
fn equal_lists_are_one() {
    let mut lists = SharedLists::new();
    let [first, second, other] = ["ab", "ab", "ac"].map(|it| lists.of(it.chars().collect()));
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(*other, ['a', 'c']);
}
