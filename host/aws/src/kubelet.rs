//! `spec.kubelet` of an EC2NodeClass, read strictly.
//!
//! The schema lets any map through, so this module says what is wrong with it. It renders nothing. Answers to
//! Karpenter's `pkg/providers/amifamily/bootstrap` inputs and `pkg/apis/v1/kubelet.go`.

use std::collections::BTreeMap;

use apis::GoDuration;
use apis::quantity::ParsedQuantity;
use serde_json::Value;

use crate::ami_family::features::Features;

const EVICTION_SIGNALS: [&str; 6] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];
const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

/// Fields that every family can apply.
const MANAGED: [&str; 12] = [
    "clusterDNS",
    "maxPods",
    "podsPerCore",
    "systemReserved",
    "kubeReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "cpuCFSQuota",
];

/// The other fields of `kubelet.config.k8s.io/v1beta1`.
const UPSTREAM: [&str; 104] = [
    "allowedUnsafeSysctls",
    "address",
    "authentication",
    "authorization",
    "cgroupDriver",
    "cgroupRoot",
    "cgroupsPerQOS",
    "clusterDomain",
    "configMapAndSecretChangeDetectionStrategy",
    "containerLogMaxFiles",
    "containerLogMaxSize",
    "containerLogMaxWorkers",
    "containerLogMonitorInterval",
    "containerRuntimeEndpoint",
    "contentType",
    "cpuCFSQuotaPeriod",
    "cpuManagerPolicy",
    "cpuManagerPolicyOptions",
    "cpuManagerReconcilePeriod",
    "crashLoopBackOff",
    "enableContentionProfiling",
    "enableControllerAttachDetach",
    "enableDebugFlagsHandler",
    "enableDebuggingHandlers",
    "enableProfilingHandler",
    "enableServer",
    "enableSystemLogHandler",
    "enableSystemLogQuery",
    "enforceNodeAllocatable",
    "eventBurst",
    "eventRecordQPS",
    "evictionMinimumReclaim",
    "evictionPressureTransitionPeriod",
    "failCgroupV1",
    "failSwapOn",
    "featureGates",
    "fileCheckFrequency",
    "hairpinMode",
    "healthzBindAddress",
    "healthzPort",
    "httpCheckFrequency",
    "imageMaximumGCAge",
    "imageMinimumGCAge",
    "imagePullCredentialsVerificationPolicy",
    "imageServiceEndpoint",
    "iptablesDropBit",
    "iptablesMasqueradeBit",
    "kernelMemcgNotification",
    "kubeAPIBurst",
    "kubeAPIQPS",
    "kubeReservedCgroup",
    "kubeletCgroups",
    "localStorageCapacityIsolation",
    "logging",
    "makeIPTablesUtilChains",
    "maxOpenFiles",
    "maxParallelImagePulls",
    "memoryManagerPolicy",
    "memorySwap",
    "memoryThrottlingFactor",
    "mergeDefaultEvictionSettings",
    "nodeLeaseDurationSeconds",
    "nodeStatusMaxImages",
    "nodeStatusReportFrequency",
    "nodeStatusUpdateFrequency",
    "oomScoreAdj",
    "podCIDR",
    "podLogsDir",
    "podPidsLimit",
    "port",
    "preloadedImagesVerificationAllowlist",
    "protectKernelDefaults",
    "providerID",
    "qosReserved",
    "readOnlyPort",
    "registerNode",
    "registerWithTaints",
    "registryBurst",
    "registryPullQPS",
    "reservedMemory",
    "reservedSystemCPUs",
    "resolvConf",
    "rotateCertificates",
    "runOnce",
    "runtimeRequestTimeout",
    "seccompDefault",
    "serializeImagePulls",
    "serverTLSBootstrap",
    "showHiddenMetricsForVersion",
    "shutdownGracePeriod",
    "shutdownGracePeriodByPodPriority",
    "shutdownGracePeriodCriticalPods",
    "singleProcessOOMKill",
    "staticPodPath",
    "staticPodURL",
    "staticPodURLHeader",
    "streamingConnectionIdleTimeout",
    "syncFrequency",
    "systemCgroups",
    "systemReservedCgroup",
    "tlsCertFile",
    "tlsCipherSuites",
    "tlsMinVersion",
    "tlsPrivateKeyFile",
];
const UPSTREAM_REST: [&str; 6] = [
    "topologyManagerPolicy",
    "topologyManagerPolicyOptions",
    "topologyManagerScope",
    "tracing",
    "volumePluginDir",
    "volumeStatsAggPeriod",
];

