//! What a template says of volumes, metadata, interfaces, reservations and tags.

use serde_json::json;

use super::*;

/// Of a plain template.
pub(in crate::launch_template) fn plain() -> TemplateParameters {
    TemplateParameters {
        image_id: "ami-1".to_owned(),
        user_data: "dXNlcg==".to_owned(),
        instance_profile: None,
        block_device_mappings: Vec::new(),
        metadata_options: None,
        nested_virtualization: None,
        detailed_monitoring: false,
        network: NetworkPlan {
            interfaces: Vec::new(),
            efa_count: 0,
            security_group_ids: vec!["sg-1".to_owned(), "sg-2".to_owned()],
            associate_public_ip_address: None,
            ip_prefix_count: None,
            connection_tracking: None,
        },
        has_enclave: false,
        tenancy: "default".to_owned(),
        placement_group_id: None,
        partition: None,
        reservation: ReservationPlan::Unmanaged,
        is_spot: false,
        is_ipv6: false,
        region: "us-east-1".to_owned(),
        tags: [("team".to_owned(), "a".to_owned())].into(),
    }
}

fn parameters(change: impl FnOnce(&mut TemplateParameters)) -> RequestLaunchTemplateData {
    let mut parameters = plain();
    change(&mut parameters);
    template_data(&parameters)
}

#[test]
fn volumes_have_whole_gibibytes_and_none_of_what_is_zero() {
    let cases = [
        (json!({"volumeSize": "20Gi"}), Some(20)),
        (json!({"volumeSize": "1.5Gi"}), Some(2)),
        (json!({"volumeSize": "100G"}), Some(94)),
        (json!({"volumeSize": "1Ti"}), Some(1024)),
        (json!({"volumeSize": "0"}), None),
        (json!({"snapshotID": "snap-1"}), None),
    ];
    for (ebs, want) in cases {
        let mapping = json!([{"deviceName": "/dev/xvda", "ebs": ebs}]);
        let data = parameters(|it| {
            it.block_device_mappings = serde_json::from_value(mapping.clone()).unwrap();
        });
        let device = &data.block_device_mappings()[0];
        assert_eq!(device.device_name(), Some("/dev/xvda"));
        assert_eq!(device.ebs().unwrap().volume_size(), want, "{mapping}");
    }
    let all = json!([{"deviceName": "/dev/xvda", "ebs": {
        "deleteOnTermination": true, "encrypted": true, "iops": 3000, "kmsKeyID": "key-1", "snapshotID": "snap-1",
        "throughput": 125, "volumeInitializationRate": 100, "volumeType": "gp3",
    }}]);
    let none = json!([{"deviceName": "/dev/xvda", "ebs": {"iops": 0, "throughput": 0}}]);
    let [all, none] = [all, none].map(|mappings| {
        let data = parameters(|it| {
            it.block_device_mappings = serde_json::from_value(mappings).unwrap();
        });
        data.block_device_mappings()[0].ebs().cloned().unwrap()
    });
    let want = LaunchTemplateEbsBlockDeviceRequest::builder()
        .delete_on_termination(true)
        .encrypted(true)
        .iops(3000)
        .kms_key_id("key-1")
        .snapshot_id("snap-1")
        .throughput(125)
        .volume_initialization_rate(100)
        .volume_type("gp3".into())
        .build();
    assert_eq!(all, want);
    assert_eq!(none, LaunchTemplateEbsBlockDeviceRequest::builder().build());
}

