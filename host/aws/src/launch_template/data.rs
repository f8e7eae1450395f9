//! The content of a launch template, from parameters that are already resolved.
//!
//! Pure translation. Answers to Karpenter's `pkg/providers/launchtemplate/types.go`.

use apis::ec2nodeclass::{
    BlockDeviceMapping, CapacityReservationType, ConnectionTracking, InterfaceType,
    MetadataOptions, NetworkInterface,
};
use apis::quantity;
use aws_sdk_ec2::types::{
    CapacityReservationPreference, CapacityReservationTarget,
    ConnectionTrackingSpecificationRequest, LaunchTemplateBlockDeviceMappingRequest,
    LaunchTemplateCapacityReservationSpecificationRequest, LaunchTemplateCpuOptionsRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateEnclaveOptionsRequest,
    LaunchTemplateIamInstanceProfileSpecificationRequest,
    LaunchTemplateInstanceMarketOptionsRequest, LaunchTemplateInstanceMetadataOptionsRequest,
    LaunchTemplateInstanceMetadataTagsState,
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, LaunchTemplatePlacementRequest,
    LaunchTemplateTagSpecificationRequest, LaunchTemplatesMonitoringRequest, MarketType,
    RequestLaunchTemplateData, ResourceType, Tenancy,
};

use crate::tags::{Tags, to_ec2};

const GIB_MILLIS: i64 = (1 << 30) * 1000;
/// ISO regions whose metadata service does not know the IPv6 switch.
const NO_METADATA_IPV6: [&str; 6] = [
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-south-1",
    "us-isof-east-1",
];

/// Everything a template says. Its debug text is its identity.
#[derive(Debug, Clone)]
pub(crate) struct TemplateParameters {
    pub(crate) image_id: String,
    /// In base64.
    pub(crate) user_data: String,
    /// Name of the profile.
    pub(crate) instance_profile: Option<String>,
    pub(crate) block_device_mappings: Vec<BlockDeviceMapping>,
    pub(crate) metadata_options: Option<MetadataOptions>,
    /// `enabled` or `disabled`; EC2 decides where it is absent.
    pub(crate) nested_virtualization: Option<String>,
    pub(crate) detailed_monitoring: bool,
    pub(crate) network: NetworkPlan,
    pub(crate) has_enclave: bool,
    /// `default` or `dedicated`.
    pub(crate) tenancy: String,
    pub(crate) placement_group_id: Option<String>,
    /// Partition of the placement group; EC2 chooses one where none is named.
    pub(crate) partition: Option<i32>,
    pub(crate) reservation: ReservationPlan,
    pub(crate) is_spot: bool,
    pub(crate) is_ipv6: bool,
    pub(crate) region: String,
    pub(crate) tags: Tags,
}

/// The interfaces of a template.
#[derive(Debug, Clone)]
pub(crate) struct NetworkPlan {
    /// As the class wants them; none leaves the one that every instance has.
    pub(crate) interfaces: Vec<NetworkInterface>,
    /// Adapters to attach because the claim asks for them.
    pub(crate) efa_count: i64,
    pub(crate) security_group_ids: Vec<String>,
    pub(crate) associate_public_ip_address: Option<bool>,
    /// Prefixes of addresses on each interface.
    pub(crate) ip_prefix_count: Option<i32>,
    pub(crate) connection_tracking: Option<ConnectionTracking>,
}

/// How a template stands to capacity reservations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReservationPlan {
    /// Reservations are switched off: open ones may be used by chance.
    Unmanaged,
    /// Must not use any, not even open ones.
    Avoid,
    /// Runs in this one or not at all.
    Target {
        id: String,
        kind: CapacityReservationType,
        is_interruptible: bool,
    },
}

