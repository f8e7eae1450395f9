//! Bottlerocket: settings in TOML, merged into the user's.
//!
//! The user's other tables pass through untouched; under `settings.kubernetes` only keys that Bottlerocket
//! knows survive. Answers to Karpenter's `pkg/providers/amifamily/bootstrap/bottlerocket.go` and
//! `bottlerocketsettings.go`.

use std::collections::BTreeMap;

use toml_edit::{Array, DocumentMut, Item, Table, Value, value};

use super::{BootstrapError, BootstrapOptions};

/// The first minor version that binds the instance store by itself.
const BINDS_BY_ITSELF: (u32, u32) = (1, 46);

const KNOWN: [&str; 49] = [
    "api-server",
    "cloud-provider",
    "cluster-certificate",
    "cluster-name",
    "cluster-dns-ip",
    "credential-providers",
    "node-labels",
    "node-taints",
    "max-pods",
    "static-pods",
    "eviction-hard",
    "eviction-soft",
    "eviction-soft-grace-period",
    "eviction-max-pod-grace-period",
    "kube-reserved",
    "system-reserved",
    "allowed-unsafe-sysctls",
    "server-tls-bootstrap",
    "registry-qps",
    "registry-burst",
    "event-qps",
    "event-burst",
    "kube-api-qps",
    "kube-api-burst",
    "container-log-max-size",
    "container-log-max-files",
    "container-log-max-workers",
    "container-log-monitor-interval",
    "cpu-manager-policy",
    "cpu-manager-policy-options",
    "cpu-manager-reconcile-period",
    "memory-manager-policy",
    "memory-manager-reserved-memory",
    "topology-manager-scope",
    "topology-manager-policy",
    "topology-manager-policy-options",
    "image-gc-high-threshold-percent",
    "image-gc-low-threshold-percent",
    "ids-per-pod",
    "cpu-cfs-quota-enforced",
    "shutdown-grace-period",
    "shutdown-grace-period-for-critical-pods",
    "cluster-domain",
    "seccomp-default",
    "pod-pids-limit",
    "device-ownership-from-security-context",
    "single-process-oom-kill",
    "hostname-override-source",
    "log-level",
];

pub(super) fn render(bootstrap: &BootstrapOptions<'_>) -> Result<String, BootstrapError> {
    let custom = bootstrap.custom.unwrap_or_default();
    let mut document: DocumentMut = custom
        .parse()
        .map_err(|error| BootstrapError::Custom(format!("not TOML: {error}")))?;
    let settings = table(document.as_table_mut(), "settings")?;
    settings.set_implicit(true);
    if bootstrap.is_raid0 {
        mount_instance_storage(settings, bootstrap.bottlerocket_version.as_deref())?;
    }
    let kubernetes = table(settings, "kubernetes")?;
    drop_unknown(kubernetes);
    write_cluster(kubernetes, bootstrap);
    write_kubelet(kubernetes, bootstrap)?;
    merge(table(kubernetes, "node-labels")?, &bootstrap.labels);
    write_taints(kubernetes, bootstrap);
    Ok(document.to_string())
}

fn table<'a>(parent: &'a mut Table, key: &str) -> Result<&'a mut Table, BootstrapError> {
    let item = parent
        .entry(key)
        .or_insert_with(|| Item::Table(Table::new()));
    if let Some(inline) = item.as_inline_table() {
        *item = Item::Table(inline.clone().into_table());
    }
    item.as_table_mut()
        .ok_or_else(|| BootstrapError::Custom(format!("{key} is not a table")))
}

fn drop_unknown(kubernetes: &mut Table) {
    let unknown: Vec<String> = kubernetes
        .iter()
        .map(|(key, _)| key)
        .filter(|key| !KNOWN.contains(key))
        .map(str::to_owned)
        .collect();
    for key in unknown {
        tracing::error!(
            key,
            "dropping a key of settings.kubernetes that is not supported"
        );
        kubernetes.remove(&key);
    }
}