/// The managed fields, typed, and the rest as written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Kubelet {
    pub(crate) cluster_dns: Vec<String>,
    pub(crate) max_pods: Option<i64>,
    pub(crate) pods_per_core: Option<i64>,
    pub(crate) system_reserved: BTreeMap<String, String>,
    pub(crate) kube_reserved: BTreeMap<String, String>,
    pub(crate) eviction_hard: BTreeMap<String, String>,
    pub(crate) eviction_soft: BTreeMap<String, String>,
    pub(crate) eviction_soft_grace_period: BTreeMap<String, String>,
    pub(crate) eviction_max_pod_grace_period: Option<i64>,
    pub(crate) image_gc_high_threshold_percent: Option<i64>,
    pub(crate) image_gc_low_threshold_percent: Option<i64>,
    pub(crate) cpu_cfs_quota: Option<bool>,
    /// Fields whose value is an expression; they count as absent above.
    pub(crate) expressions: Vec<String>,
    /// As the user wrote it, expressions left out.
    pub(crate) raw: BTreeMap<String, Value>,
}

impl Kubelet {
    /// Reads what can be read and tells what is wrong, each with its path.
    pub(crate) fn parse(map: &BTreeMap<String, Value>) -> (Self, Vec<String>) {
        let mut reader = Reader {
            map,
            errors: Vec::new(),
            expressions: Vec::new(),
        };
        let mut kubelet = Self {
            cluster_dns: reader.strings("clusterDNS"),
            max_pods: reader.max_pods(),
            pods_per_core: reader.integer("podsPerCore", 0, i64::from(i32::MAX)),
            system_reserved: reader.reserved("systemReserved"),
            kube_reserved: reader.reserved("kubeReserved"),
            eviction_hard: reader.eviction("evictionHard"),
            eviction_soft: reader.eviction("evictionSoft"),
            eviction_soft_grace_period: reader.grace_periods(),
            eviction_max_pod_grace_period: reader.integer(
                "evictionMaxPodGracePeriod",
                0,
                i64::from(i32::MAX),
            ),
            image_gc_high_threshold_percent: reader.integer("imageGCHighThresholdPercent", 0, 100),
            image_gc_low_threshold_percent: reader.integer("imageGCLowThresholdPercent", 0, 100),
            cpu_cfs_quota: reader.boolean("cpuCFSQuota"),
            expressions: Vec::new(),
            raw: map.clone(),
        };
        reader.eviction("evictionMinimumReclaim");
        reader.unknown_fields();
        reader.relations(&kubelet);
        for path in &reader.expressions {
            kubelet.forget(path);
        }
        kubelet.expressions = reader.expressions;
        (kubelet, reader.errors)
    }

    /// Fields that a family without `features` cannot apply.
    pub(crate) fn unsupported(&self, features: Features) -> Vec<String> {
        let mut fields: Vec<String> = Vec::new();
        if !features.arbitrary_kubelet {
            fields.extend(
                self.raw
                    .keys()
                    .filter(|key| !MANAGED.contains(&key.as_str()))
                    .cloned(),
            );
        }
        if !features.pods_per_core && self.pods_per_core.is_some() && !features.is_windows {
            fields.push("podsPerCore".to_owned());
        }
        if !features.many_cluster_dns && self.cluster_dns.len() > 1 {
            fields.push("clusterDNS (more than one entry)".to_owned());
        }
        fields
    }