/// The SDK's form.
pub(super) fn template_data(parameters: &TemplateParameters) -> RequestLaunchTemplateData {
    let profile = parameters.instance_profile.as_ref().map(|name| {
        LaunchTemplateIamInstanceProfileSpecificationRequest::builder()
            .name(name)
            .build()
    });
    let cpu_options = parameters.nested_virtualization.as_deref().map(|nested| {
        LaunchTemplateCpuOptionsRequest::builder()
            .nested_virtualization(nested.into())
            .build()
    });
    let placement = LaunchTemplatePlacementRequest::builder()
        .tenancy(Tenancy::from(parameters.tenancy.as_str()))
        .set_group_id(parameters.placement_group_id.clone())
        .set_partition_number(parameters.partition)
        .build();
    let monitoring = LaunchTemplatesMonitoringRequest::builder()
        .enabled(parameters.detailed_monitoring)
        .build();
    let (reservation, market) = reservation(&parameters.reservation);
    RequestLaunchTemplateData::builder()
        .image_id(&parameters.image_id)
        .user_data(&parameters.user_data)
        .set_iam_instance_profile(profile)
        .set_block_device_mappings(Some(block_devices(&parameters.block_device_mappings)))
        .metadata_options(metadata(parameters))
        .set_cpu_options(cpu_options)
        .monitoring(monitoring)
        .set_network_interfaces(Some(interfaces(parameters)))
        .placement(placement)
        .set_capacity_reservation_specification(reservation)
        .set_instance_market_options(market)
        .enclave_options(
            LaunchTemplateEnclaveOptionsRequest::builder()
                .enabled(parameters.has_enclave)
                .build(),
        )
        .set_tag_specifications(Some(tag_specifications(parameters)))
        .build()
}

fn tag_specifications(
    parameters: &TemplateParameters,
) -> Vec<LaunchTemplateTagSpecificationRequest> {
    let mut kinds = vec![ResourceType::NetworkInterface];
    if parameters.is_spot {
        kinds.push(ResourceType::SpotInstancesRequest);
    }
    let specification = |kind| {
        LaunchTemplateTagSpecificationRequest::builder()
            .resource_type(kind)
            .set_tags(Some(to_ec2(&parameters.tags)))
            .build()
    };
    kinds.into_iter().map(specification).collect()
}

fn block_devices(mappings: &[BlockDeviceMapping]) -> Vec<LaunchTemplateBlockDeviceMappingRequest> {
    mappings
        .iter()
        .map(|mapping| {
            let ebs = mapping.ebs.clone().unwrap_or_default();
            // EC2 takes whole GiB; a fraction of one must not be lost.
            let size = ebs
                .volume_size
                .as_ref()
                .and_then(|size| quantity::millis(size).ok());
            let gib = size.map(|millis| millis / GIB_MILLIS + i64::from(millis % GIB_MILLIS > 0));
            let small = |number: Option<i64>| {
                number
                    .filter(|n| *n != 0)
                    .and_then(|n| i32::try_from(n).ok())
            };
            let device = LaunchTemplateEbsBlockDeviceRequest::builder()
                .set_delete_on_termination(ebs.delete_on_termination)
                .set_encrypted(ebs.encrypted)
                .set_iops(small(ebs.iops))
                .set_throughput(small(ebs.throughput))
                .set_kms_key_id(ebs.kms_key_id)
                .set_snapshot_id(ebs.snapshot_id)
                .set_volume_initialization_rate(ebs.volume_initialization_rate)
                .set_volume_size(small(gib))
                .set_volume_type(ebs.volume_type.as_deref().map(Into::into))
                .build();
            LaunchTemplateBlockDeviceMappingRequest::builder()
                .set_device_name(mapping.device_name.clone())
                .ebs(device)
                .build()
        })
        .collect()
}

fn metadata(parameters: &TemplateParameters) -> LaunchTemplateInstanceMetadataOptionsRequest {
    let fallback = MetadataOptions {
        http_endpoint: Some("enabled".to_owned()),
        http_protocol_ipv6: Some(
            if parameters.is_ipv6 {
                "enabled"
            } else {
                "disabled"
            }
            .to_owned(),
        ),
        http_put_response_hop_limit: Some(2),
        http_tokens: Some("required".to_owned()),
    };
    let options = parameters.metadata_options.clone().unwrap_or(fallback);
    let MetadataOptions {
        http_endpoint,
        http_protocol_ipv6,
        http_put_response_hop_limit,
        http_tokens,
    } = options;
    let ipv6 =
        http_protocol_ipv6.filter(|_| !NO_METADATA_IPV6.contains(&parameters.region.as_str()));
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .set_http_endpoint(http_endpoint.as_deref().map(Into::into))
        .set_http_protocol_ipv6(ipv6.as_deref().map(Into::into))
        .set_http_put_response_hop_limit(
            http_put_response_hop_limit.and_then(|n| i32::try_from(n).ok()),
        )
        .set_http_tokens(http_tokens.as_deref().map(Into::into))
        .instance_metadata_tags(LaunchTemplateInstanceMetadataTagsState::Disabled)
        .build()
}