#[test]
fn metadata_are_for_nodes_alone_unless_the_class_says_otherwise() {
    let own = MetadataOptions {
        http_endpoint: Some("disabled".to_owned()),
        http_protocol_ipv6: Some("enabled".to_owned()),
        http_put_response_hop_limit: Some(1),
        http_tokens: Some("optional".to_owned()),
    };
    // Region, whether the cluster speaks IPv6, the class's own, and what comes of it.
    let cases = [
        (
            "us-east-1",
            false,
            None,
            ("enabled", Some("disabled"), 2, "required"),
        ),
        (
            "us-east-1",
            true,
            None,
            ("enabled", Some("enabled"), 2, "required"),
        ),
        (
            "us-iso-east-1",
            true,
            None,
            ("enabled", None, 2, "required"),
        ),
        (
            "us-east-1",
            false,
            Some(own.clone()),
            ("disabled", Some("enabled"), 1, "optional"),
        ),
        (
            "us-isof-south-1",
            false,
            Some(own),
            ("disabled", None, 1, "optional"),
        ),
    ];
    for (region, is_ipv6, own, (endpoint, ipv6, hops, tokens)) in cases {
        let data = parameters(|it| {
            it.region = region.to_owned();
            it.is_ipv6 = is_ipv6;
            it.metadata_options = own;
        });
        let want = LaunchTemplateInstanceMetadataOptionsRequest::builder()
            .http_endpoint(endpoint.into())
            .set_http_protocol_ipv6(ipv6.map(Into::into))
            .http_put_response_hop_limit(hops)
            .http_tokens(tokens.into())
            .instance_metadata_tags(LaunchTemplateInstanceMetadataTagsState::Disabled)
            .build();
        assert_eq!(data.metadata_options(), Some(&want), "{region}");
    }
}

#[test]
fn interfaces_are_those_of_the_class_or_adapters_that_are_asked_for_or_one() {
    let own = |card: i32, device: i32, kind: InterfaceType| NetworkInterface {
        network_card_index: card,
        device_index: device,
        interface_type: kind,
    };
    let both = vec![
        own(0, 0, InterfaceType::Interface),
        own(1, 1, InterfaceType::EfaOnly),
    ];
    // The class's own, adapters, and what comes of them: card, device, type, and whether it has addresses.
    let cases = [
        (vec![], 0, vec![(0, 0, "interface", true)]),
        (vec![], 1, vec![(0, 0, "efa", true)]),
        (
            vec![],
            3,
            vec![
                (0, 0, "efa", true),
                (1, 1, "efa", true),
                (2, 1, "efa", true),
            ],
        ),
        (
            both,
            3,
            vec![(0, 0, "interface", true), (1, 1, "efa-only", false)],
        ),
    ];
    for (interfaces, efa_count, want) in cases {
        let data = parameters(|it| {
            it.network.interfaces = interfaces;
            it.network.efa_count = efa_count;
            it.network.associate_public_ip_address = Some(false);
        });
        let made: Vec<_> = data
            .network_interfaces()
            .iter()
            .map(|it| {
                assert_eq!(it.groups(), ["sg-1", "sg-2"]);
                (
                    it.network_card_index().unwrap(),
                    it.device_index().unwrap(),
                    it.interface_type().unwrap(),
                    it.associate_public_ip_address() == Some(false),
                )
            })
            .collect();
        assert_eq!(made, want);
    }
}

#[test]
fn addresses_are_of_the_cluster_and_tracking_is_of_the_class() {
    let interface = |is_ipv6: bool| {
        let data = parameters(|it| {
            it.is_ipv6 = is_ipv6;
            it.network.ip_prefix_count = Some(4);
            it.network.connection_tracking = Some(ConnectionTracking {
                tcp_established_timeout: Some(300),
                udp_stream_timeout: None,
                udp_timeout: Some(30),
            });
        });
        data.network_interfaces()[0].clone()
    };
    let [four, six] = [false, true].map(interface);
    assert_eq!(
        (four.ipv4_prefix_count(), four.ipv6_prefix_count()),
        (Some(4), None)
    );
    assert_eq!(
        (four.primary_ipv6(), four.ipv6_address_count()),
        (None, None)
    );
    assert_eq!(
        (six.ipv4_prefix_count(), six.ipv6_prefix_count()),
        (None, Some(4))
    );
    assert_eq!(
        (six.primary_ipv6(), six.ipv6_address_count()),
        (Some(true), Some(1))
    );
    let tracking = six.connection_tracking_specification().unwrap();
    assert_eq!(tracking.tcp_established_timeout(), Some(300));
    assert_eq!(
        (tracking.udp_stream_timeout(), tracking.udp_timeout()),
        (None, Some(30))
    );
}

