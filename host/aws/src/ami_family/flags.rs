//! Command-line flags of the kubelet, for families whose bootstrap script takes them.
//!
//! Sorted where Karpenter's order is random. Answers to Karpenter's `bootstrap.go` (kubeletExtraArgs).

use std::collections::BTreeMap;

use super::BootstrapOptions;

/// All flags, in the order in which Karpenter writes them.
pub(super) fn kubelet_flags(bootstrap: &BootstrapOptions<'_>) -> Vec<String> {
    let kubelet = bootstrap.kubelet;
    let mut flags = Vec::new();
    if !bootstrap.labels.is_empty() {
        flags.push(node_labels(&bootstrap.labels));
    }
    if !bootstrap.taints.is_empty() {
        let taints = bootstrap.taints.iter().map(|taint| {
            format!(
                "{}={}:{}",
                taint.key,
                taint.value.as_deref().unwrap_or_default(),
                taint.effect
            )
        });
        flags.push(format!(
            "--register-with-taints=\"{}\"",
            taints.collect::<Vec<_>>().join(",")
        ));
    }
    flags.push(format!("--max-pods={}", bootstrap.max_pods));
    push_number(&mut flags, "pods-per-core", kubelet.pods_per_core);
    push_map(&mut flags, "system-reserved", '=', &kubelet.system_reserved);
    push_map(&mut flags, "kube-reserved", '=', &kubelet.kube_reserved);
    push_map(&mut flags, "eviction-hard", '<', &kubelet.eviction_hard);
    push_map(&mut flags, "eviction-soft", '<', &kubelet.eviction_soft);
    push_map(
        &mut flags,
        "eviction-soft-grace-period",
        '=',
        &kubelet.eviction_soft_grace_period,
    );
    push_number(
        &mut flags,
        "eviction-max-pod-grace-period",
        kubelet.eviction_max_pod_grace_period,
    );
    push_number(
        &mut flags,
        "image-gc-high-threshold",
        kubelet.image_gc_high_threshold_percent,
    );
    push_number(
        &mut flags,
        "image-gc-low-threshold",
        kubelet.image_gc_low_threshold_percent,
    );
    if let Some(quota) = kubelet.cpu_cfs_quota {
        flags.push(format!("--cpu-cfs-quota={quota}"));
    }
    flags
}

/// The flag for node labels.
pub(super) fn node_labels(labels: &BTreeMap<String, String>) -> String {
    format!("--node-labels=\"{}\"", join(labels, '='))
}

fn push_number(flags: &mut Vec<String>, name: &str, number: Option<i64>) {
    if let Some(number) = number {
        flags.push(format!("--{name}={number}"));
    }
}

fn push_map(flags: &mut Vec<String>, name: &str, separator: char, map: &BTreeMap<String, String>) {
    if !map.is_empty() {
        flags.push(format!("--{name}=\"{}\"", join(map, separator)));
    }
}

fn join(map: &BTreeMap<String, String>, separator: char) -> String {
    let pairs = map
        .iter()
        .map(|(key, value)| format!("{key}{separator}{value}"));
    pairs.collect::<Vec<_>>().join(",")
}