/// The class' own interfaces, or the adapters a claim asks for, or one plain interface.
fn interfaces(
    parameters: &TemplateParameters,
) -> Vec<LaunchTemplateInstanceNetworkInterfaceSpecificationRequest> {
    let plan = &parameters.network;
    if !plan.interfaces.is_empty() {
        return plan
            .interfaces
            .iter()
            .map(|interface| {
                let kind = interface.interface_type;
                network_interface(
                    parameters,
                    interface.network_card_index,
                    interface.device_index,
                    kind.as_str(),
                    kind == InterfaceType::Interface,
                )
            })
            .collect();
    }
    if plan.efa_count > 0 {
        let cards = 0..i32::try_from(plan.efa_count).unwrap_or(i32::MAX);
        return cards
            .map(|card| network_interface(parameters, card, card.min(1), "efa", true))
            .collect();
    }
    vec![network_interface(parameters, 0, 0, "interface", true)]
}

fn network_interface(
    parameters: &TemplateParameters,
    card: i32,
    device: i32,
    kind: &str,
    has_addresses: bool,
) -> LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
    let plan = &parameters.network;
    let interface = LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
        .network_card_index(card)
        .device_index(device)
        .interface_type(kind)
        .set_groups(Some(plan.security_group_ids.clone()));
    if !has_addresses {
        return interface.build();
    }
    let tracking = plan.connection_tracking.as_ref().map(|tracking| {
        ConnectionTrackingSpecificationRequest::builder()
            .set_tcp_established_timeout(tracking.tcp_established_timeout)
            .set_udp_stream_timeout(tracking.udp_stream_timeout)
            .set_udp_timeout(tracking.udp_timeout)
            .build()
    });
    let interface = interface
        .set_associate_public_ip_address(plan.associate_public_ip_address)
        .set_connection_tracking_specification(tracking);
    if parameters.is_ipv6 {
        interface
            .set_ipv6_prefix_count(plan.ip_prefix_count)
            .primary_ipv6(true)
            .ipv6_address_count(1)
            .build()
    } else {
        interface
            .set_ipv4_prefix_count(plan.ip_prefix_count)
            .build()
    }
}

type ReservationRequest = LaunchTemplateCapacityReservationSpecificationRequest;
type MarketRequest = LaunchTemplateInstanceMarketOptionsRequest;

fn reservation(plan: &ReservationPlan) -> (Option<ReservationRequest>, Option<MarketRequest>) {
    match plan {
        ReservationPlan::Unmanaged => (None, None),
        ReservationPlan::Avoid => {
            let request = LaunchTemplateCapacityReservationSpecificationRequest::builder()
                .capacity_reservation_preference(CapacityReservationPreference::None)
                .build();
            (Some(request), None)
        }
        ReservationPlan::Target {
            id,
            kind,
            is_interruptible,
        } => {
            let target = CapacityReservationTarget::builder()
                .capacity_reservation_id(id)
                .build();
            let request = LaunchTemplateCapacityReservationSpecificationRequest::builder()
                .capacity_reservation_preference(
                    CapacityReservationPreference::CapacityReservationsOnly,
                )
                .capacity_reservation_target(target)
                .build();
            let market = match (kind, is_interruptible) {
                (CapacityReservationType::CapacityBlock, _) => Some(MarketType::CapacityBlock),
                (CapacityReservationType::Default, true) => {
                    Some(MarketType::InterruptibleCapacityReservation)
                }
                (CapacityReservationType::Default, false) => None,
            };
            let market = market.map(|market| {
                LaunchTemplateInstanceMarketOptionsRequest::builder()
                    .market_type(market)
                    .build()
            });
            (Some(request), market)
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
