//! The launch templates of a launch: types that boot alike share one.
//!
//! Pure. Answers to Karpenter's `pkg/providers/amifamily/resolver.go` (Resolve) and
//! `pkg/providers/launchtemplate/launchtemplate.go` (createAMIOptions).

use std::collections::{BTreeMap, BTreeSet};

use apis::ec2nodeclass::{Ami, InstanceStorePolicy};
use apis::{AmiFamily, CapacityType, Ec2NodeClass, labels};
use cloudprovider::CloudProviderError;

use super::LaunchContext;
use super::claim::{asks_for, node_pool};
use super::plan::LaunchPlan;
use crate::ami::ami_for;
use crate::ami_family::{
    BootstrapError, BootstrapOptions, boot_taints, default_block_device_mappings, kubelet_labels,
    user_data,
};
use crate::kubelet::Kubelet;
use crate::kubelet::expressions::SettledKubelet;
use crate::launch_template::{NetworkPlan, ReservationPlan, TemplateParameters};
use crate::options::AwsOptions;
use crate::tags::launch_tags;

/// A launch template and the types it is for.
#[derive(Debug)]
pub(super) struct LaunchTemplate {
    /// What the template says.
    pub(super) parameters: TemplateParameters,
    /// Names of types.
    pub(super) instance_types: BTreeSet<String>,
    /// Reservation that its instances run in.
    pub(super) reservation_id: Option<String>,
}

/// What types of one template have in common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TemplateKey {
    image_id: String,
    efa_count: i64,
    max_pods: i64,
    /// What the kubelet reserves by expressions, by path.
    amounts: BTreeMap<String, String>,
    reservation: ReservationPlan,
}

/// All templates that the plan's offerings need.
pub(super) async fn templates(
    plan: &LaunchPlan,
    context: &LaunchContext<'_>,
) -> Result<Vec<LaunchTemplate>, CloudProviderError> {
    let class = &context.request.node_class;
    let amis = class
        .status
        .as_ref()
        .map(|status| status.amis.as_slice())
        .unwrap_or_default();
    let mut kinds: BTreeMap<TemplateKey, BTreeSet<String>> = BTreeMap::new();
    let is_candidate = |name: &str| {
        plan.candidates
            .iter()
            .any(|it| it.instance_type.name == name)
    };
    let types = context.instance_types;
    let settled = types.settled_kubelets(class, context.options, is_candidate);
    let settled = settled.await?;
    for (kind, name) in kinds_of(plan, context, amis, &settled) {
        kinds.entry(kind).or_default().insert(name);
    }
    if kinds.is_empty() {
        return Err(CloudProviderError::InsufficientCapacity(
            "no image of the class boots any of the claim's instance types".to_owned(),
        ));
    }
    let kubelet = Kubelet::parse(&class.spec.kubelet).0;
    kinds
        .into_iter()
        .map(|(kind, instance_types)| {
            let reservation_id = match &kind.reservation {
                ReservationPlan::Target { id, .. } => Some(id.clone()),
                ReservationPlan::Unmanaged | ReservationPlan::Avoid => None,
            };
            let kubelet = kubelet.clone().with_amounts(&kind.amounts);
            let parameters = parameters(plan, context, kind, &kubelet)?;
            Ok(LaunchTemplate {
                parameters,
                instance_types,
                reservation_id,
            })
        })
        .collect()
}

fn kinds_of(
    plan: &LaunchPlan,
    context: &LaunchContext<'_>,
    amis: &[Ami],
    settled: &BTreeMap<String, Result<SettledKubelet, String>>,
) -> Vec<(TemplateKey, String)> {
    let wants_efa = asks_for(&context.request.node_claim, labels::RESOURCE_EFA);
    let mut kinds = Vec::new();
    for candidate in &plan.candidates {
        let instance_type = &candidate.instance_type;
        let Some(ami) = ami_for(amis, instance_type) else {
            continue;
        };
        let amounts = match settled.get(&instance_type.name) {
            None => BTreeMap::new(),
            Some(Ok(settled)) => settled.amounts.clone(),
            // Its node would be set up otherwise than asked for.
            Some(Err(_)) => continue,
        };
        let name = &instance_type.name;
        let offerings = candidate.offerings.iter();
        let reservations: BTreeSet<ReservationPlan> = offerings
            .map(|it| reservation_plan(plan, context.options, name, &it.zone))
            .collect();
        let efa_count = instance_type.capacity.count(labels::RESOURCE_EFA);
        for reservation in reservations {
            let kind = TemplateKey {
                image_id: ami.id.clone(),
                efa_count: if wants_efa { efa_count } else { 0 },
                max_pods: instance_type.capacity.count(labels::RESOURCE_PODS),
                amounts: amounts.clone(),
                reservation,
            };
            kinds.push((kind, name.clone()));
        }
    }
    kinds
}

