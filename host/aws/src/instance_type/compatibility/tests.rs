//! Every rule that keeps a type from a class, and what just passes it.

use apis::Ec2NodeClass;
use apis::ec2nodeclass::{InterfaceType, NetworkInterface};
use aws_sdk_ec2::types::PlacementGroupStrategy;

use super::*;
use crate::AwsOptions;
use crate::instance_type::facts::{CardFacts, NetworkFacts};
use crate::placement_group::PlacementGroup;

const LACKS_INTERFACES: Option<&str> = Some("the type lacks the network interfaces of the class");

/// A class and a type that suit each other, save for what is changed of them.
fn judge(
    name: &str,
    class: fn(&mut ClassShape),
    own: fn(&mut InstanceTypeFacts),
) -> Option<&'static str> {
    let options = AwsOptions::new("demo", "us-east-1");
    let mut shape = ClassShape::of(&Ec2NodeClass::default(), None, &options);
    class(&mut shape);
    let card = CardFacts {
        index: 0,
        interfaces: 2,
    };
    let mut facts = InstanceTypeFacts {
        hypervisor: Some(InstanceTypeHypervisor::Nitro),
        nests_virtual_machines: true,
        network: NetworkFacts {
            cards: [card].into(),
            ipv4_per_interface: 10,
            efa_max: 1,
            has_ena: true,
            ..NetworkFacts::default()
        },
        placement_strategies: [PlacementGroupStrategy::Cluster].into(),
        ..InstanceTypeFacts::default()
    };
    own(&mut facts);
    incompatibility(name, &facts, &shape)
}

fn interface(card: i32, device: i32, kind: InterfaceType) -> NetworkInterface {
    NetworkInterface {
        network_card_index: card,
        device_index: device,
        interface_type: kind,
    }
}

#[test]
fn al2023_does_not_run_on_a1() {
    let al2023: fn(&mut ClassShape) = |shape| shape.family = AmiFamily::Al2023;
    let al2: fn(&mut ClassShape) = |shape| shape.family = AmiFamily::Al2;
    let cases = [
        ("a1.large", al2023, Some("AL2023 does not run on a1")),
        ("a1.large", al2, None),
        ("a100.large", al2023, None),
    ];
    for (name, class, want) in cases {
        assert_eq!(judge(name, class, |_| {}), want, "{name}");
    }
}

#[test]
fn the_interfaces_of_a_class_must_be_there_and_have_room_for_its_prefixes() {
    fn plain(shape: &mut ClassShape) {
        shape.network_interfaces = vec![interface(0, 1, InterfaceType::Interface)];
    }
    fn with_prefixes(shape: &mut ClassShape) {
        plain(shape);
        shape.ip_prefix_count = Some(9);
    }
    fn with_efa(shape: &mut ClassShape) {
        plain(shape);
        let efa = interface(0, 1, InterfaceType::EfaOnly);
        shape.network_interfaces.push(efa);
    }
    type Own = fn(&mut InstanceTypeFacts);
    type Class = fn(&mut ClassShape);
    let nothing: Own = |_| {};
    let cases: [(Class, Own, Option<&str>); 9] = [
        // A class that asks for none takes what there is.
        (|_| {}, |own| own.network = NetworkFacts::default(), None),
        (plain, nothing, None),
        (plain, |own| own.network.has_ena = false, LACKS_INTERFACES),
        (
            plain,
            |own| own.network.cards[0].interfaces = 1,
            LACKS_INTERFACES,
        ),
        (
            plain,
            |own| own.network.cards[0].index = 1,
            LACKS_INTERFACES,
        ),
        (with_prefixes, nothing, None),
        (
            with_prefixes,
            |own| own.network.ipv4_per_interface = 9,
            LACKS_INTERFACES,
        ),
        (with_efa, nothing, None),
        (with_efa, |own| own.network.efa_max = 0, LACKS_INTERFACES),
    ];
    for (index, (class, own, want)) in cases.into_iter().enumerate() {
        assert_eq!(judge("m5.large", class, own), want, "case {index}");
    }
}

#[test]
fn a_type_must_be_able_to_do_what_the_class_wants() {
    fn in_a_group(shape: &mut ClassShape) {
        shape.placement_group = Some(PlacementGroup {
            id: "pg-1".to_owned(),
            strategy: "cluster".to_owned(),
            partitions: 0,
        });
    }
    type Own = fn(&mut InstanceTypeFacts);
    type Class = fn(&mut ClassShape);
    let nested: Class = |shape| shape.wants_nested_virtualization = true;
    let tracking: Class = |shape| shape.wants_connection_tracking = true;
    let cases: [(Class, Own, &str); 4] = [
        (
            nested,
            |own| own.nests_virtual_machines = false,
            "the type cannot nest virtual machines",
        ),
        (
            tracking,
            |own| own.hypervisor = Some(InstanceTypeHypervisor::Xen),
            "the type cannot set connection tracking",
        ),
        // So it is on metal.
        (
            tracking,
            |own| own.hypervisor = None,
            "the type cannot set connection tracking",
        ),
        (
            in_a_group,
            |own| own.placement_strategies = [PlacementGroupStrategy::Spread].into(),
            "the type does not support the placement group's strategy",
        ),
    ];
    for (class, lacks, want) in cases {
        assert_eq!(judge("m5.large", class, |_| {}), None, "{want}");
        assert_eq!(judge("m5.large", class, lacks), Some(want));
        assert_eq!(judge("m5.large", |_| {}, lacks), None, "{want}");
    }
}