#[test]
fn a_launch_runs_in_its_reservation_or_stays_out_of_all_or_leaves_it_to_chance() {
    use CapacityReservationType::{CapacityBlock, Default as Reserved};
    let target = |kind: CapacityReservationType, is_interruptible: bool| ReservationPlan::Target {
        id: "cr-1".to_owned(),
        kind,
        is_interruptible,
    };
    let only = Some("capacity-reservations-only");
    let cases = [
        (ReservationPlan::Unmanaged, None, None),
        (ReservationPlan::Avoid, Some("none"), None),
        (target(Reserved, false), only, None),
        (
            target(Reserved, true),
            only,
            Some("interruptible-capacity-reservation"),
        ),
        (target(CapacityBlock, false), only, Some("capacity-block")),
    ];
    for (plan, preference, market) in cases {
        let data = parameters(|it| it.reservation = plan.clone());
        let asked = data.capacity_reservation_specification();
        let told = asked.and_then(|it| it.capacity_reservation_preference());
        assert_eq!(
            told.map(CapacityReservationPreference::as_str),
            preference,
            "{plan:?}"
        );
        let target = asked.and_then(|it| it.capacity_reservation_target());
        let target = target.and_then(|it| it.capacity_reservation_id());
        assert_eq!(
            target,
            Some("cr-1").filter(|_| preference == only),
            "{plan:?}"
        );
        let told = data
            .instance_market_options()
            .and_then(|it| it.market_type());
        assert_eq!(told.map(MarketType::as_str), market, "{plan:?}");
    }
}

#[test]
fn interfaces_are_tagged_and_the_requests_of_spot_instances_too() {
    for (is_spot, want) in [
        (false, vec!["network-interface"]),
        (true, vec!["network-interface", "spot-instances-request"]),
    ] {
        let data = parameters(|it| it.is_spot = is_spot);
        let told = data.tag_specifications().iter().map(|it| {
            let tag = &it.tags()[0];
            assert_eq!((tag.key(), tag.value()), (Some("team"), Some("a")));
            it.resource_type().unwrap().as_str()
        });
        assert_eq!(told.collect::<Vec<_>>(), want);
    }
}

#[test]
fn what_is_not_asked_for_is_not_said() {
    let plain = parameters(|_| {});
    assert!(plain.iam_instance_profile().is_none() && plain.cpu_options().is_none());
    assert_eq!(plain.monitoring().unwrap().enabled(), Some(false));
    assert_eq!(plain.enclave_options().unwrap().enabled(), Some(false));
    let placement = plain.placement().unwrap();
    assert_eq!(
        (placement.group_id(), placement.partition_number()),
        (None, None)
    );
    let asked = parameters(|it| {
        it.instance_profile = Some("profile".to_owned());
        it.nested_virtualization = Some("enabled".to_owned());
        it.has_enclave = true;
        it.tenancy = "dedicated".to_owned();
        it.placement_group_id = Some("pg-1".to_owned());
        it.partition = Some(3);
    });
    assert_eq!(
        asked.iam_instance_profile().unwrap().name(),
        Some("profile")
    );
    assert_eq!(asked.enclave_options().unwrap().enabled(), Some(true));
    let nested = asked
        .cpu_options()
        .and_then(|it| it.nested_virtualization());
    assert_eq!(nested.unwrap().as_str(), "enabled");
    let placement = asked.placement().unwrap();
    assert_eq!(
        (placement.group_id(), placement.partition_number()),
        (Some("pg-1"), Some(3))
    );
    assert_eq!(placement.tenancy(), Some(&Tenancy::Dedicated));
}