fn reservation_plan(
    plan: &LaunchPlan,
    options: &AwsOptions,
    instance_type: &str,
    zone: &str,
) -> ReservationPlan {
    match plan.reservation(instance_type, zone) {
        Some(reservation) => ReservationPlan::Target {
            id: reservation.id.clone(),
            kind: reservation.kind,
            is_interruptible: reservation.is_interruptible,
        },
        None if options.reserved_capacity => ReservationPlan::Avoid,
        None => ReservationPlan::Unmanaged,
    }
}

fn parameters(
    plan: &LaunchPlan,
    context: &LaunchContext<'_>,
    kind: TemplateKey,
    kubelet: &Kubelet,
) -> Result<TemplateParameters, CloudProviderError> {
    let options = context.options;
    let class = &context.request.node_class;
    let spec = &class.spec;
    let claim = &context.request.node_claim;
    let family = class.ami_family();
    let status = class.status.clone().unwrap_or_default();
    let block_device_mappings = if spec.block_device_mappings.is_empty() {
        default_block_device_mappings(family)
    } else {
        spec.block_device_mappings.clone()
    };
    let nested = spec
        .cpu_options
        .as_ref()
        .and_then(|cpu| cpu.nested_virtualization.clone());
    Ok(TemplateParameters {
        user_data: render(plan, context, kind.max_pods, kubelet)?,
        image_id: kind.image_id,
        instance_profile: status.instance_profile,
        block_device_mappings,
        metadata_options: spec.metadata_options.clone(),
        nested_virtualization: nested,
        detailed_monitoring: spec.detailed_monitoring.unwrap_or(false),
        network: NetworkPlan {
            interfaces: spec.network_interfaces.clone(),
            efa_count: kind.efa_count,
            security_group_ids: status
                .security_groups
                .into_iter()
                .map(|group| group.id)
                .collect(),
            associate_public_ip_address: spec.associate_public_ip_address,
            ip_prefix_count: spec.ip_prefix_count,
            connection_tracking: spec.connection_tracking.clone(),
        },
        has_enclave: asks_for(claim, labels::RESOURCE_NITRO_SANDBOX),
        tenancy: plan.tenancy.to_owned(),
        placement_group_id: context
            .placement_group
            .as_ref()
            .map(|group| group.id.clone()),
        partition: context.partition(),
        reservation: kind.reservation,
        is_spot: plan.capacity_type == CapacityType::Spot,
        is_ipv6: options.is_ipv6(),
        region: options.region.clone(),
        tags: launch_tags(class, &options.cluster_name, node_pool(claim)),
    })
}

fn render(
    plan: &LaunchPlan,
    context: &LaunchContext<'_>,
    max_pods: i64,
    kubelet: &Kubelet,
) -> Result<String, CloudProviderError> {
    let options = context.options;
    let class = &context.request.node_class;
    let claim = &context.request.node_claim;
    let family = class.ami_family();
    let mut node_labels = claim.metadata.labels.clone().unwrap_or_default();
    node_labels.insert(
        labels::CAPACITY_TYPE.to_owned(),
        plan.capacity_type.to_string(),
    );
    if family != AmiFamily::Custom {
        node_labels.insert(labels::DO_NOT_SYNC_TAINTS.to_owned(), "true".to_owned());
    }
    let cluster_dns = if kubelet.cluster_dns.is_empty() {
        options
            .kube_dns_ip
            .map(|address| address.to_string())
            .into_iter()
            .collect()
    } else {
        kubelet.cluster_dns.clone()
    };
    let bootstrap = BootstrapOptions {
        cluster_name: &options.cluster_name,
        cluster_endpoint: &options.cluster_endpoint,
        cluster_ca_bundle: options.cluster_ca_bundle.as_deref(),
        cluster_cidr: options.cluster_cidr.as_deref(),
        labels: kubelet_labels(&node_labels),
        taints: boot_taints(&claim.spec.taints, &claim.spec.startup_taints),
        kubelet,
        cluster_dns,
        max_pods,
        is_raid0: class.spec.instance_store_policy == Some(InstanceStorePolicy::Raid0),
        custom: class.spec.user_data.as_deref(),
        bottlerocket_version: bottlerocket_version(class),
    };
    user_data(family, &bootstrap).map_err(|error| match error {
        BootstrapError::NoClusterCidr => CloudProviderError::NodeClassNotReady(error.to_string()),
        BootstrapError::Custom(_) => CloudProviderError::Create {
            reason: "UserDataInvalid".to_owned(),
            message: error.to_string(),
        },
    })
}

/// The version that the class asks for, or else the one in the name of an image it found.
fn bottlerocket_version(class: &Ec2NodeClass) -> Option<String> {
    if let Some(alias) = class.alias() {
        return Some(alias.version);
    }
    let from_name = |name: &str| {
        let is_version = |segment: &&str| {
            segment
                .strip_prefix('v')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        name.split('-').find(is_version).map(str::to_owned)
    };
    let asked = class
        .spec
        .ami_selector_terms
        .iter()
        .find_map(|term| from_name(term.name.as_deref()?));
    let status = class.status.iter().flat_map(|status| &status.amis);
    let mut names = status
        .filter_map(|ami| ami.name.as_deref())
        .filter(|name| name.contains("bottlerocket"));
    asked.or_else(|| names.find_map(from_name))
}
