//! Families of images: what their nodes can do, and how they are told to join.
//!
//! Pure: renders user data, calls nothing. Answers to Karpenter's `pkg/providers/amifamily/resolver.go` and
//! the files of `pkg/providers/amifamily/bootstrap`.

mod al2;
mod al2023;
mod bottlerocket;
pub(crate) mod features;
mod flags;
mod mime;
#[cfg(test)]
mod tests;
mod windows;

use std::collections::BTreeMap;

use apis::ec2nodeclass::{BlockDevice, BlockDeviceMapping};
use apis::{AmiFamily, labels};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::kubelet::Kubelet;

/// Build number that Windows nodes carry as a label.
pub(crate) fn windows_build(family: AmiFamily) -> Option<&'static str> {
    match family {
        AmiFamily::Windows2019 => Some("10.0.17763"),
        AmiFamily::Windows2022 => Some("10.0.20348"),
        AmiFamily::Windows2025 => Some("10.0.26100"),
        AmiFamily::Al2 | AmiFamily::Al2023 | AmiFamily::Bottlerocket | AmiFamily::Custom => None,
    }
}

/// The device whose size is the node's ephemeral storage.
pub(crate) fn ephemeral_device(family: AmiFamily) -> Option<&'static str> {
    match family {
        AmiFamily::Al2 | AmiFamily::Al2023 => Some("/dev/xvda"),
        AmiFamily::Bottlerocket => Some("/dev/xvdb"),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
            Some("/dev/sda1")
        }
        AmiFamily::Custom => None,
    }
}

/// The volumes of a class that names none.
pub(crate) fn default_block_device_mappings(family: AmiFamily) -> Vec<BlockDeviceMapping> {
    let volume = |device: &str, size: &str| BlockDeviceMapping {
        device_name: Some(device.to_owned()),
        ebs: Some(BlockDevice {
            encrypted: Some(true),
            volume_size: Some(Quantity(size.to_owned())),
            volume_type: Some("gp3".to_owned()),
            ..BlockDevice::default()
        }),
        root_volume: false,
    };
    match family {
        AmiFamily::Al2 | AmiFamily::Al2023 => vec![volume("/dev/xvda", "20Gi")],
        AmiFamily::Bottlerocket => vec![volume("/dev/xvda", "4Gi"), volume("/dev/xvdb", "20Gi")],
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
            vec![volume("/dev/sda1", "50Gi")]
        }
        AmiFamily::Custom => Vec::new(),
    }
}

/// Facts that a node must be told to join.
#[derive(Debug, Clone)]
pub(crate) struct BootstrapOptions<'a> {
    pub(crate) cluster_name: &'a str,
    pub(crate) cluster_endpoint: &'a str,
    pub(crate) cluster_ca_bundle: Option<&'a str>,
    pub(crate) cluster_cidr: Option<&'a str>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) kubelet: &'a Kubelet,
    /// The kubelet's clusterDNS, or else the cluster's own.
    pub(crate) cluster_dns: Vec<String>,
    pub(crate) max_pods: i64,
    pub(crate) is_raid0: bool,
    pub(crate) custom: Option<&'a str>,
    /// Version of a Bottlerocket image such as `1.46.0`, or `latest`, when known.
    pub(crate) bottlerocket_version: Option<String>,
}

/// Why no user data can be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BootstrapError {
    /// AL2023 needs the service CIDR and nobody knows it yet.
    #[error("resolving cluster CIDR")]
    NoClusterCidr,
    /// The user's own document cannot be merged with ours.
    #[error("spec.userData: {0}")]
    Custom(String),
}

/// The user data of an instance, base64.
pub(crate) fn user_data(
    family: AmiFamily,
    bootstrap: &BootstrapOptions<'_>,
) -> Result<String, BootstrapError> {
    let text = match family {
        AmiFamily::Al2 => al2::render(bootstrap)?,
        AmiFamily::Al2023 => al2023::render(bootstrap)?,
        AmiFamily::Bottlerocket => bottlerocket::render(bootstrap)?,
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
            windows::render(bootstrap)
        }
        AmiFamily::Custom => bootstrap.custom.unwrap_or_default().to_owned(),
    };
    Ok(STANDARD.encode(text))
}

/// The labels that a kubelet may set on its own node.
pub(crate) fn kubelet_labels(claim_labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_allowed = |key: &str| {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        ["kubernetes.io", "k8s.io", "node-restriction.kubernetes.io"]
            .iter()
            .all(|denied| domain != *denied && !domain.ends_with(&format!(".{denied}")))
    };
    claim_labels
        .iter()
        .filter(|(key, _)| is_allowed(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The taints a node starts with: the claim's, and the one that waits for registration.
pub(crate) fn boot_taints(claim_taints: &[Taint], startup_taints: &[Taint]) -> Vec<Taint> {
    let mut taints: Vec<Taint> = claim_taints.iter().chain(startup_taints).cloned().collect();
    let is_unregistered = |taint: &Taint| {
        taint.key == labels::UNREGISTERED_TAINT_KEY && taint.effect == labels::NO_EXECUTE
    };
    if !taints.iter().any(is_unregistered) {
        taints.push(Taint {
            key: labels::UNREGISTERED_TAINT_KEY.to_owned(),
            effect: labels::NO_EXECUTE.to_owned(),
            ..Taint::default()
        });
    }
    taints
}