fn write_cluster(kubernetes: &mut Table, bootstrap: &BootstrapOptions<'_>) {
    kubernetes["api-server"] = value(bootstrap.cluster_endpoint);
    kubernetes["cluster-name"] = value(bootstrap.cluster_name);
    if let Some(bundle) = bootstrap.cluster_ca_bundle {
        kubernetes["cluster-certificate"] = value(bundle);
    }
    if let Some(address) = bootstrap.cluster_dns.first() {
        kubernetes["cluster-dns-ip"] = value(address.as_str());
    }
    kubernetes["max-pods"] = value(bootstrap.max_pods);
}

fn write_kubelet(
    kubernetes: &mut Table,
    bootstrap: &BootstrapOptions<'_>,
) -> Result<(), BootstrapError> {
    let kubelet = bootstrap.kubelet;
    let maps = [
        ("system-reserved", &kubelet.system_reserved),
        ("kube-reserved", &kubelet.kube_reserved),
        ("eviction-hard", &kubelet.eviction_hard),
        ("eviction-soft", &kubelet.eviction_soft),
        (
            "eviction-soft-grace-period",
            &kubelet.eviction_soft_grace_period,
        ),
    ];
    for (key, map) in maps.into_iter().filter(|(_, map)| !map.is_empty()) {
        kubernetes.remove(key);
        merge(table(kubernetes, key)?, map);
    }
    if let Some(seconds) = kubelet.eviction_max_pod_grace_period {
        kubernetes["eviction-max-pod-grace-period"] = value(seconds);
    }
    if let Some(percent) = kubelet.image_gc_high_threshold_percent {
        kubernetes["image-gc-high-threshold-percent"] = value(percent.to_string());
    }
    if let Some(percent) = kubelet.image_gc_low_threshold_percent {
        kubernetes["image-gc-low-threshold-percent"] = value(percent.to_string());
    }
    if let Some(quota) = kubelet.cpu_cfs_quota {
        kubernetes["cpu-cfs-quota-enforced"] = value(quota);
    }
    Ok(())
}

fn merge(table: &mut Table, entries: &BTreeMap<String, String>) {
    for (key, text) in entries {
        table[key] = value(text.as_str());
    }
}

fn write_taints(kubernetes: &mut Table, bootstrap: &BootstrapOptions<'_>) {
    let mut by_key: BTreeMap<&str, Array> = BTreeMap::new();
    for taint in &bootstrap.taints {
        let text = format!(
            "{}:{}",
            taint.value.as_deref().unwrap_or_default(),
            taint.effect
        );
        by_key.entry(&taint.key).or_default().push(text);
    }
    let mut taints = Table::new();
    for (key, values) in by_key {
        taints[key] = Item::Value(Value::Array(values));
    }
    kubernetes["node-taints"] = Item::Table(taints);
}

fn mount_instance_storage(
    settings: &mut Table,
    version: Option<&str>,
) -> Result<(), BootstrapError> {
    let mut bind = vec!["apiclient", "ephemeral-storage", "bind"];
    if !binds_by_itself(version) {
        bind.extend([
            "--dirs",
            "/var/lib/containerd",
            "/var/lib/kubelet",
            "/var/log/pods",
        ]);
    }
    let init = Array::from_iter(["apiclient", "ephemeral-storage", "init"]);
    let commands = Array::from_iter([Value::Array(init), Value::Array(Array::from_iter(bind))]);
    let bootstrap_commands = table(settings, "bootstrap-commands")?;
    bootstrap_commands.set_implicit(true);
    let command = table(bootstrap_commands, "000-mount-instance-storage")?;
    command["commands"] = value(commands);
    command["mode"] = value("always");
    command["essential"] = value(true);
    Ok(())
}

fn binds_by_itself(version: Option<&str>) -> bool {
    let Some(version) = version else { return false };
    if version == "latest" {
        return true;
    }
    let mut numbers = version
        .trim_start_matches('v')
        .split('.')
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= BINDS_BY_ITSELF,
        _ => false,
    }
}