    fn forget(&mut self, path: &str) {
        match path.split_once('.') {
            None => drop(self.raw.remove(path)),
            Some((field, key)) => {
                if let Some(Value::Object(entries)) = self.raw.get_mut(field) {
                    entries.remove(key);
                }
            }
        }
    }
}

struct Reader<'a> {
    map: &'a BTreeMap<String, Value>,
    errors: Vec<String>,
    expressions: Vec<String>,
}

impl Reader<'_> {
    fn fail(&mut self, path: &str, what: &str) {
        self.errors.push(format!("spec.kubelet.{path}: {what}"));
    }

    fn strings(&mut self, field: &str) -> Vec<String> {
        let Some(value) = self.map.get(field).filter(|value| !value.is_null()) else {
            return Vec::new();
        };
        let strings = value.as_array().and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
        });
        strings.unwrap_or_else(|| {
            self.fail(field, "must be a list of strings");
            Vec::new()
        })
    }

    fn integer(&mut self, field: &str, min: i64, max: i64) -> Option<i64> {
        let value = self.map.get(field).filter(|value| !value.is_null())?;
        match value.as_i64() {
            Some(number) if (min..=max).contains(&number) => Some(number),
            Some(_) => {
                self.fail(field, &format!("must lie between {min} and {max}"));
                None
            }
            None => {
                self.fail(field, "must be an integer");
                None
            }
        }
    }

    fn boolean(&mut self, field: &str) -> Option<bool> {
        let value = self.map.get(field).filter(|value| !value.is_null())?;
        if value.as_bool().is_none() {
            self.fail(field, "must be true or false");
        }
        value.as_bool()
    }

    fn max_pods(&mut self) -> Option<i64> {
        if let Some(Value::String(_)) = self.map.get("maxPods") {
            self.expressions.push("maxPods".to_owned());
            return None;
        }
        self.integer("maxPods", 0, i64::from(i32::MAX))
    }

    fn entries(&mut self, field: &str) -> BTreeMap<String, String> {
        let Some(value) = self.map.get(field).filter(|value| !value.is_null()) else {
            return BTreeMap::new();
        };
        let Some(object) = value.as_object() else {
            self.fail(field, "must be a map of strings");
            return BTreeMap::new();
        };
        let mut entries = BTreeMap::new();
        for (key, value) in object {
            match value.as_str() {
                Some(text) => drop(entries.insert(key.clone(), text.to_owned())),
                None => self.fail(&format!("{field}[{key}]"), "must be a string"),
            }
        }
        entries
    }

    fn reserved(&mut self, field: &str) -> BTreeMap<String, String> {
        let mut entries = self.entries(field);
        entries.retain(|key, value| {
            let path = format!("{field}[{key}]");
            if !RESERVABLE.contains(&key.as_str()) {
                self.fail(&path, "cannot be reserved");
                return false;
            }
            if value.starts_with('-') {
                self.fail(&path, "must not be negative");
                return false;
            }
            if value.parse::<ParsedQuantity>().is_err() {
                self.expressions.push(format!("{field}.{key}"));
                return false;
            }
            true
        });
        entries
    }

    fn eviction(&mut self, field: &str) -> BTreeMap<String, String> {
        let entries = self.entries(field);
        for (key, value) in &entries {
            let path = format!("{field}[{key}]");
            self.signal(&path, key);
            if let Some(percent) = value.strip_suffix('%') {
                let is_fine = percent
                    .parse::<f64>()
                    .is_ok_and(|percent| (0.0..=100.0).contains(&percent));
                if !is_fine {
                    self.fail(&path, "must be a percentage between 0% and 100%");
                }
            } else if value
                .parse::<ParsedQuantity>()
                .map_or(true, ParsedQuantity::is_negative)
            {
                self.fail(
                    &path,
                    "must be a percentage or a quantity that is not negative",
                );
            }
        }
        entries
    }

    fn grace_periods(&mut self) -> BTreeMap<String, String> {
        let field = "evictionSoftGracePeriod";
        let entries = self.entries(field);
        for (key, value) in &entries {
            let path = format!("{field}[{key}]");
            self.signal(&path, key);
            if value.starts_with('-') || value.parse::<GoDuration>().is_err() {
                self.fail(&path, "must be a duration that is not negative");
            }
        }
        entries
    }

    fn signal(&mut self, path: &str, key: &str) {
        if !EVICTION_SIGNALS.contains(&key) {
            self.fail(path, "is not an eviction signal");
        }
    }

    fn unknown_fields(&mut self) {
        let map = self.map;
        for key in map.keys().map(String::as_str) {
            if key == "registerWithTaints" {
                self.fail(key, "is owned by the NodePool's taints");
            } else if ![&MANAGED[..], &UPSTREAM, &UPSTREAM_REST]
                .iter()
                .any(|known| known.contains(&key))
            {
                self.fail(key, "is not a field of the kubelet's configuration");
            }
        }
    }

    fn relations(&mut self, kubelet: &Kubelet) {
        let soft = &kubelet.eviction_soft;
        let grace = &kubelet.eviction_soft_grace_period;
        if soft.keys().ne(grace.keys()) {
            self.fail(
                "evictionSoft",
                "must name the same signals as evictionSoftGracePeriod",
            );
        }
        let (high, low) = (
            kubelet.image_gc_high_threshold_percent,
            kubelet.image_gc_low_threshold_percent,
        );
        if let (Some(high), Some(low)) = (high, low)
            && high <= low
        {
            self.fail(
                "imageGCHighThresholdPercent",
                "must be greater than imageGCLowThresholdPercent",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &Value) -> (Kubelet, Vec<String>) {
        let map = serde_json::from_value(json.clone()).unwrap();
        Kubelet::parse(&map)
    }

    #[test]
    fn mistakes_are_named_with_their_path() {
        let cases = [
            (serde_json::json!({"maxPods": -1}), "spec.kubelet.maxPods"),
            (
                serde_json::json!({"registerWithTaints": []}),
                "spec.kubelet.registerWithTaints",
            ),
            (serde_json::json!({"maxpods": 1}), "spec.kubelet.maxpods"),
            (
                serde_json::json!({"kubeReserved": {"cpu": "-1"}}),
                "spec.kubelet.kubeReserved[cpu]",
            ),
            (
                serde_json::json!({"kubeReserved": {"gpu": "1"}}),
                "spec.kubelet.kubeReserved[gpu]",
            ),
            (
                serde_json::json!({"evictionHard": {"memory.available": "101%"}}),
                "evictionHard[memory.available]",
            ),
            (
                serde_json::json!({"evictionHard": {"memory": "5%"}}),
                "evictionHard[memory]",
            ),
            (
                serde_json::json!({"evictionSoft": {"memory.available": "5%"}}),
                "spec.kubelet.evictionSoft",
            ),
            (
                serde_json::json!({"clusterDNS": "10.0.0.1"}),
                "spec.kubelet.clusterDNS",
            ),
            (
                serde_json::json!({"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50}),
                "imageGCHighThresholdPercent",
            ),
        ];
        for (json, want) in cases {
            let (_, errors) = parse(&json);
            assert!(
                errors.len() == 1 && errors[0].contains(want),
                "{json}: {errors:?}"
            );
        }
    }

    #[test]
    fn expressions_are_set_aside() {
        let (kubelet, errors) = parse(&serde_json::json!({
            "maxPods": "min(110, max_pods)", "kubeReserved": {"cpu": "vcpus * 10", "memory": "1Gi"},
        }));
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(kubelet.max_pods, None);
        assert_eq!(kubelet.expressions, ["maxPods", "kubeReserved.cpu"]);
        assert_eq!(kubelet.kube_reserved.keys().collect::<Vec<_>>(), ["memory"]);
        assert_eq!(
            kubelet.raw["kubeReserved"],
            serde_json::json!({"memory": "1Gi"})
        );
    }
}
