//! Abilities of the nodes of a family of images. Answers to `FeatureFlags` of Karpenter's
//! `pkg/providers/amifamily/resolver.go`.

use apis::AmiFamily;

/// Abilities of a family's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    /// kubeReserved memory follows from the interfaces, whatever maxPods says.
    pub(crate) eni_limited_memory_overhead: bool,
    /// Whether its kubelet setting podsPerCore has an effect.
    pub(crate) pods_per_core: bool,
    /// Pods are limited by the addresses of the interfaces.
    pub(crate) eni_limited_pods: bool,
    /// Any kubelet field goes through.
    pub(crate) arbitrary_kubelet: bool,
    /// More than one entry of clusterDNS is understood.
    pub(crate) many_cluster_dns: bool,
    /// The operating system is Windows.
    pub(crate) is_windows: bool,
}

/// Abilities of the family's nodes.
pub(crate) fn features(family: AmiFamily) -> Features {
    let linux = Features {
        eni_limited_memory_overhead: true,
        pods_per_core: family.takes_pods_per_core(),
        eni_limited_pods: true,
        arbitrary_kubelet: false,
        many_cluster_dns: family.takes_many_cluster_dns(),
        is_windows: false,
    };
    match family {
        AmiFamily::Al2 => linux,
        AmiFamily::Al2023 | AmiFamily::Custom => Features {
            arbitrary_kubelet: true,
            ..linux
        },
        AmiFamily::Bottlerocket => Features {
            eni_limited_memory_overhead: false,
            ..linux
        },
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => Features {
            eni_limited_memory_overhead: false,
            eni_limited_pods: false,
            is_windows: true,
            ..linux
        },
    }
}
